"""The texts that describe rules. Each names its weekday, because gender and number of weekdays differ by language.

Tables with three texts are for the intervals 1, 2 and more. All texts begin in lower case; the first letter of a
description is capitalized when it is complete.
"""

from collections.abc import Mapping
from typing import Final

from kalends.core.messages import gettext_noop as N_

type ByInterval = tuple[str, str, str]

DAILY: Final[ByInterval] = (N_("every day"), N_("every second day"), N_("every {n} days"))
WEEKLY: Final[tuple[ByInterval, ...]] = (
    (N_("every Monday"), N_("every second week on Monday"), N_("every {n} weeks on Monday")),
    (N_("every Tuesday"), N_("every second week on Tuesday"), N_("every {n} weeks on Tuesday")),
    (N_("every Wednesday"), N_("every second week on Wednesday"), N_("every {n} weeks on Wednesday")),
    (N_("every Thursday"), N_("every second week on Thursday"), N_("every {n} weeks on Thursday")),
    (N_("every Friday"), N_("every second week on Friday"), N_("every {n} weeks on Friday")),
    (N_("every Saturday"), N_("every second week on Saturday"), N_("every {n} weeks on Saturday")),
    (N_("every Sunday"), N_("every second week on Sunday"), N_("every {n} weeks on Sunday")),
)
WEEKLY_LIST: Final[ByInterval] = (
    N_("weekly: {days}"),
    N_("every second week: {days}"),
    N_("every {n} weeks: {days}"),
)
MONDAY_TO_FRIDAY: Final = N_("every day from Monday to Friday")
MONTHLY: Final[ByInterval] = (
    N_("{day} of every month"),
    N_("every second month {day}"),
    N_("every {n} months {day}"),
)
MONTHLY_LIST: Final = N_("every month on these days: {days}")
YEARLY_DATE: Final[ByInterval] = (
    N_("every year on {date}"),
    N_("every second year on {date}"),
    N_("every {n} years on {date}"),
)
YEARLY_DAY: Final[ByInterval] = (
    N_("every year {day} of {month}"),
    N_("every second year {day} of {month}"),
    N_("every {n} years {day} of {month}"),
)

# The values of {day} above.
MONTH_DAY: Final = N_("on day {number}")
MONTH_DAYS: Final[Mapping[int, str]] = {1: N_("on the first day"), -1: N_("on the last day")}
# By the numbers of the weekday in its month, beginning with Monday.
NUMBERED_WEEKDAYS: Final[Mapping[tuple[int, ...], tuple[str, ...]]] = {
    (1,): (
        N_("on the first Monday"),
        N_("on the first Tuesday"),
        N_("on the first Wednesday"),
        N_("on the first Thursday"),
        N_("on the first Friday"),
        N_("on the first Saturday"),
        N_("on the first Sunday"),
    ),
    (2,): (
        N_("on the second Monday"),
        N_("on the second Tuesday"),
        N_("on the second Wednesday"),
        N_("on the second Thursday"),
        N_("on the second Friday"),
        N_("on the second Saturday"),
        N_("on the second Sunday"),
    ),
    (3,): (
        N_("on the third Monday"),
        N_("on the third Tuesday"),
        N_("on the third Wednesday"),
        N_("on the third Thursday"),
        N_("on the third Friday"),
        N_("on the third Saturday"),
        N_("on the third Sunday"),
    ),
    (4,): (
        N_("on the fourth Monday"),
        N_("on the fourth Tuesday"),
        N_("on the fourth Wednesday"),
        N_("on the fourth Thursday"),
        N_("on the fourth Friday"),
        N_("on the fourth Saturday"),
        N_("on the fourth Sunday"),
    ),
    (-1,): (
        N_("on the last Monday"),
        N_("on the last Tuesday"),
        N_("on the last Wednesday"),
        N_("on the last Thursday"),
        N_("on the last Friday"),
        N_("on the last Saturday"),
        N_("on the last Sunday"),
    ),
    (1, 3): (
        N_("on the first and third Monday"),
        N_("on the first and third Tuesday"),
        N_("on the first and third Wednesday"),
        N_("on the first and third Thursday"),
        N_("on the first and third Friday"),
        N_("on the first and third Saturday"),
        N_("on the first and third Sunday"),
    ),
    (2, 4): (
        N_("on the second and fourth Monday"),
        N_("on the second and fourth Tuesday"),
        N_("on the second and fourth Wednesday"),
        N_("on the second and fourth Thursday"),
        N_("on the second and fourth Friday"),
        N_("on the second and fourth Saturday"),
        N_("on the second and fourth Sunday"),
    ),
}

UNTIL: Final = N_("{rule}, until {date}")
COUNT: Final = N_("{rule}, {n} times")
ONCE: Final = N_("{rule}, once")

"""Rule descriptions as sentences. `rendering/rule_texts.py` formats the dates and names in them."""

from calendar import monthrange
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

from kalends.core.messages import Message, gettext_noop as N_
from kalends.core.recurrence.rule_parts import Rule, Weekday

# Each weekday has separate texts, because in some languages the grammar depends on the weekday.

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

# Texts for {day} in the sentences above.
MONTH_DAY: Final = N_("on day {number}")
MONTH_DAYS: Final[Mapping[int, str]] = {1: N_("on the first day"), -1: N_("on the last day")}
# Keyed by the weekday's ordinals in the month; each tuple starts with Monday.
NUMBERED_WEEKDAYS: Final[Mapping[tuple[int, ...], tuple[str, ...]]] = {
    (1,): (
        N_("on the first Monday"), N_("on the first Tuesday"), N_("on the first Wednesday"),
        N_("on the first Thursday"), N_("on the first Friday"), N_("on the first Saturday"), N_("on the first Sunday")
    ),
    (2,): (
        N_("on the second Monday"), N_("on the second Tuesday"), N_("on the second Wednesday"),
        N_("on the second Thursday"), N_("on the second Friday"), N_("on the second Saturday"),
        N_("on the second Sunday")
    ),
    (3,): (
        N_("on the third Monday"), N_("on the third Tuesday"), N_("on the third Wednesday"),
        N_("on the third Thursday"), N_("on the third Friday"), N_("on the third Saturday"), N_("on the third Sunday")
    ),
    (4,): (
        N_("on the fourth Monday"), N_("on the fourth Tuesday"), N_("on the fourth Wednesday"),
        N_("on the fourth Thursday"), N_("on the fourth Friday"), N_("on the fourth Saturday"),
        N_("on the fourth Sunday")
    ),
    (-1,): (
        N_("on the last Monday"), N_("on the last Tuesday"), N_("on the last Wednesday"), N_("on the last Thursday"),
        N_("on the last Friday"), N_("on the last Saturday"), N_("on the last Sunday")
    ),
    (1, 3): (
        N_("on the first and third Monday"), N_("on the first and third Tuesday"),
        N_("on the first and third Wednesday"), N_("on the first and third Thursday"),
        N_("on the first and third Friday"), N_("on the first and third Saturday"),
        N_("on the first and third Sunday")
    ),
    (2, 4): (
        N_("on the second and fourth Monday"), N_("on the second and fourth Tuesday"),
        N_("on the second and fourth Wednesday"), N_("on the second and fourth Thursday"),
        N_("on the second and fourth Friday"), N_("on the second and fourth Saturday"),
        N_("on the second and fourth Sunday")
    ),
}  # fmt: skip

UNTIL: Final = N_("{rule}, until {date}")
COUNT: Final = N_("{rule}, {n} times")
ONCE: Final = N_("{rule}, once")


_ALL_WEEKDAYS: Final = tuple(range(7))
_MONDAY_TO_FRIDAY: Final = tuple(range(5))
_MONTH_LENGTHS: Final = {month: monthrange(2000, month)[1] for month in range(1, 13)}  # in a leap year


@dataclass(frozen=True, slots=True)
class DayOfYear:
    """A date without a year, such as May 3."""

    month: int
    day: int


@dataclass(frozen=True, slots=True)
class MonthName:
    number: int


@dataclass(frozen=True, slots=True)
class WeekdayNames:
    days: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Numbers:
    numbers: tuple[int, ...]


class RuleText:
    """Holds a rule's description until the response is rendered in its language.

    This is not a dataclass, because orjson would encode it as an object.
    """

    __slots__ = ("sentence",)

    def __init__(self, sentence: Message) -> None:
        self.sentence = sentence


def find_text(rule: Rule, start: date) -> RuleText | None:
    """Describe a rule for a response, or return None if no sentence covers it."""
    sentence = find_sentence(rule, start)
    return None if sentence is None else RuleText(sentence)


def find_sentence(rule: Rule, start: date) -> Message | None:
    """Describe a rule that starts on a day, or return None if no sentence covers it."""
    simple = simplify_rule(rule, start)
    sentence = None if simple.set_positions else _FINDERS[simple.frequency](simple)
    if sentence is None:
        return None
    if rule.until is not None:
        return Message(UNTIL, rule=sentence, date=rule.until)
    if rule.count is not None:
        return Message(ONCE if rule.count == 1 else COUNT, rule=sentence, n=rule.count)
    return sentence


def simplify_rule(rule: Rule, start: date) -> Rule:
    """Return an equivalent rule that is easier to describe."""
    for change in (_add_days_of_start, _number_weekday, _use_months, _use_years, _use_weeks, _use_days):
        rule = change(rule, start)
    return rule


def _add_days_of_start(rule: Rule, start: date) -> Rule:
    if rule.weekdays or rule.month_days or rule.frequency == "daily":
        return rule
    if rule.frequency == "weekly":
        return replace(rule, weekdays=(Weekday(start.weekday()),))
    is_without_month = rule.frequency == "yearly" and not rule.months
    return replace(rule, month_days=(start.day,), months=(start.month,) if is_without_month else rule.months)


def _number_weekday(rule: Rule, start: date) -> Rule:
    """Replace the position of a single weekday with an ordinal: position 1 among Tuesdays is the first Tuesday."""
    is_in_month = rule.frequency == "monthly" or (rule.frequency == "yearly" and len(rule.months) == 1)
    if not is_in_month or rule.month_days or len(rule.weekdays) != 1 or rule.weekdays[0].ordinal is not None:
        return rule
    weekdays = tuple(Weekday(rule.weekdays[0].day, position) for position in rule.set_positions)
    return replace(rule, weekdays=weekdays, set_positions=()) if weekdays else rule


def _use_months(rule: Rule, start: date) -> Rule:
    is_in_every_month = rule.month_days and not rule.months and not rule.weekdays and not rule.set_positions
    is_monthly = rule.frequency == "yearly" and rule.interval == 1 and is_in_every_month
    return replace(rule, frequency="monthly") if is_monthly else rule


def _use_years(rule: Rule, start: date) -> Rule:
    is_yearly = rule.frequency == "monthly" and rule.interval == 1 and len(rule.months) == 1
    return replace(rule, frequency="yearly") if is_yearly else rule


def _use_weeks(rule: Rule, start: date) -> Rule:
    """Convert a daily, monthly or yearly rule to a weekly one if only weekdays limit it."""
    is_limited = bool(rule.months or rule.month_days or rule.set_positions)
    is_weekly = rule.weekdays and all(weekday.ordinal is None for weekday in rule.weekdays)
    return replace(rule, frequency="weekly") if is_weekly and not is_limited and rule.interval == 1 else rule


def _use_days(rule: Rule, start: date) -> Rule:
    is_daily = rule.frequency == "daily" or (rule.frequency == "weekly" and rule.interval == 1)
    if not is_daily or rule.months or rule.set_positions or _days(rule) != _ALL_WEEKDAYS:
        return rule
    return replace(rule, frequency="daily", weekdays=())


def _describe_days(rule: Rule) -> Message | None:
    return None if rule.has_parts else _choose(DAILY, rule)


def _describe_weeks(rule: Rule) -> Message | None:
    days = _days(rule)
    if rule.months:
        return None
    if len(days) == 1:
        return _choose(WEEKLY[days[0]], rule)
    if days == _MONDAY_TO_FRIDAY and rule.interval == 1:
        return Message(MONDAY_TO_FRIDAY)
    return _choose(WEEKLY_LIST, rule, days=WeekdayNames(days))


def _describe_months(rule: Rule) -> Message | None:
    if rule.months:
        return None
    day = _describe_day(rule)
    if day is not None:
        return _choose(MONTHLY, rule, day=day)
    if rule.interval == 1 and not rule.weekdays and min(rule.month_days) > 0:
        return Message(MONTHLY_LIST, days=Numbers(rule.month_days))
    return None


def _describe_years(rule: Rule) -> Message | None:
    if len(rule.months) != 1:
        return None
    month = rule.months[0]
    if not rule.weekdays and len(rule.month_days) == 1 and 0 < rule.month_days[0] <= _MONTH_LENGTHS[month]:
        return _choose(YEARLY_DATE, rule, date=DayOfYear(month, rule.month_days[0]))
    day = _describe_day(rule) if rule.weekdays or -1 in rule.month_days else None
    return None if day is None else _choose(YEARLY_DAY, rule, day=day, month=MonthName(month))


_FINDERS: Final[Mapping[str, Callable[[Rule], Message | None]]] = {
    "daily": _describe_days,
    "weekly": _describe_weeks,
    "monthly": _describe_months,
    "yearly": _describe_years,
}


def _describe_day(rule: Rule) -> Message | None:
    if rule.weekdays:
        return None if rule.month_days else _describe_numbered_weekday(rule.weekdays)
    if len(rule.month_days) != 1:
        return None
    number = rule.month_days[0]
    if number in MONTH_DAYS:
        return Message(MONTH_DAYS[number])
    return Message(MONTH_DAY, number=number) if number > 0 else None


def _describe_numbered_weekday(weekdays: tuple[Weekday, ...]) -> Message | None:
    days = {weekday.day for weekday in weekdays}
    names = NUMBERED_WEEKDAYS.get(tuple(weekday.ordinal or 0 for weekday in weekdays))
    return Message(names[days.pop()]) if names and len(days) == 1 else None


def _days(rule: Rule) -> tuple[int, ...]:
    return tuple(weekday.day for weekday in rule.weekdays)


def _choose(by_interval: ByInterval, rule: Rule, **values: object) -> Message:
    if rule.interval > 2:
        values["n"] = rule.interval
    return Message(by_interval[min(rule.interval, 3) - 1], **values)

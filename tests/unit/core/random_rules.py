"""Random recurrence rules, as RRULE texts."""

from collections.abc import Iterable
from random import Random

WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
# The largest numbers of weekdays. In a month, python-dateutil raises an IndexError for numbers beyond its weeks.
MAX_ORDINALS = {"MONTHLY": 5, "YEARLY": 53}


def make_rule(random: Random) -> str:
    """Return a rule without mixed BYDAY and weekly BYSETPOS, on which libraries disagree."""
    frequency = random.choice(FREQUENCIES)
    parts = {"FREQ": frequency}
    if random.random() < 0.5:
        parts["INTERVAL"] = str(random.randint(1, random.choice((4, 40))))
    if random.random() < 0.35:
        parts["BYMONTH"] = pick_numbers(random, range(1, 13), 4)
    if frequency != "WEEKLY" and random.random() < 0.4:
        parts["BYMONTHDAY"] = pick_numbers(random, [*range(1, 32), *range(-31, 0)], 5)
    if random.random() < 0.5:
        parts["BYDAY"] = make_weekdays(random, frequency, is_in_month="BYMONTH" in parts)
    if frequency != "WEEKLY" and {"BYMONTH", "BYMONTHDAY", "BYDAY"} & {*parts} and random.random() < 0.3:
        parts["BYSETPOS"] = pick_numbers(random, [*range(1, 6), *range(-5, 0)], 3)
    if random.random() < 0.3:
        parts["WKST"] = random.choice(WEEKDAYS)
    if random.random() < 0.3:
        parts["COUNT"] = str(random.randint(1, 60))
    return ";".join(f"{name}={value}" for name, value in parts.items())


def make_weekdays(random: Random, frequency: str, *, is_in_month: bool) -> str:
    days = random.sample(WEEKDAYS, random.randint(1, 4))
    if frequency not in MAX_ORDINALS or random.random() < 0.5:
        return ",".join(days)
    maximum = 5 if is_in_month else MAX_ORDINALS[frequency]
    ordinals = [*range(-maximum, 0), *range(1, maximum + 1)]
    return ",".join(f"{random.choice(ordinals)}{day}" for day in days)


def pick_numbers(random: Random, numbers: Iterable[int], maximum: int) -> str:
    return ",".join(map(str, random.sample([*numbers], random.randint(1, maximum))))

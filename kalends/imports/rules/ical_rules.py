"""Converts iCalendar recurrence rules to the form that series accept.

Rules in files differ from the rules of series: the end can be an instant, the first date need not follow the rule,
and the rule can contain times of day. If a series cannot have the rule, it becomes a list of dates, within limits.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice, product
from typing import Final

from kalends.core.errors import InvalidValue
from kalends.core.recurrence import Rule, expand, read_rule
from kalends.core.recurrence.rule_parts import MAX_COUNT, WEEKDAY_CODES
from kalends.core.times import local_of

MAX_RULE_LENGTH: Final = 500
MAX_LISTED: Final = 500  # maximum number of dates in a series without a rule
MAX_COUNTED: Final = 5_000  # the highest COUNT that is accepted
MAX_YEARS: Final = 60
MAX_TIMES: Final = 24  # maximum times per day
# Parts that have no effect with these values.
_NEUTRAL: Final = {"RSCALE": ("GREGORIAN",), "SKIP": ("OMIT",)}
_TIME_PARTS: Final = ("BYHOUR", "BYMINUTE", "BYSECOND")
_DAY_PARTS: Final = ("BYYEARDAY", "BYWEEKNO")

type Parts = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GivenDates:
    """The result of converting a rule: a rule for a series or, if there is none, a list of dates."""

    rule: Rule | None
    listed: tuple[datetime, ...] = ()
    cost: int = 0  # number of computed dates


def convert_rule(text: str, start: datetime, zone: str, until: datetime, since: datetime | None = None) -> GivenDates:
    """Convert an RRULE. Raise InvalidValue if the dates cannot be computed.

    A list of dates ends at `until`. It begins at `since`, unless the rule has a COUNT and must be counted from the
    start.
    """
    if len(text) > MAX_RULE_LENGTH:
        raise InvalidValue("A rule can have at most 500 characters.")
    parts = _drop_own_time(_split(text), start)
    last_day = _find_last_day(parts.pop("UNTIL", ""), start, zone)
    count = _read_count(parts.pop("COUNT", ""))
    if any(name in parts for name in (*_TIME_PARTS, *_DAY_PARTS)):
        after = start if count or since is None else max(start, since)
        listed = tuple(islice(_list_moments(parts, start, after, min(until, _end_of(last_day))), count))
        return GivenDates(None, listed, len(listed))
    rule = read_rule(";".join(f"{name}={value}" for name, value in parts.items()), zone)
    return GivenDates(_limit(rule, start, count, last_day), cost=count or 0)


def _split(text: str) -> dict[str, str]:
    """Return the parts of a rule. Omit empty parts, extensions, and parts that have no effect."""
    pairs = (part.partition("=") for part in text.upper().removeprefix("RRULE:").split(";"))
    parts = {name.strip(): value.strip().strip(",") for name, _, value in pairs if name.strip()}
    return {
        name: value
        for name, value in parts.items()
        if value and not name.startswith("X-") and value not in _NEUTRAL.get(name, ())
    }


def _drop_own_time(parts: dict[str, str], start: datetime) -> dict[str, str]:
    """Drop time parts that match the start."""
    own = {"BYHOUR": start.hour, "BYMINUTE": start.minute, "BYSECOND": start.second}
    return {name: value for name, value in parts.items() if name not in own or _numbers(value) != [own[name]]}


def _find_last_day(text: str, start: datetime, zone: str) -> date | None:
    """Return the last day that an UNTIL allows. Files can state a time, but series end on whole days."""
    if not text:
        return None
    day = read_rule(f"FREQ=DAILY;UNTIL={text}", zone).until
    if day is None or "T" not in text:
        return day
    moment = datetime.strptime(text.removesuffix("Z")[:13], "%Y%m%dT%H%M")  # noqa: DTZ007
    if text.endswith("Z"):
        moment = local_of(moment.replace(tzinfo=UTC), zone)
    is_before = moment.time() < start.time().replace(second=0)
    return moment.date() - timedelta(days=1) if is_before and moment.date() > date.min else moment.date()


def _read_count(text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or not text.isascii() or len(text) > 9 or not 1 <= int(text) <= MAX_COUNTED:
        raise InvalidValue(
            "`{name}` must be a whole number from {minimum} to {maximum}.",
            name="COUNT",
            minimum=1,
            maximum=MAX_COUNTED,
        )
    return int(text)


def _limit(rule: Rule, start: datetime, count: int | None, last_day: date | None) -> Rule:
    """Apply a rule's end. A count that is too high, or comes with a last day, is converted to a last day."""
    if count is None or (count <= MAX_COUNT and last_day is None):
        return replace(rule, count=count, until=last_day)
    horizon = datetime(min(start.year + MAX_YEARS, 9000), 12, 31)
    dates = list(islice(expand(rule, start, min(horizon, _end_of(last_day))), min(count, MAX_COUNTED)))
    end = dates[-1].date() if len(dates) == count else last_day
    return replace(rule, until=end)


# Lists of dates ---------------------------------------------------------------------------------


def _list_moments(parts: dict[str, str], start: datetime, after: datetime, until: datetime) -> Iterator[datetime]:
    """Yield dates at or after `after` for a rule with times, week numbers or year days."""
    times = _list_times(parts, start)
    rest = {name: value for name, value in parts.items() if name not in _TIME_PARTS}
    for day in _list_days(rest, start, after, until):
        for moment in (datetime.combine(day, entry) for entry in times):
            if after <= moment <= until:
                yield moment


def _list_times(parts: Parts, start: datetime) -> list[time]:
    defaults = (start.hour, start.minute, start.second)
    numbers = [
        _numbers(parts[name]) if name in parts else [own] for name, own in zip(_TIME_PARTS, defaults, strict=True)
    ]
    if any(not values or len(values) > MAX_TIMES for values in numbers):
        raise _too_many_times()
    try:
        times = sorted(
            {time(hour, minute, second) for hour, minute, second in islice(product(*numbers), MAX_TIMES + 1)}
        )
    except ValueError:
        raise _invalid_part(next(name for name in _TIME_PARTS if name in parts)) from None
    if len(times) > MAX_TIMES:
        raise _too_many_times()
    return times


def _list_days(parts: dict[str, str], start: datetime, after: datetime, until: datetime) -> Iterator[date]:
    if not any(name in parts for name in _DAY_PARTS):
        rule = read_rule(";".join(f"{name}={value}" for name, value in parts.items()), "UTC")
        midnight = datetime.combine(start.date(), time())
        return (moment.date() for moment in expand(rule, midnight, until, after=datetime.combine(after, time())))
    return _list_days_of_years(parts, start, until)


def _list_days_of_years(parts: dict[str, str], start: datetime, until: datetime) -> Iterator[date]:
    """Yield the days that a yearly rule with BYYEARDAY or BYWEEKNO produces."""
    if parts.get("FREQ") != "YEARLY" or parts.get("WKST", "MO") != "MO":
        raise _invalid_part(next(name for name in _DAY_PARTS if name in parts))
    wanted: dict[str, set[int]] = {
        name: set(_numbers(parts[name])) for name in (*_DAY_PARTS, "BYMONTH") if name in parts
    }
    codes = parts["BYDAY"].split(",") if "BYDAY" in parts else [WEEKDAY_CODES[start.weekday()]]
    if "BYWEEKNO" not in parts and "BYDAY" not in parts:
        codes = list(WEEKDAY_CODES)
    known = ("FREQ", "WKST", "INTERVAL", "BYDAY", "BYMONTH", *_DAY_PARTS)
    if any(code not in WEEKDAY_CODES for code in codes) or any(name not in known for name in parts):
        raise _invalid_part(next(name for name in _DAY_PARTS if name in parts))
    interval = max(1, next(iter(_numbers(parts.get("INTERVAL", "1"))), 1))
    first, last = start.date(), min(until, datetime(min(start.year + MAX_YEARS, 9000), 12, 31)).date()
    for year in range(start.year, last.year + 1, interval):
        days = _list_weeks(year, wanted) if "BYWEEKNO" in wanted else _list_year_days(year, wanted)
        yield from (
            day
            for day in sorted(days)
            if first <= day <= last and WEEKDAY_CODES[day.weekday()] in codes and _is_wanted(day, wanted)
        )


def _list_weeks(year: int, wanted: Mapping[str, set[int]]) -> set[date]:
    """Return the days in the wanted weeks. Negative numbers count from the last week of the year."""
    weeks = date(year, 12, 28).isocalendar().week
    numbers = {number if number > 0 else weeks + 1 + number for number in wanted["BYWEEKNO"]}
    return {
        date.fromisocalendar(year, number, day) for number in numbers if 1 <= number <= weeks for day in range(1, 8)
    }


def _list_year_days(year: int, wanted: Mapping[str, set[int]]) -> set[date]:
    first, length = date(year, 1, 1), date(year, 12, 31).timetuple().tm_yday
    numbers = {number if number > 0 else length + 1 + number for number in wanted["BYYEARDAY"]}
    return {first + timedelta(days=number - 1) for number in numbers if 1 <= number <= length}


def _is_wanted(day: date, wanted: Mapping[str, set[int]]) -> bool:
    number, length = day.timetuple().tm_yday, date(day.year, 12, 31).timetuple().tm_yday
    week, weeks = day.isocalendar().week, date(day.isocalendar().year, 12, 28).isocalendar().week
    values = {
        "BYYEARDAY": {number, number - length - 1},
        "BYWEEKNO": {week, week - weeks - 1},
        "BYMONTH": {day.month},
    }
    return all(values[name] & numbers for name, numbers in wanted.items())


# Helpers ----------------------------------------------------------------------------------------


def _numbers(text: str) -> list[int]:
    try:
        return [int(entry) for entry in text.split(",")] if len(text) <= MAX_RULE_LENGTH else []
    except ValueError:
        return []


def _end_of(day: date | None) -> datetime:
    return datetime.combine(day or date(9000, 12, 31), time.max)


def _invalid_part(name: str) -> InvalidValue:
    return InvalidValue("`{name}` is not supported.", name=name)


def _too_many_times() -> InvalidValue:
    return InvalidValue("the rule has more than {maximum} times a day.", maximum=MAX_TIMES)

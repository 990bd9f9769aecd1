"""Dates: local times in a time zone, event time spans, day boundaries for lists, times of day, and `utc_now`.

The author's local time and time zone are authoritative; only this module derives UTC from them. Only `utc_now` reads
the current time. `date_forms` parses dates.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from kalends.core.errors import InvalidValue
from kalends.core.zones import zone_rules

LAST_YEAR: Final = 9998  # one year below datetime's maximum, to leave room for applying a UTC offset
SECOND: Final = timedelta(seconds=1)
LAST_SECOND: Final = time(23, 59, 59)
# Looking up digits is faster than formatting numbers, and an event list has two hundred dates.
DIGITS: Final = tuple(f"{number:02}" for number in range(100))


@dataclass(frozen=True, slots=True)
class DateTimeInput:
    """A parsed date-time: local time, with a UTC offset if one was given."""

    wall: datetime
    offset: timedelta | None
    is_date_only: bool


@dataclass(frozen=True, slots=True)
class LocalTime:
    """A local time that exists in its zone. `fold` is 1 for the second of two equal local times."""

    wall: datetime
    fold: int
    utc: datetime


@dataclass(frozen=True, slots=True)
class Span:
    start: LocalTime
    end: LocalTime


def utc_of(wall: datetime, zone: str, fold: int = 0) -> datetime:
    """Convert a local time to UTC. In a gap, fold 0 uses the offset from before the gap."""
    try:
        return wall.replace(tzinfo=zone_rules(zone), fold=fold).astimezone(UTC)
    except OverflowError:
        raise year_error() from None


def local_of(utc: datetime, zone: str) -> datetime:
    return in_zone(utc, zone).replace(tzinfo=None, fold=0)


def in_zone(utc: datetime, zone: str) -> datetime:
    """Convert to an aware datetime in the zone. `fold` is 1 for the second of two equal local times."""
    try:
        return utc.astimezone(zone_rules(zone))
    except OverflowError:
        raise year_error() from None


def offset_of(utc: datetime, zone: str) -> timedelta:
    return in_zone(utc, zone).utcoffset() or timedelta(0)


def abbreviation(utc: datetime, zone: str) -> str:
    """Return the abbreviation (such as CET), a fixed offset's name, or digits if tzdata has no letters."""
    return in_zone(utc, zone).tzname() or zone


def is_only_time(local: datetime, utc: datetime, zone: str) -> bool:
    """Return whether a local time refers to this instant only. A time in a gap refers to none."""
    first = local.replace(tzinfo=zone_rules(zone), fold=0)
    offset = first.utcoffset()
    return offset == first.replace(fold=1).utcoffset() and local - utc.replace(tzinfo=None) == offset


def find_change(state: Callable[[datetime], object], before: datetime, after: datetime) -> datetime:
    """Find the first second at which the state differs from the state at `before`.

    The state must differ at `after`.
    """
    old = state(before)
    while after - before > SECOND:
        middle = before + (after - before) // 2 // SECOND * SECOND
        if state(middle) == old:
            before = middle
        else:
            after = middle
    return after


def check_year(value: datetime) -> datetime:
    if value.year > LAST_YEAR:
        raise year_error()
    return value


def year_error() -> InvalidValue:
    return InvalidValue("must be a date between the years 1 and {last}.", last=LAST_YEAR)


def resolve(value: DateTimeInput, zone: str) -> LocalTime:
    """Resolve a date-time in a zone, even if the local time does not exist or exists twice.

    An offset makes the instant unambiguous. Without an offset, a time in a gap moves forward by the length of the gap
    (02:30 becomes 03:30), and of two equal times, the first one is used.
    """
    return _to_local_time(to_utc(value, zone), zone)


def to_utc(value: DateTimeInput, zone: str) -> datetime:
    """Convert to UTC; a local time without an offset is in the given zone."""
    if value.offset is None:
        return check_year(utc_of(value.wall, zone))
    try:
        return check_year((value.wall - value.offset).replace(tzinfo=UTC))
    except OverflowError:
        raise year_error() from None


def event_span(start: DateTimeInput, end: DateTimeInput, zone: str, all_day: bool) -> Span:
    """Return an event's start and end. An all-day event lasts from the first to the last second of its days."""
    if all_day:
        span = Span(_first_second(_local_day(start, zone), zone), _last_second(_local_day(end, zone), zone))
    else:
        span = Span(resolve(start, zone), resolve(end, zone))
    if span.end.utc < span.start.utc:
        raise InvalidValue(
            "the end, {end}, must not be before the start, {start} ({zone}).",
            end=format_datetime(span.end.wall),
            start=format_datetime(span.start.wall),
            zone=zone,
        )
    return span


def day_begins(value: DateTimeInput, zone: str) -> datetime:
    """Return the first second of a day in the zone, in UTC."""
    return _first_second(_local_day(value, zone), zone).utc


def day_ends(value: DateTimeInput, zone: str) -> datetime:
    """Return the last second of a day in the zone, in UTC."""
    return _last_second(_local_day(value, zone), zone).utc


def is_first_second(value: DateTimeInput, zone: str) -> bool:
    """Return whether the local time is the first second of its day. A date without a time always counts."""
    return value.is_date_only or resolve(value, zone).wall == _first_second(_local_day(value, zone), zone).wall


def is_last_second(value: DateTimeInput, zone: str) -> bool:
    """Return whether the local time is the last second of its day. A date without a time always counts."""
    return value.is_date_only or resolve(value, zone).wall == _last_second(_local_day(value, zone), zone).wall


def next_midnight(now_utc: datetime, zone: str) -> datetime:
    return day_ends(DateTimeInput(local_of(now_utc, zone), None, True), zone) + SECOND


def default_window(now_utc: datetime, zone: str) -> tuple[datetime, datetime]:
    """Return the local window for lists without date filters: two years from today (February 29 becomes the 28th)."""
    today = local_of(now_utc, zone).date()
    is_leap_day = (today.month, today.day) == (2, 29)
    last = today.replace(year=today.year + 2, day=28 if is_leap_day else today.day)
    return datetime.combine(today, time()), datetime.combine(last, LAST_SECOND)


def format_datetime(value: datetime) -> str:
    """Format as `YYYY-MM-DD HH:MM:SS`, the only format in API responses."""
    century, year = divmod(value.year, 100)
    return (
        f"{DIGITS[century]}{DIGITS[year]}-{DIGITS[value.month]}-{DIGITS[value.day]}"
        f" {DIGITS[value.hour]}:{DIGITS[value.minute]}:{DIGITS[value.second]}"
    )


def format_offset(offset: timedelta) -> str:
    """Format a UTC offset as `+HH:MM`."""
    minutes = abs(offset) // timedelta(minutes=1)
    return f"{'-' if offset < timedelta(0) else '+'}{minutes // 60:02}:{minutes % 60:02}"


def format_offset_at(moment: datetime, zone: str) -> str:
    return format_offset(offset_of(moment, zone))


def datetime_parts(value: datetime) -> dict[str, str]:
    century, year = divmod(value.year, 100)
    return {
        "year": DIGITS[century] + DIGITS[year],
        "month": DIGITS[value.month],
        "day": DIGITS[value.day],
        "hour": DIGITS[value.hour],
        "minutes": DIGITS[value.minute],
        "seconds": DIGITS[value.second],
    }


def _to_local_time(utc: datetime, zone: str) -> LocalTime:
    local = in_zone(utc, zone)
    return LocalTime(check_year(local.replace(tzinfo=None, fold=0)), local.fold, check_year(utc))


def _local_day(value: DateTimeInput, zone: str) -> date:
    return value.wall.date() if value.offset is None else resolve(value, zone).wall.date()


def _first_second(day: date, zone: str) -> LocalTime:
    """Return 00:00:00 or, if a transition skips midnight, the first second after the transition."""
    midnight = datetime.combine(day, time())
    if _is_existing(midnight, zone):
        return _to_local_time(utc_of(midnight, zone), zone)
    return _to_local_time(_end_of_gap(midnight, zone), zone)


def _last_second(day: date, zone: str) -> LocalTime:
    """Return 23:59:59, or its second occurrence if there are two, to cover the whole day."""
    wall = datetime.combine(day, LAST_SECOND)
    if _is_existing(wall, zone):
        return _to_local_time(utc_of(wall, zone, fold=1), zone)
    after = _end_of_gap(wall, zone)
    before = _to_local_time(after - SECOND, zone)
    # A day that a zone skips entirely (Apia, December 30, 2011) becomes the next day.
    return before if before.wall.date() == day else _last_second(local_of(after, zone).date(), zone)


def _is_existing(wall: datetime, zone: str) -> bool:
    return local_of(utc_of(wall, zone), zone) == wall


def _end_of_gap(wall: datetime, zone: str) -> datetime:
    """Return the instant of the transition that skips a local time."""
    # With the later offset, the local time is before the transition. With the earlier offset, it is after the
    # transition.
    before, after = utc_of(wall, zone, fold=1), utc_of(wall, zone, fold=0)
    return find_change(lambda utc: offset_of(utc, zone), before, after)


_TIME: Final = re.compile(
    r"(?P<hour>\d{1,2})(?:\s*[:.h]\s*(?P<minute>\d\d)?)?(?::(?P<second>\d\d))?\s*(?P<half>[ap]m)?"
)
_DATE_BEFORE: Final = re.compile(r"\d{4}-\d\d-\d\d[t ]")
_ZONE_AFTER: Final = re.compile(r"(z|[+-]\d\d:?\d\d|\.\d+)+$|\s*uhr$")


@dataclass(frozen=True, slots=True)
class SkippedTime:
    """A local time that a change to daylight saving time skips; `becomes` replaces the skipped time."""

    becomes: datetime


@dataclass(frozen=True, slots=True)
class RepeatedTime:
    """A local time that occurs twice; the UTC offset identifies each of the two instants."""

    first: timedelta
    second: timedelta


def check_local_time(wall: datetime, zone: str) -> SkippedTime | RepeatedTime | None:
    """Return what is wrong with a local time in a zone, or None if the time exists exactly once."""
    first, second = utc_of(wall, zone, fold=0), utc_of(wall, zone, fold=1)
    if first == second:
        return None
    if local_of(first, zone) != wall:
        return SkippedTime(resolve(DateTimeInput(wall, None, is_date_only=False), zone).wall)
    return RepeatedTime(offset_of(first, zone), offset_of(second, zone))


def read_time_of_day(text: str) -> time | None:
    """Parse `19:30`, `19h`, `7:30 pm` or the time of an ISO date; return None for any other text."""
    bare = _ZONE_AFTER.sub("", _DATE_BEFORE.sub("", text.strip().lower()))
    match = _TIME.fullmatch(bare.strip())
    if match is None:
        return None
    hour, half = int(match["hour"]), match["half"]
    if half and not 1 <= hour <= 12:
        return None
    hour = hour % 12 + (12 if half == "pm" else 0) if half else hour
    try:
        return time(hour, int(match["minute"] or 0), int(match["second"] or 0))
    except ValueError:
        return None


def utc_now() -> datetime:
    """Return the current time in whole seconds, as in API responses."""
    return datetime.now(UTC).replace(microsecond=0)

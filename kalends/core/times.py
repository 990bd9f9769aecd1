"""Rules about dates: resolving local times in a time zone, durations of events, days of lists.

The local time and the time zone that the author wrote are authoritative; UTC is derived from them only here. The
current time is always an argument. `date_forms` parses dates.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timezone
from typing import Final

from kalends.core.date_forms import (
    LAST_YEAR,
    DateInput,
    DateTimeInput,
    RelativeDate,
    check_year,
    make_absolute,
    read_datetime,
    year_error,
)
from kalends.core.errors import InvalidValue
from kalends.core.zones import (
    SECOND,
    abbreviation,
    find_change,
    in_zone,
    local_of,
    normalize_zone,
    offset_of,
    read_zone,
    tzdata_version,
    utc_of,
)

__all__ = [
    "LAST_YEAR",
    "DateInput",
    "DateTimeInput",
    "LocalTime",
    "RelativeDate",
    "Span",
    "abbreviation",
    "datetime_parts",
    "day_begins",
    "day_ends",
    "default_window",
    "event_span",
    "format_datetime",
    "format_offset",
    "in_zone",
    "is_first_second",
    "is_last_second",
    "local_of",
    "make_absolute",
    "next_midnight",
    "normalize_zone",
    "offset_of",
    "read_datetime",
    "read_zone",
    "resolve",
    "to_utc",
    "tzdata_version",
    "utc_of",
]

LAST_SECOND: Final = time(23, 59, 59)
# Formatting a number takes longer than looking up its digits, and a list of events has two hundred dates.
DIGITS: Final = tuple(f"{number:02}" for number in range(100))


@dataclass(frozen=True, slots=True)
class LocalTime:
    """A local time that exists in its zone; `fold` is 1 for the second of two equal local times."""

    wall: datetime
    fold: int
    utc: datetime


@dataclass(frozen=True, slots=True)
class Span:
    start: LocalTime
    end: LocalTime


def resolve(value: DateTimeInput, zone: str) -> LocalTime:
    """Resolve a date-time in a zone, including local times that do not exist or exist twice.

    With an offset the instant is unambiguous. Without one, a time in a gap moves forward by the length of the gap
    (02:30 becomes 03:30), and the first of two equal times is used.
    """
    return _to_local_time(to_utc(value, zone), zone)


def to_utc(value: DateTimeInput, zone: str) -> datetime:
    """Convert to UTC; a local time without an offset is interpreted in the zone."""
    if value.offset is None:
        return check_year(utc_of(value.wall, zone))
    try:
        return check_year((value.wall - value.offset).replace(tzinfo=UTC))
    except OverflowError:
        raise year_error() from None


def event_span(start: DateTimeInput, end: DateTimeInput, zone: str, all_day: bool) -> Span:
    """Return start and end of an event; an all-day event lasts from the first to the last second of its days."""
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
    """Return the first second, in UTC, of the day in the zone."""
    return _first_second(_local_day(value, zone), zone).utc


def day_ends(value: DateTimeInput, zone: str) -> datetime:
    """Return the last second, in UTC, of the day in the zone."""
    return _last_second(_local_day(value, zone), zone).utc


def is_first_second(value: DateTimeInput, zone: str) -> bool:
    """Return whether the local time is the first of its day; a date without a time is."""
    return value.is_date_only or resolve(value, zone).wall == _first_second(_local_day(value, zone), zone).wall


def is_last_second(value: DateTimeInput, zone: str) -> bool:
    """Return whether the local time is the last of its day; a date without a time is."""
    return value.is_date_only or resolve(value, zone).wall == _last_second(_local_day(value, zone), zone).wall


def next_midnight(now_utc: datetime, zone: str) -> datetime:
    """Return the end of the current day in the zone, when the date changes."""
    return day_ends(DateTimeInput(local_of(now_utc, zone), None, True), zone) + SECOND


def default_window(now_utc: datetime, zone: str) -> tuple[datetime, datetime]:
    """Return the window of a list without date filters in local time: two years from today (29 February: 28th)."""
    today = local_of(now_utc, zone).date()
    is_leap_day = (today.month, today.day) == (2, 29)
    last = today.replace(year=today.year + 2, day=28 if is_leap_day else today.day)
    return datetime.combine(today, time()), datetime.combine(last, LAST_SECOND)


def format_datetime(value: datetime) -> str:
    """Format as `YYYY-MM-DD HH:MM:SS`, the only format in responses of the API."""
    century, year = divmod(value.year, 100)
    return (
        f"{DIGITS[century]}{DIGITS[year]}-{DIGITS[value.month]}-{DIGITS[value.day]}"
        f" {DIGITS[value.hour]}:{DIGITS[value.minute]}:{DIGITS[value.second]}"
    )


def format_offset(moment: datetime, zone: str) -> str:
    """Format the UTC offset of a zone at a moment as `+HH:MM`."""
    return datetime.min.replace(tzinfo=timezone(offset_of(moment, zone))).isoformat()[-6:]


def datetime_parts(value: datetime) -> dict[str, str]:
    """Return the parts of a formatted date-time."""
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
    """Return 23:59:59; the second one if it occurs twice, so that the whole day is covered."""
    wall = datetime.combine(day, LAST_SECOND)
    if _is_existing(wall, zone):
        return _to_local_time(utc_of(wall, zone, fold=1), zone)
    after = _end_of_gap(wall, zone)
    before = _to_local_time(after - SECOND, zone)
    # A day that a zone skipped entirely (Apia, 30 December 2011) becomes the next one.
    return before if before.wall.date() == day else _last_second(local_of(after, zone).date(), zone)


def _is_existing(wall: datetime, zone: str) -> bool:
    return local_of(utc_of(wall, zone), zone) == wall


def _end_of_gap(wall: datetime, zone: str) -> datetime:
    """Return the instant of the transition that skips a local time, which must be in a gap."""
    # With the later offset the local time is before the transition, with the earlier one after it.
    before, after = utc_of(wall, zone, fold=1), utc_of(wall, zone, fold=0)
    return find_change(lambda utc: offset_of(utc, zone), before, after)

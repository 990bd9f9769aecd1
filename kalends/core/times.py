"""Every rule about dates: reading them, settling wall times in a zone, spans of events, days of lists.

What the author wrote (wall time and zone) is the truth, UTC is derived from it here and nowhere else.
Never reads a clock: the present time is an argument.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from kalends.core.errors import Invalid
from kalends.core.zones import (
    SECOND,
    abbreviation,
    find_change,
    in_zone,
    local_of,
    offset_of,
    read_zone,
    spell_zone,
    tzdata_version,
    utc_of,
)

__all__ = [
    "LocalTime",
    "Moment",
    "Span",
    "abbreviation",
    "day_begins",
    "day_ends",
    "default_window",
    "event_span",
    "in_zone",
    "instant",
    "local_of",
    "offset_of",
    "read_moment",
    "read_zone",
    "settle",
    "spell_zone",
    "stamp",
    "stamp_details",
    "tzdata_version",
    "utc_of",
]

LAST_YEAR: Final = 9998  # One year of room, so that no zone can push an instant out of Python's range.
LAST_SECOND: Final = time(23, 59, 59)

_ISO = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)"
    r"(?:[ T](?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?:[.,]\d+)?)?"
    r"(?P<offset>Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)?",
    re.ASCII,
)
_TIMESTAMP = re.compile(r"@(-?\d{1,12})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Moment:
    """A date as it was sent: a wall time, with an offset if one was given."""

    wall: datetime
    offset: timedelta | None
    day_only: bool


@dataclass(frozen=True, slots=True)
class LocalTime:
    """A wall time that exists in its zone; `fold` is 1 at the second of two equal wall times."""

    wall: datetime
    fold: int
    utc: datetime


@dataclass(frozen=True, slots=True)
class Span:
    start: LocalTime
    end: LocalTime


def read_moment(text: str) -> Moment:
    """ISO forms only. Not in the interface: `@` with a Unix timestamp is an instant in UTC."""
    stripped = text.strip(" \t\n\r\f\v")
    if (timestamp := _TIMESTAMP.fullmatch(stripped)) is not None:
        return _moment_of_timestamp(int(timestamp[1]))
    found = _ISO.fullmatch(stripped) if len(stripped) <= 64 else None
    if found is None:
        raise Invalid(
            "A date is written YYYY-MM-DD or YYYY-MM-DD HH:MM:SS, with Z or an offset such as +02:00 if it "
            "names an instant (in a web address + is written %2B)."
        )
    try:
        day = date.fromisoformat(found["day"])
    except ValueError:
        raise Invalid("There is no day {day} in the calendar.", day=found["day"]) from None
    clock = time(int(found["hour"] or 0), int(found["minute"] or 0), int(found["second"] or 0))
    wall = _check_year(datetime.combine(day, clock))
    return Moment(wall, _read_offset(found["offset"]), day_only=found["hour"] is None)


def settle(moment: Moment, zone: str) -> LocalTime:
    """The one rule for wall times that do not exist or exist twice.

    An offset names an instant. Without one, a time in a gap moves forward by the gap (02:30 becomes 03:30),
    and of two equal times the first is meant.
    """
    return _at(instant(moment, zone), zone)


def instant(moment: Moment, zone: str) -> datetime:
    """The moment in UTC; a wall time without an offset is read in the zone."""
    if moment.offset is None:
        return _check_year(utc_of(moment.wall, zone))
    try:
        return _check_year((moment.wall - moment.offset).replace(tzinfo=UTC))
    except OverflowError:
        raise _out_of_years() from None


def event_span(start: Moment, end: Moment, zone: str, all_day: bool) -> Span:
    """Start and end of an event; one that lasts whole days covers them from first to last second."""
    if all_day:
        span = Span(_first_of(_day_of(start, zone), zone), _last_of(_day_of(end, zone), zone))
    else:
        span = Span(settle(start, zone), settle(end, zone))
    if span.end.utc < span.start.utc:
        raise Invalid(
            "The end, {end}, is before the start, {start} ({zone}); it must not be earlier.",
            end=stamp(span.end.wall),
            start=stamp(span.start.wall),
            zone=zone,
        )
    return span


def day_begins(moment: Moment, zone: str) -> datetime:
    """The first second, in UTC, of the moment's day in the zone."""
    return _first_of(_day_of(moment, zone), zone).utc


def day_ends(moment: Moment, zone: str) -> datetime:
    """The last second, in UTC, of the moment's day in the zone."""
    return _last_of(_day_of(moment, zone), zone).utc


def default_window(now_utc: datetime, zone: str) -> tuple[datetime, datetime]:
    """What a list without date filters covers, in wall time: today and two years on (29 February: 28th)."""
    today = local_of(now_utc, zone).date()
    leap_day = (today.month, today.day) == (2, 29)
    last = today.replace(year=today.year + 2, day=28 if leap_day else today.day)
    return datetime.combine(today, time()), datetime.combine(last, LAST_SECOND)


def stamp(value: datetime) -> str:
    """`YYYY-MM-DD HH:MM:SS`, the only way the interface writes a date."""
    return value.isoformat(" ", "seconds")[:19]


def stamp_details(text: str) -> dict[str, str]:
    """The parts of a stamp."""
    return {
        "year": text[:4],
        "month": text[5:7],
        "day": text[8:10],
        "hour": text[11:13],
        "minutes": text[14:16],
        "seconds": text[17:19],
    }


def _moment_of_timestamp(seconds: int) -> Moment:
    try:
        wall = datetime(1970, 1, 1) + timedelta(seconds=seconds)
    except OverflowError:
        raise _out_of_years() from None
    return Moment(_check_year(wall), timedelta(0), day_only=False)


def _read_offset(text: str | None) -> timedelta | None:
    if text is None or text == "Z":
        return None if text is None else timedelta(0)
    digits = text[1:].replace(":", "").ljust(4, "0")
    size = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -size if text[0] == "-" else size


def _at(utc: datetime, zone: str) -> LocalTime:
    local = in_zone(utc, zone)
    return LocalTime(_check_year(local.replace(tzinfo=None, fold=0)), local.fold, _check_year(utc))


def _day_of(moment: Moment, zone: str) -> date:
    return moment.wall.date() if moment.offset is None else settle(moment, zone).wall.date()


def _first_of(day: date, zone: str) -> LocalTime:
    """00:00:00, or where the clock jumps over midnight the first second after the jump."""
    midnight = datetime.combine(day, time())
    if _exists(midnight, zone):
        return _at(utc_of(midnight, zone), zone)
    return _at(_end_of_gap(midnight, zone), zone)


def _last_of(day: date, zone: str) -> LocalTime:
    """23:59:59, the second one where the clock shows it twice: the whole day is meant."""
    wall = datetime.combine(day, LAST_SECOND)
    if _exists(wall, zone):
        return _at(utc_of(wall, zone, fold=1), zone)
    after = _end_of_gap(wall, zone)
    before = _at(after - SECOND, zone)
    # A day that a zone left out altogether (Apia, 30 December 2011) becomes the next one.
    return before if before.wall.date() == day else _last_of(local_of(after, zone).date(), zone)


def _exists(wall: datetime, zone: str) -> bool:
    return local_of(utc_of(wall, zone), zone) == wall


def _end_of_gap(wall: datetime, zone: str) -> datetime:
    """The instant at which the clock jumps over this wall time, which must lie in a gap."""
    # Read with the later offset, the time comes out before the jump; with the earlier one, after it.
    before, after = utc_of(wall, zone, fold=1), utc_of(wall, zone, fold=0)
    return find_change(lambda utc: offset_of(utc, zone), before, after)


def _check_year(value: datetime) -> datetime:
    if value.year > LAST_YEAR:
        raise _out_of_years()
    return value


def _out_of_years() -> Invalid:
    return Invalid("A date lies in the years 1 to {last}.", last=LAST_YEAR)

"""Local times that do not exist or exist twice in their time zone, and the times of day that people write."""

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Final

from kalends.core.date_forms import DateTimeInput
from kalends.core.times import resolve
from kalends.core.zones import local_of, offset_of, utc_of

_TIME: Final = re.compile(
    r"(?P<hour>\d{1,2})(?:\s*[:.h]\s*(?P<minute>\d\d)?)?(?::(?P<second>\d\d))?\s*(?P<half>[ap]m)?"
)
_DATE_BEFORE: Final = re.compile(r"\d{4}-\d\d-\d\d[t ]")
_ZONE_AFTER: Final = re.compile(r"(z|[+-]\d\d:?\d\d|\.\d+)+$|\s*uhr$")


@dataclass(frozen=True, slots=True)
class SkippedTime:
    """A local time that a change to summer time skips; `becomes` is the time that is used instead."""

    becomes: datetime


@dataclass(frozen=True, slots=True)
class RepeatedTime:
    """A local time that occurs twice; each of the two instants is identified by its UTC offset."""

    first: timedelta
    second: timedelta


def check_local_time(wall: datetime, zone: str) -> SkippedTime | RepeatedTime | None:
    """Return the problem of a local time in a zone, or None if it exists exactly once."""
    first, second = utc_of(wall, zone, fold=0), utc_of(wall, zone, fold=1)
    if first == second:
        return None
    if local_of(first, zone) != wall:
        return SkippedTime(resolve(DateTimeInput(wall, None, is_date_only=False), zone).wall)
    return RepeatedTime(offset_of(first, zone), offset_of(second, zone))


def format_offset(offset: timedelta) -> str:
    """Return an offset as dates in the API contain it, such as +02:00."""
    minutes = abs(offset) // timedelta(minutes=1)
    return f"{'-' if offset < timedelta(0) else '+'}{minutes // 60:02}:{minutes % 60:02}"


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

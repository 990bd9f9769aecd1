"""Dates and zones for the model, with zoneinfo and patience: a day is searched for, minute by minute."""

from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import cache
from importlib import resources
from itertools import pairwise
from zoneinfo import ZoneInfo

SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=n) for n in (1, 60, 3600, 86400))


@cache
def load_zone(zone: str) -> tzinfo:
    """From the tzdata package, as the server does; `UTC-3:30` is a fixed offset."""
    if zone.startswith("UTC") and zone != "UTC":
        hours, _, minutes = zone[4:].partition(":")
        size = timedelta(hours=int(hours), minutes=int(minutes or 0))
        return timezone(-size if zone[3] == "-" else size)
    with resources.files("tzdata").joinpath("zoneinfo", zone).open("rb") as compiled:
        return ZoneInfo.from_file(compiled, key=zone)


def to_local(instant: datetime, zone: str) -> datetime:
    return instant.astimezone(load_zone(zone)).replace(tzinfo=None, fold=0)


def to_utc(wall: datetime, zone: str) -> datetime:
    """Of two equal wall times the first; one that was skipped counts on with the clock from before."""
    return wall.replace(tzinfo=load_zone(zone), fold=0).astimezone(UTC)


@cache
def day_bounds(day: date, zone: str) -> tuple[datetime, datetime]:
    """The first and the last second whose date is this day. A day that was left out is the next one."""
    noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    minutes = [noon + n * MINUTE for n in range(-27 * 60, 27 * 60)]
    inside = [minute for minute in minutes if to_local(minute, zone).date() == day]
    if not inside:
        return day_bounds(day + DAY, zone)
    first, last = inside[0], inside[-1]
    while to_local(first - SECOND, zone).date() == day:
        first -= SECOND
    while to_local(last + SECOND, zone).date() == day:
        last += SECOND
    return first, last


def two_years_after(day: date) -> date:
    """The last day of a list without dates; after a leap day the 28th."""
    return day.replace(year=day.year + 2, day=28 if (day.month, day.day) == (2, 29) else day.day)


def event_bounds(start: datetime, end: datetime, zone: str, all_day: bool) -> tuple[datetime, datetime]:
    """The instants of an event that was written with these wall times."""
    if all_day:
        return day_bounds(start.date(), zone)[0], day_bounds(end.date(), zone)[1]
    return to_utc(start, zone), to_utc(end, zone)


def read_date(text: str, zone: str) -> tuple[datetime, date]:
    """The instant that a list parameter names, and the day of the site that it lies on."""
    if text.startswith("@"):
        parsed = datetime(1970, 1, 1, tzinfo=UTC) + int(text[1:]) * SECOND
    else:
        parsed = datetime.fromisoformat(text)
    if parsed.tzinfo is None:
        return to_utc(parsed, zone), parsed.date()
    return parsed.astimezone(UTC), to_local(parsed, zone).date()


@cache
def offset_changes(zone: str, year: int) -> tuple[datetime, ...]:
    """The instants of a year at which the offset of the zone changes, found hour by hour, then exactly."""
    year_start = datetime(year, 1, 1, tzinfo=UTC)
    offsets = [((year_start + n * HOUR).astimezone(load_zone(zone)).utcoffset(), n) for n in range(366 * 24)]
    changes = [n for (before, _), (after, n) in pairwise(offsets) if before != after]
    return tuple(_find_offset_change(year_start + (n - 1) * HOUR, zone) for n in changes)


def _find_offset_change(before: datetime, zone: str) -> datetime:
    old = before.astimezone(load_zone(zone)).utcoffset()
    return next(
        before + n * MINUTE for n in range(61) if (before + n * MINUTE).astimezone(load_zone(zone)).utcoffset() != old
    )

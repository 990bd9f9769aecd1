"""VTIMEZONE components, limited to the period that a feed's events cover.

The components come from the same time zone database as the server's instants, so subscribers compute the same
instants whatever database their device has.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import Final

from kalends.core.times import SECOND, abbreviation, find_change, in_zone, offset_of

# Outside these years, times are written in UTC, because the zones' rules are unknown.
FIRST_INSTANT: Final = datetime(1970, 1, 1, tzinfo=UTC)
LAST_INSTANT: Final = datetime(2100, 1, 1, tzinfo=UTC)
# No zone changes its offset and reverts within this time.
SEARCH_STEP: Final = timedelta(days=4)
# How many years before the first event to look for the zone's last change; the first observance starts no earlier.
YEARS_BACK: Final = 1


@dataclass(frozen=True, slots=True)
class Observance:
    """A zone's offset and abbreviation, starting at an instant."""

    since: datetime
    previous_offset: timedelta
    offset: timedelta
    name: str
    is_daylight: bool


def zone_lines(zone: str, first: datetime, last: datetime) -> Iterator[str]:
    """Yield the lines of a zone's component that covers the time from `first` to `last`."""
    yield "BEGIN:VTIMEZONE"
    yield f"TZID:{zone}"
    for row in list_observances(zone, first, last):
        kind = "DAYLIGHT" if row.is_daylight else "STANDARD"
        yield f"BEGIN:{kind}"
        yield f"DTSTART:{row.since + row.previous_offset:%Y%m%dT%H%M%S}"
        yield f"TZOFFSETFROM:{_format_ical_offset(row.previous_offset)}"
        yield f"TZOFFSETTO:{_format_ical_offset(row.offset)}"
        yield f"TZNAME:{row.name}"
        yield f"END:{kind}"
    yield "END:VTIMEZONE"


def list_observances(zone: str, first: datetime, last: datetime) -> list[Observance]:
    """Return the observance in force at the first instant, and all that begin up to the last instant."""
    year = max(first.year - YEARS_BACK, FIRST_INSTANT.year)
    begin = datetime(year, 1, 1, tzinfo=UTC)
    rows = [_observance(zone, begin, offset_of(begin, zone))]
    for number in range(year, last.year + 1):
        rows += _find_changes(zone, number)
    in_force = max(n for n, row in enumerate(rows) if row.since <= first)
    return [row for row in rows[in_force:] if row.since <= last]


@lru_cache(maxsize=4096)
def _find_changes(zone: str, year: int) -> tuple[Observance, ...]:
    """Find the observances that begin within a year by sampling the zone every few days and bisecting."""
    rows: list[Observance] = []
    at, end = (datetime(number, 1, 1, tzinfo=UTC) for number in (year, year + 1))
    while at < end:
        after = min(at + SEARCH_STEP, end)
        if _state(zone, after) != _state(zone, at):
            changed = find_change(partial(_state, zone), at, after)
            rows.append(_observance(zone, changed, offset_of(changed - SECOND, zone)))
        at = after
    return tuple(rows)


def _state(zone: str, utc: datetime) -> tuple[timedelta, str]:
    local = in_zone(utc, zone)
    return local.utcoffset() or timedelta(0), local.tzname() or ""


def _observance(zone: str, since: datetime, previous_offset: timedelta) -> Observance:
    is_daylight = bool(in_zone(since, zone).dst())
    return Observance(since, previous_offset, offset_of(since, zone), abbreviation(since, zone), is_daylight)


def _format_ical_offset(offset: timedelta) -> str:
    seconds = int(abs(offset).total_seconds())
    sign = "-" if offset < timedelta(0) else "+"
    tail = f"{seconds % 60:02}" if seconds % 60 else ""
    return f"{sign}{seconds // 3600:02}{seconds // 60 % 60:02}{tail}"

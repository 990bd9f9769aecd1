"""The time zones of an iCalendar file: by name, by the names of Windows, or by their offsets."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Final

from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

from kalends.core.errors import InvalidValue
from kalends.core.imports.ical_lines import Component, Property
from kalends.core.imports.ical_rules import convert_rule
from kalends.core.imports.ical_values import Moment, read_moments, read_text
from kalends.core.local_times import format_offset
from kalends.core.recurrence import expand
from kalends.core.zones import local_of, offset_of, read_zone, utc_of

MAX_ZONES: Final = 200
MAX_SEARCHES: Final = 20  # different definitions in a file
MAX_OBSERVANCES: Final = 20
MAX_RDATES: Final = 200
_OFFSET: Final = re.compile(r"([+-])(\d\d)(\d\d)(?:\d\d)?", re.ASCII)
_WINDOWS: Final = {name.lower(): zone for name, zone in WINDOWS_TO_OLSON.items()}
_UTC_NAMES: Final = ("UTC", "Etc/UTC", "GMT")
_HOURS_BETWEEN: Final = timedelta(hours=6)


class UnknownZone(InvalidValue):
    """A time has a zone that cannot be resolved, or none."""


@dataclass(frozen=True, slots=True)
class LocalMoment:
    """A day or a time in a zone of tzdata. Days have a zone only if the source has one."""

    wall: datetime
    zone: str | None
    is_day: bool
    fold: int = 0


class Zones:
    """Resolves the zones of one calendar."""

    def __init__(self, calendar: Component, default: str, search: "OffsetSearch") -> None:
        definitions = [child for child in calendar.children if child.name == "VTIMEZONE"][:MAX_ZONES]
        self._definitions = {read_text(entry.first("TZID")): entry for entry in definitions}
        self._resolved: dict[str, str | None] = {}
        self._search = search
        self._given = default
        named = calendar.text("X-WR-TIMEZONE") or calendar.text("TIMEZONE-ID")
        self.default = default or self._find(named) or self._find_only()
        # The zone in which instants are shown. UTC is what programs write that know no zone.
        self.shown = self.default if default or self.default not in _UTC_NAMES else None

    def resolve(self, moment: Moment) -> LocalMoment:
        """Return the local time of a moment. Raise UnknownZone if its zone is missing or unknown."""
        if moment.is_day:
            return LocalMoment(moment.wall, self._find(moment.tzid) or self.default, is_day=True)
        if not moment.tzid:
            return LocalMoment(moment.wall, self._require_default(), is_day=False)
        zone = self._find(moment.tzid) or self._given
        if not zone:
            raise UnknownZone(
                "the time zone “{zone}” is unknown, and its offsets are those of no known zone. Set the time zone of "
                "the source.",
                zone=moment.tzid[:100],
            )
        return LocalMoment(moment.wall, zone, is_day=False)

    def move(self, moment: LocalMoment, zone: str) -> LocalMoment:
        """Return the same instant in another zone."""
        if moment.zone is None or moment.zone == zone or moment.is_day:
            return moment
        instant = utc_of(moment.wall, moment.zone, moment.fold)
        wall = local_of(instant, zone)
        return LocalMoment(wall, zone, is_day=False, fold=int(utc_of(wall, zone) != instant))

    def _require_default(self) -> str:
        if self.default is None:
            raise UnknownZone("the time has no time zone. Set the time zone of the source.")
        return self.default

    def _find(self, tzid: str) -> str | None:
        if not tzid:
            return None
        if tzid not in self._resolved:
            self._resolved[tzid] = find_named(tzid) or self._find_defined(tzid)
        return self._resolved[tzid]

    def _find_defined(self, tzid: str) -> str | None:
        definition = self._definitions.get(tzid)
        if definition is None:
            return None
        return find_named(definition.text("X-LIC-LOCATION")) or self._search.find(definition)

    def _find_only(self) -> str | None:
        """Return the zone of a calendar that defines exactly one."""
        found = {self._find(tzid) for tzid in self._definitions}
        return found.pop() if len(found) == 1 else None


@cache
def find_named(tzid: str) -> str | None:
    """Return the zone of a name, with or without a prefix such as `/example.org/20260101/`."""
    name = tzid.strip().strip('"').strip()
    parts = name.split("/")[-3:]
    candidates = ["/".join(parts[index:]) for index in range(len(parts))] if len(name) <= 200 else []
    candidates = candidates if "/" in name else [name, _WINDOWS.get(name.lower(), "")]
    return next(filter(None, map(_read_zone, candidates)), None)


def _read_zone(name: str) -> str | None:
    try:
        return read_zone(name) if name else None
    except InvalidValue:
        return None


# Zones by their offsets -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class Onset:
    """The local time from which on an offset applies."""

    wall: datetime
    offset: timedelta


class OffsetSearch:
    """Finds zones by their offsets. Equal definitions are compared once, and different ones up to a maximum."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._found: dict[tuple[str, ...], str | None] = {}

    def find(self, definition: Component) -> str | None:
        names = ("DTSTART", "TZOFFSETTO", "RRULE", "RDATE")
        key = tuple(child.text(name) for child in definition.children[:MAX_OBSERVANCES] for name in names)
        if key not in self._found and len(self._found) < MAX_SEARCHES:
            self._found[key] = find_by_offsets(definition, self._now)
        return self._found.get(key)


def find_by_offsets(definition: Component, now: datetime) -> str | None:
    """Return a zone with the same offsets from the year before to two years after, or None."""
    first, last = datetime(now.year - 1, 1, 1), datetime(now.year + 2, 12, 31)
    onsets = sorted(_list_onsets(definition, first, last))
    if not onsets:
        return None
    if len({onset.offset for onset in onsets}) == 1:
        return _read_zone(f"UTC{format_offset(onsets[0].offset)}")
    recent = [onset for onset in onsets if first <= onset.wall <= last]
    return next((zone for zone in _candidates() if recent and _has_onsets(zone, recent)), None)


def _has_onsets(zone: str, onsets: Sequence[Onset]) -> bool:
    """Return whether a zone has these offsets shortly after they apply and shortly before the next ones do."""
    return all(
        _offset_at(zone, moment) == offset
        for index, (wall, offset) in enumerate((onset.wall, onset.offset) for onset in onsets)
        for moment in _sample(wall, onsets[index + 1].wall if index + 1 < len(onsets) else None)
    )


def _sample(begin: datetime, end: datetime | None) -> Iterator[datetime]:
    yield begin + _HOURS_BETWEEN
    if end is not None:
        yield end - _HOURS_BETWEEN


def _offset_at(zone: str, wall: datetime) -> timedelta:
    return offset_of(utc_of(wall, zone), zone)


def _list_onsets(definition: Component, first: datetime, last: datetime) -> Iterator[Onset]:
    for observance in definition.children[:MAX_OBSERVANCES]:
        start, offset = observance.first("DTSTART"), _read_offset(observance.first("TZOFFSETTO"))
        if start is not None and offset is not None:
            for wall in _list_starts(observance, start, first, last):
                yield Onset(wall, offset)


def _list_starts(observance: Component, start: Property, first: datetime, last: datetime) -> Iterator[datetime]:
    """Yield the beginnings of an observance within the years; one that begins earlier is there once."""
    try:
        begin = read_moments(start)[0].wall
        yield begin
        for found in observance.all("RDATE")[:MAX_RDATES]:
            yield from (moment.wall for moment in read_moments(found)[:MAX_RDATES])
        for rule in observance.all("RRULE")[:5]:
            given = convert_rule(rule.value or "", begin, "UTC", last)
            yield from given.listed if given.rule is None else expand(given.rule, begin, last, after=first)
    except (InvalidValue, IndexError):
        return


def _read_offset(found: Property | None) -> timedelta | None:
    match = _OFFSET.fullmatch((found.value or "").strip()) if found else None
    if match is None:
        return None
    offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return -offset if match[1] == "-" else offset


@cache
def _candidates() -> tuple[str, ...]:
    """Return the zones to compare with: those of Windows, the most common of each region first."""
    common = ("Europe/Berlin", "Europe/London", "America/New_York", "America/Chicago", "Australia/Sydney")
    zones = [zone for name in WINDOWS_TO_OLSON.values() if (zone := _read_zone(name)) is not None]
    return tuple(dict.fromkeys([*common, *zones]))

"""iCalendar values: texts, moments, durations, positions, and zones given by name, Windows name or offset."""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Final
from urllib.parse import unquote

from icalendar import prop
from icalendar.parser import Contentline
from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.core.recurrence import expand
from kalends.core.times import format_offset, local_of, offset_of, utc_of
from kalends.core.zones import read_zone
from kalends.imports.rules.ical_lines import Component, Property
from kalends.imports.rules.ical_rules import convert_rule

# Property values ------------------------------------------------------------------------------------

MAX_PARAMS: Final = 5_000  # characters; longer parameters are embedded files
_TAG: Final = re.compile(
    r"<(?:/?(?:p|br|a|b|i|u|em|strong|ul|ol|li|div|span|h[1-6]|table|tr|td|html-blob|html|body)\b[^<>]{0,2000}|!doctype[^<>]{0,500})>",
    re.IGNORECASE,
)
_BODY: Final = re.compile(r"<body\b[^<>]{0,2000}>", re.IGNORECASE)
_ANY_TAG: Final = re.compile(r"<[^<>]*>")
_ESCAPE: Final = re.compile(r"\\([nN\\;,:\"])")
_DATE: Final = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)", re.ASCII)
_MOMENT: Final = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)[T ](\d\d):?(\d\d)(?::?(\d\d))?(?:\.\d{1,9})?(Z)?", re.ASCII)
_DATA_HTML: Final = re.compile(r"data:text/html[^,]{0,100},", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Moment:
    """A day, or a local time with its zone ID. The ID is `UTC` for an instant, and empty if there is no zone."""

    wall: datetime
    is_day: bool
    tzid: str = ""


def read_params(found: Property) -> dict[str, str]:
    """Return a property's parameters with uppercase names. If a parameter has several values, return the first."""
    if not found.params or len(found.params) > MAX_PARAMS:
        return {}
    try:
        _, params, _ = Contentline(f"X{found.params}:").raw_parts()  # type: ignore[no-untyped-call]
    except ValueError:
        return {}
    return {name.upper(): str(value[0] if isinstance(value, list) else value) for name, value in params.items()}


def read_text(found: Property | None) -> str:
    """Return unescaped text, or an empty string if the property is missing."""
    if found is None or found.value is None:
        return ""
    return _unescape(found.value).replace("\r\n", "\n").strip()


def read_list(found: Property) -> list[str]:
    parts = re.split(r"(?<!\\),", found.value or "")
    return [text for part in parts if (text := _unescape(part).strip())]


def _unescape(text: str) -> str:
    """Replace escape sequences. Keep a backslash before a character that needs no escape."""
    return _ESCAPE.sub(lambda match: "\n" if match[1] in "nN" else match[1], text)


def read_moments(found: Property) -> list[Moment]:
    """Return the dates in a property. For a period, return its start."""
    tzid = read_params(found).get("TZID", "")
    return [read_moment(part.partition("/")[0], tzid) for part in (found.value or "").split(",") if part.strip()]


def split_moments(found: Property) -> Iterator[Property]:
    """Yield each date in a list as a separate property, so an invalid date does not spoil the others."""
    for part in (found.value or "").split(","):
        if part.strip():
            yield replace(found, value=part)


def left_out(name: str, problem: Message) -> Message:
    return Message("`{name}` was left out: {problem}", name=name, problem=problem)


def read_moment(text: str, tzid: str) -> Moment:
    """Read an iCalendar date or date-time. Raise InvalidValue if it is malformed or does not exist."""
    stripped = text.strip().upper()
    day, moment = _DATE.fullmatch(stripped), _MOMENT.fullmatch(stripped)
    try:
        if day is not None:
            return Moment(datetime(*map(int, day.groups())), is_day=True, tzid=tzid)  # type: ignore[arg-type]
        if moment is not None:
            return _read_time(moment, tzid)
    except ValueError:
        pass
    raise InvalidValue("there is no date {value}.", value=text.strip()[:50])


def _read_time(match: re.Match[str], tzid: str) -> Moment:
    year, month, day, hour, minute = (int(match[number]) for number in range(1, 6))
    second = min(int(match[6] or 0), 59)  # a leap second becomes the second before it
    next_day = timedelta(days=1) if (hour, minute, second) == (24, 0, 0) else timedelta(0)
    wall = datetime(year, month, day, 0 if next_day else hour, minute, second) + next_day
    return Moment(wall, is_day=False, tzid="UTC" if match[7] else tzid)


def read_duration(found: Property) -> timedelta:
    try:
        duration: timedelta = prop.vDuration.from_ical((found.value or "").strip())  # type: ignore[no-untyped-call]
    except (ValueError, OverflowError):
        raise _no_duration() from None
    if duration < timedelta(0):
        raise _no_duration()
    return duration


def _no_duration() -> InvalidValue:
    return InvalidValue("must be a duration such as PT1H30M.")


def read_position(found: Property | None) -> tuple[float, float] | None:
    """Return latitude and longitude, or None if the position is missing, invalid or zero."""
    try:
        latitude, longitude = prop.vGeo.from_ical((found.value or "").strip().replace(",", ";")) if found else (0, 0)
    except ValueError:
        return None
    is_valid = -90 <= latitude <= 90 and -180 <= longitude <= 180
    return (latitude, longitude) if is_valid and (latitude or longitude) else None


def read_description(event: Component) -> str:
    """Return the description as HTML. Prefer an HTML version in the source to plain text."""
    rich = next(filter(None, map(_read_rich, [*event.all("X-ALT-DESC"), *event.all("STYLED-DESCRIPTION")])), "")
    found = event.first("DESCRIPTION")
    if not rich and found is not None:
        rich = _read_altrep(found)
    if rich:
        return rich
    text = read_text(found)
    return text if _TAG.search(text) else html.escape(text, quote=False)


def _read_rich(found: Property) -> str:
    """Return the body of an HTML description, or an empty string if the body has no text."""
    if "HTML" not in read_params(found).get("FMTTYPE", "").upper():
        return ""
    return _cut_body(read_text(found))


def _read_altrep(found: Property) -> str:
    """Return the HTML in the ALTREP parameter that some programs write."""
    altrep = read_params(found).get("ALTREP", "")
    begin = _DATA_HTML.match(altrep)
    return _cut_body(unquote(altrep[begin.end() :])) if begin else ""


def _cut_body(text: str) -> str:
    begin = _BODY.search(text)
    inner = text[begin.end() :] if begin else text
    end = inner.lower().rfind("</body")
    inner = inner[:end] if end >= 0 else inner
    return inner.strip() if html.unescape(_ANY_TAG.sub("", inner)).strip() else ""


MAX_ZONES: Final = 200
MAX_SEARCHES: Final = 20  # maximum number of zone definitions per file to identify by their offsets
MAX_OBSERVANCES: Final = 20
MAX_RDATES: Final = 200
_OFFSET: Final = re.compile(r"([+-])(\d\d)(\d\d)(?:\d\d)?", re.ASCII)
_WINDOWS: Final = {name.lower(): zone for name, zone in WINDOWS_TO_OLSON.items()}
_UTC_NAMES: Final = ("UTC", "Etc/UTC", "GMT")
_HOURS_BETWEEN: Final = timedelta(hours=6)


class UnknownZone(InvalidValue):
    """Raised if a time zone is missing or cannot be resolved."""


@dataclass(frozen=True, slots=True)
class LocalMoment:
    """A day or a time in a tzdata zone. If `zone` is None, a day is in the site's zone, and a time is in UTC."""

    wall: datetime
    zone: str | None
    is_day: bool
    fold: int = 0


class Zones:
    def __init__(self, calendar: Component, default: str, search: "OffsetSearch") -> None:
        definitions = [child for child in calendar.children if child.name == "VTIMEZONE"][:MAX_ZONES]
        self._definitions = {read_text(entry.first("TZID")): entry for entry in definitions}
        self._resolved: dict[str, str | None] = {}
        self._search = search
        self._given = default
        named = calendar.text("X-WR-TIMEZONE") or calendar.text("TIMEZONE-ID")
        self.default = default or self._find(named) or self._find_only()
        # The zone for showing instants. UTC counts only if requested, because programs without zone support
        # write UTC.
        self.shown = self.default if default or self.default not in _UTC_NAMES else None

    def resolve(self, moment: Moment) -> LocalMoment:
        """Return a moment's local time. Raise UnknownZone if the moment's zone is missing or unknown."""
        if moment.is_day:
            return LocalMoment(moment.wall, self._find(moment.tzid) or self.default, is_day=True)
        if not moment.tzid:
            if self.default is None:
                raise UnknownZone("the time has no time zone. Set the time zone of the source.")
            return LocalMoment(moment.wall, self.default, is_day=False)
        zone = self._find(moment.tzid) or self._given
        if not zone:
            raise UnknownZone(
                "the time zone “{zone}” is unknown, and its offsets are those of no known zone. Set the time zone of "
                "the source.",
                zone=moment.tzid[:100],
            )
        return LocalMoment(moment.wall, zone, is_day=False)

    def move(self, moment: LocalMoment, zone: str) -> LocalMoment:
        if moment.zone is None or moment.zone == zone or moment.is_day:
            return moment
        instant = utc_of(moment.wall, moment.zone, moment.fold)
        wall = local_of(instant, zone)
        return LocalMoment(wall, zone, is_day=False, fold=int(utc_of(wall, zone) != instant))

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
        """Return the zone if the calendar defines exactly one."""
        found = {self._find(tzid) for tzid in self._definitions}
        return found.pop() if len(found) == 1 else None


@cache
def find_named(tzid: str) -> str | None:
    """Return the zone for a name. The name may have a prefix such as `/example.org/20260101/`."""
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
    """The local time when an offset takes effect."""

    wall: datetime
    offset: timedelta


class OffsetSearch:
    """Finds zones by their offsets. Each definition is searched only once, and the number of searches is limited."""

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
    """Return a zone with the same offsets, from last year to two years from now, or None."""
    first, last = datetime(now.year - 1, 1, 1), datetime(now.year + 2, 12, 31)
    onsets = sorted(_list_onsets(definition, first, last))
    if not onsets:
        return None
    if len({onset.offset for onset in onsets}) == 1:
        return _read_zone(f"UTC{format_offset(onsets[0].offset)}")
    recent = [onset for onset in onsets if first <= onset.wall <= last]
    return next((zone for zone in _candidates() if recent and _has_onsets(zone, recent)), None)


def _has_onsets(zone: str, onsets: Sequence[Onset]) -> bool:
    """Return whether a zone has the right offset shortly after each onset and shortly before the next one."""
    return all(
        offset_of(utc_of(moment, zone), zone) == offset
        for index, (wall, offset) in enumerate((onset.wall, onset.offset) for onset in onsets)
        for moment in _sample(wall, onsets[index + 1].wall if index + 1 < len(onsets) else None)
    )


def _sample(begin: datetime, end: datetime | None) -> Iterator[datetime]:
    yield begin + _HOURS_BETWEEN
    if end is not None:
        yield end - _HOURS_BETWEEN


def _list_onsets(definition: Component, first: datetime, last: datetime) -> Iterator[Onset]:
    for observance in definition.children[:MAX_OBSERVANCES]:
        start, offset = observance.first("DTSTART"), _read_offset(observance.first("TZOFFSETTO"))
        if start is not None and offset is not None:
            for wall in _list_starts(observance, start, first, last):
                yield Onset(wall, offset)


def _list_starts(observance: Component, start: Property, first: datetime, last: datetime) -> Iterator[datetime]:
    """Yield the DTSTART and RDATEs of an observance, and the dates of its RRULE up to `last`."""
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
    """Return the zones to compare with: the most common ones first, then all Windows zones."""
    common = ("Europe/Berlin", "Europe/London", "America/New_York", "America/Chicago", "Australia/Sydney")
    zones = [zone for name in WINDOWS_TO_OLSON.values() if (zone := _read_zone(name)) is not None]
    return tuple(dict.fromkeys([*common, *zones]))

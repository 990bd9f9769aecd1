"""Reads iCalendar files into imported records.

Events with the same UID form a group: a single event, or a series and its overrides. An event that cannot be imported
becomes a rejection with a line number, and does not affect other events.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.core.recurrence import format_rule
from kalends.core.times import format_datetime, utc_of
from kalends.core.zones import read_zone
from kalends.imports.rules import ical_events, ical_series
from kalends.imports.rules.ical_events import Content, Times
from kalends.imports.rules.ical_lines import Component, read_components
from kalends.imports.rules.ical_series import Recurrence, SlotReader
from kalends.imports.rules.ical_zones import LocalMoment, OffsetSearch, Zones, read_params, read_text
from kalends.imports.rules.import_records import ImportedRecord, ParsedSource, Rejection

MAX_IDENTITY_LENGTH: Final = 500
# The cost of a recurring event; each computed date adds one.
BASE_COST: Final = 250
MAX_COST: Final = 700_000


@dataclass(slots=True)
class Reading:
    """The result so far. Each linked record is stored only once."""

    now: datetime
    known_starts: Mapping[str, str]
    records: list[ImportedRecord] = field(default_factory=list[ImportedRecord])
    linked: dict[tuple[str, str, str], ImportedRecord] = field(
        default_factory=dict[tuple[str, str, str], ImportedRecord]
    )
    rejections: list[Rejection] = field(default_factory=list[Rejection])
    rejected_lines: set[int] = field(default_factory=set[int])
    instants: list[datetime] = field(default_factory=list[datetime])
    cost: int = 0

    def spend(self, cost: int, *, is_checked: bool = True) -> None:
        """Add to the work spent on recurring events. Raise InvalidValue if a file requires too much work."""
        self.cost += cost
        if is_checked and self.cost > MAX_COST:
            raise InvalidValue("the file has too many recurring events.")


@dataclass(frozen=True, slots=True)
class Calendar:
    component: Component
    zones: Zones
    is_cancelled: bool


@dataclass(frozen=True, slots=True)
class Entry:
    event: Component
    identity: str
    calendar: Calendar

    @property
    def is_override(self) -> bool:
        return bool(self.event.text("RECURRENCE-ID"))


def read_calendar(data: bytes, options: Mapping[str, Any]) -> ParsedSource:
    """Parse a file. Raise InvalidValue if it is not a complete iCalendar file within the limits.

    Options: `timezone`, the zone for times without one; `now`; `known_starts`, the starts of series by identity;
    `organizer_emails`, whether to read organizers' email addresses.
    """
    components = read_components(data)
    reading = Reading(_read_now(options.get("now")), options.get("known_starts") or {})
    search = OffsetSearch(reading.now)
    calendars = [_read_calendar(component, options.get("timezone") or "", search) for component in components]
    for group in _group(calendars).values():
        _read_group(group, reading)
    linked = reading.linked.values()
    names = [read_text(entry.first("X-WR-CALNAME") or entry.first("NAME")) for entry in components]
    return ParsedSource(
        [
            *(linked if options.get("organizer_emails") else map(ical_events.leave_out_email, linked)),
            *reading.records,
        ],
        sorted(reading.rejections, key=lambda rejection: rejection.line or 0),
        (min(reading.instants), max(reading.instants)) if reading.instants else None,
        next(filter(None, names), "")[:200],
    )


def _read_now(value: object) -> datetime:
    return (
        datetime.fromisoformat(value).astimezone(UTC) if isinstance(value, str) else datetime(2000, 1, 1, tzinfo=UTC)
    )


def _read_calendar(component: Component, zone: str, search: OffsetSearch) -> Calendar:
    return Calendar(
        component,
        Zones(component, read_zone(zone) if zone else "", search),
        component.text("METHOD").upper() == "CANCEL",
    )


# Groups -----------------------------------------------------------------------------------------


def _group(calendars: Iterable[Calendar]) -> dict[str, list[Entry]]:
    """Return the events in all calendars by UID, in file order."""
    groups: dict[str, list[Entry]] = {}
    for calendar in calendars:
        for event in calendar.component.children:
            if event.name == "VEVENT":
                identity = _identify(event)
                groups.setdefault(identity, []).append(Entry(event, identity, calendar))
    return groups


def _identify(event: Component) -> str:
    """Return the UID or, if there is none, a fingerprint of title, start and place."""
    uid = read_text(event.first("UID"))
    if not uid:
        facts = [" ".join(event.text(name).casefold().split()) for name in ("SUMMARY", "DTSTART", "LOCATION")]
        return f"fingerprint:{hashlib.sha256(chr(10).join(facts).encode()).hexdigest()[:40]}"
    return uid if len(uid) <= MAX_IDENTITY_LENGTH else f"uid:{hashlib.sha256(uid.encode()).hexdigest()}"


def _read_group(entries: list[Entry], reading: Reading) -> None:
    masters = _find_masters([entry for entry in entries if not entry.is_override])
    overrides = [entry for entry in entries if entry.is_override]
    series = next((entry for entry in masters if ical_series.is_recurring(entry.event)), None)
    for entry in masters:
        if entry is not series:
            _read_or_reject(entry, reading, partial(_add_event, entry, reading))
    if series is None:
        _add_single_overrides(overrides, reading)
    elif not _read_or_reject(series, reading, partial(_add_series, series, overrides, reading)):
        for override in overrides:
            _reject(override, reading, Message("the series of this date cannot be imported."))


def _find_masters(entries: list[Entry]) -> list[Entry]:
    """Return the newest version of an event, or all entries if they are different events with the same UID.

    Some programs give all events the same UID. Entries are versions of one event if their sequence numbers differ or
    they all have the same start.
    """
    if len(entries) < 2:
        return entries
    sequences = {entry.event.text("SEQUENCE") or "0" for entry in entries}
    starts: dict[str, list[Entry]] = {}
    for entry in entries:
        starts.setdefault(entry.event.text("DTSTART"), []).append(entry)
    if len(sequences) > 1 or len(starts) == 1:
        return [max(entries, key=_version)]
    newest = [max(versions, key=_version) for versions in starts.values()]
    series = next((entry for entry in newest if ical_series.is_recurring(entry.event)), None)
    return [entry if entry is series else _with_start(entry) for entry in newest]


def _version(entry: Entry) -> tuple[int, str]:
    sequence = entry.event.text("SEQUENCE")
    number = int(sequence) if sequence.isdecimal() and len(sequence) < 10 else 0
    return number, entry.event.text("LAST-MODIFIED") or entry.event.text("DTSTAMP")


def _with_start(entry: Entry) -> Entry:
    return Entry(entry.event, f"{entry.identity}#{entry.event.text('DTSTART')}"[:1000], entry.calendar)


# Records ----------------------------------------------------------------------------------------


def _add_event(entry: Entry, reading: Reading, recurrence_id: str = "") -> None:
    times = ical_events.read_times(entry.event, entry.calendar.zones)
    content = ical_events.read_content(entry.event, is_cancelled=entry.calendar.is_cancelled)
    reading.instants += times.instants()
    reading.records.append(
        _make_record(entry, "events", content, ical_events.format_times(times), reading, recurrence_id=recurrence_id)
    )


def _add_series(entry: Entry, overrides: list[Entry], reading: Reading) -> None:
    """Add a series and its overrides. If a series has only one date, add a single event instead."""
    event, zones = entry.event, entry.calendar.zones
    times = ical_events.read_times(event, zones, is_recurring=True)
    reader = SlotReader(zones, times.start)
    slots = _read_slots(overrides, reader, reading)
    reading.spend(BASE_COST)
    recurrence = ical_events.naming(
        "RRULE",
        lambda: ical_series.read_recurrence(event, reader, reading.now, set(slots), _read_known(entry, reading)),
    )
    reading.spend(recurrence.cost if recurrence else 0, is_checked=False)
    if recurrence is None:
        _add_single_series(entry, slots, reading)
        return
    content = ical_events.read_content(event, is_cancelled=entry.calendar.is_cancelled)
    values = _format_series(times, recurrence)
    _extend_span(times, recurrence, reading)
    record = _make_record(entry, "series", content, values, reading, warnings=recurrence.warnings)
    reading.records.append(replace(record, dates=ical_series.count_dates(recurrence)))
    first = recurrence.first
    kept = {slot: override for slot, override in slots.items() if first is None or slot >= first}
    for slot, override in kept.items():
        recurrence_id = format_datetime(slot)
        _read_or_reject(override, reading, partial(_add_event, override, reading, recurrence_id), recurrence_id)


def _read_known(entry: Entry, reading: Reading) -> datetime | None:
    known = reading.known_starts.get(entry.identity, "")
    try:
        return datetime.fromisoformat(known).replace(tzinfo=None) if known else None
    except ValueError:
        return None


def _add_single_series(entry: Entry, slots: Mapping[datetime, Entry], reading: Reading) -> None:
    """Add the only date of a series, or the override for this date if there is one."""
    if slots:
        _add_single_overrides(list(slots.values()), reading)
    else:
        _add_event(entry, reading)


def _read_slots(overrides: list[Entry], reader: SlotReader, reading: Reading) -> dict[datetime, Entry]:
    """Return the newest override for each series date."""
    slots: dict[datetime, Entry] = {}
    for override in sorted(overrides, key=_version):
        _read_or_reject(override, reading, partial(_keep_slot, override, reader, slots))
    return dict(sorted(slots.items()))


def _keep_slot(override: Entry, reader: SlotReader, slots: dict[datetime, Entry]) -> None:
    slots[_read_slot(override, reader)] = override


def _read_slot(override: Entry, reader: SlotReader) -> datetime:
    found = override.event.all("RECURRENCE-ID")[0]
    if read_params(found).get("RANGE", "").upper() == "THISANDFUTURE":
        raise InvalidValue("a change of this and all following dates is not supported.")
    return ical_events.naming("RECURRENCE-ID", lambda: reader.read(found)[0])


def _add_single_overrides(overrides: list[Entry], reading: Reading) -> None:
    """Add overrides whose series is not in the file. Calendars that show only free and busy times contain them."""
    newest: dict[str, Entry] = {}
    for override in sorted(overrides, key=_version):
        _read_or_reject(override, reading, partial(_keep_newest, override, newest))
    for recurrence_id, override in newest.items():
        _read_or_reject(override, reading, partial(_add_event, override, reading, recurrence_id), recurrence_id)


def _keep_newest(override: Entry, newest: dict[str, Entry]) -> None:
    newest[_format_recurrence_id(override)] = override


def _format_recurrence_id(override: Entry) -> str:
    """Return the recurrence ID of an override without a series, as a local time in the override's time zone."""
    zones = override.calendar.zones
    reader = SlotReader(zones, ical_events.read_start(override.event, zones), means_days=False)
    return format_datetime(_read_slot(override, reader))


def _make_record(
    entry: Entry,
    kind: str,
    content: Content,
    values: Mapping[str, Any],
    reading: Reading,
    *,
    recurrence_id: str = "",
    warnings: Iterable[Message] = (),
) -> ImportedRecord:
    for linked in content.linked.values():
        reading.linked.setdefault(linked.key, linked)
    return ImportedRecord(
        kind,
        entry.identity,
        {**content.values, **values},
        recurrence_id,
        links={
            name: [content.linked[name].identity] if name in content.linked else [] for name in ("venue", "organizer")
        },
        line=entry.event.line,
        warnings=(*content.warnings, *warnings),
    )


def _format_series(times: Times, recurrence: Recurrence) -> dict[str, Any]:
    """Return the parameters for a series: its first date, its rule, and its added and removed dates."""
    start = LocalMoment(recurrence.start, times.zone, times.start.is_day)
    end = LocalMoment(recurrence.start + (times.end.wall - times.start.wall), times.zone, times.start.is_day)
    rule = {"rule": format_rule(recurrence.rule)} if recurrence.rule is not None else {}
    return {
        **ical_events.format_times(Times(start, end)),
        **rule,
        "add_dates": [_format_slot(slot, times) for slot in recurrence.added],
        "remove_dates": [_format_slot(slot, times) for slot in recurrence.removed],
    }


def _format_slot(slot: datetime, times: Times) -> str:
    return ical_events.format_moment(LocalMoment(slot, times.zone, times.start.is_day))


def _extend_span(times: Times, recurrence: Recurrence, reading: Reading) -> None:
    """Extend the span to a series' first and last date, or to the present if the series is endless.

    Stored records outside the span do not count as missing. An endless series does not show how far ahead the other
    events in the file reach, so it extends the span only to the present.
    """
    zone, last = times.zone or "UTC", ical_series.find_last(recurrence)
    reading.instants.append(utc_of(min([recurrence.start, *recurrence.added]), zone))
    reading.instants.append(max(reading.instants[-1], reading.now) if last is None else utc_of(last, zone))


def _read_or_reject(entry: Entry, reading: Reading, read: Callable[[], object], recurrence_id: str = "") -> bool:
    """Read an event, or reject it with the reason. Return whether it was read."""
    try:
        read()
    except InvalidValue as error:
        _reject(entry, reading, error.message, recurrence_id)
    except (OverflowError, ValueError, IndexError):
        _reject(entry, reading, Message("the event cannot be read."), recurrence_id)
    else:
        return True
    return False


def _reject(entry: Entry, reading: Reading, reason: Message, recurrence_id: str = "") -> None:
    event = entry.event
    if event.line in reading.rejected_lines:
        return
    reading.rejected_lines.add(event.line)
    title = read_text(event.first("SUMMARY"))[:200]
    recurrence_id = recurrence_id or event.text("RECURRENCE-ID")[:50]
    reading.rejections.append(Rejection(reason, event.line, entry.identity, recurrence_id, title))

"""Write a series as iCalendar rules: one VEVENT with RRULE per section, plus exceptions.

Clients disagree about some rules, and about times when daylight saving time begins or ends. Dates that clients would
misread become exceptions, or VEVENTs with the event's UID and no rule.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from operator import attrgetter
from typing import Final
from uuid import UUID, uuid5

from kalends.calendar.rules.fields import EVENT_FIELDS
from kalends.calendar.rules.record_types import Event
from kalends.core.recurrence import Rule, end_before, format_rule, is_ambiguous, rest_from
from kalends.core.times import local_of, utc_of
from kalends.feeds import ics
from kalends.series.rules.series_slots import LAST_SLOT, Definition, Part


@dataclass(frozen=True, slots=True)
class Content:
    """Content shared by the dates starting at `since`; `event` is None if these dates are not public."""

    since: datetime
    event: Event | None


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a series, or a stretch of a part, whose dates all have the same content."""

    part: Part
    content: Event | None


def list_sections(definition: Definition, contents: Sequence[Content]) -> list[Section]:
    """Split a series' parts where the content changes. The first content applies from the start."""
    bounds = [
        later.since
        for earlier, later in pairwise(contents)
        if _describe_optional(earlier.event) != _describe_optional(later.event)
    ]
    return [
        Section(piece, _find_content(contents, piece.start))
        for part in definition.parts
        for piece in _divide(part, bounds)
    ]


def describe_content(event: Event) -> tuple[object, ...]:
    """Return the event data that appears in iCalendar, except its times and its page URL."""
    return (
        *(event.title, event.description, *_get_plain(event), event.reason),
        *(event.venues, event.organizers, event.categories, event.image),
    )


_get_plain: Final = attrgetter(*(row.path for row in EVENT_FIELDS if row.in_feed))


def start_part_at(part: Part, slot: datetime) -> Part:
    if part.rule is None or slot == part.start:
        return part
    return replace(part, rule=rest_from(part.rule, part.start, slot), start=slot, end=slot + part.length)


def _divide(part: Part, bounds: Sequence[datetime]) -> Iterator[Part]:
    for bound in bounds:
        first = next(part.slots(LAST_SLOT, bound), None) if part.start < bound else None
        if first is None or part.rule is None:
            continue
        yield replace(part, rule=end_before(part.rule, part.start, first))
        uid = str(uuid5(UUID(part.uid), f"content {first.isoformat()}"))
        part = replace(start_part_at(part, first), uid=uid)
    yield part


def _find_content(contents: Sequence[Content], slot: datetime) -> Event | None:
    return next((content.event for content in reversed(contents) if content.since <= slot), contents[0].event)


def _describe_optional(event: Event | None) -> tuple[object, ...]:
    return describe_content(event) if event else ()


DAY: Final = timedelta(days=1)
# For endless rules, VTIMEZONE covers this many years after the last date with an event.
ZONE_YEARS: Final = 20
UTC_NAME: Final = "Etc/UTC"  # written with a VTIMEZONE, like other zones
# A rule that ends later gets no UNTIL, because the last day might have no UTC equivalent.
LAST_UNTIL: Final = date(9000, 1, 1)


@dataclass(frozen=True, slots=True)
class SeriesDate:
    """A public series date. `title` includes the event status."""

    slot: datetime
    event: Event
    title: str


@dataclass(frozen=True, slots=True)
class SeriesCalendar:
    """A series to write. `dates` holds the dates before `created_until`, or all dates if `created_until` is None."""

    sections: Sequence[Section]
    dates: Mapping[datetime, SeriesDate]
    removed: Sequence[datetime]
    created_until: datetime | None
    sequence: int
    titles: Mapping[str, str]  # section titles including the event status, by UID


@dataclass(frozen=True, slots=True)
class _Master:
    """A section written as a rule, starting at its first regular date."""

    section: Section
    slots: Sequence[datetime]  # slots that have or could have an event
    excluded: Sequence[datetime]


def write_series(calendar: ics.Calendar, series: SeriesCalendar) -> str:
    planned = [_plan_master(series, section) for section in series.sections]
    masters = [master for master in planned if master is not None]
    repeated = {slot for master in masters for slot in master.slots}
    added, singles = _divide_others(
        series, masters, [date for date in series.dates.values() if date.slot not in repeated]
    )
    if any(master.section.part.timezone == "UTC" for master in masters):
        calendar = replace(calendar, timezone="UTC")  # Clients shift UTC rules to the calendar's zone.
    parts = [ics.begin_calendar(calendar, _collect_times(series, masters))]
    for master in masters:
        parts += _write_master(series, master, added.get(master.section.part.uid, []))
    parts += [
        ics.write_component(row.event, series.sequence, row.title, row.event.uid, ics.format_times(row.event))
        for row in singles
    ]
    return "".join([*parts, ics.end_calendar()])


def _list_slots(part: Part, created_until: datetime | None) -> list[datetime]:
    until = LAST_SLOT if created_until is None else local_of(created_until, part.timezone)
    return list(part.slots(until))


def _plan_master(series: SeriesCalendar, section: Section) -> _Master | None:
    """Plan a rule from the section's first regular date; return None if no rule can represent the section."""
    part, slots = section.part, _list_slots(section.part, series.created_until)
    if section.content is None or part.rule is None or is_ambiguous(part.rule) or not _has_name(part):
        return None
    regular = (index for index, slot in enumerate(slots) if _is_regular(part, series.dates.get(slot)))
    first = next(regular, None)
    if first is None or (series.created_until is None and first == len(slots) - 1):
        return None
    slots = slots[first:]
    rest = replace(section, part=start_part_at(part, slots[0]))
    later = [slot for slot in series.removed if slot > slots[-1] and slot in part.slots(slot, slot)]
    return _Master(rest, slots, [*[slot for slot in slots if slot not in series.dates], *later])


def _has_name(part: Part) -> bool:
    """Return whether clients recognize the rule's time zone."""
    return part.all_day or ics.is_named(_name_zone(part.timezone))


def _name_zone(zone: str) -> str:
    return UTC_NAME if zone == "UTC" else zone


def _is_regular(part: Part, row: SeriesDate | None) -> bool:
    """Return whether all clients derive the event's actual times from its slot and the part's length."""
    if row is None:
        return False
    event, end = row.event, row.slot + part.length
    if event.all_day or part.all_day:
        days = (event.start_local.date(), event.end_local.date())
        return event.all_day == part.all_day and days == (row.slot.date(), end.date())
    zone = _name_zone(part.timezone)
    return (
        (event.start_local, event.end_local, event.timezone) == (row.slot, end, part.timezone)
        and event.end_utc - event.start_utc == part.length
        and ics.is_unambiguous(event.start_local, event.start_utc, zone)
        and ics.is_unambiguous(event.end_local, event.end_utc, zone)
    )


def _divide_others(
    series: SeriesCalendar, masters: Sequence[_Master], others: Iterable[SeriesDate]
) -> tuple[dict[str, list[datetime]], list[SeriesDate]]:
    """Split dates outside the rules into RDATEs, by section UID, and separate events."""
    taken = {slot.date() for master in masters for slot in (*master.slots, *master.excluded)}
    added: dict[str, list[datetime]] = {}
    singles: list[SeriesDate] = []
    for row in others:
        master = next((master for master in reversed(masters) if master.slots[0] < row.slot), None)
        if master is not None and _is_plain(master.section, row) and not taken & _list_near_days(row.slot):
            added.setdefault(master.section.part.uid, []).append(row.slot)
            taken.add(row.slot.date())
        else:
            singles.append(row)
    return added, singles


def _list_near_days(slot: datetime) -> set[date]:
    """Return the days around a slot. Clients may drop an added date if another date falls on one of these days."""
    return {slot.date() - DAY, slot.date(), slot.date() + DAY}


def _is_plain(section: Section, row: SeriesDate) -> bool:
    """Return whether a date has the same times and content as its section."""
    content = section.content
    return (
        content is not None
        and _is_regular(section.part, row)
        and describe_content(row.event) == describe_content(content)
    )


def _collect_times(series: SeriesCalendar, masters: Sequence[_Master]) -> Iterator[ics.Times | Event]:
    """Yield times that cover every time zone in the feed, as far ahead as clients are likely to expand rules."""
    yield from (row.event for row in series.dates.values())
    for part in (master.section.part for master in masters if not master.section.part.all_day):
        yield _make_times(part.start, part.timezone)
        if series.created_until is not None:
            year = series.created_until.year + ZONE_YEARS
            last = min(year, part.rule.until.year + 1 if part.rule and part.rule.until else year)
            yield _make_times(datetime(last, 1, 1, 12), part.timezone)


def _make_times(moment: datetime, zone: str) -> ics.Times:
    utc = utc_of(moment, zone)
    return ics.Times(moment, moment, utc, utc, _name_zone(zone), all_day=False)


def _write_master(series: SeriesCalendar, master: _Master, added: Sequence[datetime]) -> Iterator[str]:
    part, content = master.section.part, master.section.content
    if content is None or part.rule is None:
        raise AssertionError("a master without a rule or content")
    title = series.titles.get(part.uid, "")
    yield ics.write_component(
        content, series.sequence, title, part.uid, _master_lines(part, part.rule, master, added)
    )
    for slot in master.slots:
        row = series.dates.get(slot)
        if row is not None and not _is_plain(master.section, row):
            lines = [f"RECURRENCE-ID{_format_slot(part, slot)}", *ics.format_times(row.event)]
            yield ics.write_component(row.event, series.sequence, row.title, part.uid, lines)


def _master_lines(part: Part, rule: Rule, master: _Master, added: Sequence[datetime]) -> Iterator[str]:
    yield f"DTSTART{_format_slot(part, part.start)}"
    if part.all_day:
        yield f"DTEND{_format_slot(part, part.end + DAY)}"
    elif part.end > part.start:
        yield f"DTEND{_format_slot(part, part.end)}"
    yield f"RRULE:{_format_rule(rule, part)}"
    yield from (f"EXDATE{_format_slot(part, slot)}" for slot in master.excluded)
    yield from (f"RDATE{_format_slot(part, slot)}" for slot in added)


def _format_slot(part: Part, slot: datetime) -> str:
    if part.all_day:
        return f";VALUE=DATE:{ics.format_day(slot.date())}"
    return f";TZID={_name_zone(part.timezone)}:{ics.compact_datetime(slot)}"


def _format_rule(rule: Rule, part: Part) -> str:
    """Format a rule. UNTIL is the last day's final second in UTC, or a plain date for all-day series."""
    text = format_rule(replace(rule, until=None))
    if rule.until is None or rule.until > LAST_UNTIL:
        return text
    end = datetime.combine(rule.until, time(23, 59, 59))
    return (
        f"{text};UNTIL={ics.format_day(rule.until) if part.all_day else ics.format_utc(utc_of(end, part.timezone))}"
    )

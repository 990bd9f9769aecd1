"""The definition of a series: its dates, its content, and edits of both. Everything here is a value.

A slot is the local time that a rule gives to a date. It identifies the date within its series, even if the event has
been moved to another time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import Any, Final
from uuid import UUID, uuid5

from kalends.core import times
from kalends.core.errors import InvalidValue
from kalends.core.recurrence import Rule, check_start, end_before, expand, rest_from, shift_rule
from kalends.core.series_limits import group_slots
from kalends.core.times import DateTimeInput, Span

# Rules that give no date for this long after a slot give none at all, as far as edits are concerned.
SEARCH_PERIOD: Final = timedelta(days=30 * 366)
LAST_SLOT: Final = datetime(times.LAST_YEAR, 12, 31)
# Dates that are listed at once: more than fifty years of daily dates.
MAX_LISTED: Final = 20_000


@dataclass(frozen=True, slots=True)
class Part:
    """A rule with its first date in local time; without a rule, that date alone."""

    uid: str
    rule: Rule | None
    start: datetime
    end: datetime
    timezone: str
    all_day: bool

    @property
    def length(self) -> timedelta:
        return self.end - self.start

    def slots(self, until: datetime, after: datetime | None = None) -> Iterator[datetime]:
        """Yield the slots up to a local time, from `after` on."""
        if self.rule is not None:
            return expand(self.rule, self.start, until, after=after)
        is_inside = self.start <= until and (after is None or after <= self.start)
        return iter([self.start] if is_inside else [])


@dataclass(frozen=True, slots=True)
class ContentChange:
    """Content that differs from the template from a slot on."""

    since: datetime
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Date:
    """A date of a series, and the part that determines its length and time zone."""

    slot: datetime
    part: Part

    def span(self) -> Span:
        """Return the start and end of the event. The length is that of the local times.

        When daylight saving time begins, an end may fall before its start, which then is the end as well.
        """
        start = DateTimeInput(self.slot, None, False)
        end = DateTimeInput(self.slot + self.part.length, None, False)
        try:
            return times.event_span(start, end, self.part.timezone, self.part.all_day)
        except InvalidValue:
            return times.event_span(start, start, self.part.timezone, self.part.all_day)


@dataclass(frozen=True, slots=True)
class Definition:
    parts: tuple[Part, ...]
    # Columns of an event and IDs of linked records (`venue_ids` …), by name.
    template: Mapping[str, Any]
    content_changes: tuple[ContentChange, ...] = ()
    added: tuple[datetime, ...] = ()
    removed: tuple[datetime, ...] = ()


class SlotTaken(Exception):
    """Two dates of a series have the same slot."""

    def __init__(self, slot: datetime) -> None:
        super().__init__(slot)
        self.slot = slot


class TooManyDates(Exception):
    """The rules of a series give more than `MAX_LISTED` dates."""


# Reading -------------------------------------------------------------------------------------


def list_dates(
    definition: Definition, until: datetime, since: datetime | None = None, *, skip_taken: bool = False
) -> list[Date]:
    """Return the dates that start before the instant `until`, in order; `since` is a slot.

    Raises SlotTaken if two rules give the same slot; with `skip_taken` the date is that of the earlier part.
    """
    given_dates = (
        Date(slot, part)
        for part in definition.parts
        for slot in part.slots(times.local_of(until, part.timezone), since)
    )
    dates = list(islice(given_dates, MAX_LISTED + 1))
    if len(dates) > MAX_LISTED:
        raise TooManyDates
    given = {date.slot for date in dates}
    dates += [
        Date(slot, find_part(definition, slot))
        for slot in definition.added
        if slot not in given and (since is None or slot >= since)
    ]
    removed = frozenset(definition.removed)
    remaining = sorted((date for date in dates if date.slot not in removed), key=lambda date: date.slot)
    if skip_taken:
        return list({date.slot: date for date in reversed(remaining)}.values())[::-1]
    for first, second in pairwise(remaining):
        if first.slot == second.slot:
            raise SlotTaken(first.slot)
    return remaining


def find_part(definition: Definition, slot: datetime) -> Part:
    """Return the part in force at a slot; the first one for earlier slots."""
    return definition.parts[_find_index(definition, slot)]


def date_at(definition: Definition, slot: datetime) -> Date:
    """Return the date with this slot, with the part whose rule gives it or, for an added date, the one in force."""
    return dates_at(definition, [slot])[0]


def dates_at(definition: Definition, slots: Sequence[datetime]) -> list[Date]:
    """Return the dates with these slots. Each rule is expanded once."""
    given = find_given(definition, slots)
    return [Date(slot, given.get(slot) or find_part(definition, slot)) for slot in slots]


def find_given(definition: Definition, slots: Sequence[datetime]) -> dict[datetime, Part]:
    """Return those of the slots that rules give, with the first part that does."""
    if not slots:
        return {}
    wanted, groups = frozenset(slots), list(group_slots(slots))
    given: dict[datetime, Part] = {}
    for part in definition.parts:
        # A rule with a count gives few dates, but is counted from its start each time.
        is_counted = part.rule is not None and part.rule.count is not None
        for group in [sorted(slots)] if is_counted else groups:
            for slot in part.slots(group[-1], group[0]):
                if slot in wanted:
                    given.setdefault(slot, part)
    return given


def content_at(definition: Definition, slot: datetime) -> dict[str, Any]:
    """Return the content of the date with this slot."""
    content = dict(definition.template)
    for change in definition.content_changes:
        if change.since <= slot:
            content.update(change.values)
    return content


def has_dates_after(definition: Definition, instant: datetime) -> bool:
    """Return whether a rule gives dates at an instant or later."""
    for part in definition.parts:
        local = times.local_of(instant, part.timezone)
        if next(part.slots(_search_limit(local), local), None) is not None:
            return True
    return any(slot >= times.local_of(instant, find_part(definition, slot).timezone) for slot in definition.added)


# Edits ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shift:
    """A change of the times of dates: they move by `delta`, and last `length`. Parts keep what is None."""

    delta: timedelta
    length: timedelta | None = None
    timezone: str | None = None
    all_day: bool | None = None


def change_content(definition: Definition, values: Mapping[str, Any], since: datetime | None = None) -> Definition:
    """Set content of all dates, or of the dates from a slot on."""
    if since is None:
        return replace(
            definition,
            template={**definition.template, **values},
            content_changes=_without(definition.content_changes, values),
        )
    earlier = [change for change in definition.content_changes if change.since < since]
    later = [change for change in definition.content_changes if change.since >= since]
    at_slot = next((change.values for change in later if change.since == since), {})
    new = ContentChange(since, {**at_slot, **values})
    others = _without([change for change in later if change.since > since], values)
    return replace(definition, content_changes=(*earlier, new, *others))


def shift(
    definition: Definition, change: Shift, since: datetime | None = None, *, keep_rule: bool = False
) -> Definition:
    """Move all dates, or those from a slot on, by the same difference in local time.

    A move to other days changes rules that name days, unless `keep_rule`.
    """
    definition, index = begin_part(definition, since)
    shifted = [_shift_part(part, change, keep_rule=keep_rule) for part in definition.parts[index:]]
    return replace(
        definition,
        parts=(*definition.parts[:index], *shifted),
        added=tuple(sorted(move_slot(slot, change, since) for slot in definition.added)),
        removed=tuple(sorted({move_slot(slot, change, since) for slot in definition.removed})),
        content_changes=tuple(
            replace(entry, since=move_slot(entry.since, change, since)) for entry in definition.content_changes
        ),
    )


def move_slot(slot: datetime, change: Shift, since: datetime | None) -> datetime:
    return slot + change.delta if since is None or slot >= since else slot


def change_rule(
    definition: Definition, rule: Rule, since: datetime | None = None, *, keep_later_parts: bool = False
) -> Definition:
    """Use another rule from a slot on, beginning with its first date there.

    Later parts are replaced, unless `keep_later_parts`: then the rule ends before the next one.
    """
    definition, index = begin_part(definition, since)
    parts, later = definition.parts[:index], definition.parts[index + 1 :]
    base = definition.parts[min(index, len(definition.parts) - 1)]
    begin = base.start if since is None else max(since, base.start) if index < len(definition.parts) else since
    if keep_later_parts and later:
        rule = end_before(rule, begin, later[0].start)
    first = next(expand(rule, begin, _search_limit(begin)), None)
    if first is None:
        check_start(rule, begin)
        raise InvalidValue("This rule has no dates after {start}.", start=times.format_datetime(begin))
    new = replace(base, rule=rule, start=first, end=first + base.length)
    if parts:
        new = replace(new, uid=_part_uid(base, first))
    return replace(definition, parts=(*parts, new, *(later if keep_later_parts else ())))


def end_series(definition: Definition, slot: datetime) -> Definition | None:
    """End the series before a slot; return None if no date is left."""
    definition, index = begin_part(definition, slot)
    added = tuple(entry for entry in definition.added if entry < slot)
    parts = definition.parts[:index] or make_single_part(definition, added)
    if not parts:
        return None
    return replace(
        definition,
        parts=parts,
        added=added,
        removed=tuple(entry for entry in definition.removed if entry < slot),
        content_changes=tuple(change for change in definition.content_changes if change.since < slot),
    )


def make_single_part(definition: Definition, added: tuple[datetime, ...]) -> tuple[Part, ...]:
    """Return a part without a rule for the first of the added dates, for a series that has no others."""
    if not added:
        return ()
    part = find_part(definition, added[0])
    return (replace(part, rule=None, start=added[0], end=added[0] + part.length),)


def change_dates(definition: Definition, add: Iterable[datetime] = (), remove: Iterable[datetime] = ()) -> Definition:
    """Add dates that no rule gives or that were removed, and leave out others."""
    add, remove = list(add), list(remove)
    added, removed = set(definition.added), set(definition.removed)
    given = find_given(definition, [*add, *remove])
    for slot in add:
        removed.discard(slot)
        if slot not in given:
            added.add(slot)
    for slot in remove:
        added.discard(slot)
        if slot in given:
            removed.add(slot)
    return replace(definition, added=tuple(sorted(added)), removed=tuple(sorted(removed)))


def is_given(definition: Definition, slot: datetime) -> bool:
    """Return whether a rule gives this slot."""
    return slot in find_given(definition, [slot])


# Helpers of edits ----------------------------------------------------------------------------


def begin_part(definition: Definition, since: datetime | None) -> tuple[Definition, int]:
    """Make a part begin at the first date from a slot on; return its index, which may be behind the last part."""
    if since is None:
        return definition, 0
    index = _find_index(definition, since)
    part = definition.parts[index]
    if part.start >= since:
        return definition, index
    first = next(part.slots(_search_limit(since), since), None)
    if first is None or part.rule is None:
        return definition, index + 1
    head = replace(part, rule=end_before(part.rule, part.start, first))
    tail = replace(
        part,
        uid=_part_uid(part, first),
        rule=rest_from(part.rule, part.start, first),
        start=first,
        end=first + part.length,
    )
    return replace(
        definition, parts=(*definition.parts[:index], head, tail, *definition.parts[index + 1 :])
    ), index + 1


def _find_index(definition: Definition, slot: datetime) -> int:
    started = [index for index, part in enumerate(definition.parts) if part.start <= slot]
    return max(started, default=0)


def _part_uid(part: Part, first: datetime) -> str:
    return str(uuid5(UUID(part.uid), first.isoformat()))


def _shift_part(part: Part, change: Shift, *, keep_rule: bool) -> Part:
    start = part.start + change.delta
    days = (start.date() - part.start.date()).days
    rule = shift_rule(part.rule, days) if part.rule is not None and days and not keep_rule else part.rule
    return replace(
        part,
        rule=rule,
        start=start,
        end=start + (part.length if change.length is None else change.length),
        timezone=part.timezone if change.timezone is None else change.timezone,
        all_day=part.all_day if change.all_day is None else change.all_day,
    )


def _without(changes: Iterable[ContentChange], values: Mapping[str, Any]) -> tuple[ContentChange, ...]:
    """Drop these values from changes, and changes without values."""
    reduced = [
        replace(change, values={name: value for name, value in change.values.items() if name not in values})
        for change in changes
    ]
    return tuple(change for change in reduced if change.values)


def _search_limit(slot: datetime) -> datetime:
    return min(slot + SEARCH_PERIOD, LAST_SLOT) if slot < LAST_SLOT - SEARCH_PERIOD else LAST_SLOT

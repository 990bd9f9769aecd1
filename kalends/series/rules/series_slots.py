"""A series' definition: its dates and content, and edits to both, as pure functions.

A slot is the local time that a rule assigns to a date. It identifies the date within its series, even if the event
has been moved to another time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import islice, pairwise
from typing import Any, Final
from uuid import UUID, uuid5

from kalends.core import times
from kalends.core.errors import InvalidValue
from kalends.core.recurrence import Rule, check_start, end_before, expand, pair_by, period_of, rest_from, shift_rule
from kalends.core.times import DateTimeInput, Span

# Within these limits, date arithmetic for a series stays within the supported years.
FIRST_YEAR: Final = 2  # no time zone can move a date before year 1
# Leaves room for computing dates up to a century after the last existing date.
LAST_YEAR: Final = times.LAST_YEAR - 200
MAX_DAYS: Final = 3660
# `group_slots` begins a new group after a longer gap between slots.
MAX_GAP: Final = timedelta(days=400)


def check_slot(slot: datetime) -> datetime:
    """Return a slot; raise unless its year is between FIRST_YEAR and LAST_YEAR."""
    if not FIRST_YEAR <= slot.year <= LAST_YEAR:
        raise make_year_error()
    return slot


def check_length(length: timedelta) -> None:
    if length > timedelta(days=MAX_DAYS):
        raise InvalidValue("a date of a series can last at most {days} days.", days=MAX_DAYS)


def make_year_error() -> InvalidValue:
    return InvalidValue("must be a date between the years {first} and {last}.", first=FIRST_YEAR, last=LAST_YEAR)


def group_slots(slots: Iterable[datetime]) -> Iterator[Sequence[datetime]]:
    """Yield sorted slots in groups without gaps longer than MAX_GAP."""
    ordered = sorted(slots)
    ends = [index for index, (first, second) in enumerate(pairwise(ordered), 1) if second - first > MAX_GAP]
    for begin, end in pairwise([0, *ends, len(ordered)]):
        yield ordered[begin:end]


# An edit treats a rule as ended if it produces no date within this period after a slot.
SEARCH_PERIOD: Final = timedelta(days=30 * 366)
LAST_SLOT: Final = datetime(times.LAST_YEAR, 12, 31)
# Maximum number of dates in a list: more than fifty years of daily dates.
MAX_LISTED: Final = 20_000


@dataclass(frozen=True, slots=True)
class Part:
    """A rule and its first date in local time. A part without a rule has only that date."""

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
        """Yield the slots from `after` to `until`, both in local time."""
        if self.rule is not None:
            return expand(self.rule, self.start, until, after=after)
        is_inside = self.start <= until and (after is None or after <= self.start)
        return iter([self.start] if is_inside else [])


@dataclass(frozen=True, slots=True)
class ContentChange:
    """Content that replaces the template at or after a slot."""

    since: datetime
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Date:
    """A date of a series, and the part that determines its length and time zone."""

    slot: datetime
    part: Part

    def span(self) -> Span:
        """Return the event's start and end. The part's length is added in local time.

        If the change to daylight saving time would put the end before the start, the event ends when it starts.
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
    # Event columns and linked record IDs (`venue_ids` …), by name.
    template: Mapping[str, Any]
    content_changes: tuple[ContentChange, ...] = ()
    added: tuple[datetime, ...] = ()
    removed: tuple[datetime, ...] = ()

    @property
    def first_date(self) -> Date:
        return Date(self.parts[0].start, self.parts[0])


class SlotTaken(Exception):
    """Raised if two dates of a series have the same slot."""

    def __init__(self, slot: datetime) -> None:
        super().__init__(slot)
        self.slot = slot


class TooManyDates(Exception):
    """Raised if the rules of a series produce more than `MAX_LISTED` dates."""


# Reading -------------------------------------------------------------------------------------


def list_dates(
    definition: Definition, until: datetime, since: datetime | None = None, *, skip_taken: bool = False
) -> list[Date]:
    """Return the rules' dates up to the instant `until` and all added dates, in order; `since` is a slot.

    Raise SlotTaken if two rules produce the same slot; with `skip_taken`, keep the earlier part's date.
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
    """Return the part in force at a slot, or the first part if the slot is earlier."""
    return definition.parts[_find_index(definition, slot)]


def date_at(definition: Definition, slot: datetime) -> Date:
    """Return the date at a slot, with the part whose rule produces it or, for an added date, the part in force."""
    return dates_at(definition, [slot])[0]


def dates_at(definition: Definition, slots: Sequence[datetime]) -> list[Date]:
    """Return the dates at these slots, without expanding the rules separately for each slot."""
    given = find_given(definition, slots)
    return [Date(slot, given.get(slot) or find_part(definition, slot)) for slot in slots]


def find_given(definition: Definition, slots: Sequence[datetime]) -> dict[datetime, Part]:
    """Return which of these slots the rules produce, each with the first part that produces it."""
    if not slots:
        return {}
    wanted, groups = frozenset(slots), list(group_slots(slots))
    given: dict[datetime, Part] = {}
    for part in definition.parts:
        # A rule with a count must be expanded from its first date, so expand it only once for all slots.
        is_counted = part.rule is not None and part.rule.count is not None
        for group in [sorted(slots)] if is_counted else groups:
            for slot in part.slots(group[-1], group[0]):
                if slot in wanted:
                    given.setdefault(slot, part)
    return given


def content_at(definition: Definition, slot: datetime) -> dict[str, Any]:
    content = dict(definition.template)
    for change in definition.content_changes:
        if change.since <= slot:
            content.update(change.values)
    return content


def has_dates_after(definition: Definition, instant: datetime) -> bool:
    """Return whether the series has dates at or after an instant."""
    for part in definition.parts:
        local = times.local_of(instant, part.timezone)
        if next(part.slots(_search_limit(local), local), None) is not None:
            return True
    return any(slot >= times.local_of(instant, find_part(definition, slot).timezone) for slot in definition.added)


# Edits ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shift:
    """New times for dates: move them by `delta` and set the other fields; None leaves a field unchanged."""

    delta: timedelta
    length: timedelta | None = None
    timezone: str | None = None
    all_day: bool | None = None


def change_content(definition: Definition, values: Mapping[str, Any], since: datetime | None = None) -> Definition:
    """Set content for all dates, or for dates at or after a slot."""
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
    """Move all dates, or the dates at or after a slot, by the same amount of local time.

    If the dates move to other days, the rules' weekdays and end dates move too, unless `keep_rule` is set.
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
    """Apply another rule to the dates at or after a slot, starting with the first date that the rule produces there.

    The rule replaces later parts. With `keep_later_parts`, the rule ends before the next part.
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
    """End the series before a slot; return None if no dates remain."""
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
    """Return a part without a rule, starting at the first added date, for a series with only added dates."""
    if not added:
        return ()
    part = find_part(definition, added[0])
    return (replace(part, rule=None, start=added[0], end=added[0] + part.length),)


def change_dates(definition: Definition, add: Iterable[datetime] = (), remove: Iterable[datetime] = ()) -> Definition:
    """Add extra or previously skipped dates, and skip other dates."""
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


# Helpers for edits ---------------------------------------------------------------------------


def begin_part(definition: Definition, since: datetime | None) -> tuple[Definition, int]:
    """Start a new part at the first date at or after a slot; return its index, possibly past the last part."""
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
    """Remove these values from changes; drop changes that become empty."""
    reduced = [
        replace(change, values={name: value for name, value in change.values.items() if name not in values})
        for change in changes
    ]
    return tuple(change for change in reduced if change.values)


def _search_limit(slot: datetime) -> datetime:
    return min(slot + SEARCH_PERIOD, LAST_SLOT) if slot < LAST_SLOT - SEARCH_PERIOD else LAST_SLOT


# Pairing existing events with a new rule's dates, so the events keep their identity -----------

Pair = tuple[datetime | None, Date | None]


def pair_slots(old: Sequence[datetime], new: Sequence[Date]) -> list[Pair]:
    """Pair the slots of existing events with new dates: by slot, then by day, then by the rule's periods."""
    by_slot = {date.slot: date for date in new}
    pairs: list[Pair] = []
    left_old, left_new = [*old], [*by_slot]
    for key in (datetime.isoformat, datetime.date):
        found, left_old, left_new = pair_by(key, left_old, left_new)
        pairs += [(slot, by_slot[moment]) for slot, moment in found]
    # Also assign old slots to the new rule's periods (days, weeks, months or years).
    for rule in dict.fromkeys(by_slot[moment].part.rule for moment in left_new):
        if rule is not None:
            moments = [moment for moment in left_new if by_slot[moment].part.rule == rule]
            found, left_old, _ = pair_by(partial(period_of, rule), left_old, moments)
            pairs += [(slot, by_slot[moment]) for slot, moment in found]
    used = {date.slot for _, date in pairs if date is not None}
    return [*pairs, *[(slot, None) for slot in left_old], *[(None, date) for date in new if date.slot not in used]]

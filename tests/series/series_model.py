"""A series in plain Python: what its events must be after any sequence of edits.

Dates come from python-dateutil. An edit from a date on cuts a segment in two and moves its dates; unlike the code
under test, the model never rewrites a rule.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from kalends.core.recurrence import read_rule
from kalends.series.operations.series_matching import compute_horizon
from kalends.series.rules.series_slots import Date, Part, pair_slots
from tests.series.series_model_values import FAR, SINGLE, Occurrence, Refused, ScopeEdit, Segment, settle

TIMES = "times"


@dataclass
class SeriesModel:
    id: int
    segments: list[Segment]
    template: dict[str, Any]
    created_until: datetime | None = None  # None: all dates have been created
    changes: list[tuple[datetime, dict[str, Any]]] = field(default_factory=list)
    added: set[datetime] = field(default_factory=set)
    removed: set[datetime] = field(default_factory=set)
    events: dict[int, Occurrence] = field(default_factory=dict)
    trashed: bool = False

    # Reading -----------------------------------------------------------------------------------

    def rule_slots(self, until: datetime) -> dict[datetime, Segment]:
        found: dict[datetime, Segment] = {}
        for segment in self.segments:
            for slot in segment.slots(until.astimezone(ZoneInfo(segment.zone)).replace(tzinfo=None)):
                if slot in found and slot not in self.removed:
                    raise Refused(409, "series_slot_taken")
                found[slot] = segment
        return found

    def dates(self) -> dict[datetime, Segment]:
        given = self.rule_slots(self.created_until or FAR.replace(tzinfo=UTC))
        extra = {slot: self.segment_at(slot) for slot in self.added if slot not in given}
        return {slot: segment for slot, segment in {**given, **extra}.items() if slot not in self.removed}

    def segment_at(self, slot: datetime) -> Segment:
        given = [segment for segment in self.segments if slot in segment.slots(slot)]
        return given[0] if given else [*self.segments[:1], *[s for s in self.segments if s.first <= slot]][-1]

    def make_single(self, since: datetime = datetime.min, before: datetime = datetime.max) -> list[Segment]:
        """Return a segment of the first of the added dates in a period, for a series that has no others."""
        slots = [slot for slot in self.added if since <= slot < before]
        parts = {slot: self.segment_at(slot) for slot in sorted(slots)[:1]}
        return [Segment(SINGLE, slot, segment.length, segment.zone) for slot, segment in parts.items()]

    def content_at(self, slot: datetime) -> dict[str, Any]:
        content = dict(self.template)
        for since, values in self.changes:
            if since <= slot:
                content |= values
        return content

    def has_dates_after(self, until: datetime) -> bool:
        given = ((segment, segment.slots()) for segment in self.segments)
        added = ((self.segment_at(slot), [slot]) for slot in self.added)
        return any(
            slot >= until.astimezone(ZoneInfo(segment.zone)).replace(tzinfo=None)
            for segment, slots in [*given, *added]
            for slot in slots
        )

    def create_until(self, until: datetime) -> None:
        """Note until when dates exist."""
        self.created_until = until if self.has_dates_after(until) else None

    def refresh_until(self) -> None:
        """Note that all dates exist if an edit has left none after those that do."""
        if self.created_until is not None:
            self.create_until(self.created_until)

    def extend(self, now: datetime) -> None:
        """Note what the job creates: blocks of 31 days, until they reach the horizon."""
        while self.created_until is not None and self.created_until < compute_horizon(now, now):
            begin, until = self.created_until, self.created_until + timedelta(days=31)
            self.create_until(until)
            block = {slot for slot, segment in self.dates().items() if segment.is_between(slot, begin, until)}
            for event in self.events.values():
                if event.trashed and event.slot in block:
                    self._apply(event, event.slot, ScopeEdit(None))

    def find_planned(self) -> datetime | None:
        """Return a slot that a rule gives a month or more after the last date that exists."""
        begin = (self.created_until or FAR).replace(tzinfo=None) + timedelta(days=31)
        slots = (slot for segment in self.segments for slot in segment.slots() if slot > begin)
        return min(slots, default=None)

    def horizon(self, now: datetime) -> datetime:
        first = self.segments[0]
        start = first.first.replace(tzinfo=ZoneInfo(first.zone)).astimezone(UTC)
        horizon = compute_horizon(now, start)
        return max(horizon, self.created_until or horizon)

    def add_missing(self, ids: dict[datetime, int], now: datetime) -> None:
        """Add the events that were created, given by slot: those of all dates that have none and are not over."""
        existing = {event.slot for event in self.events.values()}
        for slot, segment in self.dates().items():
            event = Occurrence(0, slot, *segment.times_at(slot), self.content_at(slot))
            if slot not in existing and slot in ids:
                self.events[ids[slot]] = replace(event, id=ids[slot])

    def active(self) -> list[Occurrence]:
        return sorted((event for event in self.events.values() if not event.trashed), key=lambda event: event.slot)

    def list_trashed(self) -> list[Occurrence]:
        return [event for event in self.events.values() if event.trashed]

    # Edits -------------------------------------------------------------------------------------

    def edit_this(
        self, event: Occurrence, fields: dict[str, Any], start: datetime | None = None, end: datetime | None = None
    ) -> None:
        content = self.content_at(event.slot)
        for name, value in fields.items():
            if event.fields[name] != value:
                event.fields[name] = value
                (event.own.discard if content[name] == value else event.own.add)(name)
        if start is None or end is None:
            return
        settled = settle(start, end, event.zone)
        if (event.start, event.end) != settled:
            event.start, event.end = settled
            expected = self.segment_at(event.slot).times_at(event.slot)
            (event.own.discard if expected == event.times else event.own.add)(TIMES)

    def edit_scope(self, edit: ScopeEdit, now: datetime) -> None:
        """Raise Refused, or change the series and its events."""
        past = [event for event in self.active() if event.is_past(now)]
        upcoming = [
            event
            for event in self.active()
            if (edit.past or not event.is_past(now)) and (edit.since is None or event.slot >= edit.since)
        ]
        anchor = min((event.slot for event in upcoming), default=edit.since or self.segments[0].first)
        # Dates that took place at their slots keep their times; one that was moved to later is no date of the rest.
        over = max((event.slot for event in past if TIMES not in event.own), default=datetime.min)
        anchor = min((event.slot for event in upcoming if event.slot > over), default=anchor)
        times_since = anchor if edit.since is not None or past else None
        # Added dates before the edited ones keep their times, though those of their slots may change.
        earlier_added = [
            (event, self.segment_at(event.slot).times_at(event.slot))
            for event in self.active()
            if event.slot in self.added and event not in upcoming and not event.is_past(now)
        ]
        if edit.fields:
            self._change_content(edit.fields, edit.since)
        moves = edit.time_of_day is not None or edit.zone is not None
        begin = anchor
        shifted = timedelta()
        if moves:
            if edit.time_of_day is not None:
                # The new time is that of the edited date; others move by the same difference.
                shifted = datetime.combine(edit.reference.date(), edit.time_of_day.time()) - edit.reference
            begin = anchor + shifted
            self._shift(times_since, shifted, edit)
            for event in self.events.values():
                if event not in upcoming and (edit.since is None or event.slot >= edit.since):
                    event.slot = self._moved(event.slot, times_since, shifted)
        if edit.rule is not None:
            self._change_rule(edit.rule, None if times_since is None else begin, keep_later=edit.since is None)
            self.create_until(self.horizon(now))
        elif moves and self.created_until is not None:
            # The job looks at the last days again, because dates may have moved there, but not at the past.
            earlier_by = timedelta(days=1) - min(shifted, timedelta())
            self.create_until(max(self.created_until - earlier_by, min(self.created_until, now)))
        else:
            self.refresh_until()
        for event, expected in earlier_added:
            if event.slot in self.added and self.segment_at(event.slot).times_at(event.slot) != expected:
                event.own.add(TIMES)
        if edit.rule is None:
            moved = {event.id: self._moved(event.slot, times_since, shifted) for event in upcoming} if moves else {}
            self._settle(upcoming, {event.id: moved.get(event.id, event.slot) for event in upcoming}, edit)
        else:
            earlier = [event for event in upcoming if times_since is not None and event.slot < times_since]
            later = [event for event in upcoming if event not in earlier]
            self._settle(earlier, {event.id: event.slot for event in earlier}, edit)
            taken = {event.slot for event in past}
            self._pair(later, None if times_since is None else begin, edit, taken, now)
        self._check_slots()

    def _check_slots(self) -> None:
        active = self.active()
        if len({event.slot for event in active}) < len(active):
            raise Refused(409, "series_slot_taken")

    @staticmethod
    def _moved(slot: datetime, since: datetime | None, by: timedelta) -> datetime:
        return slot + by if since is None or slot >= since else slot

    def _change_content(self, fields: dict[str, Any], since: datetime | None) -> None:
        if since is None:
            self.template |= fields
            self.changes = [(at, _without(values, fields)) for at, values in self.changes]
            return
        self.changes = [(at, values if at < since else _without(values, fields)) for at, values in self.changes]
        self.changes = sorted([*self.changes, (since, dict(fields))], key=lambda change: change[0])

    def _shift(self, since: datetime | None, by: timedelta, edit: ScopeEdit) -> None:
        halves = [
            (half, since is None or half.first >= since)
            for segment in self.segments
            for half in ([segment] if since is None else segment.cut(since))
        ]
        for half, is_moved in halves:
            # A rule that names days of months or years cannot move to other days.
            names_days = half.rule.startswith(("FREQ=MONTHLY", "FREQ=YEARLY"))
            if is_moved and names_days and half.first.date() != (half.first + by).date():
                raise Refused(400, "rest_invalid_param")
        self.segments = [
            replace(half, moved=half.moved + by, length=edit.length or half.length, zone=edit.zone or half.zone)
            if is_moved
            else half
            for half, is_moved in halves
        ]
        self.added = {self._moved(slot, since, by) for slot in self.added}
        self.removed = {self._moved(slot, since, by) for slot in self.removed}
        self.changes = [(self._moved(at, since, by), values) for at, values in self.changes]

    def _change_rule(self, rule: str, since: datetime | None, *, keep_later: bool) -> None:
        segments = [
            half for segment in self.segments for half in ([segment] if since is None else segment.cut(since))
        ]
        index = next((n for n, entry in enumerate(segments) if since is None or entry.first >= since), len(segments))
        base = segments[min(index, len(segments) - 1)]
        begin = base.first if since is None else max(since, base.first) if index < len(segments) else since
        later = segments[index + 1 :] if keep_later else []
        new = Segment(rule, begin, base.length, base.zone, before=later[0].first if later else datetime.max)
        if new.first == datetime.max:
            raise Refused(400, "rest_invalid_param")
        self.segments = [*segments[:index], new, *later]

    def _settle(self, events: Iterable[Occurrence], slots: dict[int, datetime], edit: ScopeEdit) -> None:
        self.dates()
        for event in events:
            self._apply(event, slots[event.id], edit)

    def _apply(self, event: Occurrence, slot: datetime, edit: ScopeEdit) -> None:
        if slot != event.slot:
            # An event in the trash leaves the series when another one gets its slot.
            others = [other for other in self.events.values() if other.trashed and other.slot == slot]
            for other in others:
                del self.events[other.id]
        event.slot, event.trashed = slot, False
        if edit.replaces:
            event.own -= {*edit.fields, *([TIMES] if edit.changes_times else [])}
        content, segment = self.content_at(slot), self.segment_at(slot)
        event.fields = {name: event.fields[name] if name in event.own else content[name] for name in content}
        if TIMES not in event.own:
            event.start, event.end, event.zone = segment.times_at(slot)

    def _pair(
        self, events: list[Occurrence], since: datetime | None, edit: ScopeEdit, taken: set[datetime], now: datetime
    ) -> None:
        given = {slot: segment for slot, segment in self.dates().items() if slot not in taken}
        dates = {slot: segment for slot, segment in given.items() if since is None or slot >= since}
        parts = {segment: _make_part(segment) for segment in set(dates.values())}
        by_slot = {event.slot: event for event in events}
        pairs = pair_slots(list(by_slot), [Date(slot, parts[dates[slot]]) for slot in sorted(dates)])
        lost = [by_slot[old] for old, new in pairs if old is not None and new is None]
        if any(event.own for event in lost) and not edit.replaces:
            raise Refused(409, "series_overrides_lost")
        # A date whose event is in the trash gets it back, unless its time has passed.
        waiting = {
            event.slot: event
            for event in self.events.values()
            if event.trashed and event.slot in dates and not dates[event.slot].has_ended(event.slot, now)
        }
        for event in lost:
            event.trashed = True
        for old, new in pairs:
            if new is not None and (old is not None or new.slot in waiting):
                self._apply(by_slot[old] if old is not None else waiting[new.slot], new.slot, edit)

    def trash_following(self, since: datetime, now: datetime) -> bool:
        """End the series before a slot; return whether the series goes to the trash, because no date is left."""
        upcoming = [event for event in self.active() if not event.is_past(now) and event.slot >= since]
        since = min((event.slot for event in upcoming), default=since)
        for event in upcoming:
            event.trashed = True
        segments = [half for segment in self.segments for half in segment.cut(since) if half.first < since]
        segments = segments or self.make_single(before=since)
        if not segments:
            return True
        self.segments, self.added = segments, {slot for slot in self.added if slot < since}
        self.removed = {slot for slot in self.removed if slot < since}
        self.changes = [change for change in self.changes if change[0] < since]
        return False

    def trash_one(self, event: Occurrence) -> None:
        event.trashed = True
        self.added.discard(event.slot)
        if event.slot in self.segment_at(event.slot).slots(event.slot):
            self.removed.add(event.slot)

    def is_last(self, event: Occurrence) -> bool:
        """Return whether the series has no other date, neither now nor later."""
        return self.created_until is None and self.active() == [event]

    def restore_one(self, event: Occurrence) -> None:
        event.trashed = False
        self.removed.discard(event.slot)
        if event.slot not in self.segment_at(event.slot).slots(event.slot):
            self.added.add(event.slot)
        # It comes back as it was: what the series has changed meanwhile is its own.
        self.find_own_fields(event)

    def find_own_fields(self, event: Occurrence) -> None:
        """Make what differs from the series the event's own."""
        content, segment = self.content_at(event.slot), self.segment_at(event.slot)
        event.own = {name for name in content if event.fields[name] != content[name]}
        if event.times != segment.times_at(event.slot):
            event.own.add(TIMES)

    def leave_out(self, event: Occurrence) -> Occurrence:
        """Remove an event that becomes independent or is deleted permanently; return it as it was."""
        copy = event.copy()
        self.trash_one(event)
        del self.events[event.id]
        return copy

    def trash_all(self, now: datetime) -> None:
        """Move the series to the trash with its upcoming dates."""
        self.trashed = True
        for event in self.active():
            event.trashed = not event.is_past(now)

    def dissolve(self, keep: str, now: datetime) -> list[Occurrence]:
        """Move the series to the trash; return the events that stay."""
        active = self.active()
        upcoming = sorted((event for event in active if not event.is_past(now)), key=Occurrence.instant)
        self.trashed = True
        self.events = {event.id: event for event in self.events.values() if event.trashed}
        return {"all": active, "upcoming": upcoming, "next": upcoming[:1]}[keep]

    def follow(self, event: Occurrence) -> None:
        self._apply(event, event.slot, ScopeEdit(None, fields=self.template, zone=event.zone, replaces=True))

    def add_date(self, slot: datetime) -> None:
        """Add a date that is none yet. If its event is in the trash, it comes back."""
        trashed = [event for event in self.events.values() if event.trashed and event.slot == slot]
        self.removed.discard(slot)
        if slot not in self.segment_at(slot).slots(slot):
            self.added.add(slot)
        for event in trashed:
            self._apply(event, slot, ScopeEdit(None))

    def undo_to(self, earlier: "SeriesModel", created: Iterable[Occurrence], now: datetime) -> "SeriesModel":
        """Return the series as it was. Events that were created since go to the trash."""
        result = earlier.copy()
        result.events |= {event.id: replace(event, trashed=True) for event in created}
        result.created_until = self.created_until
        result.create_until(result.horizon(now))
        result._take_back(now)
        return result

    def _take_back(self, now: datetime) -> None:
        """Take events back from the trash whose dates the series has, unless their time has passed."""
        dates, taken = self.dates(), {event.slot for event in self.active()}
        for event in self.list_trashed():
            if event.slot in dates and event.slot not in taken and not dates[event.slot].has_ended(event.slot, now):
                self._apply(event, event.slot, ScopeEdit(None))

    def copy(self) -> "SeriesModel":
        """Copy what edits change in place, which is many times quicker than a deep copy."""
        return replace(
            self,
            segments=list(self.segments),
            template=dict(self.template),
            changes=list(self.changes),
            added=set(self.added),
            removed=set(self.removed),
            events={event_id: event.copy() for event_id, event in self.events.items()},
        )


def _without(values: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _make_part(segment: Segment) -> Part:
    rule = read_rule(segment.rule, segment.zone)
    return Part("", rule, segment.start, segment.start, segment.zone, all_day=False)

"""The events of a series, matched with the dates that they are to have after an edit."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from kalends.core import times
from kalends.core.recurrence import Rule
from kalends.core.series import Date, Definition, Shift, dates_at, find_given, list_dates, move_slot
from kalends.core.series_pairing import pair_slots
from kalends.kinds.events import EVENTS
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql

# Dates exist as events this long ahead: more than the two years of the default list, so that its total is complete.
HORIZON_MONTHS: Final = 25


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The events of a series by their slots."""

    active: Mapping[datetime, Row]
    trashed: Mapping[datetime, Row]


@dataclass(frozen=True, slots=True)
class Match:
    """An event and the date that it gets. Without a date it goes to the trash; without an event, it is created.

    `slot_only`: the event stays as it is, because it has taken place or is in the trash, but its slot moves along.
    """

    row: Row | None
    date: Date | None
    slot_only: bool = False


async def load_occurrences(tx: Transaction, series_id: int, since: datetime | None = None) -> Occurrences:
    """Load the events of a series, from a slot on, in the order of their slots."""
    where = Sql("r.site_id = ? AND r.series_id = ?", tx.site.id, series_id)
    if since is not None:
        where += Sql("AND r.slot >= ?", since)
    rows = await tx.fetch_all(EVENTS.select(where + Sql("ORDER BY r.slot")))
    return Occurrences(
        {row["slot"]: row for row in rows if row["status"] != "trash"},
        {row["slot"]: row for row in rows if row["status"] == "trash"},
    )


def is_past(row: Row, now: datetime) -> bool:
    """Return whether a date has taken place: edits of its series leave it as it is."""
    return bool(row["end_utc"] < now)


def find_first_upcoming(rows: Iterable[Row], now: datetime, since: datetime | None = None) -> datetime | None:
    """Return the slot of the first date that has not taken place yet, from a slot on."""
    slots = (row["slot"] for row in rows if not is_past(row, now) and (since is None or row["slot"] >= since))
    return min(slots, default=None)


def find_next(occurrences: Occurrences, now: datetime, anchor: datetime) -> datetime:
    """Return the first slot of an upcoming date behind those that have taken place at their slots, from `anchor` on.

    A date that was moved to a later time may be upcoming though its slot lies before them.
    """
    over = [slot for slot, row in occurrences.active.items() if is_past(row, now) and not _has_own_times(row)]
    last = max(over, default=None)
    upcoming = (slot for slot, row in occurrences.active.items() if not is_past(row, now))
    slots = (slot for slot in upcoming if last is None or slot > last)
    return min((slot for slot in slots if slot >= anchor), default=anchor)


def _has_own_times(row: Row) -> bool:
    return "times" in (row["own_fields"] or ())


def compute_horizon(now: datetime, start: datetime, months: int = HORIZON_MONTHS) -> datetime:
    """Return the instant before which the dates of a series are created; a late start postpones it."""
    begin = max(now, start).replace(hour=0, minute=0, second=0, microsecond=0)
    year, month = divmod(begin.month - 1 + months, 12)
    if begin.year + year >= times.LAST_YEAR:
        return begin
    return begin.replace(year=begin.year + year, month=month + 1, day=1) + timedelta(days=begin.day - 1)


def match_same(rows: Sequence[Row], definition: Definition) -> list[Match]:
    """Match each event with the date of its slot."""
    dates = dates_at(definition, [row["slot"] for row in rows])
    return [Match(row, date) for row, date in zip(rows, dates, strict=True)]


def match_shifted(rows: Sequence[Row], definition: Definition, change: Shift, since: datetime | None) -> list[Match]:
    """Match each event with its date after a shift, to which its slot moves along."""
    dates = dates_at(definition, [move_slot(row["slot"], change, since) for row in rows])
    return [Match(row, date) for row, date in zip(rows, dates, strict=True)]


def match_slots(rows: Iterable[Row], definition: Definition, change: Shift, since: datetime | None) -> list[Match]:
    """Match events that an edit does not change with their slots after a shift."""
    return [replace(match, slot_only=True) for match in match_shifted([*rows], definition, change, since)]


def match_by_rule(
    rows: Sequence[Row],
    definition: Definition,
    until: datetime,
    since: datetime | None,
    now: datetime,
    *,
    taken: Collection[datetime] = (),
) -> list[Match]:
    """Match events with the dates of a new rule. Dates without an event that lie in the past are left out.

    So are the slots in `taken`, which events have that were moved to the past.
    """
    by_slot = {row["slot"]: row for row in rows}
    dates = [date for date in list_dates(definition, until, since) if date.slot not in taken]
    pairs = pair_slots(list(by_slot), dates)
    matches = [Match(by_slot[slot] if slot is not None else None, date) for slot, date in pairs]
    return [match for match in matches if match.row is not None or not has_ended(match.date, now)]


def has_ended(date: Date | None, now: datetime) -> bool:
    return date is None or date.span().end.utc < now


def find_later_dates(definition: Definition, rows: Iterable[Row], dates: Iterable[Date]) -> list[Date]:
    """Return the dates of events that a rule gives but that are not among the dates up to the horizon."""
    known = {*definition.removed, *[date.slot for date in dates]}
    slots = [row["slot"] for row in rows if row["status"] != "trash" and row["slot"] not in known]
    return [Date(slot, part) for slot, part in find_given(definition, slots).items()]


def match_definition(rows: Sequence[Row], dates: Sequence[Date], now: datetime) -> list[Match]:
    """Match upcoming events with the dates of their slots, and dates that have not ended with new events."""
    given = {date.slot: date for date in dates}
    active = {row["slot"]: row for row in rows if row["status"] != "trash"}
    matches = [Match(row, given.get(slot)) for slot, row in active.items() if not is_past(row, now)]
    return [
        *matches,
        *[Match(None, date) for slot, date in given.items() if slot not in active and not has_ended(date, now)],
    ]


@dataclass(frozen=True, slots=True)
class TimeChange:
    """New times, a new rule or both, and the slot from which on; None: all dates."""

    shift: Shift | None
    rule: Rule | None
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Events:
    """The events that an edit changes, and those that have taken place."""

    changed: Sequence[Row]
    past: Sequence[Row]


def match_events(
    change: TimeChange, events: Events, after: Definition, until: datetime, now: datetime
) -> list[Match]:
    """Match events with their dates after an edit."""
    if change.rule is None and change.shift is None:
        return match_same(events.changed, after)
    if change.rule is None:
        return match_shifted(events.changed, after, change.shift or Shift(timedelta()), change.since)
    # Dates that were moved from the past to later times are not dates of the new rule.
    earlier = [row for row in events.changed if change.since is not None and row["slot"] < change.since]
    later = events.changed[len(earlier) :]
    moved = change.shift or Shift(timedelta())
    taken = {move_slot(row["slot"], moved, change.since) for row in events.past}
    since = change.since + moved.delta if change.since is not None else None
    return match_same(earlier, after) + match_by_rule(later, after, until, since, now, taken=taken)

"""Matches a series' events with their dates after an edit."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.series_kind import TIMES
from kalends.core import times
from kalends.core.recurrence import Rule
from kalends.series.rules.series_slots import (
    Date,
    Definition,
    Shift,
    dates_at,
    find_given,
    list_dates,
    move_slot,
    pair_slots,
)
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql

# How many months ahead to create events. This must exceed two years, the range of lists without date filters.
HORIZON_MONTHS: Final = 25


@dataclass(frozen=True, slots=True)
class Occurrences:
    active: Mapping[datetime, Row]
    trashed: Mapping[datetime, Row]


@dataclass(frozen=True, slots=True)
class Match:
    """An event and its new date. An event without a date goes to the trash; a date without an event gets a new one.

    `slot_only` means that only the slot of a past or trashed event moves.
    """

    row: Row | None
    date: Date | None
    slot_only: bool = False


async def load_rows(tx: Transaction, series_id: int, since: datetime | None = None) -> list[Row]:
    """Load a series' events at or after a slot, including trashed ones, ordered by slot."""
    where = Sql("r.site_id = ? AND r.series_id = ?", tx.site.id, series_id)
    if since is not None:
        where += Sql("AND r.slot >= ?", since)
    return await tx.fetch_all(EVENTS.select(where + Sql("ORDER BY r.slot")))


async def load_occurrences(tx: Transaction, series_id: int, since: datetime | None = None) -> Occurrences:
    rows = await load_rows(tx, series_id, since)
    return Occurrences(
        {row["slot"]: row for row in rows if row["status"] != "trash"},
        {row["slot"]: row for row in rows if row["status"] == "trash"},
    )


def is_past(row: Row, now: datetime) -> bool:
    """Return whether an event is over. By default, series edits do not change past events."""
    return bool(row["end_utc"] < now)


def find_first_upcoming(rows: Iterable[Row], now: datetime, since: datetime | None = None) -> datetime | None:
    """Return the first upcoming slot at or after a slot."""
    slots = (row["slot"] for row in rows if not is_past(row, now) and (since is None or row["slot"] >= since))
    return min(slots, default=None)


def find_next(occurrences: Occurrences, now: datetime, anchor: datetime) -> datetime:
    """Return the first upcoming slot at or after `anchor` and after all past slots, or `anchor` if there is none.

    An event that was moved to a later time can be upcoming even if its slot precedes past slots.
    """
    rows = occurrences.active.items()
    over = [slot for slot, row in rows if is_past(row, now) and TIMES not in (row["own_fields"] or ())]
    last = max(over, default=None)
    upcoming = (slot for slot, row in rows if not is_past(row, now) and (last is None or slot > last))
    return min((slot for slot in upcoming if slot >= anchor), default=anchor)


def compute_horizon(now: datetime, start: datetime) -> datetime:
    """Return when to stop creating events: `HORIZON_MONTHS` after now or, if it is later, after the start."""
    begin = max(now, start).replace(hour=0, minute=0, second=0, microsecond=0)
    year, month = divmod(begin.month - 1 + HORIZON_MONTHS, 12)
    if begin.year + year >= times.LAST_YEAR:
        return begin
    return begin.replace(year=begin.year + year, month=month + 1, day=1) + timedelta(days=begin.day - 1)


def match_same(rows: Sequence[Row], definition: Definition) -> list[Match]:
    """Match each event with the date at its slot."""
    dates = dates_at(definition, [row["slot"] for row in rows])
    return [Match(row, date) for row, date in zip(rows, dates, strict=True)]


def match_shifted(rows: Sequence[Row], definition: Definition, change: Shift, since: datetime | None) -> list[Match]:
    """Match each event with its date after a shift. The shift also moves the slots."""
    dates = dates_at(definition, [move_slot(row["slot"], change, since) for row in rows])
    return [Match(row, date) for row, date in zip(rows, dates, strict=True)]


def match_slots(rows: Iterable[Row], definition: Definition, change: Shift, since: datetime | None) -> list[Match]:
    """Match events that keep their times with their new slots after a shift."""
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
    """Match events with a new rule's dates, omitting past dates without an event.

    Also omit the slots in `taken`, because past events have them.
    """
    by_slot = {row["slot"]: row for row in rows}
    dates = [date for date in list_dates(definition, until, since) if date.slot not in taken]
    pairs = pair_slots(list(by_slot), dates)
    matches = [Match(by_slot[slot] if slot is not None else None, date) for slot, date in pairs]
    return [match for match in matches if match.row is not None or not has_ended(match.date, now)]


def has_ended(date: Date | None, now: datetime) -> bool:
    return date is None or date.span().end.utc < now


def find_later_dates(definition: Definition, rows: Iterable[Row], dates: Iterable[Date]) -> list[Date]:
    """Return the dates beyond `dates` that the rules still produce and that already have an event."""
    known = {*definition.removed, *[date.slot for date in dates]}
    slots = [row["slot"] for row in rows if row["status"] != "trash" and row["slot"] not in known]
    return [Date(slot, part) for slot, part in find_given(definition, slots).items()]


def match_definition(rows: Sequence[Row], dates: Sequence[Date], now: datetime) -> list[Match]:
    """Match upcoming events with the dates at their slots; other dates that have not ended become new events."""
    given = {date.slot: date for date in dates}
    active = {row["slot"]: row for row in rows if row["status"] != "trash"}
    matches = [Match(row, given.get(slot)) for slot, row in active.items() if not is_past(row, now)]
    return [
        *matches,
        *[Match(None, date) for slot, date in given.items() if slot not in active and not has_ended(date, now)],
    ]


@dataclass(frozen=True, slots=True)
class TimeChange:
    """New times, a new rule or both, and the first affected slot; None means all dates."""

    shift: Shift | None
    rule: Rule | None
    since: datetime | None


def match_events(
    change: TimeChange,
    rows: Sequence[Row],
    untouched: Sequence[Row],
    after: Definition,
    *,
    until: datetime,
    now: datetime,
) -> list[Match]:
    """Match the edited events in `rows` with their dates after the edit. The `untouched` events are past."""
    moved = change.shift or Shift(timedelta())
    if change.rule is None:
        return match_shifted(rows, after, moved, change.since)
    # The new rule does not apply to events that have an earlier slot but were moved to a later time.
    earlier = [row for row in rows if change.since is not None and row["slot"] < change.since]
    later = rows[len(earlier) :]
    taken = {move_slot(row["slot"], moved, change.since) for row in untouched}
    since = change.since + moved.delta if change.since is not None else None
    return match_same(earlier, after) + match_by_rule(later, after, until, since, now, taken=taken)

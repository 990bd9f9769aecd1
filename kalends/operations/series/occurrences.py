"""The dates of a series: its events, the dates that are left out, and those that are still to be created."""

from collections.abc import Iterable, Iterator
from datetime import datetime, time, timedelta
from heapq import merge
from itertools import islice
from typing import Any, Final

from kalends.core import errors, times
from kalends.core.errors import InvalidValue
from kalends.core.series import LAST_SLOT, Date, Definition, Part, date_at
from kalends.kinds.kind import Kind
from kalends.operations import event_passwords, permissions
from kalends.operations.context import OperationContext, Outcome
from kalends.operations.records import fetch_readable_row
from kalends.store import Row
from kalends.store.series import decode_definition
from kalends.store.sql import Sql

MADE: Final = "made"
REMOVED: Final = "removed"
PLANNED: Final = "planned"
STATES: Final = (MADE, REMOVED, PLANNED)
MAX_OCCURRENCES: Final = 1000
# Later dates are computed for this many years, so that the cost of rules with rare dates is bounded.
PLANNED_YEARS: Final = 100
FIRST_SLOT: Final = datetime(1, 1, 1)
END_OF_DAY: Final = time(23, 59, 59)

Entry = dict[str, Any]


async def list_occurrences(kind: Kind, context: OperationContext) -> Outcome:
    """Return the dates of a series in the order of their slots."""
    series = await fetch_readable_row(kind, context)
    definition = decode_definition(series)
    since, until = _read_range(context, definition)
    states = context.values.get("state", STATES)
    rows = await _load_events(context, series["id"], since, until)
    entries: list[Entry] = []
    if MADE in states:
        entries += [_serialize_event(context, row, MADE) for row in rows if row["status"] != "trash"]
    if REMOVED in states:
        entries += _list_removed(context, definition, rows, since, until)
    if PLANNED in states:
        entries += _list_planned(series, definition, since, until)
    entries.sort(key=lambda entry: str(entry["slot"]))
    shown = entries[:MAX_OCCURRENCES]
    return Outcome({"occurrences": shown, "more": len(entries) > len(shown)})


def _read_range(context: OperationContext, definition: Definition) -> tuple[datetime, datetime]:
    """Return the first and the last slot that are wanted. A day without a time is the whole day."""
    zone, bounds = definition.parts[0].timezone, [FIRST_SLOT, LAST_SLOT]
    for index, name in enumerate(("from", "to")):
        if name in context.values:
            bounds[index] = _read_bound(context, name, zone, is_end=name == "to")
    return bounds[0], bounds[1]


def _read_bound(context: OperationContext, name: str, zone: str, *, is_end: bool) -> datetime:
    try:
        moment = times.make_absolute(context.values[name], context.transaction.now, zone)
        wall = moment.wall if moment.offset is None else times.resolve(moment, zone).wall
    except InvalidValue as error:
        raise errors.invalid_params({name: errors.for_param(name, error.message)}) from error
    return datetime.combine(wall.date(), END_OF_DAY) if is_end and moment.is_date_only else wall


async def _load_events(context: OperationContext, series_id: int, since: datetime, until: datetime) -> list[Row]:
    """Load the events that the caller may read, the first ones of the range."""
    tx = context.transaction
    return await tx.fetch_all(
        Sql(
            """SELECT r.id, r.slot, r.start_local, r.end_local, r.timezone, r.status, r.own_fields, r.password_hash
                FROM events r WHERE r.site_id = ? AND r.series_id = ? AND r.slot BETWEEN ? AND ? AND""",
            tx.site.id,
            series_id,
            since,
            until,
        )
        + permissions.readable_condition(context.actor)
        + Sql("ORDER BY r.slot LIMIT ?", MAX_OCCURRENCES + 1)
    )


def _serialize_event(context: OperationContext, row: Row, state: str) -> Entry:
    is_locked = bool(event_passwords.locked_ids(context, [row]))
    return {
        "slot": times.format_datetime(row["slot"]),
        "state": state,
        "event": row["id"],
        "start_date": times.format_datetime(row["start_local"]),
        "end_date": times.format_datetime(row["end_local"]),
        "timezone": row["timezone"],
        "status": row["status"],
        "own": [] if is_locked else list(row["own_fields"] or ()),
    }


def _list_removed(
    context: OperationContext, definition: Definition, rows: Iterable[Row], since: datetime, until: datetime
) -> list[Entry]:
    """Return the dates that are left out, with their events as long as these are in the trash."""
    trashed = {row["slot"]: row for row in rows if row["status"] == "trash"}
    return [
        _serialize_event(context, trashed[slot], REMOVED)
        if slot in trashed
        else _serialize_date(date_at(definition, slot), REMOVED)
        for slot in definition.removed
        if since <= slot <= until
    ]


def _list_planned(series: Row, definition: Definition, since: datetime, until: datetime) -> list[Entry]:
    """Return the dates after those that have been created."""
    created_until: datetime | None = series["created_until"]
    if created_until is None or series["status"] == "trash":
        return []
    dates = islice(_find_planned(definition, created_until, since, until), MAX_OCCURRENCES + 1)
    return [_serialize_date(date, PLANNED) for date in dates]


def _find_planned(
    definition: Definition, created_until: datetime, since: datetime, until: datetime
) -> Iterator[Date]:
    removed = frozenset(definition.removed)
    last = min(until, LAST_SLOT.replace(year=min(created_until.year + PLANNED_YEARS, times.LAST_YEAR)))
    # No offset exceeds a day, so that earlier slots are before the instant in every zone.
    first = max(since, created_until.replace(tzinfo=None) - timedelta(days=1))
    for date in merge(*[_list_dates_of(part, first, last) for part in definition.parts], key=_get_slot):
        if date.slot not in removed and date.span().start.utc >= created_until:
            yield date


def _list_dates_of(part: Part, first: datetime, last: datetime) -> Iterator[Date]:
    return (Date(slot, part) for slot in part.slots(last, first))


def _get_slot(date: Date) -> datetime:
    return date.slot


def _serialize_date(date: Date, state: str) -> Entry:
    span = date.span()
    return {
        "slot": times.format_datetime(date.slot),
        "state": state,
        "event": None,
        "start_date": times.format_datetime(span.start.wall),
        "end_date": times.format_datetime(span.end.wall),
        "timezone": date.part.timezone,
        "status": None,
        "own": [],
    }

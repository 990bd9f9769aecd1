"""Makes a series of single events. Each event keeps its ID, address, UID, times and content."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any, Final

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Values
from kalends.calendar.kinds.series_kind import CONTENT_FIELDS, encode_content
from kalends.calendar.operations.form_work import Target
from kalends.calendar.operations.record_verbs import require_unedited
from kalends.core import credentials, errors, times
from kalends.core.html_text import to_plain_text
from kalends.core.messages import Message
from kalends.core.recurrence.detection import Pattern, find_pattern, find_usual
from kalends.series.consequences import DATE_COLUMNS, derive_own_fields
from kalends.series.operations.series_create import start_series
from kalends.series.operations.series_requests import check_times, naming
from kalends.series.operations.series_writing import change_events, check_permission
from kalends.series.rules.series_slots import Definition, Part, check_slot
from kalends.store import Row
from kalends.store.sql import Sql

MIN_EVENTS: Final = 2
MAX_EVENTS: Final = 200


@dataclass(frozen=True, slots=True)
class Joining:
    """The series that events would become, and the fields of each event that would differ from it."""

    rows: Sequence[Row]
    pattern: Pattern
    definition: Definition
    own_fields: Mapping[int, list[str] | None]  # by event ID


async def join_events(context: OperationContext, targets: Sequence[Target]) -> int:
    """Join events into a new series and return its ID. Raise if one of them has changed since its revision."""
    joining = await plan_joining(context, targets)
    tx, template, rows = context.transaction, joining.definition.template, joining.rows
    series_id = tx.changes.take_post_id()
    published_at = min(row["published_at"] for row in rows if row["status"] == template["status"])
    # The rule ends with the last event, so there are no dates to create later.
    _, cause = await start_series(context, series_id, joining.definition, published_at, None)
    slots, own_fields = joining.pattern.slots, joining.own_fields
    changes: dict[int, Values] = {
        row["id"]: {"series_id": series_id, "slot": slots[row["start_local"]], "own_fields": own_fields[row["id"]]}
        for row in rows
    }
    await change_events(tx, rows, changes, cause)
    return series_id


async def plan_joining(context: OperationContext, targets: Sequence[Target]) -> Joining:
    """Find the series that events could become. Raise ApiError if the caller may not join them."""
    if not MIN_EVENTS <= len(targets) <= MAX_EVENTS:
        raise _refuse(Message("Select {first} to {last} events.", first=MIN_EVENTS, last=MAX_EVENTS))
    rows = await _load_events(context, {target.id: target.revision for target in targets})
    pattern = find_pattern((row["start_local"], _find_length(row)) for row in rows)
    definition = _make_definition(pattern, rows)
    check_times(definition.parts, "event", "event")
    own_fields: dict[int, list[str] | None] = {}
    for row in rows:
        date: Any = {**row, "slot": pattern.slots[row["start_local"]]}
        own_fields[row["id"]] = derive_own_fields(definition, date, {name: row[name] for name in DATE_COLUMNS})
    return Joining(rows, pattern, definition, own_fields)


def _refuse(reason: Message) -> errors.ApiError:
    return errors.invalid_params({"event": reason})


async def _load_events(context: OperationContext, revisions: Mapping[int, int]) -> list[Row]:
    tx = context.transaction
    where = Sql("r.site_id = ? AND r.id = ANY(?) ORDER BY r.start_local, r.id", tx.site.id, list(revisions))
    rows = await tx.fetch_all(EVENTS.select(where))
    permissions.require_writer(context.actor, EVENTS)
    if len(rows) < len(revisions):
        raise errors.not_found(EVENTS.singular)
    for row in rows:
        check_permission(context.actor, row)
        await require_unedited(tx, EVENTS, row, [revisions[row["id"]]])
        if row["status"] == "trash":
            raise errors.in_trash(EVENTS.singular)
        if row["series_id"] is not None:
            title = to_plain_text(row["title"])
            raise _refuse(Message("“{title}” already belongs to a series.", title=title))
        with naming("event"):
            check_slot(row["start_local"])
    for first, second in pairwise(rows):
        if first["start_local"] == second["start_local"]:
            raise errors.slot_taken(times.format_datetime(first["start_local"]))
    return rows


def _make_definition(pattern: Pattern, rows: Sequence[Row]) -> Definition:
    """Return a series with the most frequent value of each field, so that few dates differ."""
    start, end = pattern.start, pattern.start + pattern.length
    regular = [
        row for row in rows if row["start_local"].time() == start.time() and _find_length(row) == pattern.length
    ]
    timezone, all_day = find_usual((row["timezone"], row["all_day"]) for row in regular or rows)
    return Definition(
        (Part(credentials.new_uid(), pattern.rule, start, end, timezone, all_day),),
        encode_content({name: _find_usual_value(rows, name) for name in CONTENT_FIELDS}),
        added=tuple(slot for slot in pattern.extra if slot != start),
        removed=pattern.missing,
    )


def _find_length(row: Row) -> timedelta:
    length: timedelta = row["end_local"] - row["start_local"]
    return length


def _find_usual_value(rows: Sequence[Row], name: str) -> Any:
    """Return a column's most frequent value. It is found by its text, because lists of IDs cannot be counted."""
    by_text = {repr(row[name]): row[name] for row in rows}
    return by_text[find_usual(repr(row[name]) for row in rows)]

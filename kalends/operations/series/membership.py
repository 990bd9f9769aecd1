"""Single events and their series: turning an event into a series, leaving a series, following it again."""

from typing import Any

from kalends.core import credentials, errors
from kalends.core.messages import Message
from kalends.core.recurrence import check_start
from kalends.core.series import Definition, Part, change_dates, date_at
from kalends.kinds.kind import Kind
from kalends.kinds.series import CONTENT_FIELDS, MAX_REMOVED, SERIES, TIMES, encode_content
from kalends.operations import permissions
from kalends.operations.context import OperationContext, Outcome
from kalends.operations.records import fetch_editable_row
from kalends.operations.series.create import add_series, read_dates
from kalends.operations.series.edit import Target, run_edit
from kalends.operations.series.matching import Match
from kalends.operations.series.requests import check_times, naming, parse_rule
from kalends.operations.series.rows import fetch_series, write_definition, write_series
from kalends.operations.series.single import too_many_removed
from kalends.operations.series.undo import PUBLISHING_STATUSES, summarize_changes
from kalends.operations.series.writing import SeriesWrite, Summary, detach_events, write_dates
from kalends.store import Row
from kalends.store.series import decode_definition

OWN_FIELDS = tuple(sorted({*CONTENT_FIELDS.values(), TIMES}))


async def convert_event(kind: Kind, context: OperationContext) -> Outcome:
    """Turn the event in the path into the first date of a new series."""
    row = await _fetch_event(kind, context)
    if row["series_id"] is not None:
        raise errors.invalid("rule", "the event already belongs to a series.")
    definition = read_dates(context, _read_definition(context, row))
    if definition.parts[0].start in definition.removed:
        raise errors.invalid("remove_dates", "must not contain the date of the event.")
    series: Any = {"id": context.transaction.changes.next_post_id()}
    return await run_edit(
        context,
        Target(series, None, "convert"),
        lambda: add_series(context, series["id"], definition, row["published_at"], row),
    )


async def _fetch_event(kind: Kind, context: OperationContext) -> Row:
    row = await fetch_editable_row(kind, context)
    if row["status"] == "trash":
        raise errors.in_trash(kind.singular)
    return row


def _read_definition(context: OperationContext, row: Row) -> Definition:
    """Return the definition of a series whose first date is an event."""
    rule = parse_rule(context.values["rule"], row["timezone"])
    uid = credentials.new_uid()
    part = Part(uid, rule, row["start_local"], row["end_local"], row["timezone"], row["all_day"])
    check_times([part], "rule", "rule")
    with naming("rule"):
        check_start(rule, part.start)
    return Definition((part,), encode_content({name: row[name] for name in CONTENT_FIELDS}))


async def detach_event(kind: Kind, context: OperationContext) -> Outcome:
    """Make the event in the path independent of its series, which leaves out its date from then on."""
    row = await _fetch_event(kind, context)
    series = await _fetch_series_of(context, row)
    permissions.require_edit(context.actor, SERIES, series)
    return await run_edit(context, Target(series, row["slot"], "detach"), lambda: _detach(context, series, row))


async def _fetch_series_of(context: OperationContext, row: Row) -> Row:
    if row["series_id"] is None:
        raise errors.invalid("id", "the event does not belong to a series.")
    return await fetch_series(context.transaction, row["series_id"])


async def _detach(context: OperationContext, series: Row, row: Row) -> Summary:
    tx = context.transaction
    changed = change_dates(decode_definition(series), remove=[row["slot"]])
    if len(changed.removed) > MAX_REMOVED:
        raise too_many_removed(len(changed.removed), "id")
    # A series that is in the trash leaves out no dates.
    cause = await write_definition(tx, series, changed) if series["status"] != "trash" else None
    changes = await detach_events(tx, [row], cause or await write_series(tx, series, {}))
    return summarize_changes(changes)


async def follow_series(kind: Kind, context: OperationContext) -> Outcome:
    """Give up fields that the event in the path has of its own."""
    row = await _fetch_event(kind, context)
    series = await _fetch_series_of(context, row)
    if series["status"] == "trash":
        raise errors.in_trash(SERIES.singular)
    return await run_edit(context, Target(series, row["slot"], "follow"), lambda: _follow(context, series, row))


async def _follow(context: OperationContext, series: Row, row: Row) -> Summary:
    fields = frozenset(context.values.get("fields", OWN_FIELDS))
    definition = decode_definition(series)
    if "status" in fields & set(row["own_fields"] or ()):
        _require_publisher(context, definition)
    write = SeriesWrite(
        series["id"],
        series["slug"],
        series["published_at"],
        definition,
        None,
        context.actor,
        edited_fields=fields,
        replaces_own=True,
    )
    return await write_dates(context.transaction, write, [Match(row, date_at(definition, row["slot"]))], {})


def _require_publisher(context: OperationContext, definition: Definition) -> None:
    is_public = definition.template["status"] in PUBLISHING_STATUSES
    if is_public and not permissions.may_publish(context.actor):
        raise permissions.permission_error(context.actor, Message("only authors and editors can publish."))

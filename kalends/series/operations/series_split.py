"""Splitting, merging and dissolving series, and moving events in or out of a series."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.kinds.events import LOCAL_TIME_COLUMNS
from kalends.calendar.kinds.kind import Kind, Values
from kalends.calendar.kinds.posts import plan_status
from kalends.calendar.kinds.series_kind import CONTENT_FIELDS, MAX_ADDED, MAX_REMOVED, SERIES, TIMES, encode_content
from kalends.calendar.operations.record_verbs import fetch_active_row, read_outcome
from kalends.calendar.storage import record_tables
from kalends.core import credentials, errors, times
from kalends.core.recurrence import check_start
from kalends.core.slugs import add_suffix
from kalends.series import storage as series_storage
from kalends.series.consequences import (
    change_series_status,
    derive_own_fields,
    fetch_series,
    too_many_removed,
    write_definition,
    write_series,
)
from kalends.series.operations.series_create import (
    add_series,
    check_number_of_changes,
    check_number_of_dates,
    insert_series,
    list_dates_or_raise,
    read_dates,
)
from kalends.series.operations.series_edit import Target, run_edit
from kalends.series.operations.series_matching import Match, is_past, load_rows
from kalends.series.operations.series_requests import check_times, naming, parse_rule, read_slots_of, require_dates
from kalends.series.operations.series_writing import (
    INDEPENDENT,
    SeriesWrite,
    Summary,
    change_events,
    check_number,
    check_permission,
    require_publisher,
    write_dates,
)
from kalends.series.rules.series_division import is_before, join_definitions, split_definition
from kalends.series.rules.series_slots import Definition, Part, change_dates, date_at, has_dates_after
from kalends.series.storage import decode_definition
from kalends.store import Row

# A merge detects colliding rules only within this period.
COMPARED_PERIOD: Final = timedelta(days=3660)
KEPT: Final = ("all", "upcoming", "next")


async def _load_events(
    context: OperationContext, series_id: int, param: str, since: datetime | None = None
) -> list[Row]:
    """Load a series' events, including trashed events; raise unless the caller may edit all of them.

    An error about too many events names the parameter `param`.
    """
    rows = await load_rows(context.transaction, series_id, since)
    for row in rows:
        check_permission(context.actor, row)
    check_number(len(rows), param)
    return rows


# Splitting -----------------------------------------------------------------------------------


async def split_series(kind: Kind, context: OperationContext) -> Outcome:
    """Split the dates from a slot onward into a new series. The events keep their IDs, slugs and UIDs."""
    series = await fetch_active_row(kind, context)
    definition = decode_definition(series)
    (slot,) = read_slots_of("from", [context.values["from"]], definition, context.transaction.now)
    require_dates("from", definition, [slot])
    divided = split_definition(definition, slot, credentials.new_uid())
    if divided is None:
        raise errors.invalid("from", "must be later than the first date.")
    new_id = context.transaction.changes.take_post_id()
    outcome = await run_edit(
        context, Target(series, slot, "split"), lambda: _split(context, series, divided, slot, new_id)
    )
    if context.values.get("dry_run"):
        return outcome
    new = await read_outcome(SERIES, context, new_id)
    return replace(outcome, body={**outcome.body, "new_series": new.body})


async def _split(
    context: OperationContext, series: Row, divided: tuple[Definition, Definition], slot: datetime, new_id: int
) -> Summary:
    tx, (head, tail) = context.transaction, divided
    rows = await _load_events(context, series["id"], "from", slot)
    cause = await write_definition(tx, series, head) or await write_series(tx, series, {})
    until = series["created_until"]
    is_complete = until is None or not has_dates_after(head, until)
    await series_storage.set_created_until(tx, series["id"], None if is_complete else until)
    wanted = add_suffix(str(series["slug"]), f"-{slot:%Y-%m-%d}")
    slug = await record_tables.find_free_slug(tx, "series", wanted, new_id)
    new: Values = {"id": new_id, "slug": slug, "published_at": series["published_at"]}
    await insert_series(tx, new, tail, until, cause)
    changes: dict[int, Values] = {row["id"]: {"series_id": new_id} for row in rows}
    return Summary().add(await change_events(tx, rows, changes, cause))


# Merging -------------------------------------------------------------------------------------


async def merge_series(kind: Kind, context: OperationContext) -> Outcome:
    """Move another series' events into this series, then move the other series to the trash."""
    series = await fetch_active_row(kind, context)
    other_id: int = context.values["series"]
    if other_id == series["id"]:
        raise errors.invalid("series", "must be another series.")
    other = await SERIES.fetch(context.transaction, other_id)
    if other is None or other["status"] == "trash":
        raise errors.invalid("series", "there is no series {id}.", id=other_id)
    permissions.require_edit(context.actor, SERIES, other)
    return await run_edit(context, Target(series, None, "merge"), lambda: _merge(context, series, other))


async def _merge(context: OperationContext, series: Row, other: Row) -> Summary:
    tx = context.transaction
    own_rows = await _load_events(context, series["id"], "series")
    other_rows = await _load_events(context, other["id"], "series")
    definition, keeps_rule = _join(series, other, other_rows)
    check_number_of_changes(definition, "series")
    # No two events or rules may have the same slot.
    own = {row["slot"] for row in own_rows if row["status"] != "trash"}
    for row in other_rows:
        if row["status"] != "trash" and (row["slot"] in own or row["slot"] in definition.removed):
            raise errors.slot_taken(times.format_datetime(row["slot"]))
    list_dates_or_raise(definition, tx.now + COMPARED_PERIOD)
    cause = await write_definition(tx, series, definition) or await write_series(tx, series, {})
    await change_series_status(tx, other, "trash", cause=cause)
    active = {row["slot"] for row in other_rows if row["status"] != "trash"}
    # A trashed event leaves the series when another event takes its slot.
    left = [row for row in own_rows if row["slot"] in active]
    await change_events(tx, left, {row["id"]: INDEPENDENT for row in left}, cause)
    taken = {row["slot"] for row in own_rows} - active
    moved = [row for row in other_rows if row["slot"] not in taken]
    changes = {row["id"]: _plan_move(definition, series["id"], row, keeps_rule=keeps_rule) for row in moved}
    # All events of both series exist up to the earlier of the two instants, so the job continues there.
    instants = [row["created_until"] for row in (series, other) if row["created_until"] is not None]
    await series_storage.set_created_until(tx, series["id"], min(instants, default=None))
    return Summary().add(await change_events(tx, moved, changes, cause))


def _join(series: Row, other: Row, other_rows: Sequence[Row]) -> tuple[Definition, bool]:
    """Return the merged definition and whether it keeps the other series' rule.

    If it does not, the other series' dates become added dates.
    """
    definition, second = decode_definition(series), decode_definition(other)
    if is_before(definition, second):
        return join_definitions(definition, second), True
    if is_before(second, definition):
        return join_definitions(second, definition), True
    if other["created_until"] is not None:
        raise errors.invalid(
            "series", "must end, because its dates lie between the dates of this series. End it first, or split it."
        )
    slots = {row["slot"] for row in other_rows if row["status"] != "trash"}
    joint = replace(definition, added=tuple(sorted({*definition.added, *slots})))
    if len(joint.added) > MAX_ADDED:
        check_number_of_dates(joint, "series", "series")
    return joint, False


def _plan_move(definition: Definition, series_id: int, row: Row, *, keeps_rule: bool) -> Values:
    """Return the columns of an event that moves to another series.

    Values that differ from this series become overrides.
    """
    if keeps_rule or row["status"] == "trash":
        return {"series_id": series_id}
    columns = {name: row[name] for name in (*CONTENT_FIELDS, *LOCAL_TIME_COLUMNS)}
    return {"series_id": series_id, "own_fields": derive_own_fields(definition, row, columns)}


# Dissolving ----------------------------------------------------------------------------------


async def dissolve_series(kind: Kind, context: OperationContext) -> Outcome:
    """Detach a series' events and move the series to the trash."""
    series = await fetch_active_row(kind, context)
    return await run_edit(context, Target(series, None, "dissolve"), lambda: _dissolve(context, series))


async def _dissolve(context: OperationContext, series: Row) -> Summary:
    tx = context.transaction
    rows = [row for row in await _load_events(context, series["id"], "keep") if row["status"] != "trash"]
    kept = _choose_kept(rows, context.values.get("keep", "all"), tx.now)
    cause = await change_series_status(tx, series, "trash")
    changes: dict[int, Values] = {
        row["id"]: {**INDEPENDENT, **({} if row["id"] in kept else plan_status(row, "trash", tx.now))} for row in rows
    }
    return Summary().add(await change_events(tx, rows, changes, cause))


def _choose_kept(rows: Sequence[Row], keep: str, now: datetime) -> set[int]:
    if keep == "all":
        return {row["id"] for row in rows}
    upcoming = sorted((row for row in rows if not is_past(row, now)), key=lambda row: row["start_utc"])
    return {row["id"] for row in (upcoming if keep == "upcoming" else upcoming[:1])}


# Single events: converting one to a series, detaching one, and resetting one to its series' values.

OWN_FIELDS = tuple(sorted({*CONTENT_FIELDS.values(), TIMES}))


async def convert_event(kind: Kind, context: OperationContext) -> Outcome:
    """Turn the event in the path into the first date of a new series."""
    row = await fetch_active_row(kind, context)
    if row["series_id"] is not None:
        raise errors.invalid("rule", "the event already belongs to a series.")
    definition = read_dates(context, _read_definition(context, row))
    if definition.parts[0].start in definition.removed:
        raise errors.invalid("remove_dates", "must not contain the date of the event.")
    series: Any = {"id": context.transaction.changes.take_post_id()}
    return await run_edit(
        context,
        Target(series, None, "convert"),
        lambda: add_series(context, series["id"], definition, row["published_at"], row),
    )


def _read_definition(context: OperationContext, row: Row) -> Definition:
    """Return the definition of a new series that starts with this event."""
    rule = parse_rule(context.values["rule"], row["timezone"])
    uid = credentials.new_uid()
    part = Part(uid, rule, row["start_local"], row["end_local"], row["timezone"], row["all_day"])
    check_times([part], "rule", "rule")
    with naming("rule"):
        check_start(rule, part.start)
    return Definition((part,), encode_content({name: row[name] for name in CONTENT_FIELDS}))


async def detach_event(kind: Kind, context: OperationContext) -> Outcome:
    """Detach the event in the path from its series. The series then skips the date."""
    row = await fetch_active_row(kind, context)
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
    # The definition of a trashed series stays unchanged.
    cause = await write_definition(tx, series, changed) if series["status"] != "trash" else None
    cause = cause or await write_series(tx, series, {})
    return Summary().add(await change_events(tx, [row], {row["id"]: INDEPENDENT}, cause))


async def follow_series(kind: Kind, context: OperationContext) -> Outcome:
    """Reset the event's overridden fields to the series' values."""
    row = await fetch_active_row(kind, context)
    series = await _fetch_series_of(context, row)
    if series["status"] == "trash":
        raise errors.in_trash(SERIES.singular)
    return await run_edit(context, Target(series, row["slot"], "follow"), lambda: _follow(context, series, row))


async def _follow(context: OperationContext, series: Row, row: Row) -> Summary:
    fields = frozenset(context.values.get("fields", OWN_FIELDS))
    definition = decode_definition(series)
    if "status" in fields & set(row["own_fields"] or ()):
        require_publisher(context.actor, [definition.template])
    write = SeriesWrite(series, definition, None, context.actor, edited_fields=fields, replaces_own=True)
    return await write_dates(context.transaction, write, [Match(row, date_at(definition, row["slot"]))], {})

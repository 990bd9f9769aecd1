"""Two series of one, one of two, and events without their series."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from kalends.core import credentials, errors, times
from kalends.core.series import Definition, has_dates_after, is_given
from kalends.core.series_division import is_before, join_definitions, split_definition
from kalends.core.slugs import TRASHED_SUFFIX, add_suffix
from kalends.kinds.events import EVENTS, LOCAL_TIME_COLUMNS
from kalends.kinds.kind import Kind, Values
from kalends.kinds.series import CONTENT_FIELDS, MAX_ADDED, SERIES
from kalends.operations import permissions
from kalends.operations.context import OperationContext, Outcome
from kalends.operations.records import fetch_editable_row, read_outcome
from kalends.operations.series.create import (
    NewSeries,
    check_number_of_changes,
    check_number_of_dates,
    insert_series,
    list_dates_or_raise,
)
from kalends.operations.series.edit import Target, run_edit
from kalends.operations.series.matching import is_past
from kalends.operations.series.requests import read_slots_of
from kalends.operations.series.rows import trash_series, write_definition, write_series
from kalends.operations.series.single import derive_own_fields
from kalends.operations.series.undo import summarize_changes
from kalends.operations.series.writing import Summary, check_number, check_permission, detach_events, write_prepared
from kalends.operations.writes import PreparedChange, prepare_change
from kalends.store import Row, records
from kalends.store import series as series_store
from kalends.store.database import Transaction
from kalends.store.event_batches import find_free_slugs
from kalends.store.series import decode_definition
from kalends.store.sql import Sql

# Rules that give the same slot only later than this are not noticed when two series are merged.
COMPARED_PERIOD: Final = timedelta(days=3660)
KEPT: Final = ("all", "upcoming", "next")


async def _fetch_active(kind: Kind, context: OperationContext) -> Row:
    series = await fetch_editable_row(kind, context)
    if series["status"] == "trash":
        raise errors.in_trash(SERIES.singular)
    return series


async def _load_events(
    context: OperationContext, series_id: int, param: str, since: datetime | None = None
) -> list[Row]:
    """Load the events of a series, also those in the trash; raise if the caller may not edit one of them.

    `param` is the parameter that an error about their number names.
    """
    tx = context.transaction
    where = Sql("r.site_id = ? AND r.series_id = ?", tx.site.id, series_id)
    if since is not None:
        where += Sql("AND r.slot >= ?", since)
    rows = await tx.fetch_all(EVENTS.select(where + Sql("ORDER BY r.slot")))
    for row in rows:
        check_permission(context.actor, row)
    check_number(len(rows), param)
    return rows


async def _move_events(
    tx: Transaction, rows: Iterable[Row], changes: Mapping[int, Values], cause: int
) -> list[PreparedChange]:
    """Write columns of events that a change of their series causes."""
    prepared = [prepare_change(EVENTS, tx, row, changes[row["id"]], {}, cause=cause) for row in rows]
    written = [change for change in prepared if change is not None]
    await write_prepared(tx, written)
    return written


# Splitting -----------------------------------------------------------------------------------


async def split_series(kind: Kind, context: OperationContext) -> Outcome:
    """Make a series of its own of the dates from a slot on. The events keep ID, slug and UID."""
    series = await _fetch_active(kind, context)
    definition = decode_definition(series)
    (slot,) = read_slots_of("from", [context.values["from"]], definition, context.transaction.now)
    if not is_given(definition, slot) and slot not in definition.added:
        raise errors.invalid("from", "{date} is not a date of this series.", date=times.format_datetime(slot))
    divided = split_definition(definition, slot, credentials.new_uid())
    if divided is None:
        raise errors.invalid("from", "must be later than the first date.")
    new_id = context.transaction.changes.next_post_id()
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
    await series_store.set_created_until(tx, series["id"], None if is_complete else until)
    wanted = add_suffix(str(series["slug"]), f"-{slot:%Y-%m-%d}")
    slug = await records.find_free_slug(tx, "series", wanted, new_id)
    new = NewSeries(new_id, slug, tail, series["published_at"])
    await insert_series(tx, new, until, cause)
    changes: dict[int, Values] = {row["id"]: {"series_id": new_id} for row in rows}
    return summarize_changes(await _move_events(tx, rows, changes, cause))


# Merging -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Merger:
    """The definition of a series that takes over another one, and whether it takes over its rule."""

    definition: Definition
    keeps_rule: bool


async def merge_series(kind: Kind, context: OperationContext) -> Outcome:
    """Take over the events of another series, which goes to the trash."""
    series = await _fetch_active(kind, context)
    other = await _fetch_other(context, series)
    return await run_edit(context, Target(series, None, "merge"), lambda: _merge(context, series, other))


async def _fetch_other(context: OperationContext, series: Row) -> Row:
    other_id: int = context.values["series"]
    if other_id == series["id"]:
        raise errors.invalid("series", "must be another series.")
    tx = context.transaction
    other = await tx.fetch_one(SERIES.select(Sql("r.site_id = ? AND r.id = ?", tx.site.id, other_id)))
    if other is None or other["status"] == "trash":
        raise errors.invalid("series", "there is no series {id}.", id=other_id)
    permissions.require_edit(context.actor, SERIES, other)
    return other


async def _merge(context: OperationContext, series: Row, other: Row) -> Summary:
    tx = context.transaction
    own_rows = await _load_events(context, series["id"], "series")
    other_rows = await _load_events(context, other["id"], "series")
    merger = _join(series, other, other_rows)
    check_number_of_changes(merger.definition, "series")
    _check_shared_slots(merger.definition, own_rows, other_rows, tx.now)
    cause = await write_definition(tx, series, merger.definition) or await write_series(tx, series, {})
    await trash_series(tx, other, cause=cause)
    active = {row["slot"] for row in other_rows if row["status"] != "trash"}
    # An event in the trash leaves the series when another one gets its slot.
    await detach_events(tx, [row for row in own_rows if row["slot"] in active], cause)
    taken = {row["slot"] for row in own_rows} - active
    moved = [row for row in other_rows if row["slot"] not in taken]
    changes = {row["id"]: _plan_move(merger, series["id"], row) for row in moved}
    # All dates before this instant exist in both series; the horizon job continues from here.
    await series_store.set_created_until(tx, series["id"], _find_created_until(series, other))
    return summarize_changes(await _move_events(tx, moved, changes, cause))


def _join(series: Row, other: Row, other_rows: Sequence[Row]) -> Merger:
    """Return the joint definition: the rules one after the other, or the dates of the other series as added ones."""
    definition, second = decode_definition(series), decode_definition(other)
    if is_before(definition, second):
        return Merger(join_definitions(definition, second), True)
    if is_before(second, definition):
        return Merger(join_definitions(second, definition), True)
    if other["created_until"] is not None:
        raise errors.invalid(
            "series", "must end, because its dates lie between those of this series. End it first, or split it."
        )
    slots = {row["slot"] for row in other_rows if row["status"] != "trash"}
    joint = replace(definition, added=tuple(sorted({*definition.added, *slots})))
    if len(joint.added) > MAX_ADDED:
        check_number_of_dates(joint, "series", "series")
    return Merger(joint, False)


def _check_shared_slots(
    definition: Definition, own_rows: Iterable[Row], other_rows: Iterable[Row], now: datetime
) -> None:
    """Raise if two events or two rules would have the same slot."""
    own = {row["slot"] for row in own_rows if row["status"] != "trash"}
    for row in other_rows:
        if row["status"] != "trash" and (row["slot"] in own or row["slot"] in definition.removed):
            raise errors.slot_taken(times.format_datetime(row["slot"]))
    list_dates_or_raise(definition, now + COMPARED_PERIOD)


def _plan_move(merger: Merger, series_id: int, row: Row) -> Values:
    """Return the columns of an event that another series takes over. What differs from it is the event's own."""
    if merger.keeps_rule or row["status"] == "trash":
        return {"series_id": series_id}
    columns = {name: row[name] for name in (*CONTENT_FIELDS, *LOCAL_TIME_COLUMNS)}
    return {"series_id": series_id, "own_fields": derive_own_fields(merger.definition, row, columns)}


def _find_created_until(series: Row, other: Row) -> datetime | None:
    instants = [row["created_until"] for row in (series, other) if row["created_until"] is not None]
    return min(instants, default=None)


# Dissolving ----------------------------------------------------------------------------------


async def dissolve_series(kind: Kind, context: OperationContext) -> Outcome:
    """Make the events of a series independent and move the series to the trash."""
    series = await _fetch_active(kind, context)
    return await run_edit(context, Target(series, None, "dissolve"), lambda: _dissolve(context, series))


async def _dissolve(context: OperationContext, series: Row) -> Summary:
    tx = context.transaction
    rows = [row for row in await _load_events(context, series["id"], "keep") if row["status"] != "trash"]
    kept = _choose_kept(rows, context.values.get("keep", "all"), tx.now)
    cause = await trash_series(tx, series)
    dropped = {row["id"]: row["slug"] + TRASHED_SUFFIX for row in rows if row["id"] not in kept and row["slug"]}
    slugs = await find_free_slugs(tx, dropped) if dropped else {}
    changes = {row["id"]: _plan_release(tx, row, row["id"] in kept, slugs) for row in rows}
    return summarize_changes(await _move_events(tx, rows, changes, cause))


def _choose_kept(rows: Sequence[Row], keep: str, now: datetime) -> set[int]:
    if keep == "all":
        return {row["id"] for row in rows}
    upcoming = sorted((row for row in rows if not is_past(row, now)), key=lambda row: row["start_utc"])
    return {row["id"] for row in (upcoming if keep == "upcoming" else upcoming[:1])}


def _plan_release(tx: Transaction, row: Row, is_kept: bool, slugs: Mapping[int, str]) -> Values:
    outside: Values = {"series_id": None, "slot": None, "own_fields": None}
    if is_kept:
        return outside
    trashed: dict[Any, Any] = {"status": "trash", "trashed_status": row["status"], "trashed_at": tx.now}
    return {**outside, **trashed, "slug": slugs.get(row["id"], "")}

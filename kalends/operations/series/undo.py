"""Undoing edits of a series with all their effects, and restoring it from the trash."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, LiteralString

from kalends.core import errors, times
from kalends.core.messages import Message
from kalends.core.slugs import TRASHED_SUFFIX
from kalends.kinds.events import EVENTS, LOCAL_TIME_COLUMNS
from kalends.kinds.kind import Kind, Values
from kalends.kinds.posts import strip_trashed_suffix
from kalends.kinds.series import CONTENT_FIELDS, SERIES, TIMES
from kalends.operations import permissions
from kalends.operations.context import OperationContext, Outcome
from kalends.operations.quotas import count_new_record
from kalends.operations.records import fetch_editable_row
from kalends.operations.series.create import list_dates_or_raise
from kalends.operations.series.edit import Target, compute_until, finish, run_edit
from kalends.operations.series.matching import find_later_dates, match_definition
from kalends.operations.series.rows import fetch_series, write_series
from kalends.operations.series.snapshots import (
    LINKS,
    RECOMPUTED,
    ExistingRecords,
    decode_columns,
    derive_columns,
    encode_row,
    read_logged,
)
from kalends.operations.series.writing import SeriesWrite, Summary, check_permission, write_dates, write_prepared
from kalends.operations.writes import PreparedChange, prepare_change
from kalends.store import Row, history, records, users
from kalends.store import series as series_store
from kalends.store.database import Transaction
from kalends.store.event_batches import find_free_slugs
from kalends.store.series import decode_definition
from kalends.store.sql import Sql

RESTORE: Final = "restore"
PUBLISHING_STATUSES: Final = frozenset({"publish", "future", "private"})

FIELD_NAMES: Final[Mapping[str, str]] = {**CONTENT_FIELDS, "own_fields": "own", "series_id": "series"}
# Columns of a new event that differ afterwards without an edit.
UNCOMPARED: Final = RECOMPUTED | {"modified_utc", "uid"}

Record = Mapping[str, Any]


@dataclass(slots=True)
class Restoration:
    """What an undo writes back: columns of the series and of its events, in the form of the change log."""

    series: dict[str, Any] = field(default_factory=dict[str, Any])
    events: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    others: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])  # other series
    conflicts: dict[int, set[str]] = field(default_factory=dict[int, set[str]])


async def restore_series(kind: Kind, context: OperationContext) -> Outcome:
    """Return a series and its dates to the state at a revision, or restore them from the trash."""
    series = await fetch_editable_row(kind, context)
    return await run_edit(context, Target(series, None, RESTORE), lambda: _restore(context, series))


async def _restore(context: OperationContext, series: Row) -> Summary:
    tx, revision = context.transaction, context.values.get("revision")
    if revision is None:
        restoration, rows = await _read_trash(context, series)
    else:
        changes = await _list_changes(context, series, revision)
        restoration, rows = await _read_changes(tx, series, changes)
    _check_conflicts(context, restoration, rows)
    _check_permissions(context, restoration, rows)
    return await _write_back(context, series, restoration, rows)


async def _load_rows(tx: Transaction, series_id: int, event_ids: Iterable[int]) -> dict[int, Row]:
    """Load the events of a series, and further ones that belonged to it, by ID."""
    where = Sql(
        "r.site_id = ? AND (r.series_id = ? OR r.id = ANY(?)) ORDER BY r.slot", tx.site.id, series_id, list(event_ids)
    )
    return {row["id"]: row for row in await tx.fetch_all(EVENTS.select(where))}


# Changes that can be undone ------------------------------------------------------------------


async def _read_trash(context: OperationContext, series: Row) -> tuple[Restoration, dict[int, Row]]:
    """Return the restoration of a series in the trash, with the dates that went there together with it."""
    tx = context.transaction
    if series["status"] != "trash":
        raise errors.missing_params(["revision"])
    changes = await history.list_record_changes(tx, SERIES.name, series["id"])
    if trashing := [change for change in changes if change["action"] == "trash"][:1]:
        return await _read_changes(tx, series, trashing)
    # The change log no longer contains it.
    rows = await _load_rows(tx, series["id"], [])
    together = await series_store.list_trashed_together(tx, series["id"])
    events = {event_id: {"status": rows[event_id]["trashed_status"] or "draft"} for event_id in together}
    return Restoration({"status": series["trashed_status"] or "draft"}, events), rows


async def _read_changes(tx: Transaction, series: Row, changes: Sequence[Row]) -> tuple[Restoration, dict[int, Row]]:
    """Return what undoing these changes, given newest first, writes back, and the events."""
    caused = [await series_store.list_caused_changes(tx, change["revision"]) for change in changes]
    event_ids = [entry["record_id"] for entries in caused for entry in entries if entry["kind"] == EVENTS.name]
    rows = await _load_rows(tx, series["id"], event_ids)
    return _undo(changes, caused, rows), rows


async def _list_changes(context: OperationContext, series: Row, revision: int) -> list[Row]:
    """Return the changes of a series since a revision, newest first."""
    tx = context.transaction
    if revision < tx.site.trimmed_revision:
        raise errors.expired(tx.site.trimmed_revision)
    if revision > tx.site.revision:
        raise errors.invalid("revision", "is newer than the latest revision.")
    changes = await history.list_record_changes(tx, SERIES.name, series["id"], after=revision)
    if any(change["action"] == "create" for change in changes):
        raise errors.invalid("revision", "is older than the record.")
    return changes


def _undo(changes: Sequence[Row], caused: Sequence[Sequence[Row]], rows: Mapping[int, Row]) -> Restoration:
    """Undo changes, given newest first, with the changes of events that each of them caused."""
    restoration = Restoration()
    for change, entries in zip(changes, caused, strict=True):
        restoration.series.update(read_logged(change["before"]))
        for entry in reversed(entries):
            if entry["kind"] == SERIES.name:
                _undo_other(restoration, entry)
            elif (row := rows.get(entry["record_id"])) is not None:
                _undo_event(restoration, row, entry)
    return restoration


def _undo_other(restoration: Restoration, entry: Row) -> None:
    """Undo the change of another series: one that was split off goes to the trash, a merged one comes back."""
    columns = {"status": "trash"} if entry["action"] == "create" else read_logged(entry["before"])
    restoration.others.setdefault(entry["record_id"], {}).update(columns)


def _undo_event(restoration: Restoration, row: Row, entry: Row) -> None:
    """Undo a change of an event. Columns that have changed since then are a conflict and keep their values."""
    before, after = read_logged(entry["before"]), read_logged(entry["after"])
    target = restoration.events.setdefault(row["id"], {})
    current = {**encode_row(row, after), **target}
    changed = {name for name in after if name in current and name not in UNCOMPARED and current[name] != after[name]}
    # A new event that has been changed since then goes to the trash all the same, if the caller confirms it.
    if entry["action"] == "create":
        target["status"] = "trash"
        changed -= {"status"}
    else:
        target.update({name: value for name, value in before.items() if name not in changed | RECOMPUTED})
    if changed:
        restoration.conflicts.setdefault(row["id"], set()).update(changed)


def _check_conflicts(context: OperationContext, restoration: Restoration, rows: Mapping[int, Row]) -> None:
    if restoration.conflicts and not context.values.get("force"):
        raise errors.series_undo_conflicts(_describe_conflicts(restoration, rows))


def _describe_conflicts(restoration: Restoration, rows: Mapping[int, Row]) -> list[dict[str, Any]]:
    return [
        {"event": event_id, "slot": _format_slot(rows[event_id]), "fields": sorted({*map(_field_name, columns)})}
        for event_id, columns in restoration.conflicts.items()
    ]


def _field_name(column: str) -> str:
    return TIMES if column in LOCAL_TIME_COLUMNS else FIELD_NAMES.get(column, column)


def _format_slot(row: Row) -> str:
    return times.format_datetime(row["slot"] or row["start_local"])


def _check_permissions(context: OperationContext, restoration: Restoration, rows: Mapping[int, Row]) -> None:
    for event_id in restoration.events:
        check_permission(context.actor, rows[event_id])
    statuses = {columns.get("status") for columns in (restoration.series, *restoration.events.values())}
    if statuses & PUBLISHING_STATUSES and not permissions.may_publish(context.actor):
        raise permissions.permission_error(context.actor, Message("only authors and editors can publish."))


# Writing back --------------------------------------------------------------------------------


async def _write_back(
    context: OperationContext, series: Row, restoration: Restoration, rows: Mapping[int, Row]
) -> Summary:
    tx = context.transaction
    existing = await ExistingRecords.load(tx, [restoration.series, *restoration.events.values()])
    cause = await write_series(tx, series, await _build_series_columns(tx, series, restoration.series, existing))
    await _write_others(context, restoration, existing, cause)
    prepared = await _prepare_events(tx, restoration, rows, existing, cause)
    await write_prepared(tx, prepared)
    current = {**rows, **{change.row["id"]: _apply(change) for change in prepared}}
    summary = summarize_changes(prepared)
    if (restored := await fetch_series(tx, series["id"]))["status"] != "trash":
        _merge(summary, await _complete_dates(context, restored, current, cause))
    summary.kept_own = _describe_conflicts(restoration, rows)
    return summary


async def _write_others(
    context: OperationContext, restoration: Restoration, existing: ExistingRecords, cause: int
) -> None:
    """Write back other series, from which the edit took dates or to which it gave some."""
    tx = context.transaction
    for series_id, columns in restoration.others.items():
        row = await tx.fetch_one(SERIES.select(Sql("r.site_id = ? AND r.id = ?", tx.site.id, series_id)))
        if row is None:
            continue
        permissions.require_edit(context.actor, SERIES, row)
        values = await _build_series_columns(tx, row, columns, existing)
        if values:
            await write_series(tx, row, values, cause=cause)


async def _build_series_columns(
    tx: Transaction, series: Row, columns: Record, existing: ExistingRecords
) -> dict[LiteralString, Any]:
    values = decode_columns({name: value for name, value in columns.items() if name not in RECOMPUTED - {"slug"}})
    if not existing.has_image(values.get("image_id")):
        values["image_id"] = None
    if "author_id" in values and not await users.has_user(tx, values["author_id"]):
        del values["author_id"]
    status = values.get("status", series["status"])
    slug = strip_trashed_suffix(str(values.get("slug", series["slug"])))
    values["slug"] = await records.find_free_slug(
        tx, "series", slug + TRASHED_SUFFIX if status == "trash" else slug, series["id"]
    )
    values.update(_build_trash_columns(tx, series, status))
    return {name: value for name, value in values.items() if name not in series or series[name] != value}


def _build_trash_columns(tx: Transaction, row: Row, status: str) -> Values:
    """Return the columns of the trash for a row whose status changes."""
    if (status == "trash") == (row["status"] == "trash"):
        return {}
    if status == "trash":
        return {"trashed_status": row["status"], "trashed_at": tx.now}
    return {"trashed_status": "", "trashed_at": None}


async def _prepare_events(
    tx: Transaction,
    restoration: Restoration,
    rows: Mapping[int, Row],
    existing: ExistingRecords,
    cause: int,
) -> list[PreparedChange]:
    slugs = await _choose_slugs(tx, restoration, rows)
    prepared: list[PreparedChange] = []
    for event_id, columns in restoration.events.items():
        row = rows[event_id]
        values: Values = decode_columns({name: value for name, value in columns.items() if name not in LINKS})
        if not existing.has_image(values.get("image_id")):  # type: ignore[arg-type]
            values["image_id"] = None
        values.update(_build_trash_columns(tx, row, str(values.get("status", row["status"]))))
        values.update(slugs.get(event_id, {}))
        values.update(derive_columns(row, values))
        change = prepare_change(EVENTS, tx, row, values, existing.find_links(columns), cause=cause)
        if change is not None:
            prepared.append(change)
    return prepared


async def _choose_slugs(tx: Transaction, restoration: Restoration, rows: Mapping[int, Row]) -> dict[int, Values]:
    """Return the slugs of events that go to the trash or come back from there."""
    wanted: dict[int, str] = {}
    for event_id, columns in restoration.events.items():
        row = rows[event_id]
        is_trashed = columns.get("status", row["status"]) == "trash"
        if row["slug"] and is_trashed != (row["status"] == "trash"):
            wanted[event_id] = row["slug"] + TRASHED_SUFFIX if is_trashed else strip_trashed_suffix(row["slug"])
    free = await find_free_slugs(tx, wanted) if wanted else {}
    return {event_id: {"slug": slug} for event_id, slug in free.items()}


def _apply(change: PreparedChange) -> Any:
    """Return the row of an event after a change."""
    links = {f"{link.column}s": ids for link, ids in change.relinked.items()}
    return {**change.row, **change.changed, **links}


async def _complete_dates(context: OperationContext, series: Row, rows: Mapping[int, Row], cause: int) -> Summary:
    """Create dates that are missing, move those to the trash that are no longer given, and update all others."""
    tx = context.transaction
    definition = decode_definition(series)
    until = compute_until(series, definition, tx.now)
    members = [row for row in rows.values() if row["series_id"] == series["id"]]
    dates = list_dates_or_raise(definition, until)
    matches = match_definition(members, [*dates, *find_later_dates(definition, members, dates)], tx.now)
    await count_new_record(context, sum(match.row is None for match in matches))
    write = SeriesWrite(
        series["id"],
        series["slug"],
        series["published_at"],
        definition,
        cause,
        context.actor,
        replaces_own=True,
        is_limited=False,
    )
    trashed = {row["slot"]: row for row in members if row["status"] == "trash"}
    summary = await write_dates(tx, write, matches, trashed)
    await finish(context, series, definition, until, summary, columns={})
    return summary


def summarize_changes(prepared: Sequence[PreparedChange]) -> Summary:
    summary = Summary()
    summary.dates = [_describe_change(change) for change in prepared]
    summary.trashed = sum(entry["after"] is None for entry in summary.dates)
    summary.changed = len(prepared) - summary.trashed
    return summary


def _describe_change(change: PreparedChange) -> dict[str, Any]:
    current: Any = {**change.row, **change.changed}
    return {
        "event": change.row["id"],
        "before": times.format_datetime(change.row["start_local"]),
        "after": times.format_datetime(current["start_local"]) if current["status"] != "trash" else None,
    }


def _merge(summary: Summary, later: Summary) -> None:
    """Add the effects of a second step; a date that both have changed counts once."""
    dates = {entry["event"]: entry for entry in summary.dates}
    for entry in later.dates:
        earlier = dates.get(entry["event"])
        dates[entry["event"]] = entry if earlier is None else {**entry, "before": earlier["before"]}
    summary.dates = list(dates.values())
    summary.created, summary.lost_own = later.created, later.lost_own
    summary.trashed = sum(entry["after"] is None for entry in summary.dates)
    summary.changed = len(summary.dates) - summary.created - summary.trashed

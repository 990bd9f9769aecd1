"""Undoing edits to a series with all their effects, and restoring a series from the trash."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, LiteralString

from kalends.accounts.storage import user_tables
from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.access.permissions import count_new_record
from kalends.calendar.kinds.events import EVENTS, LOCAL_TIME_COLUMNS, SEARCHED_COLUMNS, derive_list_columns
from kalends.calendar.kinds.kind import Kind, Values
from kalends.calendar.kinds.posts import plan_status, strip_trashed_suffix, trash_columns
from kalends.calendar.kinds.series_kind import CONTENT_FIELDS, LINK_COLUMNS, SERIES, TIMES
from kalends.calendar.operations.record_history import list_changes_since
from kalends.calendar.operations.record_verbs import fetch_editable_row
from kalends.calendar.storage import history_tables, record_tables
from kalends.core import errors, times
from kalends.core.slugs import TRASHED_SUFFIX
from kalends.series import storage as series_storage
from kalends.series.consequences import fetch_series, write_series
from kalends.series.operations.series_create import list_dates_or_raise
from kalends.series.operations.series_edit import Target, compute_until, finish, run_edit
from kalends.series.operations.series_matching import find_later_dates, match_definition
from kalends.series.operations.series_writing import (
    ExistingRecords,
    SeriesWrite,
    Summary,
    change_events,
    check_permission,
    require_publisher,
    write_dates,
)
from kalends.series.storage import decode_definition
from kalends.store import Row
from kalends.store.change_log import decode_columns, encode_columns
from kalends.store.database import Transaction
from kalends.store.sql import Sql

# An undo recomputes trash columns and slugs, because a former slug may be in use by now.
RECOMPUTED: Final = frozenset({"trashed_status", "trashed_at", "slug"})
# An undo ignores differences in these columns, because they can change without an edit.
UNCOMPARED: Final = RECOMPUTED | {"modified_utc", "uid"}
FIELD_NAMES: Final[Mapping[str, str]] = {
    **CONTENT_FIELDS,
    **dict.fromkeys(LOCAL_TIME_COLUMNS, TIMES),
    "own_fields": "own",
    "series_id": "series",
}
# Decoders for columns that are stored as text in JSON.
DECODERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("start_local", "end_local", "slot", "published_at"), datetime.fromisoformat),
    **dict.fromkeys(("added", "removed"), lambda values: [datetime.fromisoformat(value) for value in values]),
    "password_hash": bytes.fromhex,
}

Record = Mapping[str, Any]


@dataclass(slots=True)
class Restoration:
    """The series and event columns that an undo writes back, encoded as in the change log."""

    series: dict[str, Any] = field(default_factory=dict[str, Any])
    events: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    others: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])  # other series, by ID
    conflicts: dict[int, set[str]] = field(default_factory=dict[int, set[str]])


async def restore_series(kind: Kind, context: OperationContext) -> Outcome:
    """Revert a series and its dates to a revision, or restore them from the trash."""
    series = await fetch_editable_row(kind, context)
    return await run_edit(context, Target(series, None, "restore"), lambda: _restore(kind, context, series))


async def _restore(kind: Kind, context: OperationContext, series: Row) -> Summary:
    tx, revision = context.transaction, context.values.get("revision")
    if revision is None:
        restoration, rows = await _read_trash(context, series)
    else:
        changes = await list_changes_since(tx, kind, series["id"], revision)
        restoration, rows = await _read_changes(tx, series, changes)
    if restoration.conflicts and not context.values.get("force"):
        raise errors.series_undo_conflicts(_describe_conflicts(restoration, rows))
    for event_id in restoration.events:
        check_permission(context.actor, rows[event_id])
    require_publisher(context.actor, [restoration.series, *restoration.events.values()])
    return await _write_back(context, series, restoration, rows)


async def _load_rows(tx: Transaction, series_id: int, event_ids: Iterable[int]) -> dict[int, Row]:
    """Return a series' current events and the given events, by ID; the given events may have left the series."""
    where = Sql(
        "r.site_id = ? AND (r.series_id = ? OR r.id = ANY(?)) ORDER BY r.slot", tx.site.id, series_id, list(event_ids)
    )
    return {row["id"]: row for row in await tx.fetch_all(EVENTS.select(where))}


# Changes that can be undone ------------------------------------------------------------------


async def _read_trash(context: OperationContext, series: Row) -> tuple[Restoration, dict[int, Row]]:
    """Return how to restore a trashed series and the dates trashed with it."""
    tx = context.transaction
    if series["status"] != "trash":
        raise errors.missing_params(["revision"])
    changes = await history_tables.list_record_changes(tx, SERIES.name, series["id"])
    if trashing := [change for change in changes if change["action"] == "trash"][:1]:
        return await _read_changes(tx, series, trashing)
    # The log entry for the move to the trash has been trimmed.
    rows = await _load_rows(tx, series["id"], [])
    together = await series_storage.list_trashed_together(tx, series["id"])
    events = {event_id: {"status": rows[event_id]["trashed_status"] or "draft"} for event_id in together}
    return Restoration({"status": series["trashed_status"] or "draft"}, events), rows


async def _read_changes(tx: Transaction, series: Row, changes: Sequence[Row]) -> tuple[Restoration, dict[int, Row]]:
    """Return what to write back to undo these changes (newest first), and the series' events."""
    caused = [await series_storage.list_caused_changes(tx, change["revision"]) for change in changes]
    event_ids = [entry["record_id"] for entries in caused for entry in entries if entry["kind"] == EVENTS.name]
    rows = await _load_rows(tx, series["id"], event_ids)
    return _undo(changes, caused, rows), rows


def _undo(changes: Sequence[Row], caused: Sequence[Sequence[Row]], rows: Mapping[int, Row]) -> Restoration:
    """Undo changes (newest first) and the event changes that each one caused."""
    restoration = Restoration()
    for change, entries in zip(changes, caused, strict=True):
        restoration.series.update(decode_columns(change["before"]))
        for entry in reversed(entries):
            if entry["kind"] == SERIES.name:
                # Trash a series that was split off; restore one that was merged.
                columns = {"status": "trash"} if entry["action"] == "create" else decode_columns(entry["before"])
                restoration.others.setdefault(entry["record_id"], {}).update(columns)
            elif (row := rows.get(entry["record_id"])) is not None:
                _undo_event(restoration, row, entry)
    return restoration


def _undo_event(restoration: Restoration, row: Row, entry: Row) -> None:
    """Undo a change to an event. Columns edited since then keep their values and count as conflicts."""
    before, after = decode_columns(entry["before"]), decode_columns(entry["after"])
    target = restoration.events.setdefault(row["id"], {})
    current = {**_encode_row(row, after), **target}
    changed = {name for name in after if name in current and name not in UNCOMPARED and current[name] != after[name]}
    # Trash an event that the change created. If it was edited since then, the caller must confirm this.
    if entry["action"] == "create":
        target["status"] = "trash"
        changed -= {"status"}
    else:
        target.update({name: value for name, value in before.items() if name not in changed | RECOMPUTED})
    if changed:
        restoration.conflicts.setdefault(row["id"], set()).update(changed)


def _describe_conflicts(restoration: Restoration, rows: Mapping[int, Row]) -> list[dict[str, Any]]:
    return [
        {
            "event": event_id,
            "slot": times.format_datetime(rows[event_id]["slot"] or rows[event_id]["start_local"]),
            "fields": sorted({FIELD_NAMES.get(name, name) for name in columns}),
        }
        for event_id, columns in restoration.conflicts.items()
    ]


# Writing back --------------------------------------------------------------------------------


async def _write_back(
    context: OperationContext, series: Row, restoration: Restoration, rows: Mapping[int, Row]
) -> Summary:
    tx = context.transaction
    existing = await ExistingRecords.load(tx, [restoration.series, *restoration.events.values()])
    cause = await write_series(tx, series, await _build_series_columns(tx, series, restoration.series, existing))
    await _write_others(context, restoration, existing, cause)
    events = restoration.events
    changes = await change_events(
        tx,
        [rows[event_id] for event_id in events],
        {event_id: _plan_event(tx, rows[event_id], columns, existing) for event_id, columns in events.items()},
        cause,
        {event_id: existing.find_links(columns) for event_id, columns in events.items()},
    )
    current: dict[int, Any] = {**rows, **{change.row["id"]: change.row_after for change in changes}}
    summary = Summary().add(changes)
    if (restored := await fetch_series(tx, series["id"]))["status"] != "trash":
        _merge(summary, await _complete_dates(context, restored, current, cause))
    summary.kept_own = _describe_conflicts(restoration, rows)
    return summary


async def _write_others(
    context: OperationContext, restoration: Restoration, existing: ExistingRecords, cause: int
) -> None:
    """Write back other series to or from which the edit moved dates."""
    tx = context.transaction
    for series_id, columns in restoration.others.items():
        if (row := await SERIES.fetch(tx, series_id)) is not None:
            permissions.require_edit(context.actor, SERIES, row)
            if values := await _build_series_columns(tx, row, columns, existing):
                await write_series(tx, row, values, cause=cause)


async def _build_series_columns(
    tx: Transaction, series: Row, columns: Record, existing: ExistingRecords
) -> dict[LiteralString, Any]:
    values = _decode({name: value for name, value in columns.items() if name not in RECOMPUTED - {"slug"}})
    existing.drop_lost_image(values)
    if "author_id" in values and not await user_tables.has_user(tx, values["author_id"]):
        del values["author_id"]
    status = values.get("status", series["status"])
    slug = strip_trashed_suffix(str(values.get("slug", series["slug"])))
    values["slug"] = await record_tables.find_free_slug(
        tx, "series", slug + TRASHED_SUFFIX if status == "trash" else slug, series["id"]
    )
    values.update(trash_columns(series, status, tx.now))
    return {name: value for name, value in values.items() if name not in series or series[name] != value}


def _plan_event(tx: Transaction, row: Row, columns: Record, existing: ExistingRecords) -> Values:
    """Return the columns to write back to an event; `change_events` replaces a slug in use."""
    values: Values = _decode({name: value for name, value in columns.items() if name not in LINK_COLUMNS})
    existing.drop_lost_image(values)
    values.update(plan_status(row, str(values.get("status", row["status"])), tx.now))
    values.update(_derive_columns(row, values))
    return values


async def _complete_dates(context: OperationContext, series: Row, rows: Mapping[int, Row], cause: int) -> Summary:
    """Create missing events, trash events at dates that the rules no longer produce, and update all other events."""
    tx = context.transaction
    definition = decode_definition(series)
    until = compute_until(series, definition, tx.now)
    members = [row for row in rows.values() if row["series_id"] == series["id"]]
    dates = list_dates_or_raise(definition, until)
    matches = match_definition(members, [*dates, *find_later_dates(definition, members, dates)], tx.now)
    await count_new_record(context, sum(match.row is None for match in matches))
    write = SeriesWrite(series, definition, cause, context.actor, replaces_own=True, is_limited=False)
    trashed = {row["slot"]: row for row in members if row["status"] == "trash"}
    summary = await write_dates(tx, write, matches, trashed)
    await finish(context, series, definition, until, summary, columns={})
    return summary


def _merge(summary: Summary, later: Summary) -> None:
    """Add the effects of a second step to the summary. An event that both steps changed counts once."""
    dates = {entry["event"]: entry for entry in summary.dates}
    for entry in later.dates:
        earlier = dates.get(entry["event"])
        dates[entry["event"]] = entry if earlier is None else {**entry, "before": earlier["before"]}
    summary.dates = list(dates.values())
    summary.created, summary.lost_own = later.created, later.lost_own
    summary.trashed = sum(entry["after"] is None for entry in summary.dates)
    summary.changed = len(summary.dates) - summary.created - summary.trashed


# Converting columns from and to the change log -----------------------------------------------


def _encode_row(row: Row | Record, names: Iterable[str]) -> dict[str, Any]:
    """Return a row's columns as the change log stores them."""
    return decode_columns(encode_columns({name: row[name] for name in names if name in row}))


def _decode(columns: Record) -> dict[LiteralString, Any]:
    """Convert logged columns to database values."""
    decoded: dict[Any, Any] = {
        name: DECODERS[name](value) if name in DECODERS and value is not None else value
        for name, value in columns.items()
    }
    return decoded


def _derive_columns(row: Row | Record, values: Values) -> Values:
    """Return the columns derived from an event's changed columns: instants, search text, whether it is free."""
    derived: Values = {}
    if set(values) & set(LOCAL_TIME_COLUMNS):
        current: dict[str, Any] = {name: values.get(name, row[name]) for name in LOCAL_TIME_COLUMNS}
        derived["start_utc"] = times.utc_of(current["start_local"], current["timezone"], current["start_fold"])
        derived["end_utc"] = times.utc_of(current["end_local"], current["timezone"], current["end_fold"])
    if set(values) & {*SEARCHED_COLUMNS, "cost"}:
        derived.update(derive_list_columns(values, row))  # type: ignore[arg-type]
    return derived

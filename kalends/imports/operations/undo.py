"""Undoes a run with a separate plan. The plan restores fields that are unchanged since the run."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, LiteralString

import orjson

from kalends.accounts.storage import user_tables
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds import BY_NAME, KINDS
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Kind, Values
from kalends.calendar.kinds.media_kind import FOCUS, MEDIA, TEXTS
from kalends.calendar.kinds.series_kind import SERIES
from kalends.calendar.operations import site_options
from kalends.calendar.operations.record_history import INTERNAL_COLUMNS, param_name, write_back
from kalends.calendar.operations.record_verbs import remove_term
from kalends.calendar.operations.writes import build_write_context, remove_record, write_changes
from kalends.calendar.storage import history_tables, record_tables
from kalends.calendar.storage.record_tables import unlink_events
from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.imports.operations.import_rows import LOCAL, SOURCE, load_rows
from kalends.imports.operations.import_runs import store_rows, update_counts
from kalends.imports.operations.plan import CHUNK, key_of
from kalends.imports.operations.row_writing import Applied, trash_record
from kalends.imports.operations.sources import fetch_run
from kalends.imports.storage import import_lists, import_tables
from kalends.imports.storage.import_tables import decode, encode, encode_message
from kalends.media import storage as media_storage
from kalends.series.operations.series_undo import restore_series
from kalends.store import Row
from kalends.store.change_log import decode_columns, encode_columns
from kalends.store.database import Transaction
from kalends.store.site_database import SiteDatabase
from kalends.store.sql import Sql

USERS: Final = "users"
USED_ACCOUNT: Final = Message("The account stays, because it has been used or has records.")
# Set in an item's `fingerprint` column if the move-in created the account and may change it.
CREATED: Final = "created"
# Columns that are derived from others. A difference in them is not an edit by a person.
UNCOMPARED: Final = INTERNAL_COLUMNS | {"slug"}
# Kinds whose changes can be undone.
UNDONE_KINDS: Final[Mapping[str, Kind]] = {**BY_NAME, MEDIA.name: MEDIA}
KEPT: Final = Message("It stays, because people have changed it since.")
UNDOABLE_STATES: Final = ("applied", "planned", "failed")


@dataclass(slots=True)
class Undone:
    """A run's changes to one record, in the format of the change log."""

    kind: str
    record_id: int
    is_created: bool = False
    before: dict[str, Any] = field(default_factory=dict[str, Any])
    after: dict[str, Any] = field(default_factory=dict[str, Any])
    first_revision: int = 0
    last_revision: int = 0

    @property
    def was_trashed(self) -> bool:
        """Return whether the run left the record in the trash."""
        return bool(self.after.get("status") == "trash")

    def add(self, change: Row) -> None:
        """Add a change. Changes must be added newest first."""
        self.is_created = self.is_created or change["action"] == "create"
        self.before.update(decode_columns(change["before"]))
        self.after = {**decode_columns(change["after"]), **self.after}
        self.first_revision = change["revision"]
        self.last_revision = self.last_revision or change["revision"]


async def plan_undo(database: SiteDatabase, site_id: int, run_id: int, *, user_id: int | None, now: datetime) -> int:
    """Plan to undo a run; return the new run's ID."""
    async with database.transaction(site_id, now, writing=True) as tx:
        await tx.lock_site(user_id)
        run = await fetch_run(tx, run_id)
        _check(tx, run)
        undo_id = await import_tables.add_run(tx, run["source_id"], {"user_id": user_id, "undoes": run_id})
    await fill_undo(database, site_id, undo_id, now)
    return undo_id


async def fill_undo(database: SiteDatabase, site_id: int, undo_id: int, now: datetime) -> None:
    """Make and store the plan for an undo run."""
    async with database.transaction(site_id, now, writing=False) as tx:
        run = await fetch_run(tx, (await fetch_run(tx, undo_id))["undoes"])
        _check(tx, run)
        rows = [*await _draft_rows(tx, run), *await _plan_accounts(tx, run)]
    await store_rows(database, site_id, undo_id, rows, now)
    async with database.transaction(site_id, now, writing=True) as tx:
        await update_counts(tx, undo_id, same=0)
        await import_tables.change_run(tx, undo_id, {"state": "planned", "planned_at": now})


async def _draft_rows(tx: Transaction, run: Row) -> list[dict[str, Any]]:
    """Return the rows of the plan, starting with the latest change."""
    changes = await import_tables.list_run_changes(tx, run["id"])
    undone = collect(changes)
    plan = UndoPlan(
        tx,
        events=[entry["record_id"] for entry in changes if entry["kind"] == EVENTS.name],
        sent=await _read_sent_fields(tx, run["id"]),
        edited=await import_tables.list_edited_records(tx, run["first_revision"]),
    )
    records = await _load_records(tx, undone)
    rows = [await _plan_row(plan, entry, records.get((entry.kind, entry.record_id))) for entry in undone]
    return [row for row in rows if row is not None]


async def _load_records(tx: Transaction, undone: Sequence[Undone]) -> dict[tuple[str, int], Row]:
    records: dict[tuple[str, int], Row] = {}
    for kind in dict.fromkeys(entry.kind for entry in undone):
        ids = [entry.record_id for entry in undone if entry.kind == kind]
        for start in range(0, len(ids), CHUNK):
            rows = await load_rows(tx, UNDONE_KINDS[kind], ids[start : start + CHUNK])
            records.update({(kind, record_id): row for record_id, row in rows.items()})
    return records


def _check(tx: Transaction, run: Row) -> None:
    if run["undoes"] is not None or run["state"] not in UNDOABLE_STATES or run["first_revision"] is None:
        raise errors.import_state(run["state"])
    if run["first_revision"] <= tx.site.trimmed_revision:
        raise errors.expired(tx.site.trimmed_revision)


def collect(changes: Sequence[Row]) -> list[Undone]:
    """Group changes (newest first) by record. Changes that a series made to its dates belong to the series."""
    records: dict[tuple[str, int], Undone] = {}
    created_dates = {c["record_id"] for c in changes if c["cause"] is not None and c["action"] == "create"}
    for change in changes:
        is_date = change["kind"] == EVENTS.name and (
            change["cause"] is not None or change["record_id"] in created_dates
        )
        if change["kind"] in UNDONE_KINDS and not is_date:
            key = change["kind"], change["record_id"]
            records.setdefault(key, Undone(*key)).add(change)
    return list(records.values())


async def _read_sent_fields(tx: Transaction, run_id: int) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the fields that the run changed, by record."""
    sent: dict[tuple[str, int], dict[str, Any]] = {}
    number = 0
    while rows := await import_lists.list_rows(tx, run_id, after=number, limit=1000):
        for row in rows:
            if row["state"] == "applied" and row["record_id"] is not None:
                sent[row["kind"], row["record_id"]] = orjson.loads(row["changes"])
        number = rows[-1]["number"]
    return sent


@dataclass(frozen=True, slots=True)
class UndoPlan:
    tx: Transaction
    events: Sequence[int]  # the run's events
    sent: Mapping[tuple[str, int], dict[str, Any]]  # fields changed by the run's rows
    edited: Collection[tuple[str, int]]  # records that were edited since the run began, except by imports


async def _plan_row(plan: UndoPlan, undone: Undone, row: Row | None) -> dict[str, Any] | None:
    """Return the row for a record, or None if nothing is left to undo."""
    if row is None or (undone.is_created and row.get("status") == "trash" and not undone.was_trashed):
        return None
    changes, reasons = await _compare(plan, undone, row)
    is_empty = not undone.is_created and not any(change["decision"] == SOURCE for change in changes.values())
    facts = {
        **{name: getattr(undone, name) for name in ("is_created", "before", "after")},
        **{name: getattr(undone, name) for name in ("first_revision", "last_revision")},
        "fields": plan.sent.get((undone.kind, undone.record_id), {}),
    }
    return {
        "action": "gone" if undone.is_created else "changed",
        "kind": undone.kind,
        "title": str(row.get("title") or row.get("name") or "")[:500],
        "record_id": undone.record_id,
        "record_revision": row["revision"],
        "imported": orjson.loads(encode(facts)),
        "changes": changes,
        "reasons": [encode_message(reason) for reason in reasons],
        "state": "skipped" if is_empty or (reasons and undone.is_created) else "pending",
    }


async def _compare(plan: UndoPlan, undone: Undone, row: Row) -> tuple[dict[str, dict[str, Any]], list[Message]]:
    """Return which fields to restore and which to keep, and why a record cannot be undone completely."""
    kind = UNDONE_KINDS[undone.kind]
    if undone.is_created:
        if (undone.kind, undone.record_id) in plan.edited:
            return {}, [KEPT]
        return {}, await find_users(plan.tx, kind, undone.record_id, plan.events)
    if kind is SERIES:
        is_edited = await is_edited_since(plan.tx, undone)
        reason = Message("The series has been changed since. Undo the changes on its page.")
        return {"series": _describe(None, None, None, LOCAL if is_edited else SOURCE)}, [reason] if is_edited else []
    current = encode_row(row)
    kept = find_edited(undone, current)
    changes = {
        param_name(kind, name): _describe(
            current.get(name), undone.after.get(name), value, LOCAL if name in kept else SOURCE
        )
        for name, value in undone.before.items()
        if name not in INTERNAL_COLUMNS
    }
    reason = Message("Fields that people have changed since keep their values.")
    return changes, [reason] if kept else []


def find_edited(undone: Undone, current: Mapping[str, Any]) -> set[str]:
    """Return the columns that have changed since the run. The time columns count as one."""
    edited = {
        name
        for name, value in undone.after.items()
        if name not in UNCOMPARED and name in current and current[name] != value
    }
    times = {"start_local", "end_local", "timezone", "all_day", "start_fold", "end_fold"}
    return edited | (times if edited & times else set())


def _describe(stored: object, before: object, now: object, decision: str) -> dict[str, Any]:
    return {"stored": stored, "before": before, "now": now, "decision": decision}


async def find_users(tx: Transaction, kind: Kind, record_id: int, undone: Sequence[int] = ()) -> list[Message]:
    """Return the reason to keep a venue, organizer or term if events other than `undone` use it."""
    for link in (link for other in KINDS for link in other.links if link.kind == kind.name):
        count: int = await tx.fetch_value(
            Sql(
                "SELECT count(*) FROM "
                + link.table
                + " l JOIN events e ON e.site_id = l.site_id AND e.id = l.event_id"
            )
            + Sql("WHERE l.site_id = ? AND l." + link.column + " = ? AND e.status <> 'trash'", tx.site.id, record_id)
            + Sql("AND NOT e.id = ANY(?)", list(undone))
        )
        if count:
            return [Message("It stays, because {count} events use it.", count=count)]
    return []


async def is_edited_since(tx: Transaction, undone: Undone) -> bool:
    later = await history_tables.list_record_changes(tx, undone.kind, undone.record_id, after=undone.last_revision)
    return bool(later)


def encode_row(row: Row) -> dict[str, Any]:
    return decode_columns(encode_columns(dict(row)))


async def _plan_accounts(tx: Transaction, run: Row) -> list[dict[str, Any]]:
    """Return rows for the accounts that a run created or changed.

    They come last, because records refer to authors.
    """
    planned: list[dict[str, Any]] = []
    for row in await import_tables.list_account_rows(tx, run["id"]):
        used = row["action"] == "new" and await user_tables.is_used(tx, row["record_id"])
        planned.append(
            {
                "action": "gone" if row["action"] == "new" else "changed",
                "kind": USERS,
                "identity": row["identity"],
                "title": row["title"],
                "record_id": row["record_id"],
                "imported": {"is_created": row["action"] == "new"},
                "changes": orjson.loads(row["changes"]),
                "reasons": [encode_message(USED_ACCOUNT)] if used else [],
                "state": "skipped" if used else "pending",
            }
        )
    return planned


# Applying the plan -----------------------------------------------------------------------------


# Number of events to unlink from a term in one step. A transaction runs as many steps as its time allows.
MAX_UNLINKED: Final = 20
# Columns of an account by field of the source.
COLUMNS: Final[Mapping[str, LiteralString]] = {
    "login": "login",
    "email": "email",
    "role": "role",
    "name": "display_name",
}


async def apply_undo_row(context: OperationContext, source: Row, row: Row) -> Applied:
    """Undo a run's changes to one record, except to fields that were edited since."""
    tx, facts = context.transaction, decode(row["imported"])
    if row["kind"] == USERS:
        return await _undo_account(tx, source, row)
    kind, fields = UNDONE_KINDS[row["kind"]], facts.pop("fields")
    undone = Undone(row["kind"], row["record_id"], **facts)
    record = await kind.fetch(tx, row["record_id"])
    warnings: list[Message] = []
    if record is not None and undone.is_created:
        is_edited = record["revision"] != row["record_revision"] and await _is_edited(tx, undone)
        warnings = [KEPT] if is_edited else await find_users(tx, kind, record["id"])
        if not warnings and not await _unlink(tx, kind, record):
            return Applied(row["record_id"], is_done=False)
        warnings = warnings or await _remove_created(context, source, kind, record)
    elif record is not None:
        warnings = await _undo_changes(context, kind, record, undone)
    if source["interval_minutes"] is None:
        # If the same file is uploaded again, it must be compared with the state before the run. For a
        # subscription, this would import again what people have undone.
        await _reset_items(tx, source, undone, fields)
    return Applied(row["record_id"], tuple(warnings))


async def _is_edited(tx: Transaction, undone: Undone) -> bool:
    return (undone.kind, undone.record_id) in await import_tables.list_edited_records(tx, undone.last_revision)


async def _undo_changes(context: OperationContext, kind: Kind, record: Row, undone: Undone) -> list[Message]:
    """Restore fields that have not been edited since the run."""
    if kind is SERIES:
        if await is_edited_since(context.transaction, undone):
            raise ApiError(409, "rest-import-changed-since", Message("The series has been changed since."))
        values = {"revision": undone.first_revision - 1, "force": True}
        await restore_series(SERIES, replace(context, record_id=record["id"], values=values))
        return []
    kept = find_edited(undone, encode_row(record))
    columns = {name: value for name, value in undone.before.items() if name not in kept}
    if kind is MEDIA:
        return await _restore_image(context, record, columns)
    await write_back(kind, context, record, columns)
    return []


async def _restore_image(context: OperationContext, record: Row, columns: Mapping[str, Any]) -> list[Message]:
    """Restore an image's texts, focus point and author. The previous file is not kept, so a replaced file stays."""
    arguments = {name: columns[name] for name in (*TEXTS, *FOCUS) if name in columns}
    values: Values = await MEDIA.writes.to_columns(build_write_context(context, arguments, record, record["id"]))
    if "author_id" in columns:
        values["author_id"] = columns["author_id"]
    if columns.get("added_at"):
        values["added_at"] = datetime.fromisoformat(columns["added_at"])
    await write_changes(MEDIA, context.transaction, record, values)
    return [Message("The image’s former file has not been kept.")] if "url" in columns else []


# Records created by the run ------------------------------------------------------------------


async def _unlink(tx: Transaction, kind: Kind, record: Row) -> bool:
    """Unlink events from a term that is about to be deleted. Return whether no linked events are left."""
    if not kind.is_term:
        return True
    table, column = ("event_categories", "category_id") if kind.is_nested else ("event_tags", "tag_id")
    return await unlink_events(tx, table, column, record["id"], MAX_UNLINKED) < MAX_UNLINKED


async def _remove_created(context: OperationContext, source: Row, kind: Kind, record: Row) -> list[Message]:
    """Remove a record, unless it is an image in use. If the record stays, return the reason."""
    tx = context.transaction
    if kind is MEDIA:
        if await media_storage.find_references(tx, record["id"], 1):
            return [Message("It stays, because records use it.")]
        await media_storage.replace_files(tx, record["id"], [])
        await remove_record(MEDIA, tx, record)
        return []
    if kind.is_term:
        await remove_term(kind, context, record, record.get("parent"))
    elif source["kind"] == "tec":
        # The IDs must be free in case the site moves in again.
        await record_tables.remove_redirects(tx, kind.name, record["id"])
        await remove_record(kind, tx, record)
    else:
        await trash_record(context, kind, record["id"], with_past=True)
    return []


async def _reset_items(tx: Transaction, source: Row, undone: Undone, fields: Mapping[str, Any]) -> None:
    for item in await import_tables.list_source_items(tx, source["id"], undone.kind, undone.record_id):
        if undone.is_created:
            await import_tables.remove_item(tx, source["id"], key_of(item))
            continue
        sent, stored = decode(item["source_values"]), decode(item["stored_values"])
        for name, change in fields.items():
            sent[name], stored[name] = change["before"], change["stored"]
        sent = {name: value for name, value in sent.items() if value is not None}
        await import_tables.save_items(
            tx, source["id"], [{**dict(item), "source_values": sent, "stored_values": stored}]
        )
    await import_tables.change_source(tx, source["id"], {"input_hash": None, "etag": "", "last_modified": ""})


# Accounts and settings that a move-in wrote ----------------------------------------------------


async def _undo_account(tx: Transaction, source: Row, row: Row) -> Applied:
    """Remove the account if the run created it and it is unused; otherwise restore its former values."""
    user_id: int = row["record_id"]
    if not decode(row["imported"])["is_created"]:
        await _restore_account(tx, user_id, decode(row["changes"]))
        return Applied(user_id)
    if await user_tables.is_used(tx, user_id) or await user_tables.count_own_records(tx, user_id):
        return Applied(user_id, (USED_ACCOUNT,))
    await user_tables.remove_user(tx, user_id)
    await import_tables.remove_item(tx, source["id"], (USERS, row["identity"], ""))
    return Applied(user_id)


async def _restore_account(tx: Transaction, user_id: int, changes: Mapping[str, Any]) -> None:
    """Restore values that are unchanged since the run."""
    for name, change in changes.items():
        column = COLUMNS.get(name)
        if column is not None and change["before"] is not None:
            await tx.execute(
                Sql("UPDATE users SET " + column + " = ?", change["before"])
                + Sql("WHERE site_id = ? AND id = ? AND " + column + " = ?", tx.site.id, user_id, change["now"])
            )


async def restore_site(tx: Transaction, run: Row) -> None:
    """Restore settings that are unchanged since the move-in wrote them, and remove the move-in's path prefixes."""
    before: dict[str, Any] = decode(run["options"]).get("site_before") or {}
    if not before:
        return
    current = await site_options.read_settings(tx)
    changed = {
        name: entry["before"]
        for name, entry in before["settings"].items()
        if current[name] == entry["after"] and entry["before"] != entry["after"]
    }
    if changed:
        await site_options.set_several(tx, changed)
    statement = "UPDATE sites SET former_host = ?, former_last_id = ? WHERE id = ?"
    await tx.execute(Sql(statement, before["former_host"], before["former_last_id"], tx.site.id))
    await record_tables.remove_prefixes(tx, before.get("prefixes", []))
    source = await import_tables.find_source(tx, run["source_id"])
    if source is not None:
        facts = {**decode(source["facts"]), "settings": before["known_settings"]}
        await import_tables.change_source(tx, source["id"], {"facts": encode(facts)})

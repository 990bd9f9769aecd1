"""Applying a plan that undoes a run, record by record."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Kind, Values
from kalends.kinds.media import FOCUS, MEDIA, TEXTS
from kalends.kinds.series import SERIES
from kalends.operations.context import OperationContext
from kalends.operations.history import write_back
from kalends.operations.imports import undo_accounts
from kalends.operations.imports.row_writing import Applied, trash_record
from kalends.operations.imports.undo import (
    KEPT,
    UNDONE_KINDS,
    Undone,
    encode_row,
    find_edited,
    find_users,
    is_edited_since,
)
from kalends.operations.imports.writing import fetch_row
from kalends.operations.records import remove_term
from kalends.operations.series.matching import load_occurrences
from kalends.operations.series.undo import restore_series
from kalends.operations.writes import build_write_context, change_record, remove_record, write_changes
from kalends.store import Row, imports, media, slug_redirects
from kalends.store.database import Transaction
from kalends.store.links import unlink_events

# Events that lose a term in one step; a transaction has as many steps as its time allows.
MAX_UNLINKED: Final = 20


async def apply_undo_row(context: OperationContext, source: Row, row: Row) -> Applied:
    """Undo what a run has done to one record, as far as nobody has changed it since."""
    tx, facts = context.transaction, imports.decode(row["imported"])
    if row["kind"] == undo_accounts.KIND:
        return await undo_accounts.undo_account(tx, source, row)
    kind, fields = UNDONE_KINDS[row["kind"]], facts.pop("fields")
    undone = Undone(row["kind"], row["record_id"], **facts)
    record = await fetch_row(tx, kind, row["record_id"])
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
        # The next upload of the same file is to find the state before the run. A subscription must not bring back
        # what people have undone.
        await _reset_items(tx, source, undone, fields)
    return Applied(row["record_id"], tuple(warnings))


async def _is_edited(tx: Transaction, undone: Undone) -> bool:
    """Return whether people have changed a record after the plan was made."""
    return (undone.kind, undone.record_id) in await imports.list_edited_records(tx, undone.last_revision)


async def _undo_changes(context: OperationContext, kind: Kind, record: Row, undone: Undone) -> list[Message]:
    """Give the fields of a record that nobody has changed since their former values."""
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
    """Restore the texts of an image. Its former file has not been kept."""
    arguments = {name: columns[name] for name in (*TEXTS, *FOCUS) if name in columns}
    values: Values = await MEDIA.writes.to_columns(build_write_context(context, arguments, record, record["id"]))
    if "author_id" in columns:
        values["author_id"] = columns["author_id"]
    if columns.get("added_at"):
        values["added_at"] = datetime.fromisoformat(columns["added_at"])
    await write_changes(MEDIA, context.transaction, record, values, {})
    return [Message("The former file of the image has not been kept.")] if "url" in columns else []


# Records that the run has created ------------------------------------------------------------


async def _unlink(tx: Transaction, kind: Kind, record: Row) -> bool:
    """Unlink events from a term that is about to be deleted; return whether none is left."""
    if not kind.is_term:
        return True
    table, column = ("event_categories", "category_id") if kind.is_nested else ("event_tags", "tag_id")
    return await unlink_events(tx, table, column, record["id"], MAX_UNLINKED) < MAX_UNLINKED


async def _remove_created(context: OperationContext, source: Row, kind: Kind, record: Row) -> list[Message]:
    """Remove a record, unless it is an image in use; return why it stays."""
    tx = context.transaction
    if kind is MEDIA:
        if await media.find_references(tx, record["id"], 1):
            return [Message("It stays, because records use it.")]
        await media.replace_files(tx, record["id"], [])
        await remove_record(MEDIA, tx, record)
        return []
    if kind.is_term:
        await remove_term(kind, context, record, record.get("parent"))
    elif source["kind"] == "tec":
        # A site that moves in again has to find its IDs free.
        await slug_redirects.remove_redirects(tx, kind.name, record["id"])
        await remove_record(kind, tx, record)
    else:
        await _trash(context, kind, record)
    return []


async def _trash(context: OperationContext, kind: Kind, record: Row) -> None:
    if record["status"] == "trash":
        return
    if kind is not SERIES:
        await change_record(kind, context, record, {"status": "trash"})
        return
    await trash_record(context, record, is_series=True)
    occurrences = await load_occurrences(context.transaction, record["id"])
    for event in occurrences.active.values():
        await change_record(EVENTS, context, event, {"status": "trash"})


async def _reset_items(tx: Transaction, source: Row, undone: Undone, fields: Mapping[str, Any]) -> None:
    for item in await imports.list_source_items(tx, source["id"], undone.kind, undone.record_id):
        if undone.is_created:
            await imports.remove_item(tx, source["id"], item["kind"], item["identity"], item["recurrence_id"])
            continue
        sent, stored = imports.decode(item["source_values"]), imports.decode(item["stored_values"])
        for name, change in fields.items():
            sent[name], stored[name] = change["before"], change["stored"]
        sent = {name: value for name, value in sent.items() if value is not None}
        await imports.save_items(tx, source["id"], [{**dict(item), "source_values": sent, "stored_values": stored}])
    await imports.change_source(tx, source["id"], {"input_hash": None, "etag": "", "last_modified": ""})

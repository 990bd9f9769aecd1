"""Applying one row of a plan. What it does is decided again from the record as it is now."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kalends.core.imports.records import ImportedRecord
from kalends.core.messages import Message
from kalends.core.series import content_at, date_at
from kalends.kinds import BY_NAME
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Values
from kalends.kinds.series import CONTENT_DEFAULTS, LINK_COLUMNS, SERIES, decode_content, span_columns
from kalends.operations.context import OperationContext
from kalends.operations.imports import comparison
from kalends.operations.imports.authority import FieldChange, list_taken
from kalends.operations.imports.deletions import MIN_ABSENCES
from kalends.operations.imports.duplicates import remember_different
from kalends.operations.imports.stored_fields import read_stored_fields
from kalends.operations.imports.writing import Written, fetch_row, save_item, write_imported
from kalends.operations.series.edit import ALL, Target, trash_dates
from kalends.operations.series.rows import fetch_series
from kalends.operations.series.undo import restore_series
from kalends.operations.writes import change_record, write_changes
from kalends.store import Row, imports
from kalends.store.imports import decode_imported
from kalends.store.series import decode_definition


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of a row."""

    record_id: int | None
    warnings: tuple[Message, ...] = ()
    changes: Mapping[str, FieldChange] | None = None  # planned again, because the record has changed since
    is_done: bool = True  # False: the row has to be applied once more, in another transaction


async def apply_row(context: OperationContext, source: Row, row: Row) -> Applied:
    """Apply a row. Raise ApiError if that is not possible."""
    if row["action"] == "gone":
        return await _remove(context, row)
    if row["imported"] is None:
        return await _revert_date(context, source, row)
    imported, warnings = _without_failed_image(context, decode_imported(row))
    if row["action"] == "moved":
        former = imports.decode(row["changes"])["identity"]["before"]
        await imports.rename_item(
            context.transaction, source["id"], (row["kind"], former, row["recurrence_id"]), row["identity"]
        )
    # An image that cannot be fetched now does not remove the one before.
    skipped = {"image"} if warnings else set[str]()
    applied = await _write(context, source, row, imported, skipped)
    if applied.record_id is not None and imported.kind == "events":
        for event_id in row["different_from"]:
            await remember_different(context.transaction, applied.record_id, event_id)
    return replace(applied, warnings=(*warnings, *applied.warnings))


async def _write(
    context: OperationContext, source: Row, row: Row, imported: ImportedRecord, skipped: set[str]
) -> Applied:
    tx, kind = context.transaction, BY_NAME[imported.kind]
    item = await imports.find_item(tx, source["id"], *imported.key)
    record_id = item["record_id"] if item is not None else row["record_id"]
    record = await fetch_row(tx, kind, record_id) if record_id is not None else None
    if record is None:
        return _report(await write_imported(context, source, imported, None))
    if imported.is_linked and item is None:
        # A record that exists is used as it is.
        await save_item(tx, source, imported, record["id"], written=())
        return Applied(record["id"])
    if record.get("status") == "trash":
        if item is None or item["absences"] < MIN_ABSENCES:
            await save_item(tx, source, imported, record["id"], written=())
            return Applied(record["id"])
        record = await _restore(context, record)
    items = (await comparison.load_items(tx, kind.name, [record["id"]])).get(record["id"], [])
    changes = comparison.compare_with_row(source, item, imported, record, items)
    taken = list_taken(changes) - skipped
    written = await write_imported(context, source, imported, record, fields=taken)
    is_stale = row["record_revision"] not in (None, record["revision"])
    return replace(_report(written), changes=changes if is_stale else None)


def _report(written: Written) -> Applied:
    return Applied(written.record_id, written.warnings)


def _without_failed_image(
    context: OperationContext, imported: ImportedRecord
) -> tuple[ImportedRecord, list[Message]]:
    """Leave out an image that cannot be fetched: the record is worth more."""
    url = imported.values.get("image")
    fetched = context.fetched_images.get(url) if isinstance(url, str) else None
    message = getattr(fetched, "message", None)
    if message is None and (context.library is not None or not isinstance(url, str)):
        return imported, []
    values = {name: value for name, value in imported.values.items() if name != "image"}
    reason = message or Message("images are not fetched here.")
    return replace(imported, values=values), [Message("The image is left out: {reason}", reason=reason)]


# The trash -----------------------------------------------------------------------------------


async def _remove(context: OperationContext, row: Row) -> Applied:
    """Move a record to the trash that its source no longer has."""
    kind = BY_NAME[row["kind"]]
    record = await fetch_row(context.transaction, kind, row["record_id"])
    if record is not None and record["status"] != "trash":
        await trash_record(context, record, is_series=kind is SERIES)
    return Applied(row["record_id"])


async def trash_record(context: OperationContext, record: Row, *, is_series: bool) -> None:
    if is_series:
        await trash_dates(context, Target(record, None, ALL))
    else:
        await change_record(EVENTS, context, record, {"status": "trash"})


async def _restore(context: OperationContext, record: Row) -> Row:
    """Take a record out of the trash into which an import had moved it."""
    tx = context.transaction
    if "parts" in record:
        await restore_series(SERIES, replace(context, record_id=record["id"], values={}))
        return await fetch_series(tx, record["id"])
    await change_record(EVENTS, context, record, {"status": record["trashed_status"] or "draft"})
    restored = await fetch_row(tx, EVENTS, record["id"])
    return restored if restored is not None else record


# Dates of series -----------------------------------------------------------------------------


async def _revert_date(context: OperationContext, source: Row, row: Row) -> Applied:
    """Let a date follow its series again, except for fields that a person has changed."""
    tx = context.transaction
    item = await imports.find_item(tx, source["id"], row["kind"], row["identity"], row["recurrence_id"])
    record = await fetch_row(tx, EVENTS, row["record_id"])
    if item is not None:
        await imports.remove_item(tx, source["id"], row["kind"], row["identity"], row["recurrence_id"])
    if item is None or record is None or record["series_id"] is None or record["status"] == "trash":
        return Applied(row["record_id"])
    written = imports.decode(item["stored_values"])
    if read_stored_fields(EVENTS, record, written) == written:
        await _follow_series(context, record)
    return Applied(record["id"])


async def _follow_series(context: OperationContext, record: Row) -> None:
    definition = decode_definition(await fetch_series(context.transaction, record["series_id"]))
    date = date_at(definition, record["slot"])
    content: dict[str, Any] = {**CONTENT_DEFAULTS, **content_at(definition, record["slot"])}
    links = {link: content[column] for link, column in zip(EVENTS.links, LINK_COLUMNS, strict=True)}
    values: Values = {**decode_content(content), **span_columns(date.part, date.span())}
    await write_changes(EVENTS, context.transaction, record, values, links)

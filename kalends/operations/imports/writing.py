"""Writing one imported record through the rules of the API: the only place where imports change records."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, LiteralString

import orjson

from kalends.core.html.sanitize import fold
from kalends.core.imports.fields import compute_fingerprint, list_fields, select_fields
from kalends.core.imports.records import ImportedRecord
from kalends.core.messages import Message
from kalends.core.params import MAX_ID, NOT_NULLABLE, read_params
from kalends.core.slugs import make_slug
from kalends.kinds import BY_NAME
from kalends.kinds.kind import Kind, Link, Values
from kalends.kinds.series import SERIES
from kalends.operations import permissions
from kalends.operations.context import OperationContext
from kalends.operations.imports.linked_rows import LINKED_KINDS
from kalends.operations.imports.series_writing import add_imported_series, change_imported_series
from kalends.operations.imports.stored_fields import read_stored_fields
from kalends.operations.linked_drafts import publish_with_event
from kalends.operations.links import find_identical, resolve_links
from kalends.operations.media.images import resolve_image_url
from kalends.operations.writes import add_record, build_write_context, write_changes
from kalends.store import Row, imports, records
from kalends.store.database import Transaction
from kalends.store.sql import Sql, join

# Columns that an import sets exactly, and how their JSON is read.
TIME_COLUMNS: Final[tuple[LiteralString, ...]] = ("published_at", "modified_utc", "trashed_at")
TEXT_COLUMNS: Final[tuple[LiteralString, ...]] = ("slug", "uid", "feed_guid", "status", "trashed_status")
HASH_COLUMNS: Final[tuple[LiteralString, ...]] = ("password_hash",)
# The tables that share one counter of IDs.
POST_TABLES: Final[tuple[LiteralString, ...]] = ("events", "series", "venues", "organizers", "media")
TERM_TABLES: Final[tuple[LiteralString, ...]] = ("categories", "tags")


@dataclass(frozen=True, slots=True)
class Written:
    """A record after it was written; the revision is that of the record."""

    record_id: int
    revision: int
    warnings: tuple[Message, ...] = ()


async def write_imported(
    context: OperationContext,
    source: Row,
    imported: ImportedRecord,
    row: Row | None,
    *,
    fields: Collection[str] | None = None,
) -> Written:
    """Create or change a record and save its item. `row` is the current row of the record; None: it is created.

    `fields` are the fields to write, by the names of `list_fields`; None: all of them. If nothing differs, only the
    item is written. The site is locked. Raises ApiError if the record is not acceptable.
    """
    kind = BY_NAME[imported.kind]
    permissions.require_writer(context.actor, kind)
    row = row or await _find_existing(kind, context, source, imported)
    if row is not None:
        permissions.require_edit(context.actor, kind, row)
    wanted = imported if fields is None else _select(imported, fields)
    links, warnings = await _resolve_identities(context.transaction, source, wanted)
    record_id = await _write(context, source, wanted, row, links)
    if kind.is_event and source["kind"] != "tec":
        await publish_with_event(context.transaction, context.actor, kind, record_id)
    stored = await save_item(context.transaction, source, imported, record_id, written=fields)
    return Written(record_id, stored["revision"], tuple(warnings))


def _select(imported: ImportedRecord, fields: Collection[str]) -> ImportedRecord:
    """Return the record with these fields only; a field that the source no longer has is null."""
    cleared = {name: None for name in fields if name not in list_fields(imported) and "." not in name}
    selected = select_fields(imported, fields)
    return replace(selected, values={**selected.values, **cleared})


async def save_item(
    tx: Transaction,
    source: Row,
    imported: ImportedRecord,
    record_id: int,
    *,
    written: Collection[str] | None = None,
) -> Row:
    """Save what the source has sent and what was stored for it; return the row of the record.

    `written` are the fields that were written; None: all. The others keep the values that an import stored earlier,
    because those of now are edits by people.
    """
    kind = BY_NAME[imported.kind]
    row = await fetch_row(tx, kind, record_id)
    if row is None:
        raise AssertionError(f"{kind.singular} {record_id} vanished inside its own transaction")
    values = list_fields(imported)
    stored = {} if written is None else await _read_earlier(tx, source, imported)
    stored.update(read_stored_fields(kind, row, values if written is None else written))
    item = {
        "kind": imported.kind,
        "identity": imported.identity,
        "recurrence_id": imported.recurrence_id,
        "record_id": record_id,
        "fingerprint": compute_fingerprint(imported),
        "source_values": values,
        "stored_values": stored,
    }
    await imports.save_items(tx, source["id"], [item])
    return row


async def _read_earlier(tx: Transaction, source: Row, imported: ImportedRecord) -> dict[str, Any]:
    item = await imports.find_item(tx, source["id"], *imported.key)
    return orjson.loads(item["stored_values"]) if item is not None else {}


async def fetch_row(tx: Transaction, kind: Kind, record_id: int) -> Row | None:
    return await tx.fetch_one(kind.select(Sql("r.site_id = ? AND r.id = ?", tx.site.id, record_id)))


async def _write(
    context: OperationContext,
    source: Row,
    imported: ImportedRecord,
    row: Row | None,
    identities: Mapping[str, list[int]],
) -> int:
    kind, tx = BY_NAME[imported.kind], context.transaction
    values = _complete_values(kind, source, imported, identities, is_new=row is None)
    # Sanitizing long texts would block the event loop.
    arguments = await asyncio.to_thread(read_params, kind.fields, values, update=row is not None)
    links = {link: identities[link.param] for link in kind.links if link.param in identities}
    wanted_id = None if row is not None else await _choose_id(tx, kind, imported.wanted_id)
    if kind is SERIES:
        return await _write_series(replace(context, values=arguments), imported, row, wanted_id, links)
    links = {**(await resolve_links(kind, context, arguments, row)).ids, **links}
    columns = await _read_columns(tx, kind, imported.columns, row)
    if row is None:
        return await add_record(kind, context, arguments, links, record_id=wanted_id, columns=columns)
    resolved = await resolve_image_url(context, arguments)
    stored = await kind.writes.to_columns(build_write_context(context, resolved, row, row["id"]))
    await write_changes(kind, tx, row, {**stored, **columns}, links)
    return int(row["id"])


async def _write_series(
    context: OperationContext,
    imported: ImportedRecord,
    row: Row | None,
    wanted_id: int | None,
    links: Mapping[Link, list[int]],
) -> int:
    if row is not None:
        await change_imported_series(context, row, links)
        return int(row["id"])
    series_id = context.transaction.changes.take_post_id(wanted_id)
    await add_imported_series(context, series_id, imported.columns, links)
    return series_id


# Values --------------------------------------------------------------------------------------


def _complete_values(
    kind: Kind, source: Row, imported: ImportedRecord, identities: Mapping[str, list[int]], *, is_new: bool
) -> dict[str, Any]:
    """Return the parameters of a write: those of the record, linked records, and the defaults of the source."""
    single = {
        name: _first(ids) for name, ids in identities.items() if not any(name == link.param for link in kind.links)
    }
    known = {param.name: param for param in kind.fields}
    values = {**imported.values, **single}
    if is_new:
        return {
            **_read_defaults(kind, source, is_linked=imported.is_linked),
            **{name: value for name, value in values.items() if value is not None},
        }
    # A value that the source no longer has is cleared where the parameter allows it.
    return {
        name: value
        for name, value in values.items()
        if value is not None or known[name].type.null_value is not NOT_NULLABLE
    }


def _first(ids: list[int]) -> int | None:
    return ids[0] if ids else None


def _read_defaults(kind: Kind, source: Row, *, is_linked: bool) -> dict[str, Any]:
    """Return the values of new records that the source determines. A linked record is published with its events."""
    defaults: dict[str, Any] = {}
    if kind.is_post:
        defaults["status"] = "draft" if is_linked else source["default_status"]
    if source["default_category_id"] is not None and any(link.param == "categories" for link in kind.links):
        defaults["categories"] = [source["default_category_id"]]
    return defaults


async def _read_columns(tx: Transaction, kind: Kind, columns: Mapping[str, Any], row: Row | None) -> Values:
    """Return the exact columns of a record, with a slug and a UID that are free."""
    values: Values = {name: columns[name] for name in TEXT_COLUMNS if name in columns}
    values.update({name: _read_time(columns[name]) for name in TIME_COLUMNS if name in columns})
    values.update({name: _read_hash(columns[name]) for name in HASH_COLUMNS if name in columns})
    if unknown := set(columns) - set(values):
        raise AssertionError(f"columns that an import does not set: {sorted(unknown)}")
    record_id = row["id"] if row is not None else 0
    if columns.get("slug"):
        values["slug"] = await records.find_free_slug(tx, kind.name, columns["slug"], record_id)
    if "uid" in values and await _has_uid(tx, kind, columns["uid"], record_id):
        del values["uid"]
    if "feed_guid" in values and row is not None and await _read_guid(tx, record_id) == values["feed_guid"]:
        del values["feed_guid"]
    return values


def _read_time(value: str | None) -> datetime | None:
    return datetime.fromisoformat(value) if value else None


def _read_hash(value: str | None) -> bytes | None:
    return bytes.fromhex(value) if value else None


async def _has_uid(tx: Transaction, kind: Kind, uid: str, own_id: int) -> bool:
    """Return whether another record has a UID; each is unique."""
    found = await tx.fetch_value(
        Sql("SELECT true FROM " + kind.name + " WHERE site_id = ? AND uid = ? AND id <> ?", tx.site.id, uid, own_id)
    )
    return bool(found)


async def _read_guid(tx: Transaction, event_id: int) -> str | None:
    guid: str | None = await tx.fetch_value(
        Sql("SELECT feed_guid FROM events WHERE site_id = ? AND id = ?", tx.site.id, event_id)
    )
    return guid


# Identities ----------------------------------------------------------------------------------


async def _resolve_identities(
    tx: Transaction, source: Row, imported: ImportedRecord
) -> tuple[dict[str, list[int]], list[Message]]:
    """Return the IDs of linked records by parameter, and a warning for each that is missing."""
    resolved: dict[str, list[int]] = {}
    warnings: list[Message] = []
    for name, identities in imported.links.items():
        kind = LINKED_KINDS[name]
        known = await imports.find_record_ids(tx, source["id"], kind, identities) if identities else {}
        resolved[name] = [known[identity] for identity in dict.fromkeys(identities) if identity in known]
        warnings += [
            Message(
                "`{field}`: the source has no usable record {identity}, so it is left out.",
                field=name,
                identity=identity,
            )
            for identity in identities
            if identity not in known
        ]
    return resolved, warnings


async def _choose_id(tx: Transaction, kind: Kind, wanted_id: int | None) -> int | None:
    """Return the wanted ID if it is free; None: the next one."""
    if wanted_id is None or not 0 < wanted_id <= MAX_ID:
        return None
    tables = POST_TABLES if kind.is_post else TERM_TABLES
    parts = [
        Sql("SELECT id FROM " + table + " WHERE site_id = ? AND id = ?", tx.site.id, wanted_id) for table in tables
    ]
    taken = await tx.fetch_all(join(" UNION ALL ", parts))
    return None if taken else wanted_id


async def _find_existing(kind: Kind, context: OperationContext, source: Row, imported: ImportedRecord) -> Row | None:
    """Return the record that a new item stands for: a date of a series, a term, an identical venue or organizer."""
    tx = context.transaction
    if imported.recurrence_id:
        return await _find_date(tx, source, imported)
    if kind.is_term:
        return await _find_term(tx, kind, imported)
    if kind.is_shared and kind is not SERIES and imported.wanted_id is None and not imported.links:
        arguments = read_params(kind.fields, imported.values)
        record_id = await find_identical(kind, context, arguments)
        return await fetch_row(tx, kind, record_id) if record_id is not None else None
    return None


async def _find_date(tx: Transaction, source: Row, imported: ImportedRecord) -> Row | None:
    """Return the event of a date of a series that came from the same source; None: the source has no series."""
    found = await imports.find_record_ids(tx, source["id"], "series", [imported.identity])
    if imported.identity not in found:
        return None
    slot = datetime.fromisoformat(imported.recurrence_id)
    return await tx.fetch_one(
        BY_NAME["events"].select(
            Sql("r.site_id = ? AND r.series_id = ? AND r.slot = ?", tx.site.id, found[imported.identity], slot)
        )
    )


async def _find_term(tx: Transaction, kind: Kind, imported: ImportedRecord) -> Row | None:
    slug = imported.columns.get("slug") or imported.values.get("slug") or make_slug(str(imported.values["name"]))
    same_name = Sql("r.name_folded = ?", fold(str(imported.values["name"])))
    condition = Sql("r.slug = ?", slug) if "slug" in {**imported.columns, **imported.values} else same_name
    return await tx.fetch_one(
        kind.select(Sql("r.site_id = ? AND", tx.site.id) + condition + Sql("ORDER BY r.id LIMIT 1"))
    )

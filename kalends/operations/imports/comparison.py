"""Comparing imported records with stored ones, for planning and for applying."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from kalends.core.imports.fields import list_fields
from kalends.core.imports.places import make_linked
from kalends.core.imports.records import ImportedRecord
from kalends.core.imports.table_places import describe
from kalends.kinds import BY_NAME
from kalends.operations.imports.authority import FieldChange, RecordState, compare
from kalends.operations.imports.linked_rows import PLACES
from kalends.operations.imports.stored_fields import read_stored_fields
from kalends.store import Row, imports
from kalends.store.database import Transaction
from kalends.store.imports import encode
from kalends.store.sql import Sql


def normalize_fields(imported: ImportedRecord) -> dict[str, Any]:
    """Return the fields of an imported record as they are stored as JSON."""
    fields: dict[str, Any] = orjson.loads(encode(list_fields(imported)))
    return fields


def read_before(item: Row | None) -> dict[str, Any]:
    """Return the fields that the source sent last; none if it did not know the record.

    Tables used to name the data of venues and organizers, to which they link now.
    """
    fields: dict[str, Any] = orjson.loads(item["source_values"]) if item is not None else {}
    for name, kind in PLACES.items():
        entries = fields.get(name)
        if isinstance(entries, list):
            fields[name] = {"linked": [make_linked(kind, describe(entry), {}, None).identity for entry in entries]}
    return fields


def compare_with_row(
    source: Row, item: Row | None, imported: ImportedRecord, row: Row, items: Sequence[Row]
) -> dict[str, FieldChange]:
    """Return the changed fields with their decisions. `items` are those of the record, of all sources."""
    now, before = normalize_fields(imported), read_before(item)
    stored = read_stored_fields(BY_NAME[imported.kind], row, [*now, *before])
    written = [orjson.loads(other["stored_values"]) for other in items]
    return compare(source["authority"], RecordState(before, now, stored, written, _find_reserved(source, items)))


def _find_reserved(source: Row, items: Iterable[Row]) -> set[str]:
    """Return the fields that sources supply that are trusted more."""
    own = (source["trust_rank"], source["id"])
    better = (item for item in items if (item["trust_rank"], item["source_id"]) < own)
    return {name for item in better for name in orjson.loads(item["source_values"])}


async def load_rows(tx: Transaction, kind: str, ids: Sequence[int]) -> dict[int, Row]:
    """Return the rows of records by ID."""
    rows = await tx.fetch_all(BY_NAME[kind].select(Sql("r.site_id = ? AND r.id = ANY(?)", tx.site.id, list(ids))))
    return {row["id"]: row for row in rows}


async def load_items(tx: Transaction, kind: str, ids: Sequence[int]) -> Mapping[int, list[Row]]:
    """Return the items of records by record, of all sources."""
    items: dict[int, list[Row]] = {}
    for item in await imports.list_items_of_records(tx, kind, ids):
        items.setdefault(item["record_id"], []).append(item)
    return items

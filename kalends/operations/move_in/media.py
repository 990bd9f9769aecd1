"""Images of the former site in the media library: with their ID, author, date and texts."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from kalends.core.errors import InvalidValue
from kalends.core.imports.fields import list_fields
from kalends.core.imports.records import ImportedRecord
from kalends.core.params import read_params
from kalends.kinds.kind import Values
from kalends.kinds.media import MEDIA
from kalends.operations.context import OperationContext
from kalends.operations.media.images import add_image, replace_image
from kalends.operations.media.library import Library, StoredImage
from kalends.operations.writes import build_write_context, write_changes
from kalends.store import Row, imports
from kalends.store.database import Transaction
from kalends.store.sql import Sql


async def store_file(library: Library, site_id: int, url: str, content: bytes) -> StoredImage:
    """Store the file of an image before its record is written. Raise InvalidValue if it is not acceptable."""
    if len(content) > library.max_bytes:
        raise InvalidValue("exceeds {limit} bytes.", limit=library.max_bytes)
    async with library.open_work_directory() as directory:
        path = directory / "file"
        await asyncio.to_thread(path.write_bytes, content)
        return await library.store_image(site_id, path, title=Path(unquote(urlsplit(url).path)).name)


async def write_image(
    context: OperationContext,
    source: Row,
    imported: ImportedRecord,
    stored: StoredImage,
    *,
    author_ids: Mapping[str, int],
    row: Row | None,
) -> int:
    """Create or change an image and save its item; return its ID. The site is locked."""
    tx, library = context.transaction, context.library
    if library is None:
        raise AssertionError("images without a media library")
    arguments = read_params(MEDIA.fields, dict(imported.values))
    columns = _read_columns(imported, author_ids)
    if row is None:
        media_id = await add_image(
            tx, library, stored, user_id=None, arguments=arguments, source=columns, media_id=imported.wanted_id
        )
    else:
        media_id = row["id"]
        await replace_image(tx, library, row, stored)
        row = await fetch_image(tx, media_id) or row
        values = await MEDIA.writes.to_columns(build_write_context(context, arguments, row, media_id))
        await write_changes(MEDIA, tx, row, {**values, **columns}, {})
    await _save_item(tx, source, imported, media_id)
    return media_id


async def fetch_image(tx: Transaction, media_id: int) -> Row | None:
    return await tx.fetch_one(MEDIA.select(Sql("r.site_id = ? AND r.id = ?", tx.site.id, media_id)))


def _read_columns(imported: ImportedRecord, author_ids: Mapping[str, int]) -> Values:
    """Return the columns that no parameter sets: the author and the times."""
    times: Values = {
        name: datetime.fromisoformat(imported.columns[name])
        for name in ("added_at", "modified_utc")
        if imported.columns.get(name)
    }
    author = next((author_ids[entry] for entry in imported.links.get("author", ()) if entry in author_ids), None)
    return {**times, "author_id": author}


async def _save_item(tx: Transaction, source: Row, imported: ImportedRecord, media_id: int) -> None:
    item: dict[str, Any] = {
        "kind": "media",
        "identity": imported.identity,
        "recurrence_id": "",
        "record_id": media_id,
        "fingerprint": str(imported.columns.get("sha256", "")),
        "source_values": list_fields(imported),
    }
    await imports.save_items(tx, source["id"], [item])

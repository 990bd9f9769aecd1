"""Image rows, the records that refer to them, and files without a record."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, LiteralString

import orjson
from asyncpg import Record

from kalends.calendar.storage import record_tables
from kalends.core import errors
from kalends.store.change_log import encode_columns
from kalends.store.database import Transaction
from kalends.store.sql import Sql

DELETION_TIMEOUT: Final = timedelta(minutes=10)
# Tables whose records can have an image, each with the condition for public records.
REFERENCING_TABLES: tuple[tuple[LiteralString, LiteralString], ...] = (
    ("events", "listed"),
    ("venues", "status = 'publish'"),
    ("organizers", "status = 'publish'"),
    ("series", "status = 'publish' AND NOT hide_from_listings"),
)


# Files without a record ------------------------------------------------------------------------


async def claim(tx: Transaction, names: Sequence[str]) -> None:
    """Reserve files for a record that is about to reference them; raise 503 if one of the files is being deleted."""
    deleting = "site_id = ? AND name = ANY(?) AND deleting_since > clock_timestamp() - ?::interval"
    query = "SELECT EXISTS (SELECT FROM orphan_files WHERE " + deleting + ")"
    if await tx.fetch_value(Sql(query, tx.site.id, list(names), DELETION_TIMEOUT)):
        raise errors.unavailable()  # The client can upload the file again after the deletion.
    await forget(tx, names)


async def release(tx: Transaction, names: Sequence[str]) -> None:
    """Add files to the orphans unless a record still refers to them."""
    await tx.execute(
        Sql("INSERT INTO orphan_files (site_id, name, since) SELECT ?, f.name, ?", tx.site.id, tx.now)
        + _unreferenced(tx, names)
        + Sql("ON CONFLICT (site_id, name) DO UPDATE SET since = excluded.since")
    )


async def find_orphans(tx: Transaction, names: Sequence[str], cutoff: datetime) -> list[str]:
    """Return the given files that no record has referenced since the cutoff."""
    rows = await tx.fetch_all(
        Sql("SELECT f.name")
        + _unreferenced(tx, names)
        + Sql("AND NOT EXISTS (SELECT FROM orphan_files s WHERE s.site_id = ? AND s.name = f.name AND s.since >= ?)",
              tx.site.id, cutoff)
    )  # fmt: skip
    return [row["name"] for row in rows]


async def mark_for_deletion(tx: Transaction, names: Sequence[str], cutoff: datetime) -> list[str]:
    """Mark the given files that no record has referenced since the cutoff; return them for the caller to delete."""
    rows = await tx.fetch_all(
        Sql("INSERT INTO orphan_files (site_id, name, since, deleting_since) SELECT ?, f.name, ?, clock_timestamp()",
            tx.site.id, tx.now)
        + _unreferenced(tx, names)
        + Sql("ON CONFLICT (site_id, name) DO UPDATE SET deleting_since = excluded.deleting_since "
              "WHERE orphan_files.since < ? RETURNING name", cutoff)
    )  # fmt: skip
    return [row["name"] for row in rows]


async def forget(tx: Transaction, names: Sequence[str]) -> None:
    await tx.execute(Sql("DELETE FROM orphan_files WHERE site_id = ? AND name = ANY(?)", tx.site.id, list(names)))


def _unreferenced(tx: Transaction, names: Sequence[str]) -> Sql:
    return Sql(
        "FROM (SELECT DISTINCT unnest(?::text[]) AS name) f WHERE NOT EXISTS "
        "(SELECT FROM media_files m WHERE m.site_id = ? AND m.name = f.name)",
        list(names),
        tx.site.id,
    )


# Images and their files ------------------------------------------------------------------------


async def find_by_file(tx: Transaction, name: str) -> int | None:
    query = "SELECT media_id FROM media_files WHERE site_id = ? AND name = ? ORDER BY media_id LIMIT 1"
    media_id: int | None = await tx.fetch_value(Sql(query, tx.site.id, name))
    return media_id


async def find_by_files(tx: Transaction, names: Collection[str]) -> dict[str, int]:
    if not names:
        return {}
    query = "SELECT name, min(media_id) AS id FROM media_files WHERE site_id = ? AND name = ANY(?) GROUP BY name"
    return {row["name"]: row["id"] for row in await tx.fetch_all(Sql(query, tx.site.id, list(names)))}


async def find_by_url(tx: Transaction, url: str) -> int | None:
    """Return the ID of an image stored on another server."""
    media_id: int | None = await tx.fetch_value(
        Sql("SELECT id FROM media WHERE site_id = ? AND url = ? ORDER BY id LIMIT 1", tx.site.id, url)
    )
    return media_id


async def list_images(
    tx: Transaction, search: str = "", limit: int | None = None, *, incomplete: bool = False
) -> list[Record]:
    """Return images ordered by ID. `search` matches the title and URL; `incomplete` selects images without sizes."""
    columns = "id, added_at, title, url, mime_type, width, height, filesize, sizes <> '{}' AS has_sizes"
    return await tx.fetch_all(
        Sql("SELECT " + columns + " FROM media WHERE site_id = ?", tx.site.id)
        + (Sql("AND strpos(lower(title || ' ' || url), ?) > 0", search.lower()) if search else Sql(""))
        + (Sql("AND sizes = '{}'") if incomplete else Sql(""))
        + Sql("ORDER BY id LIMIT ?", limit)
    )


async def find_by_source(tx: Transaction, source_hash: bytes) -> Record | None:
    query = "SELECT id, url, source_etag, source_last_modified, fetched_at FROM media"
    return await tx.fetch_one(Sql(query + " WHERE site_id = ? AND source_hash = ?", tx.site.id, source_hash))


async def find_by_upload(tx: Transaction, upload_hash: bytes) -> int | None:
    query = "SELECT id FROM media WHERE site_id = ? AND upload_sha256 = ? ORDER BY id LIMIT 1"
    media_id: int | None = await tx.fetch_value(Sql(query, tx.site.id, upload_hash))
    return media_id


async def record_fetch(tx: Transaction, media_id: int, etag: str, last_modified: str) -> None:
    """Store the validators of a repeated fetch. The image's JSON stays the same, so no change is recorded."""
    values: dict[LiteralString, object] = {
        "source_etag": etag, "source_last_modified": last_modified, "fetched_at": tx.now
    }  # fmt: skip
    await record_tables.change(tx, "media", media_id, values)


async def replace_files(tx: Transaction, media_id: int, files: Iterable[tuple[str, str]]) -> None:
    """Replace an image's files, given as pairs of name and size."""
    pairs = list(files)
    names = [name for name, _ in pairs]
    await claim(tx, names)
    removed = await tx.fetch_all(
        Sql("DELETE FROM media_files WHERE site_id = ? AND media_id = ? RETURNING name", tx.site.id, media_id)
    )
    statement = """INSERT INTO media_files (site_id, media_id, name, size)
        SELECT DISTINCT ?::bigint, ?::bigint, f.name, f.size
        FROM unnest(?::text[], ?::text[]) AS f (name, size)"""
    await tx.execute(Sql(statement, tx.site.id, media_id, names, [size for _, size in pairs]))
    await release(tx, [row["name"] for row in removed])


async def list_files(tx: Transaction, after: int, limit: int) -> list[Record]:
    query = """
        SELECT m.id, m.url, m.sizes <> '{}' AS has_sizes, m.hue IS NOT NULL AS has_hue,
            ARRAY (SELECT DISTINCT f.name FROM media_files f WHERE f.site_id = m.site_id AND f.media_id = m.id
                ORDER BY f.name) AS names
        FROM media m WHERE m.site_id = ? AND m.id > ? AND m.url NOT LIKE '%/%' ORDER BY m.id LIMIT ?
    """
    return await tx.fetch_all(Sql(query, tx.site.id, after, limit))


async def count_media(tx: Transaction) -> int:
    count: int = await tx.fetch_value(
        Sql("SELECT count(*) FROM media WHERE site_id = ? AND url NOT LIKE '%/%'", tx.site.id)
    )
    return count


# Records with images ---------------------------------------------------------------------------


def uses_image(table: str, media_id: int) -> Sql:
    """Return the condition for records that have an image, even if only in their description.

    A series may use the image only in a later change of its content.
    """
    inline = Sql("r.inline_image_ids IS NOT NULL AND ? = ANY(r.inline_image_ids)", media_id)
    if table != "series":
        return Sql("(r.image_id = ? OR", media_id) + inline + Sql(")")
    later = orjson.dumps([{"set": {"image_id": media_id}}]).decode()
    return Sql("(r.image_id = ? OR r.content_changes @> ?::jsonb OR", media_id, later) + inline + Sql(")")


async def find_references(tx: Transaction, media_id: int, limit: int) -> list[tuple[str, int]]:
    """Return the kind and ID of records that have this image, at most `limit` per kind."""
    references: list[tuple[str, int]] = []
    for table, _ in REFERENCING_TABLES:
        rows = await tx.fetch_all(
            Sql("SELECT r.id FROM " + table + " r WHERE r.site_id = ? AND", tx.site.id)
            + uses_image(table, media_id)
            + Sql("ORDER BY r.id LIMIT ?", limit)
        )
        references += [(table, row["id"]) for row in rows]
    return references


async def write_sizes(tx: Transaction, media_id: int, sizes: str, hue: int | None) -> None:
    """Store an image's sizes as JSON and its hue, and record the change for all records with the image."""
    revision = tx.changes.record("media", media_id, "update", was_public=True, is_derived=True)
    await record_tables.change(tx, "media", media_id, {"sizes": sizes, "hue": hue, "revision": revision})
    await record_reference_changes(tx, media_id)


async def record_reference_changes(tx: Transaction, media_id: int) -> None:
    """Record a derived change, not an edit, for all records that use this image (even only in the description)."""
    for table, public in REFERENCING_TABLES:
        rows = await _list_references(tx, table, public, media_id)
        await record_tables.record_changes(tx, table, rows, is_derived=True)


async def detach_image(tx: Transaction, media_id: int) -> None:
    """Remove the image from all records. Descriptions still refer to it, but are rendered without it."""
    for table, public in REFERENCING_TABLES:
        rows = await _list_references(tx, table, public, media_id)
        inline = [row for row in rows if not row["has_image"]]
        await record_tables.record_changes(tx, table, inline, is_derived=True)
        rows = [row for row in rows if row["has_image"]]
        before, after = encode_columns({"image_id": media_id}), encode_columns({"image_id": None})
        await record_tables.record_changes(
            tx, table, rows, assignment=", image_id = NULL", before=before, after=after
        )


async def _list_references(
    tx: Transaction, table: LiteralString, public: LiteralString, media_id: int
) -> list[Record]:
    columns = Sql("SELECT r.id, " + public + " AS public, coalesce(r.image_id = ?, false) AS has_image", media_id)
    rows = Sql("FROM " + table + " r WHERE r.site_id = ? AND (r.image_id = ?", tx.site.id, media_id)
    inline = Sql("OR r.inline_image_ids IS NOT NULL AND ? = ANY(r.inline_image_ids)) ORDER BY r.id", media_id)
    return await tx.fetch_all(columns + rows + inline)

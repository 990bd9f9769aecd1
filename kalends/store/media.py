"""Rows of images: lookup by file, source or upload, and the records that refer to them."""

from collections.abc import Collection, Iterable
from typing import LiteralString

import orjson
from asyncpg import Record

from kalends.store import orphan_files, records
from kalends.store.database import Transaction
from kalends.store.history import encode_columns
from kalends.store.sql import Sql

# Tables of records that may have an image, each with the condition of a public record.
REFERENCING_TABLES: tuple[tuple[LiteralString, LiteralString], ...] = (
    ("events", "listed"),
    ("venues", "status = 'publish'"),
    ("organizers", "status = 'publish'"),
    ("series", "status = 'publish' AND NOT hide_from_listings"),
)


async def find_by_file(tx: Transaction, name: str) -> int | None:
    media_id: int | None = await tx.fetch_value(
        Sql(
            "SELECT media_id FROM media_files WHERE site_id = ? AND name = ? ORDER BY media_id LIMIT 1",
            tx.site.id,
            name,
        )
    )
    return media_id


async def find_by_files(tx: Transaction, names: Collection[str]) -> dict[str, int]:
    """Return the IDs of the images that have these files, by file."""
    if not names:
        return {}
    rows = await tx.fetch_all(
        Sql(
            "SELECT name, min(media_id) AS id FROM media_files WHERE site_id = ? AND name = ANY(?) GROUP BY name",
            tx.site.id,
            list(names),
        )
    )
    return {row["name"]: row["id"] for row in rows}


async def find_by_url(tx: Transaction, url: str) -> int | None:
    """Return the ID of an image that is stored on another server."""
    media_id: int | None = await tx.fetch_value(
        Sql("SELECT id FROM media WHERE site_id = ? AND url = ? ORDER BY id LIMIT 1", tx.site.id, url)
    )
    return media_id


async def list_images(
    tx: Transaction, search: str = "", limit: int | None = None, *, incomplete: bool = False
) -> list[Record]:
    """Return images by ID: with a text in the title or file, or without generated sizes only."""
    return await tx.fetch_all(
        Sql(
            "SELECT id, added_at, title, url, mime_type, width, height, filesize, sizes <> '{}' AS has_sizes "
            "FROM media WHERE site_id = ?",
            tx.site.id,
        )
        + (Sql("AND strpos(lower(title || ' ' || url), ?) > 0", search.lower()) if search else Sql(""))
        + (Sql("AND sizes = '{}'") if incomplete else Sql(""))
        + Sql("ORDER BY id LIMIT ?", limit)
    )


async def find_by_source(tx: Transaction, source_hash: bytes) -> Record | None:
    return await tx.fetch_one(
        Sql(
            "SELECT id, url, source_etag, source_last_modified, fetched_at FROM media "
            "WHERE site_id = ? AND source_hash = ?",
            tx.site.id,
            source_hash,
        )
    )


async def find_by_upload(tx: Transaction, upload_hash: bytes) -> int | None:
    media_id: int | None = await tx.fetch_value(
        Sql(
            "SELECT id FROM media WHERE site_id = ? AND upload_sha256 = ? ORDER BY id LIMIT 1",
            tx.site.id,
            upload_hash,
        )
    )
    return media_id


async def record_fetch(tx: Transaction, media_id: int, etag: str, last_modified: str) -> None:
    """Store the validators of a repeated fetch. The JSON of the image is unaffected, so no change is recorded."""
    await tx.execute(
        Sql(
            "UPDATE media SET fetched_at = ?, source_etag = ?, source_last_modified = ? WHERE site_id = ? AND id = ?",
            tx.now,
            etag,
            last_modified,
            tx.site.id,
            media_id,
        )
    )


async def replace_files(tx: Transaction, media_id: int, files: Iterable[tuple[str, str]]) -> None:
    """Replace the files of an image, given as pairs of name and size."""
    pairs = list(files)
    names = [name for name, _ in pairs]
    await orphan_files.claim(tx, names)
    removed = await tx.fetch_all(
        Sql("DELETE FROM media_files WHERE site_id = ? AND media_id = ? RETURNING name", tx.site.id, media_id)
    )
    await tx.execute(
        Sql(
            """INSERT INTO media_files (site_id, media_id, name, size)
                SELECT DISTINCT ?::bigint, ?::bigint, f.name, f.size
                FROM unnest(?::text[], ?::text[]) AS f (name, size)""",
            tx.site.id,
            media_id,
            names,
            [size for _, size in pairs],
        )
    )
    await orphan_files.release(tx, [row["name"] for row in removed])


async def list_files(tx: Transaction, after: int, limit: int) -> list[Record]:
    """Return images in the order of their IDs, each with its files."""
    return await tx.fetch_all(
        Sql(
            """
            SELECT m.id, m.url, m.sizes <> '{}' AS has_sizes,
                ARRAY (SELECT DISTINCT f.name FROM media_files f WHERE f.site_id = m.site_id AND f.media_id = m.id
                    ORDER BY f.name) AS names
            FROM media m WHERE m.site_id = ? AND m.id > ? AND m.url NOT LIKE '%/%' ORDER BY m.id LIMIT ?
            """,
            tx.site.id,
            after,
            limit,
        )
    )


async def count_media(tx: Transaction) -> int:
    count: int = await tx.fetch_value(
        Sql("SELECT count(*) FROM media WHERE site_id = ? AND url NOT LIKE '%/%'", tx.site.id)
    )
    return count


def uses_image(table: str, media_id: int) -> Sql:
    """Return the condition for records that have an image, also inside of their description.

    A series may have it only from a later date on.
    """
    inline = Sql("r.inline_image_ids IS NOT NULL AND ? = ANY(r.inline_image_ids)", media_id)
    if table != "series":
        return Sql("(r.image_id = ? OR", media_id) + inline + Sql(")")
    later = orjson.dumps([{"set": {"image_id": media_id}}]).decode()
    return Sql("(r.image_id = ? OR r.content_changes @> ?::jsonb OR", media_id, later) + inline + Sql(")")


async def find_references(tx: Transaction, media_id: int, limit: int) -> list[tuple[str, int]]:
    """Return the records that have this image, by kind and ID, at most `limit` of each kind."""
    references: list[tuple[str, int]] = []
    for table, _ in REFERENCING_TABLES:
        rows = await tx.fetch_all(
            Sql("SELECT r.id FROM " + table + " r WHERE r.site_id = ? AND", tx.site.id)
            + uses_image(table, media_id)
            + Sql("ORDER BY r.id LIMIT ?", limit)
        )
        references += [(table, row["id"]) for row in rows]
    return references


async def write_sizes(tx: Transaction, media_id: int, sizes: str) -> None:
    """Store the sizes of an image as JSON, which all records with the image show."""
    revision = tx.changes.record("media", media_id, "update", was_public=True, is_derived=True)
    await records.change(tx, "media", media_id, {"sizes": sizes, "revision": revision})
    await record_reference_changes(tx, media_id)


async def record_reference_changes(tx: Transaction, media_id: int) -> None:
    """Give all records that have this image, also inside of their description, a new revision: nobody edited them."""
    for table, public in REFERENCING_TABLES:
        rows = await _list_references(tx, table, public, media_id)
        await records.record_changes(tx, table, rows, is_derived=True)


async def detach_image(tx: Transaction, media_id: int) -> None:
    """Remove the image from all records that have it. Descriptions are rendered without it."""
    for table, public in REFERENCING_TABLES:
        rows = await _list_references(tx, table, public, media_id)
        inline = [row for row in rows if not row["has_image"]]
        await records.record_changes(tx, table, inline, is_derived=True)
        rows = [row for row in rows if row["has_image"]]
        before, after = encode_columns({"image_id": media_id}), encode_columns({"image_id": None})
        await records.record_changes(tx, table, rows, assignment=", image_id = NULL", before=before, after=after)


async def _list_references(
    tx: Transaction, table: LiteralString, public: LiteralString, media_id: int
) -> list[Record]:
    return await tx.fetch_all(
        Sql(
            "SELECT r.id, "
            + public
            + " AS public, coalesce(r.image_id = ?, false) AS has_image FROM "
            + table
            + " r WHERE r.site_id = ? AND (r.image_id = ? "
            "OR r.inline_image_ids IS NOT NULL AND ? = ANY(r.inline_image_ids)) ORDER BY r.id",
            media_id,
            tx.site.id,
            media_id,
            media_id,
        )
    )

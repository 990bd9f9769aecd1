"""Images in the database: by their files, by where they came from, and the records that show them."""

from collections.abc import Iterable
from typing import LiteralString

from asyncpg import Record

from kalends.store import orphan_files, records
from kalends.store.database import Transaction
from kalends.store.history import encode
from kalends.store.sql import Sql

# What can have an image, and whether everybody may see such a record.
USERS: tuple[tuple[LiteralString, LiteralString], ...] = (
    ("events", "listed"),
    ("venues", "status = 'publish'"),
    ("organizers", "status = 'publish'"),
)


async def find_by_file(tx: Transaction, name: str) -> int | None:
    found: int | None = await tx.value(
        Sql(
            "SELECT media_id FROM media_files WHERE site_id = ? AND name = ? ORDER BY media_id LIMIT 1",
            tx.site.id,
            name,
        )
    )
    return found


async def find_by_address(tx: Transaction, address: str) -> int | None:
    """Of images that lie elsewhere."""
    found: int | None = await tx.value(
        Sql("SELECT id FROM media WHERE site_id = ? AND url = ? ORDER BY id LIMIT 1", tx.site.id, address)
    )
    return found


async def find_by_source(tx: Transaction, source_hash: bytes) -> Record | None:
    return await tx.row(
        Sql(
            "SELECT id, url, source_etag, source_date, fetched_at FROM media WHERE site_id = ? AND source_hash = ?",
            tx.site.id,
            source_hash,
        )
    )


async def find_by_sent(tx: Transaction, sent_hash: bytes) -> int | None:
    found: int | None = await tx.value(
        Sql("SELECT id FROM media WHERE site_id = ? AND sent_hash = ? ORDER BY id LIMIT 1", tx.site.id, sent_hash)
    )
    return found


async def note_fetch(tx: Transaction, media_id: int, etag: str, date: str) -> None:
    """The source was asked again. Nothing that is shown changes by it, so the clock stands."""
    await tx.run(
        Sql(
            "UPDATE media SET fetched_at = ?, source_etag = ?, source_date = ? WHERE site_id = ? AND id = ?",
            tx.now,
            etag,
            date,
            tx.site.id,
            media_id,
        )
    )


async def replace_files(tx: Transaction, media_id: int, files: Iterable[tuple[str, str]]) -> None:
    """The files that a record needs from now on: name and size of each."""
    listed = list(files)
    names = [name for name, _ in listed]
    await orphan_files.claim(tx, names)
    dropped = await tx.rows(
        Sql("DELETE FROM media_files WHERE site_id = ? AND media_id = ? RETURNING name", tx.site.id, media_id)
    )
    await tx.run(
        Sql(
            """INSERT INTO media_files (site_id, media_id, name, size)
                SELECT DISTINCT ?::bigint, ?::bigint, f.name, f.size
                FROM unnest(?::text[], ?::text[]) AS f (name, size)""",
            tx.site.id,
            media_id,
            names,
            [size for _, size in listed],
        )
    )
    await orphan_files.release(tx, [row["name"] for row in dropped])


async def list_files(tx: Transaction, after: int, most: int) -> list[Record]:
    """Images in the order of their IDs, each with its files."""
    return await tx.rows(
        Sql(
            """
            SELECT m.id, m.url, m.sizes <> '{}' AS has_sizes,
                ARRAY (SELECT DISTINCT f.name FROM media_files f WHERE f.site_id = m.site_id AND f.media_id = m.id
                    ORDER BY f.name) AS names
            FROM media m WHERE m.site_id = ? AND m.id > ? AND m.url NOT LIKE '%/%' ORDER BY m.id LIMIT ?
            """,
            tx.site.id,
            after,
            most,
        )
    )


async def count_media(tx: Transaction) -> int:
    found: int = await tx.value(
        Sql("SELECT count(*) FROM media WHERE site_id = ? AND url NOT LIKE '%/%'", tx.site.id)
    )
    return found


async def find_users(tx: Transaction, media_id: int, most: int) -> list[tuple[str, int]]:
    """The records that have this image, by kind and ID; so many of each kind at the most."""
    found: list[tuple[str, int]] = []
    for table, _ in USERS:
        rows = await tx.rows(
            Sql(
                "SELECT id FROM " + table + " WHERE site_id = ? AND image_id = ? ORDER BY id LIMIT ?",
                tx.site.id,
                media_id,
                most,
            )
        )
        found += [(table, row["id"]) for row in rows]
    return found


async def stamp_users(tx: Transaction, media_id: int) -> None:
    """Records show what changed about their image: they have changed too, and say so."""
    for table, public in USERS:
        await records.stamp(tx, table, await _users_of(tx, table, public, media_id))


async def take_away(tx: Transaction, media_id: int) -> None:
    """From all records that have this image, however many."""
    for table, public in USERS:
        users = await _users_of(tx, table, public, media_id)
        before, after = encode({"image_id": media_id}), encode({"image_id": None})
        await records.stamp(tx, table, users, setting=", image_id = NULL", before=before, after=after)


async def _users_of(tx: Transaction, table: LiteralString, public: LiteralString, media_id: int) -> list[Record]:
    return await tx.rows(
        Sql(
            "SELECT id, " + public + " AS public FROM " + table + " WHERE site_id = ? AND image_id = ? ORDER BY id",
            tx.site.id,
            media_id,
        )
    )

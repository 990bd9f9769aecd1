"""Addresses of the former site: image files by path, and beginnings of paths that differ here."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson
from asyncpg import Record

from kalends.store.database import Transaction
from kalends.store.sql import Sql


async def find_file(tx: Transaction, path: str) -> str | None:
    """Return the file of the nearest width that is not smaller than that of a file of the former site."""
    row = await tx.fetch_one(
        Sql(
            "SELECT f.width AS wanted, m.url, m.width, m.sizes FROM legacy_files f "
            "JOIN media m ON m.site_id = f.site_id AND m.id = f.media_id WHERE f.site_id = ? AND f.path = ?",
            tx.site.id,
            path,
        )
    )
    return _choose_file(row) if row else None


def _choose_file(row: Record) -> str:
    sizes = orjson.loads(row["sizes"]).values()
    files = [(size["width"], size["url"]) for size in sizes if size.get("width", 0) >= row["wanted"]]
    name: str = min(files, default=(0, row["url"]), key=lambda file: file[0])[1]
    return name


async def find_prefix(tx: Transaction, path: str) -> str | None:
    """Return the path that replaces one of the former site; the longest prefix counts."""
    row = await tx.fetch_one(
        Sql(
            "SELECT old, new FROM prefix_redirects WHERE site_id = ? AND starts_with(?, old) "
            "ORDER BY length(old) DESC LIMIT 1",
            tx.site.id,
            path,
        )
    )
    return row["new"] + path.removeprefix(row["old"]) if row else None


async def save_files(tx: Transaction, files: Sequence[Mapping[str, Any]]) -> None:
    """Store paths of files of the former site. Each has `path`, `media_id` and `width`."""
    await tx.execute(
        Sql(
            "INSERT INTO legacy_files (site_id, path, media_id, width) "
            "SELECT ?, f.path, f.media_id, f.width FROM jsonb_to_recordset(?::jsonb) "
            "AS f (path text, media_id bigint, width integer) "
            "ON CONFLICT (site_id, path) DO UPDATE SET media_id = excluded.media_id, width = excluded.width",
            tx.site.id,
            orjson.dumps(list(files)).decode(),
        )
    )


async def save_prefixes(tx: Transaction, prefixes: Mapping[str, str]) -> None:
    await tx.execute(
        Sql(
            "INSERT INTO prefix_redirects (site_id, old, new) "
            "SELECT ?, p.old, p.new FROM unnest(?::text[], ?::text[]) AS p (old, new) "
            "ON CONFLICT (site_id, old) DO UPDATE SET new = excluded.new",
            tx.site.id,
            list(prefixes),
            list(prefixes.values()),
        )
    )


async def remove_prefixes(tx: Transaction, prefixes: Collection[str]) -> None:
    await tx.execute(
        Sql("DELETE FROM prefix_redirects WHERE site_id = ? AND old = ANY(?)", tx.site.id, list(prefixes))
    )


async def list_files(tx: Transaction) -> list[Record]:
    return await tx.fetch_all(
        Sql("SELECT path, media_id, width FROM legacy_files WHERE site_id = ? ORDER BY path", tx.site.id)
    )


async def list_prefixes(tx: Transaction) -> dict[str, str]:
    rows = await tx.fetch_all(Sql("SELECT old, new FROM prefix_redirects WHERE site_id = ? ORDER BY old", tx.site.id))
    return {row["old"]: row["new"] for row in rows}

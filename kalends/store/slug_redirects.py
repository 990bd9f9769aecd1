"""Redirects from former public slugs. A slug that is in use again belongs to its new record.

The ID of a record that was merged into another one is redirected like a slug, in the form of its permanent link.
"""

from collections.abc import Mapping, Sequence
from typing import LiteralString

from asyncpg import Record

from kalends.store.database import Transaction
from kalends.store.sql import Sql


def id_key(record_id: int) -> str:
    """Return what stands for the slug in the redirect of an ID. No slug has a question mark."""
    return f"?p={record_id}"


async def add_redirect(tx: Transaction, table: LiteralString, slug: str, record_id: int) -> None:
    await tx.execute(
        Sql(
            "INSERT INTO slug_redirects (site_id, kind, slug, record_id) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (site_id, kind, slug) DO UPDATE SET record_id = excluded.record_id",
            tx.site.id,
            table,
            slug,
            record_id,
        )
    )


async def add_redirects(tx: Transaction, table: LiteralString, record_ids: Mapping[str, int]) -> None:
    """Add redirects from several former slugs to the records that had them."""
    await tx.execute(
        Sql(
            "INSERT INTO slug_redirects (site_id, kind, slug, record_id) "
            "SELECT ?, ?, s.slug, s.id FROM unnest(?::text[], ?::bigint[]) AS s (slug, id) "
            "ON CONFLICT (site_id, kind, slug) DO UPDATE SET record_id = excluded.record_id",
            tx.site.id,
            table,
            list(record_ids),
            list(record_ids.values()),
        )
    )


async def move_redirects(tx: Transaction, table: LiteralString, record_id: int, new_id: int) -> None:
    """Let the former slugs of a record lead to another one."""
    await tx.execute(
        Sql(
            "UPDATE slug_redirects SET record_id = ? WHERE site_id = ? AND kind = ? AND record_id = ?",
            new_id,
            tx.site.id,
            table,
            record_id,
        )
    )


async def remove_redirects(tx: Transaction, table: LiteralString, record_id: int) -> None:
    """Remove the redirects to a record that is deleted."""
    await tx.execute(
        Sql(
            "DELETE FROM slug_redirects WHERE site_id = ? AND kind = ? AND record_id = ?",
            tx.site.id,
            table,
            record_id,
        )
    )


async def current_slug(tx: Transaction, table: LiteralString, slug: str, *, is_post: bool) -> str | None:
    """Return the current slug of the record that had this slug, if the record is still public."""
    rows = await find_current(tx, table, [slug], is_post=is_post)
    return rows[0]["slug"] if rows else None


async def find_current(tx: Transaction, table: LiteralString, keys: Sequence[str], *, is_post: bool) -> list[Record]:
    """Return `key`, `id`, `slug` and `name` of the public records to which former slugs and IDs lead."""
    name: LiteralString = "title" if is_post else "name"
    visible: LiteralString = " AND r.status = 'publish'" if is_post else ""
    return await tx.fetch_all(
        Sql(
            "SELECT o.slug AS key, r.id, r.slug, r." + name + " AS name FROM slug_redirects o "
            "JOIN " + table + " r ON r.site_id = o.site_id AND r.id = o.record_id "
            "WHERE o.site_id = ? AND o.kind = ? AND o.slug = ANY(?)" + visible,
            tx.site.id,
            table,
            list(keys),
        )
    )

"""Filters of tables in the console that users have saved under a name."""

from asyncpg import Record

from kalends.store.database import Transaction
from kalends.store.sql import Sql


async def list_saved(tx: Transaction, user_id: int) -> list[Record]:
    """Return the names and query strings of the filters of a user."""
    return await tx.fetch_all(
        Sql(
            "SELECT name, query FROM saved_filters WHERE site_id = ? AND user_id = ? ORDER BY lower(name), name",
            tx.site.id,
            user_id,
        )
    )


async def save(tx: Transaction, user_id: int, name: str, query: str) -> None:
    """Save a filter; one with the same name is replaced."""
    await tx.execute(
        Sql(
            """INSERT INTO saved_filters (site_id, user_id, name, query) VALUES (?, ?, ?, ?)
                ON CONFLICT (site_id, user_id, name) DO UPDATE SET query = excluded.query""",
            tx.site.id,
            user_id,
            name,
            query,
        )
    )


async def remove(tx: Transaction, user_id: int, name: str) -> None:
    await tx.execute(
        Sql("DELETE FROM saved_filters WHERE site_id = ? AND user_id = ? AND name = ?", tx.site.id, user_id, name)
    )

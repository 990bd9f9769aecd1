"""Loading very many rows at once by COPY. The owner's work: COPY is refused under row-level security.

One transaction in one site, whose row stays locked: what is loaded appears whole or not at all.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final, LiteralString

import asyncpg

from kalends.core import errors
from kalends.store.database import Transaction
from kalends.store.sites import Site
from kalends.store.sql import Sql

# Those that grow with the number of events.
LARGE: Final[tuple[LiteralString, ...]] = (
    "events",
    "event_venues",
    "event_organizers",
    "event_categories",
    "event_tags",
    "changes",
)
SMALL: Final[tuple[LiteralString, ...]] = ("venues", "organizers", "categories", "tags", "event_days", "sites")
# From this many new events on, and if there are not as many already, indexes are built afterwards.
MANY: Final = 5_000

Told = Callable[[str, int, int], None]


class Loading:
    """What a loader may do: everything that a transaction can, and COPY."""

    def __init__(self, connection: Any, transaction: Transaction, removed: list[str]) -> None:
        self._connection = connection
        self.transaction = transaction
        self._removed = removed

    async def copy(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        await self._connection.copy_records_to_table(table, records=rows, columns=columns)

    async def complete(self, told: Told) -> None:
        """Makes again what was taken away."""
        await self._connection.execute("SET LOCAL enable_seqscan = on")
        for done, creation in enumerate(self._removed):
            told("indexes", done, len(self._removed))
            await self._connection.execute(creation)
        if self._removed:
            told("indexes", len(self._removed), len(self._removed))


@asynccontextmanager
async def loading(
    database_url: str, host: str, events: int, now_of: Callable[[Site], datetime]
) -> AsyncIterator[Loading]:
    """A transaction of the owner in the site of this host, with its clock locked."""
    connection = await asyncpg.connect(database_url)
    try:
        async with connection.transaction():
            row = await connection.fetchrow("SELECT * FROM enter_site($1)", host)
            if row is None:
                raise errors.unknown_site()
            await connection.execute(_SETTINGS)
            removed = await _make_room(connection, events)
            site = Site.of(row)
            transaction = Transaction(connection, site, now_of(site))
            await transaction.lock(None)
            yield Loading(connection, transaction, removed)
            await transaction.write_clock()
    finally:
        await connection.close()


async def _make_room(connection: Any, events: int) -> list[str]:
    """Before many rows: takes indexes and foreign keys away; the answer is how they are made again.

    Built over the finished rows they take a fraction of the time. Others wait meanwhile, so the
    tables are locked in the order of every writer, sites first.
    """
    present: float = await connection.fetchval("SELECT reltuples FROM pg_class WHERE oid = 'events'::regclass")
    if events < MANY or present > events:
        return []
    await connection.execute(f"LOCK TABLE sites IN EXCLUSIVE MODE; LOCK TABLE {', '.join(LARGE)}")
    rows = await connection.fetch(_REMOVABLE, list(LARGE))
    for row in rows:
        await connection.execute(row["removal"])
    return [row["creation"] for row in rows]


async def tidy(database_url: str, told: Told) -> None:
    """Statistics for the planner; and the visibility map, without which no index answers alone."""
    connection = await asyncpg.connect(database_url)
    tables = (*LARGE, *SMALL)
    try:
        for done, table in enumerate(tables):
            told("tidying", done, len(tables))
            await connection.execute(f"VACUUM (ANALYZE) {table}")
        told("tidying", len(tables), len(tables))
    finally:
        await connection.close()


async def taken_slugs(transaction: Transaction) -> set[str]:
    rows = await transaction.rows(
        Sql("SELECT slug FROM events WHERE site_id = ? AND slug <> ''", transaction.site.id)
    )
    return {row["slug"] for row in rows}


async def term_ids(transaction: Transaction, table: LiteralString) -> dict[str, int]:
    """The terms that are there, by folded name."""
    rows = await transaction.rows(
        Sql("SELECT name_folded, id FROM " + table + " WHERE site_id = ? ORDER BY id DESC", transaction.site.id)
    )
    return {row["name_folded"]: row["id"] for row in rows}


async def authors(transaction: Transaction) -> list[int]:
    """Those who may publish; where there is nobody yet, a new account without a password."""
    site_id = transaction.site.id
    rows = await transaction.rows(
        Sql(
            "SELECT id FROM users WHERE site_id = ? AND role IN ('author', 'editor', 'administrator') ORDER BY id",
            site_id,
        )
    )
    if rows:
        return [row["id"] for row in rows]
    added: int = await transaction.value(
        Sql("UPDATE sites SET last_user_id = last_user_id + 1 WHERE id = ? RETURNING last_user_id", site_id)
    )
    await transaction.run(
        Sql(
            "INSERT INTO users (site_id, id, login, display_name, role) VALUES (?, ?, ?, 'Made up', 'editor')",
            site_id,
            added,
            f"made-up-{added}",
        )
    )
    return [added]


# Tables that grow from nothing have no statistics, and the planner would read them whole for every slug.
_SETTINGS: Final = """
    SET LOCAL enable_seqscan = off;
    SELECT set_config(name, '512MB', true) FROM pg_settings
    WHERE name IN ('work_mem', 'maintenance_work_mem') AND setting::bigint < 512 * 1024
"""

# Indexes that no constraint rests on, and foreign keys; foreign keys come back last.
_REMOVABLE: Final = """
    SELECT format('DROP INDEX %s', i.indexrelid::regclass) AS removal, pg_get_indexdef(i.indexrelid) AS creation,
        1 AS step
    FROM pg_index i
    WHERE i.indrelid = ANY($1::text[]::regclass[])
        AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)
    UNION ALL
    SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', c.conrelid::regclass, c.conname),
        format('ALTER TABLE %s ADD CONSTRAINT %I %s', c.conrelid::regclass, c.conname, pg_get_constraintdef(c.oid)), 2
    FROM pg_constraint c
    WHERE c.contype = 'f' AND c.conrelid = ANY($1::text[]::regclass[])
    ORDER BY step
"""

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
LARGE_TABLES: Final[tuple[LiteralString, ...]] = (
    "events",
    "event_venues",
    "event_organizers",
    "event_categories",
    "event_tags",
    "changes",
)
SMALL_TABLES: Final[tuple[LiteralString, ...]] = ("venues", "organizers", "categories", "tags", "event_days", "sites")
# From this many new events on, and if there are not as many already, indexes are built afterwards.
MIN_EVENTS_TO_DROP_INDEXES: Final = 5_000

ProgressCallback = Callable[[str, int, int], None]


class BulkLoad:
    """What a loader may do: everything that a transaction can, and COPY."""

    def __init__(self, connection: Any, transaction: Transaction, definitions: list[str]) -> None:
        self._connection = connection
        self.transaction = transaction
        self._definitions = definitions

    async def copy(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        await self._connection.copy_records_to_table(table, records=rows, columns=columns)

    async def restore_indexes(self, on_progress: ProgressCallback) -> None:
        """Makes again what was taken away."""
        await self._connection.execute("SET LOCAL enable_seqscan = on")
        for done, definition in enumerate(self._definitions):
            on_progress("indexes", done, len(self._definitions))
            await self._connection.execute(definition)
        if self._definitions:
            on_progress("indexes", len(self._definitions), len(self._definitions))


@asynccontextmanager
async def open_bulk_load(
    database_url: str, host: str, event_count: int, get_now: Callable[[Site], datetime]
) -> AsyncIterator[BulkLoad]:
    """A transaction of the owner in the site of this host, with its clock locked."""
    connection = await asyncpg.connect(database_url)
    try:
        async with connection.transaction():
            row = await connection.fetchrow("SELECT * FROM enter_site($1)", host)
            if row is None:
                raise errors.unknown_site()
            await connection.execute(_SETTINGS)
            definitions = await _drop_indexes(connection, event_count)
            site = Site.from_row(row)
            transaction = Transaction(connection, site, get_now(site))
            await transaction.lock_site(None)
            yield BulkLoad(connection, transaction, definitions)
            await transaction.flush_changes()
    finally:
        await connection.close()


async def _drop_indexes(connection: Any, event_count: int) -> list[str]:
    """Before many rows: takes indexes and foreign keys away; the answer is how they are made again.

    Built over the finished rows they take a fraction of the time. Others wait meanwhile, so the
    tables are locked in the order of every writer, sites first.
    """
    existing: float = await connection.fetchval("SELECT reltuples FROM pg_class WHERE oid = 'events'::regclass")
    if event_count < MIN_EVENTS_TO_DROP_INDEXES or existing > event_count:
        return []
    await connection.execute(f"LOCK TABLE sites IN EXCLUSIVE MODE; LOCK TABLE {', '.join(LARGE_TABLES)}")
    rows = await connection.fetch(_DROPPABLE, list(LARGE_TABLES))
    for row in rows:
        await connection.execute(row["removal"])
    return [row["creation"] for row in rows]


async def vacuum_tables(database_url: str, on_progress: ProgressCallback) -> None:
    """Statistics for the planner; and the visibility map, without which no index answers alone."""
    connection = await asyncpg.connect(database_url)
    tables = (*LARGE_TABLES, *SMALL_TABLES)
    try:
        for done, table in enumerate(tables):
            on_progress("tidying", done, len(tables))
            await connection.execute(f"VACUUM (ANALYZE) {table}")
        on_progress("tidying", len(tables), len(tables))
    finally:
        await connection.close()


async def list_slugs(transaction: Transaction) -> set[str]:
    rows = await transaction.fetch_all(
        Sql("SELECT slug FROM events WHERE site_id = ? AND slug <> ''", transaction.site.id)
    )
    return {row["slug"] for row in rows}


async def find_term_ids(transaction: Transaction, table: LiteralString) -> dict[str, int]:
    """The terms that are there, by folded name."""
    rows = await transaction.fetch_all(
        Sql("SELECT name_folded, id FROM " + table + " WHERE site_id = ? ORDER BY id DESC", transaction.site.id)
    )
    return {row["name_folded"]: row["id"] for row in rows}


async def ensure_authors(transaction: Transaction) -> list[int]:
    """Those who may publish; where there is nobody yet, a new account without a password."""
    site_id = transaction.site.id
    rows = await transaction.fetch_all(
        Sql(
            "SELECT id FROM users WHERE site_id = ? AND role IN ('author', 'editor', 'administrator') ORDER BY id",
            site_id,
        )
    )
    if rows:
        return [row["id"] for row in rows]
    user_id: int = await transaction.fetch_value(
        Sql("UPDATE sites SET last_user_id = last_user_id + 1 WHERE id = ? RETURNING last_user_id", site_id)
    )
    await transaction.execute(
        Sql(
            "INSERT INTO users (site_id, id, login, display_name, role) VALUES (?, ?, ?, 'Made up', 'editor')",
            site_id,
            user_id,
            f"made-up-{user_id}",
        )
    )
    return [user_id]


# Tables that grow from nothing have no statistics, and the planner would read them whole for every slug.
_SETTINGS: Final = """
    SET LOCAL enable_seqscan = off;
    SELECT set_config(name, '512MB', true) FROM pg_settings
    WHERE name IN ('work_mem', 'maintenance_work_mem') AND setting::bigint < 512 * 1024
"""

# Indexes that no constraint rests on, and foreign keys; foreign keys come back last.
_DROPPABLE: Final = """
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

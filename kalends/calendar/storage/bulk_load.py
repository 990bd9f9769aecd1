"""Bulk loading with COPY. This requires the table owner, because COPY does not work with row-level security.

A single transaction loads all rows into one site, and keeps the site locked until it ends.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final, LiteralString

from kalends.core import errors
from kalends.store.database import ENTER_SITE_BY_HOST, ENTER_SITE_BY_ID, Transaction
from kalends.store.problems import connect_owner
from kalends.store.sites import Site, SiteConflict
from kalends.store.sql import Sql

# Tables whose size grows with the number of events.
LARGE_TABLES: Final[tuple[LiteralString, ...]] = (
    "events",
    "event_venues",
    "event_organizers",
    "event_categories",
    "event_tags",
    "changes",
)
SMALL_TABLES: Final[tuple[LiteralString, ...]] = (
    *("venues", "organizers", "categories", "tags", "series"),
    *("event_days", "link_days", "series_days", "series_steps", "sites"),
)
# When adding at least this many events, drop and rebuild the indexes, unless even more events already exist.
MIN_EVENTS_TO_DROP_INDEXES: Final = 5_000

ProgressCallback = Callable[[str, int, int], None]


class BulkLoad:
    """A transaction that can also COPY rows into tables."""

    def __init__(self, connection: Any, transaction: Transaction, definitions: list[str]) -> None:
        self._connection = connection
        self.transaction = transaction
        self._definitions = definitions

    async def copy(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        await self._connection.copy_records_to_table(table, records=rows, columns=columns)

    async def restore_indexes(self, on_progress: ProgressCallback) -> None:
        """Recreate the dropped indexes and foreign keys."""
        await self._connection.execute("SET LOCAL enable_seqscan = on")
        for done, definition in enumerate(self._definitions):
            on_progress("indexes", done, len(self._definitions))
            await self._connection.execute(definition)
        if self._definitions:
            on_progress("indexes", len(self._definitions), len(self._definitions))


@asynccontextmanager
async def open_bulk_load(
    database_url: str, site_key: str | int, event_count: int, get_now: Callable[[Site], datetime]
) -> AsyncIterator[BulkLoad]:
    """Open a transaction as the table owner, and lock the site with this host name or ID."""
    async with connect_owner(database_url) as connection, connection.transaction():
        enter_site = ENTER_SITE_BY_HOST if isinstance(site_key, str) else ENTER_SITE_BY_ID
        row = await connection.fetchrow(enter_site, site_key)
        if row is None:
            raise errors.unknown_site()
        await connection.execute(_SETTINGS)
        definitions = await _drop_indexes(connection, event_count)
        site = Site.from_row(row)
        transaction = Transaction(connection, site, get_now(site))
        await transaction.lock_site(None)
        yield BulkLoad(connection, transaction, definitions)
        await transaction.flush_changes()


async def _drop_indexes(connection: Any, event_count: int) -> list[str]:
    """Drop indexes and foreign keys before a large load; return the statements that recreate them.

    Building indexes after the load takes a fraction of the time. Other writers must wait. To prevent deadlocks, lock
    the tables in the same order as all writers do, sites first.
    """
    existing: float = await connection.fetchval("SELECT reltuples FROM pg_class WHERE oid = 'events'::regclass")
    if event_count < MIN_EVENTS_TO_DROP_INDEXES or existing > event_count:
        return []
    if await connection.fetchval("SELECT count(*) > 1 FROM sites WHERE EXISTS (SELECT FROM cell)"):
        raise SiteConflict(
            f"From {MIN_EVENTS_TO_DROP_INDEXES:,} events on, indexes are built again, and other sites of the cell "
            "would have to wait. Add fewer events at once, or use a cell without other sites."
        )
    await connection.execute(f"LOCK TABLE sites IN EXCLUSIVE MODE; LOCK TABLE {', '.join(LARGE_TABLES)}")
    rows = await connection.fetch(_DROPPABLE, list(LARGE_TABLES))
    for row in rows:
        await connection.execute(row["removal"])
    # This trigger needs the series index.
    await connection.execute("ALTER TABLE events DISABLE TRIGGER series_steps_insert")
    rebuild = ["ALTER TABLE events ENABLE TRIGGER series_steps_insert", "SELECT rebuild_series_steps()"]
    return [*[row["creation"] for row in rows], *rebuild]


async def vacuum_tables(database_url: str, on_progress: ProgressCallback) -> None:
    """Update the planner's statistics and the visibility map. Index-only scans need both."""
    tables = (*LARGE_TABLES, *SMALL_TABLES)
    async with connect_owner(database_url) as connection:
        for done, table in enumerate(tables):
            on_progress("tidying", done, len(tables))
            await connection.execute(f"VACUUM (ANALYZE) {table}")
        on_progress("tidying", len(tables), len(tables))


async def list_slugs(transaction: Transaction) -> set[str]:
    rows = await transaction.fetch_all(
        Sql("SELECT slug FROM events WHERE site_id = ? AND slug <> ''", transaction.site.id)
    )
    return {row["slug"] for row in rows}


async def find_term_ids(transaction: Transaction, table: LiteralString) -> dict[str, int]:
    """Return the IDs of existing terms by folded name."""
    rows = await transaction.fetch_all(
        Sql("SELECT name_folded, id FROM " + table + " WHERE site_id = ? ORDER BY id DESC", transaction.site.id)
    )
    return {row["name_folded"]: row["id"] for row in rows}


async def ensure_authors(transaction: Transaction) -> list[int]:
    """Return the users who may publish. If there are none, add an account without a password."""
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
            *(site_id, user_id, f"made-up-{user_id}"),
        )
    )
    return [user_id]


# New tables have no statistics, so the planner would read whole tables for every slug.
_SETTINGS: Final = """
    SET LOCAL enable_seqscan = off;
    SELECT set_config(name, '512MB', true) FROM pg_settings
    WHERE name IN ('work_mem', 'maintenance_work_mem') AND setting::bigint < 512 * 1024
"""

# Indexes that belong to no constraint, and foreign keys. Foreign keys are recreated last.
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

"""The tables that hold rows of sites, found in the catalog, and what is done with all of them alike."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any, Final

# Tables with `site_id` whose rows stay in their database.
LOCAL_TABLES: Final = ("site_hosts", "unserved_sites")
BATCH_ROWS: Final = 5000
# A site that was removed has no row; cells of different versions never have the same hash.
HASH_SITE: Final = "SELECT md5(to_jsonb(s)::text || v.version_num) FROM sites s, alembic_version v WHERE s.id = $1"
INSERT_JOBS: Final = """
    INSERT INTO procrastinate_jobs
        (queue_name, task_name, priority, lock, queueing_lock, args, status, scheduled_at, attempts)
    SELECT queue_name, task_name, priority, lock, queueing_lock, args,
        CASE status WHEN 'failed' THEN status ELSE 'todo' END, scheduled_at, attempts
    FROM jsonb_populate_recordset(NULL::procrastinate_jobs, $1::jsonb) ORDER BY id
"""
FIND_TABLES: Final = """
    SELECT c.relname AS name, a.attname AS key, c.relpersistence = 'p' AS is_logged,
        c.relreplident = 'f' OR EXISTS (
            SELECT FROM pg_index i WHERE i.indrelid = c.oid AND a.attnum = ANY(i.indkey)
            AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident END
        ) AS is_in_identity,
        ARRAY(SELECT DISTINCT f.relname FROM pg_constraint k JOIN pg_class f ON f.oid = k.confrelid
            WHERE k.contype = 'f' AND k.conrelid = c.oid AND f.oid <> c.oid) AS parents
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped
        AND a.attname = CASE c.relname WHEN 'sites' THEN 'id' ELSE 'site_id' END
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> ALL($1)
    ORDER BY c.relname
"""


@dataclass(frozen=True, slots=True)
class SiteTable:
    name: str
    key: str  # the column with the ID of the site
    is_logged: bool
    is_in_identity: bool  # whether the key belongs to the replica identity, which a filter of updates needs
    parents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableSize:
    name: str
    rows: int
    bytes: int


async def find_tables(connection: Any) -> list[SiteTable]:
    """Return all tables with rows of sites, those that refer to others first."""
    rows = await connection.fetch(FIND_TABLES, list(LOCAL_TABLES))
    tables = {row["name"]: SiteTable(**{**row, "parents": tuple(row["parents"])}) for row in rows}
    order = TopologicalSorter({name: [p for p in table.parents if p in tables] for name, table in tables.items()})
    return [tables[name] for name in reversed(tuple(order.static_order()))]


async def measure_tables(connection: Any, tables: Sequence[SiteTable], site_id: int) -> list[TableSize]:
    """Return rows and bytes of a site in each table; values that are stored outside of their row count little."""
    parts = [
        f"SELECT '{table.name}' AS name, count(*) AS rows, coalesce(sum(pg_column_size(t)), 0)::bigint AS bytes "
        f'FROM "{table.name}" t WHERE "{table.key}" = $1'
        for table in tables
    ]
    return [TableSize(**row) for row in await connection.fetch(" UNION ALL ".join(parts), site_id)]


async def find_filled(connection: Any, tables: Sequence[SiteTable], site_id: int) -> list[str]:
    """Return the tables that have rows of a site."""
    parts = [
        f'SELECT \'{table.name}\' AS name WHERE EXISTS (SELECT FROM "{table.name}" WHERE "{table.key}" = $1)'
        for table in tables
    ]
    return [row["name"] for row in await connection.fetch(" UNION ALL ".join(parts), site_id)]


async def delete_rows(
    connection: Any, site_id: int, begin_batch: Callable[[Any], Awaitable[None]], *, batch_rows: int = BATCH_ROWS
) -> AsyncIterator[int]:
    """Delete the rows of a site batch by batch; yield the number of each batch.

    Each transaction begins with `begin_batch`, which raises if the rows must not be deleted any more. Triggers do not
    run, so the deletion of an event changes no counters, and foreign keys are not enforced.
    """
    for table in await find_tables(connection):
        deleted = batch_rows
        while deleted == batch_rows:
            async with connection.transaction():
                await begin_batch(connection)
                await connection.execute("SET LOCAL session_replication_role = replica")
                status: str = await connection.execute(
                    f'DELETE FROM "{table.name}" WHERE ctid = ANY(ARRAY('
                    f'SELECT ctid FROM "{table.name}" WHERE "{table.key}" = $1 LIMIT $2))',
                    site_id,
                    batch_rows,
                )
            deleted = int(status.removeprefix("DELETE "))
            yield deleted

"""Read all of a site's rows in one snapshot, and store them as a new site in one transaction.

Reading and storing run as the table owner, because the server's role is confined to one site. PostgreSQL converts
rows to JSON and back, so no column needs separate code.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import asyncpg

from kalends.core.errors import InvalidValue
from kalends.fleet.storage.move_tables import SITES, Column, Table, read_columns, read_order
from kalends.store.problems import connect_owner, fetch_version, read_schema_version
from kalends.store.sites import add_new_host, create_site, prepare_hosts, require_no_directory, take_site_id

# Rows that an export cursor fetches at a time.
PREFETCH: Final = 500
# Errors caused by row values: data exceptions, violated constraints and too deeply nested JSON.
VALUE_STATES: Final = ("22", "23", "54001")
# Fix the JSON format of values, whatever the server's configuration, and disable timeouts.
_FORMATS: Final = """
    SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO'; SET LOCAL IntervalStyle = 'postgres';
    SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 1; SET LOCAL statement_timeout = 0;
    SET LOCAL idle_in_transaction_session_timeout = 0
"""


class RowsRefused(InvalidValue):
    """Raised if the database rejects the rows of an archive, or if the rows contradict each other."""


@dataclass(frozen=True, slots=True)
class SiteSnapshot:
    connection: Any
    id: int
    name: str
    base_url: str
    hosts: tuple[str, ...]
    schema: str

    async def count_rows(self, table: Table) -> int:
        key = _key(table)
        count: int = await self.connection.fetchval(f"SELECT count(*) FROM {table.name} WHERE {key} = $1", self.id)
        return count

    async def iterate_rows(self, table: Table) -> AsyncIterator[str]:
        """Yield the rows as JSON objects, ordered by primary key."""
        columns = await read_columns(self.connection, table)
        expressions = ", ".join(
            f"{table.written.get(column.name, f't.{_quote(column.name)}')} AS {_quote(column.name)}"
            for column in columns
        )
        # Qualify the columns in ORDER BY, because an expression may have the same name as a column.
        order = ", ".join(f"t.{name}" for name in (await read_order(self.connection, table)).split(", "))
        query = (
            f"SELECT row_to_json(r)::text FROM "
            f"(SELECT {expressions} FROM {table.name} t WHERE t.{_key(table)} = $1 ORDER BY {order}) r"
        )
        async for row in self.connection.cursor(query, self.id, prefetch=PREFETCH):
            yield row[0]

    async def list_files(self) -> list[str]:
        rows = await self.connection.fetch(
            "SELECT DISTINCT name FROM media_files WHERE site_id = $1 ORDER BY 1", self.id
        )
        return [row["name"] for row in rows]


@asynccontextmanager
async def open_snapshot(database_url: str, site_id: int) -> AsyncIterator[SiteSnapshot]:
    """Open a snapshot of an existing site, without blocking other transactions."""
    async with (
        connect_owner(database_url) as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        await connection.execute(_FORMATS)
        version = await fetch_version(connection)
        query = """SELECT s.id, s.name, s.base_url,
                ARRAY(SELECT h.host FROM site_hosts h WHERE h.site_id = s.id ORDER BY 1) AS hosts
            FROM sites s WHERE s.id = $1"""
        row = await connection.fetchrow(query, site_id)
        yield SiteSnapshot(
            connection, row["id"], row["name"], row["base_url"] or "", tuple(row["hosts"]), version.number
        )


@dataclass(frozen=True, slots=True)
class SiteLoad:
    """A site being imported, invisible until the transaction is committed."""

    connection: Any
    site_id: int

    async def read_columns(self, table: Table) -> tuple[Column, ...]:
        return await read_columns(self.connection, table)

    async def set_site(self, columns: Sequence[Column], row: str, base_url: str) -> None:
        names = [column.name for column in columns]
        targets = ", ".join(map(_quote, names))
        values = ", ".join(SITES.stored.get(name, f"r.{_quote(name)}") for name in names)
        await self._write(
            SITES,
            f"UPDATE sites SET ({targets}, base_url) = (SELECT {values}, nullif($3::text, '') "
            "FROM json_populate_record(NULL::sites, $2::json) r) WHERE id = $1",
            row,
            base_url,
        )

    async def insert_rows(self, table: Table, columns: Sequence[Column], rows: str, count: int) -> None:
        """Insert rows given as a JSON array. `set_parents` later sets the `parent` column."""
        values = {column.name: f"r.{_quote(column.name)}" for column in columns}
        values |= {table.parent: "NULL"} if table.parent else {}
        values |= table.stored
        join = "JOIN events e ON e.site_id = $1 AND e.id = r.event_id" if table.joins_event else ""
        status = await self._write(
            table,
            f"INSERT INTO {table.name} (site_id, {', '.join(map(_quote, values))}) "
            f"SELECT $1, {', '.join(values.values())} "
            f"FROM json_populate_recordset(NULL::{table.name}, $2::json) r {join}",
            rows,
        )
        if status != f"INSERT 0 {count}":
            raise RowsRefused("{table}: a row names an event that is not in the archive.", table=table.name)

    async def set_parents(self, table: Table, parents: Mapping[int, int]) -> None:
        """Set references between rows in the same table; `parents` maps row IDs to the IDs they refer to."""
        await self._write(
            table,
            f"UPDATE {table.name} t SET {table.parent} = p.parent "
            "FROM unnest($2::bigint[], $3::bigint[]) AS p (id, parent) WHERE t.site_id = $1 AND t.id = p.id",
            list(parents),
            list(parents.values()),
        )

    async def correct_places(self) -> None:
        """Correct `geoloc_known` in events whose value in the archive is wrong."""
        statement = """UPDATE events e SET geoloc_known = NOT e.geoloc_known
            WHERE e.site_id = $1 AND e.geoloc_known <> EXISTS (
                SELECT FROM event_venues l JOIN venues v ON v.site_id = l.site_id AND v.id = l.venue_id
                WHERE l.site_id = e.site_id AND l.event_id = e.id AND v.status = 'publish' AND v.location IS NOT NULL)
        """
        await self.connection.execute(statement, self.site_id)

    async def check_counters(self) -> None:
        """Refuse counters that would assign an ID or revision that already exists."""
        problem = await self.connection.fetchval(_CHECK_COUNTERS, self.site_id)
        if problem:
            raise RowsRefused("sites: {problem}.", problem=problem)

    async def enqueue_sizes(self) -> None:
        """Enqueue jobs that generate the image sizes missing from the archive."""
        await self.connection.execute("SELECT set_config('kalends.site_id', $1::text, true)", str(self.site_id))
        query = """SELECT enqueue_job('make_sizes', jsonb_build_object('media_id', m.id), NULL) FROM media m
            WHERE m.site_id = $1 AND m.sizes = '{}' AND m.url NOT LIKE '%/%'"""
        await self.connection.execute(query, self.site_id)

    async def publish(self, hosts: Sequence[str]) -> None:
        for host in hosts:
            await add_new_host(self.connection, host, self.site_id)

    async def _write(self, table: Table, query: str, *values: object) -> str:
        try:
            status: str = await self.connection.execute(query, self.site_id, *values)
        except asyncpg.PostgresError as error:
            if not (error.sqlstate or "").startswith(VALUE_STATES):
                raise
            detail = getattr(error, "detail", None)
            message = f"{error.args[0]} ({detail})" if detail else str(error.args[0])
            raise RowsRefused("{table}: {message}", table=table.name, message=message) from error
        return status


async def read_schema(database_url: str) -> str:
    return (await read_schema_version(database_url)).number


@dataclass(frozen=True, slots=True)
class SitePlace:
    """The database for a new site, and the site's ID if a directory has assigned one."""

    database_url: str
    site_id: int | None = None


@asynccontextmanager
async def open_load(place: SitePlace, hosts: Sequence[str], first_host: str) -> AsyncIterator[SiteLoad]:
    """Open a transaction that creates a site with these hosts, without blocking writes to other sites.

    If an existing site has no host, it gets `first_host`.
    """
    async with connect_owner(place.database_url) as connection, connection.transaction():
        await connection.execute(_FORMATS)
        # New tables have no statistics, so the planner would scan them in full for every foreign key.
        await connection.execute("SET LOCAL enable_seqscan = off")
        if place.site_id is None:
            await require_no_directory(connection)
        await prepare_hosts(connection, first_host, hosts)
        site_id = place.site_id or await take_site_id(connection)
        await create_site(connection, site_id, "")
        yield SiteLoad(connection, site_id)


def _key(table: Table) -> str:
    return "id" if table is SITES else "site_id"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_CHECK_COUNTERS: Final = """
    WITH highest AS (
        SELECT
            (SELECT max(id) FROM (
                SELECT max(id) AS id FROM events WHERE site_id = $1
                UNION ALL SELECT max(id) FROM series WHERE site_id = $1
                UNION ALL SELECT max(id) FROM venues WHERE site_id = $1
                UNION ALL SELECT max(id) FROM organizers WHERE site_id = $1
                UNION ALL SELECT max(id) FROM media WHERE site_id = $1) p) AS post,
            (SELECT max(id) FROM (
                SELECT max(id) AS id FROM categories WHERE site_id = $1
                UNION ALL SELECT max(id) FROM tags WHERE site_id = $1) t) AS term,
            (SELECT max(id) FROM users WHERE site_id = $1) AS account,
            (SELECT max(revision) FROM (
                SELECT max(revision) AS revision FROM changes WHERE site_id = $1
                UNION ALL SELECT max(revision) FROM events WHERE site_id = $1
                UNION ALL SELECT max(revision) FROM series WHERE site_id = $1
                UNION ALL SELECT max(revision) FROM venues WHERE site_id = $1
                UNION ALL SELECT max(revision) FROM organizers WHERE site_id = $1
                UNION ALL SELECT max(revision) FROM media WHERE site_id = $1
                UNION ALL SELECT max(revision) FROM categories WHERE site_id = $1
                UNION ALL SELECT max(revision) FROM tags WHERE site_id = $1) v) AS revision)
    SELECT format('%s is %s, but %s is in use', c.name, c.counter, c.highest)
    FROM sites s CROSS JOIN highest h CROSS JOIN LATERAL (VALUES
        ('last_post_id', s.last_post_id, h.post), ('last_term_id', s.last_term_id, h.term),
        ('last_user_id', s.last_user_id, h.account), ('revision', s.revision, h.revision)
    ) AS c (name, counter, highest)
    WHERE s.id = $1 AND c.highest > c.counter LIMIT 1
"""

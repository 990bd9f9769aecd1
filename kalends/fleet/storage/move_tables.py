"""Tables with site rows: found in the catalog for moves, and listed in this module for archives."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import Any, Final

# Tables with `site_id` whose rows do not move with the site.
LOCAL_TABLES: Final = ("site_hosts", "unserved_sites")
BATCH_ROWS: Final = 5000
# A removed site has no hash, and different schema versions never produce the same hash.
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
    key: str  # the column with the site ID
    is_logged: bool
    is_in_identity: bool  # the key must belong to the replica identity to filter updates
    parents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableSize:
    name: str
    rows: int
    bytes: int


async def find_tables(connection: Any) -> list[SiteTable]:
    """Return all tables with site rows, referencing tables first."""
    rows = await connection.fetch(FIND_TABLES, list(LOCAL_TABLES))
    tables = {row["name"]: SiteTable(**{**row, "parents": tuple(row["parents"])}) for row in rows}
    order = TopologicalSorter({name: [p for p in table.parents if p in tables] for name, table in tables.items()})
    return [tables[name] for name in reversed(tuple(order.static_order()))]


async def measure_tables(connection: Any, tables: Sequence[SiteTable], site_id: int) -> list[TableSize]:
    """Return each table's number of rows for a site, and their size in bytes as stored, with compression."""
    parts = [
        f"SELECT '{table.name}' AS name, count(*) AS rows, coalesce(sum(pg_column_size(t)), 0)::bigint AS bytes "
        f'FROM "{table.name}" t WHERE "{table.key}" = $1'
        for table in tables
    ]
    return [TableSize(**row) for row in await connection.fetch(" UNION ALL ".join(parts), site_id)]


async def find_filled(connection: Any, tables: Sequence[SiteTable], site_id: int) -> list[str]:
    parts = [
        f'SELECT \'{table.name}\' AS name WHERE EXISTS (SELECT FROM "{table.name}" WHERE "{table.key}" = $1)'
        for table in tables
    ]
    return [row["name"] for row in await connection.fetch(" UNION ALL ".join(parts), site_id)]


async def delete_rows(
    connection: Any, site_id: int, begin_batch: Callable[[Any], Awaitable[None]], *, batch_rows: int = BATCH_ROWS
) -> AsyncIterator[int]:
    """Delete a site's rows in batches; yield each batch's row count.

    Each transaction begins with `begin_batch`, which raises if the rows must no longer be deleted. Triggers do not
    run, so deleting an event changes no counters, and foreign keys are not enforced.
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


@dataclass(frozen=True, slots=True)
class Table:
    """An archive table. Expressions are SQL; `r` is the archived row, $1 the site ID."""

    name: str
    # Columns that are not in the archive. `stored` supplies values for those without a default.
    left_out: frozenset[str] = frozenset()
    # SQL expressions by column: `written` for the values in the archive, `stored` for the values to import.
    written: Mapping[str, str] = field(default_factory=dict[str, str])
    stored: Mapping[str, str] = field(default_factory=dict[str, str])
    # A column that refers to another row in the same table, possibly a later one.
    parent: str = ""
    # The only columns in the archive; empty means all except `left_out`.
    only: tuple[str, ...] = ()
    # Whether the rows are personal data, included only in archives with accounts.
    is_personal: bool = False
    # Whether `stored` refers to the row's event as `e`.
    joins_event: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str  # PostgreSQL type name
    is_nullable: bool


# Placeholder for the site ID in the logo path.
OWN_MEDIA: Final = "/media/{site}/"
# Triggers keep these copies of event columns in sync.
_EVENT_COPIES: Final = {"start_utc": "e.start_utc", "listed": "e.listed", "published": "e.status = 'publish'"}


def _link(name: str) -> Table:
    return Table(name, left_out=frozenset(_EVENT_COPIES), stored=_EVENT_COPIES, joins_event=True)


# The site's row. Host names and the base URL are in the manifest, because an import may change them.
SITES: Final = Table(
    "sites",
    # A copy must not send emails to the followers of the original.
    left_out=frozenset({"id", "secret", "base_url", "follow_by_email"}),
    written={
        "logo_url": "CASE WHEN starts_with(logo_url, '/media/' || id || '/') "
        "THEN '/media/{site}/' || substr(logo_url, length('/media/' || id || '/') + 1) ELSE logo_url END"
    },
    stored={"logo_url": "replace(r.logo_url, '/media/{site}/', '/media/' || $1::bigint || '/')"},
)
USERS: Final = Table("users", left_out=frozenset({"password_hash"}))
# An archive without accounts keeps only author IDs, for attribution. The imported placeholder accounts cannot sign
# in.
AUTHORS: Final = Table(
    "users", only=("id",), stored={"login": "'author-' || r.id", "role": "'subscriber'", "disabled_at": "now()"}
)
# in foreign key order, after the site and its users
TABLES: Final = (
    Table("media"),
    # Triggers count events per term.
    Table("categories", left_out=frozenset({"count"}), parent="parent"),
    Table("tags", left_out=frozenset({"count"})),
    Table("series"),
    Table("venues", left_out=frozenset({"geoloc_pending"})),
    Table("organizers"),
    # `geoloc_known` could be computed, but if it were missing, a trigger would write each event twice.
    Table("events"),
    _link("event_venues"),
    _link("event_organizers"),
    _link("event_categories"),
    _link("event_tags"),
    Table(
        "changes",
        written={"record_id": "CASE kind WHEN 'sites' THEN 0 ELSE record_id END"},
        stored={"record_id": "CASE r.kind WHEN 'sites' THEN $1::bigint ELSE r.record_id END"},
    ),
    Table("slug_redirects"),
    Table("prefix_redirects"),
    Table("media_files"),
    Table("legacy_files"),
    Table("not_duplicates"),
    Table("site_styles"),
    Table("import_sources"),
    Table("import_files"),
    Table("import_items"),
    Table("import_runs"),
    Table("import_rows"),
    Table("drafts", is_personal=True),
    Table("saved_filters", is_personal=True),
    Table("submitters", is_personal=True),
    Table("proposals", left_out=frozenset({"token_hashes"}), is_personal=True),
    Table("proposal_pictures", is_personal=True),
    Table("followers", is_personal=True),
    Table("follows", is_personal=True),
    Table("mail_days"),
)
LEFT_OUT_TABLES: Final[Mapping[str, str]] = {
    "site_hosts": "in the manifest",
    "unserved_sites": "the state of a move between cells",
    "application_passwords": "credentials",
    "application_password_uses": "belongs to credentials",
    "passkeys": "credentials",
    "sessions": "credentials",
    "one_time_tokens": "credentials",
    "login_failures": "addresses of clients, forgotten within hours",
    "idempotency": "responses to repeated requests, forgotten within a day",
    "daily_records": "counts the new records of one day per account",
    "log_consumers": "positions in the change log; endpoints stay with their site",
    "webhooks": "an import must not send to the receivers of the original",
    "webhook_pending": "belongs to webhooks",
    "webhook_deliveries": "belongs to webhooks",
    "orphan_files": "files that are about to be deleted",
    "event_days": "counted by triggers",
    "link_days": "counted by triggers",
    "series_days": "counted by triggers",
    "series_steps": "computed by triggers",
}


def list_tables(*, accounts: bool) -> tuple[Table, ...]:
    """Return an archive's tables in the order in which to insert their rows."""
    users = USERS if accounts else AUTHORS
    return (SITES, users, *(table for table in TABLES if accounts or not table.is_personal))


async def read_columns(connection: Any, table: Table) -> tuple[Column, ...]:
    """Return a table's columns that are in the archive, without generated columns."""
    query = """
        SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS type, NOT a.attnotnull AS is_nullable
        FROM pg_attribute a
        WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
        ORDER BY a.attnum
    """
    rows = await connection.fetch(query, table.name)
    left_out = table.left_out | {"site_id"}
    return tuple(
        Column(row["attname"], row["type"], row["is_nullable"])
        for row in rows
        if (row["attname"] in table.only if table.only else row["attname"] not in left_out)
    )


async def read_order(connection: Any, table: Table) -> str:
    """Return a table's primary key columns, which determine the order of rows in the archive."""
    query = """
        SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY k.place)
        FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::smallint[]) WITH ORDINALITY AS k (attnum, place)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
        WHERE i.indrelid = $1::text::regclass AND i.indisprimary
    """
    columns: str = await connection.fetchval(query, table.name)
    return columns

"""Many sites in one database: copies of a seeded site with its IDs and slugs, so that all have the same URLs."""

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
from psycopg import sql
from rich.progress import track

from bench.seeded_sites import find_database, run_command

# A copy of this number of sites is one statement per table.
CHUNK = 500
SEED_OPTIONS = ("--events", "20", "--upcoming", "16", "--venues", "4", "--organizers", "3", "--categories", "4")

type Connection = psycopg.Connection[tuple[str, ...]]


@dataclass(frozen=True)
class SiteCopies:
    """The number of sites, the ID of the first, and records that every one of them has."""

    url: str
    first: int
    sites: int
    event_id: int
    slug: str
    category_id: int
    venue_id: int
    word: str

    def list_hosts(self, number: int) -> list[str]:
        """Return the hosts of some sites, evenly spread over all."""
        return [host_name(self.first + self.sites * n // number) for n in range(number)]


def host_name(site_id: int) -> str:
    return f"s{site_id}.example"


def make_copies(cluster_url: str, name: str, sites: int, first: int = 1) -> SiteCopies:
    """Create a database with this number of sites, unless an earlier run has done so; `first` is the lowest ID."""
    return fill_copies(find_database(cluster_url, name), sites, first)


def fill_copies(url: str, sites: int, first: int = 1) -> SiteCopies:
    """Fill a migrated database with this number of sites, unless it has them."""
    with psycopg.connect(url, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM events LIMIT 1").fetchone():
            run_command(url, "seed", *SEED_OPTIONS)
        if not connection.execute("SELECT 1 FROM sites WHERE id = %s", [first + sites - 1]).fetchone():
            _copy_site(connection, sites, first)
            connection.execute("VACUUM (ANALYZE)")
        return describe_site(connection, url, sites, first)


def _copy_site(connection: Connection, sites: int, first: int) -> None:
    with connection.transaction():
        # Neither triggers nor foreign keys: the copies of the counters and of the links are right already.
        connection.execute("SET LOCAL session_replication_role = replica")
        connection.execute("DELETE FROM site_hosts")
        indexes = _drop_indexes(connection) if sites > CHUNK else []
        copies = [_make_copy(connection, table, key) for table, key in _list_tables(connection)]
        last = first + sites - 1
        for start in track(range(first, last + 1, CHUNK), f"copying to {sites:,} sites"):
            for copy in copies:
                connection.execute(copy, [start, min(start + CHUNK - 1, last)])
        connection.execute("INSERT INTO site_hosts (host, site_id) SELECT 's' || id || '.example', id FROM sites")
        for definition in track(indexes, "building indexes"):
            connection.execute(definition.encode())
        connection.execute("SELECT setval('site_ids', %s)", [last])


def add_site(site: SiteCopies, target: Connection, site_id: int) -> None:
    """Copy a site, the only one of its database, into another database under this ID."""
    with psycopg.connect(site.url) as source, target.transaction():
        target.execute("SET LOCAL session_replication_role = replica")
        for table, key in _list_tables(source):
            columns = [sql.Identifier(name) for name in _list_columns(source, table) if name != key]
            names = {"table": sql.Identifier(table), "key": sql.Identifier(key), "id": sql.Literal(site_id)}
            read = sql.SQL("COPY (SELECT {id}::int8, {others} FROM {table}) TO STDOUT (FORMAT binary)")
            write = sql.SQL("COPY {table} ({key}, {others}) FROM STDIN (FORMAT binary)")
            others = sql.SQL(", ").join(columns)
            with (
                source.cursor().copy(read.format(others=others, **names)) as rows,
                target.cursor().copy(write.format(others=others, **names)) as copied,
            ):
                for block in rows:
                    copied.write(block)
        target.execute("INSERT INTO site_hosts VALUES (%s, %s)", [host_name(site_id), site_id])
        target.execute("SELECT setval('site_ids', greatest(%s, last_value)) FROM site_ids", [site_id])


def _list_tables(connection: Connection) -> Iterator[tuple[str, str]]:
    """Yield the tables that have rows of the first site, with the name of the column of the site."""
    yield "sites", "id"
    rows = connection.execute(
        """SELECT table_name::text FROM information_schema.columns c JOIN information_schema.tables t
            USING (table_schema, table_name)
            WHERE table_schema = current_schema() AND column_name = 'site_id' AND table_type = 'BASE TABLE'
                AND table_name <> 'site_hosts' ORDER BY 1"""
    ).fetchall()
    for (table,) in rows:
        exists = sql.SQL("SELECT 1 FROM {} LIMIT 1").format(sql.Identifier(table))
        if connection.execute(exists).fetchone():
            yield table, "site_id"


def _list_columns(connection: Connection, table: str) -> list[str]:
    rows = connection.execute(
        """SELECT column_name::text FROM information_schema.columns
            WHERE table_schema = current_schema() AND table_name = %s AND is_generated = 'NEVER'""",
        [table],
    )
    return [name for (name,) in rows]


def _make_copy(connection: Connection, table: str, key: str) -> sql.Composed:
    others = sql.SQL(", ").join(sql.Identifier(name) for name in _list_columns(connection, table) if name != key)
    names = {"table": sql.Identifier(table), "copied": sql.Identifier(f"copied_{table}"), "key": sql.Identifier(key)}
    # The rows come from a table of their own, because the original grows and may have no index on the site.
    for statement in ("CREATE TEMPORARY TABLE {copied} ON COMMIT DROP AS TABLE {table}", "DELETE FROM {table}"):
        connection.execute(sql.SQL(statement).format(**names))
    return sql.SQL(
        "INSERT INTO {table} ({key}, {others}) SELECT n, {others} FROM {copied}, generate_series(%s::int, %s::int) n"
    ).format(others=others, **names)


def _drop_indexes(connection: Connection) -> list[str]:
    """Drop the indexes that belong to no constraint; return the statements that build them again."""
    rows = connection.execute(
        """SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index i
            JOIN information_schema.columns c ON to_regclass(c.table_name) = i.indrelid
            WHERE c.table_schema = current_schema() AND c.column_name = 'site_id'
                AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid)"""
    ).fetchall()
    for name, _ in rows:
        connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
    return [definition for _, definition in rows]


def describe_site(connection: Connection, url: str, sites: int, first: int) -> SiteCopies:
    """Choose an upcoming event with a venue and a category, and a word of its title."""
    row = connection.execute(
        """SELECT e.id::text, e.slug, c.category_id::text, v.venue_id::text,
                substring(lower(e.title) FROM '[a-z]{5,}')
            FROM events e JOIN event_categories c USING (site_id) JOIN event_venues v USING (site_id)
            WHERE e.site_id = %s AND e.listed AND e.start_utc > now() AND c.event_id = e.id AND v.event_id = e.id
                AND e.title ~* '[a-z]{5,}' ORDER BY e.start_utc, e.id LIMIT 1""",
        [first],
    ).fetchone()
    if row is None:
        raise AssertionError("a site without upcoming events")
    return SiteCopies(url, first, sites, int(row[0]), row[1], int(row[2]), int(row[3]), row[4])

"""Two cells and a directory between which sites move, and what must be true of a site at any time."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from typing import Any

import psycopg
from psycopg import sql

from kalends.fleet.operations.site_move import MoveSetup
from kalends.fleet.storage.move_steps import MoveLimits
from kalends.store.migrations import migrate
from tests.conftest import replace_database, temporary_database
from tests.robustness.two_sites import site_tables
from tools.postgres import THROWAWAY, Server, throwaway

LOGICAL: Mapping[str, str] = {
    "wal_level": "logical",
    "max_replication_slots": "20",
    "max_wal_senders": "20",
    "max_logical_replication_workers": "8",
    "max_sync_workers_per_subscription": "4",
    "max_worker_processes": "16",
    "shared_buffers": "32MB",
    "wal_retrieve_retry_interval": "200ms",  # A worker whose source was restarted tries again soon.
}
CELLS = ("a", "b")
# Tables that stay in their database.
LOCAL_TABLES = {"site_hosts", "unserved_sites"}
FAST = MoveLimits(first_delay=0.2, max_delay=1.0, patience=20.0, switched_patience=30.0, job_patience=0.5)


@dataclass(frozen=True)
class Stage:
    """The URLs of a directory and of two cells."""

    directory_url: str
    cells: dict[str, str]

    def make_setup(self, **options: Any) -> MoveSetup:
        return MoveSetup(self.directory_url, self.cells, **{"limits": FAST, **options})

    def fetch(self, database: str, query: str, *values: object) -> list[tuple[Any, ...]]:
        url = self.directory_url if database == "directory" else self.cells[database]
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(query.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def add_to_directory(self, site_id: int, cell: str, hosts: list[str]) -> None:
        self.fetch("directory", "INSERT INTO kalends_directory.sites (id, cell) VALUES (%s, %s)", site_id, cell)
        for host in hosts:
            self.fetch("directory", "INSERT INTO kalends_directory.hosts VALUES (%s, %s)", host, site_id)

    def find_owners(self, site_id: int) -> list[str]:
        """Return the cells that serve a site: they have its row and a host, and no mark."""
        return [
            cell
            for cell in self.cells
            if self.fetch(
                cell,
                "SELECT true FROM sites s WHERE id = %s AND EXISTS (SELECT FROM site_hosts h WHERE h.site_id = s.id) "
                "AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = s.id)",
                site_id,
            )
        ]

    def find_leftovers(self, cell: str, site_id: int) -> dict[str, int]:
        """Return the tables of a cell that have rows of a site, its hosts, marks and jobs included."""
        with psycopg.connect(self.cells[cell]) as connection:
            counts = {
                table: _fetch_value(connection, sql.SQL("SELECT count(*) FROM {} WHERE {} = %s"), table, site_id)
                for table in site_tables(connection)
            }
        jobs = "SELECT count(*) FROM procrastinate_jobs WHERE args ->> 'site_id' = %s"
        counts["procrastinate_jobs"] = self.fetch(cell, jobs, str(site_id))[0][0]
        return {table: count for table, count in counts.items() if count}

    def list_objects(self) -> list[tuple[str, str]]:
        """Return the publications, subscriptions and slots that exist."""
        query = """
            SELECT 'publication', pubname::text FROM pg_publication
            UNION SELECT 'subscription', subname::text FROM pg_subscription
            UNION SELECT 'slot', slot_name::text FROM pg_replication_slots"""
        return sorted({row for cell in self.cells for row in self.fetch(cell, query)})

    def hash_site(self, cell: str, site_id: int) -> dict[str, str]:
        """Return a hash of all rows of a site for each table."""
        with psycopg.connect(self.cells[cell]) as connection:
            return {
                table: hash_rows(connection, table, site_id)
                for table in site_tables(connection)
                if table not in LOCAL_TABLES
            }

    def read_jobs(self, cell: str, site_id: int) -> list[tuple[Any, ...]]:
        return self.fetch(
            cell,
            "SELECT task_name, args, status::text, scheduled_at FROM procrastinate_jobs "
            "WHERE args ->> 'site_id' = %s ORDER BY id",
            str(site_id),
        )


def hash_rows(connection: psycopg.Connection[Any], table: str, site_id: int) -> str:
    key = "id" if table == "sites" else "site_id"
    query = sql.SQL("SELECT t::text FROM {} t WHERE {} = %s ORDER BY 1").format(
        sql.Identifier(table), sql.Identifier(key)
    )
    digest = hashlib.sha256()
    for (row,) in connection.execute(query, [site_id]):
        digest.update(row.encode())
    return digest.hexdigest()


def _fetch_value(connection: psycopg.Connection[Any], query: sql.SQL, table: str, site_id: int) -> int:
    key = "id" if table == "sites" else "site_id"
    row = connection.execute(query.format(sql.Identifier(table), sql.Identifier(key)), [site_id]).fetchone()
    assert row is not None
    count: int = row[0]
    return count


def make_directory(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(resources.files("kalends.fleet.storage").joinpath("directory.sql").read_bytes())
        for cell in CELLS:
            connection.execute("INSERT INTO kalends_directory.cells (name) VALUES (%s)", [cell])


def make_cell(url: str, name: str, *, is_empty: bool) -> None:
    """Name a migrated database; the site that migrations create is removed from an empty cell."""
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO cell (name) VALUES (%s)", [name])
        if is_empty:
            connection.execute("DELETE FROM sites")


@contextmanager
def open_logical_cluster() -> Iterator[tuple[Server, str]]:
    """Start a cluster that can replicate logically; return it and the name of a migrated database."""
    with throwaway({**THROWAWAY, **LOGICAL}) as server, temporary_database(server.url) as template:
        migrate(replace_database(server.url, template))
        yield server, template


@contextmanager
def open_stage(server: Server, template: str) -> Iterator[Stage]:
    """Open a directory and two cells in one cluster: `a` with site 1, and `b` without a site."""
    with (
        temporary_database(server.url) as directory,
        temporary_database(server.url, template=template) as a,
        temporary_database(server.url, template=template) as b,
    ):
        urls = {name: replace_database(server.url, database) for name, database in zip(CELLS, (a, b), strict=True)}
        stage = Stage(replace_database(server.url, directory), urls)
        make_directory(stage.directory_url)
        make_cell(urls["a"], "a", is_empty=False)
        make_cell(urls["b"], "b", is_empty=True)
        try:
            yield stage
        finally:
            _drop_objects(stage)


def _drop_objects(stage: Stage) -> None:
    """Drop what an unfinished move left, which would prevent the removal of the databases."""
    for url in stage.cells.values():
        with psycopg.connect(url, autocommit=True) as connection:
            names = connection.execute(
                "SELECT subname FROM pg_subscription s JOIN pg_database d ON d.oid = s.subdbid "
                "WHERE d.datname = current_database()"
            ).fetchall()
            for (name,) in names:
                for command in ("ALTER SUBSCRIPTION {} DISABLE", "ALTER SUBSCRIPTION {} SET (slot_name = NONE)"):
                    connection.execute(sql.SQL(command).format(sql.Identifier(name)))
                connection.execute(sql.SQL("DROP SUBSCRIPTION {}").format(sql.Identifier(name)))
    for url in stage.cells.values():
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active"
            )

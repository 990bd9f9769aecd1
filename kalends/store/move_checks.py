"""The prerequisites of a move. Each check returns the problems that it finds, with a cure for each."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kalends.store.move_tables import TableSize, find_filled, find_tables, measure_tables
from kalends.store.problems import connect, fetch_version
from kalends.store.site_moves import Cell

# The slots and connections of a move: its own, and those of two tables that are copied at a time.
NEEDED_SLOTS: Final = 3
OLDEST_SERVER: Final = 150000  # The first PostgreSQL with filters of rows.
READ_SERVER: Final = """
    SELECT current_setting('server_version_num')::int AS version, current_setting('wal_level') AS wal_level,
        pg_is_in_recovery() AS is_standby,
        (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS is_superuser,
        current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots) AS slots,
        current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_origin) AS origins,
        current_setting('max_wal_senders')::int - (SELECT count(*) FROM pg_stat_replication) AS senders,
        current_setting('max_logical_replication_workers')::int
            - (SELECT count(*) FROM pg_stat_subscription WHERE pid IS NOT NULL) AS workers,
        (SELECT name FROM cell) AS cell
"""


@dataclass(frozen=True, slots=True)
class MoveSurvey:
    """The rows, hosts and jobs that a move would copy, and the problems that prevent it."""

    tables: list[TableSize]
    jobs: int
    hosts: list[str]
    schema: str
    problems: list[str]

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)

    @property
    def bytes(self) -> int:
        return sum(table.bytes for table in self.tables)


async def survey(source: Cell, target: Cell, site_id: int) -> MoveSurvey:
    """Look at both cells without changing anything."""
    async with connect(source.url) as at_source, connect(target.url) as at_target:
        tables = await find_tables(at_source)
        versions = [(await fetch_version(connection)).number for connection in (at_source, at_target)]
        hosts = await at_source.fetch("SELECT host FROM site_hosts WHERE site_id = $1 ORDER BY 1", site_id)
        jobs = await at_source.fetchval(
            "SELECT count(*) FROM procrastinate_jobs WHERE args ->> 'site_id' = $1::bigint::text "
            "AND status IN ('todo', 'doing', 'failed')",
            site_id,
        )
        problems = [
            *_compare_versions(source, target, versions),
            *[problem async for problem in _check_source(source, at_source, site_id)],
            *[problem async for problem in _check_target(target, at_target, site_id)],
        ]
        problems += [
            f"The table {table.name} cannot be copied: it needs {table.key} in its replica identity, and a log."
            for table in tables
            if not (table.is_in_identity and table.is_logged)
        ]
        sizes = await measure_tables(at_source, tables, site_id)
    return MoveSurvey(
        sorted(sizes, key=lambda size: -size.bytes), jobs, [row["host"] for row in hosts], versions[0], problems
    )


def _compare_versions(source: Cell, target: Cell, versions: Sequence[str]) -> list[str]:
    if versions[0] == versions[1]:
        return []
    return [
        f"The schema of {source.name} is {versions[0] or 'missing'}, that of {target.name} is "
        f"{versions[1] or 'missing'}. Run `kalends migrate`."
    ]


async def _check_source(cell: Cell, connection: Any, site_id: int) -> AsyncIterator[str]:
    server = await connection.fetchrow(READ_SERVER)
    for problem in _check_server(cell, server):
        yield problem
    if server["wal_level"] != "logical":
        yield f"{cell.name}: set wal_level = logical (now {server['wal_level']}) and restart PostgreSQL."
    if server["slots"] < NEEDED_SLOTS:
        yield f"{cell.name}: {server['slots']} slots are free, not {NEEDED_SLOTS} (max_replication_slots)."
    if server["senders"] < NEEDED_SLOTS:
        yield f"{cell.name}: {server['senders']} WAL senders are free, not {NEEDED_SLOTS} (max_wal_senders)."
    if not await connection.fetchval("SELECT EXISTS (SELECT FROM sites WHERE id = $1)", site_id):
        yield f"{cell.name}: there is no site {site_id}."
    if state := await connection.fetchval("SELECT state FROM unserved_sites WHERE site_id = $1", site_id):
        yield f"{cell.name}: site {site_id} is {state} there. Run `kalends site moves`."


async def _check_target(cell: Cell, connection: Any, site_id: int) -> AsyncIterator[str]:
    server = await connection.fetchrow(READ_SERVER)
    for problem in _check_server(cell, server):
        yield problem
    if server["workers"] < NEEDED_SLOTS:
        yield (
            f"{cell.name}: {server['workers']} workers of subscriptions are free, not {NEEDED_SLOTS} "
            "(max_logical_replication_workers)."
        )
    if server["origins"] < NEEDED_SLOTS:
        yield (
            f"{cell.name}: {server['origins']} replication origins are free, not {NEEDED_SLOTS} "
            "(max_replication_slots)."
        )
    # Rows of a marked site were left by a move that was aborted halfway, and are removed.
    is_marked = await connection.fetchval("SELECT EXISTS (SELECT FROM unserved_sites WHERE site_id = $1)", site_id)
    filled = await find_filled(connection, await find_tables(connection), site_id)
    if filled and not is_marked:
        yield f"{cell.name}: there are rows of site {site_id} already, in the tables {', '.join(sorted(filled))}."


def _check_server(cell: Cell, server: Any) -> list[str]:
    problems = []
    if server["version"] < OLDEST_SERVER:
        problems.append(f"{cell.name}: PostgreSQL 15 or newer is needed.")
    if server["is_standby"]:
        problems.append(f"{cell.name}: this is a standby. Use the URL of the primary.")
    if not server["is_superuser"]:
        problems.append(f"{cell.name}: the login must be a superuser. Check KALENDS_CELL_OWNERS.")
    if server["cell"] != cell.name:
        found = f"the cell {server['cell']}" if server["cell"] else "no cell"
        problems.append(f"{cell.name}: the database is {found}. Check KALENDS_CELL_OWNERS.")
    return problems

"""A move's source: prerequisites, publication, the switch, and the removal of leftovers.

The publication also serves as the permission to switch. A mover may switch the site only while the publication exists
and the mover holds the site's lock `kalends.move`. An abort takes the same lock and drops the publication. Therefore
a site is never switched to a copy that is being deleted.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import asyncpg

from kalends.fleet.storage import move_tables
from kalends.fleet.storage.move_steps import (
    Cell,
    CopyLost,
    FenceExpired,
    Move,
    MoveError,
    MoveLimits,
    MoveSuperseded,
    name_objects,
)
from kalends.fleet.storage.move_tables import TableSize
from kalends.store.problems import connect, fetch_version

# In seconds: the lock timeout (except for the switch) and the polling intervals.
LOCK_TIMEOUT: Final = 5.0
POLL_SECONDS: Final = 0.005
SLOT_SECONDS: Final = 0.2
PENDING_JOBS: Final = "args ->> 'site_id' = $1::bigint::text AND status IN ('todo', 'doing', 'failed')"
# A subscription's slots for copying tables are named after the subscription's OID and the target's cluster.
SYNC_SLOTS: Final = "^pg_([0-9]+)_sync_[0-9]+_{cluster}$"


@dataclass(frozen=True, slots=True)
class Departure:
    """The hosts and jobs that the source stored for the target at the switch."""

    since: datetime
    hosts: list[str]
    jobs: str  # a JSON array of rows
    site_hash: str
    lagging: list[str]  # standbys that have not stored the switch


@asynccontextmanager
async def _hold(
    connection: Any, site_id: int, *, lock_timeout: float = LOCK_TIMEOUT, idle_timeout: float = LOCK_TIMEOUT
) -> AsyncIterator[None]:
    """Open a transaction during which no other mover can change the move's state."""
    async with connection.transaction():
        await connection.execute(
            "SET LOCAL synchronous_commit = on; SET LOCAL timezone = 'UTC'; "
            f"SET LOCAL lock_timeout = {int(lock_timeout * 1000)}; "
            f"SET LOCAL idle_in_transaction_session_timeout = {int(idle_timeout * 1000)}"
        )
        await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('kalends.move', $1))", site_id)
        yield


async def _is_published(connection: Any, move: Move) -> bool:
    query = "SELECT EXISTS (SELECT FROM pg_publication WHERE pubname = $1)"
    return bool(await connection.fetchval(query, move.object_name))


async def _is_departed(connection: Any, move: Move) -> bool:
    query = "SELECT EXISTS (SELECT FROM unserved_sites WHERE site_id = $1 AND state = 'departed' AND move_id = $2)"
    return bool(await connection.fetchval(query, move.site_id, move.id))


async def publish(source: Cell, site_id: int, move_id: UUID) -> None:
    """Publish one site's rows in all tables for a new move.

    TRUNCATE is not published, because it would empty the tables for all sites at the target.
    """
    async with connect(source.url) as connection:
        tables = await move_tables.find_tables(connection)
        filters = ", ".join(f'TABLE "{table.name}" WHERE ("{table.key}" = {site_id})' for table in tables)
        async with _hold(connection, site_id):
            if not await connection.fetchval("SELECT EXISTS (SELECT FROM sites WHERE id = $1)", site_id):
                raise MoveError("The cell {cell} has no site {site}.", cell=source.name, site=site_id)
            try:
                await connection.execute(
                    f"CREATE PUBLICATION {name_objects(site_id, move_id)} FOR {filters} "
                    "WITH (publish = 'insert, update, delete')"
                )
            except asyncpg.LockNotAvailableError as error:
                raise MoveError(
                    "A table of the cell {cell} is locked, for example by VACUUM. Try again later.", cell=source.name
                ) from error


async def retract(source: Cell, move: Move) -> None:
    """Drop a move's publication to prevent the switch; raise if the site was already switched."""
    async with connect(source.url) as connection, _hold(connection, move.site_id):
        if await _is_departed(connection, move):
            raise MoveError(
                "Site {site} was switched to the cell {target} already. Run `kalends site move --resume`.",
                site=move.site_id,
                target=move.target,
            )
        await connection.execute(f"DROP PUBLICATION IF EXISTS {move.object_name}")


async def may_switch(source: Cell, move: Move) -> bool:
    async with connect(source.url) as connection:
        return await _is_published(connection, move)


async def create_slot(source: Cell, move: Move) -> None:
    """Create a move's slot unless the slot exists. This waits for all open write transactions."""
    async with connect(source.url) as connection, _hold(connection, move.site_id):
        # Neither the lock nor the check assigns a transaction ID. With such an ID, the slot could not be created.
        if not await _is_published(connection, move):
            raise MoveSuperseded
        await connection.execute("SET LOCAL lock_timeout = 0")
        query = """
            SELECT pg_create_logical_replication_slot($1, 'pgoutput')
            WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1)
        """
        await connection.execute(query, move.object_name)


async def require_slot(source: Cell, move: Move) -> None:
    """Raise CopyLost unless the move's slot exists and the slot's log is still available."""
    async with connect(source.url) as connection:
        await read_lag(connection, move)


async def read_lag(connection: Any, move: Move) -> tuple[int, int]:
    """Return the number of log bytes that the target has not confirmed, and the position that it has confirmed.

    Raise CopyLost if the slot is gone.
    """
    query = """
        SELECT (pg_current_wal_lsn() - p.confirmed)::bigint AS lag, (p.confirmed - '0/0')::bigint AS confirmed
        FROM pg_replication_slots CROSS JOIN LATERAL (SELECT coalesce(confirmed_flush_lsn, restart_lsn)) p (confirmed)
        WHERE slot_name = $1 AND wal_status <> 'lost'
    """
    row = await connection.fetchrow(query, move.object_name)
    if row is None:
        raise CopyLost("The replication slot at the source is gone.")
    return row["lag"], row["confirmed"]


async def switch(
    source: Cell,
    move: Move,
    limits: MoveLimits,
    verify: Callable[[str], Awaitable[None]],
    watch: Callable[[str], None],
) -> None:
    """Stop serving a site at the source; the commit decides the move. Repeating the switch changes nothing.

    Writers wait for the site's lock. When they get the lock, the site is already marked as departed. Once the target
    has confirmed all changes, `verify` receives the hash of the site's row at the source and raises if the row at the
    target has another hash.
    """
    async with (
        connect(source.url) as connection,
        connect(source.url) as observer,
        _hold(connection, move.site_id, lock_timeout=limits.lock_timeout, idle_timeout=limits.idle_timeout),
    ):
        if await _is_departed(connection, move):
            return
        await observer.execute("SET synchronous_commit = local")
        if not await _is_published(connection, move):
            raise MoveSuperseded
        await _require_all_tables(connection, move)
        since = await connection.fetchval("SELECT clock_timestamp()")
        try:
            await connection.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended('kalends.site', $1))", move.site_id
            )
        except asyncpg.LockNotAvailableError as error:
            raise FenceExpired("A write to the site takes too long.") from error
        watch("locked")
        await _wait_for_target(observer, move, limits.fence_timeout)
        await verify(await connection.fetchval(move_tables.HASH_SITE, move.site_id))
        watch("confirmed")
        await _depart(connection, move, since)
        watch("departing")
    watch("departed")


async def _require_all_tables(connection: Any, move: Move) -> None:
    """Raise if a migration has added a table since the move began."""
    published = await connection.fetch(
        "SELECT tablename FROM pg_publication_tables WHERE pubname = $1", move.object_name
    )
    if {table.name for table in await move_tables.find_tables(connection)} != {row["tablename"] for row in published}:
        raise CopyLost("The schema has changed since the copy began.")


async def _wait_for_target(observer: Any, move: Move, seconds: float) -> None:
    """Wait until the target has stored all changes up to now.

    The observer's session does not hold the lock. It commits a message, to flush the log up to this point.
    """
    deadline = time.monotonic() + seconds
    position: int = await observer.fetchval(
        "SELECT (pg_logical_emit_message(true, 'kalends.move', $1) - '0/0')::bigint", str(move.id)
    )
    while not await observer.fetchval(
        """
        SELECT confirmed_flush_lsn - '0/0' >= $2 FROM pg_replication_slots
        WHERE slot_name = $1 AND wal_status <> 'lost'
        """,
        move.object_name,
        position,
    ):
        if time.monotonic() > deadline:
            await read_lag(observer, move)
            raise FenceExpired("The target does not catch up.")
        await asyncio.sleep(POLL_SECONDS)


async def _depart(connection: Any, move: Move, since: datetime) -> None:
    # The row lock keeps workers from starting or finishing a job. Rows of running jobs stay, because workers need
    # them to finish the jobs.
    jobs = await connection.fetch(
        f"SELECT id, status::text, to_jsonb(j)::text AS job FROM procrastinate_jobs j WHERE {PENDING_JOBS} "
        "ORDER BY id FOR UPDATE",
        move.site_id,
    )
    await connection.execute(
        """
        WITH hosts AS (DELETE FROM site_hosts WHERE site_id = $1 RETURNING host),
            jobs AS (DELETE FROM procrastinate_jobs WHERE id = ANY($5))
        INSERT INTO unserved_sites (site_id, state, move_id, since, hosts, jobs)
        SELECT $1, 'departed', $2, $3, ARRAY(SELECT host FROM hosts ORDER BY host), $4::jsonb
        """,
        move.site_id,
        move.id,
        since,
        f"[{','.join(job['job'] for job in jobs)}]",
        [job["id"] for job in jobs if job["status"] != "doing"],
    )


async def take_back(source: Cell, move: Move) -> None:
    """Serve the site at the source again. The target has lost its copy and mark, so it cannot activate the site."""
    async with connect(source.url) as connection, _hold(connection, move.site_id):
        # Jobs that were running at the time of the switch are still in the queue.
        statement = """
            DELETE FROM unserved_sites WHERE site_id = $1 AND state = 'departed' AND move_id = $2
            RETURNING hosts, (SELECT coalesce(jsonb_agg(e), '[]') FROM jsonb_array_elements(jobs) e WHERE NOT EXISTS (
                SELECT FROM procrastinate_jobs j WHERE j.id = (e ->> 'id')::bigint))::text AS jobs
        """
        departure = await connection.fetchrow(statement, move.site_id, move.id)
        if departure is None:
            raise MoveSuperseded
        await connection.execute(
            "INSERT INTO site_hosts (host, site_id) SELECT unnest($1::text[]), $2", departure["hosts"], move.site_id
        )
        await connection.execute(move_tables.INSERT_JOBS, departure["jobs"])
        await connection.execute(f"DROP PUBLICATION IF EXISTS {move.object_name}")


async def read_departure(source: Cell, move: Move, standby_timeout: float = 0) -> Departure | None:
    """Return what the source stored at the switch, or None if the source still serves the site.

    This opens a new connection: after a failover, the server that confirmed the commit may no longer be the source,
    and the new source may lack the commit.
    """
    async with connect(source.url) as connection:
        await connection.execute("SET timezone = 'UTC'")
        query = f"""
            SELECT pg_is_in_recovery() AS is_standby, u.since, u.hosts, u.jobs::text,
                ({move_tables.HASH_SITE}) AS site_hash
            FROM (SELECT) x LEFT JOIN unserved_sites u ON u.site_id = $1 AND u.state = 'departed' AND u.move_id = $2
        """
        row = await connection.fetchrow(query, move.site_id, move.id)
        if row["is_standby"]:
            raise TimeoutError(f"{source.name} is a standby.")
        if row["since"] is None:
            return None
        lagging = await _wait_for_standbys(connection, standby_timeout)
        return Departure(row["since"], row["hosts"], row["jobs"], row["site_hash"], lagging)


async def _wait_for_standbys(connection: Any, seconds: float) -> list[str]:
    """Wait until the connected standbys have stored the switch; return the names of any that have not.

    A standby promoted without the switch would serve the site too.
    """
    deadline = time.monotonic() + seconds
    position = await connection.fetchval("SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint")
    while True:
        query = """
            SELECT application_name FROM pg_stat_replication r
            WHERE r.state = 'streaming' AND r.flush_lsn - '0/0' < $1
                AND NOT EXISTS (SELECT FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.plugin <> '')
        """
        rows = await connection.fetch(query, position)
        if not rows or time.monotonic() > deadline:
            return [row["application_name"] for row in rows]
        await asyncio.sleep(POLL_SECONDS)


async def measure_pause(source: Cell, move: Move) -> int:
    """Return the milliseconds since the switch began, measured by the source; 0 once the leftovers are gone."""
    async with connect(source.url) as connection:
        query = """
            SELECT (extract(epoch FROM clock_timestamp() - since) * 1000)::int FROM unserved_sites
            WHERE site_id = $1 AND state = 'departed' AND move_id = $2
        """
        pause: int | None = await connection.fetchval(query, move.site_id, move.id)
    return pause or 0


async def drop_slots(source: Cell, names: list[str], cluster: int, subscriptions: set[int]) -> None:
    """Drop these slots, and slots for copying tables if their subscription in the target's cluster is gone.

    If a slot is active, wait until its connection ends. All slots must be gone before any rows are deleted, because
    otherwise the target would delete the same rows.
    """
    deadline = time.monotonic() + LOCK_TIMEOUT * 2
    async with connect(source.url) as connection:
        while True:
            query = """
                SELECT slot_name, active, substring(slot_name FROM $2)::bigint AS subscription
                FROM pg_replication_slots
                WHERE database = current_database() AND (slot_name = ANY($1) OR slot_name ~ $2)
            """
            rows = await connection.fetch(query, names, SYNC_SLOTS.format(cluster=cluster))
            left = [row for row in rows if row["subscription"] not in subscriptions]
            for row in left:
                if not row["active"]:
                    with suppress(asyncpg.UndefinedObjectError):  # the subscription's worker dropped it first
                        await connection.execute("SELECT pg_drop_replication_slot($1)", row["slot_name"])
            if not any(row["active"] for row in left):
                return
            if time.monotonic() > deadline:
                raise TimeoutError("A replication slot of the move is still active.")
            await asyncio.sleep(SLOT_SECONDS)


async def sweep(source: Cell, unfinished: set[str]) -> list[str]:
    """Drop the publications of moves that are not in `unfinished`, and return the names of their slots.

    A publication and a slot can remain if a mover dies before it stores a new move, or continues after its move was
    aborted.
    """
    async with connect(source.url) as connection:
        rows = await connection.fetch(
            r"""
            SELECT pubname AS name, true AS is_publication FROM pg_publication WHERE pubname ~ '^kalends_move_\d+_'
            UNION ALL SELECT slot_name, false FROM pg_replication_slots
            WHERE slot_name ~ '^kalends_move_\d+_' AND database = current_database()
            """
        )
        for row in rows:
            if row["is_publication"] and row["name"] not in unfinished:
                await connection.execute(f"DROP PUBLICATION IF EXISTS {row['name']}")
    return [row["name"] for row in rows if not row["is_publication"] and row["name"] not in unfinished]


async def unpublish(source: Cell, move: Move) -> None:
    async with connect(source.url) as connection:
        await connection.execute(f"DROP PUBLICATION IF EXISTS {move.object_name}")


async def find_late_jobs(source: Cell, move: Move, seconds: float) -> tuple[list[int], str]:
    """Return the IDs of the remaining jobs and, as a JSON array, the jobs enqueued after the switch.

    Wait up to `seconds` for running jobs to end, because they may enqueue more jobs. The running jobs themselves were
    handed over at the switch.
    """
    deadline = time.monotonic() + seconds
    async with connect(source.url) as connection:
        while True:
            jobs = await connection.fetch(
                "SELECT id, status::text, attempts, to_jsonb(j)::text AS job "
                f"FROM procrastinate_jobs j WHERE {PENDING_JOBS} ORDER BY id",
                move.site_id,
            )
            if time.monotonic() > deadline or not any(job["status"] == "doing" for job in jobs):
                late = [job["job"] for job in jobs if job["status"] == "todo" and job["attempts"] == 0]
                return [job["id"] for job in jobs], f"[{','.join(late)}]"
            await asyncio.sleep(SLOT_SECONDS)


async def remove_leftovers(source: Cell, move: Move, jobs: list[int], report: Callable[[int], None]) -> None:
    """Remove a departed site's rows in batches, and finally its departure mark."""

    async def require_departed(connection: Any) -> None:
        query = "SELECT FROM unserved_sites WHERE site_id = $1 AND state = 'departed' AND move_id = $2 FOR KEY SHARE"
        row = await connection.fetchrow(query, move.site_id, move.id)
        if row is None:
            raise MoveSuperseded

    async with connect(source.url) as connection:
        if not await _is_departed(connection, move):
            return  # everything was already removed
        async for deleted in move_tables.delete_rows(connection, move.site_id, require_departed):
            report(deleted)
        async with connection.transaction():
            await connection.execute("DELETE FROM procrastinate_jobs WHERE id = ANY($1)", jobs)
            await connection.execute("DELETE FROM site_hosts WHERE site_id = $1", move.site_id)
            await connection.execute(
                "DELETE FROM unserved_sites WHERE site_id = $1 AND move_id = $2", move.site_id, move.id
            )


# Prerequisites for a move. Each check returns problems with remedies.

# A move needs three slots and connections: one for changes, and one for each of the two tables copied at a time.
NEEDED_SLOTS: Final = 3
OLDEST_SERVER: Final = 150000  # first PostgreSQL version with row filters
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
    """What a move would copy, and the problems that prevent it."""

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
    """Survey both cells without changing anything."""
    async with connect(source.url) as at_source, connect(target.url) as at_target:
        tables = await move_tables.find_tables(at_source)
        versions = [(await fetch_version(connection)).number for connection in (at_source, at_target)]
        hosts = await at_source.fetch("SELECT host FROM site_hosts WHERE site_id = $1 ORDER BY 1", site_id)
        jobs = await at_source.fetchval(f"SELECT count(*) FROM procrastinate_jobs WHERE {PENDING_JOBS}", site_id)
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
        sizes = await move_tables.measure_tables(at_source, tables, site_id)
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
    # If a site is marked, its rows are left over from a move that was only partly aborted. The new move removes them
    # first.
    is_marked = await connection.fetchval("SELECT EXISTS (SELECT FROM unserved_sites WHERE site_id = $1)", site_id)
    filled = await move_tables.find_filled(connection, await move_tables.find_tables(connection), site_id)
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

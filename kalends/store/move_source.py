"""The source of a move: what is published, the switch, and the removal of what is left.

The publication is also the permission to switch. Whoever holds the lock `kalends.move` of the site and sees the
publication of the move may switch the site; an abort takes the same lock and drops the publication. Thus a site is
never switched to a copy that is being deleted.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import asyncpg

from kalends.store.move_tables import HASH_SITE, INSERT_JOBS, delete_rows, find_tables
from kalends.store.problems import connect
from kalends.store.site_moves import (
    Cell,
    CopyLost,
    FenceExpired,
    Move,
    MoveError,
    MoveLimits,
    MoveSuperseded,
    name_objects,
)

# Seconds that statements other than those of the switch wait for a lock, and between two looks at a condition.
LOCK_TIMEOUT: Final = 5.0
POLL_SECONDS: Final = 0.005
SLOT_SECONDS: Final = 0.2
PENDING_JOBS: Final = "args ->> 'site_id' = $1::bigint::text AND status IN ('todo', 'doing', 'failed')"
# The slots that a subscription uses while it copies tables are named after its OID and the cluster of the target.
SYNC_SLOTS: Final = "^pg_([0-9]+)_sync_[0-9]+_{cluster}$"


@dataclass(frozen=True, slots=True)
class Departure:
    """The hosts and jobs that the source has stored at the switch for the target."""

    since: datetime
    hosts: list[str]
    jobs: str  # a JSON array of rows
    site_hash: str
    lagging: list[str]  # standbys that have not stored the switch


@asynccontextmanager
async def _hold(connection: Any, site_id: int, *, lock_timeout: float, idle_timeout: float) -> AsyncIterator[None]:
    """Open a transaction in which no other mover changes the state of the move."""
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
    """Create the publication of a new move: the rows of one site in all tables.

    TRUNCATE is not published, because it would empty the tables of all sites at the target.
    """
    async with connect(source.url) as connection:
        tables = await find_tables(connection)
        filters = ", ".join(f'TABLE "{table.name}" WHERE ("{table.key}" = {site_id})' for table in tables)
        async with _hold(connection, site_id, lock_timeout=LOCK_TIMEOUT, idle_timeout=LOCK_TIMEOUT):
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
    """Drop the publication of a move, after which nobody can switch the site; raise if it was switched already."""
    async with (
        connect(source.url) as connection,
        _hold(connection, move.site_id, lock_timeout=LOCK_TIMEOUT, idle_timeout=LOCK_TIMEOUT),
    ):
        if await _is_departed(connection, move):
            raise MoveError(
                "Site {site} was switched to the cell {target} already. Run `kalends site move --resume`.",
                site=move.site_id,
                target=move.target,
            )
        await connection.execute(f"DROP PUBLICATION IF EXISTS {move.object_name}")


async def may_switch(source: Cell, move: Move) -> bool:
    """Return whether the site may still be switched by this move."""
    async with connect(source.url) as connection:
        return await _is_published(connection, move)


async def create_slot(source: Cell, move: Move) -> None:
    """Create the slot of a move unless it exists. This waits for the end of all transactions that are writing."""
    async with (
        connect(source.url) as connection,
        _hold(connection, move.site_id, lock_timeout=LOCK_TIMEOUT, idle_timeout=LOCK_TIMEOUT),
    ):
        # Neither the lock nor the check assigns a transaction ID, which would prevent the creation.
        if not await _is_published(connection, move):
            raise MoveSuperseded
        await connection.execute("SET LOCAL lock_timeout = 0")
        await connection.execute(
            """
            SELECT pg_create_logical_replication_slot($1, 'pgoutput')
            WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1)
            """,
            move.object_name,
        )


async def require_slot(source: Cell, move: Move) -> None:
    """Raise CopyLost unless the slot of a move exists and the log that it needs is there."""
    async with connect(source.url) as connection:
        await read_lag(connection, move)


async def read_lag(connection: Any, move: Move) -> tuple[int, int]:
    """Return the bytes of the log that the target has not confirmed, and the position that it has confirmed.

    Raises CopyLost if the slot is gone.
    """
    row = await connection.fetchrow(
        """
        SELECT (pg_current_wal_lsn() - p.confirmed)::bigint AS lag, (p.confirmed - '0/0')::bigint AS confirmed
        FROM pg_replication_slots CROSS JOIN LATERAL (SELECT coalesce(confirmed_flush_lsn, restart_lsn)) p (confirmed)
        WHERE slot_name = $1 AND wal_status <> 'lost'
        """,
        move.object_name,
    )
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
    """End the service of a site at the source; its commit decides the move. A repetition changes nothing.

    Writers wait for the lock of the site, and find the site departed as soon as they get it. `verify` raises if the
    target does not have the row of the site with this hash; it runs when the target has confirmed everything.
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
        await verify(await connection.fetchval(HASH_SITE, move.site_id))
        watch("confirmed")
        await _depart(connection, move, since)
        watch("departing")
    watch("departed")


async def _require_all_tables(connection: Any, move: Move) -> None:
    """Raise if a migration has added a table since the move began."""
    published = await connection.fetch(
        "SELECT tablename FROM pg_publication_tables WHERE pubname = $1", move.object_name
    )
    if {table.name for table in await find_tables(connection)} != {row["tablename"] for row in published}:
        raise CopyLost("The schema has changed since the copy began.")


async def _wait_for_target(observer: Any, move: Move, seconds: float) -> None:
    """Wait until the target has stored all changes up to now.

    The message is committed by another session than the one that holds the lock, which flushes the log up to here.
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
    # The lock on the rows makes the worker wait that is about to start or to finish a job; running jobs stay, because
    # the worker needs their rows in order to finish them.
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
    """Serve the site again after the target has lost its copy and its mark, and can never serve it by this move."""
    async with (
        connect(source.url) as connection,
        _hold(connection, move.site_id, lock_timeout=LOCK_TIMEOUT, idle_timeout=LOCK_TIMEOUT),
    ):
        # Jobs that were running are still in the queue.
        departure = await connection.fetchrow(
            """
            DELETE FROM unserved_sites WHERE site_id = $1 AND state = 'departed' AND move_id = $2
            RETURNING hosts, (SELECT coalesce(jsonb_agg(e), '[]') FROM jsonb_array_elements(jobs) e WHERE NOT EXISTS (
                SELECT FROM procrastinate_jobs j WHERE j.id = (e ->> 'id')::bigint))::text AS jobs
            """,
            move.site_id,
            move.id,
        )
        if departure is None:
            raise MoveSuperseded
        await connection.execute(
            "INSERT INTO site_hosts (host, site_id) SELECT unnest($1::text[]), $2", departure["hosts"], move.site_id
        )
        await connection.execute(INSERT_JOBS, departure["jobs"])
        await connection.execute(f"DROP PUBLICATION IF EXISTS {move.object_name}")


async def read_departure(source: Cell, move: Move, standby_timeout: float = 0) -> Departure | None:
    """Return what the source has stored at the switch; None if it still serves the site.

    The connection is a new one: after a failover the server that confirmed the commit need not be the source any
    more, and the one that is may not have it.
    """
    async with connect(source.url) as connection:
        await connection.execute("SET timezone = 'UTC'")
        row = await connection.fetchrow(
            f"""
            SELECT pg_is_in_recovery() AS is_standby, u.since, u.hosts, u.jobs::text, ({HASH_SITE}) AS site_hash
            FROM (SELECT) x LEFT JOIN unserved_sites u ON u.site_id = $1 AND u.state = 'departed' AND u.move_id = $2
            """,
            move.site_id,
            move.id,
        )
        if row["is_standby"]:
            raise TimeoutError(f"{source.name} is a standby.")
        if row["since"] is None:
            return None
        lagging = await _wait_for_standbys(connection, standby_timeout)
        return Departure(row["since"], row["hosts"], row["jobs"], row["site_hash"], lagging)


async def _wait_for_standbys(connection: Any, seconds: float) -> list[str]:
    """Wait until the connected standbys have stored the switch; return those that have not.

    A standby that is promoted without it would serve the site, too.
    """
    deadline = time.monotonic() + seconds
    position = await connection.fetchval("SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint")
    while True:
        rows = await connection.fetch(
            """
            SELECT application_name FROM pg_stat_replication r
            WHERE r.state = 'streaming' AND r.flush_lsn - '0/0' < $1
                AND NOT EXISTS (SELECT FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.plugin <> '')
            """,
            position,
        )
        if not rows or time.monotonic() > deadline:
            return [row["application_name"] for row in rows]
        await asyncio.sleep(POLL_SECONDS)


async def measure_pause(source: Cell, move: Move) -> int:
    """Return the milliseconds since the switch began, measured at the source; 0 if the leftovers are removed."""
    async with connect(source.url) as connection:
        pause: int | None = await connection.fetchval(
            """
            SELECT (extract(epoch FROM clock_timestamp() - since) * 1000)::int FROM unserved_sites
            WHERE site_id = $1 AND state = 'departed' AND move_id = $2
            """,
            move.site_id,
            move.id,
        )
    return pause or 0


async def drop_slots(source: Cell, names: list[str], cluster: int, subscriptions: set[int]) -> None:
    """Drop slots, and those that were left by the copy of tables to a cluster whose subscription is gone.

    A slot stays active until its connection has ended; it must be gone before rows are deleted, because the target
    would delete them, too.
    """
    deadline = time.monotonic() + LOCK_TIMEOUT * 2
    async with connect(source.url) as connection:
        while True:
            rows = await connection.fetch(
                """
                SELECT slot_name, active, substring(slot_name FROM $2)::bigint AS subscription
                FROM pg_replication_slots
                WHERE database = current_database() AND (slot_name = ANY($1) OR slot_name ~ $2)
                """,
                names,
                SYNC_SLOTS.format(cluster=cluster),
            )
            left = [row for row in rows if row["subscription"] not in subscriptions]
            for row in left:
                if not row["active"]:
                    await _drop_slot(connection, row["slot_name"])
            if not any(row["active"] for row in left):
                return
            if time.monotonic() > deadline:
                raise TimeoutError("A replication slot of the move is still active.")
            await asyncio.sleep(SLOT_SECONDS)


async def _drop_slot(connection: Any, name: str) -> None:
    with suppress(asyncpg.UndefinedObjectError):  # The worker of the subscription was faster.
        await connection.execute("SELECT pg_drop_replication_slot($1)", name)


async def sweep(source: Cell, unfinished: set[str]) -> list[str]:
    """Drop publications of moves that the directory does not know as unfinished; return the names of their slots.

    Both remain if a mover dies before it has stored a new move, or wakes up after the move was aborted.
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
    """Drop the publication of a site that has departed."""
    async with connect(source.url) as connection:
        await connection.execute(f"DROP PUBLICATION IF EXISTS {move.object_name}")


async def find_late_jobs(source: Cell, move: Move, seconds: float) -> tuple[list[int], str]:
    """Return the IDs of the jobs that are left, and those that were enqueued after the switch as JSON.

    Waits some seconds for the end of running jobs, which may enqueue others. Running jobs were handed over already.
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
    """Remove the rows of a departed site, batch by batch, and at last the mark that it has departed."""

    async def require_departed(connection: Any) -> None:
        row = await connection.fetchrow(
            "SELECT FROM unserved_sites WHERE site_id = $1 AND state = 'departed' AND move_id = $2 FOR KEY SHARE",
            move.site_id,
            move.id,
        )
        if row is None:
            raise MoveSuperseded

    async with connect(source.url) as connection:
        if not await _is_departed(connection, move):
            return  # All was removed before.
        async for deleted in delete_rows(connection, move.site_id, require_departed):
            report(deleted)
        async with connection.transaction():
            await connection.execute("DELETE FROM procrastinate_jobs WHERE id = ANY($1)", jobs)
            await connection.execute("DELETE FROM site_hosts WHERE site_id = $1", move.site_id)
            await connection.execute(
                "DELETE FROM unserved_sites WHERE site_id = $1 AND move_id = $2", move.site_id, move.id
            )

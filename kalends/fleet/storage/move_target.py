"""A move's target: the mark for an arriving site, the subscription that copies its rows, and the activation."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from kalends.fleet.storage.move_source import Departure
from kalends.fleet.storage.move_steps import Cell, CopyLost, Move, MoveError, MoveSuperseded
from kalends.fleet.storage.move_tables import HASH_SITE, INSERT_JOBS, delete_rows, find_filled, find_tables
from kalends.store.problems import connect

ANALYZED_SHARE: Final = 0.1  # If a site has a larger share of a table's rows, query plans may change.
# `pg_subscription` covers all databases in a cluster.
FIND_SUBSCRIPTION: Final = """
    SELECT s.oid, s.subdbid FROM pg_subscription s JOIN pg_database d ON d.oid = s.subdbid
    WHERE s.subname = $1 AND d.datname = current_database()
"""


@dataclass(frozen=True, slots=True)
class CopyProgress:
    ready: frozenset[str]  # tables replicating from the source
    tables: int
    copying: dict[str, int]  # rows copied so far in tables not yet ready
    errors: int  # errors in the subscription's workers, which retry automatically


@asynccontextmanager
async def _hold_arriving(connection: Any, move: Move) -> AsyncIterator[None]:
    """Open a transaction during which the site stays marked as arriving with this move."""
    async with connection.transaction():
        await _require_arriving(connection, move)
        await connection.execute(
            "SET LOCAL synchronous_commit = on; SET LOCAL idle_in_transaction_session_timeout = '30s'"
        )
        yield


async def _require_arriving(connection: Any, move: Move) -> None:
    query = "SELECT FROM unserved_sites WHERE site_id = $1 AND state = 'arriving' AND move_id = $2 FOR UPDATE"
    row = await connection.fetchrow(query, move.site_id, move.id)
    if row is None:
        raise MoveSuperseded


async def reserve(target: Cell, move: Move) -> UUID | None:
    """Mark the site as arriving; raise if the target has any of its rows. Repeating this changes nothing.

    If another move has marked the site, return the other move's ID. If the other move has ended, its mark must be
    removed first.
    """
    async with connect(target.url) as connection, connection.transaction():
        owner: UUID | None = await connection.fetchval(
            "SELECT move_id FROM unserved_sites WHERE site_id = $1 FOR UPDATE", move.site_id
        )
        if owner is not None:
            return owner if owner != move.id else None
        if filled := await find_filled(connection, await find_tables(connection), move.site_id):
            raise MoveError(
                "The cell {target} has rows of site {site} already, in the tables {tables}.",
                target=target.name,
                site=move.site_id,
                tables=", ".join(sorted(filled)),
            )
        await connection.execute(
            "INSERT INTO unserved_sites (site_id, state, move_id) VALUES ($1, 'arriving', $2)", move.site_id, move.id
        )
    return None


async def is_arriving(target: Cell, move: Move) -> bool:
    """Return whether the target has neither activated the site nor deleted its copy."""
    async with connect(target.url) as connection:
        query = (
            "SELECT EXISTS (SELECT FROM unserved_sites WHERE site_id = $1 AND state = 'arriving' AND move_id = $2)"
        )
        return bool(await connection.fetchval(query, move.site_id, move.id))


async def has_subscription(target: Cell, move: Move) -> bool:
    async with connect(target.url) as connection:
        return bool(await connection.fetchval(f"SELECT EXISTS ({FIND_SUBSCRIPTION})", move.object_name))


async def subscribe(target: Cell, source: Cell, move: Move) -> None:
    """Copy the site's rows and follow their changes through the existing slot.

    The target confirms a transaction only after storing it durably, including at synchronous standbys.
    """
    async with connect(target.url) as connection, _hold_arriving(connection, move):
        statement = await connection.fetchval(
            """
            SELECT format('CREATE SUBSCRIPTION %I CONNECTION %L PUBLICATION %I WITH (slot_name = %I, '
                'create_slot = false, copy_data = true, synchronous_commit = on)', $1::text, $2::text, $1, $1)
            """,
            move.object_name,
            source.url,
        )
        await connection.execute(statement)


async def unsubscribe(target: Cell, move: Move) -> None:
    async with connect(target.url) as connection, connection.transaction():
        await _drop_subscription(connection, move)


async def _drop_subscription(connection: Any, move: Move) -> None:
    """Stop the workers and drop the subscription. Keep its slot, because the source may be unreachable."""
    if await connection.fetchval(f"SELECT EXISTS ({FIND_SUBSCRIPTION})", move.object_name):
        name = move.object_name
        await connection.execute(
            f"ALTER SUBSCRIPTION {name} DISABLE; ALTER SUBSCRIPTION {name} SET (slot_name = NONE); "
            f"DROP SUBSCRIPTION {name}"
        )


async def read_progress(connection: Any, move: Move) -> CopyProgress:
    query = f"""
        SELECT c.relname, r.srsubstate = 'r' AS is_ready, p.tuples_processed, e.errors
        FROM ({FIND_SUBSCRIPTION}) s
        JOIN pg_subscription_rel r ON r.srsubid = s.oid JOIN pg_class c ON c.oid = r.srrelid
        LEFT JOIN pg_stat_progress_copy p ON p.relid = c.oid AND p.datid = s.subdbid AND p.command = 'COPY FROM'
        CROSS JOIN LATERAL (SELECT coalesce(sum(apply_error_count + sync_error_count), 0)::bigint AS errors
            FROM pg_stat_subscription_stats t WHERE t.subid = s.oid) e
    """
    rows = await connection.fetch(query, move.object_name)
    if not rows:
        raise CopyLost("The subscription at the target is gone.")
    return CopyProgress(
        frozenset(row["relname"] for row in rows if row["is_ready"]),
        len(rows),
        {row["relname"]: row["tuples_processed"] or 0 for row in rows if not row["is_ready"]},
        rows[0]["errors"],
    )


async def analyze(target: Cell, rows: Mapping[str, int]) -> None:
    """Update statistics for tables in which the site has a large share of the rows, before the site's first query."""
    async with connect(target.url) as connection:
        known = await connection.fetch(
            "SELECT relname, reltuples FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
        )
        for row in known:
            if rows.get(row["relname"], 0) > row["reltuples"] * ANALYZED_SHARE:
                await connection.execute(f'ANALYZE "{row["relname"]}"')


@asynccontextmanager
async def open_verification(target: Cell, move: Move) -> AsyncIterator[Callable[[str], Awaitable[None]]]:
    """Yield a function that raises CopyLost unless the target's site row has the given hash.

    All other work happens before the function is called, because writers wait while it runs.
    """
    async with connect(target.url) as connection:
        await connection.execute("SET timezone = 'UTC'")
        progress = await read_progress(connection, move)
        if len(progress.ready) < progress.tables:
            raise CopyLost("Not all tables follow the source.")
        await connection.fetchval(HASH_SITE, move.site_id)

        async def verify(site_hash: str) -> None:
            if await connection.fetchval(HASH_SITE, move.site_id) != site_hash:
                raise CopyLost("The copy at the target is not equal to the site at the source.")

        yield verify


async def activate(target: Cell, move: Move, departure: Departure) -> bool:
    """Start serving the site, with its hosts and jobs, in one transaction.

    Return False if the site is already active. Raise CopyLost if the target has lost the copy, for example after a
    failover to a lagging standby.
    """
    async with connect(target.url) as connection:
        await connection.execute("SET timezone = 'UTC'")
        try:
            async with _hold_arriving(connection, move):
                if await connection.fetchval(HASH_SITE, move.site_id) != departure.site_hash:
                    raise CopyLost("The target has lost a part of the copy.")
                await _drop_subscription(connection, move)
                await _add_hosts(connection, move, departure.hosts)
                await connection.execute(INSERT_JOBS, departure.jobs)
                await connection.execute("DELETE FROM unserved_sites WHERE site_id = $1", move.site_id)
        except MoveSuperseded:
            if not await _serves(connection, move):
                raise CopyLost("The target has lost the copy.") from None
            return False
    return True


async def serves(target: Cell, move: Move) -> bool:
    async with connect(target.url) as connection:
        return await _serves(connection, move)


async def _serves(connection: Any, move: Move) -> bool:
    query = """
        SELECT EXISTS (SELECT FROM sites WHERE id = $1)
            AND NOT EXISTS (SELECT FROM unserved_sites WHERE site_id = $1)
    """
    return bool(await connection.fetchval(query, move.site_id))


async def add_hosts(target: Cell, move: Move, hosts: Sequence[str]) -> None:
    """Assign hosts to the site at the target."""
    async with connect(target.url) as connection:
        await _add_hosts(connection, move, hosts)


async def _add_hosts(connection: Any, move: Move, hosts: Sequence[str]) -> None:
    statement = """
        INSERT INTO site_hosts (host, site_id) SELECT unnest($1::text[]), $2
        ON CONFLICT (host) DO UPDATE SET site_id = excluded.site_id
    """
    await connection.execute(statement, list(hosts), move.site_id)


async def add_jobs(target: Cell, jobs: str) -> None:
    async with connect(target.url) as connection:
        await connection.execute(INSERT_JOBS, jobs)


async def read_cluster(target: Cell) -> tuple[int, set[int]]:
    """Return the cluster's identifier and the OIDs of its subscriptions. Both appear in slot names."""
    async with connect(target.url) as connection:
        identifier = await connection.fetchval("SELECT system_identifier FROM pg_control_system()")
        rows = await connection.fetch("SELECT oid::bigint FROM pg_subscription")
    return identifier, {row["oid"] for row in rows}


async def empty(target: Cell, move: Move, report: Callable[[int], None]) -> None:
    """Delete the copy of an aborted move, and finally the move's mark. If the mark is missing, delete nothing."""

    async def require_arriving(connection: Any) -> None:
        await _require_arriving(connection, move)

    if not await is_arriving(target, move):
        return
    async with connect(target.url) as connection:
        async for deleted in delete_rows(connection, move.site_id, require_arriving):
            report(deleted)
        async with _hold_arriving(connection, move):
            await connection.execute("DELETE FROM unserved_sites WHERE site_id = $1", move.site_id)

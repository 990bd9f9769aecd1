"""Moves of sites between cells: their rows in the directory, and the conditions under which a mover may act.

Any number of movers may believe that they carry out the same move: one that was suspended for an hour wakes up, and
another one has completed or aborted the move meanwhile. So no statement relies on what a mover knows. Each one that
could do harm runs in a transaction that checks a fact in the same database:

- at the source, that the publication of this move exists (`store/move_source.py`). It is created before anybody else
  can know the ID of the move, and an abort drops it before anything else, so it never returns.
- at the target, that the site is marked as arriving with this move (`store/move_target.py`).
- in the directory, that the move has no outcome yet.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import asyncpg

from kalends.core.errors import InvalidValue
from kalends.store.database_errors import CONNECTION_ERRORS, UNAVAILABLE_ERRORS
from kalends.store.problems import DatabaseUnavailable, connect

# The classes of errors of PostgreSQL that pass: a lost connection, a shutdown, a lock, a conflict, no resources.
TEMPORARY_STATES: Final = ("08", "57P", "55P03", "40", "25006", "25P03", "53", "57014")
# A mover holds the lock of its source (`SourceLock`), so a move that has not ended and whose source is not locked was
# interrupted.
MOVE_COLUMNS: Final = """
    id, site_id, source, target, step, started_at, changed_at, ended_at, outcome, pause_ms,
    ended_at IS NULL AND EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
        AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
        AND l.classid::bigint << 32 | l.objid::bigint = hashtextextended('kalends.move.' || source, 0)) AS has_mover
"""


class MoveError(InvalidValue):
    """A move cannot begin or go on; the message says why and what to do."""


class MoveSuperseded(MoveError):
    """Another mover has completed or aborted this move."""

    def __init__(self) -> None:
        super().__init__("Another process has aborted or completed this move. Run `kalends site moves`.")


class CopyLost(Exception):
    """The copy at the target does not follow the source any more, so it has to be made again."""


class FenceExpired(Exception):
    """The site could not be switched within the time for which writers may wait."""


@dataclass(frozen=True, slots=True)
class Cell:
    name: str
    url: str  # of the owner, who must be a superuser


@dataclass(frozen=True, slots=True)
class MoveLimits:
    """Durations in seconds, and the lag in bytes at which the switch is tried."""

    lock_timeout: float = 0.5  # for which writers wait because the mover waits for a running write
    fence_timeout: float = 0.8  # for which writers wait for the target to catch up
    idle_timeout: float = 1.5  # after which the source ends the switch of a mover that does not respond
    fence_attempts: int = 20
    first_delay: float = 1.0  # between two attempts; it doubles
    max_delay: float = 30.0
    patience: float = 60.0  # for which a database may be away, or the copy make no progress
    switched_patience: float = 600.0  # the same after the switch, when nobody serves the site
    job_patience: float = 20.0  # for which jobs of the site may still run at the source
    standby_timeout: float = 2.0  # for which the activation waits for standbys of the source
    session_timeout: float = 30.0  # after which the directory ends the session of a mover that does not respond
    max_lag: int = 2**20


@dataclass(frozen=True, slots=True)
class Move:
    id: UUID
    site_id: int
    source: str
    target: str
    step: str
    started_at: datetime
    changed_at: datetime
    ended_at: datetime | None
    outcome: str | None
    pause_ms: int | None
    has_mover: bool  # whether a process is carrying it out

    @property
    def object_name(self) -> str:
        """The name of publication, slot and subscription, which no other move uses."""
        return name_objects(self.site_id, self.id)


@dataclass(frozen=True, slots=True)
class DirectorySite:
    id: int
    cell: str
    target: str | None


def name_objects(site_id: int, move_id: UUID) -> str:
    """Return the name of publication, slot and subscription of a move."""
    return f"kalends_move_{site_id}_{move_id.hex[:12]}"


def is_temporary(error: BaseException) -> bool:
    """Return whether a step that failed with this error may succeed later."""
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "").startswith(TEMPORARY_STATES)
    return isinstance(error, (DatabaseUnavailable, TimeoutError, *CONNECTION_ERRORS))


async def find_site(directory_url: str, site: str | int) -> DirectorySite:
    """Return a site of the directory by host or ID."""
    async with connect(directory_url) as connection:
        row = await connection.fetchrow(
            """
            SELECT s.id, s.cell, s.target FROM kalends_directory.sites s
            WHERE s.id = coalesce($1, (SELECT h.site_id FROM kalends_directory.hosts h WHERE h.host = $2))
            """,
            site if isinstance(site, int) else None,
            site.lower() if isinstance(site, str) else None,
        )
    if row is None:
        raise MoveError("There is no site {site} in the directory.", site=site)
    return DirectorySite(**row)


async def check_target(directory_url: str, target: str) -> None:
    """Raise unless the directory knows the cell and it accepts sites."""
    async with connect(directory_url) as connection:
        accepts = await connection.fetchval("SELECT accepts_new FROM kalends_directory.cells WHERE name = $1", target)
    if accepts is None:
        raise MoveError("There is no cell {target} in the directory.", target=target)
    if not accepts:
        raise MoveError("The cell {target} is being drained and accepts no sites.", target=target)


async def list_moves(
    directory_url: str, unfinished: bool = False, site_id: int | None = None, limit: int | None = None
) -> list[Move]:
    """Return the moves, the latest first."""
    async with connect(directory_url) as connection:
        rows = await connection.fetch(
            f"""
            SELECT {MOVE_COLUMNS} FROM kalends_directory.moves
            WHERE (NOT $1 OR ended_at IS NULL) AND ($2::bigint IS NULL OR site_id = $2) ORDER BY started_at DESC
            LIMIT $3
            """,
            unfinished,
            site_id,
            limit,
        )
    return [Move(**row) for row in rows]


async def read_move(directory_url: str, move_id: UUID) -> Move | None:
    async with connect(directory_url) as connection:
        row = await connection.fetchrow(f"SELECT {MOVE_COLUMNS} FROM kalends_directory.moves WHERE id = $1", move_id)
    return Move(**row) if row else None


async def begin_move(directory_url: str, move_id: UUID, site_id: int, source: str, target: str) -> Move:
    """Store a new move, and lead requests that do not find the site at the source to the target."""
    async with connect(directory_url) as connection, connection.transaction():
        updated = await connection.execute(
            """
            UPDATE kalends_directory.sites SET target = $3, changed_at = now()
            WHERE id = $1 AND cell = $2 AND target IS NULL
            """,
            site_id,
            source,
            target,
        )
        if updated == "UPDATE 0":
            raise MoveError(
                "Site {site} is not in the cell {source}, or is moving already.", site=site_id, source=source
            )
        row = await connection.fetchrow(
            f"""
            INSERT INTO kalends_directory.moves (id, site_id, source, target, step) VALUES ($1, $2, $3, $4, 'begin')
            ON CONFLICT (site_id) WHERE ended_at IS NULL DO NOTHING RETURNING {MOVE_COLUMNS}
            """,
            move_id,
            site_id,
            source,
            target,
        )
        if row is None:
            raise MoveError("Site {site} has an unfinished move. Run `kalends site moves`.", site=site_id)
    return Move(**row)


async def record_step(directory_url: str, move: Move, step: str) -> None:
    """Store the last step of a move that was completed."""
    async with connect(directory_url) as connection:
        await connection.execute(
            """
            UPDATE kalends_directory.moves SET step = $2, changed_at = now()
            WHERE id = $1 AND ended_at IS NULL AND step <> 'abort'
            """,
            move.id,
            step,
        )


async def mark_aborting(directory_url: str, move: Move) -> None:
    """Store that a move is being aborted, so that no mover goes on with it; raise if it has an outcome."""
    async with connect(directory_url) as connection:
        updated = await connection.execute(
            """
            UPDATE kalends_directory.moves SET step = 'abort', changed_at = now()
            WHERE id = $1 AND ended_at IS NULL AND outcome IS NULL
            """,
            move.id,
        )
    if updated == "UPDATE 0":
        raise MoveSuperseded


async def route_to_target(directory_url: str, move: Move, pause_ms: int | None, step: str) -> list[str]:
    """Lead requests to the target only; return the hosts of the site. A repetition changes nothing."""
    async with connect(directory_url) as connection, connection.transaction():
        updated = await connection.execute(
            """
            UPDATE kalends_directory.moves SET step = $3, outcome = 'moved', pause_ms = $2, changed_at = now()
            WHERE id = $1 AND outcome IS NULL
            """,
            move.id,
            pause_ms,
            step,
        )
        if updated == "UPDATE 1":
            await connection.execute(
                """
                UPDATE kalends_directory.sites SET cell = $2, target = NULL, changed_at = now() WHERE id = $1
                """,
                move.site_id,
                move.target,
            )
        rows = await connection.fetch("SELECT host FROM kalends_directory.hosts WHERE site_id = $1", move.site_id)
    return [row["host"] for row in rows]


async def end_move(directory_url: str, move: Move, step: str) -> None:
    """End a move that was routed to the target and whose leftovers are removed."""
    async with connect(directory_url) as connection:
        await connection.execute(
            """
            UPDATE kalends_directory.moves SET step = $2, ended_at = now(), changed_at = now()
            WHERE id = $1 AND ended_at IS NULL AND outcome = 'moved'
            """,
            move.id,
            step,
        )


async def end_aborted_move(directory_url: str, move: Move) -> None:
    """End a move of which nothing is left; the source serves the site as before."""
    async with connect(directory_url) as connection, connection.transaction():
        updated = await connection.execute(
            """
            UPDATE kalends_directory.moves SET outcome = 'aborted', ended_at = now(), changed_at = now()
            WHERE id = $1 AND ended_at IS NULL AND outcome IS NULL
            """,
            move.id,
        )
        if updated == "UPDATE 1":
            await connection.execute(
                "UPDATE kalends_directory.sites SET target = NULL, changed_at = now() WHERE id = $1 AND cell = $2",
                move.site_id,
                move.source,
            )


@dataclass(slots=True)
class SourceLock:
    """A session of the directory that holds the lock of a source cell.

    The directory ends the session of a mover that was not heard of for some seconds. If nobody has taken the lock
    meanwhile, the mover takes it again: no statement relies on it.
    """

    directory_url: str
    source: str
    seconds: float
    _session: AsyncExitStack = field(default_factory=AsyncExitStack)
    _connection: Any = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def acquire(self) -> None:
        """Open a new session and lock the source; raise if another process has locked it."""
        await self._session.aclose()
        connection = await self._session.enter_async_context(connect(self.directory_url))
        await connection.execute(f"SET idle_session_timeout = {int(self.seconds * 1000)}")
        key = f"kalends.move.{self.source}"
        if not await connection.fetchval("SELECT pg_try_advisory_lock(hashtextextended($1, 0))", key):
            raise MoveError("Another process is moving a site of the cell {source}.", source=self.source)
        self._connection = connection

    async def verify(self) -> None:
        """Make sure that the lock is held."""
        async with self._turn:
            try:
                await self._connection.execute("SELECT", timeout=self.seconds)
            except UNAVAILABLE_ERRORS:
                await self.acquire()

    async def keep(self) -> None:
        """Use the session from time to time, so that it is not ended."""
        while True:
            await asyncio.sleep(self.seconds / 4)
            # The next step reports what does not pass.
            with suppress(MoveError, DatabaseUnavailable, *UNAVAILABLE_ERRORS):
                await self.verify()

    async def release(self) -> None:
        await self._session.aclose()


@asynccontextmanager
async def lock_source(directory_url: str, source: str, seconds: float) -> AsyncIterator[SourceLock]:
    """Be the only mover of a source cell: decoding its log for several moves at once would cost it as much again."""
    lock = SourceLock(directory_url, source, seconds)
    await lock.acquire()
    keeper = asyncio.create_task(lock.keep())
    try:
        yield lock
    finally:
        keeper.cancel()
        with suppress(asyncio.CancelledError):
            await keeper
        await lock.release()

"""Site moves between cells: their rows in the directory, and the conditions under which a mover may act.

Several movers may run the same move at once: a mover that was suspended for an hour may wake up after another one has
completed or aborted the move. Therefore no statement relies on a mover's memory. Each statement that could do harm
checks a fact in the same database and transaction:

- at the source, that this move's publication exists (`fleet/storage/move_source.py`). It is created before the
move's ID is stored anywhere, so nothing can create it again after an abort has dropped it.

- at the target, that the site is marked as arriving with this move (`fleet/storage/move_target.py`).

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
from kalends.fleet.storage import directory
from kalends.fleet.storage.directory import Location
from kalends.store.problems import CONNECTION_ERRORS, DRIVER_ERRORS, DatabaseUnavailable, connect
from kalends.store.sites import SiteConflict

# SQLSTATEs of temporary errors: lost connections, shutdowns, locks, conflicts, standbys, timeouts, scarce resources.
TEMPORARY_STATES: Final = ("08", "57P", "55P03", "40", "25006", "25P03", "53", "57014")
# A mover locks its source (`SourceLock`), so an unfinished move whose source is unlocked was interrupted.
MOVE_COLUMNS: Final = """
    id, site_id, source, target, step, started_at, changed_at, ended_at, outcome, pause_ms,
    ended_at IS NULL AND EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
        AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
        AND l.classid::bigint << 32 | l.objid::bigint = hashtextextended('kalends.move.' || source, 0)) AS has_mover
"""


class MoveError(InvalidValue):
    """Raised if a move cannot start or continue. The message gives the reason and a remedy."""


class MoveSuperseded(MoveError):
    def __init__(self) -> None:
        super().__init__("Another process has aborted or completed this move. Run `kalends site moves`.")


class CopyLost(Exception):
    """Raised if the copy at the target no longer follows the source and must be replaced."""


class FenceExpired(Exception):
    """Raised if the switch took longer than writers may wait."""


@dataclass(frozen=True, slots=True)
class Cell:
    name: str
    url: str  # connects as the owner, a superuser


@dataclass(frozen=True, slots=True)
class MoveLimits:
    """Durations in seconds, and the lag in bytes at which the switch is attempted."""

    lock_timeout: float = 0.5  # maximum wait for a running write; other writers are blocked meanwhile
    fence_timeout: float = 0.8  # maximum wait for the target to catch up; writers are blocked meanwhile
    idle_timeout: float = 1.5  # the source ends an unresponsive mover's switch after this time
    fence_attempts: int = 20
    first_delay: float = 1.0  # between attempts; doubles after each attempt
    max_delay: float = 30.0
    patience: float = 60.0  # how long to wait for an unavailable database or a stalled copy
    switched_patience: float = 600.0  # the same after the switch, while the site is down
    job_patience: float = 20.0  # maximum wait for the site's running jobs at the source
    standby_timeout: float = 2.0  # maximum wait for the source's standbys during activation
    session_timeout: float = 30.0  # the directory ends an unresponsive mover's session after this time
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
    has_mover: bool  # whether a process is running the move

    @property
    def object_name(self) -> str:
        """Return the unique name that the publication, slot and subscription of this move share."""
        return name_objects(self.site_id, self.id)


def name_objects(site_id: int, move_id: UUID) -> str:
    return f"kalends_move_{site_id}_{move_id.hex[:12]}"


def is_temporary(error: BaseException) -> bool:
    """Return whether a step that failed with this error may succeed later."""
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "").startswith(TEMPORARY_STATES)
    return isinstance(error, (DatabaseUnavailable, TimeoutError, *CONNECTION_ERRORS))


async def find_site(directory_url: str, site: str | int) -> Location:
    try:
        return await directory.find_site(directory_url, site.lower() if isinstance(site, str) else site)
    except SiteConflict:
        raise MoveError("There is no site {site} in the directory.", site=site) from None


async def check_target(directory_url: str, target: str) -> None:
    async with connect(directory_url) as connection:
        accepts = await connection.fetchval("SELECT accepts_new FROM kalends_directory.cells WHERE name = $1", target)
    if accepts is None:
        raise MoveError("There is no cell {target} in the directory.", target=target)
    if not accepts:
        raise MoveError("The cell {target} is being drained and accepts no sites.", target=target)


async def list_moves(
    directory_url: str, unfinished: bool = False, site_id: int | None = None, limit: int | None = None
) -> list[Move]:
    async with connect(directory_url) as connection:
        query = f"""
            SELECT {MOVE_COLUMNS} FROM kalends_directory.moves
            WHERE (NOT $1 OR ended_at IS NULL) AND ($2::bigint IS NULL OR site_id = $2) ORDER BY started_at DESC
            LIMIT $3
        """
        rows = await connection.fetch(query, unfinished, site_id, limit)
    return [Move(**row) for row in rows]


async def read_move(directory_url: str, move_id: UUID) -> Move | None:
    async with connect(directory_url) as connection:
        row = await connection.fetchrow(f"SELECT {MOVE_COLUMNS} FROM kalends_directory.moves WHERE id = $1", move_id)
    return Move(**row) if row else None


async def begin_move(directory_url: str, move_id: UUID, site_id: int, source: str, target: str) -> Move:
    """Store a new move. After that, requests go to the target if the source no longer serves the site."""
    async with connect(directory_url) as connection, connection.transaction():
        statement = """
            UPDATE kalends_directory.sites SET target = $3, changed_at = now()
            WHERE id = $1 AND cell = $2 AND target IS NULL
        """
        updated = await connection.execute(statement, site_id, source, target)
        if updated == "UPDATE 0":
            raise MoveError(
                "Site {site} is not in the cell {source}, or is moving already.", site=site_id, source=source
            )
        statement = f"""
            INSERT INTO kalends_directory.moves (id, site_id, source, target, step) VALUES ($1, $2, $3, $4, 'begin')
            ON CONFLICT (site_id) WHERE ended_at IS NULL DO NOTHING RETURNING {MOVE_COLUMNS}
        """
        row = await connection.fetchrow(statement, move_id, site_id, source, target)
        if row is None:
            raise MoveError("Site {site} has an unfinished move. Run `kalends site moves`.", site=site_id)
    return Move(**row)


async def record_step(directory_url: str, move: Move, step: str) -> None:
    async with connect(directory_url) as connection:
        statement = """
            UPDATE kalends_directory.moves SET step = $2, changed_at = now()
            WHERE id = $1 AND ended_at IS NULL AND step <> 'abort'
        """
        await connection.execute(statement, move.id, step)


async def mark_aborting(directory_url: str, move: Move) -> None:
    """Mark a move as being aborted to stop other movers; raise if the move already has an outcome."""
    async with connect(directory_url) as connection:
        statement = """
            UPDATE kalends_directory.moves SET step = 'abort', changed_at = now()
            WHERE id = $1 AND ended_at IS NULL AND outcome IS NULL
        """
        updated = await connection.execute(statement, move.id)
    if updated == "UPDATE 0":
        raise MoveSuperseded


async def route_to_target(directory_url: str, move: Move, pause_ms: int | None, step: str) -> list[str]:
    """Send requests to the target only and return the site's hosts. Repeating this changes nothing."""
    async with connect(directory_url) as connection, connection.transaction():
        statement = """
            UPDATE kalends_directory.moves SET step = $3, outcome = 'moved', pause_ms = $2, changed_at = now()
            WHERE id = $1 AND outcome IS NULL
        """
        updated = await connection.execute(statement, move.id, pause_ms, step)
        if updated == "UPDATE 1":
            sql = "UPDATE kalends_directory.sites SET cell = $2, target = NULL, changed_at = now() WHERE id = $1"
            await connection.execute(sql, move.site_id, move.target)
        rows = await connection.fetch("SELECT host FROM kalends_directory.hosts WHERE site_id = $1", move.site_id)
    return [row["host"] for row in rows]


async def end_move(directory_url: str, move: Move, step: str) -> None:
    """End a move after its site was routed to the target and its leftovers were removed."""
    async with connect(directory_url) as connection:
        statement = """
            UPDATE kalends_directory.moves SET step = $2, ended_at = now(), changed_at = now()
            WHERE id = $1 AND ended_at IS NULL AND outcome = 'moved'
        """
        await connection.execute(statement, move.id, step)


async def end_aborted_move(directory_url: str, move: Move) -> None:
    """End an aborted move that has left nothing behind. The source serves the site as before."""
    async with connect(directory_url) as connection, connection.transaction():
        statement = """
            UPDATE kalends_directory.moves SET outcome = 'aborted', ended_at = now(), changed_at = now()
            WHERE id = $1 AND ended_at IS NULL AND outcome IS NULL
        """
        updated = await connection.execute(statement, move.id)
        if updated == "UPDATE 1":
            sql = "UPDATE kalends_directory.sites SET target = NULL, changed_at = now() WHERE id = $1 AND cell = $2"
            await connection.execute(sql, move.site_id, move.source)


@dataclass(slots=True)
class SourceLock:
    """A directory session that holds a source cell's lock.

    The directory ends a mover's session after `seconds` of inactivity. The mover then takes the lock again if it is
    free. That is safe, because no statement relies on the lock.
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
        async with self._turn:
            try:
                await self._connection.execute("SELECT", timeout=self.seconds)
            except DRIVER_ERRORS:
                await self.acquire()

    async def keep(self) -> None:
        """Use the session regularly to keep it open."""
        while True:
            await asyncio.sleep(self.seconds / 4)
            # The next step reports persistent errors.
            with suppress(MoveError, DatabaseUnavailable, *DRIVER_ERRORS):
                await self.verify()

    async def release(self) -> None:
        await self._session.aclose()


@asynccontextmanager
async def lock_source(directory_url: str, source: str, seconds: float) -> AsyncIterator[SourceLock]:
    """Lock a source cell, because several moves at once would each decode the cell's log."""
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

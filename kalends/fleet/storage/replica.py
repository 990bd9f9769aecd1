"""A standby that answers reads, and the age of its data.

The server reads the primary's write-ahead log position at short intervals. Data that is current up to a position
contains every write acknowledged before that position was read. Finding the age of data this way requires no writes,
no special rights, and no comparison between the times of two machines. An idle primary does not count as lag.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Final

from asyncpg import Record

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.store.database import LOG_POSITION, LOOKUP_TIMEOUT, Database
from kalends.store.sql import Sql

# Maximum seconds between readings. With too few readings per maximum lag, every replica would look outdated.
MAX_INTERVAL: Final = 1.0
INTERVALS_PER_LAG: Final = 4
MAX_POSITIONS: Final = 600


@dataclass(frozen=True, slots=True)
class ReplicaLimits:
    """In seconds: the maximum age of a replica's data, and how long an outage of the primary lifts this limit."""

    max_lag: float = 5.0
    outage_seconds: float = 3600.0


class PrimaryLog:
    """Positions in the primary's write-ahead log, each with the time just before it was read."""

    def __init__(self, started_at: float) -> None:
        self._positions: deque[tuple[float, int]] = deque(maxlen=MAX_POSITIONS)
        self._last_success = started_at
        self.is_away = False

    def record(self, read_at: float, position: int) -> None:
        self._positions.append((read_at, position))
        self._last_success = read_at
        self.is_away = False

    def record_failure(self) -> None:
        self.is_away = True

    def find_age(self, position: int, now: float) -> float:
        """Return the maximum possible age, in seconds, of data that is current up to a position."""
        for read_at, known in reversed(self._positions):
            if known <= position:
                return now - read_at
        return inf

    def find_outage(self, now: float) -> float:
        """Return the seconds since the primary last answered; 0 if it is available."""
        return now - self._last_success if self.is_away else 0.0


class Replica:
    """A standby's connection pool, and the age of its data."""

    def __init__(self, database: Database, primary: Database, limits: ReplicaLimits) -> None:
        self.database = database
        self._primary = primary
        self._limits = limits
        self._log = PrimaryLog(time.monotonic())
        self.is_available = False  # whether the standby responded to the last reading
        self.age = inf  # the age of its data at that time

    @property
    def is_primary_away(self) -> bool:
        return self._log.is_away

    @property
    def outage_age(self) -> float:
        return self._log.find_outage(time.monotonic())

    def is_recent(self, position: int) -> bool:
        """Return whether data that is current up to a position may be served.

        While the primary is unavailable, old data is allowed for a limited time, because the alternative would be no
        answer.
        """
        now = time.monotonic()
        if self._log.find_age(position, now) <= self._limits.max_lag:
            return True
        return self._log.is_away and self._log.find_outage(now) <= self._limits.outage_seconds

    async def fetch_revisions(self, hosts: list[str]) -> list[Record]:
        """Return the site revisions for these hosts; raise 503 if the data is too old."""
        sql = Sql(f"SELECT host, site_id, revision, {LOG_POSITION} AS log_position FROM site_revisions(?)", hosts)
        rows = await self.database.fetch_unscoped(sql, seconds=LOOKUP_TIMEOUT)
        if rows and not self.is_recent(rows[0]["log_position"]):
            raise errors.unavailable()
        return rows

    async def has_reached(self, site_id: int, revision: int, now: datetime) -> bool:
        """Return whether the replica has a site's revision.

        If the replica is unavailable, return True, because it serves nothing.
        """
        try:
            async with self.database.transaction(site_id, now, writing=False) as tx:
                return tx.site.revision >= revision
        except ApiError as error:
            return error.status >= 500

    def set_unavailable(self) -> None:
        """Use the primary until the standby responds again."""
        self.is_available = False

    async def read_positions(self) -> None:
        """Read the positions of both servers once, to find out whether the standby can answer."""
        await self._read_primary()
        await self._read_standby()

    async def run(self) -> None:
        interval = min(MAX_INTERVAL, self._limits.max_lag / INTERVALS_PER_LAG)
        await asyncio.gather(_repeat(self._read_primary, interval), _repeat(self._read_standby, interval))

    async def _read_primary(self) -> None:
        read_at = time.monotonic()
        try:
            position = await self._primary.read_log_position()
        except ApiError:
            self._log.record_failure()
        else:
            self._log.record(read_at, position)

    async def _read_standby(self) -> None:
        try:
            position = await self.database.read_log_position()
        except ApiError:
            self.is_available = False
        else:
            self.is_available = True
            self.age = self._log.find_age(position, time.monotonic())


async def _repeat(read: Callable[[], Awaitable[None]], interval: float) -> None:
    while True:
        await read()
        await asyncio.sleep(interval)

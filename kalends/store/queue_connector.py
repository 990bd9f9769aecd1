"""Job queue connections that survive a failover behind a proxy that keeps connections open."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any, Final

import psycopg
from procrastinate import PsycopgConnector
from procrastinate.manager import get_channel_for_queues
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import AsyncConnectionPool

from kalends.store.job_queue import Queue

# Seconds allowed for one statement; queue statements are short even on a busy server.
TIMEOUT: Final = 10.0
# Errors caused by a lost connection or a read-only server. A duplicate queueing lock raises a different error.
LOST_ERRORS: Final = (psycopg.OperationalError, psycopg.InternalError)
# Default libpq options; the URL can override them. The last two make connections to a dead machine fail.
DEFAULTS: Final = {"connect_timeout": "5", "keepalives_idle": "10", "tcp_user_timeout": "10000"}


class QueueConnector(PsycopgConnector):
    """A connector that sets `is_broken` after the first failed statement, to make the worker reconnect.

    A job whose completion could not be stored stays assigned to this worker. The job is retried, by another worker or
    by this one under a new ID, only after the heartbeats of the old ID stop.
    """

    def __init__(self, url: str, *, timeout: float = TIMEOUT) -> None:
        conninfo = make_conninfo("", **{**DEFAULTS, **conninfo_to_dict(url)})
        super().__init__(conninfo=conninfo, min_size=1, max_size=4, timeout=2 * timeout, pool_factory=self._make_pool)
        self._timeout = timeout
        self.is_broken = asyncio.Event()
        self._listener: psycopg.AsyncConnection[Any] | None = None
        self._callbacks: dict[str, Any] = {}

    def _make_pool(self, **options: Any) -> AsyncConnectionPool:
        return AsyncConnectionPool(**{**options, "check": self._check})

    async def _check(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Check that a connection answers. If it does not, also abort the listener, which uses the same server."""
        try:
            with limit_time(connection, self._timeout):
                await AsyncConnectionPool.check_connection(connection)
        except LOST_ERRORS:
            if self._listener is not None:
                abort(self._listener)
            raise

    @asynccontextmanager
    async def _get_cursor(self, connection: psycopg.AsyncConnection[Any] | None = None) -> AsyncGenerator[Any]:
        try:
            with ExitStack() as limit:  # covers the commit too, which follows the block below
                async with super()._get_cursor(connection) as cursor:
                    limit.enter_context(limit_time(cursor.connection, self._timeout))
                    yield cursor
        except LOST_ERRORS:
            self.is_broken.set()
            raise

    @asynccontextmanager
    async def _get_standalone_connection(self) -> AsyncGenerator[psycopg.AsyncConnection[Any]]:
        async with super()._get_standalone_connection() as connection:
            self._listener = connection
            try:
                yield connection
            finally:
                self._listener = None

    async def listen_notify(self, on_notification: Any, channels: Iterable[str]) -> None:
        """Listen for new jobs. All queues' workers share one connection, which the first worker opens."""
        is_first = not self._callbacks
        self._callbacks |= dict.fromkeys(channels, on_notification)
        if is_first:
            await super().listen_notify(self._forward, get_channel_for_queues(list(Queue)))
        else:
            await asyncio.Event().wait()

    async def _forward(self, *, channel: str, payload: str) -> None:
        if channel in self._callbacks:
            await self._callbacks[channel](channel=channel, payload=payload)


@contextmanager
def limit_time(connection: psycopg.AsyncConnection[Any], seconds: float) -> Iterator[None]:
    """Abort a connection that does not answer in time.

    Canceling the statement instead would wait indefinitely for the server's confirmation.
    """
    timer = asyncio.get_running_loop().call_later(seconds, abort, connection)
    try:
        yield
    finally:
        timer.cancel()


def abort(connection: psycopg.AsyncConnection[Any]) -> None:
    """Shut down a connection's socket; all pending waits then fail."""
    with suppress(OSError, psycopg.OperationalError), socket.socket(fileno=os.dup(connection.fileno())) as copy:
        copy.shutdown(socket.SHUT_RDWR)

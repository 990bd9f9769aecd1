"""The connections of the job queue, which survive a failover behind a proxy that does not cut connections.

A connection to a server that is gone may stay open without ever answering, and one to a demoted primary only reads.
Neither is used twice.
"""

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

from kalends.store.jobs import Queue

# Seconds for one statement, however busy the server is; those of the queue are short.
TIMEOUT: Final = 10.0
# The connection is lost, or its server does not accept writes. A queueing lock that is taken is neither.
LOST_ERRORS: Final = (psycopg.OperationalError, psycopg.InternalError)
# Options of libpq unless the URL sets them. The last two end connections to a machine that is gone.
DEFAULTS: Final = {"connect_timeout": "5", "keepalives_idle": "10", "tcp_user_timeout": "10000"}


class QueueConnector(PsycopgConnector):
    """A connector that knows when to start again: `is_broken` is set after the first statement that failed.

    A job whose end could not be stored stays assigned to this worker. Other workers, or this one under another
    number, take it over only when the worker no longer sends heartbeats.
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
        """Raise unless a connection answers. The listener is connected to the same server, so it is replaced, too."""
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
            with ExitStack() as limit:  # Covers the commit as well, which follows the block below.
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
        """Listen for new jobs. The workers of all queues share one connection, which the first of them opens."""
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

    A cancelled statement would wait for the answer of the server to the cancellation, and thus without end.
    """
    timer = asyncio.get_running_loop().call_later(seconds, abort, connection)
    try:
        yield
    finally:
        timer.cancel()


def abort(connection: psycopg.AsyncConnection[Any]) -> None:
    """Shut down the socket of a connection, so that whoever waits for an answer gets an error."""
    with suppress(OSError, psycopg.OperationalError), socket.socket(fileno=os.dup(connection.fileno())) as copy:
        copy.shutdown(socket.SHUT_RDWR)

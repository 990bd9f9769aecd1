"""Stands between a server and its database, and fails on demand: silence, resets, lost answers."""

import asyncio
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class Proxy:
    def __init__(self, database_url: str, port: int = 0) -> None:
        """Listens on the port, or on any."""
        self._target = urlsplit(database_url)
        self._port = port
        self._flows = asyncio.Event()
        self._flows.set()
        self._swallowed = b""
        self._passing = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The database as it is reached through here."""
        return self._target._replace(netloc=f"{self._target.username}@127.0.0.1:{self._port}").geturl()

    def silence(self) -> None:
        """Connections stay and are accepted, but nothing passes any more."""
        self._flows.clear()

    def heal(self) -> None:
        """What was held back passes now."""
        self._flows.set()

    def reset(self) -> None:
        """Cuts all connections."""
        for writer in self._writers:
            writer.transport.abort()

    def swallow_answer_to(self, words: bytes, *, after: int = 0) -> None:
        """The next such words still reach the database; then the connection is cut before it answers.

        `after` is the number of times that they pass before.
        """
        self._swallowed, self._passing = words, after

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._join, "127.0.0.1", self._port)
        self._port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self.heal()
        self.reset()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._listener.wait_closed()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        pair = [writer]
        try:
            upward, downward = await asyncio.open_connection(self._target.hostname, self._target.port)
            pair.append(downward)
            self._writers.update(pair)
            await asyncio.gather(self._pump(reader, downward, pair), self._pump(upward, writer, pair))
        except OSError:
            pass  # The database is away: the client sees its connection cut.
        finally:
            self._writers.difference_update(pair)
            for end in pair:
                end.transport.abort()

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, pair: list[asyncio.StreamWriter]
    ) -> None:
        try:
            while words := await source.read(65536):
                await self._flows.wait()
                sink.write(words)
                await sink.drain()
                if self._swallowed and self._swallowed in words:
                    self._passing -= 1
                    if self._passing < 0:
                        self._swallowed = b""
                        pair[0].transport.abort()
        finally:
            # One end is closed, so both are.
            for end in pair:
                end.close()

"""Stands between a server and its database, and fails on demand: silence, resets, lost answers."""

import asyncio
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class FaultyProxy:
    def __init__(self, database_url: str, port: int = 0) -> None:
        """Listen on the given port, or on a free one."""
        self._target = urlsplit(database_url)
        self._port = port
        self._is_flowing = asyncio.Event()
        self._is_flowing.set()
        self._dropped_text = b""
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The database as it is reached through here."""
        return self._target._replace(netloc=f"{self._target.username}@127.0.0.1:{self._port}").geturl()

    def pause(self) -> None:
        """Connections stay and are accepted, but nothing passes any more."""
        self._is_flowing.clear()

    def resume(self) -> None:
        """What was held back passes now."""
        self._is_flowing.set()

    def reset(self) -> None:
        """Cut all connections."""
        for writer in self._writers:
            writer.transport.abort()

    def drop_response_to(self, text: bytes) -> None:
        """The next such words still reach the database; then the connection is cut before it answers."""
        self._dropped_text = text

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._connect, "127.0.0.1", self._port)
        self._port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self.resume()
        self.reset()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._listener.wait_closed()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        pair = [writer]
        try:
            upward, downward = await asyncio.open_connection(self._target.hostname, self._target.port)
            pair.append(downward)
            self._writers.update(pair)
            await asyncio.gather(self._forward(reader, downward, pair), self._forward(upward, writer, pair))
        except OSError:
            pass  # The database is away: the client sees its connection cut.
        finally:
            self._writers.difference_update(pair)
            for end in pair:
                end.transport.abort()

    async def _forward(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, pair: list[asyncio.StreamWriter]
    ) -> None:
        try:
            while data := await source.read(65536):
                await self._is_flowing.wait()
                sink.write(data)
                await sink.drain()
                if self._dropped_text and self._dropped_text in data:
                    self._dropped_text = b""
                    pair[0].transport.abort()
        finally:
            # One end is closed, so both are.
            for end in pair:
                end.close()

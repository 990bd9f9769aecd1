"""A plain TCP proxy that does not cut connections: when its server is gone, the client hears nothing, not even that.

New connections go to the server that is named at that time, as with a service of Kubernetes or a changed DNS entry.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

type Address = tuple[str, int]


class KeepingProxy:
    def __init__(self, find_target: Callable[[], Address | None], port: int = 0) -> None:
        """Listen on the given port, or on a free one. Without a target, new connections are closed."""
        self._find_target = find_target
        self.port = port
        self.forwards_close = False  # whether the client hears of a server that closes the connection in good order
        self._backends: set[asyncio.StreamWriter] = set()
        self._clients: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def silence(self) -> None:
        """Lose the servers of all connections; new ones work."""
        for backend in self._backends:
            backend.transport.abort()

    @property
    def connections(self) -> int:
        return len(self._clients)

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._connect, "127.0.0.1", self.port)
        self.port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        for writer in self._backends | self._clients:
            writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._listener.wait_closed()

    async def _connect(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._clients.add(client)
        backend = None
        try:
            target = self._find_target()
            if target is None:
                return
            answers, backend = await asyncio.open_connection(*target)
            self._backends.add(backend)
            answering = asyncio.create_task(self._answer(answers, client))
            await _copy(reader, backend)  # Ends when the client closes its side, whatever the server does.
            answering.cancel()
        except OSError:
            pass
        finally:
            self._clients.discard(client)
            for writer in filter(None, (client, backend)):
                self._backends.discard(writer)
                writer.transport.abort()

    async def _answer(self, answers: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        await _copy(answers, client)
        if self.forwards_close:
            client.transport.abort()


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Forward until the source ends. What the sink no longer accepts is dropped."""
    with suppress(OSError):
        while data := await source.read(65536):
            with suppress(OSError):
                sink.write(data)
                await sink.drain()

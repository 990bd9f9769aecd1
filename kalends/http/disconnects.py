"""Client disconnection: the work on a request is cancelled when its client disconnects."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, Final

from starlette.requests import Request

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# Methods whose body is ignored, although a client may send one.
BODYLESS_METHODS: Final = ("GET", "HEAD", "OPTIONS")


class ClientDisconnected(Exception):
    """The client closed its connection before it received the response."""


class DisconnectWatcher:
    """The ASGI messages of one client: its request body and then, watched in a task, its disconnection."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._work: asyncio.Task[Any] | None = None
        self._watch_task: asyncio.Task[None] | None = None
        self._is_disconnected = False

    async def receive(self) -> Message:
        """Return the next message, as ASGI's `receive` does."""
        if self._watch_task is not None:
            await asyncio.wait([self._watch_task])
            return {"type": "http.disconnect"}
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            self._start_watching()
        return message

    async def run[T](self, request: Request, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of the work; cancel it and raise ClientDisconnected if the client disconnects first."""
        self._work = asyncio.create_task(work)
        # The body of a read is ignored. That of a write is not requested here, because the work authenticates the
        # caller before it reads the body.
        if request.method in BODYLESS_METHODS:
            self._start_watching()
        try:
            result: T = await self._work
        except asyncio.CancelledError:
            if self._is_disconnected:
                raise ClientDisconnected from None
            raise
        finally:
            if self._watch_task is not None:
                self._watch_task.cancel()
        return result

    def _start_watching(self) -> None:
        self._watch_task = asyncio.create_task(self._wait_for_disconnection())

    async def _wait_for_disconnection(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._is_disconnected = True
        if self._work is not None:
            self._work.cancel()

"""What a client sends, and its disconnection: work for a client that has gone is cancelled."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, Final

from starlette.requests import Request

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# Methods whose body nobody reads, though a client may send one.
BODYLESS_METHODS: Final = ("GET", "HEAD", "OPTIONS")


class ClientDisconnected(Exception):
    """The client has closed its connection before it was answered."""


class DisconnectWatcher:
    """The messages of one client: the body while it is read, and after its end nothing but the disconnection."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._work: asyncio.Task[Any] | None = None
        self._watch_task: asyncio.Task[None] | None = None
        self._is_disconnected = False

    async def receive(self) -> Message:
        """Returns the next message, as ASGI's `receive` does."""
        if self._watch_task is not None:
            await asyncio.wait([self._watch_task])
            return {"type": "http.disconnect"}
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            self._start_watching()
        return message

    async def run[T](self, request: Request, work: Coroutine[Any, Any, T]) -> T:
        """Returns the result of the work; raises ClientGone and cancels it when the client goes away first."""
        self._work = asyncio.create_task(work)
        # The body of a read means nothing. Others are not asked for before the work wants them: whoever may not
        # send one is refused first.
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

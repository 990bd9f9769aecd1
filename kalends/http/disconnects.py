"""Client disconnection: the work on a request is cancelled when its client disconnects."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from contextlib import suppress
from typing import Any, Final

from starlette.requests import Request

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# Methods whose body is ignored, although a client may send one.
BODYLESS_METHODS: Final = ("GET", "HEAD", "OPTIONS")
# The part of a rejected body that is still read, enough for an image that is a little too large.
MAX_DISCARDED_BYTES: Final = 32 * 1024 * 1024
MAX_DISCARD_SECONDS: Final = 5


def read_content_length(request: Request) -> int:
    """Return the length that a body is announced with, or 0."""
    length = request.headers.get("content-length", "")
    return int(length[:18]) if length.isdecimal() else 0


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

    async def discard_body(self, request: Request) -> None:
        """Read the rest of a body that the work has rejected, within limits.

        A client or proxy that is still sending a body when the connection is closed may lose the response: proxies
        then respond with 502. A client that waits for permission to send its body (`Expect`) gets none.
        """
        is_large = read_content_length(request) > MAX_DISCARDED_BYTES
        if self._watch_task is None and not is_large and "expect" not in request.headers:
            with suppress(TimeoutError):
                async with asyncio.timeout(MAX_DISCARD_SECONDS):
                    await self._discard_messages()

    async def _discard_messages(self) -> None:
        size = 0
        while self._watch_task is None and size <= MAX_DISCARDED_BYTES:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                return
            size += len(message.get("body", b""))

    def _start_watching(self) -> None:
        self._watch_task = asyncio.create_task(self._wait_for_disconnection())

    async def _wait_for_disconnection(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._is_disconnected = True
        if self._work is not None:
            self._work.cancel()

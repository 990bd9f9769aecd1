"""The response that sends messages to one client until either side leaves."""

import asyncio
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Final

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from kalends.http.accept import STREAM_TYPE
from kalends.http.bodies import ClientDisconnected
from kalends.push.api.stream_messages import COMMENT

# A client with as many unread messages is disconnected.
MAX_UNREAD: Final = 16
# A client that does not accept a message within this many seconds is disconnected.
MAX_SEND_SECONDS: Final = 30
# Browsers reconnect after a random time between these, in milliseconds, so they do not all return at once.
RETRY_MILLISECONDS: Final = (1_000, 10_000)
HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

_random = Random()  # noqa: S311  Not a secret.


class Mailbox:
    """The messages that a client has not received yet."""

    __slots__ = ("_deadline", "_is_full", "_messages", "_wake", "empty", "is_closed")

    def __init__(self) -> None:
        self._messages: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._deadline: asyncio.Timeout | None = None
        self._is_full = False
        self.empty = asyncio.Event()
        self.is_closed = False

    def put(self, message: bytes) -> None:
        if len(self._messages) >= MAX_UNREAD:
            self._is_full = True
            self._messages.clear()
            self.close()
            if self._deadline is not None:
                self._deadline.reschedule(0)
        elif not self.is_closed:
            self._messages.append(message)
            self.empty.clear()
            self._wake.set()

    def put_comment(self) -> None:
        if not self._messages:
            self.put(COMMENT)

    def close(self) -> None:
        """End the stream after the messages in the mailbox."""
        self.is_closed = True
        self._wake.set()

    async def send_all(self, send: Send) -> None:
        """Send messages until the mailbox is closed; raise ClientDisconnected if the client does not keep up."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as self._deadline:
                while True:
                    while self._messages:
                        body = b"".join(self._messages)
                        self._messages.clear()
                        self._deadline.reschedule(loop.time() + MAX_SEND_SECONDS)
                        await send({"type": "http.response.body", "body": body, "more_body": True})
                        self._deadline.reschedule(None)
                    if self.is_closed:
                        break
                    self.empty.set()
                    self._wake.clear()
                    await self._wake.wait()
        except TimeoutError as error:
            raise ClientDisconnected from error
        finally:
            self._deadline = None
        if self._is_full:
            raise ClientDisconnected


class EventStream(StreamingResponse):
    """Sends what arrives in a mailbox; calls `leave` at the end."""

    def __init__(self, mailbox: Mailbox, leave: Callable[[], None]) -> None:
        super().__init__(iter(()), 200, HEADERS, media_type=STREAM_TYPE)
        self._mailbox = mailbox
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive  # The caller watches for a disconnection.
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            retry = f"retry: {_random.randint(*RETRY_MILLISECONDS)}\n\n".encode()
            await send({"type": "http.response.body", "body": retry, "more_body": True})
            await self._mailbox.send_all(send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._leave()

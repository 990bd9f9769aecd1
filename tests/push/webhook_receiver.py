"""A receiver of webhooks: an asyncio HTTP server in a thread that answers, fails, hangs and redirects as told."""

import asyncio
import base64
import hashlib
import hmac
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import orjson


@dataclass(frozen=True)
class Received:
    """A message as it arrived. `at` is in seconds since the epoch."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def key(self) -> str:
        """Return the record's kind, in the singular, and its ID."""
        return f"{self.json['type'].partition('.')[0]}/{self.json['data']['record']['id']}"

    def is_signed_with(self, secret: str) -> bool:
        """Check the signature as Standard Webhooks 1.0.0 describes it."""
        signed = f"{self.id}.{self.headers['webhook-timestamp']}.".encode() + self.body
        digest = hmac.digest(base64.b64decode(secret.removeprefix("whsec_")), signed, hashlib.sha256)
        signatures = self.headers["webhook-signature"].split(" ")
        return f"v1,{base64.b64encode(digest).decode()}" in signatures


@dataclass(frozen=True)
class Answer:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    delay: float = 0
    is_cut: bool = False  # the connection is closed without a response


OK = Answer()
Respond = Callable[[Received], Answer]


@dataclass
class Mailbox:
    """One URL of the receiver, with what arrived there and how it answers."""

    url: str
    respond: Respond = lambda _: OK
    received: list[Received] = field(default_factory=list[Received])
    is_recording: bool = True

    @property
    def types(self) -> list[str]:
        return [message.json["type"] for message in self.received]

    def wait_for(self, count: int, timeout: float = 20) -> list[Received]:
        """Return all messages once at least `count` have arrived."""
        deadline = time.monotonic() + timeout
        while len(self.received) < count:
            assert time.monotonic() < deadline, f"{len(self.received)} of {count} messages: {self.types}"
            time.sleep(0.02)
        return list(self.received)


class Receiver:
    def __init__(self) -> None:
        self._mailboxes: dict[str, Mailbox] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = 0
        self.concurrent = self.most_concurrent = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(5)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def add_mailbox(self, respond: Respond = lambda _: OK) -> Mailbox:
        path = f"/hooks/{len(self._mailboxes)}"
        self._mailboxes[path] = Mailbox(f"http://127.0.0.1:{self.port}{path}", respond)
        return self._mailboxes[path]

    async def _close(self) -> None:
        self._server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0.1)

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode("latin-1").split("\r\n")
                pairs = (line.split(":", 1) for line in lines[1:] if line)
                headers = {name.strip().lower(): value.strip() for name, value in pairs}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                self.concurrent += 1
                self.most_concurrent = max(self.most_concurrent, self.concurrent)
                try:
                    is_over = await self._answer(Received(lines[0].split(" ")[1], headers, body, time.time()), writer)
                finally:
                    self.concurrent -= 1
                if is_over:
                    break
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, message: Received, writer: asyncio.StreamWriter) -> bool:
        mailbox = self._mailboxes.get(message.path)
        answer = Answer(404) if mailbox is None else mailbox.respond(message)
        if answer.delay:
            await asyncio.sleep(answer.delay)
        if mailbox is not None and mailbox.is_recording:
            mailbox.received.append(message)
        if answer.is_cut:
            return True
        lines = [f"HTTP/1.1 {answer.status} X", "Content-Length: 2"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        writer.write("\r\n".join([*lines, "", "ok"]).encode())
        await writer.drain()
        return False

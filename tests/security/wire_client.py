"""A small HTTP client that sends exactly what it is given, on a few connections at once."""

import asyncio
import base64
import json
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any
from urllib.parse import urlencode, urlsplit

NS = "/api/calendar/events/v1"
EX = "/api/kalends/v1"
CONNECTIONS = 4
SECONDS = 30  # for one answer
# Servers that are asked trust 127.0.0.1, so that each request comes from an address of its own: nobody is
# slowed down for what came before.
FROM_ANYWHERE = {"KALENDS_TRUSTED_PROXIES": "127.0.0.1"}
_addresses = count(1)


@dataclass(frozen=True)
class Ask:
    """One request. `target` stands in the request line as it is; names of headers are in small letters."""

    method: str
    target: str
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""

    def by(self, login: tuple[str, str] | None) -> "Ask":
        return replace(self, headers={**self.headers, "authorization": basic(*login)}) if login else self

    def encoded(self, host: str) -> bytes:
        headers = {"host": host, "x-forwarded-for": _new_address(), **self.headers}
        if self.body or self.method not in ("GET", "HEAD", "OPTIONS"):
            headers["content-length"] = str(len(self.body))
        lines = [f"{self.method} {self.target} HTTP/1.1", *[f"{name}: {value}" for name, value in headers.items()]]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.body


@dataclass(frozen=True)
class Got:
    """An answer; status 0: the server closed the connection without one."""

    status: int
    head: str = ""
    body: bytes = b""

    @property
    def text(self) -> str:
        """All of it, as somebody may read it who looks for a word."""
        return self.head + "\r\n\r\n" + self.body.decode(errors="replace")

    def header(self, name: str) -> str:
        found = [
            line.partition(":")[2].strip() for line in self.head.split("\r\n") if line.lower().startswith(name + ":")
        ]
        return ", ".join(found)

    def json(self) -> Any:
        return json.loads(self.body)


def basic(login: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{login}:{password}".encode()).decode()


def get(path: str, **query: object) -> Ask:
    return Ask("GET", path + ("?" + urlencode(query) if query else ""))


def send(method: str, path: str, body: object, **headers: str) -> Ask:
    """With a body of JSON."""
    return Ask(method, path, {"content-type": "application/json", **headers}, json.dumps(body).encode())


def form(path: str, **fields: str) -> Ask:
    return Ask("POST", path, {"content-type": "application/x-www-form-urlencoded"}, urlencode(fields).encode())


def ask_all(address: str, asks: Iterable[Ask], *, connections: int = CONNECTIONS) -> list[Got]:
    """Sends all of them; the answers are in the same order."""
    return asyncio.run(_ask_all(address, list(asks), connections))


def ask(address: str, one: Ask) -> Got:
    return ask_all(address, [one])[0]


async def _ask_all(address: str, asks: Sequence[Ask], connections: int) -> list[Got]:
    answers: list[Got | None] = [None] * len(asks)
    numbers = iter(range(len(asks)))

    async def work() -> None:
        line = _Line(address)
        for number in numbers:
            answers[number] = await asyncio.wait_for(line.ask(asks[number]), SECONDS)
        line.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(min(connections, len(asks))):
            group.create_task(work())
    return [answer for answer in answers if answer is not None]


class _Line:
    """A connection that is opened again when the server has closed it."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._host, self._port = parts.hostname or "", parts.port
        self._name = parts.netloc
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, one: Ask) -> Got:
        was_open = self._streams is not None
        got = await self._ask(one)
        if got.status == 0 and was_open:  # It was closed before this request, perhaps.
            got = await self._ask(one)
        return got

    async def _ask(self, one: Ask) -> Got:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port, limit=1 << 20)
        reader, writer = self._streams
        try:
            writer.write(one.encoded(self._name))
            await writer.drain()
            got = await read_answer(reader, one.method)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.close()
            return Got(0)
        if got.header("connection").lower() == "close":
            self.close()
        return got

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def read_answer(reader: asyncio.StreamReader, method: str) -> Got:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").removesuffix("\r\n\r\n")
    got = Got(int(head.split(" ")[1]), head)
    if method == "HEAD" or got.status in (204, 304):
        return got
    if got.header("transfer-encoding").lower() == "chunked":
        pieces: list[bytes] = []
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            pieces.append((await reader.readexactly(size + 2))[:-2])
        await reader.readuntil(b"\r\n")
        return replace(got, body=b"".join(pieces))
    return replace(got, body=await reader.readexactly(int(got.header("content-length") or 0)))


def _new_address() -> str:
    number = next(_addresses)
    return f"100.{64 + number // 65536 % 64}.{number // 256 % 256}.{number % 256}"


def send_bytes(address: str, data: bytes, *, patience: float = 2.0) -> bytes:
    """Sends bytes as they are and returns all that comes back until the server closes, or is silent for a while."""
    parts = urlsplit(address)
    received: list[bytes] = []
    with socket.create_connection((parts.hostname or "", parts.port or 80), timeout=patience) as connection:
        try:
            connection.sendall(data)
            while piece := connection.recv(1 << 16):
                received.append(piece)
        except (TimeoutError, ConnectionError):
            pass  # It waits for more, or has had enough.
    return b"".join(received)

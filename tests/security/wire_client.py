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

API_PATH = "/api/calendar/events/v1"
EXTENSION_PATH = "/api/kalends/v1"
CONNECTIONS = 4
RESPONSE_TIMEOUT = 30  # for one answer
# Servers that are asked trust 127.0.0.1, so that each request comes from an address of its own: nobody is
# slowed down for what came before.
TRUST_LOCAL_PROXY = {"KALENDS_TRUSTED_PROXIES": "127.0.0.1"}
_address_numbers = count(1)


@dataclass(frozen=True)
class WireRequest:
    """One request. `target` stands in the request line as it is; names of headers are in small letters."""

    method: str
    target: str
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""

    def with_login(self, login: tuple[str, str] | None) -> "WireRequest":
        return replace(self, headers={**self.headers, "authorization": basic_auth(*login)}) if login else self

    def encode(self, host: str) -> bytes:
        headers = {"host": host, "x-forwarded-for": _new_client_address(), **self.headers}
        if self.body or self.method not in ("GET", "HEAD", "OPTIONS"):
            headers["content-length"] = str(len(self.body))
        lines = [f"{self.method} {self.target} HTTP/1.1", *[f"{name}: {value}" for name, value in headers.items()]]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.body


@dataclass(frozen=True)
class WireResponse:
    """An answer; status 0: the server closed the connection without one."""

    status: int
    head: str = ""
    body: bytes = b""

    @property
    def text(self) -> str:
        """All of it, as somebody may read it who looks for a word."""
        return self.head + "\r\n\r\n" + self.body.decode(errors="replace")

    def header(self, name: str) -> str:
        values = [
            line.partition(":")[2].strip() for line in self.head.split("\r\n") if line.lower().startswith(name + ":")
        ]
        return ", ".join(values)

    def json(self) -> Any:
        return json.loads(self.body)


def basic_auth(login: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{login}:{password}".encode()).decode()


def get_request(path: str, **query: object) -> WireRequest:
    return WireRequest("GET", path + ("?" + urlencode(query) if query else ""))


def json_request(method: str, path: str, body: object, **headers: str) -> WireRequest:
    """With a body of JSON."""
    return WireRequest(method, path, {"content-type": "application/json", **headers}, json.dumps(body).encode())


def form_request(path: str, **fields: str) -> WireRequest:
    return WireRequest(
        "POST", path, {"content-type": "application/x-www-form-urlencoded"}, urlencode(fields).encode()
    )


def send_all(base_url: str, requests: Iterable[WireRequest], *, connections: int = CONNECTIONS) -> list[WireResponse]:
    """Send all requests and return the responses in the same order."""
    return asyncio.run(_send_all(base_url, list(requests), connections))


def send_one(base_url: str, request: WireRequest) -> WireResponse:
    return send_all(base_url, [request])[0]


async def _send_all(address: str, requests: Sequence[WireRequest], connections: int) -> list[WireResponse]:
    responses: list[WireResponse | None] = [None] * len(requests)
    numbers = iter(range(len(requests)))

    async def run() -> None:
        connection = Connection(address)
        for number in numbers:
            responses[number] = await _send_patiently(connection, requests[number])
        connection.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(min(connections, len(requests))):
            group.create_task(run())
    return [response for response in responses if response is not None]


async def _send_patiently(connection: "Connection", request: WireRequest) -> WireResponse:
    """Send a request again while earlier writes of its user wait for the lock of the site, as clients should."""
    while True:
        response = await asyncio.wait_for(connection.send(request), RESPONSE_TIMEOUT)
        if response.status != 429 or "rest_too_many_writes" not in response.text:
            return response
        await asyncio.sleep(0.05)


class Connection:
    """A connection that is opened again when the server has closed it."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._host, self._port = parts.hostname or "", parts.port
        self._netloc = parts.netloc
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, request: WireRequest) -> WireResponse:
        was_open = self._streams is not None
        response = await self._send(request)
        if response.status == 0 and was_open:  # It was closed before this request, perhaps.
            response = await self._send(request)
        return response

    async def _send(self, request: WireRequest) -> WireResponse:
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port, limit=1 << 20)
        reader, writer = self._streams
        try:
            writer.write(request.encode(self._netloc))
            await writer.drain()
            reply = await read_response(reader, request.method)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.close()
            return WireResponse(0)
        if reply.header("connection").lower() == "close":
            self.close()
        return reply

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def read_response(reader: asyncio.StreamReader, method: str) -> WireResponse:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").removesuffix("\r\n\r\n")
    response = WireResponse(int(head.split(" ")[1]), head)
    if method == "HEAD" or response.status in (204, 304):
        return response
    if response.header("transfer-encoding").lower() == "chunked":
        pieces: list[bytes] = []
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            pieces.append((await reader.readexactly(size + 2))[:-2])
        await reader.readuntil(b"\r\n")
        return replace(response, body=b"".join(pieces))
    return replace(response, body=await reader.readexactly(int(response.header("content-length") or 0)))


def _new_client_address() -> str:
    number = next(_address_numbers)
    return f"100.{64 + number // 65536 % 64}.{number // 256 % 256}.{number % 256}"


def send_raw(address: str, data: bytes, *, timeout: float = 2.0) -> bytes:
    """Send raw bytes and return the response until the server closes the connection or pauses."""
    parts = urlsplit(address)
    received: list[bytes] = []
    with socket.create_connection((parts.hostname or "", parts.port or 80), timeout=timeout) as connection:
        try:
            connection.sendall(data)
            while chunk := connection.recv(1 << 16):
                received.append(chunk)
        except (TimeoutError, ConnectionError):
            pass  # It waits for more, or has had enough.
    return b"".join(received)

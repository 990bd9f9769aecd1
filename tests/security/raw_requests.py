"""Requests as bytes on a socket, and what the processes of a server use. No HTTP library would send most of them."""

import contextlib
import json
import re
import resource
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from bench.cpu_time import cpu_seconds, list_process_tree
from bench.seeded_sites import run_command
from tests.conftest import replace_database, temporary_database
from tests.servers import Server

API_PATH = "/api/calendar/events/v1"
NO_BYTES, PARTIAL_REQUEST = b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
COMPLETE_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@dataclass(frozen=True)
class Reply:
    """What came back on a connection. `status` is 0 when the connection was closed without a response."""

    status: int
    headers: dict[str, str]
    body: bytes


def send_request(
    server: Server,
    path: str = f"{API_PATH}/events",
    *,
    method: str = "GET",
    hosts: Sequence[str | bytes] = ("localhost",),
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    source: str = "",
) -> Reply:
    """Send one request on a new connection, with any number of Host headers and any bytes in them."""
    lines = [f"{method} {path} HTTP/1.1".encode()]
    lines += [b"Host: " + (host if isinstance(host, bytes) else host.encode("latin-1")) for host in hosts]
    lines += [f"{name}: {value}".encode("latin-1") for name, value in (headers or {}).items()]
    if body:
        lines.append(f"Content-Length: {len(body)}".encode())
    return parse_reply(
        send_bytes(server, b"\r\n".join([*lines, b"Connection: close", b"", b""]) + body, source=source)
    )


def send_bytes(server: Server, data: bytes, *, source: str = "", timeout: float = 60) -> bytes:
    """Send bytes and return the response until the server closes the connection."""
    received = bytearray()
    with connect(server, source=source, timeout=timeout) as connection:
        # A server that refuses a head early may close before it has read the rest.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(data)
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(1 << 20):
                received += part
    return bytes(received)


def parse_reply(received: bytes) -> Reply:
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    match = re.match(r"HTTP/1\.[01] (\d{3})", first)
    pairs = [line.partition(":") for line in lines]
    return Reply(int(match[1]) if match else 0, {name.lower(): value.strip() for name, _, value in pairs}, body)


def connect(server: Server, *, source: str = "", timeout: float = 60) -> socket.socket:
    port = urlsplit(server.base_url).port
    assert port is not None
    return socket.create_connection(("127.0.0.1", port), timeout, (source, 0) if source else None)


@contextmanager
def hold_connections(
    server: Server, number: int, initial_bytes: bytes, *, source: str = "127.0.0.2"
) -> Iterator[list[socket.socket]]:
    """Open connections from another client that send only `first`."""
    raise_file_limit(number + 500)
    connections: list[socket.socket] = []
    try:
        for _ in range(number):
            connections.append(connect(server, source=source, timeout=10))
            connections[-1].sendall(initial_bytes)
        yield connections
    finally:
        for connection in connections:
            connection.close()


def closed_flags(connections: Sequence[socket.socket]) -> list[bool]:
    """For each connection whether the server has closed it; what it sent is read and dropped."""
    return [_is_closed(connection) for connection in connections]


def _is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        while part := connection.recv(1 << 16):
            del part
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True


def raise_file_limit(number: int) -> None:
    """Raises the limit of open files of this process as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < number:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(number, hard), hard))


def measure_health(server: Server, *, timeout: float = 1.0) -> float | None:
    """The seconds that /healthz takes for a client that nobody else shares its address with; None: no answer."""
    started = time.monotonic()
    try:
        reply = parse_reply(send_bytes(server, b"GET /healthz HTTP/1.0\r\n\r\n", timeout=timeout))
    except OSError:
        return None
    return time.monotonic() - started if reply.status == 200 else None


def watch_health(server: Server, seconds: float) -> list[float | None]:
    """Send five requests per second for a while."""
    durations: list[float | None] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        durations.append(measure_health(server))
        time.sleep(0.2)
    return durations


def success_rate(durations: Sequence[float | None]) -> float:
    return sum(duration is not None for duration in durations) / len(durations)


def memory_mb(server: Server) -> float:
    """What all processes of a server hold together."""
    return _sum_status_field(server, "VmRSS")


def peak_memory_mb(server: Server) -> float:
    """The most that the processes held since `forget_peak`."""
    return _sum_status_field(server, "VmHWM")


def reset_peak_memory(server: Server) -> None:
    for pid in list_process_tree(server.process.pid):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def _sum_status_field(server: Server, name: str) -> float:
    texts = [Path(f"/proc/{pid}/status").read_text() for pid in list_process_tree(server.process.pid)]
    return sum(int(text.split(f"{name}:")[1].split()[0]) for text in texts if f"{name}:" in text) / 1024


def total_cpu_seconds(server: Server) -> float:
    """Seconds of CPU of all processes of a server."""
    return sum(map(cpu_seconds, list_process_tree(server.process.pid)))


def count_cache_hits(port: int) -> tuple[int, int]:
    """Answers 200 from the response cache, and all others of 200, by the metrics of a server."""
    hits = others = 0
    for line in httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text.splitlines():
        match = re.match(r"kalends_requests_total\{(.*)\} ([\d.e+]+)", line)
        if match and 'status="200"' in match[1] and 'route="other"' not in match[1]:
            if 'cache="hit"' in match[1]:
                hits += int(float(match[2]))
            else:
                others += int(float(match[2]))
    return hits, others


@contextmanager
def seeded_database(postgres_url: str, template: str, *, events: int = 300) -> Iterator[str]:
    """A migrated database with a site of made-up events, all of them to come."""
    with temporary_database(postgres_url, template=template) as name:
        url = replace_database(postgres_url, name)
        if events:
            run_command(url, "seed", "--events", str(events), "--upcoming", str(events))
        yield url


def expensive_body() -> bytes:
    """8 KB that lose one level of escapes in each round of cleaning."""
    text = "&" + "amp;" * 249
    fields = ["address", "city", "country", "province", "state", "stateprovince", "zip", "phone"]
    return json.dumps({**dict.fromkeys(fields, text), "venue": "x"}).encode()

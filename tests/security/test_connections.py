"""Connections that are opened and not used do not keep others out (H6), nor do readers that do not read (M3)."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.security.raw_requests import (
    API_PATH,
    COMPLETE_REQUEST,
    NO_BYTES,
    PARTIAL_REQUEST,
    closed_flags,
    connect,
    hold_connections,
    memory_mb,
    seeded_database,
    send_request,
    success_rate,
    watch_health,
)
from tests.servers import Server
from tests.soak import scaled

SECONDS = scaled(5, 60)
MAX_IDLE_SECONDS = 7


@pytest.fixture
def server(database_url: str, tmp_path: Path) -> Iterator[Server]:
    with Server.start(database_url, log=tmp_path / "log", workers=2) as server:
        yield server


@pytest.mark.parametrize(
    ("number", "first"), [(1_100, NO_BYTES), (1_500, PARTIAL_REQUEST)], ids=["silent", "half a head"]
)
def test_connections_without_request_are_closed(server: Server, number: int, first: bytes) -> None:
    with hold_connections(server, number, first) as connections:
        opened_at = time.monotonic()
        responses = watch_health(server, MAX_IDLE_SECONDS)
        closed = closed_flags(connections)
        assert time.monotonic() - opened_at < MAX_IDLE_SECONDS + 2
        responses += watch_health(server, max(SECONDS - MAX_IDLE_SECONDS, 1))
    assert all(closed), f"{closed.count(False)} of {number} still open"
    assert success_rate(responses) >= 0.95, responses


def test_idle_connections_do_not_block_others(server: Server) -> None:
    with hold_connections(server, 1_200, COMPLETE_REQUEST):
        assert success_rate(watch_health(server, SECONDS)) >= 0.95


def test_slow_bodies_do_not_block_others(server: Server) -> None:
    head = f"POST {API_PATH}/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with hold_connections(server, 60, f"{head}Content-Length: 100000\r\n\r\n{{".encode()):
        assert success_rate(watch_health(server, 3)) == 1.0
        assert send_request(server).status == 200


def test_rejected_body_is_read_within_limits(server: Server) -> None:
    def post(*headers: str, body: bytes = b"") -> tuple[bytes, float]:
        lines = [f"POST {API_PATH}/venues HTTP/1.1", "Host: localhost", *headers, "", ""]
        started = time.monotonic()
        connection.sendall("\r\n".join(lines).encode() + body)
        return connection.recv(1 << 16), time.monotonic() - started

    with connect(server) as connection:
        # A body that has been read to its end leaves the connection open for the next request.
        for size in (1, 20_000_000, 20_000_000):
            reply, _ = post(f"Content-Length: {size}", body=bytes(size))
            assert reply.startswith(b"HTTP/1.1 401")
        # This client waits for "100 Continue", which it does not get.
        reply, seconds = post("Content-Length: 20000000", "Expect: 100-continue")
        assert reply.startswith(b"HTTP/1.1 401")
        assert seconds < 3
    with connect(server) as connection:
        reply, seconds = post("Content-Length: 2000000000")
        assert reply.startswith(b"HTTP/1.1 401")
        assert seconds < 3
    with connect(server) as connection:
        # A client that sends less than it has announced gets its response all the same.
        reply, seconds = post("Content-Length: 20000000")
        assert reply.startswith(b"HTTP/1.1 401")
        assert 4 < seconds < 20


@pytest.mark.parametrize(
    "first", [NO_BYTES, PARTIAL_REQUEST, COMPLETE_REQUEST], ids=["silent", "half a head", "idle"]
)
def test_server_with_open_connections_stops_on_sigterm(server: Server, first: bytes) -> None:
    with hold_connections(server, 200, first):
        time.sleep(4)
        started = time.monotonic()
        assert server.stop(20) == 0
        assert time.monotonic() - started < 15


def test_stalled_readers_hold_no_copy_of_feed(postgres_url: str, template_database: str, tmp_path: Path) -> None:
    with (
        seeded_database(postgres_url, template_database, events=scaled(4_000, 5_000)) as url,
        Server.start(url, log=tmp_path / "log") as server,
    ):
        size = len(send_request(server, "/events.ics").body)
        assert size > 3_000_000
        for _ in range(3):
            with closing(connect(server)) as reader:
                reader.sendall(b"GET /events.ics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        before = memory_mb(server)
        request = b"GET /events.ics HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with hold_connections(server, 100, request) as readers:
            time.sleep(5)
            grown = memory_mb(server) - before
            assert send_request(server, "/healthz").status == 200
            assert readers
    assert grown < 100, f"{grown:.0f} MB for 100 readers of {size:,} bytes"

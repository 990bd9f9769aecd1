"""Connections that are opened and not used do not keep others out (H6), nor do readers that do not read (M3)."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.security.raw_requests import (
    HALF_HEAD,
    NS,
    SILENT,
    WHOLE_HEAD,
    are_closed,
    ask,
    connect,
    held,
    memory_mb,
    seeded,
    share_answered,
    watch_health,
)
from tests.servers import Server
from tests.soak import scaled

SECONDS = scaled(8, 60)
CLOSED_WITHIN = 7


@pytest.fixture
def server(database_url: str, tmp_path: Path) -> Iterator[Server]:
    with Server.start(database_url, log=tmp_path / "log", workers=2) as server:
        yield server


@pytest.mark.parametrize(("number", "first"), [(1_100, SILENT), (1_500, HALF_HEAD)], ids=["silent", "half a head"])
def test_connections_without_request_are_closed(server: Server, number: int, first: bytes) -> None:
    with held(server, number, first) as connections:
        opened = time.monotonic()
        answers = watch_health(server, CLOSED_WITHIN)
        closed = are_closed(connections)
        assert time.monotonic() - opened < CLOSED_WITHIN + 2
        answers += watch_health(server, max(SECONDS - CLOSED_WITHIN, 1))
    assert all(closed), f"{closed.count(False)} of {number} still open"
    assert share_answered(answers) >= 0.95, answers


def test_idle_connections_do_not_block_others(server: Server) -> None:
    with held(server, 1_200, WHOLE_HEAD):
        assert share_answered(watch_health(server, SECONDS)) >= 0.95


def test_slow_bodies_do_not_block_others(server: Server) -> None:
    head = f"POST {NS}/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with held(server, 60, f"{head}Content-Length: 100000\r\n\r\n{{".encode()):
        assert share_answered(watch_health(server, 3)) == 1.0
        assert ask(server).status == 200


@pytest.mark.parametrize("first", [SILENT, HALF_HEAD, WHOLE_HEAD], ids=["silent", "half a head", "idle"])
def test_server_with_open_connections_stops_on_sigterm(server: Server, first: bytes) -> None:
    with held(server, 200, first):
        time.sleep(4)
        began = time.monotonic()
        assert server.stop(20) == 0
        assert time.monotonic() - began < 15


def test_stalled_readers_hold_no_copy_of_feed(postgres_url: str, template_database: str, tmp_path: Path) -> None:
    with (
        seeded(postgres_url, template_database, events=scaled(4_000, 5_000)) as url,
        Server.start(url, log=tmp_path / "log") as server,
    ):
        size = len(ask(server, "/events.ics").body)
        assert size > 3_000_000
        for _ in range(3):
            with closing(connect(server)) as reader:
                reader.sendall(b"GET /events.ics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        before = memory_mb(server)
        request = b"GET /events.ics HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with held(server, 100, request) as readers:
            time.sleep(5)
            grown = memory_mb(server) - before
            assert ask(server, "/healthz").status == 200
            assert readers
    assert grown < 100, f"{grown:.0f} MB for 100 readers of {size:,} bytes"

"""A stopping server completes its requests; four concurrent migrations run once."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from kalends.store.migrations import newest_revision
from tests.conftest import temporary_database
from tests.robustness.consistency import assert_consistent, read_revision
from tests.robustness.site_fixtures import add_users, create_client, wait_until
from tests.servers import Server, make_environment
from tests.soak import SOAK
from tools.postgres import throwaway

WAITING_REQUESTS = 4


async def test_sigterm_drains_requests(database_url: str, tmp_path: Path, report: Callable[[object], None]) -> None:
    logins = add_users(database_url, {f"ed{number}": "editor" for number in range(WAITING_REQUESTS)}).values()
    with Server.start(database_url, log=tmp_path / "server.log", workers=2) as server:
        # A process that receives SIGTERM while it starts does not drain anything.
        await wait_until(lambda: server.read_log().count("Started worker-") == 2, 20)
        async with create_client(server.base_url) as client:
            with psycopg.connect(database_url) as holder:
                holder.execute("SELECT FROM sites FOR UPDATE")
                requests = [
                    asyncio.create_task(client.post("/venues", json={"venue": f"of {login[0]}"}, auth=login))
                    for login in logins
                ]
                # In each process, one of them waits in the database and the others for their turn.
                await wait_until(lambda: _count_waiting(database_url) > 0, 20)
                await asyncio.sleep(1)
                os.kill(server.process.pid, signal.SIGTERM)
                await wait_until(lambda: not _is_listening(server), 10)
                assert not any(request.done() for request in requests)
            released = time.monotonic()
            responses = await asyncio.gather(*requests)
            code = await asyncio.to_thread(server.process.wait, 10)
    report(f"stopped {time.monotonic() - released:.1f} s after the last lock was released")
    assert [response.status_code for response in responses] == [201] * WAITING_REQUESTS
    assert code == 0
    assert_consistent(database_url)
    assert read_revision(database_url) == WAITING_REQUESTS


async def test_idle_server_stops_despite_open_connections(database_url: str, tmp_path: Path) -> None:
    with Server.start(database_url, log=tmp_path / "server.log") as server:
        async with create_client(server.base_url) as client:
            assert (await client.get("/events")).status_code == 200
            started = time.monotonic()
            assert await asyncio.to_thread(server.stop, 10) == 0
            assert time.monotonic() - started < 8


def test_concurrent_migrations_succeed(empty_database_url: str) -> None:
    assert _migrate([empty_database_url] * 4) == [0] * 4
    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(newest_revision(),)]
        assert connection.execute("SELECT count(*) FROM sites").fetchone() == (1,)


@pytest.mark.skipif(not SOAK, reason="runs with `just soak` only: it needs a separate cluster")
def test_concurrent_migrations_of_new_cluster_succeed() -> None:
    """They share the role of the server, which each of them wants to make."""
    with throwaway() as cluster, ExitStack() as stack:
        names = [stack.enter_context(temporary_database(cluster.url)) for _ in range(4)]
        assert _migrate([cluster.build_url(name) for name in names]) == [0] * 4


def _migrate(database_urls: list[str]) -> list[int]:
    running = [
        subprocess.Popen([sys.executable, "-m", "kalends", "migrate"], env=make_environment(url))
        for url in database_urls
    ]
    return [process.wait(60) for process in running]


def _count_waiting(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        query = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        return connection.execute(query).rowcount


def _is_listening(server: Server) -> bool:
    port = urlsplit(server.base_url).port
    assert port is not None
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except ConnectionRefusedError:
        return False

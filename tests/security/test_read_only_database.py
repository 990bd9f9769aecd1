"""A database that refuses writes for a while, as after a failover: writes and jobs recover without a restart."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg import sql

from kalends.store.migrations import migrate
from tests.lifecycle.processes import Worker, wait_until
from tests.robustness.process_control import launch_server
from tests.robustness.site_fixtures import add_editor, create_client
from tests.robustness.test_failover import SETTINGS, start_standby
from tests.servers import Server
from tests.soak import scaled
from tools import postgres

WRITES = scaled(20, 60)
WORKER_TIMEOUT = 120  # A worker takes seconds to begin, and much longer on a busy machine.


class WriteSwitch:
    """Makes new sessions of one database read-only; sessions that are open stay as they are."""

    def __init__(self, admin: psycopg.Connection, database: str) -> None:
        self._admin = admin
        self._name = database

    def make_read_only(self) -> None:
        self._alter("SET default_transaction_read_only = on")

    def make_writable(self) -> None:
        self._alter("RESET default_transaction_read_only")

    def end_sessions(self) -> None:
        self._admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [self._name])

    def count_waiting_sessions(self) -> int:
        row = self._admin.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'", [self._name]
        ).fetchone()
        assert row is not None
        return int(row[0])

    def _alter(self, clause: str) -> None:
        statement = sql.SQL("ALTER DATABASE {} " + clause).format(sql.Identifier(self._name))  # type: ignore[arg-type]
        self._admin.execute(statement)


@pytest.fixture
def writable(postgres_url: str, database_url: str) -> Iterator[WriteSwitch]:
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        yield WriteSwitch(admin, database_url.rpartition("/")[2])


@contextmanager
def run_server(database_url: str, log: Path, pool_size: int = 10) -> Iterator[Server]:
    settings = {"KALENDS_POOL_SIZE": str(pool_size), "KALENDS_MAX_CONNECTIONS_PER_CLIENT": "0"}
    with Server.start(database_url, log=log, environment=settings) as server:
        yield server


async def test_writes_succeed_once_new_sessions_are_writable(
    database_url: str, writable: WriteSwitch, tmp_path: Path
) -> None:
    login = add_editor(database_url)
    writable.make_read_only()
    with run_server(database_url, tmp_path / "log") as server:
        async with create_client(server.base_url, login) as client:
            assert (await client.post("/venues", json={"venue": "No"})).status_code == 503
            writable.make_writable()
            statuses = [(await client.post("/venues", json={"venue": f"Yes {n}"})).status_code for n in range(WRITES)]
    assert statuses == [201] * WRITES


async def test_full_read_only_pool_fails_no_more_than_one_write(
    database_url: str, writable: WriteSwitch, tmp_path: Path
) -> None:
    login = add_editor(database_url)
    writable.make_read_only()
    with run_server(database_url, tmp_path / "log", pool_size=5) as server:
        async with create_client(server.base_url, login) as client:
            with psycopg.connect(database_url) as holder:
                holder.execute("SET transaction_read_only = off; LOCK TABLE tags IN ACCESS EXCLUSIVE MODE")
                reading = [asyncio.create_task(client.get("/tags", params={"search": n})) for n in range(5)]
                await asyncio.to_thread(wait_until, lambda: writable.count_waiting_sessions() == 5, 10)
                holder.rollback()
            assert {response.status_code for response in await asyncio.gather(*reading)} == {200}
            writable.make_writable()
            statuses = [(await client.post("/venues", json={"venue": f"Yes {n}"})).status_code for n in range(WRITES)]
    # Noting the use of a password is a write, too, and may have been the one that failed.
    assert (statuses[0] in (201, 503), statuses[1:]) == (True, [201] * (WRITES - 1))


async def test_standby_is_not_ready_until_promoted(tmp_path: Path) -> None:
    with postgres.throwaway(SETTINGS) as primary:
        migrate(primary.url)
        login = add_editor(primary.url)
        with start_standby(primary) as standby, launch_server(standby.url, tmp_path / "log", {}) as server:
            async with create_client(server.base_url, login, timeout=5) as client:
                await _wait_until_listening(client, server)
                response = await client.get(f"{server.base_url}/readyz")
                assert (response.status_code, "standby" in response.text) == (503, True)
                assert (await client.get("/venues")).status_code == 200
                assert (await client.post("/venues", json={"venue": "No"})).status_code == 503
                with psycopg.connect(standby.url, autocommit=True) as connection:
                    assert connection.execute("SELECT pg_promote(true, 30)").fetchone() == (True,)
                assert (await client.get(f"{server.base_url}/readyz")).status_code == 200
                assert (await client.post("/venues", json={"venue": "Yes"})).status_code == 201


@pytest.mark.parametrize("starts", ["read-only", "writable"])
def test_worker_resumes_after_read_only_phase(
    database_url: str, writable: WriteSwitch, tmp_path: Path, starts: str
) -> None:
    add_editor(database_url)
    if starts == "read-only":
        writable.make_read_only()
    with Worker.start(database_url, tmp_path / "worker.log") as worker:
        if starts == "writable":
            _add_due_venue(database_url, 1)
            wait_until(lambda: _read_status(database_url, 1) == "publish", WORKER_TIMEOUT)
            writable.make_read_only()
            writable.end_sessions()
        wait_until(lambda: "restarting the worker" in worker.log.read_text(), WORKER_TIMEOUT)
        writable.make_writable()
        _add_due_venue(database_url, 2)
        wait_until(lambda: _read_status(database_url, 2) == "publish", WORKER_TIMEOUT)
        assert worker.is_running()


def _add_due_venue(database_url: str, venue_id: int) -> None:
    """A venue whose time has come; a periodic job publishes it."""
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO venues (site_id, id, revision, author_id, status, published_at, modified_utc, title, slug) "
            "VALUES (1, %s, %s, 1, 'future', now() - interval '1 minute', now(), 'Due', %s)",
            [venue_id, 1000 + venue_id, f"due-{venue_id}"],
        )


def _read_status(database_url: str, venue_id: int) -> str:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT status FROM venues WHERE id = %s", [venue_id]).fetchone()
    assert row is not None
    return str(row[0])


async def _wait_until_listening(client: httpx.AsyncClient, server: Server) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            await client.get(f"{server.base_url}/healthz")
        except httpx.TransportError:
            await asyncio.sleep(0.1)
        else:
            return

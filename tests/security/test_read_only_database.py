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
from tests.life.processes import Worker, wait_until
from tests.robustness.kit import add_editor, client_of
from tests.robustness.processes import launched
from tests.robustness.test_failover import SETTINGS, standby_of
from tests.servers import Server
from tests.soak import scaled
from tools import postgres

WRITES = scaled(20, 60)
PATIENCE = 120  # A worker takes seconds to begin, and much longer on a busy machine.


class Switch:
    """Makes new sessions of one database read-only; sessions that are open stay as they are."""

    def __init__(self, admin: psycopg.Connection, database: str) -> None:
        self._admin = admin
        self._name = database

    def off(self) -> None:
        self._alter("SET default_transaction_read_only = on")

    def on(self) -> None:
        self._alter("RESET default_transaction_read_only")

    def end_sessions(self) -> None:
        self._admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [self._name])

    def waiting_sessions(self) -> int:
        row = self._admin.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'", [self._name]
        ).fetchone()
        assert row is not None
        return int(row[0])

    def _alter(self, what: str) -> None:
        statement = sql.SQL("ALTER DATABASE {} " + what).format(sql.Identifier(self._name))  # type: ignore[arg-type]
        self._admin.execute(statement)


@pytest.fixture
def writable(postgres_url: str, database_url: str) -> Iterator[Switch]:
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        yield Switch(admin, database_url.rpartition("/")[2])


@contextmanager
def running(database_url: str, log: Path, pool_size: int = 10) -> Iterator[Server]:
    settings = {"KALENDS_POOL_SIZE": str(pool_size), "KALENDS_CLIENT_CONNECTIONS": "0"}
    with Server.start(database_url, log=log, environment=settings) as server:
        yield server


async def test_writes_succeed_as_soon_as_new_sessions_can_write(
    database_url: str, writable: Switch, tmp_path: Path
) -> None:
    login = add_editor(database_url)
    writable.off()
    with running(database_url, tmp_path / "log") as server:
        async with client_of(server.address, login) as client:
            assert (await client.post("/venues", json={"venue": "No"})).status_code == 503
            writable.on()
            statuses = [(await client.post("/venues", json={"venue": f"Yes {n}"})).status_code for n in range(WRITES)]
    assert statuses == [201] * WRITES


async def test_a_full_pool_of_read_only_sessions_fails_at_most_one_write(
    database_url: str, writable: Switch, tmp_path: Path
) -> None:
    login = add_editor(database_url)
    writable.off()
    with running(database_url, tmp_path / "log", pool_size=5) as server:
        async with client_of(server.address, login) as client:
            with psycopg.connect(database_url) as holder:
                holder.execute("SET transaction_read_only = off; LOCK TABLE tags IN ACCESS EXCLUSIVE MODE")
                reading = [asyncio.create_task(client.get("/tags", params={"search": n})) for n in range(5)]
                await asyncio.to_thread(wait_until, lambda: writable.waiting_sessions() == 5, 10)
                holder.rollback()
            assert {answer.status_code for answer in await asyncio.gather(*reading)} == {200}
            writable.on()
            statuses = [(await client.post("/venues", json={"venue": f"Yes {n}"})).status_code for n in range(WRITES)]
    # Noting the use of a password is a write, too, and may have been the one that failed.
    assert (statuses[0] in (201, 503), statuses[1:]) == (True, [201] * (WRITES - 1))


async def test_a_standby_is_not_ready_until_it_is_promoted(tmp_path: Path) -> None:
    with postgres.throwaway(SETTINGS) as primary:
        migrate(primary.url)
        login = add_editor(primary.url)
        with standby_of(primary) as standby, launched(standby.url, tmp_path / "log", {}) as server:
            async with client_of(server.address, login, timeout=5) as client:
                await _until_it_listens(client, server)
                answer = await client.get(f"{server.address}/readyz")
                assert (answer.status_code, "standby" in answer.text) == (503, True)
                assert (await client.get("/venues")).status_code == 200
                assert (await client.post("/venues", json={"venue": "No"})).status_code == 503
                with psycopg.connect(standby.url, autocommit=True) as connection:
                    assert connection.execute("SELECT pg_promote(true, 30)").fetchone() == (True,)
                assert (await client.get(f"{server.address}/readyz")).status_code == 200
                assert (await client.post("/venues", json={"venue": "Yes"})).status_code == 201


@pytest.mark.slow
@pytest.mark.parametrize("begins", ["read-only", "writable"])
def test_a_worker_runs_jobs_again_after_a_read_only_phase(
    database_url: str, writable: Switch, tmp_path: Path, begins: str
) -> None:
    add_editor(database_url)
    if begins == "read-only":
        writable.off()
    with Worker.start(database_url, tmp_path / "worker.log") as worker:
        if begins == "writable":
            _add_due_venue(database_url, 1)
            wait_until(lambda: _status(database_url, 1) == "publish", PATIENCE)
            writable.off()
            writable.end_sessions()
        wait_until(lambda: "begins again" in worker.log.read_text(), PATIENCE)
        writable.on()
        _add_due_venue(database_url, 2)
        wait_until(lambda: _status(database_url, 2) == "publish", PATIENCE)
        assert worker.is_running()


def _add_due_venue(database_url: str, venue_id: int) -> None:
    """A venue whose time has come; a periodic job publishes it."""
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO venues (site_id, id, revision, author_id, status, published_at, modified_utc, title, slug) "
            "VALUES (1, %s, %s, 1, 'future', now() - interval '1 minute', now(), 'Due', %s)",
            [venue_id, 1000 + venue_id, f"due-{venue_id}"],
        )


def _status(database_url: str, venue_id: int) -> str:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT status FROM venues WHERE id = %s", [venue_id]).fetchone()
    assert row is not None
    return str(row[0])


async def _until_it_listens(client: httpx.AsyncClient, server: Server) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            await client.get(f"{server.address}/healthz")
        except httpx.TransportError:
            await asyncio.sleep(0.1)
        else:
            return

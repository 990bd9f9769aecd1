"""Workers and PostgreSQL killed in the middle of writes: what was acknowledged is there, wholly and once."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import httpx

from kalends.store.migrations import migrate
from tests.robustness.consistency import audit
from tests.robustness.process_control import crash, kill_oldest_worker, start_again, workers_started
from tests.robustness.site_fixtures import add_editor, client_of, until
from tests.robustness.write_ledger import check, writers
from tests.servers import Server
from tests.soak import scaled
from tools import postgres


async def test_killed_worker_loses_no_acknowledged_write(
    database_url: str, tmp_path: Path, tell: Callable[[object], None]
) -> None:
    login = add_editor(database_url)
    with Server.start(database_url, log=tmp_path / "server.log", workers=2) as server:
        await until(lambda: workers_started(server) == 2, 60)
        async with client_of(server.address, login) as client, writers(client) as ledger:
            for killed in range(1, scaled(5, 50) + 1):
                acknowledged = len(ledger.acknowledged)
                await until(lambda: len(ledger.acknowledged) > acknowledged + 5, 60)  # noqa: B023
                kill_oldest_worker(server)
                await until(lambda: workers_started(server) == 2 + killed, 60)  # noqa: B023
        assert server.is_running()
    tell(ledger)
    assert not [answer for answer in ledger.answers if answer.startswith("5")], ledger
    check(ledger, database_url)
    audit(database_url)


async def test_killed_postgresql_loses_no_acknowledged_write(tmp_path: Path, tell: Callable[[object], None]) -> None:
    with postgres.throwaway(postgres.PERSISTENT) as cluster:
        migrate(cluster.url)
        login, running = add_editor(cluster.url), cluster
        with Server.start(cluster.url, log=tmp_path / "server.log") as server:
            async with client_of(server.address, login) as client, writers(client) as ledger:
                for _ in range(scaled(1, 20)):
                    acknowledged = len(ledger.acknowledged)
                    await until(lambda: len(ledger.acknowledged) > acknowledged + 10, 60)  # noqa: B023
                    crash(running)
                    await _is_away(client)
                    running = await asyncio.to_thread(start_again, running)
                acknowledged = len(ledger.acknowledged)
                await until(lambda: len(ledger.acknowledged) > acknowledged, 60)
                assert (await client.get(f"{server.address}/readyz")).status_code == 200
        tell(ledger)
        assert {answer[:3] for answer in ledger.answers} <= {"201", "409", "503"}, ledger
        assert ledger.without_retry_after == 0, ledger
        check(ledger, cluster.url)
        audit(cluster.url)


async def _is_away(client: httpx.AsyncClient) -> None:
    """While the database is away reads are refused politely, and the process is known to live."""
    root = str(client.base_url).partition("/api/")[0]
    read, ready, alive = [await client.get(url) for url in ("/events", f"{root}/readyz", f"{root}/healthz")]
    assert (read.status_code, read.json()["code"], ready.status_code) == (503, "rest_unavailable", 503)
    assert "retry-after" in read.headers
    assert alive.status_code == 200

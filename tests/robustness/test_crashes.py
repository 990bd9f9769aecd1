"""Workers and PostgreSQL killed in the middle of writes: what was acknowledged is there, wholly and once."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import httpx

from kalends.store.migrations import migrate
from tests.robustness.consistency import assert_consistent
from tests.robustness.process_control import count_started_workers, kill_cluster, kill_oldest_worker, restart_cluster
from tests.robustness.site_fixtures import add_editor, create_client, wait_until
from tests.robustness.write_ledger import assert_no_lost_writes, run_writers
from tests.servers import Server
from tests.soak import scaled
from tools import postgres


async def test_killed_worker_loses_no_acknowledged_write(
    database_url: str, tmp_path: Path, report: Callable[[object], None]
) -> None:
    login = add_editor(database_url)
    with Server.start(database_url, log=tmp_path / "server.log", workers=2) as server:
        await wait_until(lambda: count_started_workers(server) == 2, 60)
        async with create_client(server.base_url, login) as client, run_writers(client) as ledger:
            for killed in range(1, scaled(5, 50) + 1):
                acknowledged = len(ledger.acknowledged)
                await wait_until(lambda: len(ledger.acknowledged) > acknowledged + 5, 60)  # noqa: B023
                kill_oldest_worker(server)
                await wait_until(lambda: count_started_workers(server) == 2 + killed, 60)  # noqa: B023
        assert server.is_running()
    report(ledger)
    assert not [response for response in ledger.outcomes if response.startswith("5")], ledger
    assert_no_lost_writes(ledger, database_url)
    assert_consistent(database_url)


async def test_killed_postgresql_loses_no_acknowledged_write(
    tmp_path: Path, report: Callable[[object], None]
) -> None:
    with postgres.throwaway(postgres.PERSISTENT) as cluster:
        migrate(cluster.url)
        login, running = add_editor(cluster.url), cluster
        with Server.start(cluster.url, log=tmp_path / "server.log") as server:
            async with create_client(server.base_url, login) as client, run_writers(client) as ledger:
                for _ in range(scaled(1, 20)):
                    acknowledged = len(ledger.acknowledged)
                    await wait_until(lambda: len(ledger.acknowledged) > acknowledged + 10, 60)  # noqa: B023
                    kill_cluster(running)
                    await assert_unavailable(client)
                    running = await asyncio.to_thread(restart_cluster, running)
                acknowledged = len(ledger.acknowledged)
                await wait_until(lambda: len(ledger.acknowledged) > acknowledged, 60)
                assert (await client.get(f"{server.base_url}/readyz")).status_code == 200
        report(ledger)
        assert {response[:3] for response in ledger.outcomes} <= {"201", "409", "503"}, ledger
        assert ledger.without_retry_after == 0, ledger
        assert_no_lost_writes(ledger, cluster.url)
        assert_consistent(cluster.url)


async def assert_unavailable(client: httpx.AsyncClient) -> None:
    """While the database is away reads are refused politely, and the process is known to live."""
    root = str(client.base_url).partition("/api/")[0]
    read, ready, alive = [await client.get(url) for url in ("/events", f"{root}/readyz", f"{root}/healthz")]
    assert (read.status_code, read.json()["code"], ready.status_code) == (503, "rest_unavailable", 503)
    assert "retry-after" in read.headers
    assert alive.status_code == 200

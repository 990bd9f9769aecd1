"""The large run only: Patroni moves the primary while a writer and readers are at work, through two kinds of proxies.

HAProxy cuts the connections to a node that is no longer the primary. A plain TCP proxy does not: connections to a
node that was killed stay open and silent, and those to a node with another role go on.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psycopg
import pytest

from kalends.store.migrations import migrate
from tests.failover.conftest import ROUNDS
from tests.failover.patroni_cluster import SUPERUSER, Cluster, find_missing_programs
from tests.lifecycle.processes import Worker
from tests.robustness.consistency import assert_consistent
from tests.robustness.keeping_proxy import Address, KeepingProxy
from tests.robustness.site_fixtures import API_PATH, Login, add_editor, wait_until
from tests.robustness.write_ledger import WriteLedger, assert_no_lost_writes, run_writers
from tests.servers import Server
from tests.soak import SOAK

pytestmark = [
    pytest.mark.skipif(not SOAK, reason="runs with `just soak` only"),
    pytest.mark.skipif(bool(find_missing_programs()), reason="needs etcd, Patroni and HAProxy"),
]

TTL = 20
MAX_SWITCHOVER = 5.0
MAX_KILL = TTL + 5.0
MIN_ANSWERED = 0.999
READERS = 2
VENUE_INTERVAL = 1.0
START_TIMEOUT = 120


@dataclass
class Readers:
    """Public reads and their outcomes."""

    outcomes: Counter[int] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @property
    def answered(self) -> float:
        return self.outcomes[200] / max(self.outcomes.total(), 1)

    def __str__(self) -> str:
        return f"{self.outcomes.total()} reads, {self.answered:.4%} answered, {dict(self.outcomes)}"


@dataclass
class Stage:
    cluster: Cluster
    client: httpx.AsyncClient
    login: Login
    proxies: list[KeepingProxy]
    scheduled: list[int] = field(default_factory=list)


@asynccontextmanager
async def open_proxies(cluster: Cluster, kind: str) -> AsyncIterator[tuple[tuple[int, int], list[KeepingProxy]]]:
    """Return the ports of the primary and of the standby, and the plain proxies."""
    if kind == "haproxy":
        yield cluster.haproxy_ports, []
        return
    targets: dict[str, Address | None] = {"/primary": None, "/replica": None}

    async def follow() -> None:
        while True:
            for path in targets:
                targets[path] = await asyncio.to_thread(cluster.find, path)
            await asyncio.sleep(0.5)

    following = asyncio.create_task(follow())
    async with (
        KeepingProxy(lambda: targets["/primary"]) as primary,
        KeepingProxy(lambda: targets["/replica"]) as other,
    ):
        await wait_until(lambda: targets["/primary"] is not None, START_TIMEOUT)
        yield (primary.port, other.port), [primary, other]
    following.cancel()


@asynccontextmanager
async def run_stage(cluster: Cluster, kind: str, directory: Path) -> AsyncIterator[Stage]:
    """Run a server and a worker behind the proxies, and the one site of a new account."""
    login = await asyncio.to_thread(prepare_site, cluster)
    async with open_proxies(cluster, kind) as (ports, proxies):
        urls = [f"postgresql://{SUPERUSER}@127.0.0.1:{port}/kalends" for port in ports]
        settings = {"KALENDS_REPLICA_URL": urls[1], "KALENDS_MAX_CONNECTIONS_PER_CLIENT": "0"}
        logs = [directory / "server.log", directory / "worker.log"]
        started = await asyncio.to_thread(
            Server.start, urls[0], log=logs[0], environment=settings, timeout=START_TIMEOUT
        )
        with Worker.start(urls[0], logs[1], settings) as worker:
            try:
                async with httpx.AsyncClient(base_url=started.base_url, timeout=60, trust_env=False) as client:
                    yield Stage(cluster, client, login, proxies)
                assert (started.is_running(), worker.is_running()) == (True, True)
            finally:
                await asyncio.to_thread(started.stop)


def prepare_site(cluster: Cluster) -> Login:
    """Create the database again, so that each test counts its own records."""
    with psycopg.connect(cluster.superuser_url, dbname="postgres", autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS kalends WITH (FORCE)")
        connection.execute("CREATE DATABASE kalends")
    migrate(cluster.superuser_url)
    return add_editor(cluster.superuser_url)


@asynccontextmanager
async def run_readers(stage: Stage) -> AsyncIterator[Readers]:
    """Read pages and lists of the public, half of them at addresses that nobody has asked for before."""
    readers, stop = Readers(), asyncio.Event()

    async def read(number: int) -> None:
        count = 0
        while not stop.is_set():
            count += 1
            start = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=count)
            day = start.strftime("%Y-%m-%d %H:%M:%S")
            paths = ("/events/list/", f"{API_PATH}/events?start_date={day}", "/events.ics", f"{API_PATH}/venues")
            path = paths[(count + number) % len(paths)]
            try:
                response = await stage.client.get(path, timeout=10)
                readers.outcomes[response.status_code] += 1
                if response.status_code != 200:
                    readers.failures.append(
                        f"{time.strftime('%X')} {path} {response.status_code} {response.text[:80]}"
                    )
            except httpx.TransportError as error:
                readers.outcomes[0] += 1
                readers.failures.append(f"{time.strftime('%X')} {path} {error!r}")
            await asyncio.sleep(0.1)

    tasks = [asyncio.create_task(read(number)) for number in range(READERS)]
    try:
        yield readers
    finally:
        stop.set()
        await asyncio.gather(*tasks)


@asynccontextmanager
async def run_scheduler(stage: Stage) -> AsyncIterator[None]:
    """Create venues that the worker publishes a few seconds later."""

    async def schedule() -> None:
        count = 0
        while True:
            count += 1
            due = datetime.now(UTC) + timedelta(seconds=4)
            body = {"venue": f"Scheduled {count}", "date_utc": due.strftime("%Y-%m-%d %H:%M:%S")}
            headers = {"Idempotency-Key": f"scheduled-{count}"}
            with suppress(httpx.TransportError):
                response = await stage.client.post(f"{API_PATH}/venues", json=body, headers=headers, auth=stage.login)
                if response.status_code == 201:
                    stage.scheduled.append(response.json()["id"])
            await asyncio.sleep(VENUE_INTERVAL)

    task = asyncio.create_task(schedule())
    try:
        yield
    finally:
        task.cancel()


async def fail_over(stage: Stage, event: str, ledger: WriteLedger) -> float:
    """Move the primary, wait until all is as before, and return the seconds without an acknowledged write."""
    ledger.longest_gap = 0.0
    before = len(ledger.acknowledged)
    leader = await asyncio.to_thread(lambda: stage.cluster.leader)
    for proxy in stage.proxies:
        # From a machine that is gone nobody hears anything. A server that is demoted ends its sessions.
        proxy.forwards_close = event == "switchover"
    if event == "switchover":
        await asyncio.to_thread(stage.cluster.switch_over)
    else:
        await asyncio.to_thread(leader.kill)
    await wait_until(lambda: len(ledger.acknowledged) > before + 20, START_TIMEOUT)
    if event == "kill":
        leader.start()
    await asyncio.to_thread(stage.cluster.wait_until_synchronous)
    await asyncio.sleep(3)
    return ledger.longest_gap


def find_unpublished(stage: Stage) -> list[int]:
    with psycopg.connect(stage.cluster.superuser_url) as connection:
        rows = connection.execute(
            "SELECT id FROM venues WHERE id = ANY(%s) AND status <> 'publish'", [stage.scheduled]
        ).fetchall()
    return [row[0] for row in rows]


def count_publications(stage: Stage) -> Counter[int]:
    """Return how often each scheduled venue was published, by the change log."""
    with psycopg.connect(stage.cluster.superuser_url) as connection:
        rows = connection.execute(
            "SELECT record_id FROM changes WHERE kind = 'venues' AND record_id = ANY(%s) "
            "AND before ->> 'status' = 'future' AND after ->> 'status' = 'publish'",
            [stage.scheduled],
        ).fetchall()
    return Counter(row[0] for row in rows)


@pytest.mark.parametrize("event", ["switchover", "kill"])
@pytest.mark.parametrize("kind", ["haproxy", "plain"])
async def test_nothing_is_lost_and_public_reads_go_on(
    cluster: Cluster, tmp_path: Path, kind: str, event: str, report: Callable[[object], None]
) -> None:
    async with run_stage(cluster, kind, tmp_path) as stage:
        writer = httpx.AsyncClient(
            base_url=stage.client.base_url.join(API_PATH), auth=stage.login, timeout=60, trust_env=False
        )
        gaps: list[float] = []
        async with writer, run_readers(stage) as readers, run_scheduler(stage), run_writers(writer, 3) as ledger:
            await wait_until(lambda: len(ledger.acknowledged) > 20, START_TIMEOUT)
            for _ in range(ROUNDS):
                gaps.append(await fail_over(stage, event, ledger))
        deadline = time.monotonic() + 120
        while await asyncio.to_thread(find_unpublished, stage):
            assert time.monotonic() < deadline, "scheduled records are not published"
            await asyncio.sleep(0.5)
    publications = count_publications(stage)
    paused = ", ".join(f"{gap:.1f}" for gap in gaps)
    report(
        f"{kind}, {ROUNDS} x {event}: writes paused {paused} s; {ledger}; {readers}; "
        f"{len(stage.scheduled)} jobs, {publications.total()} publications; {readers.failures[:5]}"
    )
    assert not [outcome for outcome in ledger.outcomes if outcome.startswith("500")]
    assert readers.outcomes[500] == 0
    assert_consistent(cluster.superuser_url)
    assert publications == Counter(stage.scheduled)
    assert readers.answered >= MIN_ANSWERED
    assert max(gaps) <= (MAX_SWITCHOVER if event == "switchover" else MAX_KILL)
    assert_no_lost_writes(ledger, cluster.superuser_url)

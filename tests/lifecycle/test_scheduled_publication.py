"""A scheduled record is published exactly once, never early and never not, whoever is killed meanwhile."""

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import httpx
import psycopg
import pytest
from psycopg.rows import dict_row

from kalends.store.migrations import migrate
from tests.api.running_app import API_PATH, User, add_users, expect_json
from tests.api.sample_records import DATES
from tests.conftest import replace_database
from tests.lifecycle.conftest import UserDatabase
from tests.lifecycle.lifecycle_fixtures import EXTENSION_PATH, report
from tests.lifecycle.processes import Worker, kill_postgres, wait_until
from tests.servers import Server, find_free_port, make_environment
from tests.soak import SOAK, scaled
from tools import postgres

# Committed changes survive the end of all processes; only a power failure may lose them.
DURABLE_SETTINGS = {**postgres.THROWAWAY, "synchronous_commit": "on", "track_commit_timestamp": "on"}
RECORDS = scaled(40, 400)
DUE_SECONDS = scaled(8, 60)  # seconds over which they are due
LEAD_SECONDS = scaled(8, 25)  # seconds before the first is due, in which all are made
TITLE_PARAMS = {"events": "title", "venues": "venue", "organizers": "organizer"}


@dataclass(frozen=True)
class Publication:
    kind: str
    id: int
    due: datetime
    published_at: datetime
    committed_at: datetime  # when it was committed

    @property
    def delay(self) -> float:
        return (self.committed_at - self.due).total_seconds()


class DurableSite:
    """Start a separate PostgreSQL with users, which the test can kill."""

    def __init__(self, cluster: postgres.Server) -> None:
        self.cluster = cluster
        self.url = replace_database(cluster.url, "kalends")
        migrate(self.url)
        self.users: dict[str, User] = asyncio.run(add_users(self.url))

    def crash(self) -> None:
        kill_postgres(self.cluster)
        self.cluster = postgres.start(self.cluster.directory, port=self.cluster.port, settings=DURABLE_SETTINGS)

    def rows(self, text: str, *values: object) -> list[dict[str, Any]]:
        with psycopg.connect(self.url, row_factory=dict_row) as connection:
            cursor = connection.execute(text, values)
            return cursor.fetchall() if cursor.description else []

    def count_due(self) -> int:
        """How many scheduled records are due within the hour."""
        soon = "SELECT count(*) FROM {} WHERE status = 'future' AND published_at < now() + interval '1 hour'"
        return sum(self.rows(soon.format(kind))[0]["count"] for kind in TITLE_PARAMS)

    def list_publications(self) -> list[Publication]:
        """Every step from scheduled to published that the log knows."""
        rows = self.rows(
            """
            SELECT c.kind, c.record_id, c.changed_at, pg_xact_commit_timestamp(c.xmin) AS seen, r.published_at
            FROM changes c JOIN (
                SELECT 'events' AS kind, id, published_at FROM events
                UNION ALL SELECT 'venues', id, published_at FROM venues
                UNION ALL SELECT 'organizers', id, published_at FROM organizers
            ) r ON r.kind = c.kind AND r.id = c.record_id
            WHERE c.before ->> 'status' = 'future' AND c.after ->> 'status' = 'publish' ORDER BY c.revision
            """
        )
        return [Publication(r["kind"], r["record_id"], r["published_at"], r["changed_at"], r["seen"]) for r in rows]


@pytest.fixture
def site() -> Iterator[DurableSite]:
    with postgres.throwaway(DURABLE_SETTINGS) as cluster:
        yield DurableSite(cluster)


class Scheduler:
    """Creates records that are due a number of seconds after its start."""

    def __init__(self, client: httpx.Client) -> None:
        self.client, self.start = client, datetime.now(UTC).replace(microsecond=0)
        self.rng = Random(4)

    def date_after(self, seconds: int) -> dict[str, str]:
        return {"date_utc": (self.start + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S")}

    def schedule(self, seconds: int) -> tuple[str, int]:
        kind = self.rng.choice(list(TITLE_PARAMS))
        body = {
            TITLE_PARAMS[kind]: f"Due after {seconds}",
            **self.date_after(seconds),
            **(DATES if kind == "events" else {}),
        }
        record = expect_json(self.client.post(f"{API_PATH}/{kind}", json=body), 201)
        assert record["status"] == "future"
        return kind, record["id"]

    def change(self, record: tuple[str, int], **body: object) -> dict[str, Any]:
        return expect_json(self.client.patch(f"{API_PATH}/{record[0]}/{record[1]}", json=body))

    def wait_for(self, seconds: float) -> None:
        time.sleep(max(0.0, self.start.timestamp() + seconds - time.time()))


def test_records_are_published_once_despite_kills(
    site: DurableSite, start_server: Callable[..., Server], tmp_path: Path
) -> None:
    server = start_server(site.url)
    user = site.users["editor"]
    with ExitStack() as running:
        workers = [running.enter_context(Worker.start(site.url, tmp_path / f"worker-{n}.log")) for n in range(2)]
        scheduler = Scheduler(running.enter_context(server.client(login=user.login, password=user.password)))
        middle = LEAD_SECONDS + DUE_SECONDS // 3
        plain = [scheduler.schedule(LEAD_SECONDS + n * DUE_SECONDS // RECORDS) for n in range(RECORDS)]
        # A crowd that is due just when a worker is killed, and one that is due while the database is away.
        crowd = [scheduler.schedule(second) for second in (middle, middle + 2) for _ in range(scaled(8, 60))]
        later, earlier = scheduler.schedule(LEAD_SECONDS), scheduler.schedule(1000)
        drafted, trashed, returned = (scheduler.schedule(LEAD_SECONDS + 1) for _ in range(3))
        hurried = scheduler.schedule(1000)
        scheduler.change(later, **scheduler.date_after(LEAD_SECONDS + DUE_SECONDS))
        scheduler.change(earlier, **scheduler.date_after(LEAD_SECONDS + 1))
        scheduler.change(drafted, status="draft")
        scheduler.change(trashed, status="trash")
        scheduler.change(returned, status="trash")
        expect_json(scheduler.client.post(f"{EXTENSION_PATH}/{returned[0]}/{returned[1]}/restore"))
        assert scheduler.change(hurried, **scheduler.date_after(-60))["status"] == "publish"
        assert time.time() < scheduler.start.timestamp() + LEAD_SECONDS, "the machine was too slow for this test"

        scheduler.wait_for(middle + 0.15)
        workers[0].kill()
        scheduler.wait_for(middle + 1.5)
        site.crash()
        scheduler.wait_for(LEAD_SECONDS + DUE_SECONDS)
        # The remaining worker survives the restart of the database and continues alone.
        wait_until(lambda: site.count_due() == 0 or not workers[1].is_running(), 90, 0.5)
        assert workers[1].is_running(), workers[1].log.read_text()[-3000:]

        published = site.list_publications()
        expected = [*plain, *crowd, later, earlier, returned, hurried]
        assert Counter((p.kind, p.id) for p in published) == Counter(expected)
        early = [p for p in published if p.published_at < p.due or p.committed_at < p.due]
        assert early == []
        _report_delays([p.delay for p in published if (p.kind, p.id) != hurried])
        for kind, record_id in (drafted, trashed):
            rows = site.rows(f"SELECT status FROM {kind} WHERE id = %s", record_id)
            assert rows == [{"status": "draft" if (kind, record_id) == drafted else "trash"}]
        if SOAK:
            # The jobs that the killed worker held are begun again by another, and find nothing to do. Those of
            # dates that were changed are due later.
            due = "SELECT id FROM procrastinate_jobs WHERE task_name = 'publish' AND scheduled_at < now()"
            wait_until(lambda: not site.rows(due), 90, 1)


def _report_delays(delays: list[float]) -> None:
    sorted_delays = sorted(delays)
    delay_by_percentile = {
        name: sorted_delays[int(len(sorted_delays) * part)]
        for name, part in (("half", 0.5), ("90 %", 0.9), ("99 %", 0.99))
    }
    percentiles = ", ".join(f"{name} within {seconds:.1f} s" for name, seconds in delay_by_percentile.items())
    report(f"{len(sorted_delays)} records published: {percentiles}, the last after {sorted_delays[-1]:.1f} s")


def test_server_with_worker_publishes_and_leaves_no_process(user_database: UserDatabase, tmp_path: Path) -> None:
    port, log = find_free_port(), tmp_path / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "kalends", "serve", "--with-worker", "--port", str(port)],
            env=make_environment(user_database.url),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    server = Server(process, f"http://127.0.0.1:{port}", log)
    try:
        server._wait_until_ready(30)
        user = user_database.users["author"]
        with server.client(login=user.login, password=user.password) as client:
            scheduler = Scheduler(client)
            kind, record_id = scheduler.schedule(3)
            scheduler.wait_for(3)
            wait_until(lambda: _read_status(client, kind, record_id) == "publish", 60, 0.3)
        server.stop()
        assert _processes_in_group(process.pid) == []
    finally:
        server.kill()


def _read_status(client: httpx.Client, kind: str, record_id: int) -> str:
    status: str = expect_json(client.get(f"{API_PATH}/{kind}/{record_id}"))["status"]
    return status


def _processes_in_group(group: int) -> list[int]:
    pids = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.getpgid(int(entry.name)) == group:
                pids.append(int(entry.name))
        except ProcessLookupError:
            continue
    return pids

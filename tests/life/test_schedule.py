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
from tests.api.interface import NAMESPACE, Person, add_people, done
from tests.api.samples import DATES
from tests.conftest import address
from tests.life.conftest import Place
from tests.life.kit import EXTENSION_PATH, tell
from tests.life.processes import Worker, kill_postgres, wait_until
from tests.servers import Server, find_free_port, make_environment
from tests.soak import SOAK, scaled
from tools import postgres

# What is committed survives the death of all processes; only a power cut may lose it.
SAFE = {**postgres.THROWAWAY, "synchronous_commit": "on", "track_commit_timestamp": "on"}
RECORDS = scaled(40, 400)
SPREAD = scaled(12, 60)  # seconds over which they are due
LEAD = scaled(8, 25)  # seconds before the first is due, in which all are made
NAMES = {"events": "title", "venues": "venue", "organizers": "organizer"}


@dataclass(frozen=True)
class Published:
    kind: str
    id: int
    due: datetime
    at: datetime
    seen: datetime  # when it was committed

    @property
    def late(self) -> float:
        return (self.seen - self.due).total_seconds()


class Site:
    """A PostgreSQL of its own, which can be killed, with people."""

    def __init__(self, cluster: postgres.Server) -> None:
        self.cluster = cluster
        self.url = address(cluster.url, "kalends")
        migrate(self.url)
        self.people: dict[str, Person] = asyncio.run(add_people(self.url))

    def crash(self) -> None:
        kill_postgres(self.cluster)
        self.cluster = postgres.start(self.cluster.directory, port=self.cluster.port, settings=SAFE)

    def rows(self, text: str, *values: object) -> list[dict[str, Any]]:
        with psycopg.connect(self.url, row_factory=dict_row) as connection:
            cursor = connection.execute(text, values)
            return cursor.fetchall() if cursor.description else []

    def waiting(self) -> int:
        """How many scheduled records are due within the hour."""
        soon = "SELECT count(*) FROM {} WHERE status = 'future' AND published_at < now() + interval '1 hour'"
        return sum(self.rows(soon.format(kind))[0]["count"] for kind in NAMES)

    def published(self) -> list[Published]:
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
        return [Published(r["kind"], r["record_id"], r["published_at"], r["changed_at"], r["seen"]) for r in rows]


@pytest.fixture
def site() -> Iterator[Site]:
    with postgres.throwaway(SAFE) as cluster:
        yield Site(cluster)


class Scheduler:
    """Makes records that are due after so many seconds from its beginning."""

    def __init__(self, client: httpx.Client) -> None:
        self.client, self.begin = client, datetime.now(UTC).replace(microsecond=0)
        self.chance = Random(4)

    def at(self, seconds: int) -> dict[str, str]:
        return {"date_utc": (self.begin + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S")}

    def make(self, seconds: int) -> tuple[str, int]:
        kind = self.chance.choice(list(NAMES))
        body = {NAMES[kind]: f"Due after {seconds}", **self.at(seconds), **(DATES if kind == "events" else {})}
        made = done(self.client.post(f"{NAMESPACE}/{kind}", json=body), 201)
        assert made["status"] == "future"
        return kind, made["id"]

    def change(self, record: tuple[str, int], **body: object) -> dict[str, Any]:
        return done(self.client.patch(f"{NAMESPACE}/{record[0]}/{record[1]}", json=body))

    def wait_for(self, seconds: float) -> None:
        time.sleep(max(0.0, self.begin.timestamp() + seconds - time.time()))


@pytest.mark.slow
def test_each_is_published_once_though_workers_and_postgresql_are_killed(
    site: Site, start_server: Callable[..., Server], tmp_path: Path
) -> None:
    server = start_server(site.url)
    person = site.people["editor"]
    with ExitStack() as running:
        workers = [running.enter_context(Worker.start(site.url, tmp_path / f"worker-{n}.log")) for n in range(2)]
        scheduler = Scheduler(running.enter_context(server.client(login=person.login, password=person.password)))
        middle = LEAD + SPREAD // 3
        plain = [scheduler.make(LEAD + n * SPREAD // RECORDS) for n in range(RECORDS)]
        # A crowd that is due just when a worker is killed, and one that is due while the database is away.
        crowd = [scheduler.make(second) for second in (middle, middle + 2) for _ in range(scaled(8, 60))]
        later, earlier = scheduler.make(LEAD), scheduler.make(1000)
        drafted, trashed, returned = (scheduler.make(LEAD + 1) for _ in range(3))
        hurried = scheduler.make(1000)
        scheduler.change(later, **scheduler.at(LEAD + SPREAD))
        scheduler.change(earlier, **scheduler.at(LEAD + 1))
        scheduler.change(drafted, status="draft")
        scheduler.change(trashed, status="trash")
        scheduler.change(returned, status="trash")
        done(scheduler.client.post(f"{EXTENSION_PATH}/{returned[0]}/{returned[1]}/restore"))
        assert scheduler.change(hurried, **scheduler.at(-60))["status"] == "publish"
        assert time.time() < scheduler.begin.timestamp() + LEAD, "the machine was too slow for this test"

        scheduler.wait_for(middle + 0.15)
        workers[0].kill()
        scheduler.wait_for(middle + 1.5)
        site.crash()
        scheduler.wait_for(LEAD + SPREAD)
        # The worker that is left outlives the database and goes on alone.
        wait_until(lambda: site.waiting() == 0 or not workers[1].is_running(), 90, 0.5)
        assert workers[1].is_running(), workers[1].log.read_text()[-3000:]

        published = site.published()
        expected = [*plain, *crowd, later, earlier, returned, hurried]
        assert Counter((p.kind, p.id) for p in published) == Counter(expected)
        early = [p for p in published if p.at < p.due or p.seen < p.due]
        assert early == []
        _tell([p.late for p in published if (p.kind, p.id) != hurried])
        for kind, record_id in (drafted, trashed):
            shown = site.rows(f"SELECT status FROM {kind} WHERE id = %s", record_id)
            assert shown == [{"status": "draft" if (kind, record_id) == drafted else "trash"}]
        if SOAK:
            # The jobs that the killed worker held are begun again by another, and find nothing to do. Those of
            # dates that were changed are due later.
            due = "SELECT id FROM procrastinate_jobs WHERE task_name = 'publish' AND scheduled_at < now()"
            wait_until(lambda: not site.rows(due), 90, 1)


def _tell(late: list[float]) -> None:
    ordered = sorted(late)
    share = {name: ordered[int(len(ordered) * part)] for name, part in (("half", 0.5), ("90 %", 0.9), ("99 %", 0.99))}
    told = ", ".join(f"{name} within {seconds:.1f} s" for name, seconds in share.items())
    tell(f"{len(ordered)} records published: {told}, the last after {ordered[-1]:.1f} s")


@pytest.mark.slow
def test_a_server_with_worker_publishes_and_leaves_no_process_behind(place: Place, tmp_path: Path) -> None:
    port, log = find_free_port(), tmp_path / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "kalends", "serve", "--with-worker", "--port", str(port)],
            env=make_environment(place.url),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    server = Server(process, f"http://127.0.0.1:{port}", log)
    try:
        server._wait_until_ready(30)
        person = place.people["author"]
        with server.client(login=person.login, password=person.password) as client:
            scheduler = Scheduler(client)
            kind, record_id = scheduler.make(3)
            scheduler.wait_for(3)
            wait_until(lambda: _status(client, kind, record_id) == "publish", 60, 0.3)
        server.stop()
        assert _alive_in_group(process.pid) == []
    finally:
        server.kill()


def _status(client: httpx.Client, kind: str, record_id: int) -> str:
    status: str = done(client.get(f"{NAMESPACE}/{kind}/{record_id}"))["status"]
    return status


def _alive_in_group(group: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.getpgid(int(entry.name)) == group:
                found.append(int(entry.name))
        except ProcessLookupError:
            continue
    return found

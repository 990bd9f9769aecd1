"""CPU of edits of series, of new series, of undo, of the nightly job and of previews, with their limits.

`just bench-series` builds a site of 20,000 events; `--quick` one of 2,000, `--events N` another one. CPU time
includes the server and its database sessions; the lock of the site is held for most of the
elapsed time. The exit code is 1 if a limit is exceeded.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import httpx
import psycopg
from rich.console import Console
from rich.table import Table

from bench.cpu_time import APPLICATION_NAME, cpu_seconds, list_process_tree, list_session_pids
from bench.scaling import SETTINGS
from bench.sized_sites import make_site
from kalends.series.jobs import SERIES_PER_BATCH, extend_batch
from kalends.series.operations.series_matching import compute_horizon
from kalends.store.database import Database, Options
from tests.robustness.site_fixtures import add_users
from tests.servers import Server
from tools import postgres

TOMORROW = datetime.now(UTC).replace(microsecond=0, tzinfo=None) + timedelta(days=1)
DESCRIPTION = "<p>Songs of the river and of those who live on it.</p>" * 7
LIMITS = {
    "all: title, 500 dates": 300,
    "all: description, 500 dates": 300,
    "all: time, 500 dates": 300,
    "all: venue, 500 dates": 300,
    "all: tags, 500 dates": 300,
    "undo, 500 dates": 300,
    "new series, 109 dates": 150,
    "following, new rule, 109 dates": 200,
    "new series, 480 dates, 1 a day": 600,
    "new series, 480 dates, 4 a day": 600,
    "new series, 480 dates, 15 a day": 600,
    "preview": 10,
    "horizon, per event": 1,
}
# How much more CPU time a series with several dates a day may need than one with as many days as dates.
MAX_RATIO = 1.3
DATES_PER_DAY = (1, 4, 15)


@dataclass
class Times:
    cpu: list[float] = field(default_factory=list[float])
    elapsed: list[float] = field(default_factory=list[float])


class Bench:
    def __init__(self, server: Server, url: str, login: tuple[str, str]) -> None:
        self.server, self.url = server, url
        self.client = httpx.Client(base_url=f"{server.base_url}/api/kalends/v1", auth=login, timeout=60)
        self.times: dict[str, Times] = {name: Times() for name in LIMITS}
        self.number = 0

    def request(self, method: str, path: str, body: Any = None) -> Any:
        response = self.client.request(method, path, json=body)
        if response.is_error:
            raise AssertionError(f"{method} {path}: {response.status_code} {response.text[:500]}")
        return response.json()

    @contextmanager
    def measured(self, name: str, divisor: float = 1) -> Iterator[None]:
        pids = [*list_process_tree(self.server.process.pid), *list_session_pids(self.url)]
        before, started = sum(map(cpu_seconds, pids)), perf_counter()
        yield
        self.times[name].elapsed.append(1000 * (perf_counter() - started))
        self.times[name].cpu.append(1000 * (sum(map(cpu_seconds, pids)) - before) / divisor)

    def create(self, rule: str | None, **fields: object) -> Any:
        self.number += 1
        body = {
            "title": f"Choir {self.number}",
            "description": DESCRIPTION,
            "start_date": f"{TOMORROW:%Y-%m-%d} 19:30:00",
            "end_date": f"{TOMORROW:%Y-%m-%d} 21:00:00",
            "timezone": "Europe/Berlin",
            "rule": rule,
            "tags": ["choir"],
            **fields,
        }
        return self.request("POST", "/series", body)

    def run_edits(self, count: int) -> None:
        """Change all 500 dates of a series, field by field, and undo the last edit."""
        series = self.create(f"FREQ=DAILY;COUNT={count}")
        path = f"/series/{series['id']}"
        venue = self.request("POST", f"{self.server.base_url}/api/calendar/events/v1/venues", {"venue": "Hall"})["id"]
        edits: dict[str, dict[str, Any]] = {
            "all: title, 500 dates": {"title": f"New choir {self.number}"},
            "all: description, 500 dates": {"description": DESCRIPTION + str(self.number)},
            "all: time, 500 dates": {"start_date": "20:00", "end_date": "21:30"},
            "all: venue, 500 dates": {"venue": [venue]},
            "all: tags, 500 dates": {"tags": ["choir", "song"]},
        }
        for name, body in edits.items():
            with self.measured(name):
                summary = self.request("PATCH", path, body)
            if summary["changed"] != count:
                raise AssertionError(f"{name}: {summary['changed']} dates changed")
        history = self.client.get(f"{path}/history")
        if history.is_success:
            revision = history.json()["history"][1]["revision"]
            with self.measured("undo, 500 dates"):
                self.request("POST", f"{path}/restore", {"revision": revision})

    def run_several_a_day(self) -> None:
        """Create series of 480 dates that differ in the number of dates a day, in turn."""
        first = datetime.combine(TOMORROW.date(), time(8))
        for per_day in DATES_PER_DAY:
            starts = [first + timedelta(days=n // per_day, minutes=30 * (n % per_day)) for n in range(480)]
            fields = {"start_date": f"{first}", "end_date": f"{first + timedelta(minutes=20)}"}
            with self.measured(f"new series, 480 dates, {per_day} a day"):
                self.create(None, add_dates=[f"{start}" for start in starts[1:]], **fields)

    def run_others(self) -> None:
        weekday = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
        with self.measured("new series, 109 dates"):
            series = self.create("FREQ=WEEKLY")
        if series["total"] not in (108, 109, 110):
            raise AssertionError(f"{series['total']} dates")
        other = weekday[(TOMORROW.weekday() + 1) % 7]
        with self.measured("following, new rule, 109 dates"):
            body = {"rule": f"FREQ=WEEKLY;BYDAY={other}"}
            self.request("PATCH", f"/series/{series['id']}?scope=following&from={TOMORROW:%Y-%m-%d}", body)
        preview = {"start_date": f"{TOMORROW:%Y-%m-%d} 19:30:00", "rule": "FREQ=WEEKLY"}
        if self.client.post("/series/preview", json=preview).is_success:
            with self.measured("preview", 20):
                for _ in range(20):
                    self.request("POST", "/series/preview", preview)


def run_horizon(bench: Bench, copies: int) -> None:
    """Extend copies of a weekly series by a block each, as the worker does."""
    series = bench.create("FREQ=WEEKLY")
    ids = _copy_series(bench.url, series["id"], copies)
    cpu, lock, created = asyncio.run(_extend(bench.url, ids))
    bench.times["horizon, per event"].cpu.append(1000 * cpu / created)
    bench.times["horizon, per event"].elapsed.append(1000 * lock)


async def _extend(url: str, ids: list[int]) -> tuple[float, float, int]:
    """Return the CPU seconds of all batches, the longest elapsed time of one, and the number of new events."""
    database = await Database.open(Options(url=url, size=1))
    batches = [ids[first : first + SERIES_PER_BATCH] for first in range(0, len(ids), SERIES_PER_BATCH)]
    used, longest, created = 0.0, 0.0, 0
    now = datetime.now(UTC)
    try:
        async with database.transaction(1, now, writing=True) as tx:
            await extend_batch(tx, batches[0])
        for batch in batches[1:]:
            sessions = list_session_pids(url)
            before, started = process_time() + sum(map(cpu_seconds, sessions)), perf_counter()
            async with database.transaction(1, now, writing=True) as tx:
                created += await extend_batch(tx, batch)
            longest = max(longest, perf_counter() - started)
            used += process_time() + sum(map(cpu_seconds, sessions)) - before
    finally:
        await database.close()
    return used, longest, created


def _copy_series(url: str, series_id: int, copies: int) -> list[int]:
    """Add copies of a series that lack the last block of their dates, with all that is needed for the job."""
    with psycopg.connect(url, autocommit=True, application_name=APPLICATION_NAME) as connection:
        until = compute_horizon(datetime.now(UTC), datetime.now(UTC)) - timedelta(days=20)
        row = connection.execute(
            "UPDATE sites SET last_post_id = last_post_id + %(n)s, revision = revision + %(n)s WHERE id = 1 "
            "RETURNING last_post_id - %(n)s, revision - %(n)s",
            {"n": copies},
        ).fetchone()
        if row is None:
            raise AssertionError("no site")
        connection.execute(
            """INSERT INTO series (site_id, id, uid, revision, author_id, status, slug, published_at, modified_utc,
                   parts, template, title, created_until)
               SELECT site_id, %(post)s + n, gen_random_uuid(), %(revision)s + n, author_id, status, slug || '-' || n,
                   published_at, modified_utc, parts, template, title, %(until)s
               FROM series, generate_series(1, %(n)s) n WHERE id = %(id)s""",
            {"post": row[0], "revision": row[1], "n": copies, "id": series_id, "until": until},
        )
    return [row[0] + n for n in range(1, copies + 1)]


def main() -> int:
    arguments = _read_arguments()
    with ExitStack() as stack:
        directory = arguments.directory.absolute() / "postgres"
        cluster = postgres.find_running(directory)
        if cluster is None:
            cluster = postgres.start(directory, settings=SETTINGS)
            stack.callback(cluster.stop)
        site = make_site(cluster.url, arguments.events, max(arguments.events // 20, 400))
        login = add_users(site.url, {f"ed{perf_counter()}": "editor"}).popitem()[1]
        environment = {"KALENDS_POOL_SIZE": "1", "KALENDS_STATEMENT_TIMEOUT": "120"}
        server = Server.start(site.url, log=arguments.directory / "series.log", environment=environment)
        bench = Bench(stack.enter_context(server), site.url, login)
        steps: list[Callable[[], None]] = [lambda: bench.run_edits(500), bench.run_several_a_day, bench.run_others]
        for number in range(arguments.rounds + 1):
            for step in steps:
                step()
            run_horizon(bench, arguments.series)
            if number == 0:  # The first round warms up.
                bench.times = {name: Times() for name in LIMITS}
    return _report(bench.times, arguments.events)


def _report(times: dict[str, Times], events: int) -> int:
    table = Table(title=f"series in a site of {events:,} events: milliseconds")
    for heading in ("", "CPU, lowest", "CPU, median", "limit", "elapsed, lowest"):
        table.add_column(heading, justify="right")
    is_exceeded = False
    for name, limit in LIMITS.items():
        if not times[name].cpu:
            table.add_row(name, "not measured", "", str(limit), "")
            continue
        is_exceeded |= median(times[name].cpu) > limit
        values = min(times[name].cpu), median(times[name].cpu), min(times[name].elapsed)
        table.add_row(name, f"{values[0]:.1f}", f"{values[1]:.1f}", str(limit), f"{values[2]:.0f}")
    Console(width=120).print(table)
    usual, *several = (median(times[f"new series, 480 dates, {n} a day"].cpu) for n in DATES_PER_DAY)
    ratio = max(several) / usual
    Console(width=120).print(f"several dates a day compared with one: {ratio:.2f} (limit {MAX_RATIO})")
    return int(is_exceeded or ratio > MAX_RATIO)


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--series", type=int, default=200, help="series that the nightly job extends")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="2,000 events, 3 rounds")
    parser.add_argument("--directory", type=Path, default=Path(".local/growth"))
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.events, arguments.rounds = 2_000, 3
    return arguments


if __name__ == "__main__":
    sys.exit(main())

"""Busy sites: the throughput of cached reads while the site is being written.

wrk reads 500 URLs at random (300 single events, 40 pages of the default list, 30 lists of a category, 60 of a venue,
12 months, 58 days) with 16 connections, in turn without writes and at each rate of writes. The writes of a run are of
one kind: `text` changes excerpts, `mixed` also moves, relinks, creates and trashes events.
The exit code is 1 if the throughput of a rate is below its share of the throughput without writes, or if p99 is
above its limit.
"""

import argparse
import itertools
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import httpx
import psycopg
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.load import Processes, Sample, run_wrk
from bench.seeded_sites import NS, SeededSite, find_cluster, make_site, start_server

CONNECTIONS = 16
# The least share of the throughput without writes, by writes per second and kind of write.
FLOORS = {("text", 0.5): 0.9, ("text", 5.0): 0.7, ("text", 20.0): 0.4, ("mixed", 5.0): 0.4}
MAX_P99_RATIO = 3.0
# Shares of a mixed run: texts, dates and links, new and trashed events.
MIXED_WEIGHTS = (70, 15, 15)
MIX_SCRIPT = """
local paths = {}
for line in io.lines("%s") do table.insert(paths, line) end
math.randomseed(os.time())
request = function() return wrk.format("GET", paths[math.random(#paths)]) end
"""


@dataclass(frozen=True)
class Load:
    """A kind of write and its rate."""

    kind: str
    rate: float

    @property
    def name(self) -> str:
        return f"{self.rate:g} {self.kind}"


# The runs without writes (None) and with each load.
type Samples = dict[Load | None, list[Sample]]

LOADS = (Load("text", 0.5), Load("text", 5), Load("text", 20), Load("mixed", 5))


@dataclass
class Writer:
    """Writes events of a site at a fixed rate, in a thread."""

    client: httpx.Client
    event_ids: Sequence[int]
    venue_ids: Sequence[int]
    choices: random.Random = field(default_factory=lambda: random.Random(7))  # noqa: S311  Not a secret.
    created: list[int] = field(default_factory=list[int])
    acknowledged: int = 0

    def run(self, load: Load, stop: threading.Event) -> None:
        started = time.monotonic()
        for number in itertools.count(1):
            if stop.wait(max(0.0, started + number / load.rate - time.monotonic())):
                return
            self.write(load.kind)

    def write(self, kind: str) -> None:
        works: tuple[Callable[[], httpx.Response], ...] = (self._edit_text, self._move, self._create_or_trash)
        work = self.choices.choices(works, MIXED_WEIGHTS)[0] if kind == "mixed" else self._edit_text
        work().raise_for_status()
        self.acknowledged += 1

    def _edit_text(self) -> httpx.Response:
        return self._patch({"excerpt": f"Edited {time.time_ns()}"})

    def _move(self) -> httpx.Response:
        if self.choices.random() < 0.5:
            return self._patch({"venue": self.choices.choice(self.venue_ids)})
        start = datetime.now(UTC) + timedelta(days=self.choices.randint(1, 300))
        return self._patch({"start_date": f"{start:%F %T}", "end_date": f"{start + timedelta(hours=2):%F %T}"})

    def _create_or_trash(self) -> httpx.Response:
        if self.created:
            return self.client.delete(f"/events/{self.created.pop()}")
        start = datetime.now(UTC) + timedelta(days=self.choices.randint(1, 300))
        dates = {"start_date": f"{start:%F %T}", "end_date": f"{start + timedelta(hours=2):%F %T}"}
        response = self.client.post("/events", json={"title": "A new event", **dates})
        self.created.append(response.json()["id"])
        return response

    def _patch(self, values: dict[str, object]) -> httpx.Response:
        return self.client.patch(f"/events/{self.choices.choice(self.event_ids)}", json=values)


def list_paths(site: SeededSite) -> list[str]:
    """Return the 500 URLs of the mix, chosen in the same way in every run."""
    events, categories, venues = (
        _fetch_ids(site.url, query)
        for query in (
            "SELECT id FROM events WHERE listed AND end_utc > now() ORDER BY md5(id::text) LIMIT 300",
            "SELECT id FROM categories ORDER BY count DESC, id LIMIT 30",
            """SELECT venue_id FROM event_venues WHERE listed AND start_utc > now()
                GROUP BY venue_id ORDER BY count(*) DESC, venue_id LIMIT 60""",
        )
    )
    today = datetime.now(UTC).date().replace(day=1)
    months = [(today + timedelta(days=31 * n)).replace(day=1) for n in range(13)]
    days = [datetime.now(UTC).date() + timedelta(days=n) for n in range(59)]
    windows = list(itertools.chain(itertools.pairwise(months), itertools.pairwise(days)))
    return [
        *(f"{NS}/events/{event_id}" for event_id in events),
        *(f"{NS}/events?page={page}" for page in range(1, min(40, len(events) // 10) + 1)),
        *(f"{NS}/events?categories={category_id}" for category_id in categories),
        *(f"{NS}/events?venue={venue_id}" for venue_id in venues),
        *(f"{NS}/events?start_date={first}&end_date={last}" for first, last in windows),
    ]


def measure(
    base_url: str, site: SeededSite, processes: Processes, *, loads: Sequence[Load], rounds: int, seconds: float
) -> Samples:
    """Measure the reads in turn without writes (None) and with each load."""
    paths = list_paths(site)
    samples: Samples = {load: [] for load in (None, *loads)}
    events = _fetch_ids(site.url, "SELECT id FROM events WHERE listed AND end_utc > now() ORDER BY id")
    venues = _fetch_ids(site.url, "SELECT id FROM venues WHERE status = 'publish' ORDER BY id LIMIT 500")
    auth = (site.login, site.password)
    with (
        tempfile.TemporaryDirectory() as directory,
        httpx.Client(base_url=f"{base_url}{NS}", auth=auth, timeout=60) as client,
    ):
        file = Path(directory) / "paths"
        file.write_text("\n".join(paths))
        script = MIX_SCRIPT % file
        writer = Writer(client, events, venues)
        for path in paths:
            httpx.get(f"{base_url}{path}", timeout=60).raise_for_status()
        for load in track([*samples] * rounds, description="Runs"):
            stop = threading.Event()
            thread = threading.Thread(target=writer.run, args=(load, stop)) if load else None
            if thread:
                thread.start()
            try:
                samples[load].append(run_wrk(base_url, CONNECTIONS, seconds, processes, script=script))
            finally:
                stop.set()
                if thread:
                    thread.join()
    return samples


def find_failures(samples: Samples) -> list[str]:
    """Return the loads that miss their floor or whose p99 is too high."""
    rate, p99 = _summarize(samples[None])
    failures: list[str] = []
    for load, runs in samples.items():
        if load is None:
            continue
        load_rate, load_p99 = _summarize(runs)
        floor = FLOORS.get((load.kind, load.rate), 0.0)
        if load_rate < floor * rate:
            failures.append(f"{load.name}: {load_rate / rate:.0%} of the throughput, below {floor:.0%}")
        if load_p99 > MAX_P99_RATIO * p99:
            failures.append(f"{load.name}: p99 is {load_p99 / p99:.1f} × that without writes")
    return failures


def print_results(samples: Samples, console: Console) -> None:
    rate, p99 = _summarize(samples[None])
    table = Table("writes/s", "reads/s", "of quiet", "p50 ms", "p99 ms", "× quiet", "CPU ms", "database")
    for load, runs in samples.items():
        load_rate, load_p99 = _summarize(runs)
        table.add_row(
            load.name if load else "0", f"{load_rate:,.0f}", f"{load_rate / rate:.0%}",
            f"{median(run.p50 for run in runs):.1f}", f"{load_p99:.1f}", f"{load_p99 / p99:.2f}",
            f"{median(run.cpu for run in runs):.2f}", f"{median(run.database for run in runs):.2f}",
        )  # fmt: skip
    console.print(table)


def _summarize(runs: Sequence[Sample]) -> tuple[float, float]:
    return median(run.rate for run in runs), median(run.p99 for run in runs)


def _fetch_ids(url: str, query: str) -> list[int]:
    with psycopg.connect(url, autocommit=True) as connection:
        return [row[0] for row in connection.execute(query.encode())]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--seconds", type=int, default=10, help="of each run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=Path, default=Path(".local/speed"), help="where the databases are kept")
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    console = Console()
    with ExitStack() as stack:
        cluster = find_cluster(arguments.directory, stack)
        site = make_site(cluster, arguments.events)
        server = start_server(site, arguments.directory / "busy.log", stack, megabytes=64)
        processes = Processes(cluster.pid, server.process.pid)
        samples = measure(
            server.base_url, site, processes, loads=LOADS, rounds=arguments.rounds, seconds=arguments.seconds
        )
    print_results(samples, console)
    failures = find_failures(samples)
    for failure in failures:
        console.print(f"[red]{failure}[/red]")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

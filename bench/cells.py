"""100,000 sites over three cells: the directory, the migration of all cells, periodic jobs, and the loss of a cell.

Each cell is a PostgreSQL server of its own. The costs of a request with and without a directory are compared in turns
on the sites of one cell. At the end, one cell is stopped and suspended while the sites of the others are requested.
The exit code is 1 if a limit is exceeded.
"""

import argparse
import asyncio
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import batched, cycle
from pathlib import Path
from statistics import median

import httpx
from rich.console import Console
from rich.table import Table

from bench.cpu_time import cpu_seconds, list_process_tree
from bench.load import Processes, Sample
from bench.many_sites import (
    CACHE_MB,
    CASES,
    IDLE_SITES,
    MAX_MEMORY_MB,
    MAX_MORE_BLOCKS,
    Case,
    read_all,
    report_failures,
    run_requests_in_turn,
)
from bench.periodic_jobs import JobWork, measure_periodic_jobs
from bench.seeded_sites import NS, SETTINGS, find_cluster, make_database, run_command
from bench.site_copies import SiteCopies, make_copies
from kalends.bootstrap import open_database
from kalends.fleet.storage import directory as directory_changes
from kalends.fleet.storage.cells import Cells
from kalends.settings import Settings
from tests.lifecycle.processes import kill_postgres, suspend_postgres
from tests.security.raw_requests import memory_mb
from tests.servers import Server
from tools import postgres

NAMES = ("a", "b", "c")
LOST = "c"
MAX_ROUTING_RATIO = 1.1
MAX_BYTES_PER_HOST = 200
MAX_P99_RATIO = 1.5
MIN_P99_MS = 20.0  # Shorter latencies vary by more than the ratio.
LOST_REQUESTS_PER_SECOND = 20
CONNECTIONS = 8
UNUSED_URL = "postgresql:///unused"
ROUTED = (CASES[0], CASES[1], CASES[-2])


@dataclass(frozen=True)
class BenchCells:
    directory_url: str
    clusters: Mapping[str, postgres.Server]
    copies: Mapping[str, SiteCopies]

    @property
    def environment(self) -> dict[str, str]:
        cells = ",".join(f"{name}={copies.url}" for name, copies in self.copies.items())
        return {"KALENDS_DIRECTORY_URL": self.directory_url, "KALENDS_CELLS": cells}

    def list_hosts(self, number: int, names: Sequence[str] = NAMES) -> list[str]:
        """Return hosts of some sites of the named cells, in random order."""
        hosts = [host for name in names for host in self.copies[name].list_hosts(number // len(names))]
        random.Random(7).shuffle(hosts)  # noqa: S311  Not a secret.
        return hosts


@dataclass(frozen=True)
class Routing:
    """The runs of one request: to a server of one database, and to a server of all cells."""

    case: Case
    plain: Sequence[Sample]
    routed: Sequence[Sample]

    @property
    def ratio(self) -> float:
        return median(routed.cpu / plain.cpu for plain, routed in zip(self.plain, self.routed, strict=True))


@dataclass(frozen=True)
class Lookups:
    """Microseconds of CPU per lookup: of a known site, and of a new one in the process and in the directory."""

    known: float
    new: float
    new_directory: float
    queries: int


@dataclass(frozen=True)
class Loss:
    """p99 of the sites of the other cells in milliseconds, while all cells run and while one does not."""

    name: str
    before: Sequence[float]
    during: Sequence[float]
    statuses: Counter[int]  # of the sites of the lost cell

    @property
    def ratio(self) -> float:
        return median(self.during) / max(median(self.before), MIN_P99_MS)


@dataclass(frozen=True)
class Result:
    hosts: int
    seconds: Mapping[str, float]  # of commands
    routing: Sequence[Routing]
    lookups: Lookups
    memory_mb: float
    few_jobs: Mapping[str, JobWork]
    jobs: Mapping[str, Mapping[str, JobWork]]
    losses: Sequence[Loss]

    def find_failures(self) -> list[str]:
        failures = [
            f"{routing.case.name}: {routing.ratio:.2f} × the cost without a directory"
            for routing in self.routing
            if routing.ratio > MAX_ROUTING_RATIO
        ]
        budget = MAX_MEMORY_MB + self.hosts * MAX_BYTES_PER_HOST / 2**20
        if self.memory_mb > budget:
            failures.append(f"memory: {self.memory_mb:.0f} MB more, above {budget:.0f}")
        for cell, works in self.jobs.items():
            failures += [
                f"{name} in cell {cell}: {self.few_jobs[name].blocks} blocks become {work.blocks}"
                for name, work in works.items()
                if work.blocks > self.few_jobs[name].blocks + MAX_MORE_BLOCKS
            ]
        failures += [
            f"{loss.name}: p99 of the other cells is {loss.ratio:.2f} × that before"
            for loss in self.losses
            if loss.ratio > MAX_P99_RATIO
        ]
        return failures


def fill_cells(clusters: Mapping[str, postgres.Server], sites: int, seconds: dict[str, float]) -> BenchCells:
    """Fill one database of each cluster unless an earlier run has done so, and make a new directory of all."""
    size = -(-sites // len(NAMES))
    copies = {
        name: make_copies(clusters[name].url, f"cell_{size}", size, 1 + number * size)
        for number, name in enumerate(NAMES)
    }
    directory_url = make_database(clusters["a"].url, "directory")
    asyncio.run(directory_changes.apply_schema(directory_url))
    for name in NAMES:
        started = time.monotonic()
        asyncio.run(directory_changes.add_cell(directory_url, copies[name].url, name))
        seconds[f"cell add {name}, {size:,} sites"] = time.monotonic() - started
    return BenchCells(directory_url, clusters, copies)


def start_server(environment: Mapping[str, str], url: str, log: Path, megabytes: int, stack: ExitStack) -> Server:
    limits = {"KALENDS_CACHE_MB": str(megabytes), "KALENDS_MAX_CONNECTIONS_PER_CLIENT": "0"}
    return stack.enter_context(Server.start(url, log=log, environment={**environment, **limits}))


def measure_routing(cells: BenchCells, directory: Path, *, rounds: int, seconds: float) -> list[Routing]:
    """Compare a server of all cells with one of the database of the first cell; all requested sites are there."""
    copies, hosts = cells.copies["a"], cells.list_hosts(300, ["a"])
    results: list[Routing] = []
    for is_warm in (False, True):
        with ExitStack() as stack:
            megabytes = 4 * CACHE_MB if is_warm else 0
            servers = [
                start_server({}, copies.url, directory / "plain.log", megabytes, stack),
                start_server(cells.environment, UNUSED_URL, directory / "routed.log", megabytes, stack),
            ]
            for case in ROUTED:
                if case.is_warm != is_warm:
                    continue
                runs: tuple[list[Sample], list[Sample]] = ([], [])
                for number in range(2 * rounds + 2):
                    server = servers[number % 2]
                    processes = Processes(cells.clusters["a"].pid, server.process.pid)
                    requests = [(host, case.path(copies)) for host in hosts]
                    sample = run_requests_in_turn(server, processes, requests, CONNECTIONS, seconds)
                    if number >= 2:  # The first runs fill caches.
                        runs[number % 2].append(sample)
                results.append(Routing(case, *runs))
    return results


async def measure_lookups(cells: BenchCells, hosts: Sequence[str]) -> Lookups:
    """Look all hosts up as a server does, 100 at a time, and each again from memory."""
    settings = Settings(directory_url=cells.directory_url, cells={n: c.url for n, c in cells.copies.items()})
    opened = await open_database(settings)
    if not isinstance(opened, Cells):
        raise TypeError(f"{opened} has no directory")
    try:
        await opened.router.find(hosts[0])
        processes = list_process_tree(cells.clusters["a"].pid)
        new = known = 0.0
        directory = sum(map(cpu_seconds, processes))
        for batch in batched(hosts, 100, strict=False):
            started = time.process_time()
            await asyncio.gather(*[opened.router.find(host) for host in batch])
            looked_up = time.process_time()
            for host in batch:
                await opened.router.find(host)
            new, known = new + looked_up - started, known + time.process_time() - looked_up
        new_directory = sum(map(cpu_seconds, processes)) - directory
        queries = opened.read_counts()["lookup"]
    finally:
        await opened.close()
    return Lookups(*(1e6 * cpu / len(hosts) for cpu in (known, new, new_directory)), queries)


def measure_memory(cells: BenchCells, hosts: Sequence[str], directory: Path) -> float:
    """Return the megabytes that a server with the default cache uses more after a request to each host."""
    with ExitStack() as stack:
        server = start_server(cells.environment, UNUSED_URL, directory / "memory.log", CACHE_MB, stack)
        event = f"{NS}/events/{cells.copies['a'].event_id}"
        read_all(server, list(hosts[:10]) * 30, [event, f"{NS}/events"])
        before = memory_mb(server)
        read_all(server, hosts, [event])
        return memory_mb(server) - before


@contextmanager
def requesting(server: Server, hosts: Sequence[str], path: str) -> Iterator[Counter[int]]:
    """Request sites at a fixed rate in the background, each by a connection of its own; count the statuses."""
    statuses: Counter[int] = Counter()
    is_ending = threading.Event()

    async def request(client: httpx.AsyncClient, host: str) -> None:
        try:
            statuses[(await client.get(path, headers={"Host": host})).status_code] += 1
        except httpx.HTTPError:
            statuses[0] += 1

    async def run() -> None:
        async with (
            httpx.AsyncClient(base_url=server.base_url, timeout=60, trust_env=False) as client,
            asyncio.TaskGroup() as group,
        ):
            for host in cycle(hosts):
                if is_ending.is_set():
                    return
                group.create_task(request(client, host))
                await asyncio.sleep(1 / LOST_REQUESTS_PER_SECOND)

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        yield statuses
    finally:
        is_ending.set()
        thread.join()


@contextmanager
def stopped(cluster: postgres.Server) -> Iterator[None]:
    """Kill the processes of a cluster, and start it again at the end."""
    kill_postgres(cluster)
    try:
        yield
    finally:
        postgres.start(cluster.directory, port=cluster.port, settings=SETTINGS)


def measure_losses(cells: BenchCells, directory: Path, *, rounds: int, seconds: float) -> list[Loss]:
    """Measure the sites of two cells while the third is up, suspended and stopped, in turns."""
    others, lost = cells.list_hosts(300, [name for name in NAMES if name != LOST]), cells.list_hosts(100, [LOST])
    path = f"{NS}/events"
    requests = [(host, path) for host in others]
    losses: list[Loss] = []
    with ExitStack() as stack:
        server = start_server(cells.environment, UNUSED_URL, directory / "loss.log", 0, stack)
        processes = Processes(cells.clusters["a"].pid, server.process.pid)
        read_all(server, [*others[:40], *lost[:40]], [path])
        for name, lose in (("a suspended cell", suspend_postgres), ("a stopped cell", stopped)):
            before: list[float] = []
            during: list[float] = []
            statuses: Counter[int] = Counter()
            for _ in range(rounds):
                with requesting(server, lost, path) as all_up:
                    before.append(run_requests_in_turn(server, processes, requests, CONNECTIONS, seconds).p99)
                if set(all_up) != {200}:
                    raise AssertionError(f"errors before {name}: {all_up}")
                cluster = postgres.ensure(cells.clusters[LOST].directory)
                with lose(cluster), requesting(server, lost, path) as seen:
                    during.append(run_requests_in_turn(server, processes, requests, CONNECTIONS, seconds).p99)
                    httpx.get(f"{server.base_url}/readyz").raise_for_status()
                statuses += seen
                read_all(server, lost[:10], [path])  # The cell is used again.
            losses.append(Loss(name, before, during, statuses))
    return losses


def print_result(result: Result, console: Console) -> None:
    for name, seconds in result.seconds.items():
        console.print(f"{name}: {seconds:.1f} s")
    table = Table(title="CPU ms per request (server + database): one database, three cells")
    for heading in ("request", "cache", "one database", "three cells", "ratio"):
        table.add_column(heading, justify="left" if heading in {"request", "cache"} else "right")
    for routing in result.routing:
        costs = [f"{median(run.cpu for run in runs):.2f}" for runs in (routing.plain, routing.routed)]
        state = "warm" if routing.case.is_warm else "cold"
        table.add_row(routing.case.name, state, *costs, f"{routing.ratio:.2f}")
    console.print(table)
    lookups = result.lookups
    console.print(
        f"Lookups of {result.hosts:,} hosts: {lookups.new:.1f} µs of CPU in the process and "
        f"{lookups.new_directory:.1f} µs in the directory for a new one, {lookups.queries:,} queries; "
        f"{lookups.known:.2f} µs for a known one"
    )
    console.print(f"Memory: {result.memory_mb:.0f} MB more after a request to each of {result.hosts:,} hosts")
    jobs = Table(title=f"Periodic jobs: blocks read with {IDLE_SITES} idle sites, and in each cell")
    for heading in ("job", "few", *result.jobs):
        jobs.add_column(heading, justify="left" if heading == "job" else "right")
    for name, few in result.few_jobs.items():
        jobs.add_row(name, f"{few.blocks:,}", *(f"{works[name].blocks:,}" for works in result.jobs.values()))
    console.print(jobs)
    for loss in result.losses:
        before, during = (" ".join(f"{value:.1f}" for value in values) for values in (loss.before, loss.during))
        console.print(f"{loss.name}: p99 of the others {before} -> {during} ms; lost sites {dict(loss.statuses)}")


def run_timed(cells: BenchCells, *arguments: str) -> float:
    started = time.monotonic()
    run_command(UNUSED_URL, *arguments, environment=cells.environment)
    return time.monotonic() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sites", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4, help="of each run")
    parser.add_argument("--quick", action="store_true", help="600 sites, one round")
    parser.add_argument("--directory", type=Path, default=Path(".local/cells"), help="where the databases are kept")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.sites, arguments.rounds, arguments.seconds = 600, 1, 2
    directory: Path = arguments.directory.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    seconds: dict[str, float] = {}
    options = {"rounds": arguments.rounds, "seconds": arguments.seconds}
    settings = {**SETTINGS, "shared_buffers": "256MB", "maintenance_work_mem": "512MB", "max_wal_size": "8GB"}
    with ExitStack() as stack:
        clusters = {name: find_cluster(directory / name, stack, settings) for name in NAMES}
        cells = fill_cells(clusters, arguments.sites, seconds)
        seconds["migrate, nothing to do"] = run_timed(cells, "migrate")
        seconds["cell check"] = run_timed(cells, "cell", "check")
        few = make_copies(cells.clusters["a"].url, f"sites_{IDLE_SITES}", IDLE_SITES)
        few_jobs = asyncio.run(measure_periodic_jobs(few.url, directory / "media"))
        jobs = {
            name: asyncio.run(measure_periodic_jobs(copies.url, directory / "media"))
            for name, copies in cells.copies.items()
        }
        hosts = cells.list_hosts(arguments.sites)
        lookups = asyncio.run(measure_lookups(cells, hosts))
        routing = measure_routing(cells, directory, **options)
        losses = measure_losses(cells, directory, **options)
        memory = measure_memory(cells, hosts, directory)
    result = Result(len(hosts), seconds, routing, lookups, memory, few_jobs, jobs, losses)
    console = Console(width=150)
    print_result(result, console)
    return report_failures(result.find_failures(), console)


if __name__ == "__main__":
    sys.exit(main())

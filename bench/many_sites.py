"""Many sites in one process: the cost of a request, the memory of a server and the work of the worker.

One database has 100,000 sites of 20 events, another one of them. The same requests go to one site and, in turn, to
10,000 sites, without a cache and with one that holds all responses. Another server, with the default cache, serves
all sites before and after each of them is changed; its memory must not grow with the number of sites. The periodic
jobs of the worker are run with 100 and with 100,000 idle sites.
The exit code is 1 if a limit is exceeded.
"""

import argparse
import asyncio
import http.client
import random
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

import psycopg
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.load import Processes, Sample, run_wrk
from bench.periodic_jobs import JobWork, measure_periodic_jobs
from bench.seeded_sites import NS, SETTINGS, find_cluster
from bench.site_copies import SiteCopies, make_copies
from tests.security.raw_requests import memory_mb
from tests.servers import Server

MAX_RATIO = 1.2
MAX_GROWTH_MB = 20.0  # of a second pass over all sites
MAX_MORE_BLOCKS = 50  # of a periodic job: an index of more entries is deeper
IDLE_SITES = 100
CONNECTIONS = (1, 16)
CACHE_MB = 64
# Enough for the warm requests to all sites.
LARGE_CACHE_MB = 4096
# The caches of a process: responses, a quarter of that for linked records, and the touched tags of sites.
MAX_MEMORY_MB = CACHE_MB * 1.25 + 40
REQUESTS_SCRIPT = """
local targets = {}
for line in io.lines("%s") do
  local host, path = line:match("(%%S+) (%%S+)")
  table.insert(targets, wrk.format("GET", path, {Host = host}))
end
local count = 0
request = function()
  count = count %% #targets + 1
  return targets[count]
end
"""


@dataclass(frozen=True)
class Case:
    name: str
    path: Callable[[SiteCopies], str]
    is_warm: bool = False


CASES = (
    Case("default list", lambda _: f"{NS}/events"),
    Case("one event by ID", lambda site: f"{NS}/events/{site.event_id}"),
    Case("one event by slug", lambda site: f"{NS}/events/by-slug/{site.slug}"),
    Case("one category", lambda site: f"{NS}/events?categories={site.category_id}"),
    Case("one venue", lambda site: f"{NS}/events?venue={site.venue_id}"),
    Case("a word", lambda site: f"{NS}/events?search={site.word}"),
    Case("list page", lambda _: "/events/list/"),
    Case("event page", lambda site: f"/event/{site.slug}/"),
    Case("default list", lambda _: f"{NS}/events", is_warm=True),
    Case("one event by ID", lambda site: f"{NS}/events/{site.event_id}", is_warm=True),
)


@dataclass(frozen=True)
class Cost:
    """The runs of one case at one number of connections: requests to one site, and to many."""

    case: Case
    connections: int
    one: Sequence[Sample]
    many: Sequence[Sample]

    @property
    def ratio(self) -> float:
        return median(many.cpu / one.cpu for one, many in zip(self.one, self.many, strict=True))

    @property
    def name(self) -> str:
        return f"{self.case.name}, {'warm' if self.case.is_warm else 'cold'}, {self.connections} connections"


@dataclass(frozen=True)
class Memory:
    """Megabytes of a server: after requests to one site, after a pass over all sites, and after further passes."""

    start: float
    first: float
    last: float


@dataclass(frozen=True)
class Result:
    costs: Sequence[Cost]
    memory: Memory
    few_jobs: Mapping[str, JobWork]
    many_jobs: Mapping[str, JobWork]

    def find_failures(self) -> list[str]:
        failures = [f"{cost.name}: {cost.ratio:.2f} × one site" for cost in self.costs if cost.ratio > MAX_RATIO]
        used, grown = self.memory.last - self.memory.start, self.memory.last - self.memory.first
        if used > MAX_MEMORY_MB:
            failures.append(f"memory: {used:.0f} MB more than for one site, above {MAX_MEMORY_MB:.0f}")
        if grown > MAX_GROWTH_MB:
            failures.append(f"memory: {grown:.0f} MB more after further passes, above {MAX_GROWTH_MB:.0f}")
        for name, work in self.many_jobs.items():
            few = self.few_jobs[name]
            if work.blocks > few.blocks + MAX_MORE_BLOCKS or len(work.statements) > len(few.statements):
                failures.append(f"{name}: {few.blocks} blocks become {work.blocks}")
        return failures


def start_server(url: str, directory: Path, megabytes: int, stack: ExitStack) -> Server:
    environment = {"KALENDS_CACHE_MB": str(megabytes), "KALENDS_MAX_CONNECTIONS_PER_CLIENT": "10"}
    name = f"{urlsplit(url).path.strip('/')}-{megabytes}.log"
    return stack.enter_context(Server.start(url, log=directory / name, environment=environment))


def read_all(server: Server, hosts: Sequence[str], paths: Sequence[str]) -> None:
    """Request each path of each host once, over one connection."""
    connection = http.client.HTTPConnection(urlsplit(server.base_url).netloc, timeout=60)
    for host in track(hosts, f"{len(hosts):,} sites"):
        for path in paths:
            connection.request("GET", path, headers={"Host": host})
            response = connection.getresponse()
            response.read()
            if response.status != 200:
                raise AssertionError(f"{response.status} for {path} of {host}")
    connection.close()


def measure_costs(
    targets: Sequence[tuple[Server, SiteCopies, Sequence[str]]],
    cases: Sequence[Case],
    cluster_pid: int,
    *,
    rounds: int,
    seconds: float,
) -> list[Cost]:
    """Measure each case in turn on both targets: a server, its database, and the hosts that are requested."""
    costs: list[Cost] = []
    for case in track(cases, "measuring"):
        for connections in CONNECTIONS:
            runs: tuple[list[Sample], list[Sample]] = ([], [])
            for number in range(2 * rounds):
                server, site, hosts = targets[number % 2]
                processes = Processes(cluster_pid, server.process.pid)
                requests = [(host, case.path(site)) for host in hosts]
                runs[number % 2].append(run_requests_in_turn(server, processes, requests, connections, seconds))
            costs.append(Cost(case, connections, *runs))
    return costs


def run_requests_in_turn(
    server: Server, processes: Processes, requests: Sequence[tuple[str, str]], connections: int, seconds: float
) -> Sample:
    """Send requests, each a host and a path, again and again with wrk."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("".join(f"{host} {path}\n" for host, path in requests))
        file.flush()
        return run_wrk(server.base_url, connections, seconds, processes, script=REQUESTS_SCRIPT % file.name)


def measure_memory(server: Server, site: SiteCopies, hosts: Sequence[str]) -> Memory:
    """Request all sites, change each of them, and request them again, so that the process learns the changes.

    The cache holds the last responses only, so each pass over the sites begins with those that were requested last.
    """
    event, paths = f"{NS}/events/{site.event_id}", [f"{NS}/events", "/events/list/"]
    read_all(server, [hosts[0]] * 200, [event, *paths])
    start = memory_mb(server)
    read_all(server, hosts, [*paths, event])
    first = memory_mb(server)
    read_all(server, hosts, [event])
    _change_sites(site.url)
    read_all(server, hosts[::-1], [event])
    read_all(server, hosts, [event])
    return Memory(start, first, memory_mb(server))


def _change_sites(url: str) -> None:
    """Log a change of an event in each site."""
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE sites SET revision = revision + 1")
        connection.execute(
            """INSERT INTO changes (site_id, revision, kind, record_id, action, was_public)
                SELECT s.id, s.revision, 'events', (SELECT min(e.id) FROM events e WHERE e.site_id = s.id), 'update',
                    true FROM sites s"""
        )


def print_result(result: Result, console: Console) -> None:
    table = Table(title="CPU ms per request: one site, many sites")
    for heading in ("request", "cache", "connections", "server", "database", "together", "ratio"):
        table.add_column(heading, justify="left" if heading in {"request", "cache"} else "right")
    for cost in result.costs:
        server, database, together = (
            " | ".join(f"{median(map(read, runs)):.2f}" for runs in (cost.one, cost.many))
            for read in (lambda run: run.server, lambda run: run.database, lambda run: run.cpu)
        )
        state = "warm" if cost.case.is_warm else "cold"
        table.add_row(cost.case.name, state, str(cost.connections), server, database, together, f"{cost.ratio:.2f}")
    console.print(table)
    memory = result.memory
    console.print(f"Memory: one site {memory.start:.0f} MB, all {memory.first:.0f} MB, later {memory.last:.0f} MB")
    jobs = Table(title="Periodic jobs: blocks read with few and with many idle sites")
    for heading in ("job", "few", "many", "statements"):
        jobs.add_column(heading, justify="left" if heading in {"job", "statements"} else "right")
    for name, work in result.many_jobs.items():
        texts = "\n".join(" ".join(text.split()) for text in work.statements)
        jobs.add_row(name, f"{result.few_jobs[name].blocks:,}", f"{work.blocks:,}", texts)
    console.print(jobs)


def report_failures(failures: Sequence[str], console: Console) -> int:
    """Print the exceeded limits and return the exit code."""
    for failure in failures:
        console.print(f"[red]{failure}[/red]")
    return 1 if failures else 0


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sites", type=int, default=100_000)
    parser.add_argument("--requested", type=int, default=10_000, help="number of sites that get requests")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4, help="of each run")
    parser.add_argument("--quick", action="store_true", help="1,000 sites, 200 of them requested")
    parser.add_argument("--directory", type=Path, default=Path(".local/sites"), help="where the databases are kept")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.sites, arguments.requested, arguments.rounds, arguments.seconds = 1_000, 200, 2, 2
    arguments.directory.mkdir(parents=True, exist_ok=True)
    return arguments


def main() -> int:
    arguments = _read_arguments()
    directory, console = arguments.directory, Console(width=150)
    with ExitStack() as stack:
        cluster = find_cluster(directory, stack, {**SETTINGS, "maintenance_work_mem": "1GB", "max_wal_size": "8GB"})
        single, few, many = (
            make_copies(cluster.url, f"sites_{number}", number) for number in (1, IDLE_SITES, arguments.sites)
        )
        jobs = [asyncio.run(measure_periodic_jobs(site.url, directory / "media")) for site in (few, many)]
        hosts = many.list_hosts(arguments.requested)
        random.Random(7).shuffle(hosts)  # noqa: S311  Not a secret.
        costs: list[Cost] = []
        for is_warm in (False, True):
            cases = [case for case in CASES if case.is_warm == is_warm]
            megabytes = LARGE_CACHE_MB if is_warm else 0
            with ExitStack() as servers:
                targets = [
                    (start_server(site.url, directory, megabytes, servers), site, requested)
                    for site, requested in ((single, single.list_hosts(1)), (many, hosts))
                ]
                for server, site, requested in targets:
                    # A cache is filled; otherwise a few requests suffice, after which all statements are planned.
                    read_all(server, requested if is_warm else requested[:20], [case.path(site) for case in cases])
                costs += measure_costs(
                    targets, cases, cluster.pid, rounds=arguments.rounds, seconds=arguments.seconds
                )
        memory = measure_memory(start_server(many.url, directory, CACHE_MB, stack), many, hosts)
    result = Result(costs, memory, jobs[0], jobs[1])
    print_result(result, console)
    return report_failures(result.find_failures(), console)


if __name__ == "__main__":
    sys.exit(main())

"""Small and large sites in one database: requests cost as much as in a database that has the site alone.

The 100,000 sites of 20 events of `just bench-sites` get one of 200,000 and ten of 20,000 events as neighbors. Reads
and writes of small sites and of the largest are measured in turns with databases that have such a site alone.
The exit code is 1 if a limit is exceeded.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import httpx
import psycopg
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.load import PATCH_SCRIPT, Processes, Sample, run_wrk
from bench.many_sites import MAX_RATIO, read_all, report_failures, run_requests_in_turn, start_server
from bench.seeded_sites import LOGIN, NS, SETTINGS, find_cluster, find_database, make_database, run_command
from bench.site_copies import SiteCopies, add_site, describe_site, fill_copies, host_name, make_copies
from tests.servers import Server

LARGE, MEDIUM, MEDIUM_SITES = 200_000, 20_000, 10
POST_SCRIPT = """
local count = 0
request = function()
  count = count + 1
  return wrk.format("POST", nil, nil, '{"title":"Concert ' .. count ..
    '","start_date":"2030-01-01 20:00:00","end_date":"2030-01-01 22:00:00"}')
end
"""


@dataclass(frozen=True)
class Case:
    name: str
    path: Callable[[SiteCopies], str]
    script: str = ""  # of a write


CASES = (
    Case("default list", lambda _: f"{NS}/events"),
    Case("one event by ID", lambda site: f"{NS}/events/{site.event_id}"),
    Case("a word", lambda site: f"{NS}/events?search={site.word}"),
    Case("list page", lambda _: "/events/list/"),
    Case("a change (PATCH)", lambda site: f"{NS}/events/{site.event_id}", PATCH_SCRIPT),
    Case("a new event (POST)", lambda _: f"{NS}/events", POST_SCRIPT),
)


@dataclass(frozen=True)
class Target:
    """A site, alone in its database or beside others. All hosts are read; one of them is written."""

    server: Server
    site: SiteCopies
    hosts: Sequence[str]
    written: str
    password: str


@dataclass(frozen=True)
class Cost:
    name: str
    alone: Sequence[Sample]
    shared: Sequence[Sample]

    @property
    def ratio(self) -> float:
        return median(shared.cpu / alone.cpu for alone, shared in zip(self.alone, self.shared, strict=True))


def fill_large_site(url: str, events: int) -> SiteCopies:
    """Fill the site of a migrated database, unless it has events."""
    with psycopg.connect(url, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM events LIMIT 1").fetchone():
            run_command(url, "seed", "--events", str(events))
            connection.execute("INSERT INTO site_hosts VALUES (%s, 1) ON CONFLICT DO NOTHING", [host_name(1)])
            connection.execute("VACUUM (ANALYZE)")
        return describe_site(connection, url, 1, 1)


def add_neighbors(small: SiteCopies, large: SiteCopies, medium: SiteCopies, medium_sites: int) -> SiteCopies:
    """Copy large sites into the database of the small ones, unless it has them; return the largest there."""
    first = small.first + small.sites
    with psycopg.connect(small.url, autocommit=True) as connection:
        existing = {row[0] for row in connection.execute("SELECT id FROM sites WHERE id >= %s", [first])}
        numbers = [number for number in range(medium_sites + 1) if first + number not in existing]
        for number in track(numbers, "copying large sites"):
            add_site(large if number == 0 else medium, connection, first + number)
        # Also moves entries of earlier writes to where searches find them at once.
        connection.execute("VACUUM (ANALYZE)")
    return replace(large, url=small.url, first=first)


def make_target(server: Server, site: SiteCopies, hosts: Sequence[str]) -> Target:
    """Choose the site that earlier runs have written least, add an editor unless it has one, and read all cases."""
    with psycopg.connect(site.url) as connection:
        row = connection.execute(
            """SELECT h.host, EXISTS (SELECT FROM users u WHERE u.site_id = s.id AND u.login = %s)
                FROM site_hosts h JOIN sites s ON s.id = h.site_id WHERE h.host = ANY(%s)
                ORDER BY s.last_post_id, h.host LIMIT 1""",
            [LOGIN, list(hosts)],
        ).fetchone()
    written, has_editor = row or (hosts[0], False)  # A single site has all hosts.
    if not has_editor:
        run_command(site.url, "user", "add", LOGIN, "--role", "editor", "--site", written)
    label = f"bench {server.process.pid}"
    password = run_command(site.url, "app-password", "create", LOGIN, label, "--site", written).strip()
    read_all(server, hosts[:20], [case.path(site) for case in CASES])
    return Target(server, site, hosts, written, password)


def measure_costs(
    name: str, targets: tuple[Target, Target], cases: Sequence[Case], cluster_pid: int, *, rounds: int, seconds: float
) -> list[Cost]:
    """Measure each case in turns on a site alone and on one beside others."""
    costs: list[Cost] = []
    for case in track(cases, name):
        runs: tuple[list[Sample], list[Sample]] = ([], [])
        for number in range(2 * rounds):
            runs[number % 2].append(_run_case(case, targets[number % 2], cluster_pid, seconds))
        costs.append(Cost(f"{name}, {case.name}", *runs))
    return costs


def _run_case(case: Case, target: Target, cluster_pid: int, seconds: float) -> Sample:
    processes, path = Processes(cluster_pid, target.server.process.pid), case.path(target.site)
    if not case.script:
        requests = [(host, path) for host in target.hosts]
        return run_requests_in_turn(target.server, processes, requests, 1, seconds)
    request = next(httpx.BasicAuth(LOGIN, target.password).auth_flow(httpx.Request("GET", target.server.base_url)))
    headers = {
        "Host": target.written,
        "Authorization": request.headers["authorization"],
        "Content-Type": "application/json",
    }
    return run_wrk(target.server.base_url + path, 1, seconds, processes, headers=headers, script=case.script)


def find_failures(costs: Sequence[Cost]) -> list[str]:
    return [f"{cost.name}: {cost.ratio:.2f} × the site alone" for cost in costs if cost.ratio > MAX_RATIO]


def print_costs(costs: Sequence[Cost], console: Console) -> None:
    table = Table(title="CPU ms per request, without a cache: the site alone, beside others")
    for heading in ("request", "server", "database", "together", "ratio"):
        table.add_column(heading, justify="left" if heading == "request" else "right")
    for cost in costs:
        server, database, together = (
            " | ".join(f"{median(map(read, runs)):.2f}" for runs in (cost.alone, cost.shared))
            for read in (lambda run: run.server, lambda run: run.database, lambda run: run.cpu)
        )
        table.add_row(cost.name, server, database, together, f"{cost.ratio:.2f}")
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sites", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4, help="of each run")
    parser.add_argument("--directory", type=Path, default=Path(".local/sites"), help="where the databases are kept")
    arguments = parser.parse_args()
    directory, console = arguments.directory, Console(width=150)
    directory.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        cluster = find_cluster(directory, stack, {**SETTINGS, "maintenance_work_mem": "1GB", "max_wal_size": "8GB"})
        small = make_copies(cluster.url, f"sites_{arguments.sites}", arguments.sites)
        large, medium = (
            fill_large_site(find_database(cluster.url, f"large_{events}"), events) for events in (LARGE, MEDIUM)
        )
        neighbor = add_neighbors(small, large, medium, MEDIUM_SITES)
        # New events change a small site, so it is created for each run.
        single = fill_copies(make_database(cluster.url, "small"), 1)
        servers = {site.url: start_server(site.url, directory, 0, stack) for site in (small, large, single)}
        pairs = [("small", single, small, small.list_hosts(1000)), ("large", large, neighbor, neighbor.list_hosts(1))]
        costs = [
            cost
            for name, alone, shared, hosts in pairs
            for cost in measure_costs(
                name,
                (
                    make_target(servers[alone.url], alone, alone.list_hosts(1)),
                    make_target(servers[shared.url], shared, hosts),
                ),
                CASES,
                cluster.pid,
                rounds=arguments.rounds,
                seconds=arguments.seconds,
            )
        ]
    print_costs(costs, console)
    return report_failures(find_failures(costs), console)


if __name__ == "__main__":
    sys.exit(main())

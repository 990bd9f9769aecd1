"""Fairness: the latency of other clients during attacks by one or several clients.

The site has 200,000 events, 60,000 of them upcoming; the server has two processes and default settings. Other clients
request a cached list, an uncached list, lists that saves make outdated, and /healthz before, during and after each
attack. The exit code is 1 if a limit is exceeded. Writes docs/performance/fairness.md.
"""

import argparse
import asyncio
import multiprocessing
import os
import re
import sys
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg
from psycopg import sql

from bench.attacks import (
    ATTACKS,
    CACHED,
    HEALTH,
    KNOWN,
    NO_STATUS,
    OUTDATED,
    UNCACHED,
    VICTIMS,
    Attack,
    AttackResult,
    ClientResult,
    SiteInfo,
    attack,
    fill_caches,
    run_clients,
)
from bench.load import Processes
from bench.report import describe_commit, render_table
from bench.seeded_sites import NS, SeededSite, fill_site, find_cluster
from kalends.store.migrations import migrate, newest_revision
from tests.security.raw_requests import memory_mb, raise_file_limit
from tests.servers import Server, find_free_port
from tools import postgres

WORKERS = 2
KNOWN_LISTS = 20
SETTINGS = {
    **postgres.THROWAWAY,
    "shared_buffers": "512MB",
    "maintenance_work_mem": "512MB",
    "max_wal_size": "4GB",
}
SECONDS_AFTER, MAX_RECOVERY_SECONDS = 4.0, 60
MAX_CACHED_RATIO, MAX_UNCACHED_MS, MAX_HEALTH_MS, MAX_GROWTH_MB = 10.0, 1000.0, 100.0, 100.0


@dataclass(frozen=True)
class Size:
    events: int
    upcoming: int
    venues: int


FULL, QUICK = Size(200_000, 60_000, 5_000), Size(20_000, 6_000, 500)


@dataclass(frozen=True)
class Testbed:
    server: Server
    cluster: postgres.Server
    site: SiteInfo
    metrics_url: str

    def count_starved(self) -> Counter[str]:
        """Return the numbers of public reads without a free connection, by outcome for their last known response."""
        lines = httpx.get(self.metrics_url, timeout=30).text
        found = re.findall(r'^kalends_starved_reads_total\{outcome="(\w+)"\} (\S+)', lines, re.MULTILINE)
        return Counter({outcome: round(float(number)) for outcome, number in found})


@dataclass(frozen=True)
class AttackMeasurement:
    """The measurement of one attack: CPU in cores, memory of all server processes in megabytes."""

    attack: Attack
    quiet: dict[str, ClientResult]
    during: dict[str, ClientResult]
    after: dict[str, ClientResult]
    attack_result: AttackResult
    victims_cpu: float
    server_cpu: float
    database_cpu: float
    memory: tuple[float, float, float]  # before, maximum, after
    recovery_seconds: float  # seconds from the end of the attack to the last bad response
    starved: Counter[str]  # public reads without a free connection, by outcome

    @property
    def qualifying(self) -> int:
        """Return the number of starved reads whose last known response may be used."""
        return self.starved["answered"] + self.starved["unchecked"]

    def list_broken_limits(self) -> list[str]:
        """Describe the limits that are exceeded."""
        quiet, during = self.quiet, self.during
        max_cached_ms = MAX_CACHED_RATIO * quiet[CACHED].p99
        checks = (
            (during[CACHED].failures == 0, f"cached: {during[CACHED].failures} failed"),
            (
                during[CACHED].p99 < max_cached_ms,
                f"cached p99 {during[CACHED].p99:,.0f} ms, not below {max_cached_ms:,.0f}",
            ),
            (during[UNCACHED].failures == 0, f"uncached: {during[UNCACHED].failures} failed"),
            (during[UNCACHED].p99 < MAX_UNCACHED_MS, f"uncached p99 {during[UNCACHED].p99:,.0f} ms"),
            (during[KNOWN].failures == 0, f"known: {during[KNOWN].failures} failed"),
            (self.starved["unchecked"] == 0, f"known: {self.starved['unchecked']} not answered"),
            (during[HEALTH].failures == 0, f"/healthz: {during[HEALTH].failures} failed"),
            (during[HEALTH].p99 < MAX_HEALTH_MS, f"/healthz p99 {during[HEALTH].p99:,.0f} ms"),
            (self.memory[1] - self.memory[0] < MAX_GROWTH_MB, f"{self.memory[1] - self.memory[0]:,.0f} MB more"),
        )
        return [text for is_kept, text in checks if not is_kept]


def main() -> int:
    arguments = _read_arguments()
    # The server processes inherit this limit.
    raise_file_limit(8_000)
    with ExitStack() as stack:
        testbed = _set_up(arguments, stack)
        measurements = [_measure(testbed, one, arguments) for one in ATTACKS if arguments.only in one.name]
    page = _render_page(measurements, arguments)
    print(page)  # noqa: T201
    if arguments.write:
        arguments.write.parent.mkdir(parents=True, exist_ok=True)
        arguments.write.write_text(page)
    return 1 if any(one.list_broken_limits() for one in measurements) else 0


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15, help="of each attack")
    parser.add_argument("--quiet", type=float, default=8, help="seconds of each measurement before an attack")
    parser.add_argument("--every", type=float, default=0.05, help="seconds between two requests of a victim")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds an attacker waits after a refusal")
    parser.add_argument("--quick", action="store_true", help="20,000 events and 5 seconds; writes nothing")
    parser.add_argument("--only", default="", help="attacks whose name contains this; writes nothing")
    parser.add_argument("--write", type=Path, default=Path("docs/performance/fairness.md"))
    parser.add_argument("--directory", type=Path, default=Path(".local/fairness"), help="where the site is kept")
    arguments = parser.parse_args()
    arguments.size = QUICK if arguments.quick else FULL
    if arguments.quick:
        arguments.seconds, arguments.quiet = 5, 4
    if (arguments.quick or arguments.only) and arguments.write == parser.get_default("write"):
        arguments.write = None
    arguments.directory.mkdir(parents=True, exist_ok=True)
    return arguments


# The site and its server -----------------------------------------------------------------------


def _set_up(arguments: argparse.Namespace, stack: ExitStack) -> Testbed:
    cluster = find_cluster(arguments.directory, stack, SETTINGS)
    seeded = _find_site(cluster, arguments.size)
    log = arguments.directory / "server.log"
    log.unlink(missing_ok=True)
    metrics_port = find_free_port()
    environment = {"KALENDS_METRICS_PORT": str(metrics_port)}
    server = stack.enter_context(Server.start(seeded.url, log=log, workers=WORKERS, environment=environment))
    with psycopg.connect(seeded.url) as connection:
        categories = tuple(row[0] for row in connection.execute("SELECT id FROM categories ORDER BY id").fetchall())
        tags = tuple(row[0] for row in connection.execute("SELECT id FROM tags ORDER BY id").fetchall())
    port = int(server.base_url.rpartition(":")[2])
    for path in (f"{NS}/events", "/events.ics"):
        for _ in range(4 * WORKERS):  # Fill the cache of each process.
            httpx.get(server.base_url + path, timeout=120).raise_for_status()
    login = b64encode(f"{seeded.login}:{seeded.password}".encode()).decode()
    lists = _list_known(server, seeded)
    site = SiteInfo(port, categories, tags, seeded.event_id, lists, f"Basic {login}")
    return Testbed(server, cluster, site, f"http://127.0.0.1:{metrics_port}/metrics")


def _list_known(server: Server, seeded: SeededSite) -> tuple[str, ...]:
    """Return addresses of lists that begin with an event at its venue, a second apart."""
    event = httpx.get(f"{server.base_url}{NS}/events/{seeded.event_id}", timeout=30).json()
    venue = event["venue"] if isinstance(event["venue"], dict) else event["venue"][0]
    start = datetime.fromisoformat(event["start_date"])
    targets = [
        f"{NS}/events?venue={venue['id']}&start_date={start - timedelta(seconds=number):%Y-%m-%d+%H:%M:%S}"
        for number in range(1, KNOWN_LISTS + 1)
    ]
    if any(f'"id":{seeded.event_id},' not in httpx.get(server.base_url + one, timeout=30).text for one in targets):
        raise AssertionError("a list without the event")
    return tuple(targets)


def _find_site(cluster: postgres.Server, size: Size) -> SeededSite:
    """Create a site of this size, or reuse that of an earlier run.

    The name of the database contains the date and the schema version; a different one replaces it.
    """
    kind = f"fairness_{size.events}_{size.upcoming}_{size.venues}"
    name = f"{kind}_{newest_revision()}_{datetime.now(UTC):%Y%m%d}"
    url = cluster.build_url(name)
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        databases = [row[0] for row in connection.execute("SELECT datname FROM pg_database").fetchall()]
        for old in databases:
            if old.startswith(f"{kind}_") and old != name:
                connection.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(old)))
        if name not in databases:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    migrate(url)
    _log(f"site {name}")
    return fill_site(url, size.events, "--upcoming", str(size.upcoming), "--venues", str(size.venues))


# The measurements ------------------------------------------------------------------------------


def _measure(testbed: Testbed, attack_spec: Attack, arguments: argparse.Namespace) -> AttackMeasurement:
    """Measure before, during and after one attack."""
    _log(f"{attack_spec.name}: {attack_spec.connections} connections, {attack_spec.description}")
    site, processes = testbed.site, Processes(testbed.cluster.pid, testbed.server.process.pid)
    # Separate processes do not delay each other, and their CPU time is measured separately.
    with _ProcessStarter() as start:
        quiet, _ = start(run_clients, site, arguments.quiet, arguments.every).result()
        start(fill_caches, site, 4 * WORKERS).result()
    _log(f"  quiet   {_format_results(quiet)}")
    before, cpu_before, starved = memory_mb(testbed.server), processes.seconds(), testbed.count_starved()
    with _ProcessStarter() as start:
        attackers = start(attack, attack_spec, site, arguments.seconds, arguments.pause)
        time.sleep(1)
        victims = start(run_clients, site, arguments.seconds - 1, arguments.every)
        peak = max(_measure_peak_memory(testbed.server, attackers), before)
        attack_result = attackers.result()
        ended_at, cpu_after = time.time(), processes.seconds()
        during, victims_cpu = victims.result()
        starved = testbed.count_starved() - starved
        after, _ = start(run_clients, site, SECONDS_AFTER, arguments.every).result()
        recovery_seconds = max(
            0.0,
            *[_last_bad(seen) - ended_at for seen in (during, after, *_wait_for_recovery(start, site, arguments))],
        )
    _log(f"  during  {_format_results(during)}")
    _log(f"  after   {_format_results(after)}; recovered after {recovery_seconds:.1f} s")
    _log(f"  attackers {attack_result.rate:,.1f}/s: {_format_statuses(attack_result)}")
    return AttackMeasurement(
        attack_spec,
        quiet,
        during,
        after,
        attack_result,
        victims_cpu,
        (cpu_after[0] - cpu_before[0]) / arguments.seconds,
        (cpu_after[1] - cpu_before[1]) / arguments.seconds,
        (before, peak, memory_mb(testbed.server)),
        recovery_seconds,
        starved,
    )


def _last_bad(results: dict[str, ClientResult]) -> float:
    return max(one.last_bad for one in results.values())


def _wait_for_recovery(
    start: Callable[..., "Future[Any]"], site: SiteInfo, arguments: argparse.Namespace
) -> Iterator[dict[str, ClientResult]]:
    """Wait until a second passes without a bad response, so that an attack does not affect the next measurement."""
    for _ in range(MAX_RECOVERY_SECONDS):
        results, _ = start(run_clients, site, 1.0, arguments.every).result()
        yield results
        if not _last_bad(results):
            return


class _ProcessStarter:
    """Starts coroutines, each in a separate process."""

    def __enter__(self) -> Callable[..., "Future[Any]"]:
        context = multiprocessing.get_context("fork")
        self._executors: list[ProcessPoolExecutor] = []

        def start(work: Callable[..., Coroutine[Any, Any, Any]], *arguments: object) -> "Future[Any]":
            self._executors.append(ProcessPoolExecutor(1, context))
            return self._executors[-1].submit(_run, work, *arguments)

        return start

    def __exit__(self, *_: object) -> None:
        for executor in self._executors:
            executor.shutdown()


def _run(work: Callable[..., Coroutine[Any, Any, Any]], *arguments: object) -> Any:
    return asyncio.run(work(*arguments))


def _measure_peak_memory(server: Server, work: "Future[Any]") -> float:
    peak = 0.0
    while not work.done():
        peak = max(peak, memory_mb(server))
        time.sleep(0.25)
    return peak


# The report ------------------------------------------------------------------------------------


def _format_results(results: dict[str, ClientResult]) -> str:
    return "; ".join(
        f"{name} {one.p50:,.0f} / {one.p99:,.0f} ms {_format_statuses(one)}" for name, one in results.items()
    )


def _format_statuses(result: ClientResult | AttackResult) -> str:
    return ", ".join(f"{number:,} × {status}" for status, number in sorted(result.statuses.items()))


def _client_rows(measurements: list[AttackMeasurement]) -> Iterator[list[str]]:
    for one in measurements:
        for name in VICTIMS:
            quiet, during, after = one.quiet[name], one.during[name], one.after[name]
            yield [
                f"{one.attack.connections:,} × {one.attack.name}" if name == CACHED else "",
                name,
                f"{quiet.p50:,.0f} / {quiet.p99:,.0f}",
                f"{during.p50:,.0f} / {during.p99:,.0f}",
                _format_statuses(during),
                f"{after.p50:,.0f} / {after.p99:,.0f}",
            ]


def _attack_rows(measurements: list[AttackMeasurement]) -> Iterator[list[str]]:
    for one in measurements:
        before, peak, after = one.memory
        yield [
            f"{one.attack.connections:,} × {one.attack.name}",
            f"{one.attack_result.rate:,.1f}",
            _format_statuses(one.attack_result),
            f"{one.server_cpu:.2f} + {one.database_cpu:.2f}",
            f"{one.attack_result.cpu:.2f} + {one.victims_cpu:.2f}",
            f"{before:,.0f} → {peak:,.0f} → {after:,.0f}",
            f"{one.recovery_seconds:.1f}",
            f"{one.starved['answered']:,} of {one.qualifying:,}" if one.qualifying else "",
            "; ".join(one.list_broken_limits()) or "met",
        ]


VICTIM_COLUMNS = ("attack", "other client", "quiet p50 / p99", "during p50 / p99", "statuses during", "after")
ATTACK_COLUMNS = (
    "attack", "responses/s", "statuses", "CPU: server + database", "CPU: attackers + others", "memory MB",
    "recovered after s", "last known responses", "limits",
)  # fmt: skip


def _render_page(measurements: list[AttackMeasurement], arguments: argparse.Namespace) -> str:
    size: Size = arguments.size
    broken_count = sum(bool(one.list_broken_limits()) for one in measurements)
    descriptions = "\n".join(
        f"- **{one.name}**: {one.connections:,} connections from {_format_sources(one)}; {one.description}."
        for one in ATTACKS
    )
    return f"""# Fairness

Measured by `just bench-fairness` on {datetime.now(UTC):%Y-%m-%d %H:%M} UTC at commit {describe_commit()}, on
{os.cpu_count()} cores that PostgreSQL, the server, the attackers and the other clients share. The load average at
the end was {os.getloadavg()[0]:.1f}.

The site has {size.events:,} events, {size.upcoming:,} of them upcoming, and {size.venues:,} venues. The server is
`kalends serve --workers {WORKERS}` with default settings and no proxy. Attackers and other clients have different
IP addresses. Every {1000 * arguments.every:.0f} ms, three other clients open a new connection and request a list
that is in the response cache, a list that is not (with a new start date each time), and `/healthz`. Every second, an
editor saves an event, and {KNOWN_LISTS} further clients from as many IP addresses request the known lists, one each:
they contain the event, so each save makes their responses outdated, and all processes have rendered them before the
attack. An attack lasts {arguments.seconds:.0f} s. An attacker sends the next request as soon as it gets a response,
or {1000 * arguments.pause:.0f} ms after an error (429, 503), and reopens connections that the server closes.

{descriptions}

Times are in milliseconds; `{NO_STATUS}` means that there was no response within 10 s, and `200{OUTDATED}` is the last
known response in place of 503 ([decision 0034](../decisions/0034-outdated-responses.md)). CPU is in cores.

{render_table(VICTIM_COLUMNS, list(_client_rows(measurements)))}

## Limits

During an attack, the p99 of the cached list must be below {MAX_CACHED_RATIO:.0f} × its quiet p99, the uncached list
must have no 5xx and a p99 below {MAX_UNCACHED_MS:,.0f} ms, the known lists must have no 5xx, the p99 of `/healthz`
must be below {MAX_HEALTH_MS:.0f} ms, and the memory of the server must grow by less than {MAX_GROWTH_MB:.0f} MB.
Of the reads without a free connection, the table counts those whose last known response may be used, and how many of
them it has answered.
**All limits are met in {len(measurements) - broken_count} of {len(measurements)} attacks.**

{render_table(ATTACK_COLUMNS, list(_attack_rows(measurements)))}
"""


def _format_sources(one: Attack) -> str:
    return "one IP address" if len(one.sources) == 1 else f"{len(one.sources)} IP addresses"


def _log(text: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())

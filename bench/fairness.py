"""How other clients fare while one client, or several, do the worst they can.

A site of 200,000 events, 60,000 of them to come, and a server with two processes and default settings. For each
attack other clients ask for a cached list, an uncached list and /healthz before, during and after it. Ends with 1
when a limit is broken. Writes docs/performance/fairness.md.
"""

import argparse
import asyncio
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import psycopg
from psycopg import sql

from bench.attacks import (
    ATTACKS,
    CACHED,
    HEALTH,
    NOTHING,
    UNCACHED,
    VICTIMS,
    Attack,
    Attacked,
    Known,
    Seen,
    attack,
    watch,
)
from bench.load import Processes
from bench.report import commit, table
from bench.stage import NS, fill_world, find_cluster
from kalends.store.migrations import migrate, newest_revision
from tests.security.sockets import allow_files, memory_mb
from tests.servers import Server
from tools import postgres

WORKERS = 2
SETTINGS = {
    **postgres.THROWAWAY,
    "shared_buffers": "512MB",
    "maintenance_work_mem": "512MB",
    "max_wal_size": "4GB",
}
AFTER, SETTLING = 4.0, 60
QUIET_TIMES, UNCACHED_MS, HEALTH_MS, MORE_MB = 10.0, 1000.0, 100.0, 100.0


@dataclass(frozen=True)
class Size:
    events: int
    upcoming: int
    venues: int


FULL, QUICK = Size(200_000, 60_000, 5_000), Size(20_000, 6_000, 500)


@dataclass(frozen=True)
class Stage:
    server: Server
    cluster: postgres.Server
    known: Known


@dataclass(frozen=True)
class Measured:
    """One attack. CPU in cores, memory of all server processes in megabytes."""

    attack: Attack
    quiet: dict[str, Seen]
    during: dict[str, Seen]
    after: dict[str, Seen]
    attacked: Attacked
    victims_cpu: float
    server_cpu: float
    database_cpu: float
    memory: tuple[float, float, float]  # before, most, after
    recovered: float  # seconds from the end of the attack to the last bad response

    def broken(self) -> list[str]:
        """The limits that do not hold, in words."""
        quiet, during = self.quiet, self.during
        most = QUIET_TIMES * quiet[CACHED].p99
        checks = (
            (during[CACHED].failed == 0, f"cached: {during[CACHED].failed} failed"),
            (during[CACHED].p99 < most, f"cached p99 {during[CACHED].p99:,.0f} ms, not below {most:,.0f}"),
            (during[UNCACHED].failed == 0, f"uncached: {during[UNCACHED].failed} failed"),
            (during[UNCACHED].p99 < UNCACHED_MS, f"uncached p99 {during[UNCACHED].p99:,.0f} ms"),
            (during[HEALTH].failed == 0, f"/healthz: {during[HEALTH].failed} failed"),
            (during[HEALTH].p99 < HEALTH_MS, f"/healthz p99 {during[HEALTH].p99:,.0f} ms"),
            (self.memory[1] - self.memory[0] < MORE_MB, f"{self.memory[1] - self.memory[0]:,.0f} MB more"),
        )
        return [text for kept, text in checks if not kept]


def main() -> int:
    asked = _read_arguments()
    # Each process of the server has as many files as this one.
    allow_files(8_000)
    with ExitStack() as stack:
        stage = _set_up(asked, stack)
        measured = [_measure(stage, one, asked) for one in ATTACKS if asked.only in one.name]
    page = _page(measured, asked)
    print(page)  # noqa: T201
    if asked.write:
        asked.write.parent.mkdir(parents=True, exist_ok=True)
        asked.write.write_text(page)
    return 1 if any(one.broken() for one in measured) else 0


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
    asked = parser.parse_args()
    asked.size = QUICK if asked.quick else FULL
    if asked.quick:
        asked.seconds, asked.quiet = 5, 4
    if (asked.quick or asked.only) and asked.write == parser.get_default("write"):
        asked.write = None
    asked.directory.mkdir(parents=True, exist_ok=True)
    return asked


# The site and its server -----------------------------------------------------------------------


def _set_up(asked: argparse.Namespace, stack: ExitStack) -> Stage:
    cluster = find_cluster(asked.directory, stack, SETTINGS)
    url = _find_site(cluster, asked.size)
    log = asked.directory / "server.log"
    log.unlink(missing_ok=True)
    server = stack.enter_context(Server.start(url, log=log, workers=WORKERS))
    with psycopg.connect(url) as connection:
        categories = tuple(row[0] for row in connection.execute("SELECT id FROM categories ORDER BY id").fetchall())
        tags = tuple(row[0] for row in connection.execute("SELECT id FROM tags ORDER BY id").fetchall())
    port = int(server.address.rpartition(":")[2])
    for path in (f"{NS}/events", "/events.ics"):
        for _ in range(4 * WORKERS):  # Each process has them in memory.
            httpx.get(server.address + path, timeout=120).raise_for_status()
    return Stage(server, cluster, Known(port, categories, tags))


def _find_site(cluster: postgres.Server, size: Size) -> str:
    """Makes a site of this size, or finds the one of an earlier run.

    Its name tells what it was made from: another day or another schema needs another one, and replaces it.
    """
    kind = f"fairness_{size.events}_{size.upcoming}_{size.venues}"
    name = f"{kind}_{newest_revision()}_{datetime.now(UTC):%Y%m%d}"
    url = cluster.url_of(name)
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        found = [row[0] for row in connection.execute("SELECT datname FROM pg_database").fetchall()]
        for old in found:
            if old.startswith(f"{kind}_") and old != name:
                connection.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(old)))
        if name not in found:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    migrate(url)
    _tell(f"site {name}")
    return fill_world(url, size.events, "--upcoming", str(size.upcoming), "--venues", str(size.venues)).url


# The measurements ------------------------------------------------------------------------------


def _measure(stage: Stage, one: Attack, asked: argparse.Namespace) -> Measured:
    """Quiet, during and after one attack."""
    _tell(f"{one.name}: {one.connections} connections, {one.about}")
    known, processes = stage.known, Processes(stage.cluster.pid, stage.server.process.pid)
    # A process for each side and attack: neither waits for the other, and the CPU of each is its own.
    with _processes() as start:
        quiet, _ = start(watch, known.port, asked.quiet, asked.every).result()
    _tell(f"  quiet   {_in_words(quiet)}")
    before, began = memory_mb(stage.server), processes.seconds()
    with _processes() as start:
        attackers = start(attack, one, known, asked.seconds, asked.pause)
        time.sleep(1)
        victims = start(watch, known.port, asked.seconds - 1, asked.every)
        most = max(_memory_while(stage.server, attackers), before)
        attacked = attackers.result()
        ended, used = time.time(), processes.seconds()
        during, victims_cpu = victims.result()
        after, _ = start(watch, known.port, AFTER, asked.every).result()
        recovered = max(
            0.0, *[_last_bad(seen) - ended for seen in (during, after, *_settle(start, known.port, asked))]
        )
    _tell(f"  during  {_in_words(during)}")
    _tell(f"  after   {_in_words(after)}; recovered after {recovered:.1f} s")
    _tell(f"  attackers {attacked.rate:,.1f}/s: {_statuses(attacked)}")
    return Measured(
        one, quiet, during, after, attacked, victims_cpu,
        (used[0] - began[0]) / asked.seconds, (used[1] - began[1]) / asked.seconds,
        (before, most, memory_mb(stage.server)),
        recovered,
    )  # fmt: skip


def _last_bad(seen: dict[str, Seen]) -> float:
    return max(one.last_bad for one in seen.values())


def _settle(start: Callable[..., "Future[Any]"], port: int, asked: argparse.Namespace) -> Iterator[dict[str, Seen]]:
    """Waits until a second passes without a bad response, so that one attack does not count for the next."""
    for _ in range(SETTLING):
        seen, _ = start(watch, port, 1.0, asked.every).result()
        yield seen
        if not _last_bad(seen):
            return


class _processes:
    """Starts coroutines, each in a process of its own."""

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


def _memory_while(server: Server, work: "Future[Any]") -> float:
    most = 0.0
    while not work.done():
        most = max(most, memory_mb(server))
        time.sleep(0.25)
    return most


# The report ------------------------------------------------------------------------------------


def _in_words(seen: dict[str, Seen]) -> str:
    return "; ".join(f"{name} {one.p50:,.0f} / {one.p99:,.0f} ms {_statuses(one)}" for name, one in seen.items())


def _statuses(seen: Seen | Attacked) -> str:
    return ", ".join(f"{number:,} × {status}" for status, number in sorted(seen.statuses.items()))


def _rows(measured: list[Measured]) -> Iterator[list[str]]:
    for one in measured:
        for name in VICTIMS:
            quiet, during, after = one.quiet[name], one.during[name], one.after[name]
            yield [
                f"{one.attack.connections:,} × {one.attack.name}" if name == CACHED else "",
                name,
                f"{quiet.p50:,.0f} / {quiet.p99:,.0f}",
                f"{during.p50:,.0f} / {during.p99:,.0f}",
                _statuses(during),
                f"{after.p50:,.0f} / {after.p99:,.0f}",
            ]


def _attack_rows(measured: list[Measured]) -> Iterator[list[str]]:
    for one in measured:
        before, most, after = one.memory
        yield [
            f"{one.attack.connections:,} × {one.attack.name}",
            f"{one.attacked.rate:,.1f}",
            _statuses(one.attacked),
            f"{one.server_cpu:.2f} + {one.database_cpu:.2f}",
            f"{one.attacked.cpu:.2f} + {one.victims_cpu:.2f}",
            f"{before:,.0f} → {most:,.0f} → {after:,.0f}",
            f"{one.recovered:.1f}",
            "; ".join(one.broken()) or "kept",
        ]


VICTIM_COLUMNS = ("attack", "other client", "quiet p50 / p99", "during p50 / p99", "statuses during", "after")
ATTACK_COLUMNS = (
    "attack", "responses/s", "statuses", "CPU: server + database", "CPU: attackers + others", "memory MB",
    "recovered after s", "limits",
)  # fmt: skip


def _page(measured: list[Measured], asked: argparse.Namespace) -> str:
    size: Size = asked.size
    broken = sum(bool(one.broken()) for one in measured)
    described = "\n".join(
        f"- **{one.name}**: {one.connections:,} connections from {_addresses(one)}; {one.about}." for one in ATTACKS
    )
    return f"""# Fairness

Made by `just bench-fairness` on {datetime.now(UTC):%Y-%m-%d %H:%M} UTC at commit {commit()}, on {os.cpu_count()}
cores that PostgreSQL, the server, the attackers and the other clients share; load average at the end
{os.getloadavg()[0]:.1f}.

A site of {size.events:,} events, {size.upcoming:,} of them to come, and {size.venues:,} venues; `kalends serve
--workers {WORKERS}` with default settings and no proxy. Attackers and other clients have different addresses. Every
{1000 * asked.every:.0f} ms three other clients ask on a new connection: for a list that is in the response cache, for
one that is not (another start each time), and for `/healthz`. An attack lasts {asked.seconds:.0f} s. A connection of
an attacker asks again as soon as it is answered, {1000 * asked.pause:.0f} ms after a refusal (429, 503); a connection
that the server closes is opened again.

{described}

Times in milliseconds; `{NOTHING}` is a request without a response in 10 s. CPU in cores.

{table(VICTIM_COLUMNS, list(_rows(measured)))}

## Limits

During an attack: p99 of the cached list below {QUIET_TIMES:.0f} × its quiet p99; the uncached list without 5xx and
p99 below {UNCACHED_MS:,.0f} ms; `/healthz` p99 below {HEALTH_MS:.0f} ms; the memory of the server grows by less than
{MORE_MB:.0f} MB. **{len(measured) - broken} of {len(measured)} attacks keep all of them.**

{table(ATTACK_COLUMNS, list(_attack_rows(measured)))}
"""


def _addresses(one: Attack) -> str:
    return "one address" if len(one.sources) == 1 else f"{len(one.sources)} addresses"


def _tell(text: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())

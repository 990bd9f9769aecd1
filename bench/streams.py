"""Live lists: what idle connections cost, and how late messages arrive on a busy site.

`idle` opens connections to a process for live lists, on two empty sites, and measures its memory, CPU time and
statements. `busy` follows 200 lists of a site of 20,000 events with 1,000 connections while five events per second
change. It counts evaluations, and measures the time from the response to a write to each message that shows it. The
exit code is 1 if the 99th percentile is above its limit.
"""

import argparse
import asyncio
import json
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg
from rich.console import Console

from bench.cpu_time import cpu_seconds, list_process_tree
from bench.seeded_sites import NS, SETTINGS, SeededSite, find_cluster, make_database, make_site
from kalends.push.api.live_lists import StreamLimits
from kalends.store.sites import add_host, add_site
from tests.servers import Server, find_free_port
from tools import postgres

HOSTS = ("a.test", "b.test")
LISTS, CONNECTIONS, WRITES_PER_SECOND = 200, 1000, 5.0
MAX_P99_SECONDS = 2.0
FAILED = "failed"
BATCH = 100  # connections that are opened at the same time


@dataclass
class Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


@dataclass
class Lags:
    """When writes were acknowledged, by the title that they set, and the lags of the messages that show it."""

    acknowledged: dict[str, float] = field(default_factory=dict[str, float])
    received: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    messages: int = 0

    def seconds(self) -> list[float]:
        return [max(0.0, at - self.acknowledged[title]) for title, at in self.received if title in self.acknowledged]


async def follow(port: int, path: str, host: str, address: str) -> Connection:
    """Open a stream as a client behind a trusted proxy; return after its first bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4 * 1024 * 1024)
    head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\nX-Forwarded-For: {address}\r\n\r\n"
    writer.write(head.encode())
    status = await asyncio.wait_for(reader.readline(), 60)
    if b" 200 " not in status:
        raise ConnectionError(status.decode().strip())
    await asyncio.wait_for(reader.readuntil(b"retry: "), 60)
    return Connection(reader, writer)


async def follow_all(count: int, make: Callable[[int], Awaitable[Connection]]) -> list[Connection]:
    connections: list[Connection] = []
    for first in range(0, count, BATCH):
        connections += await asyncio.gather(*[make(number) for number in range(first, min(first + BATCH, count))])
    return connections


def make_address(number: int) -> str:
    """Return an address that 40 connections share."""
    return f"10.{number // 10_000}.{number // 40 % 250}.7"


def read_usage(server: Server) -> tuple[float, float]:
    """Return the memory in MB and the CPU seconds of a server and its processes."""
    tree = list_process_tree(server.process.pid)
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in tree]
    return sum(pages) * resource.getpagesize() / 1e6, sum(map(cpu_seconds, tree))


def count_statements(cluster: postgres.Server, database: str) -> int:
    """Return the transactions of a database; a single statement is one, too."""
    with psycopg.connect(cluster.url) as connection:
        query = "SELECT xact_commit FROM pg_stat_database WHERE datname = %s"
        row = connection.execute(query, [database]).fetchone()
    return int(row[0]) if row else 0


async def measure_idle(cluster: postgres.Server, directory: Path, stack: ExitStack, seconds: float) -> list[str]:
    name = "streams_idle"
    url = make_database(cluster.url, name)
    await add_host(url, HOSTS[0], 1)
    await add_site(url, HOSTS[1], "Second")
    server, port, _ = start_streams(url, directory, stack)
    path, lines, connections = f"{NS}/events", list[str](), list[Connection]()
    base, _ = read_usage(server)
    for count in (1, 1000, StreamLimits().streams):
        started, opened = time.monotonic(), len(connections)
        connections += await follow_all(
            count - opened, lambda n, o=opened: follow(port, path, HOSTS[(n + o) % 2], make_address(n + o))
        )
        took = time.monotonic() - started
        await asyncio.sleep(3)
        memory, cpu = read_usage(server)
        statements = count_statements(cluster, name)
        await asyncio.sleep(seconds)
        cpu = (read_usage(server)[1] - cpu) / seconds
        rate = (count_statements(cluster, name) - statements) / seconds
        lines.append(
            f"{count} connections, opened in {took:.1f} s: {memory:.0f} MB ({base:.0f} MB without any), "
            f"{cpu * 100:.1f} % of a core, {rate:.1f} transactions/s"
        )
    try:
        await follow(port, path, HOSTS[0], "10.99.0.1")
    except ConnectionError as refusal:
        lines.append(f"one more: {refusal}")
    alive = sum(not connection.reader.at_eof() for connection in connections)
    lines.append(f"{alive} connections are still open")
    started = time.monotonic()
    server.process.terminate()
    await asyncio.gather(*[read_to_end(connection) for connection in connections])
    lines.append(f"all were closed {time.monotonic() - started:.2f} s after SIGTERM")
    return lines


async def read_to_end(connection: Connection) -> None:
    try:
        while await connection.reader.read(65536):
            pass
    except ConnectionError:
        pass
    connection.writer.close()


def start_streams(url: str, directory: Path, stack: ExitStack) -> tuple[Server, int, int]:
    port, metrics_port = find_free_port(), find_free_port()
    environment = {
        "KALENDS_TRUSTED_PROXIES": "127.0.0.1",
        "KALENDS_BASE_URL": "http://calendar.test",
        "KALENDS_STREAM_METRICS_PORT": str(metrics_port),
    }
    log = directory / f"streams-{port}.log"
    server = Server.start(url, log=log, port=port, environment=environment, command_name="stream")
    return stack.enter_context(server), port, metrics_port


def read_runs(port: int) -> dict[str, float]:
    """Return the evaluations by outcome since the start."""
    text = httpx.get(f"http://127.0.0.1:{port}/metrics").text
    lines = [line for line in text.splitlines() if line.startswith("kalends_stream_runs_total{")]
    return {line.partition('outcome="')[2].partition('"')[0]: float(line.rpartition(" ")[2]) for line in lines}


def choose_lists(site: SeededSite) -> list[str]:
    """Return the paths of different lists: venues, organizers, categories, tags, weeks, pages and searches."""
    with psycopg.connect(site.url) as connection:
        ids = {
            kind: [row[0] for row in connection.execute(f"SELECT id FROM {kind} ORDER BY id LIMIT 45").fetchall()]
            for kind in ("venues", "organizers", "categories", "tags")
        }
    names = {"venues": "venue", "organizers": "organizer", "categories": "categories", "tags": "tags"}
    paths = [f"?{names[kind]}={record}" for kind, records in ids.items() for record in records]
    today = datetime.now(UTC).date()
    for week in range(30):
        first = today + timedelta(days=7 * week)
        paths.append(f"?start_date={first}&end_date={first + timedelta(days=6)}&per_page=20")
    paths += [f"?page={page}" for page in range(1, 21)]
    return [f"{NS}/events{path}" for path in paths][:LISTS]


async def measure_busy(site: SeededSite, directory: Path, stack: ExitStack, seconds: float) -> list[str]:
    log = directory / "server.log"
    server = stack.enter_context(
        Server.start(site.url, log=log, environment={"KALENDS_BASE_URL": "http://calendar.test"})
    )
    streams, port, metrics_port = start_streams(site.url, directory, stack)
    paths = choose_lists(site)
    lags = Lags()
    connections = await follow_all(
        CONNECTIONS, lambda n: follow(port, paths[n % len(paths)], "calendar.test", make_address(n))
    )
    readers = [asyncio.create_task(read_messages(connection, lags)) for connection in connections]
    await asyncio.sleep(3)
    before, usage, lags.messages = read_runs(metrics_port), read_usage(streams), 0
    with psycopg.connect(site.url) as connection:
        query = "SELECT id FROM events WHERE listed AND start_utc BETWEEN now() AND now() + interval '200 days'"
        event_ids = [row[0] for row in connection.execute(query).fetchall()]
    await asyncio.to_thread(write_steadily, server, site, event_ids, seconds, lags)
    await asyncio.sleep(5)
    after, later = read_runs(metrics_port), read_usage(streams)
    for reader in readers:
        reader.cancel()
    for connection in connections:
        connection.writer.close()
    runs = {name: after.get(name, 0) - before.get(name, 0) for name in ("changed", "same")}
    found = sorted(lags.seconds())
    cuts = statistics.quantiles(found, n=100)
    total = sum(runs.values()) or 1
    lines = [
        f"{len(connections)} connections, {len(paths)} lists, {len(lags.acknowledged)} writes in {seconds:.0f} s",
        f"{total:.0f} evaluations, {runs['changed'] / total * 100:.0f} % of them found a difference",
        f"{lags.messages} messages; lag p50 {cuts[49]:.2f} s, p99 {cuts[98]:.2f} s, most {found[-1]:.2f} s",
        f"{(later[1] - usage[1]) / (seconds + 5) * 100:.0f} % of a core, {later[0]:.0f} MB",
    ]
    return lines if cuts[98] <= MAX_P99_SECONDS else [*lines, f"{FAILED}: p99 is above {MAX_P99_SECONDS:.0f} s"]


def write_steadily(server: Server, site: SeededSite, ids: list[int], seconds: float, lags: Lags) -> None:
    """Change titles, times and states of random events at a fixed rate."""
    rng = random.Random(3)  # noqa: S311  Not a secret.
    with server.client(login=site.login, password=site.password) as client:
        started = time.monotonic()
        for number in range(int(seconds * WRITES_PER_SECOND)):
            time.sleep(max(0.0, started + number / WRITES_PER_SECOND - time.monotonic()))
            title = f"Bench {time.time_ns()}"
            values: dict[str, Any] = {"title": title}
            if number % 5 == 0:
                values["event_status"] = rng.choice(("scheduled", "cancelled"))
            client.patch(f"{NS}/events/{rng.choice(ids)}", json=values).raise_for_status()
            lags.acknowledged[title] = time.monotonic()


async def read_messages(connection: Connection, lags: Lags) -> None:
    while True:
        line = await connection.reader.readline()
        if not line:
            return
        if line.startswith(b"data: "):
            received_at = time.monotonic()
            data: Mapping[str, Any] = json.loads(line[6:])
            if "since" in data:
                lags.messages += 1
                lags.received += [(record["title"], received_at) for record in data["events"]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--directory", type=Path, default=Path(".local/bench"))
    parser.add_argument("--only", choices=("idle", "busy"))
    options = parser.parse_args()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    console = Console(width=140)
    lines: list[str] = []
    with ExitStack() as stack, tempfile.TemporaryDirectory() as logs:
        cluster = find_cluster(options.directory, stack, SETTINGS)
        if options.only != "busy":
            lines += asyncio.run(measure_idle(cluster, Path(logs), stack, options.seconds))
        if options.only != "idle":
            site = make_site(cluster, options.events)
            lines += asyncio.run(measure_busy(site, Path(logs), stack, options.seconds))
        for line in lines:
            console.print(line)
    return int(any(line.startswith(FAILED) for line in lines))


if __name__ == "__main__":
    sys.exit(main())

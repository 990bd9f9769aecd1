"""Many people edit in the console at once: autosave must neither raise revisions nor slow down the readers.

wrk reads public pages and lists without editors and with them, in alternation. Each editor saves a draft as often as
the form of an event does while somebody types. In the end the server is killed while all of them save, and the drafts
are read: nothing older than the last acknowledged autosave may be stored.
The latency of a round counts only if the host has left the CPU to this machine in both of its halves.
The exit code is 1 if a revision was raised, a draft was lost, more than three seconds of typing were not saved, or
p99 of the readers exceeds the limit.
"""

import argparse
import asyncio
import math
import secrets
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psycopg
from rich.console import Console
from rich.progress import track

from bench.load import Processes, Sample, run_wrk
from bench.seeded_sites import NS, SeededSite, find_cluster, make_site, start_server
from kalends.accounts.operations import sign_in_methods
from kalends.http.auth import COOKIE
from tests.security.wire_client import Connection, json_request
from tests.servers import Server

SAVE_INTERVAL = 2.8  # DELAY in kalends/console/static/autosave.js
MAX_UNSAVED = 3.0  # seconds of typing
READERS = 8
FIRST_USER_ID = 1_000_000
MAX_RATIO = 1.2
# p99 of a second of reads scatters by some milliseconds on a shared machine.
SLACK_MS = 3.0
# Share of the CPU time that the host of a virtual machine takes away. Above it, the latencies are those of the host.
MAX_STOLEN = 0.05
PATHS = (f"{NS}/events", "/events/month/", "/events/list/")


@dataclass
class Editor:
    """A session in the console and the draft that it edits."""

    token: str
    key: str
    delay: float  # before the first autosave, so that they are spread evenly
    acknowledged: int = 0
    saved_at: float = 0.0  # when the last acknowledged autosave was sent
    latencies: list[float] = field(default_factory=list[float])


@dataclass(frozen=True)
class Round:
    """p99 of the readers in milliseconds, without and with editors, and the share of the CPU that the host took."""

    quiet: float
    busy: float
    stolen: float


def main() -> int:
    arguments = _read_arguments()
    console = Console()
    with ExitStack() as stack:
        site, server, processes = start_console(arguments.directory, arguments.events, stack)
        editors = add_sessions(site.url, arguments.editors)
        before = read_revision(site.url)
        rounds = _measure(server.base_url, processes, editors, arguments)
        killed_at = asyncio.run(kill_while_editing(server, editors))
        lost = find_lost(site.url, editors)
        raised = read_revision(site.url) - before
    counted = [entry for entry in rounds if entry.stolen <= MAX_STOLEN] or rounds
    quiet = statistics.median(entry.quiet for entry in counted)
    busy = statistics.median(entry.busy for entry in counted)
    latencies = sorted(latency for editor in editors for latency in editor.latencies)
    saved = sum(editor.acknowledged for editor in editors)
    p95 = latencies[int(len(latencies) * 0.95)] if latencies else 0.0
    console.print(f"{len(counted)} of {len(rounds)} rounds undisturbed by the host")
    console.print(f"{arguments.editors} editors, {saved} autosaves, p95 of autosave {p95 * 1000:.0f} ms")
    console.print(f"p99 of readers: {quiet:.1f} ms without editors, {busy:.1f} ms with them ({busy / quiet:.2f} ×)")
    unsaved = max(killed_at - editor.saved_at for editor in editors)
    console.print(f"revisions raised: {raised}; drafts lost after kill -9: {lost}; unsaved typing ≤ {unsaved:.2f} s")
    is_slow = busy > quiet * MAX_RATIO + SLACK_MS
    return 1 if raised or lost or is_slow or unsaved > MAX_UNSAVED or not saved else 0


def start_console(directory: Path, events: int, stack: ExitStack) -> tuple[SeededSite, Server, Processes]:
    """Start a server on a site with this many events, until the stack is closed."""
    cluster = find_cluster(directory, stack)
    site = make_site(cluster, events)
    server = start_server(site, directory / "console.log", stack, megabytes=64)
    return site, server, Processes(cluster.pid, server.process.pid)


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--editors", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=5, help="of each half of a round")
    parser.add_argument("--rounds", type=int, default=120)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--directory", type=Path, default=Path(".local/speed"), help="where the databases are kept")
    parser.add_argument("--quick", action="store_true", help="10 editors, 2 rounds of 4 seconds, 5,000 events")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.editors, arguments.rounds, arguments.seconds, arguments.events = 10, 2, 4, 5_000
    return arguments


def add_sessions(site_url: str, count: int, role: str = "editor") -> list[Editor]:
    """Add users with a session each, as signing in would; signing in itself is not measured."""
    editors = [
        Editor(secrets.token_urlsafe(32), f"bench-{number}", SAVE_INTERVAL * number / count)
        for number in range(count)
    ]
    with psycopg.connect(site_url, autocommit=True) as connection:
        for number, editor in enumerate(editors):
            connection.execute(
                """INSERT INTO users (site_id, id, login, role) SELECT min(id), %s, %s, %s FROM sites
                    ON CONFLICT (site_id, id) DO UPDATE SET role = excluded.role""",
                [FIRST_USER_ID + number, f"bench-{number}", role],
            )
            connection.execute(
                """INSERT INTO sessions (site_id, token_hash, user_id, created_at, seen_at, reauthenticated_at,
                        client_ip, user_agent)
                    SELECT min(id), %s, %s, now(), now(), now(), '127.0.0.1', 'bench' FROM sites""",
                [sign_in_methods.hash_token(editor.token), FIRST_USER_ID + number],
            )
    return editors


def read_revision(site_url: str) -> int:
    with psycopg.connect(site_url) as connection:
        row = connection.execute("SELECT sum(revision)::bigint FROM sites").fetchone()
    return int(row[0]) if row else 0


def _measure(
    base_url: str, processes: Processes, editors: list[Editor], arguments: argparse.Namespace
) -> list[Round]:
    rounds: list[Round] = []
    for number in track(range(arguments.rounds), description="Rounds"):
        url = base_url + PATHS[number % len(PATHS)]
        read = partial(run_wrk, url, READERS, arguments.seconds, processes)
        before = _read_cpu_times()
        quiet = read().p99
        busy = asyncio.run(_read_while_editing(read, base_url, editors, arguments.seconds))
        rounds.append(Round(quiet, busy, _stolen_share(before, _read_cpu_times())))
    return rounds


def _read_cpu_times() -> list[int]:
    """Return the ticks of all CPUs: user, nice, system, idle, waiting, interrupts, soft interrupts, stolen."""
    return [int(ticks) for ticks in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]


def _stolen_share(before: list[int], after: list[int]) -> float:
    ticks = [end - start for start, end in zip(before, after, strict=True)]
    return ticks[-1] / max(1, sum(ticks))


async def _read_while_editing(
    read: Callable[[], Sample], base_url: str, editors: list[Editor], seconds: float
) -> float:
    ends_at = time.monotonic() + seconds
    editing = [asyncio.create_task(edit(base_url, editor, ends_at)) for editor in editors]
    result = await asyncio.to_thread(read)
    await asyncio.gather(*editing)
    return result.p99


async def edit(base_url: str, editor: Editor, ends_at: float) -> None:
    """Save a draft every few seconds. The number in the title tells which state was stored.

    The client is a plain one, because it shares the CPU with the server and the readers.
    """
    headers = {"cookie": f"{COOKIE}={editor.token}", "sec-fetch-site": "same-origin", "accept": "application/json"}
    connection = Connection(base_url)
    await asyncio.sleep(editor.delay)
    while time.monotonic() < ends_at:
        number = editor.acknowledged + 1
        started = time.perf_counter()
        body = {"fields": [["title", f"Concert {number}"], ["description", "<p>Text of the event.</p>" * 20]]}
        request = json_request("POST", f"/console/drafts/events/{editor.key}", body, **headers)
        response = await connection.send(request)
        if response.status != 200:
            raise ConnectionError(response.text)
        editor.latencies.append(time.perf_counter() - started)
        editor.acknowledged, editor.saved_at = number, started
        await asyncio.sleep(SAVE_INTERVAL)
    connection.close()


async def kill_while_editing(server: Server, editors: list[Editor]) -> float:
    """Kill the server after each editor has saved at least once more, and return the time of it."""
    editing = [asyncio.create_task(edit(server.base_url, editor, math.inf)) for editor in editors]
    await asyncio.sleep(SAVE_INTERVAL * 2.5)
    killed_at = time.perf_counter()
    await asyncio.to_thread(server.kill)
    results = await asyncio.gather(*editing, return_exceptions=True)
    if unexpected := [error for error in results if not isinstance(error, ConnectionError)]:
        raise AssertionError(f"not the end of the server: {unexpected[0]!r}")
    return killed_at


def find_lost(site_url: str, editors: list[Editor]) -> int:
    """Return the number of editors whose last acknowledged draft is not stored."""
    with psycopg.connect(site_url) as connection:
        rows = connection.execute("SELECT draft_key, fields -> 0 ->> 1 FROM drafts").fetchall()
    stored = {key: int(title.rpartition(" ")[2]) for key, title in rows if key.startswith("bench")}
    return sum(editor.acknowledged > stored.get(editor.key, 0) for editor in editors)


if __name__ == "__main__":
    sys.exit(main())

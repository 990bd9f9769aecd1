"""How a long write affects others: the waits of another writer for the lock of the site, and latencies of readers."""

import http.client
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlsplit

import psycopg
from rich.console import Console

from bench.cpu_time import APPLICATION_NAME, TICKS, list_process_tree

READS_PER_SECOND = 20
# Pauses of the other writer, so that it hardly delays the measured one.
PROBE_PAUSE = 0.002


@dataclass
class Effects:
    """Seconds: waits for the lock, and latencies of reads."""

    waits: list[float] = field(default_factory=list[float])
    latencies: list[float] = field(default_factory=list[float])
    elapsed: float = 0.0

    @property
    def longest_wait(self) -> float:
        return max(self.waits, default=0.0)

    @property
    def p99(self) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] if ordered else 0.0


@contextmanager
def watch(database_url: str, base_url: str = "", paths: Sequence[str] = ()) -> Iterator[Effects]:
    """Lock the site again and again, and read pages at a fixed rate, until the block ends.

    A writer that comes while the site is locked waits until the end of the transaction, so the longest of many waits
    is about the longest time for which the site was locked.
    """
    effects, end = Effects(), Event()
    threads = [Thread(target=_probe, args=(database_url, effects, end), daemon=True)]
    if base_url:
        threads.append(Thread(target=_read, args=(base_url, paths, effects, end), daemon=True))
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    try:
        yield effects
    finally:
        effects.elapsed = time.perf_counter() - started
        end.set()
        for thread in threads:
            thread.join(60)


def _probe(database_url: str, effects: Effects, end: Event) -> None:
    with psycopg.connect(database_url, autocommit=True, application_name=APPLICATION_NAME) as connection:
        while not end.is_set():
            started = time.perf_counter()
            connection.execute("SELECT revision FROM sites WHERE id = 1 FOR NO KEY UPDATE")
            effects.waits.append(time.perf_counter() - started)
            end.wait(PROBE_PAUSE)


def _read(base_url: str, paths: Sequence[str], effects: Effects, end: Event) -> None:
    """Read at a fixed rate; a late response delays those behind it, and that counts as their latency."""
    chance, due = random.Random(1), time.perf_counter()  # noqa: S311
    connection = http.client.HTTPConnection(urlsplit(base_url).netloc, timeout=60)
    while not end.is_set():
        end.wait(max(0.0, due - time.perf_counter()))
        connection.request("GET", chance.choice(paths))
        response = connection.getresponse()
        response.read()
        if response.status >= 500:
            raise AssertionError(f"{response.status} {response.reason}")
        effects.latencies.append(time.perf_counter() - due)
        due = max(due + 1 / READS_PER_SECOND, time.perf_counter())
    connection.close()


def report_problems(console: Console, problems: Sequence[str]) -> int:
    """Print the limits that are exceeded; return the exit code."""
    for problem in problems:
        console.print(f"exceeded: {problem}")
    return int(bool(problems))


def cluster_seconds(postmaster_pid: int) -> float:
    """Return the CPU time of a PostgreSQL, including that of sessions that have ended."""
    total = 0.0
    for pid in list_process_tree(postmaster_pid):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except FileNotFoundError:
            continue
        last = 15 if pid == postmaster_pid else 13
        total += sum(map(int, fields[11:last])) / TICKS
    return total

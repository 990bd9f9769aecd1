"""CPU time per request of servers and their database sessions, measured alternately at two sizes."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import cycle, islice
from statistics import median
from time import monotonic
from types import TracebackType
from typing import Self

import httpx
import psycopg

from bench.cpu_time import APPLICATION_NAME, cpu_seconds, list_process_tree, list_session_pids
from bench.sized_sites import SizedSite
from tests.servers import Server

WARM_UP_REQUESTS = 12  # More than five, after which PostgreSQL has chosen between generic and custom plans.
MAX_ROUND_SECONDS = 4.0  # Maximum duration of a round; for slow requests a few suffice.


@dataclass
class Measurement:
    """CPU milliseconds per request, one entry per round."""

    total: int = 0
    servers: list[float] = field(default_factory=list[float])
    databases: list[float] = field(default_factory=list[float])

    @property
    def sums(self) -> list[float]:
        return [one + other for one, other in zip(self.servers, self.databases, strict=True)]

    @property
    def lowest(self) -> float:
        return min(self.sums)

    @property
    def median(self) -> float:
        return median(self.sums)

    @property
    def server(self) -> float:
        return median(self.servers)

    @property
    def database(self) -> float:
        return median(self.databases)


class RunningServer:
    """A server with its site and one client."""

    def __init__(self, server: Server, site: SizedSite) -> None:
        self.server = server
        self.site = site
        self._stack = ExitStack()
        base = f"{server.base_url}/api/calendar/events/v1"
        self._client = self._stack.enter_context(httpx.Client(base_url=base, timeout=150))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def get(self, path: str) -> httpx.Response:
        return self._client.get(path).raise_for_status()

    def count_matches(self, path: str) -> int:
        body = self.get(path).json()
        return int(body.get("total", 1))

    def count_all(self, word: str) -> int:
        with psycopg.connect(self.site.url, application_name=APPLICATION_NAME) as connection:
            row = connection.execute(
                "SELECT count(*) FROM events WHERE search_text LIKE %s", [f"%{word}%"]
            ).fetchone()
        return int(row[0]) if row else 0

    def measure(self, paths: Sequence[str], requests: int) -> tuple[float, float]:
        """Return CPU milliseconds per request of the server and of the database."""
        while True:
            sessions, process_tree = list_session_pids(self.site.url), list_process_tree(self.server.process.pid)
            before = [sum(map(cpu_seconds, pids)) for pids in (process_tree, sessions)]
            sent_requests, deadline = 0, monotonic() + MAX_ROUND_SECONDS
            for path in islice(cycle(paths), requests):
                self.get(path)
                sent_requests += 1
                if monotonic() > deadline:
                    break
            # A session that was opened or closed in the meantime would distort the sum.
            if list_session_pids(self.site.url) == sessions:
                after = [sum(map(cpu_seconds, pids)) for pids in (process_tree, sessions)]
                return 1000 * (after[0] - before[0]) / sent_requests, 1000 * (after[1] - before[1]) / sent_requests


def compute_ratio(one: Measurement, other: Measurement) -> float:
    return median(larger / smaller for smaller, larger in zip(one.sums, other.sums, strict=True))


Target = tuple[RunningServer, Sequence[str]]


def measure_together(one: Target, other: Target, rounds: int, requests: int) -> tuple[Measurement, Measurement]:
    """Measure both alternately, so that other load on the machine affects both."""
    results = (Measurement(), Measurement())
    for measurement, (server, paths) in zip(results, (one, other), strict=True):
        measurement.total = server.count_matches(paths[0])
        server.measure(paths, WARM_UP_REQUESTS)
    for _ in range(rounds):
        for measurement, (server, paths) in zip(results, (one, other), strict=True):
            server_ms, database_ms = server.measure(paths, requests)
            measurement.servers.append(server_ms)
            measurement.databases.append(database_ms)
    return results

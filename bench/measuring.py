"""CPU per request: a server and its database sessions, asked in turn at two sizes."""

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

from bench.cpu import OURS, cpu_seconds, process_family, session_pids
from bench.worlds import World
from tests.servers import Server

WARM_UP = 12  # More than five: then PostgreSQL has decided whether it keeps a plan.
PATIENCE = 4.0  # Seconds of a round; what is so slow that few requests fit is measured well enough by few.


@dataclass
class Measured:
    """Milliseconds of CPU per request, one entry per round."""

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


class Running:
    """A server on its world, with one client."""

    def __init__(self, server: Server, world: World) -> None:
        self.server = server
        self.world = world
        self._closing = ExitStack()
        base = f"{server.address}/api/calendar/events/v1"
        self._client = self._closing.enter_context(httpx.Client(base_url=base, timeout=150))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.close()

    def ask(self, path: str) -> httpx.Response:
        return self._client.get(path).raise_for_status()

    def total(self, path: str) -> int:
        body = self.ask(path).json()
        return int(body.get("total", 1))

    def count_all(self, word: str) -> int:
        with psycopg.connect(self.world.url, application_name=OURS) as connection:
            row = connection.execute(
                "SELECT count(*) FROM events WHERE search_text LIKE %s", [f"%{word}%"]
            ).fetchone()
        return int(row[0]) if row else 0

    def measure(self, paths: Sequence[str], requests: int) -> tuple[float, float]:
        """Milliseconds per request of the server and of the database."""
        while True:
            sessions, family = session_pids(self.world.url), process_family(self.server.process.pid)
            before = [sum(map(cpu_seconds, pids)) for pids in (family, sessions)]
            asked, deadline = 0, monotonic() + PATIENCE
            for path in islice(cycle(paths), requests):
                self.ask(path)
                asked += 1
                if monotonic() > deadline:
                    break
            # A session that was opened or closed meanwhile would spoil the sum.
            if session_pids(self.world.url) == sessions:
                after = [sum(map(cpu_seconds, pids)) for pids in (family, sessions)]
                return 1000 * (after[0] - before[0]) / asked, 1000 * (after[1] - before[1]) / asked


def ratio_of_rounds(one: Measured, other: Measured) -> float:
    return median(larger / smaller for smaller, larger in zip(one.sums, other.sums, strict=True))


Asked = tuple[Running, Sequence[str]]


def measure_together(one: Asked, other: Asked, rounds: int, requests: int) -> tuple[Measured, Measured]:
    """Both in turn, so that whatever else happens on the machine happens to both."""
    results = (Measured(), Measured())
    for measured, (running, paths) in zip(results, (one, other), strict=True):
        measured.total = running.total(paths[0])
        running.measure(paths, WARM_UP)
    for _ in range(rounds):
        for measured, (running, paths) in zip(results, (one, other), strict=True):
            server, database = running.measure(paths, requests)
            measured.servers.append(server)
            measured.databases.append(database)
    return results

"""Beside the existing service, at the sizes and with records like those it was measured with."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bench.load import Processes, Samples, ask_with_wrk
from bench.pages import REFERENCES, Reference
from bench.stage import NS, World, make_world, start_server
from tests.servers import Server
from tools import postgres

SIZES = (1_000, 10_000)
# One of these is in about 2 % of the events.
WORDS = ("accordion", "beavers", "baroque", "kookaburra", "saxophone", "klezmer", "bookbinding", "weaving", "harp")


@dataclass
class Compared:
    """One request at one size: CPU of the reference, and ours."""

    name: str
    events: int
    theirs: float
    matches: str
    cold: Samples = field(default_factory=Samples)
    warm: Samples = field(default_factory=Samples)


def compare(cluster: postgres.Server, directory: Path, rounds: int, seconds: float, megabytes: int) -> list[Compared]:
    """At one connection, as the reference's CPU is to be read."""
    compared: list[Compared] = []
    for events in SIZES:
        with ExitStack() as stack:
            world = make_world(cluster, events, like_the_reference=True)
            servers = [
                start_server(world, directory / f"compared-{events}.log", stack, megabytes=kept)
                for kept in (0, megabytes)
            ]
            rows = [_prepare(reference, world, servers[0]) for reference in REFERENCES]
            for _ in range(rounds):
                for row, path in rows:
                    for server, samples in zip(servers, (row.cold, row.warm), strict=True):
                        url = f"{server.address}{NS}{path}"
                        httpx.get(url).raise_for_status()
                        processes = Processes(cluster.pid, server.process.pid)
                        samples.runs.append(ask_with_wrk(url, 1, seconds, processes))
            compared += [row for row, _ in rows]
    return compared


def _prepare(reference: Reference, world: World, server: Server) -> tuple[Compared, str]:
    path = reference.path(world, _word(server, world.events))
    total = httpx.get(f"{server.address}{NS}{path}").raise_for_status().json().get("total")
    theirs = reference.at_1000 if world.events == SIZES[0] else reference.at_10000
    return Compared(reference.name, world.events, theirs, f"{total:,}" if total else ""), path


def _word(server: Server, events: int) -> str:
    """The one whose matches are nearest to 2 %."""

    def distance(word: str) -> float:
        answer = httpx.get(f"{server.address}{NS}/events", params={"search": word}).raise_for_status()
        return abs(int(answer.json()["total"]) - events / 50)

    return min(WORDS, key=distance)

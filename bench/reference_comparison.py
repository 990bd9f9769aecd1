"""Comparison with the original service, with the sizes and similar records of its measurements."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bench.load import Processes, Samples, run_wrk
from bench.seeded_sites import NS, SeededSite, make_site, start_server
from bench.speed_cases import REFERENCES, Reference
from tests.servers import Server
from tools import postgres

SIZES = (1_000, 10_000)
# One of these occurs in about 2 % of the events.
SEARCH_WORDS = (
    "accordion",
    "beavers",
    "baroque",
    "kookaburra",
    "saxophone",
    "klezmer",
    "bookbinding",
    "weaving",
    "harp",
)


@dataclass
class Comparison:
    """One request at one size: CPU time of the reference and of Kalends."""

    name: str
    events: int
    reference: float
    matches: str
    cold: Samples = field(default_factory=Samples)
    warm: Samples = field(default_factory=Samples)


def compare(
    cluster: postgres.Server, directory: Path, rounds: int, seconds: float, megabytes: int
) -> list[Comparison]:
    """Measure with one connection, like the reference."""
    comparisons: list[Comparison] = []
    for events in SIZES:
        with ExitStack() as stack:
            site = make_site(cluster, events, like_reference=True)
            servers = [
                start_server(site, directory / f"compared-{events}.log", stack, megabytes=cache_megabytes)
                for cache_megabytes in (0, megabytes)
            ]
            rows = [_prepare(reference, site, servers[0]) for reference in REFERENCES]
            for _ in range(rounds):
                for row, path in rows:
                    for server, samples in zip(servers, (row.cold, row.warm), strict=True):
                        url = f"{server.base_url}{NS}{path}"
                        httpx.get(url).raise_for_status()
                        processes = Processes(cluster.pid, server.process.pid)
                        samples.runs.append(run_wrk(url, 1, seconds, processes))
            comparisons += [row for row, _ in rows]
    return comparisons


def _prepare(reference: Reference, site: SeededSite, server: Server) -> tuple[Comparison, str]:
    path = reference.path(site, _pick_word(server, site.events))
    total = httpx.get(f"{server.base_url}{NS}{path}").raise_for_status().json().get("total")
    reference_cpu = reference.at_1000 if site.events == SIZES[0] else reference.at_10000
    return Comparison(reference.name, site.events, reference_cpu, f"{total:,}" if total else ""), path


def _pick_word(server: Server, events: int) -> str:
    """Return the word whose share of matches is closest to 2 %."""

    def distance(word: str) -> float:
        response = httpx.get(f"{server.base_url}{NS}/events", params={"search": word}).raise_for_status()
        return abs(int(response.json()["total"]) - events / 50)

    return min(SEARCH_WORDS, key=distance)

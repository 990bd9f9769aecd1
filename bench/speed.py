"""What a request costs beside the bare engine: the same SQL asked by pgbench, the request asked by wrk.

`just bench` at 200,000 events, `--quick` small enough for every change. All in one run and in turn, so that
whatever else happens on the machine happens to all. Ends with 1 when a limit is broken.
"""

import argparse
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
from rich.console import Console
from rich.progress import track

from bench.comparison import Compared, compare
from bench.load import Processes, Sample, Samples, ask_with_pgbench, ask_with_wrk
from bench.pages import BY_ID, CASES, LIST, NOT_CHANGED, WRITE, Case, Limit
from bench.report import Report, print_report, write_report
from bench.stage import LOGIN, NS, World, find_cluster, forget_last_change, make_world, start_server
from bench.statements import Catcher, as_script
from tests.servers import Server, find_free_port
from tools.varnish import Varnish

COLD, WARM = (1, 16), (1, 16, 64)
MEGABYTES = 64
EASE = 2.0


@dataclass(frozen=True)
class Stage:
    world: World
    postmaster: int
    cold: Server
    warm: Server
    varnish: Varnish
    scripts: dict[str, tuple[str, dict[str, str]]]
    seconds: float


def main() -> int:
    asked = _read_arguments()
    console = Console(width=170)
    cases = [case for case in CASES if asked.only in case.name and (case.quick or not asked.quick)]
    with ExitStack() as stack:
        cluster = find_cluster(asked.directory, stack)
        world = make_world(cluster, asked.events)
        figures = _measure(_set_up(world, cluster.pid, cases, asked, stack), cases, asked)
        compared: list[Compared] = []
        if asked.compare:
            compared = compare(cluster, asked.directory, asked.rounds, asked.seconds, MEGABYTES)
    limits = [limit.eased(EASE) if asked.quick else limit for limit in _limits(figures)]
    report = Report(datetime.now(UTC), world.events, [case.name for case in cases], figures, limits, compared)
    print_report(console, report)
    if asked.write:
        write_report(report, Path("docs/performance"))
    return 0 if all(limit.is_kept() for limit in limits) else 1


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement, in whole seconds")
    parser.add_argument("--quick", action="store_true", help="5,000 events, few requests, half the limits")
    parser.add_argument("--only", default="", help="requests whose name contains this")
    parser.add_argument("--compare", action=argparse.BooleanOptionalAction, default=True, help="with the reference")
    parser.add_argument("--write", action=argparse.BooleanOptionalAction, default=True, help="docs/performance")
    parser.add_argument(
        "--directory", type=Path, default=Path(".local/speed"), help="where the databases are kept for another run"
    )
    asked = parser.parse_args()
    if asked.quick:
        asked.events, asked.rounds, asked.seconds, asked.compare, asked.write = 5_000, 2, 1, False, False
    asked.directory.mkdir(parents=True, exist_ok=True)
    return asked


def _set_up(world: World, postmaster: int, cases: list[Case], asked: argparse.Namespace, stack: ExitStack) -> Stage:
    scripts: dict[str, tuple[str, dict[str, str]]] = {}
    with Catcher(world) as catcher:
        for case in cases:
            writing = case.name == WRITE
            options = {"json": {"cost": f"{datetime.now(UTC).timestamp():.0f}"}} if writing else {}
            statements, _ = catcher.catch("PATCH" if writing else "GET", case.path(world), **options)
            scripts[case.name] = as_script(statements, writing=writing)
            if writing:
                forget_last_change(world)
    cold = start_server(world, asked.directory / "cold.log", stack, megabytes=0)
    warm = start_server(world, asked.directory / "warm.log", stack, megabytes=MEGABYTES)
    varnish = Varnish.start(asked.directory / "varnish", warm.address, port=find_free_port())
    stack.enter_context(varnish)
    return Stage(world, postmaster, cold, warm, varnish, scripts, asked.seconds)


def _measure(stage: Stage, cases: list[Case], asked: argparse.Namespace) -> dict[str, dict[str, Samples]]:
    """Of each request: bare, and cold and warm with so many connections."""
    figures: dict[str, dict[str, Samples]] = {case.name: {} for case in cases}
    rounds = [(turn, case) for turn in range(asked.rounds) for case in cases]
    for _, case in track(rounds, "measuring", console=Console(stderr=True)):
        for name, sample in _measure_case(stage, case).items():
            figures[case.name].setdefault(name, Samples()).runs.append(sample)
    return figures


def _measure_case(stage: Stage, case: Case) -> dict[str, Sample]:
    bare = Processes(stage.postmaster)
    samples = {"bare": ask_with_pgbench(stage.world.url, *stage.scripts[case.name], stage.seconds, bare)}
    for mode, server, numbers in (("cold", stage.cold, COLD), ("warm", stage.warm, WARM)):
        if case.name == WRITE and mode == "cold":
            continue  # A write is not kept; once is enough.
        processes = Processes(stage.postmaster, server.process.pid)
        url = f"{server.address}{NS}{case.path(stage.world)}"
        for connections in numbers:
            samples[f"{mode} {connections}"] = _ask(case, url, connections, stage, processes)
    if case.name == LIST:
        url = f"{stage.varnish.address}{NS}{case.path(stage.world)}"
        processes = Processes(stage.postmaster, stage.varnish.process.pid)
        samples["varnish 64"] = _ask(case, url, 64, stage, processes)
    return samples


def _ask(case: Case, url: str, connections: int, stage: Stage, processes: Processes) -> Sample:
    auth = httpx.BasicAuth(LOGIN, stage.world.password) if case.name == WRITE else None
    answer = httpx.get(url, auth=auth, timeout=60).raise_for_status()
    headers: dict[str, str] = {}
    if case.name == NOT_CHANGED:
        headers["If-None-Match"] = answer.headers["etag"]
        if httpx.get(url, headers=headers, timeout=60).status_code != 304:
            raise AssertionError("not a 304")
    if case.name == WRITE:
        headers = {"Authorization": answer.request.headers["authorization"], "Content-Type": "application/json"}
    patching = case.name == WRITE
    return ask_with_wrk(url, connections, stage.seconds, processes, headers=headers, patching=patching)


def _limits(figures: dict[str, dict[str, Samples]]) -> list[Limit]:
    limits: list[Limit] = []
    for name in (LIST, BY_ID):
        if found := figures.get(name):
            ratio = found["cold 1"].cpu / found["bare"].cpu
            limits.append(Limit(f"{name}, cold: CPU against bare", ratio, most=3.0))
    if found := figures.get(LIST):
        limits.append(Limit(f"{LIST}, warm: CPU against bare", found["warm 1"].cpu / found["bare"].cpu, most=1.0))
        rate = max(found[f"warm {number}"].best.rate for number in WARM)
        limits.append(Limit(f"{LIST}, warm: requests a second", rate, least=3000))
        limits.append(
            Limit(f"{LIST}, through Varnish: requests a second", found["varnish 64"].best.rate, least=15_000)
        )
    if found := figures.get(NOT_CHANGED):
        rate = max(found[f"warm {number}"].best.rate for number in WARM)
        limits.append(Limit("304, warm: requests a second", rate, least=4000))
    return limits


if __name__ == "__main__":
    sys.exit(main())

"""The cost of requests (wrk) compared with a minimal server that runs the same SQL, and with the SQL alone (pgbench).

`just bench` uses 200,000 events; `--quick` runs a small sample. All measurements alternate in one run, so that other
load on the machine affects all of them. The servers run on the optimized Python of Debian 13 if it can be installed.
The exit code is 1 if a limit is exceeded.
"""

import argparse
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import httpx
from rich.console import Console
from rich.progress import track

from bench.calendar_pages import add_events
from bench.load import MISS_SCRIPT, PATCH_SCRIPT, Processes, Sample, Samples, run_pgbench, run_requests, run_wrk
from bench.minimal_server import BARE, Exchange
from bench.optimized_python import NoOptimizedPython, describe_python, find_optimized_python
from bench.reference_comparison import Comparison, compare
from bench.report import Report, print_report, write_report
from bench.seeded_sites import (
    LOGIN,
    NS,
    SeededSite,
    delete_last_change,
    find_cluster,
    make_site,
    start_minimal_server,
    start_server,
)
from bench.speed_cases import (
    CASES,
    LIST,
    MAX_ASGI_RATIO,
    MAX_MINIMAL_RATIOS,
    MAX_MISS_RATIO,
    MAX_RATIOS,
    NOT_MODIFIED,
    PAGES,
    WRITE,
    Case,
    Limit,
)
from bench.statements import StatementRecorder, make_script
from tests.api.running_app import HOST
from tests.servers import Server, find_free_port
from tools.varnish import Varnish

COLD_CONNECTIONS, WARM_CONNECTIONS = (1, 16), (1, 16, 64)
MEGABYTES = 64
BASE_URL = "http://127.0.0.1"
QUICK_FACTOR = 2.0


@dataclass(frozen=True)
class Testbed:
    site: SeededSite
    postmaster: int
    cold: Server
    warm: Server
    minimal: Server
    varnish: Varnish
    scripts: dict[str, tuple[str, dict[str, str]]]
    seconds: float


def main() -> int:
    arguments = _read_arguments()
    console = Console(width=170)
    cases = [case for case in CASES if arguments.only in case.name and (case.quick or not arguments.quick)]
    with ExitStack() as stack:
        cluster = find_cluster(arguments.directory, stack)
        site = make_site(cluster, arguments.events)
        testbed = _set_up(site, cluster.pid, cases, arguments, stack)
        figures = _measure(testbed, cases, arguments)
        pages = _measure_pages(testbed, arguments)
        comparisons: list[Comparison] = []
        if arguments.compare:
            comparisons = compare(cluster, arguments.directory, arguments.rounds, arguments.seconds, MEGABYTES)
    limits = [*_make_limits(figures), *_limit_pages(pages)]
    limits = [limit.relaxed(QUICK_FACTOR) if arguments.quick else limit for limit in limits]
    names = [case.name for case in cases]
    python = describe_python(arguments.python)
    report = Report(datetime.now(UTC), python, site.events, names, figures, pages, limits, comparisons)
    print_report(console, report)
    if arguments.write:
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
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.events, arguments.rounds, arguments.seconds, arguments.compare, arguments.write = (
            5_000,
            2,
            1,
            False,
            False,
        )
    arguments.directory.mkdir(parents=True, exist_ok=True)
    arguments.python = _choose_python(is_quick=arguments.quick)
    return arguments


def _choose_python(*, is_quick: bool) -> tuple[str, ...]:
    """Return the command of the optimized Python, or this interpreter for a quick run or without the other."""
    if is_quick:
        return (sys.executable,)
    try:
        return find_optimized_python()
    except NoOptimizedPython as reason:
        Console(stderr=True).print(f"All figures are too high: {reason}")
        return (sys.executable,)


def _set_up(
    site: SeededSite, postmaster: int, cases: list[Case], arguments: argparse.Namespace, stack: ExitStack
) -> Testbed:
    scripts: dict[str, tuple[str, dict[str, str]]] = {}
    exchanges: dict[str, Exchange] = {}
    with StatementRecorder(site) as recorder:
        for case in cases:
            is_write = case.name == WRITE
            options = {"json": {"cost": f"{datetime.now(UTC).timestamp():.0f}"}} if is_write else {}
            statements, response = recorder.record("PATCH" if is_write else "GET", case.path(site), **options)
            scripts[case.name] = make_script(statements, writing=is_write)
            if not is_write:  # A write has the path of a read.
                exchanges[case.path(site)] = Exchange(HOST, statements, response.content)
            if is_write:
                delete_last_change(site)
    directory: Path = arguments.directory
    start = partial(start_server, site, stack=stack, base_url=BASE_URL, python=arguments.python)
    cold = start(directory / "cold.log", megabytes=0)
    warm = start(directory / "warm.log", megabytes=MEGABYTES)
    minimal = start_minimal_server(site, exchanges, directory, stack, arguments.python)
    port = find_free_port()
    tagged = start(directory / "tagged.log", megabytes=0, purge_url=f"http://127.0.0.1:{port}/")
    varnish = stack.enter_context(Varnish.start(directory / "varnish", tagged.base_url, port=port))
    return Testbed(site, postmaster, cold, warm, minimal, varnish, scripts, arguments.seconds)


def _measure(testbed: Testbed, cases: list[Case], arguments: argparse.Namespace) -> dict[str, dict[str, Samples]]:
    """Measure each request as plain SQL, and uncached and cached with several numbers of connections.

    "cold" is a server without a cache; "miss" is one that has the records of a response, but not the response.
    """
    figures: dict[str, dict[str, Samples]] = {case.name: {} for case in cases}
    rounds = [(round_number, case) for round_number in range(arguments.rounds) for case in cases]
    for _, case in track(rounds, "measuring", console=Console(stderr=True)):
        for name, sample in _measure_case(testbed, case).items():
            figures[case.name].setdefault(name, Samples()).runs.append(sample)
    return figures


def _measure_pages(testbed: Testbed, arguments: argparse.Namespace) -> dict[str, dict[str, Samples]]:
    """Measure a month and a feed with one connection, uncached and cached."""
    pages = [page for page in PAGES if arguments.only in page.name and not arguments.quick]
    if pages:
        add_events(testbed.site.url)
    figures: dict[str, dict[str, Samples]] = {page.name: {"cold": Samples(), "warm": Samples()} for page in pages}
    for _ in range(arguments.rounds):
        for page in pages:
            for mode, server in (("cold", testbed.cold), ("warm", testbed.warm)):
                url = f"{server.base_url}{page.path}"
                httpx.get(url, timeout=120).raise_for_status()
                processes = Processes(testbed.postmaster, server.process.pid)
                figures[page.name][mode].runs.append(run_requests(url, page.requests, processes))
    return figures


def _limit_pages(figures: dict[str, dict[str, Samples]]) -> list[Limit]:
    return [
        Limit(f"{page.name}, cold: CPU ms", figures[page.name]["cold"].cpu, maximum=page.max_cold)
        for page in PAGES
        if page.name in figures
    ]


def _measure_case(testbed: Testbed, case: Case) -> dict[str, Sample]:
    bare = Processes(testbed.postmaster)
    samples = {"bare": run_pgbench(testbed.site.url, *testbed.scripts[case.name], testbed.seconds, bare)}
    for mode, server, numbers in (("cold", testbed.cold, COLD_CONNECTIONS), ("warm", testbed.warm, WARM_CONNECTIONS)):
        if case.name == WRITE and mode == "cold":
            continue  # Writes are not cached, so one run is enough.
        processes = Processes(testbed.postmaster, server.process.pid)
        url = f"{server.base_url}{NS}{case.path(testbed.site)}"
        # A user's writes take turns, and more than three at a time get 429.
        for connections in numbers[:1] if case.name == WRITE else numbers:
            samples[f"{mode} {connections}"] = _run_case(case, url, connections, testbed, processes)
    if case.name in MAX_MINIMAL_RATIOS:
        url = f"{testbed.minimal.base_url}{case.path(testbed.site)}"
        processes = Processes(testbed.postmaster, testbed.minimal.process.pid)
        samples["minimal 1"] = run_wrk(url, 1, testbed.seconds, processes)
    if case.name not in (WRITE, NOT_MODIFIED):
        url = f"{testbed.warm.base_url}{NS}{case.path(testbed.site)}"
        processes = Processes(testbed.postmaster, testbed.warm.process.pid)
        samples["miss 1"] = run_wrk(url, 1, testbed.seconds, processes, script=MISS_SCRIPT)
    if case.name == LIST:
        url = f"{testbed.minimal.base_url}{BARE}{case.path(testbed.site)}"
        samples["asgi 64"] = run_wrk(
            url, 64, testbed.seconds, Processes(testbed.postmaster, testbed.minimal.process.pid)
        )
        url = f"{testbed.varnish.address}{NS}{case.path(testbed.site)}"
        processes = Processes(testbed.postmaster, testbed.varnish.process.pid)
        samples["varnish 64"] = _run_case(case, url, 64, testbed, processes)
        if httpx.get(url, timeout=60).headers.get("X-Cache") != "hit":
            raise AssertionError("Varnish has not cached the response")
    return samples


def _run_case(case: Case, url: str, connections: int, testbed: Testbed, processes: Processes) -> Sample:
    auth = httpx.BasicAuth(LOGIN, testbed.site.password) if case.name == WRITE else None
    response = httpx.get(url, auth=auth, timeout=60).raise_for_status()
    headers: dict[str, str] = {}
    if case.name == NOT_MODIFIED:
        headers["If-None-Match"] = response.headers["etag"]
        if httpx.get(url, headers=headers, timeout=60).status_code != 304:
            raise AssertionError("not a 304")
    if case.name == WRITE:
        headers = {"Authorization": response.request.headers["authorization"], "Content-Type": "application/json"}
    script = PATCH_SCRIPT if case.name == WRITE else ""
    return run_wrk(url, connections, testbed.seconds, processes, headers=headers, script=script)


def _make_limits(figures: dict[str, dict[str, Samples]]) -> list[Limit]:
    limits: list[Limit] = []
    for name, maximum in MAX_RATIOS.items():
        if samples := figures.get(name):
            # Writes are not cached, so there is no cold run of them.
            mode = "warm" if name == WRITE else "cold"
            ratio = samples[f"{mode} 1"].cpu / samples["bare"].cpu
            limits.append(Limit(f"{name}, {mode}: CPU relative to bare", ratio, maximum=maximum))
    for name, maximum in MAX_MINIMAL_RATIOS.items():
        if samples := figures.get(name):
            ratio = samples["cold 1"].cpu / samples["minimal 1"].cpu
            limits.append(Limit(f"{name}, cold: CPU relative to a minimal server", ratio, maximum=maximum))
    if samples := figures.get(LIST):
        ratio = samples["miss 1"].cpu / samples["cold 1"].cpu
        limits.append(Limit(f"{LIST}, miss: CPU relative to cold", ratio, maximum=MAX_MISS_RATIO))
        ratio = samples["warm 64"].cpu / samples["asgi 64"].cpu
        limits.append(Limit(f"{LIST}, warm, 64 connections: CPU relative to ASGI", ratio, maximum=MAX_ASGI_RATIO))
        limits.append(
            Limit(f"{LIST}, warm: CPU relative to bare", samples["warm 1"].cpu / samples["bare"].cpu, maximum=1.0)
        )
        rate = max(samples[f"warm {number}"].best.rate for number in WARM_CONNECTIONS)
        limits.append(Limit(f"{LIST}, warm: requests per second", rate, minimum=3000))
        limits.append(
            Limit(f"{LIST}, through Varnish: requests per second", samples["varnish 64"].best.rate, minimum=15_000)
        )
    if samples := figures.get(NOT_MODIFIED):
        rate = max(samples[f"warm {number}"].best.rate for number in WARM_CONNECTIONS)
        limits.append(Limit("304, warm: requests per second", rate, minimum=4000))
    return limits


if __name__ == "__main__":
    sys.exit(main())

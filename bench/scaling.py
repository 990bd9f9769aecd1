"""CPU time per request on a small and a large site, measured in one run.

`just bench-growth` builds 20,000 and 2,000,000 events; `--quick` runs a small sample. The response cache is disabled.
The exit code is 1 if a limit is exceeded.
"""

import argparse
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.measurement import Measurement, RunningServer, compute_ratio, measure_together
from bench.scaling_cases import BASE, CASES, COMMON_WORDS, SERIES_CASES, Case, make_deep_page_cases, search_path
from bench.seeded_sites import find_cluster
from bench.sized_sites import SizedSite, make_site
from tests.servers import Server
from tools import postgres

# Parallel workers end before their CPU time can be read, and autovacuum would distort the results.
SETTINGS = {
    **postgres.THROWAWAY,
    "max_parallel_workers_per_gather": "0",
    "autovacuum": "off",
    "shared_buffers": "512MB",
    "maintenance_work_mem": "1GB",
    "max_wal_size": "8GB",
}


def main() -> int:
    arguments = _read_arguments()
    with ExitStack() as stack:
        cluster = find_cluster(arguments.directory, stack, SETTINGS)
        small, large = (
            make_site(cluster.url, events, upcoming, has_series=arguments.series)
            for events, upcoming in (
                (arguments.small, arguments.small_upcoming),
                (arguments.large, arguments.large_upcoming),
            )
        )
        servers = [_start(site, arguments.directory, stack) for site in (small, large)]
        return 1 if _compare(servers[0], servers[1], arguments) else 0


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=20_000)
    parser.add_argument("--large", type=int, default=2_000_000)
    parser.add_argument("--small-upcoming", type=int)
    parser.add_argument("--large-upcoming", type=int)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=60, help="in each round, of each kind, at each size")
    parser.add_argument("--quick", action="store_true", help="2,000 against 40,000 events, with looser limits")
    parser.add_argument("--series", action="store_true", help="half of the events are dates of series")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument(
        "--directory", type=Path, default=Path(".local/growth"), help="where the databases are kept for another run"
    )
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.small, arguments.large, arguments.rounds, arguments.requests = 2_000, 40_000, 3, 30
    # A twentieth of the events is upcoming, but at least twice the number of marked ones.
    arguments.small_upcoming = arguments.small_upcoming or max(arguments.small // 20, 400)
    arguments.large_upcoming = arguments.large_upcoming or max(arguments.large // 20, 400)
    arguments.slack = 1.6 if arguments.quick else 1.0  # Few requests in few rounds vary more.
    return arguments


def _start(site: SizedSite, directory: Path, stack: ExitStack) -> RunningServer:
    # Requests are sequential, so two connections suffice, and their processes are easy to identify.
    environment = {"KALENDS_POOL_SIZE": "2", "KALENDS_CACHE_MB": "0", "KALENDS_STATEMENT_TIMEOUT": "120"}
    server = Server.start(site.url, log=directory / f"{site.name}.log", environment=environment)
    return stack.enter_context(RunningServer(stack.enter_context(server), site))


def _compare(small: RunningServer, large: RunningServer, arguments: argparse.Namespace) -> bool:
    console = Console(width=150)
    now = datetime.now(UTC)
    cases = [case for case in (*CASES, *(SERIES_CASES if arguments.series else ())) if arguments.only in case.name]
    rows: list[tuple[Case, Measurement, Measurement]] = []
    for case in track(cases, "measuring", console=Console(stderr=True)):
        paths = [(server, case.paths(server.site, now)) for server in (small, large)]
        rows.append((case, *measure_together(paths[0], paths[1], arguments.rounds, arguments.requests)))
    is_broken = _print_ratios(
        console, f"{small.site.events:,} against {large.site.events:,} events", rows, arguments.slack
    )
    if "page" in arguments.only or not arguments.only:
        is_broken |= _compare_pages(console, large, arguments)
    if "common" in arguments.only or not arguments.only:
        _print_curve(console, small, large, arguments)
    return is_broken


def _compare_pages(console: Console, server: RunningServer, arguments: argparse.Namespace) -> bool:
    rows: list[tuple[Case, Measurement, Measurement]] = []
    for case, path in make_deep_page_cases(server):
        pair = measure_together((server, [BASE]), (server, [path]), arguments.rounds, arguments.requests)
        rows.append((case, *pair))
    return _print_ratios(console, "page one against a deep page, large site", rows, arguments.slack)


def _print_ratios(
    console: Console, title: str, rows: list[tuple[Case, Measurement, Measurement]], slack: float
) -> bool:
    """Print CPU milliseconds per request. The median ratio of the rounds counts, because a busy machine slows both
    halves of a round."""
    table = Table(title=title)
    for heading in ("request", "matches", "server", "database", "lowest", "median"):
        table.add_column(heading, justify="left" if heading == "request" else "right")
    for heading in ("ratio", "of lowest", "limit", ""):
        table.add_column(heading, justify="right")
    is_broken = False
    for case, small, large in rows:
        ratio, limit = compute_ratio(small, large), case.limit * slack
        is_broken |= ratio > limit
        table.add_row(
            case.name,
            f"{small.total:,} | {large.total:,}",
            f"{small.server:.2f} | {large.server:.2f}",
            f"{small.database:.2f} | {large.database:.2f}",
            f"{small.lowest:.2f} | {large.lowest:.2f}",
            f"{small.median:.2f} | {large.median:.2f}",
            f"{ratio:.2f}",
            f"{large.lowest / small.lowest:.2f}",
            f"{limit:.2f}",
            "BROKEN" if ratio > limit else "kept",
        )
    console.print(table)
    return is_broken


def _print_curve(console: Console, small: RunningServer, large: RunningServer, arguments: argparse.Namespace) -> None:
    """Print the cost of searches for common words by the number of matches in the window."""
    table = Table(title="search for a common word: CPU against matches to come (all matches, the past included)")
    for heading in ("word", "small: to come", "all", "ms", "large: to come", "all", "ms", "µs a match"):
        table.add_column(heading, justify="left" if heading == "word" else "right")
    for word in COMMON_WORDS:
        path = search_path(word)
        small_result, large_result = measure_together(
            (small, [path]), (large, [path]), 3, max(arguments.requests // 6, 3)
        )
        matches = large_result.total - small_result.total
        table.add_row(
            word,
            f"{small_result.total:,}",
            f"{small.count_all(word):,}",
            f"{small_result.lowest:.2f}",
            f"{large_result.total:,}",
            f"{large.count_all(word):,}",
            f"{large_result.lowest:.2f}",
            f"{1000 * (large_result.lowest - small_result.lowest) / max(matches, 1):.1f}",
        )
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())

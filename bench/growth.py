"""Does a request cost more when the site has more history? CPU per request at two sizes, in one run.

`just bench-growth` builds 20,000 and 2,000,000 events; `--quick` is small enough for every change. Nothing is
cached by the server. Ends with 1 when a limit is broken.
"""

import argparse
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.cases import BASE, CASES, COMMON_WORDS, Case, common_word, deep_pages
from bench.measuring import Measured, Running, measure_together, ratio_of_rounds
from bench.stage import find_cluster
from bench.worlds import World, make_world
from tests.servers import Server
from tools import postgres

# Parallel workers end before their time can be read, and autovacuum would work for nobody's request.
SETTINGS = {
    **postgres.THROWAWAY,
    "max_parallel_workers_per_gather": "0",
    "autovacuum": "off",
    "shared_buffers": "512MB",
    "maintenance_work_mem": "1GB",
    "max_wal_size": "8GB",
}


def main() -> int:
    asked = _read_arguments()
    with ExitStack() as stack:
        cluster = find_cluster(asked.directory, stack, SETTINGS)
        small, large = (
            make_world(cluster.url, events, upcoming)
            for events, upcoming in ((asked.small, asked.small_upcoming), (asked.large, asked.large_upcoming))
        )
        running = [_start(world, asked.directory, stack) for world in (small, large)]
        return 1 if _compare(running[0], running[1], asked) else 0


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=20_000)
    parser.add_argument("--large", type=int, default=2_000_000)
    parser.add_argument("--small-upcoming", type=int)
    parser.add_argument("--large-upcoming", type=int)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=60, help="in each round, of each kind, at each size")
    parser.add_argument("--quick", action="store_true", help="2,000 against 40,000 events, with looser limits")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument(
        "--directory", type=Path, default=Path(".local/growth"), help="where the databases are kept for another run"
    )
    asked = parser.parse_args()
    if asked.quick:
        asked.small, asked.large, asked.rounds, asked.requests = 2_000, 40_000, 3, 30
    # A twentieth is to come; but no fewer than twice the marked ones.
    asked.small_upcoming = asked.small_upcoming or max(asked.small // 20, 400)
    asked.large_upcoming = asked.large_upcoming or max(asked.large // 20, 400)
    asked.slack = 1.6 if asked.quick else 1.0  # Few requests in few rounds are less steady.
    return asked


def _start(world: World, directory: Path, stack: ExitStack) -> Running:
    # One request at a time is asked: two connections are enough, and their processes easy to tell.
    environment = {"KALENDS_POOL_SIZE": "2", "KALENDS_CACHE_MB": "0", "KALENDS_STATEMENT_DEADLINE": "120"}
    server = Server.start(world.url, log=directory / f"{world.name}.log", environment=environment)
    return stack.enter_context(Running(stack.enter_context(server), world))


def _compare(small: Running, large: Running, asked: argparse.Namespace) -> bool:
    console = Console(width=150)
    now = datetime.now(UTC)
    cases = [case for case in CASES if asked.only in case.name]
    rows: list[tuple[Case, Measured, Measured]] = []
    for case in track(cases, "measuring", console=Console(stderr=True)):
        paths = [(world, case.paths(world.world, now)) for world in (small, large)]
        rows.append((case, *measure_together(paths[0], paths[1], asked.rounds, asked.requests)))
    broken = _print_ratios(
        console, f"{small.world.events:,} against {large.world.events:,} events", rows, asked.slack
    )
    if "page" in asked.only or not asked.only:
        broken |= _compare_pages(console, large, asked)
    if "common" in asked.only or not asked.only:
        _print_curve(console, small, large, asked)
    return broken


def _compare_pages(console: Console, world: Running, asked: argparse.Namespace) -> bool:
    rows: list[tuple[Case, Measured, Measured]] = []
    for case, path in deep_pages(world):
        pair = measure_together((world, [BASE]), (world, [path]), asked.rounds, asked.requests)
        rows.append((case, *pair))
    return _print_ratios(console, "page one against a deep page, large site", rows, asked.slack)


def _print_ratios(console: Console, title: str, rows: list[tuple[Case, Measured, Measured]], slack: float) -> bool:
    """CPU per request in milliseconds. The middle one of the rounds' ratios decides: a busy machine makes both
    halves of a round slower, but hardly ever both lowest rounds at the same time."""
    table = Table(title=title)
    for heading in ("request", "matches", "server", "database", "lowest", "median"):
        table.add_column(heading, justify="left" if heading == "request" else "right")
    for heading in ("ratio", "of lowest", "limit", ""):
        table.add_column(heading, justify="right")
    broken = False
    for case, one, other in rows:
        ratio, limit = ratio_of_rounds(one, other), case.limit * slack
        broken |= ratio > limit
        table.add_row(
            case.name,
            f"{one.total:,} | {other.total:,}",
            f"{one.server:.2f} | {other.server:.2f}",
            f"{one.database:.2f} | {other.database:.2f}",
            f"{one.lowest:.2f} | {other.lowest:.2f}",
            f"{one.median:.2f} | {other.median:.2f}",
            f"{ratio:.2f}",
            f"{other.lowest / one.lowest:.2f}",
            f"{limit:.2f}",
            "BROKEN" if ratio > limit else "kept",
        )
    console.print(table)
    return broken


def _print_curve(console: Console, small: Running, large: Running, asked: argparse.Namespace) -> None:
    """A search for a common word: cost against matches inside the window."""
    table = Table(title="search for a common word: CPU against matches to come (all matches, the past included)")
    for heading in ("word", "small: to come", "all", "ms", "large: to come", "all", "ms", "µs a match"):
        table.add_column(heading, justify="left" if heading == "word" else "right")
    for word in COMMON_WORDS:
        path = common_word(word)
        one, other = measure_together((small, [path]), (large, [path]), 3, max(asked.requests // 6, 3))
        table.add_row(
            word,
            f"{one.total:,}", f"{small.count_all(word):,}", f"{one.lowest:.2f}",
            f"{other.total:,}", f"{large.count_all(word):,}", f"{other.lowest:.2f}",
            f"{1000 * (other.lowest - one.lowest) / max(other.total - one.total, 1):.1f}",
        )  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())

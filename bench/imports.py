"""An import of 5,000 events into a site of 20,000: CPU of the plan, longest lock of the site, latencies of readers.

`just bench-imports` imports a calendar, imports it again with changes, and undoes both runs. The exit code is 1 if a
limit is exceeded. `--quick` imports 500 events into 2,000; `--directory` keeps the databases.
"""

import argparse
import random
import resource
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
from rich.console import Console
from rich.table import Table

from bench.interference import Effects, cluster_seconds, report_problems, watch
from bench.seeded_sites import (
    FILLING_SETTINGS,
    LOGIN,
    NS,
    SeededSite,
    fill_site,
    find_cluster,
    make_database,
    start_server,
)
from tests.servers import make_environment

MAX_PLAN_CPU = 15.0
MAX_LOCK = 0.2
MAX_RATIO = 2.0
# p99 of readers scatters by some milliseconds on a shared machine.
SLACK = 0.005
QUIET_SECONDS = 20
WORDS = "Choir Jazz Reading Market Chess Yoga Theatre Harbour Garden Winter Summer Night Open Local Great".split()  # noqa: SIM905
FIRST_DAY = datetime.now(UTC).replace(hour=8, minute=0, second=0, microsecond=0) + timedelta(days=2)


@dataclass(frozen=True)
class Result:
    """CPU seconds of the plan, in the process and in the database, and the effects of each step on others."""

    plan_cpu: tuple[float, float]
    quiet: Effects
    steps: dict[str, Effects]

    def find_problems(self) -> list[str]:
        problems = [f"plan: {sum(self.plan_cpu):.1f} s of CPU"] if sum(self.plan_cpu) > MAX_PLAN_CPU else []
        for name, effects in self.steps.items():
            if effects.longest_wait > MAX_LOCK:
                problems.append(f"{name}: the site was locked for {1000 * effects.longest_wait:.0f} ms")
            if effects.p99 > MAX_RATIO * self.quiet.p99 + SLACK:
                problems.append(f"{name}: p99 of readers {1000 * effects.p99:.0f} ms")
        return problems


def make_calendar(number: int, *, edition: int = 0) -> str:
    """Return a calendar. In another edition a fifth of the events have changed, and some are new."""
    chance = random.Random(5)  # noqa: S311
    events: list[str] = []
    for index in range(number + number // 50 * edition):
        title = " ".join(chance.sample(WORDS, 3)) + f" {index}"
        start = FIRST_DAY + timedelta(days=index % 300, minutes=15 * (index % 40))
        change = f" (edition {edition})" if edition and index % 5 == 0 else ""
        events.append(
            f"BEGIN:VEVENT\r\nUID:{index}@bench.example\r\nDTSTART:{start:%Y%m%dT%H%M%SZ}\r\n"
            f"DTEND:{start + timedelta(hours=2):%Y%m%dT%H%M%SZ}\r\nSUMMARY:{title}{change}\r\n"
            f"LOCATION:Hall {index % 60}, Street {index % 60}\r\nCATEGORIES:Imported,Group {index % 20}\r\n"
            f"DESCRIPTION:{' '.join(chance.choices(WORDS, k=40))}\r\nEND:VEVENT\r\n"
        )
    return f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//bench//EN\r\n{''.join(events)}END:VCALENDAR\r\n"


def list_paths(days: int = 60) -> list[str]:
    """Return lists and pages of different days, so that each of them has to be computed."""
    starts = [(FIRST_DAY + timedelta(days=day)).date().isoformat() for day in range(days)]
    return [path for day in starts for path in (f"{NS}/events?start_date={day}&per_page=20", f"/events/{day}/")]


def measure(site_url: str, base_url: str, postmaster_pid: int, events: int, directory: Path) -> Result:
    """Import, import again and undo, and return what others noticed of it."""
    directory.mkdir(parents=True, exist_ok=True)
    path, paths = directory / "bench.ics", list_paths()
    path.write_text(make_calendar(events), newline="")
    with watch(site_url, base_url, paths) as quiet:
        time.sleep(QUIET_SECONDS if events >= 500 else 1)
    before = _read_cpu(postmaster_pid)
    run_command(site_url, "import", str(path), "--status", "publish", "--owner", LOGIN)
    plan_cpu = tuple(after - start for after, start in zip(_read_cpu(postmaster_pid), before, strict=True))
    first = read_last_run(site_url)
    steps: dict[str, Effects] = {}
    with watch(site_url, base_url, paths) as steps["apply"]:
        run_command(site_url, "import", "apply", str(first))
    path.write_text(make_calendar(events, edition=1), newline="")
    with watch(site_url, base_url, paths) as steps["second sync"]:
        run_command(site_url, "import", str(path), "--apply")
    second = read_last_run(site_url)
    with watch(site_url, base_url, paths) as steps["undo"]:
        for run_id in (second, first):
            run_command(site_url, "import", "undo", str(run_id), "--yes")
    return Result((plan_cpu[0], plan_cpu[1]), quiet, steps)


def _read_cpu(postmaster_pid: int) -> tuple[float, float]:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime, cluster_seconds(postmaster_pid)


def run_command(url: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "kalends", *arguments]
    done = subprocess.run(  # noqa: S603  Our own command.
        command, env=make_environment(url), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise AssertionError(f"{arguments}: {done.stdout[-2000:]}")
    return done.stdout


def read_last_run(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT max(id) FROM import_runs WHERE undoes IS NULL").fetchone()
    return int(row[0]) if row and row[0] else 0


def make_fresh_site(directory: Path, events: int, stack: ExitStack) -> tuple[SeededSite, int]:
    """Return a site in a new database, so that each run imports into the same one, and the PID of its PostgreSQL."""
    cluster = find_cluster(directory, stack, FILLING_SETTINGS)
    url = make_database(cluster.url, "bench_imports")
    site = fill_site(url, events)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")
    return site, cluster.pid


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5_000)
    parser.add_argument("--site", type=int, default=20_000, help="events that the site has before")
    parser.add_argument("--quick", action="store_true", help="500 events into a site of 2,000")
    parser.add_argument("--directory", type=Path, default=Path(".local/imports"))
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.events, arguments.site = 500, 2_000
    with ExitStack() as stack:
        site, pid = make_fresh_site(arguments.directory, arguments.site, stack)
        server = start_server(site, arguments.directory / "imports.log", stack, megabytes=0)
        result = measure(site.url, server.base_url, pid, arguments.events, arguments.directory)
    return report(result)


def report(result: Result) -> int:
    console = Console(width=120)
    own, database = result.plan_cpu
    console.print(
        f"plan: {own:.1f} s of CPU in the process, {database:.1f} s in the database (limit {MAX_PLAN_CPU} s)"
    )
    table = Table(title="effects on others: milliseconds")
    for heading in ("", "seconds", "longest lock", "p99 of readers", "reads"):
        table.add_column(heading, justify="right")
    for name, effects in {"quiet": result.quiet, **result.steps}.items():
        wait, p99 = f"{1000 * effects.longest_wait:.0f}", f"{1000 * effects.p99:.1f}"
        table.add_row(name, f"{effects.elapsed:.0f}", wait, p99, str(len(effects.latencies)))
    console.print(table)
    return report_problems(console, result.find_problems())


if __name__ == "__main__":
    sys.exit(main())

"""A made-up WordPress site of 10,000 events moves in: time, memory, longest lock of the site, latencies of readers.

`just bench-move-in` serves the records of `kalends seed` as WordPress would, reads them and applies the plan; it does
not pause between requests. Then some events change, every response takes 0.2 s, and `kalends import tec switch` ends
the move-in: while it runs, nobody may edit the old site. The exit code is 1 if a limit is exceeded. `--quick` moves
500 events.
"""

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from rich.console import Console

from bench.imports import MAX_LOCK, MAX_RATIO, QUIET_SECONDS, SLACK, list_paths
from bench.interference import Effects, report_problems, watch
from bench.old_site import write_site
from bench.seeded_sites import FILLING_SETTINGS, find_cluster, make_database, run_command
from tests.move_in.site_server import PASSWORD
from tests.servers import Server, make_environment

MAX_SECONDS = 600
DELAY = 0.2  # seconds of each response during the switch
# The resident memory of applying may grow by this much after a tenth of it is done.
MAX_GROWTH_MB = 40
ROOT = Path(__file__).parents[1]


@dataclass
class Process:
    """A command that has ended: its output, its duration, and its resident memory in megabytes, as it went on."""

    output: str = ""
    seconds: float = 0.0
    memory: list[float] = field(default_factory=list[float])

    @property
    def requests(self) -> int:
        """Return how many requests the command says that it has sent."""
        return int(re.findall(r"([\d,]+) requests", self.output)[0].replace(",", ""))

    @property
    def growth(self) -> float:
        """Return by how much the memory has grown since a tenth of the time."""
        later = self.memory[len(self.memory) // 10 :]
        return max(later) - later[0] if later else 0.0


@dataclass(frozen=True)
class Result:
    plan: Process
    apply: Process
    switch: Process
    effects: Effects
    quiet: Effects
    events: int

    @property
    def max_switch(self) -> float:
        """Return for how many seconds editing may stop: a minute for 1,000 events, three for 10,000."""
        return 60 if self.events <= 1000 else 60 + 120 * (self.events - 1000) / 9000

    def find_problems(self) -> list[str]:
        problems: list[str] = []
        if self.switch.seconds > self.max_switch:
            problems.append(f"the switch took {self.switch.seconds:.0f} s")
        if self.plan.seconds + self.apply.seconds > MAX_SECONDS:
            problems.append(f"{self.plan.seconds + self.apply.seconds:.0f} s")
        if self.apply.growth > MAX_GROWTH_MB:
            problems.append(f"the memory has grown by {self.apply.growth:.0f} MB")
        if self.effects.longest_wait > MAX_LOCK:
            problems.append(f"the site was locked for {1000 * self.effects.longest_wait:.0f} ms")
        if self.effects.p99 > MAX_RATIO * self.quiet.p99 + SLACK:
            problems.append(f"p99 of readers {1000 * self.effects.p99:.0f} ms")
        return problems


@contextmanager
def serve_old_site(records: Path, *options: str) -> Iterator[str]:
    """Serve the records of a file as a WordPress site; yield its address."""
    arguments = ("--page-size", "100", "--records", str(records), *options)
    command = [sys.executable, "-m", "tests.move_in.site_server", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:  # noqa: S603
        try:
            if process.stdout is None:
                raise AssertionError("no output")
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


def run_measured(url: str, directory: Path, network: str, *arguments: str) -> Process:
    """Run a command and sample its memory."""
    environment = make_environment(
        url, {"KALENDS_FETCH_ALLOWED_NETWORKS": network, "KALENDS_MEDIA_DIR": str(directory / "media")}
    )
    result, started, output = Process(), time.perf_counter(), directory / "output"
    with output.open("w+") as file:
        command = [sys.executable, "-m", "kalends", *arguments]
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.STDOUT)  # noqa: S603
        while process.poll() is None:
            result.memory.append(_read_memory(process.pid))
            time.sleep(0.2)
    result.seconds, result.output = time.perf_counter() - started, output.read_text()
    if process.returncode:
        raise AssertionError(f"{arguments}: {result.output[-2000:]}")
    return result


def _read_memory(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except FileNotFoundError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)


def measure(seeded_url: str, target_url: str, base_url: str, directory: Path, *, quiet: float) -> Result:
    """Move the records of a seeded site into an empty one that is served at an address."""
    directory.mkdir(parents=True, exist_ok=True)
    records, snapshot, password = directory / "old-site.jsonl", directory / "old.snapshot", directory / "password"
    write_site(seeded_url, records)
    snapshot.unlink(missing_ok=True)
    password.write_text(PASSWORD)
    options = ("--login", "administrator", "--password-file", str(password))
    with serve_old_site(records) as old_url:
        network = urlsplit(old_url).netloc
        plan = run_measured(
            target_url, directory, network, "import", "tec", "plan", old_url, "--snapshot", str(snapshot), *options
        )
    run_id = plan.output.split()[-1]
    with watch(target_url, base_url, list_paths()) as effects:
        applied = run_measured(target_url, directory, network, "import", "tec", "apply", run_id)
    with watch(target_url, base_url, list_paths()) as afterwards:
        time.sleep(quiet)
    port = str(urlsplit(old_url).port)
    with serve_old_site(records, "--port", port, "--change-after", "0", "--delay", str(DELAY)):
        switch = run_measured(target_url, directory, network, "import", "tec", "switch", *options)
    with psycopg.connect(target_url) as connection:
        row = connection.execute("SELECT count(*) FROM events").fetchone()
    return Result(plan, applied, switch, effects, afterwards, int(row[0]) if row else 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--quick", action="store_true", help="500 events")
    parser.add_argument("--directory", type=Path, default=Path(".local/imports"))
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.events = 500
    with ExitStack() as stack:
        cluster = find_cluster(arguments.directory, stack, FILLING_SETTINGS)
        seeded, target = (make_database(cluster.url, name) for name in ("bench_old_site", "bench_new_site"))
        run_command(seeded, "seed", "--events", str(arguments.events))
        log = arguments.directory / "move-in.log"
        server = stack.enter_context(Server.start(target, log=log, environment={"KALENDS_CACHE_MB": "0"}))
        result = measure(seeded, target, server.base_url, arguments.directory.absolute(), quiet=QUIET_SECONDS)
    return report(result)


def report(result: Result) -> int:
    console = Console(width=120)
    total = result.plan.seconds + result.apply.seconds
    console.print(
        f"{result.events:,} events: crawl and plan {result.plan.seconds:.0f} s, apply {result.apply.seconds:.0f} s, "
        f"together {total / 60:.1f} minutes (limit {MAX_SECONDS // 60})"
    )
    console.print(
        f"switch with {DELAY} s per response: {result.switch.seconds:.1f} s (limit {result.max_switch:.0f}), "
        f"{result.switch.requests:,} requests"
    )
    memory = result.apply.memory[len(result.apply.memory) // 10 :] or [0.0]
    console.print(
        f"memory: plan up to {max(result.plan.memory):.0f} MB, apply {min(memory):.0f} to {max(memory):.0f} MB"
    )
    console.print(f"longest lock: {1000 * result.effects.longest_wait:.0f} ms (limit {1000 * MAX_LOCK:.0f})")
    console.print(
        f"p99 of readers: {1000 * result.quiet.p99:.1f} ms quiet, {1000 * result.effects.p99:.1f} ms during "
        f"({len(result.effects.latencies)} reads)"
    )
    return report_problems(console, result.find_problems())


if __name__ == "__main__":
    sys.exit(main())

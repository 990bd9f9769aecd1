"""A whole move of a made-up WordPress site: plan, apply, two syncs and the switch, with a worker.

`just bench-whole-move` generates a lifelike site of 1,000 events with 200 pictures, which takes 0.2 s for a response,
and moves it in while the worker makes the sizes of its images. The old site is edited before the first sync. The exit
code is 1 if `switch` finds a difference that is not explained, or if anything is lost without a line in the plan.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import psycopg
from psycopg.rows import dict_row
from rich.console import Console

from bench.interference import report_problems
from bench.old_site import OldSite, write_site
from bench.seeded_sites import FILLING_SETTINGS, find_cluster, make_database, run_command
from kalends.imports.storage.import_tables import decode_message
from tests.move_in.samples import OLD, Placed, fill, list_losses
from tests.move_in.site_server import PASSWORD
from tests.servers import KALENDS, find_free_port, make_environment

ROOT = Path(__file__).parents[1]
# Editing stops while `switch` runs.
MAX_SWITCH_SECONDS = 60
WORKER_TIMEOUT = 1800
UNFINISHED_JOBS = (
    "SELECT count(*) AS n FROM procrastinate_jobs WHERE task_name = 'make_sizes' AND status IN ('todo', 'doing')"
)


@dataclass
class Move:
    """What a whole move took and found."""

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    outputs: dict[str, str] = field(default_factory=dict[str, str])
    problems: list[str] = field(default_factory=list[str])
    events: int = 0
    images: int = 0


@dataclass(frozen=True)
class NewSite:
    """The database and the files of the site into which the old one moves."""

    url: str
    directory: Path
    old_url: str
    password: str = PASSWORD
    home: str = ""  # the address in the texts of the old site, if it is another one

    @property
    def settings(self) -> dict[str, str]:
        return {
            "KALENDS_MEDIA_DIR": str(self.directory / "media"),
            "KALENDS_FETCH_ALLOWED_NETWORKS": self.old_url.removeprefix("http://"),
            "COLUMNS": "200",
        }

    def query(self, text: str, *values: object) -> list[dict[str, Any]]:
        with psycopg.connect(self.url, autocommit=True, row_factory=dict_row) as connection:
            return connection.execute(text.encode(), values).fetchall()

    def run(self, *arguments: object, check: bool = True) -> str:
        """Run `kalends import tec` with the credentials of the old site; return its output."""
        command = [*KALENDS, "import", "tec", *map(str, arguments)]
        result = subprocess.run(  # noqa: S603
            command, env=make_environment(self.url, self.settings), cwd=self.directory, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        if check and result.returncode:
            raise AssertionError(f"{arguments}: {result.stdout[-3000:]}")
        return result.stdout

    @property
    def credentials(self) -> tuple[str, ...]:
        path = self.directory / "password"
        path.write_text(self.password)
        return ("--login", "administrator", "--password-file", str(path))

    @contextmanager
    def start_worker(self) -> Iterator[None]:
        with (self.directory / "worker.log").open("ab") as log:
            process = subprocess.Popen(  # noqa: S603
                [*KALENDS, "worker"], env=make_environment(self.url, self.settings), stdout=log, stderr=log
            )
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)

    def wait_for_images(self) -> None:
        """Wait until the worker has made all sizes."""
        deadline = time.monotonic() + WORKER_TIMEOUT
        while int(self.query(UNFINISHED_JOBS)[0]["n"]):
            if time.monotonic() > deadline:
                raise AssertionError((self.directory / "worker.log").read_text()[-3000:])
            time.sleep(0.5)


StartOld = Callable[[bool], object]  # starts the old site at its port; True: as it was edited later


def move(site: NewSite, start_old: StartOld, expected: Iterable[tuple[str, str]], samples: Placed) -> Move:
    """Move a site in, with a worker beside, and check that nothing is lost without a line in the plan."""
    result = Move()
    snapshot = ("--snapshot", str(site.directory / "old.snapshot"))

    def run(step: str, *arguments: object, check: bool = True) -> str:
        started = time.perf_counter()
        output = result.outputs[step] = site.run(*arguments, check=check)
        result.seconds[step] = time.perf_counter() - started
        return output

    start_old(False)
    with site.start_worker():
        run_id = int(run("plan", "plan", site.old_url, *snapshot, *site.credentials).split()[-1])
        run("apply", "apply", run_id)
        result.problems += find_unlisted(site, run_id, expected)
        result.problems += find_unkept(site, samples)
        start_old(True)
        for number in (1, 2):
            run_id = int(run(f"sync {number}: plan", "plan", site.old_url, *snapshot, *site.credentials).split()[-1])
            run(f"sync {number}: apply", "apply", run_id)
            if number == 1:
                site.wait_for_images()
        output = run("switch", "switch", *site.credentials, check=False)
    if "The move-in is over." not in output:
        result.problems.append(f"switch: {output[-2000:]}")
    result.events = int(site.query("SELECT count(*) AS n FROM events")[0]["n"])
    result.images = int(site.query("SELECT count(DISTINCT media_id) AS n FROM media_files")[0]["n"])
    return result


def find_unlisted(site: NewSite, run_id: int, expected: Iterable[tuple[str, str]]) -> list[str]:
    """Return the losses that the plan does not name."""
    run = site.query("SELECT warnings::text AS text FROM import_runs WHERE id = %s", run_id)[0]
    listed = {
        (str(decode_message(entry)), identity)
        for entry in orjson.loads(run["text"])
        for _, identity in entry.get("records") or [("", "")]
    }
    return [
        f"not in the plan: {cause} ({identity})" for cause, identity in expected if (cause, identity) not in listed
    ]


def find_unkept(site: NewSite, samples: Placed) -> list[str]:
    """Return the parts of samples that are missing in the stored events."""
    rows = {row["id"]: row for row in site.query("SELECT * FROM events WHERE id = ANY(%s)", list(samples))}
    problems: list[str] = []
    for event_id, (sample, images) in samples.items():
        text = rows[event_id]["description"]
        parts = [fill(part, images).replace(OLD, site.home or site.old_url) for part in sample.kept]
        problems += [f"event {event_id} ({sample.name}) lacks {part}" for part in parts if part not in text]
        columns = {name: rows[event_id][name] or "" for name in sample.columns}
        problems += [f"event {event_id} ({sample.name}): {columns}"] if columns != dict(sample.columns) else []
    return problems


@contextmanager
def serve(port: int, records: Path, delay: float) -> Iterator[StartOld]:
    """Yield a function that serves the records as a WordPress site, in place of the one before."""
    processes: list[subprocess.Popen[str]] = []

    def stop() -> None:
        for process in processes:
            process.terminate()
            process.communicate(timeout=10)
        processes.clear()

    def start(is_edited: bool) -> None:
        stop()
        options = ["--port", str(port), "--page-size", "100", "--records", str(records), "--delay", str(delay)]
        command = [sys.executable, "-m", "tests.move_in.site_server", *options]
        more = ["--change-after", "0"] if is_edited else []
        process = subprocess.Popen([*command, *more], stdout=subprocess.PIPE, text=True, cwd=ROOT)  # noqa: S603
        processes.append(process)
        if process.stdout is None or not process.stdout.readline():
            raise AssertionError("the old site did not start")

    try:
        yield start
    finally:
        stop()


def list_expected(old: OldSite, url: str) -> Iterator[tuple[str, str]]:
    """Yield everything that is lost with the old site, as lines of the plan."""
    yield from list_losses(old.samples, url)
    ids = {str(entry["post"]) for entry in old.comments} & {str(event["id"]) for event in old.events}
    count = sum(str(entry["post"]) in ids for entry in old.comments)
    yield from ((f"{count} comments stay behind.", identity) for identity in ids)
    for entry in old.media:
        if entry["media_type"] != "image":
            yield "It is no image and stays behind.", str(entry["id"])


def measure(seeded_url: str, target_url: str, directory: Path, *, delay: float, pictures: int | None = None) -> Move:
    """Move the records of a seeded site, made lifelike, into the empty site of another database."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "old.snapshot").unlink(missing_ok=True)
    port = find_free_port()
    site = NewSite(target_url, directory, f"http://127.0.0.1:{port}")
    old = write_site(seeded_url, directory / "old-site.jsonl", pictures=pictures)
    with serve(port, directory / "old-site.jsonl", delay) as start_old:
        return move(site, start_old, list_expected(old, site.old_url), old.samples)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--delay", type=float, default=0.2, help="seconds of each response of the old site")
    parser.add_argument("--directory", type=Path, default=Path(".local/imports"))
    arguments = parser.parse_args()
    with ExitStack() as stack:
        cluster = find_cluster(arguments.directory, stack, FILLING_SETTINGS)
        seeded, target = (make_database(cluster.url, name) for name in ("bench_old_site", "bench_new_site"))
        run_command(seeded, "seed", "--events", str(arguments.events))
        result = measure(seeded, target, (arguments.directory / "move").absolute(), delay=arguments.delay)
    return report(result)


def report(result: Move) -> int:
    console = Console(width=120)
    console.print(f"{result.events:,} events, {result.images:,} images with their sizes")
    for step, seconds in result.seconds.items():
        console.print(f"{step}: {seconds / 60:.1f} minutes ({seconds:.0f} s)")
    console.out(result.outputs["switch"])
    problems = list(result.problems)
    if result.events <= 1000 and result.seconds["switch"] > MAX_SWITCH_SECONDS:
        problems.append(f"editing stops for {result.seconds['switch']:.0f} s")
    return report_problems(console, problems)


if __name__ == "__main__":
    sys.exit(main())

"""Runs the conformance kit against a fresh server per phase and reports the steps that differ.

The kit is not part of this project: --kit or KALENDS_CONFORMANCE_KIT names its directory; the default is
shared/conformance next to the project.
"""

import argparse
import io
import json
import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from PIL import Image
from psycopg import sql

from tests.servers import Server, make_environment
from tools.postgres import Server as PostgresServer, throwaway

PROJECT = Path(__file__).resolve().parent.parent
EXPECTED_FAILURES = Path(__file__).with_name("conformance_expected_failures.txt")
NAMESPACE = "/api/calendar/events/v1"
# With --cells: the cells, and the host of the site, which is the address of the server.
CELLS = ("a", "b", "c")
HOST = "127.0.0.1"
LOGINS = {"administrator": "admin", "editor": "ed", "author": "au", "contributor": "co", "subscriber": "su"}

type Result = dict[str, Any]  # One line of the kit's --out file: name, section, outcome, differences …


def main() -> int:
    arguments = parse_arguments()
    expected = read_expected_failures()
    sections = [name for name in (arguments.sections or "").split(",") if name]
    results: list[Result] = []
    for phase, names in find_phases(arguments.kit).items():
        if arguments.phase not in (phase, "all") or not any(is_selected(name, sections) for name in names):
            continue
        print(f"phase {phase} …", flush=True)
        results += run_phase(phase, arguments.kit, arguments.only, has_cells=arguments.cells)
    if arguments.out:
        arguments.out.write_text("".join(json.dumps(result) + "\n" for result in results))
    selected = [result for result in results if is_selected(result["section"], sections)]
    is_complete = not sections and not arguments.only and arguments.phase == "all"
    return report(selected, expected, show=arguments.show, is_complete=is_complete)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="just conformance", description=__doc__)
    parser.add_argument("--phase", choices=("records", "lists", "all"), default="all")
    parser.add_argument("--sections", help="count only these: 01,02 or 01_index,02_auth (all are played)")
    parser.add_argument("--only", action="append", default=[], metavar="GLOB", help="check only such steps")
    parser.add_argument("--show", type=int, default=20, metavar="N", help="how many differing steps to print")
    parser.add_argument("--out", type=Path, help="keep the kit's results here, one JSON line per step")
    parser.add_argument("--kit", type=Path, help="the kit's directory")
    parser.add_argument("--cells", action="store_true", help="run it on a site in one of three cells")
    arguments = parser.parse_args()
    arguments.kit = find_kit(arguments.kit)
    if not (arguments.kit / "conformance.py").exists():
        parser.error(f"there is no conformance kit in {arguments.kit}; see --kit")
    return arguments


def find_kit(path: Path | None) -> Path:
    default = PROJECT.parent / "shared" / "conformance"
    return (path or Path(os.environ.get("KALENDS_CONFORMANCE_KIT") or default)).absolute()


def find_phases(kit: Path) -> Mapping[str, Sequence[str]]:
    """Return the sections of each phase, by the names in the results of the kit."""
    phases = runpy.run_path(str(kit / "scenario" / "__init__.py"))["PHASES"]
    return {phase: [module.removeprefix("s") for module in modules] for phase, modules in phases.items()}


def is_selected(section: str, sections: Sequence[str]) -> bool:
    return not sections or section in sections or section.partition("_")[0] in sections


@dataclass(frozen=True)
class Installation:
    """The settings of an empty site, and the options by which commands and the worker find it."""

    database_url: str
    settings: Mapping[str, str]
    site_options: Sequence[str] = ()
    worker_options: Sequence[str] = ()

    def run(self, *arguments: str) -> str:
        completed = subprocess.run(
            [sys.executable, "-m", "kalends", *arguments],
            env=make_environment(self.database_url, self.settings),
            capture_output=True,
            text=True,
            check=False,
        )
        if completed.returncode:
            sys.exit(f"kalends {' '.join(arguments)} failed.\n{completed.stdout}{completed.stderr}")
        return completed.stdout.strip()


def install(postgres: PostgresServer, media: Path) -> Installation:
    """Migrate a database with one site."""
    installation = Installation(postgres.url, {"KALENDS_MEDIA_DIR": str(media)})
    installation.run("migrate")
    return installation


def install_cells(postgres: PostgresServer, media: Path) -> Installation:
    """Migrate three cells with a directory, and add a site to the second."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        for name in ("directory", *CELLS):
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    settings = {
        "KALENDS_DIRECTORY_URL": postgres.build_url("directory"),
        "KALENDS_CELLS": ",".join(f"{name}={postgres.build_url(name)}" for name in CELLS),
        "KALENDS_MEDIA_DIR": str(media),
    }
    # The URL of a single database is not used.
    installation = Installation(postgres.url, settings, ("--site", HOST), ("--cell", CELLS[1]))
    installation.run("migrate")
    for name in CELLS:
        installation.run("cell", "add", name)
    installation.run("site", "add", HOST, "--cell", CELLS[1])
    return installation


def run_phase(phase: str, kit: Path, only: Sequence[str], *, has_cells: bool) -> list[Result]:
    """Run one phase on a fresh cluster, because each phase needs empty tables."""
    with tempfile.TemporaryDirectory(prefix="kalends-conformance-") as temporary, throwaway() as postgres:
        directory = Path(temporary)
        users_file, results_file = directory / "users.json", directory / "results.jsonl"
        installation = (install_cells if has_cells else install)(postgres, directory / "media")
        installation.run("site", "set", "timezone", "America/New_York", *installation.site_options)
        users_by_role = {role: add_user(installation, role) for role in LOGINS}
        users_file.write_text(json.dumps(users_by_role))
        log = directory / "server.log"
        with Server.start(installation.database_url, log=log, environment=installation.settings) as server:
            with worker(installation):
                images = ",".join(map(str, add_images(server, users_by_role["administrator"])))
            command: list[str | Path] = [sys.executable, kit / "conformance.py", "--show", "0"]
            command += [
                "--base",
                server.base_url + NAMESPACE,
                "--users",
                users_file,
                "--phase",
                phase,
                "--out",
                results_file,
                "--media-id",
                images,
            ]
            command += [f"--only={glob}" for glob in only]
            # Do not write compiled files into the directory of the kit.
            completed = subprocess.run(
                command,
                env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                text=True,
                check=False,
            )
            if not results_file.exists():  # The exit code is 1 for a crash and also for differing steps.
                sys.exit(f"The kit broke off.\n{completed.stdout}{completed.stderr}\n{server.read_log()}")
        return [json.loads(line) for line in results_file.read_text().splitlines()]


def add_images(server: Server, user: Mapping[str, str | int]) -> list[int]:
    """Add the two images that the kit requires, the second a small one, and generate their sizes."""
    image_ids: list[int] = []
    url = f"{server.base_url}/api/kalends/v1/media"
    with server.client(login=str(user["login"]), password=str(user["password"])) as client:
        for width, height in ((800, 600), (40, 30)):
            content = io.BytesIO()
            Image.new("RGB", (width, height), "teal").save(content, "PNG")
            response = client.post(url, files={"file": ("image.png", content.getvalue())})
            image_ids.append(response.raise_for_status().json()["id"])
        deadline = time.monotonic() + 60
        while not all("sizes" in client.get(f"{url}/{number}").json() for number in image_ids):
            if time.monotonic() > deadline:
                sys.exit("The sizes of the images were not made in time.")
            time.sleep(0.2)
    return image_ids


@contextmanager
def worker(installation: Installation) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", "kalends", "worker", *installation.worker_options],
        env=make_environment(installation.database_url, installation.settings),
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def add_user(installation: Installation, role: str) -> dict[str, str | int]:
    login, options = LOGINS[role], installation.site_options
    added = installation.run("user", "add", login, "--role", role, *options)
    user_id = int(added.rpartition("(ID ")[2].partition(")")[0])
    password = installation.run("app-password", "create", login, "conformance", *options)
    return {"login": login, "password": password, "id": user_id}


def read_expected_failures() -> dict[str, str]:
    """Return the reasons for expected failures by step name."""
    lines = [line.strip() for line in EXPECTED_FAILURES.read_text().splitlines()]
    rows = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    for row in rows:
        if len(row) < 2:
            sys.exit(f"{EXPECTED_FAILURES.name}: {row[0]} stands there without a reason.")
    return dict(rows)


def report(results: Sequence[Result], expected: Mapping[str, str], *, show: int, is_complete: bool) -> int:
    """Print the results and return the exit code."""
    outcomes = {result["name"]: result["outcome"] for result in results}
    failed = [result for result in results if result["outcome"] == "failed" and result["name"] not in expected]
    expected_failures = [name for name in expected if outcomes.get(name) == "failed"]
    outdated = [name for name in expected if outcomes.get(name) == "passed"]
    unknown = [name for name in expected if name not in outcomes] if is_complete else []
    for result in failed[:show]:
        print_differences(result)
    if len(failed) > show:
        print(f"\n… {len(failed) - show} more steps failed (--show, --out)")
    for title, names in (
        ("held to be wrong, and failed as expected", expected_failures),
        ("listed as held to be wrong, but passed: remove from the list", outdated),
        ("listed as held to be wrong, but not in the kit", unknown),
    ):
        if names:
            print(f"\n{title}")
        for name in names:
            print(f"  {name}: {expected[name]}")
    print_table(results, expected)
    counts = Counter(outcomes.values())
    skipped = counts["skipped"] + len(expected_failures)
    print(f"\nconformance: {counts['passed']} passed, {len(failed)} failed, {skipped} skipped")
    return 1 if failed or outdated or unknown or not counts["passed"] else 0


def print_differences(result: Result) -> None:
    print(f"\n{result['name']}   [{result['section']}]\n    {result['request']}")
    if result.get("decisions"):
        print(f"    decisions: {', '.join(result['decisions'])}")
    for place, expected, got in result["differences"][:8]:
        print(f"    {place}\n        expected  {shorten(expected)}\n        got       {shorten(got)}")
    if len(result["differences"]) > 8:
        print(f"    … and {len(result['differences']) - 8} more")


def shorten(value: Any, width: int = 400) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= width else text[:width] + " …"


def print_table(results: Sequence[Result], expected: Mapping[str, str]) -> None:
    columns = ("passed", "failed", "expected", "skipped")
    sections: dict[str, Counter[str]] = {}
    for result in results:
        is_listed = result["outcome"] == "failed" and result["name"] in expected
        outcome = "expected" if is_listed else result["outcome"]
        sections.setdefault(result["section"], Counter())[outcome] += 1
    total = sum(sections.values(), Counter())
    print(f"\n{'section':<24}" + "".join(f"{column:>10}" for column in columns))
    for name, row in [*sections.items(), ("total", total)]:
        print(f"{name:<24}" + "".join(f"{row[column]:>10}" for column in columns))


if __name__ == "__main__":
    sys.exit(main())

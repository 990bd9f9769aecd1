"""Every command works with the logins of the example settings, or names the setting that it needs."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from tests.conftest import replace_database
from tests.lifecycle.processes import run_command
from tests.servers import KALENDS, make_environment
from tools.command_runs import RUNS, CommandRun, find_forgotten, write_files

EXAMPLE = Path(__file__).resolve().parents[2] / "deploy/systemd/kalends.env.example"
URLS = ("KALENDS_DATABASE_URL", "KALENDS_QUEUE_URL", "KALENDS_MIGRATION_URL")
# A server or worker stops cleanly once it has logged one of these lines.
STARTED = re.compile(r"Started worker-1|worker started")


@dataclass(frozen=True)
class Installation:
    """The settings of an installation by the documentation, and the files that the commands use."""

    settings: dict[str, str]
    owner: dict[str, str]
    files: Path


def read_example() -> dict[str, str]:
    """Return all settings of the example, including those that are commented out."""
    return dict(re.findall(r"(?m)^#?(KALENDS_\w+)=(.*)$", EXAMPLE.read_text()))


@pytest.fixture(scope="module")
def installation(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Create the database and the logins as docs/how-to/install.md does."""
    directory = tmp_path_factory.mktemp("installation")
    write_files(directory)
    example, database = read_example(), "kalends_least_privileges"
    server = urlsplit(replace_database(postgres_url, database))
    logins = {name: str(urlsplit(example[name]).username) for name in URLS}
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(database)))
        for name, login in logins.items():
            rights = sql.SQL("SUPERUSER" if name == "KALENDS_MIGRATION_URL" else "")
            admin.execute(sql.SQL("CREATE ROLE {} LOGIN {}").format(sql.Identifier(login), rights))
        settings = {name: value for name, value in example.items() if f"\n{name}=" in EXAMPLE.read_text()}
        settings |= {
            name: server._replace(netloc=f"{login}@{server.hostname}:{server.port}").geturl()
            for name, login in logins.items()
        } | {"KALENDS_MEDIA_DIR": str(directory / "media")}
        owner = {"KALENDS_MIGRATION_URL": settings.pop("KALENDS_MIGRATION_URL")}
        yield Installation(settings, owner, directory)
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(database)))
        for login in logins.values():
            admin.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(login)))


def test_no_command_is_forgotten() -> None:
    assert find_forgotten() == []


def test_every_command_works_or_names_the_setting_it_needs(installation: Installation) -> None:
    """Compare all failures at once: each command depends on those before it."""
    problems: list[str] = []
    for run in RUNS:
        if run.needs_owner:
            status, output = execute(installation, run, installation.settings)
            if status != 1 or "KALENDS_MIGRATION_URL" not in output:
                problems.append(f"{run.command} without the owner's login: {status} {output}")
        settings = {**installation.settings, **(installation.owner if run.needs_owner else {})}
        status, output = execute(installation, run, settings)
        if status != run.status or run.output not in output or "Run `kalends --debug" in output:
            problems.append(f"{run.command}: {status} {output}")
    assert "\n".join(problems) == ""


def run_until_started(command: list[str], log: Path, settings: dict[str, str]) -> tuple[int, str]:
    """Run a server or worker until it logs that it has started, then stop it."""
    environment = make_environment(settings["KALENDS_DATABASE_URL"], settings)
    with log.open("w") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + 60
    while process.poll() is None and not STARTED.search(log.read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.terminate()
    return process.wait(30), log.read_text()


def execute(installation: Installation, run: CommandRun, settings: dict[str, str]) -> tuple[int, str]:
    arguments = run.split(str(installation.files))
    if run.runs_on:
        return run_until_started([*KALENDS, *arguments], installation.files / "output", settings)
    others = {name: value for name, value in settings.items() if name != "KALENDS_DATABASE_URL"}
    result = run_command(settings["KALENDS_DATABASE_URL"], *arguments, settings=others, answers=run.answers or None)
    return result.exit_code, result.output + os.linesep

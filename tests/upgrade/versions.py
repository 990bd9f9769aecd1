"""Versions of Kalends as wheels, each installed in its own virtual environment below .local/versions."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kalends.store.migrations import newest_revision
from kalends.store.migrations.compatibility import OLDEST_CODE
from tests.commands.later_version import add_migration
from tests.servers import KALENDS, make_environment
from tools.release import PROJECT, export_commit

VERSIONS = PROJECT / ".local" / "versions"
# The files that a wheel is built from.
SOURCES = ("kalends", "LICENSE", "README.md", "pyproject.toml", "uv.lock")
UV = os.environ.get("UV", "uv")
# The made-up next version: a column in two tables, and an index.
EXPANSIONS = (
    {
        ".sql": "ALTER TABLE events ADD COLUMN made_up_rank integer NOT NULL DEFAULT 0;\n"
        "ALTER TABLE venues ADD COLUMN made_up_note text NOT NULL DEFAULT '';\n"
    },
    {".concurrent.sql": "CREATE INDEX CONCURRENTLY IF NOT EXISTS made_up ON events (site_id, made_up_rank);\n"},
)


@dataclass(frozen=True)
class Version:
    name: str
    schema: str  # the newest migration
    kalends: Sequence[str]  # the command line

    def run(self, database_url: str, *arguments: str, settings: Mapping[str, str] | None = None) -> str:
        """Run a command and return what it prints."""
        completed = subprocess.run(
            [*self.kalends, *arguments],
            env=make_environment(database_url, settings),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert completed.returncode == 0, f"{self.name}: kalends {' '.join(arguments)}\n{completed.stderr}"
        return completed.stdout


def current_version() -> Version:
    return Version("current", newest_revision(), KALENDS)


def oldest_version() -> Version:
    """Build the oldest version that works on the current schema: the commit that added its newest migration."""
    schema = OLDEST_CODE[newest_revision()]
    migration = f"kalends/store/migrations/versions/{schema}_*.py"
    found = read_git("log", "--first-parent", "--diff-filter=A", "--format=%H", "--", migration).split()
    assert found, f"no commit adds migration {schema}: the clone needs the whole history"
    commit = found[-1]
    return Version(commit[:12], schema, install(commit[:12], lambda directory: export_commit(directory, commit)))


def next_version() -> Version:
    """Build a made-up next version: this one with more migrations."""
    shutil.rmtree(VERSIONS / "next", ignore_errors=True)
    last = f"{int(newest_revision()) + len(EXPANSIONS):04}"
    return Version("next", last, install("next", write_next_version))


def write_next_version(directory: Path) -> None:
    for name in SOURCES:
        source = PROJECT / name
        if source.is_dir():
            shutil.copytree(source, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, directory / name)
    migrations = directory / "kalends" / "store" / "migrations"
    previous = newest_revision()
    declarations = dict(OLDEST_CODE)
    for files in EXPANSIONS:
        number = f"{int(previous) + 1:04}"
        add_migration(migrations, number, previous, files)
        declarations[number] = declarations[previous]
        previous = number
    (migrations / "compatibility.py").write_text(f"OLDEST_CODE = {declarations!r}\n")


def install(name: str, write_source: Callable[[Path], None]) -> list[str]:
    """Build a wheel from sources, install it with the locked dependencies, and return its command line."""
    home = VERSIONS / name
    command = home / "venv" / "bin" / "kalends"
    if command.exists():
        return [str(command)]
    shutil.rmtree(home, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="kalends-version-") as directory:
        source, python = Path(directory) / "source", home / "venv" / "bin" / "python"
        source.mkdir()
        write_source(source)
        run_uv("build", "--quiet", "--wheel", "--out-dir", home, source)
        requirements = Path(directory) / "requirements.txt"
        run_uv(
            *("export", "--quiet", "--frozen", "--no-dev", "--no-emit-project", "--no-hashes"),
            *("--project", source, "--output-file", requirements),
        )
        run_uv("venv", "--quiet", home / "venv")
        run_uv("pip", "install", "--quiet", "--python", python, "-r", requirements)
        run_uv("pip", "install", "--quiet", "--no-deps", "--python", python, next(home.glob("*.whl")))
    return [str(command)]


def run_uv(*arguments: str | Path) -> None:
    inherited = {name: value for name, value in os.environ.items() if name not in ("UV_FROZEN", "VIRTUAL_ENV")}
    completed = subprocess.run(
        [UV, *arguments], cwd="/", env=inherited, capture_output=True, text=True, timeout=600, check=False
    )
    assert completed.returncode == 0, completed.stderr


def read_git(*arguments: str) -> str:
    completed = subprocess.run(["git", *arguments], cwd=PROJECT, capture_output=True, text=True, check=True)
    return completed.stdout

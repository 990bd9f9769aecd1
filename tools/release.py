"""Prepare a release: build and check the distributions, then commit the new version and tag it.

All checks run on an export of the last commit, so a dry run or a failure leaves the working tree unchanged.
Nothing is pushed or published: pushing the tag is a separate decision (CONTRIBUTING.md, "Releases").
"""

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from tools import postgres

PROJECT: Final = Path(__file__).resolve().parent.parent
VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:(a|b|rc)(\d+))?")
UNRELEASED: Final = "## [Unreleased]\n"


class ReleaseError(Exception):
    """A reason why the release cannot be made, as a sentence for the maintainer."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", help="such as 1.2.3 or 1.2.3rc1, without a leading v")
    parser.add_argument("--dry-run", action="store_true", help="do everything except the commit and the tag")
    arguments = parser.parse_args()
    try:
        release(arguments.version, dry_run=arguments.dry_run)
    except (ReleaseError, postgres.PostgresError) as error:
        print(f"Not released: {error}", file=sys.stderr)
        return 1
    return 0


def release(version: str, *, dry_run: bool) -> None:
    """Check the repository, build and try the distributions, then commit and tag."""
    check_repository(version)
    with tempfile.TemporaryDirectory(prefix="kalends-release-") as directory:
        # Programs run as other users, such as PostgreSQL, must be able to enter the directory.
        Path(directory).chmod(0o755)
        source = Path(directory) / "source"
        export_commit(source)
        changes = prepare_files(source, version, datetime.now(UTC).date())
        write_files(source, changes)
        distributions = build(source, Path(directory) / "dist")
        try_wheel(next(path for path in distributions if path.suffix == ".whl"), version, Path(directory))
        shutil.copytree(Path(directory) / "dist", PROJECT / "dist", dirs_exist_ok=True)
    names = ", ".join(f"dist/{path.name}" for path in distributions)
    if dry_run:
        print(f"\nDry run: {names} passed all checks. Nothing was committed or tagged.")
        return
    write_files(PROJECT, changes)
    run("git", "commit", f"--message=project: release {version}", "--", *changes)
    run("git", "tag", "--annotate", f"--message=Kalends {version}", f"v{version}")
    print(f"\nBuilt {names} and tagged v{version}. To publish it: git push origin HEAD v{version}")


def check_repository(version: str) -> None:
    """Raise ReleaseError unless `version` is new and valid, and the working tree is clean."""
    if not VERSION.fullmatch(version):
        raise ReleaseError(f"{version!r} is not a version; use MAJOR.MINOR.PATCH, optionally with a1, b1 or rc1.")
    current = find_version((PROJECT / "kalends" / "__init__.py").read_text())
    if sort_key(version) < sort_key(current):
        raise ReleaseError(f"{version} is lower than the current version, {current}.")
    if read("git", "tag", "--list", f"v{version}"):
        raise ReleaseError(f"The tag v{version} already exists.")
    if changed := read("git", "status", "--porcelain"):
        raise ReleaseError(f"The working tree is not clean; commit or stash these files first:\n{changed}")


def find_version(module: str) -> str:
    """Return the value of `__version__` in the source of a module."""
    if found := re.search(r'^__version__ = "([^"]+)"$', module, re.MULTILINE):
        return found[1]
    raise ReleaseError("kalends/__init__.py does not set __version__.")


def sort_key(version: str) -> tuple[int, int, int, str, int]:
    """Return a key that sorts versions; pre-releases come before their release."""
    if not (parts := VERSION.fullmatch(version)):
        raise ReleaseError(f"{version!r} is not a version.")
    major, minor, patch, stage, number = parts.groups()
    return int(major), int(minor), int(patch), stage or "release", int(number or 0)


def export_commit(directory: Path, commit: str = "HEAD") -> None:
    """Write the files of a commit, by default the last one, to `directory`."""
    archive = subprocess.run(["git", "archive", commit], cwd=PROJECT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(directory, filter="data")


def prepare_files(directory: Path, version: str, day: date) -> dict[str, str]:
    """Return the new text of every file that contains the version, by path."""
    rules = {
        "kalends/__init__.py": r'(?m)^(__version__ = ")[^"]+(")$',
        "pyproject.toml": r'(?m)^(version = ")[^"]+(")$',
        "uv.lock": r'(\[\[package\]\]\nname = "kalends"\nversion = ")[^"]+(")',
    }
    files = {name: set_version(name, (directory / name).read_text(), rule, version) for name, rule in rules.items()}
    files["CHANGELOG.md"] = date_changelog((directory / "CHANGELOG.md").read_text(), version, day)
    return files


def set_version(name: str, text: str, rule: str, version: str) -> str:
    """Replace the version that `rule` finds; it has to match exactly once."""
    replaced, count = re.subn(rule, rf"\g<1>{version}\g<2>", text)
    if count != 1:
        raise ReleaseError(f"{name} has {count} lines with the version of the project instead of one.")
    return replaced


def date_changelog(text: str, version: str, day: date) -> str:
    """Turn the entries under "Unreleased" into the section of `version`, and begin an empty "Unreleased"."""
    if f"## [{version}]" in text:
        raise ReleaseError(f"CHANGELOG.md already has a section for {version}.")
    before, heading, after = text.partition(UNRELEASED)
    if not heading:
        raise ReleaseError('CHANGELOG.md has no section "Unreleased".')
    if not after.split("\n## [", 1)[0].strip():
        raise ReleaseError('CHANGELOG.md has no entries under "Unreleased".')
    return f"{before}{UNRELEASED}\n## [{version}] - {day.isoformat()}\n{after}"


def write_files(directory: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (directory / name).write_text(text)


def build(source: Path, directory: Path) -> Sequence[Path]:
    """Build the sdist, and the wheel from the sdist; check the metadata of both."""
    run("uv", "build", f"--out-dir={directory}", source)
    distributions = sorted(path for path in directory.iterdir() if path.name.endswith((".tar.gz", ".whl")))
    run("uvx", "twine", "check", "--strict", *distributions)
    return distributions


def try_wheel(wheel: Path, version: str, directory: Path) -> None:
    """Install the wheel into a new environment, outside of the source tree, and migrate a temporary database."""
    environment = directory / "environment"
    run("uv", "venv", f"--python={sys.executable}", environment)
    run("uv", "pip", "install", f"--python={environment}", wheel)
    python, kalends = environment / "bin" / "python", environment / "bin" / "kalends"
    installed = read(python, "-c", "import kalends; print(kalends.__version__)", cwd=directory)
    if installed != version:
        raise ReleaseError(f"The wheel contains version {installed} instead of {version}.")
    run(kalends, "--help", cwd=directory)
    with postgres.throwaway() as server:
        run(kalends, "migrate", cwd=directory, settings={"KALENDS_DATABASE_URL": server.url})


def run(*command: str | Path, cwd: Path = PROJECT, settings: Mapping[str, str] | None = None) -> None:
    """Show a command and run it; raise ReleaseError if it fails."""
    print("$", *command, flush=True)
    done = subprocess.run([*map(str, command)], cwd=cwd, env=make_environment(settings or {}), check=False)
    if done.returncode:
        raise ReleaseError(f"{Path(command[0]).name} failed with exit code {done.returncode}.")


def read(*command: str | Path, cwd: Path = PROJECT) -> str:
    """Return the output of a command; raise ReleaseError if it fails."""
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=make_environment({}), stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise ReleaseError(f"{Path(command[0]).name} failed with exit code {done.returncode}.")
    return done.stdout.strip()


def make_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment with only the given settings of Kalends."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("KALENDS_")}
    return {**inherited, **settings}


if __name__ == "__main__":
    sys.exit(main())

"""Every command of Kalends once, on an installation with one site, in an order in which each finds what it needs.

`just install-test` runs them on a bare Debian with the documented settings. A test runs them with the logins of
`deploy/systemd/kalends.env.example`.
"""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import typer.main

from kalends.commands import app

NO_DIRECTORY: Final = "There is no directory: set KALENDS_DIRECTORY_URL"
# Nothing listens on this port.
NOWHERE: Final = "http://127.0.0.1:9"
FILES: Final = "FILES"  # stands for the directory with the files of `write_files`
PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@dataclass(frozen=True, slots=True)
class CommandRun:
    """A command with its arguments; how it ends, and what it prints then."""

    command: str
    arguments: str = ""
    status: int = 0
    output: str = ""
    needs_owner: bool = False  # whether it needs KALENDS_MIGRATION_URL
    runs_on: bool = False  # whether it runs until it is stopped
    answers: str = ""  # standard input

    def split(self, files: str) -> list[str]:
        """Return the command line after `kalends`."""
        return [part.replace(FILES, files) for part in f"{self.command} {self.arguments}".split()]


RUNS: Final = (
    CommandRun("migrate", needs_owner=True),
    CommandRun("migrate", "--check", output="The schema is up to date"),
    CommandRun("check", output="Schema"),
    CommandRun("status", output="Database"),
    CommandRun("serve", "--port 8017", runs_on=True),
    CommandRun("stream", "--port 8018", runs_on=True),
    CommandRun("worker", runs_on=True),
    # Records and accounts.
    CommandRun("seed", "--events 20 --venues 3", output="Created 20 events", needs_owner=True),
    CommandRun("history", "venue 1", output="create"),
    CommandRun("follower forget", "nobody@example.org", output="no data of nobody@example.org"),
    CommandRun("user add", "carol --role administrator", output="Added carol"),
    CommandRun("user link", "carol", output="/console/"),
    CommandRun("user list", output="carol"),
    CommandRun("user set-email", "carol carol@example.org"),
    CommandRun("user set-password", "carol", answers="a long enough password"),
    CommandRun("user add", "dave --role subscriber"),
    CommandRun("user set-role", "dave author"),
    CommandRun("user disable", "dave"),
    CommandRun("user enable", "dave"),
    CommandRun("user rename", "dave david"),
    CommandRun("user remove", "david --yes"),
    CommandRun("app-password create", "carol phone"),
    CommandRun("app-password list", "carol", output="phone"),
    CommandRun("app-password log", "carol"),
    CommandRun("app-password revoke", "carol phone"),
    CommandRun("job list", output="waiting"),
    CommandRun("job retry", "999999", status=1, output="There is no failed or stalled job 999999."),
    CommandRun("timezone refresh", output="0 future events shifted."),
    CommandRun("media add", f"{FILES}/images --login carol", output="Added 1 images"),
    CommandRun("media list", output="pixel"),
    CommandRun("media check", output="0 images incomplete."),
    CommandRun("series extend", output="0 dates created."),
    CommandRun("proposals forget", "anna@example.org", output="There is no data of anna@example.org."),
    # Imports.
    CommandRun("import run", f"{FILES}/table.csv --owner carol", output="Apply this plan"),
    CommandRun("import list", output="table.csv"),
    CommandRun("import show", "1", output="Reading"),
    CommandRun("import decide", "1 99 --same", status=1),
    CommandRun("import apply", "1", output="1 rows applied"),
    CommandRun("import undo", "1 --yes", output="1 rows applied"),
    CommandRun(
        "import tec plan",
        f"{NOWHERE} --login a --password-file {FILES}/password --snapshot {FILES}/snapshot",
        status=1,
        output="127.0.0.1",
    ),
    CommandRun("import tec apply", "999999", status=1),
    CommandRun("import tec verify", "999999", status=1),
    CommandRun("import tec switch", f"{NOWHERE} --login a --password-file {FILES}/password", status=1),
    CommandRun("import tec invite"),
    CommandRun("import tec missing", f"{FILES}/server.log", output="/missing/"),
    # Sites.
    CommandRun("site show", output="timezone"),
    CommandRun("site set", "name Town", output="name is now 'Town'."),
    CommandRun("site list", output="Town", needs_owner=True),
    CommandRun("site add-host", "first.example.org", needs_owner=True),
    CommandRun("site add-host", "other.example.org", needs_owner=True),
    CommandRun("site remove-host", "other.example.org", needs_owner=True),
    CommandRun("site add", "second.example.org", output="Added site 2", needs_owner=True),
    CommandRun("site export", f"1 --to {FILES}/town.zip", output="Exported site 1", needs_owner=True),
    CommandRun(
        "site import", f"{FILES}/town.zip --host third.example.org", output="Imported site 3", needs_owner=True
    ),
    CommandRun("site remove", "2 --yes", needs_owner=True),
    CommandRun("site remove", "3 --yes", needs_owner=True),
    # Cells.
    CommandRun("cell add", "a", status=1, output=NO_DIRECTORY),
    CommandRun("cell list", status=1, output=NO_DIRECTORY),
    CommandRun("cell drain", "a", status=1, output=NO_DIRECTORY),
    CommandRun("cell fill", "a", status=1, output=NO_DIRECTORY),
    CommandRun("cell check", status=1, output=NO_DIRECTORY),
    CommandRun("site move", "1 --to a", status=1, output=NO_DIRECTORY),
    CommandRun("site moves", status=1, output=NO_DIRECTORY),
)


def list_commands() -> Iterator[tuple[str, Any]]:
    """Yield every command of the program by its name, such as "site add"; groups are not commands."""
    yield from _list_commands(typer.main.get_command(app), ())


def _list_commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", {})
    for name, member in inner.items():
        yield from _list_commands(member, (*path, name))
    if not inner:
        yield " ".join(path), command


def find_forgotten() -> list[str]:
    """Return the commands that no run has."""
    return sorted({name for name, _ in list_commands()} - {run.command for run in RUNS})


def write_files(directory: Path) -> None:
    """Write the files that the runs name."""
    (directory / "images").mkdir(parents=True)
    (directory / "images" / "pixel.png").write_bytes(base64.b64decode(PIXEL))
    (directory / "table.csv").write_text("Title,Start date,End date\nReading,2030-05-01 19:00,2030-05-01 20:00\n")
    (directory / "password").write_text("secret\n")
    (directory / "server.log").write_text('{"event": "request", "status": 404, "path": "/missing/"}\n')

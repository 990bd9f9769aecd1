"""Run the commands of a page and compare their output with the page.

A block that begins with ```console contains commands after "$ ", each followed by its output. A command continues on
the next line after a backslash. "…" matches any text. A block with a title is a part of the file of this name, which
is written before. `<!-- setup: server -->` requests a running server, `<!-- setup: events -->` one with two events,
`<!-- setup: cluster -->` a PostgreSQL without any database.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kalends.accounts.operations import user_accounts
from kalends.core.times import utc_now
from kalends.store.database import Database, Options
from tests.servers import find_free_port

PROJECT = Path(__file__).resolve().parent.parent.parent
DOCS = PROJECT / "docs"
# Pages for a server that has the account of `just run`. The quickstart for publishers has no commands.
SERVER_QUICKSTARTS = [
    DOCS / "how-to" / "event-by-api.md",
    *[DOCS / f"quickstart-{name}.md" for name in ("developer", "python", "javascript")],
]
OPERATOR_QUICKSTART = DOCS / "quickstart-operator.md"
CONSOLE_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_BLOCK = re.compile(r'^```\w+ title="([\w.]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
SETUP_COMMENT = re.compile(r"<!-- setup: (\w+) -->")
DOCUMENTED_ADDRESS = re.compile(r"(127\.0\.0\.1|localhost):(800[01])")
COMMAND_MARKER = "@@next command@@"


@dataclass(frozen=True)
class Command:
    text: str
    output: str


PrintedCommand = tuple[Command, str]


def read_setup(page: Path) -> str:
    """Return what a page needs: a `server`, one with `events`, a `cluster`, or an empty `database`."""
    match = SETUP_COMMENT.search(page.read_text())
    return match[1] if match else "database"


def parse_commands(page: Path) -> list[Command]:
    commands: list[Command] = []
    for block in CONSOLE_BLOCK.findall(page.read_text()):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            length = 1
            while lines[length - 1].endswith("\\"):
                length += 1
            commands.append(Command("\n".join(lines[:length]), "\n".join(lines[length:])))
    return commands


def run_commands(
    page: Path, directory: Path, environment: Mapping[str, str], port: int | None = None
) -> list[PrintedCommand]:
    """Run the commands of a page and return each with its output. `port` is the port of a running server, if any."""
    commands = parse_commands(page)
    port = port or find_free_port()
    script = ["set -u", "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT"]
    for command in commands:
        script += [f"echo '{COMMAND_MARKER}'", command.text]
    text = _use_port("\n".join(script), port)
    # The logs of the server and the worker are not part of the output.
    text = re.sub(r"^(kalends (?:serve|worker)\b.*) &$", r"\1 >/dev/null 2>&1 &", text, flags=re.MULTILINE)
    if url := environment.get("KALENDS_DATABASE_URL"):
        # Replace the database of the page with the one of the test.
        text = re.sub(r"KALENDS_DATABASE_URL=\S+", f"KALENDS_DATABASE_URL={url}", text)
    write_files(page, directory, port)
    path = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    result = subprocess.run(
        ["bash", "-c", text],
        cwd=directory,
        env={**environment, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    documented = DOCUMENTED_ADDRESS.search(page.read_text())
    port_on_page = documented[2] if documented else str(port)
    printed = re.sub(rf"(127\.0\.0\.1|localhost):{port}\b", rf"\1:{port_on_page}", result.stdout)
    parts = printed.split(f"{COMMAND_MARKER}\n")[1:]
    assert len(parts) == len(commands), result.stderr[-2000:]
    return list(zip(commands, (part.rstrip("\n") for part in parts), strict=True))


def write_files(page: Path, directory: Path, port: int) -> None:
    """Write the files whose parts the page shows."""
    parts: dict[str, list[str]] = {}
    for name, part in FILE_BLOCK.findall(page.read_text()):
        parts.setdefault(name, []).append(part)
    for name, texts in parts.items():
        (directory / name).write_text(_use_port("\n".join(texts), port))


def _use_port(text: str, port: int) -> str:
    text = DOCUMENTED_ADDRESS.sub(rf"\1:{port}", text)
    return re.sub(r"--port 800[01]\b", f"--port {port}", text)


def matches_output(command: Command, printed: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in command.output.split("…"))
    return re.fullmatch(pattern, printed, re.DOTALL) is not None


def compare(printed: list[PrintedCommand]) -> None:
    for command, text in printed:
        assert matches_output(command, text), f"$ {command.text}\nprinted\n{text}\ninstead of\n{command.output}"


def hide_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables of the server, which readers of the quickstarts do not have."""
    return {name: value for name, value in environment.items() if not name.startswith("KALENDS_")}


async def add_administrator(database_url: str, login: str) -> str:
    """Add an account with an application password, and return the password."""
    database = await Database.open(Options(url=database_url))
    try:
        async with database.transaction("127.0.0.1", utc_now(), writing=True) as tx:
            await user_accounts.add_user(tx, login, "administrator", "")
            return await user_accounts.add_application_password(tx, login, "laptop")
    finally:
        await database.close()

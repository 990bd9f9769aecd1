"""Runs the commands of a page and compares what they print with what the page shows.

A block that begins with ```console has commands after "$ " and what they print below them; a command may go on
on lines that end in a backslash. "…" stands for anything. `<!-- setup: server -->` says what a page needs.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.servers import find_free_port

PROJECT = Path(__file__).resolve().parent.parent.parent
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SETUP = re.compile(r"<!-- setup: (\w+) -->")
ADDRESS = "127.0.0.1:8000"
MARK = "@@next command@@"
WAIT = "for n in $(seq 300); do curl -sf http://127.0.0.1:8000/readyz >/dev/null && break; sleep 0.1; done"


@dataclass(frozen=True)
class Command:
    text: str
    shown: str


Printed = tuple[Command, str]


def needs_server(page: Path) -> bool:
    """Otherwise a page begins with an empty database."""
    found = SETUP.search(page.read_text())
    return found is not None and found[1] == "server"


def commands_of(page: Path) -> list[Command]:
    found: list[Command] = []
    for block in BLOCK.findall(page.read_text()):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            length = 1
            while lines[length - 1].endswith("\\"):
                length += 1
            found.append(Command("\n".join(lines[:length]), "\n".join(lines[length:])))
    return found


def run(page: Path, database_url: str, environment: Mapping[str, str], port: int | None = None) -> list[Printed]:
    """Each command of the page with what it printed. `port` is that of a server that runs already."""
    commands = commands_of(page)
    script = ["set -u", "trap 'kill $(jobs -p) 2>/dev/null' EXIT"]
    for command in commands:
        script += [f"echo '{MARK}'", command.text, *([WAIT] if command.text.endswith(" &") else [])]
    port = port or find_free_port()
    text = "\n".join(script).replace(ADDRESS, f"127.0.0.1:{port}").replace("--port 8000", f"--port {port}")
    text = re.sub(r"^(kalends serve .*) &$", r"\1 >/dev/null 2>&1 &", text, flags=re.MULTILINE)  # Logs are no answer.
    # The page names a database of its own; the tests put theirs in its place.
    text = re.sub(r"KALENDS_DATABASE_URL=\S+", f"KALENDS_DATABASE_URL={database_url}", text)
    path = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-c", text],
        env={**environment, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    printed = done.stdout.replace(f"127.0.0.1:{port}", ADDRESS).split(f"{MARK}\n")[1:]
    assert len(printed) == len(commands), done.stderr[-2000:]
    return list(zip(commands, (text.rstrip("\n") for text in printed), strict=True))


def is_as_shown(command: Command, printed: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in command.shown.split("…"))
    return re.fullmatch(pattern, printed, re.DOTALL) is not None

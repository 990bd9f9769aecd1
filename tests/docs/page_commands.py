"""Run the commands of a page and compare their output with the page.

A block that begins with ```console contains commands after "$ ", each followed by its output. A command continues on
the next line after a backslash. "…" matches any text. `<!-- setup: server -->` requests a running server.
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
CONSOLE_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SETUP_COMMENT = re.compile(r"<!-- setup: (\w+) -->")
DOCUMENTED_ADDRESS = "127.0.0.1:8000"
COMMAND_MARKER = "@@next command@@"
WAIT_FOR_SERVER = "for n in $(seq 300); do curl -sf http://127.0.0.1:8000/readyz >/dev/null && break; sleep 0.1; done"


@dataclass(frozen=True)
class Command:
    text: str
    output: str


PrintedCommand = tuple[Command, str]


def needs_server(page: Path) -> bool:
    """Return whether a page requests a running server; the others start with an empty database."""
    match = SETUP_COMMENT.search(page.read_text())
    return match is not None and match[1] == "server"


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
    page: Path, database_url: str, environment: Mapping[str, str], port: int | None = None
) -> list[PrintedCommand]:
    """Run the commands of a page and return each with its output. `port` is the port of a running server, if any."""
    commands = parse_commands(page)
    script = ["set -u", "trap 'kill $(jobs -p) 2>/dev/null' EXIT"]
    for command in commands:
        script += [
            f"echo '{COMMAND_MARKER}'",
            command.text,
            *([WAIT_FOR_SERVER] if command.text.endswith(" &") else []),
        ]
    port = port or find_free_port()
    text = "\n".join(script).replace(DOCUMENTED_ADDRESS, f"127.0.0.1:{port}").replace("--port 8000", f"--port {port}")
    # The log of the server is not part of the output.
    text = re.sub(r"^(kalends serve .*) &$", r"\1 >/dev/null 2>&1 &", text, flags=re.MULTILINE)
    # Replace the database of the page with the one of the test.
    text = re.sub(r"KALENDS_DATABASE_URL=\S+", f"KALENDS_DATABASE_URL={database_url}", text)
    path = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    result = subprocess.run(
        ["bash", "-c", text],
        env={**environment, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    printed = result.stdout.replace(f"127.0.0.1:{port}", DOCUMENTED_ADDRESS).split(f"{COMMAND_MARKER}\n")[1:]
    assert len(printed) == len(commands), result.stderr[-2000:]
    return list(zip(commands, (text.rstrip("\n") for text in printed), strict=True))


def matches_output(command: Command, printed: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in command.output.split("…"))
    return re.fullmatch(pattern, printed, re.DOTALL) is not None

"""Measures the first minutes of a newcomer: from a clean clone to the calendar in Chromium, by README's commands.

The home directory is new and empty, so nothing is cached. Settings of package registries (PIP_…, UV_…) are kept.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

from tools.run import is_free

PROJECT: Final = Path(__file__).resolve().parent.parent
CHROMIUM: Final = os.environ.get("KALENDS_CHROMIUM", "/usr/bin/chromium")
CACHES: Final = {"PIP_CACHE_DIR", "UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR", "UV_PROJECT_ENVIRONMENT"}
TITLE: Final = "What’s on in Larkford"


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="kalends-first-hour-") as text:
        directory = Path(text)
        directory.chmod(0o755)  # The user of PostgreSQL reaches its files through this directory.
        # Python is a prerequisite; this one has no packages.
        venv.create(directory / "python", with_pip=True)
        environment = _make_environment(directory)
        started = time.monotonic()
        clone = directory / "kalends"
        _run(["git", "clone", "--quiet", str(PROJECT), str(clone)], directory, environment)
        _report(started, "git clone")
        *install, demo = _read_commands(clone / "README.md")
        for command in install:
            _run(["bash", "-c", command], clone, environment)
            _report(started, command)
        try:
            _watch(["bash", "-c", f"exec {demo}"], clone, environment, started)
        finally:
            _run(["uv", "run", "just", "stop"], clone, environment)
    return 0


def _make_environment(directory: Path) -> dict[str, str]:
    registries = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("PIP_", "UV_", "SSL_", "HTTP", "http")) and name not in CACHES
    }
    (directory / "home").mkdir()
    path = f"{directory / 'python' / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    return {**registries, "HOME": str(directory / "home"), "PATH": path, "LANG": "C.UTF-8"}


def _read_commands(readme: Path) -> list[str]:
    """Return the commands of the section "Try it"; the last one starts the server."""
    match = re.search(r"^## Try it\n.*?^```\n(.*?)^```$", readme.read_text(), re.MULTILINE | re.DOTALL)
    if match is None:
        raise LookupError("README.md has no section “Try it” with commands.")
    commands = match[1].splitlines()
    if not is_free("127.0.0.1", 8000):
        commands[-1] = commands[-1].replace("just demo", "just port=8765 demo")
    return commands


def _watch(command: list[str], directory: Path, environment: dict[str, str], started: float) -> None:
    """Run the last command until Chromium shows the calendar at the address that it prints."""
    process = subprocess.Popen(
        command, cwd=directory, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        url = ""
        for line in process.stdout or ():
            print(f"          {line}", end="")
            if address := re.search(r"Calendar +(\S+)", line):
                url = address[1]
                break
        if not url:
            raise RuntimeError(f"{command[-1]} ended without the address of the calendar.")
        _report(started, command[-1].removeprefix("exec "))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_page()
            page.goto(url)
            page.get_by_text(TITLE).first.wait_for()
            browser.close()
        _report(started, f"Chromium shows {url}")
    finally:
        # Ctrl+C reaches all processes of the command.
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=60)


def _run(command: list[str], directory: Path, environment: dict[str, str]) -> None:
    subprocess.run(command, cwd=directory, env=environment, check=True)


def _report(started: float, what: str) -> None:
    print(f"{time.monotonic() - started:8.1f} s  {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

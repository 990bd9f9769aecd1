"""`just run` and `just demo`: steps, addresses, an account and a worker, on localhost."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest
from playwright.sync_api import sync_playwright

from tests.console.console_client import Page
from tests.docs.page_commands import SERVER_QUICKSTARTS, compare, hide_settings, run_commands
from tests.servers import find_free_port
from tools import postgres

PROJECT = Path(__file__).resolve().parents[2]
CHROMIUM = os.environ.get("KALENDS_CHROMIUM", "/usr/bin/chromium")

pytestmark = pytest.mark.process


def start(directory: Path, port: int, *options: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KALENDS_")}
    command = [sys.executable, "-m", "tools.run", "--directory", str(directory), "--port", str(port), *options]
    return subprocess.Popen(
        command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def read_until(process: subprocess.Popen[str], text: str) -> str:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if text in line:
            return "".join(lines)
    raise AssertionError("".join(lines))


def stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)


@pytest.fixture
def directory() -> Iterator[Path]:
    """Yield a temporary directory that the user of PostgreSQL can reach, unlike `tmp_path`."""
    with TemporaryDirectory(prefix="kalends-run-") as name:
        Path(name).chmod(0o755)
        (Path(name) / ".local").mkdir()
        yield Path(name) / ".local"


def follow_quickstarts(directory: Path, port: int) -> None:
    """Follow the quickstarts on the site of the town, in another order than tests/docs does on an empty site."""
    for page in reversed(SERVER_QUICKSTARTS):
        compare(run_commands(page, directory, hide_settings(os.environ), port))
    assert "Kite festival" in open_in_browser(directory / "events.html")


def open_in_browser(path: Path) -> str:
    """Open a file on another port, which is another origin, and return the text of the page."""
    port = find_free_port()
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(path.parent)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        url = f"http://localhost:{port}/{path.name}"
        with httpx.Client(transport=httpx.HTTPTransport(retries=5)) as client:
            client.get(url).raise_for_status()
        page.goto(url)
        page.wait_for_selector("li")
        text = page.inner_text("body")
        browser.close()
        server.terminate()
    return text


def send_event(base_url: str) -> str:
    """Send an event with the public form; return the beginning of the link in the email."""
    form = Page.parse(httpx.get(f"{base_url}/events/add/").raise_for_status().text).form(search=None)
    event = {"title": "Kite festival", "start_day": "2031-05-05", "start_time": "19:00", "email": "a@b.example"}
    time.sleep(3.5)  # Forms that are sent at once are refused.
    sent = httpx.post(f"{base_url}/events/add/", data={**form, **event}, files={"file": ("", b"")})
    assert sent.status_code == 303, sent.text
    return f"{base_url}/submission/"


@pytest.mark.browser
@pytest.mark.docs
def test_run_and_demo(directory: Path) -> None:
    port = find_free_port()
    process = start(directory, port)
    try:
        output = read_until(process, "Ctrl+C")
        steps = re.findall(r"^(\w+) .* … \d+\.\d s$", output, re.MULTILINE)
        assert steps == ["Database", "Migration", "Account", "Server"]
        rows = re.findall(r"^  (\w+(?: \w+)?)  +(\S.*)$", output, re.MULTILINE)
        base = f"http://localhost:{port}"
        password = (directory / "password").read_text().strip()
        console_url = rows[1][1]
        assert console_url.startswith(f"{base}/console/link/")
        assert rows == [
            ("Calendar", f"{base}/"),
            ("Console", console_url),
            ("Documentation", f"{base}/docs"),
            ("API", f"{base}/api/calendar/events/v1"),
            ("API login", "admin"),
            ("API password", password),
        ]
        assert (directory / "password").stat().st_mode & 0o077 == 0
        api_url = f"{base}/api/calendar/events/v1"
        for address in (f"{base}/", f"{base}/docs", f"{api_url}/events"):
            assert httpx.get(address).raise_for_status()
        assert "admin" in httpx.get(console_url).raise_for_status().text
        signed_in = httpx.post(console_url, headers={"sec-fetch-site": "same-origin"})
        assert (signed_in.status_code, signed_in.headers["location"]) == (303, "/console/")
        assert signed_in.headers["set-cookie"].startswith("__Host-kalends=")
        users = httpx.post(f"{api_url}/tags", json={"name": "first"}, auth=("admin", password))
        assert users.status_code == 201
        second = start(directory, port)
        message, _ = second.communicate(timeout=60)
        assert f"Port {port} is already in use. Choose another one: just port={port + 1} run" in message
        assert second.returncode == 1
        stop(process)

        port = find_free_port()
        process = start(directory, port, "--town")
        assert "Created Larkford" in read_until(process, "Ctrl+C")
        assert "Saturday market" in httpx.get(f"http://localhost:{port}/").text
        read_until(process, send_event(f"http://localhost:{port}"))
        children = subprocess.run(
            ["pgrep", "-f", "-P", str(process.pid), "serve.*--with-worker"], capture_output=True, check=True
        )
        assert children.stdout
        follow_quickstarts(directory.parent, port)
    finally:
        if process.poll() is None:
            stop(process)
        if server := postgres.find_running(directory / "postgres"):
            server.stop()

"""Sites that move in: a small one from `site.jsonl`, and the complete recording, if it is present."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kalends.adapters.safe_fetch import Fetcher
from kalends.core.egress import read_allowed_network
from kalends.move_in.operations.crawl import CrawlResult, crawl
from kalends.move_in.operations.old_snapshot import Snapshot
from kalends.move_in.rules.mapping import map_snapshot
from kalends.move_in.rules.old_records import MoveIn
from tests.api.conftest import (
    app,
    start_single_site as start_app,
    start_single_site_for_module as start_app_for_module,
)
from tests.move_in.site_server import OLD, PASSWORD

__all__ = ["app", "start_app", "start_app_for_module"]

# The recording is not part of this project.
RECORDING = Path(
    os.environ.get("KALENDS_RECORDED_SITE") or Path(__file__).parents[3] / "shared" / "reference" / "site"
)


@dataclass
class OldSite:
    """A running site, and how to read it."""

    port: int
    password: str
    process: subprocess.Popen[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def crawl(
        self, path: Path, login: str = "administrator", password: str = "", *, seconds: float = 60, **options: Any
    ) -> CrawlResult:
        """Crawl without pauses: the waits are only counted."""
        fetcher = Fetcher([read_allowed_network(f"127.0.0.1:{self.port}")], seconds=seconds)
        with Snapshot.open(path) as snapshot:
            return await crawl(
                fetcher, self.url, login, password or self.password, snapshot, **{"rate": 0, "sleep": skip, **options}
            )

    def map(self, path: Path, **options: Any) -> MoveIn:
        with Snapshot.open(path) as snapshot:
            return map_snapshot(snapshot, **options)

    def read_truth(self, text: str) -> dict[str, Any]:
        """Read records of the recorded site with the address of this one."""
        return dict(json.loads(text.replace(OLD, self.url).replace(OLD.replace("/", "\\/"), self.url)))


async def skip(_: float) -> None:
    await asyncio.sleep(0)


StartSite = Callable[..., OldSite]


def launch_site(*options: str) -> OldSite:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.move_in.site_server", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert process.stdout is not None
    return OldSite(int(process.stdout.readline()), PASSWORD, process)


@pytest.fixture
def start_site() -> Iterator[StartSite]:
    sites: list[OldSite] = []

    def start(*options: str) -> OldSite:
        sites.append(launch_site(*options))
        return sites[-1]

    yield start
    for site in sites:
        stop(site.process)


@pytest.fixture(scope="module")
def start_recording() -> Iterator[StartSite]:
    """Serve the complete recording with its own server."""
    if not (RECORDING / "replay.py").exists():
        pytest.skip(f"{RECORDING} has no recording; KALENDS_RECORDED_SITE names its directory")
    processes: list[subprocess.Popen[str]] = []

    def start(*options: str) -> OldSite:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        command = [sys.executable, "-m", "tests.move_in.replay_server", str(RECORDING / "replay.py")]
        process = subprocess.Popen(
            [*command, "--port", str(port), *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
        )  # fmt: skip
        processes.append(process)
        assert process.stdout is not None
        assert "exchanges" in process.stdout.readline()
        wait_for(port)
        return OldSite(port, "replay", process)

    yield start
    for process in processes:
        stop(process)


def wait_for(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except ConnectionRefusedError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the site did not start")


def stop(process: subprocess.Popen[str]) -> str:
    """Stop a site and return what it has logged."""
    process.terminate()
    return process.communicate(timeout=10)[1]


def read_small_truth(site: OldSite) -> dict[str, Any]:
    truth: dict[str, list[Any]] = {"posts": [], "terms": [], "users": []}
    for line in map(json.loads, Path(__file__).with_name("site.jsonl").read_text().splitlines()):
        if line[0] == "truth":
            truth[line[1]].append(line[2])
    return site.read_truth(json.dumps(truth))


@pytest.fixture(scope="session")
def find_port() -> Callable[[], int]:
    def find() -> int:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return int(probe.getsockname()[1])

    return find

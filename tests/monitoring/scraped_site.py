"""A server and a worker with metrics, on one database."""

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.lifecycle.processes import Worker
from tests.servers import Server, find_free_port

SAMPLE = re.compile(r"^(?P<name>[a-z_]+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Scrape:
    """The samples of one port: name and labels to value."""

    text: str

    @property
    def samples(self) -> list[tuple[str, dict[str, str], float]]:
        matches = [SAMPLE.match(line) for line in self.text.splitlines() if not line.startswith("#")]
        return [(m["name"], dict(LABEL.findall(m["labels"] or "")), float(m["value"])) for m in matches if m]

    @property
    def names(self) -> set[str]:
        return {name for name, _, _ in self.samples}

    def find(self, name: str, **labels: str) -> list[float]:
        """Return the values of the samples that have these labels."""
        return [value for n, own, value in self.samples if n == name and labels.items() <= own.items()]

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of the samples that have these labels, of which there is at least one."""
        found = self.find(name, **labels)
        assert found, f"{name} {labels} is not in:\n{self.text}"
        return sum(found)


@dataclass(frozen=True)
class ScrapedSite:
    server: Server
    worker: Worker
    server_port: int
    worker_port: int
    database_url: str

    def scrape_server(self) -> Scrape:
        return Scrape(httpx.get(f"http://127.0.0.1:{self.server_port}/metrics", timeout=60).text)

    def scrape_worker(self) -> Scrape:
        return Scrape(httpx.get(f"http://127.0.0.1:{self.worker_port}/metrics", timeout=60).text)


def wait_for(scrape: Callable[[], Scrape], condition: Callable[[Scrape], bool], timeout: float = 90) -> Scrape:
    """Scrape until the condition holds; a port that does not listen yet counts as no."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            result = scrape()
            if condition(result):
                return result
        except httpx.TransportError:
            result = Scrape("")
        assert time.monotonic() < deadline, result.text
        time.sleep(0.2)


@contextmanager
def run_site(database_url: str, directory: Path, environment: dict[str, str]) -> Iterator[ScrapedSite]:
    ports = find_free_port(), find_free_port()
    settings = {
        **environment,
        "KALENDS_METRICS_PORT": str(ports[0]),
        "KALENDS_WORKER_METRICS_PORT": str(ports[1]),
    }
    with (
        Worker.start(database_url, directory / "worker.log", settings) as worker,
        Server.start(database_url, log=directory / "server.log", environment=settings, timeout=90) as server,
    ):
        yield ScrapedSite(server, worker, *ports, database_url)


def check_with_promtool(*arguments: str, text: str = "") -> None:
    """Run promtool and show what it says if it finds a problem."""
    done = subprocess.run(["promtool", *arguments], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

"""Two servers and a worker that are replaced one by one by those of another version, under load."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg
from psycopg import sql

from tests.lifecycle.processes import Worker, wait_until
from tests.servers import Server, find_free_port
from tests.soak import SOAK
from tests.upgrade.proxy import Proxy
from tests.upgrade.versions import Version

LOAD = Path(__file__).parent / "load.py"
# Most reads are those of a site that does not change; the other site is written.
READ_SITE, WRITTEN_SITE = "read.example", "written.example"
API = "/api/calendar/events/v1"
# A busy machine needs a long time to start a server.
START_TIMEOUT = 180
# In CI other tests take the processor, so that a server waits for its database longer than by default.
PATIENCE = {} if SOAK else {"KALENDS_POOL_TIMEOUT": "30", "KALENDS_PUBLIC_STATEMENT_TIMEOUT": "30"}


@dataclass
class Installation:
    """A database with two sites, its servers and its worker."""

    database_url: str
    directory: Path
    version: Version
    ports: Sequence[int] = field(default_factory=lambda: [find_free_port(), find_free_port()])
    servers: list[Server] = field(default_factory=list)
    worker: Worker | None = None
    password: str = ""

    def set_up(self, events: int) -> None:
        """Create the sites with the commands of the version, and start its processes."""
        self.version.run(self.database_url, "migrate")
        self.version.run(self.database_url, "seed", "--events", str(events))
        self.version.run(self.database_url, "site", "add", WRITTEN_SITE, "--first-host", READ_SITE)
        self.version.run(self.database_url, "user", "add", "ed", "--role", "editor", "--site", WRITTEN_SITE)
        printed = self.version.run(self.database_url, "app-password", "create", "ed", "load", "--site", WRITTEN_SITE)
        self.password = printed.split("\n")[0].strip()
        self.servers = [self._start_server(number) for number in range(len(self.ports))]
        for server in self.servers:
            warm_up(server)
        self.worker = self._start_worker()

    def roll(self, version: Version, proxy: Proxy, settle_seconds: float) -> None:
        """Replace the worker and then the servers by those of a version to which the schema is migrated.

        The next server is taken out when the new one has had requests for some seconds.
        """
        self.version = version
        former, self.worker = self.worker, self._start_worker()
        if former:
            assert former.stop() == 0, former.log.read_text()[-2000:]
        for number, server in enumerate(self.servers):
            proxy.drain(number)
            assert server.stop(120) == 0, server.read_log()[-2000:]
            self.servers[number] = self._start_server(number)
            proxy.put_back(number)
            pause(settle_seconds)

    def read_readiness(self) -> list[int]:
        return [httpx.get(f"{server.base_url}/readyz", timeout=60).status_code for server in self.servers]

    def find_paths(self) -> list[tuple[str, str]]:
        """Return fifty paths with their sites: pages, feeds and API."""
        base_url = self.servers[0].base_url
        headers = {"Host": READ_SITE}
        events = httpx.get(f"{base_url}{API}/events?per_page=30", headers=headers, timeout=60).json()["events"]
        paths = ["/", "/events/list/", "/events/month/", "/events.ics", "/events.json", "/events.rss"]
        paths += [f"{API}/{kind}" for kind in ("events", "venues", "organizers", "categories", "tags")]
        paths += [f"{API}/events?per_page=20&page={number}" for number in (1, 2, 3)]
        paths += [f"{API}/events/{event['id']}" for event in events]
        changing = [f"{API}/venues?per_page=5", f"{API}/events?per_page=5"]
        return [*[(READ_SITE, path) for path in paths[:48]], *[(WRITTEN_SITE, path) for path in changing]]

    def stop(self) -> None:
        for server in self.servers:
            server.kill()
        if self.worker:
            self.worker.kill()

    def _start_server(self, number: int) -> Server:
        return Server.start(
            self.database_url,
            log=self.directory / f"server-{number}.log",
            port=self.ports[number],
            environment=PATIENCE,
            kalends=self.version.kalends,
            timeout=START_TIMEOUT,
        )

    def _start_worker(self) -> Worker:
        return Worker.start(self.database_url, self.directory / "worker.log", kalends=self.version.kalends)


def warm_up(server: Server) -> None:
    """Request some pages: those of early versions, which do not warm up themselves, take longer at first."""
    with httpx.Client(base_url=server.base_url, timeout=60) as client:
        for path in ("/", "/events/list/", "/events/month/", "/events.ics", f"{API}/events", f"{API}/venues"):
            assert client.get(path, headers={"Host": READ_SITE}).status_code == 200, path


@contextmanager
def send_load(
    installation: Installation, proxy: Proxy, *, name: str, reads: int, writes: int
) -> Iterator[dict[str, Any]]:
    """Send a load during the body; afterwards the dictionary has its figures."""
    figures: dict[str, Any] = {}
    plan = {
        "name": name,
        "host": "127.0.0.1",
        "port": proxy.port,
        "reads": reads,
        "writes": writes,
        "paths": installation.find_paths(),
        "site": WRITTEN_SITE,
        "login": "ed",
        "password": installation.password,
    }
    file = installation.directory / f"{name}.json"
    file.write_text(json.dumps(plan))
    process = subprocess.Popen(
        [sys.executable, str(LOAD), str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield figures
        printed, _ = process.communicate(timeout=180)
        assert process.returncode == 0
        figures |= json.loads(printed)
    finally:
        process.kill()
        process.wait()


def find_lost_writes(database_url: str, acknowledged: Sequence[tuple[str, int, str]]) -> list[tuple[str, int, str]]:
    """Return acknowledged writes that the database does not have. Of several to one record, the last one counts."""
    expected = {(kind, record_id): title for kind, record_id, title in acknowledged}
    with psycopg.connect(database_url) as connection:
        found = {
            (kind, record_id): title
            for kind in ("events", "venues")
            for record_id, title in connection.execute(
                sql.SQL("SELECT id, title FROM {} WHERE site_id > 1").format(sql.Identifier(kind))
            )
        }
    return [(*key, title) for key, title in expected.items() if found.get(key) != title]


def wait_for_publication(database_url: str, scheduled: Sequence[int]) -> None:
    """Wait until the worker has published all scheduled events."""
    query = "SELECT count(*) FROM events WHERE site_id > 1 AND id = ANY(%s) AND status <> 'publish'"
    with psycopg.connect(database_url, autocommit=True) as connection:
        wait_until(lambda: connection.execute(query, [list(scheduled)]).fetchone() == (0,), 120, 0.5)


def describe(figures: dict[str, Any]) -> str:
    """Return the figures of a load in one line."""
    seconds = max(figures["seconds"], 0.1)
    reads, writes = sum(figures["reads"].values()), sum(figures["writes"].values())
    return (
        f"{seconds:.0f} s, {reads} reads ({reads / seconds:.0f}/s, {figures['read_ms']} ms), {writes} writes "
        f"({writes / seconds:.1f}/s, {figures['write_ms']} ms), {len(figures['failures'])} failures"
    )


def pause(seconds: float) -> None:
    """Let the load run for a while."""
    time.sleep(seconds)

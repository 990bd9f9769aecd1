"""The programs in docs/webhooks.md keep a copy that equals a full sync, with a real server and a real worker."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.docs.page_commands import DOCS, FILE_BLOCK, add_administrator
from tests.lifecycle.processes import Worker
from tests.servers import Server, find_free_port

PAGE = DOCS / "webhooks.md"
SOON = {"start_date": "2031-05-05 19:00:00", "end_date": "2031-05-05 21:00:00"}
PATIENCE = 40.0
Copy = dict[tuple[str, int], Any]
KINDS = {"events": "event", "venues": "venue", "organizers": "organizer", "categories": "category", "tags": "tag"}


@dataclass
class Calendar:
    """A server with a worker, and the ports that endpoints may have."""

    client: httpx.Client
    base_url: str
    ports: dict[str, int]
    directory: Path

    def write(self, method: str, path: str, body: Any = None) -> Any:
        response = self.client.request(method, f"/api/calendar/events/v1{path}", json=body)
        assert response.is_success, response.text
        return response.json()

    def webhooks(self, method: str, path: str = "", body: Any = None) -> Any:
        response = self.client.request(method, f"/api/kalends/v1/webhooks{path}", json=body)
        assert response.is_success, response.text
        return response.json()

    def read_all(self) -> Copy:
        """Return everything public, as an anonymous full sync does."""
        changes = httpx.get(f"{self.base_url}/api/kalends/v1/changes", params={"since": "0", "per_page": 500}).json()
        assert not changes["more"]
        return {(KINDS[row["kind"]], row["id"]): row["record"] for row in changes["changes"] if not row["deleted"]}

    def start_mirror(self, name: str, secret: str) -> subprocess.Popen[bytes]:
        text = "\n".join(part for found, part in FILE_BLOCK.findall(PAGE.read_text()) if found == name)
        text = text.replace("127.0.0.1:8000", self.base_url.removeprefix("http://"))
        (self.directory / name).write_text(text.replace("8090", str(self.ports[name])))
        program = sys.executable if name.endswith(".py") else "node"
        environment = {**os.environ, "WEBHOOK_SECRET": secret}
        with (self.directory / f"{name}.log").open("wb") as log:
            return subprocess.Popen([program, name], cwd=self.directory, env=environment, stdout=log, stderr=log)


@pytest.fixture
def calendar(database_url: str, tmp_path: Path) -> Iterator[Calendar]:
    ports = {name: find_free_port() for name in ("mirror.py", "mirror.mjs")}
    port = find_free_port()
    settings = {
        "KALENDS_BASE_URL": f"http://127.0.0.1:{port}",
        "KALENDS_FETCH_ALLOWED_NETWORKS": ",".join(f"127.0.0.1:{each}" for each in ports.values()),
    }
    password = asyncio.run(add_administrator(database_url, "anna"))
    with (
        Server.start(
            database_url, log=tmp_path / "server.log", port=port, environment=settings, timeout=120
        ) as server,
        Worker.start(database_url, tmp_path / "worker.log", settings),
        server.client(login="anna", password=password) as client,
    ):
        yield Calendar(client, server.base_url, ports, tmp_path)


def read_sqlite(directory: Path) -> Copy:
    with closing(sqlite3.connect(directory / "mirror.db")) as copy:
        try:
            rows = copy.execute("SELECT kind, id, record FROM copy").fetchall()
        except sqlite3.OperationalError:  # The mirror has not created its table yet, or is writing.
            return {}
    return {(kind, record_id): record for kind, record_id, text in rows if (record := json.loads(text)) is not None}


def read_json(directory: Path) -> Copy:
    if not (directory / "mirror.json").exists():
        return {}
    rows = json.loads((directory / "mirror.json").read_text() or "[]")
    keys = [(key.partition(" ")[0], int(key.partition(" ")[2])) for key, _ in rows]
    return {key: row["record"] for key, (_, row) in zip(keys, rows, strict=True) if row["record"] is not None}


@pytest.mark.npm
@pytest.mark.parametrize(("name", "read"), [("mirror.py", read_sqlite), ("mirror.mjs", read_json)])
def test_mirror_equals_a_full_sync(calendar: Calendar, name: str, read: Callable[[Path], Copy]) -> None:
    venue = calendar.write("POST", "/venues", {"venue": "Town hall"})
    before = calendar.write("POST", "/events", {"title": "Before", **SOON, "venue": venue["id"]})
    url = f"http://127.0.0.1:{calendar.ports[name]}/"
    endpoint = calendar.webhooks("POST", "", {"name": name, "url": url})
    program = calendar.start_mirror(name, endpoint["secret"])
    try:
        events = [calendar.write("POST", "/events", {"title": f"Choir {number}", **SOON}) for number in range(30)]
        calendar.write("PATCH", f"/venues/{venue['id']}", {"city": "Lindenstadt"})
        calendar.write("POST", "/events", {"title": "Draft", **SOON, "status": "draft"})
        calendar.write("POST", "/tags", {"name": "Open air"})
        for event in events[:10]:
            calendar.write("PATCH", f"/events/{event['id']}", {"event_status": "cancelled"})
        calendar.write("PATCH", f"/events/{events[20]['id']}", {"status": "draft"})
        calendar.write("DELETE", f"/events/{events[21]['id']}")
        calendar.write("DELETE", f"/events/{before['id']}")
        expect_equal(calendar, read)
        assert ("event", before["id"]) not in read(calendar.directory)
        calendar.webhooks("POST", f"/{endpoint['id']}/replay", {"since": 0})
        calendar.write("PATCH", f"/events/{events[5]['id']}", {"title": "Changed after the replay"})
        expect_equal(calendar, read)
        calendar.webhooks("POST", f"/{endpoint['id']}/rotate")
        calendar.write("PATCH", f"/events/{events[6]['id']}", {"title": "Signed with both secrets"})
        expect_equal(calendar, read)
        forged = httpx.post(url, content=b'{"type": "site.reset", "data": {}}', headers=make_forged_headers())
        assert forged.status_code == 401
    finally:
        program.kill()
        program.wait()
    deliveries = calendar.webhooks("GET", f"/{endpoint['id']}/deliveries?per_page=100")["deliveries"]
    assert {row["status"] for row in deliveries} <= {204, None}
    assert "event.deleted" in {row["type"] for row in deliveries}


def make_forged_headers() -> dict[str, str]:
    return {"webhook-id": "msg_1", "webhook-timestamp": str(int(time.time())), "webhook-signature": "v1,AAAA"}


def expect_equal(calendar: Calendar, read: Callable[[Path], Copy]) -> None:
    """Wait until the copy of the mirror equals everything public."""
    deadline = time.monotonic() + PATIENCE
    while (copy := read(calendar.directory)) != (wanted := calendar.read_all()) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert copy.keys() == wanted.keys()
    assert copy == wanted

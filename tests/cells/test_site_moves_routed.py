"""Sites move between cells under an application that routes requests by the directory."""

import asyncio
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from kalends.store.site_moves import list_moves
from tests.cells.cell_set import CellSet
from tests.cells.move_fixtures import Stage, open_logical_cluster, open_stage
from tests.cells.mover_process import Order
from tests.robustness.consistency import assert_consistent
from tests.robustness.site_fixtures import API_PATH, DATES, Login, add_users
from tests.soak import scaled

SITE, HOST = 1, "a.example"
WRITERS, READERS = scaled(3, 8), scaled(2, 8)
MOVES = scaled(2, 10)


@pytest.fixture
def stage() -> Iterator[Stage]:
    with open_logical_cluster() as cluster, open_stage(*cluster) as opened:
        opened.add_to_directory(SITE, "a", [HOST])
        opened.fetch("a", "INSERT INTO site_hosts VALUES (%s, %s)", HOST, SITE)
        yield opened


class Load:
    """Writers and readers of one site. They accept no error, and remember what was acknowledged."""

    def __init__(self, client: httpx.AsyncClient, login: Login) -> None:
        self._client = client
        self._login = login
        self.titles: dict[int, str] = {}
        self.reads = 0
        self.durations: list[float] = []
        self.is_ending = False

    async def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        options = {"auth": self._login, **options}
        return await self._client.request(method, API_PATH + path, **options)

    async def write(self, number: int) -> None:
        count = 0
        while not self.is_ending:
            count += 1
            title = f"Event {number}.{count}"
            key = {"Idempotency-Key": f"{number} {count}"} if number % 2 else {}
            started = time.monotonic()
            reply = await self.request("POST", "/events", json={"title": title, **DATES}, headers=key)
            self.durations.append(time.monotonic() - started)
            assert reply.status_code == 201, reply.text
            self.titles[reply.json()["id"]] = title
            if count == 4:  # More failures of one client would be rejected for some time.
                failure = await self.request("POST", "/events", json={}, auth=(f"nobody{number}.{count}", "x"))
                assert failure.status_code == 401, failure.text

    async def read(self) -> None:
        while not self.is_ending:
            reply = await self.request("GET", "/events?per_page=5")
            assert reply.status_code == 200, reply.text
            self.reads += 1
            if self.titles:
                record_id, title = next(reversed(self.titles.items()))
                reply = await self.request("GET", f"/events/{record_id}")
                assert reply.status_code == 200, f"an acknowledged write is not visible: {reply.text}"
                assert reply.json()["title"] == title


async def move_site(stage: Stage, target: str) -> None:
    """Move the site by a process of its own, which does not share the processor time of the application."""
    order = Order(stage.directory_url, stage.cells, SITE, target)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.cells.mover_process", order.to_json(), stderr=asyncio.subprocess.PIPE
    )
    _, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()


async def test_moves_under_load_lose_nothing_and_show_no_error(stage: Stage, report: Any) -> None:
    login = add_users(stage.cells["a"], {"ed": "editor"})["ed"]
    cells = CellSet(stage.directory_url, stage.cells)
    async with cells.open_client(pool_size=8, max_connections_per_client=0) as client:
        client.headers["Host"] = HOST
        load = Load(client, login)
        async with asyncio.TaskGroup() as group:
            for number in range(WRITERS):
                group.create_task(load.write(number))
            for _ in range(READERS):
                group.create_task(load.read())
            await asyncio.sleep(1)
            for number in range(MOVES):
                target = "ba"[number % 2]
                await move_site(stage, target)
                assert stage.find_owners(SITE) == [target]
            await asyncio.sleep(0.5)
            load.is_ending = True
    owner = "ab"[MOVES % 2]
    pauses = [move.pause_ms or 0 for move in await list_moves(stage.directory_url)]
    stored = dict(stage.fetch(owner, "SELECT id, title FROM events WHERE site_id = 1"))
    assert stored.items() >= load.titles.items()
    assert len(stored) == len(load.titles)
    assert_consistent(stage.cells[owner])
    report(
        f"{MOVES} moves, {len(load.titles)} writes, {load.reads} reads, 0 errors, longest pause {max(pauses)} ms, "
        f"longest write {max(load.durations) * 1000:.0f} ms"
    )

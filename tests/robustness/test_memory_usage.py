"""A server's memory does not grow with the number of requests that it has answered."""

import asyncio
import itertools
import random
from collections import Counter
from pathlib import Path

import httpx

from tests.robustness.site_fixtures import DATES, add_editor, create_client
from tests.servers import Server
from tests.soak import scaled

REQUESTS = scaled(1_500, 100_000)
CLIENTS = 8
# Filled during the first part of the run, so that what grows later is no cache.
SETTINGS = {"KALENDS_CACHE_MB": "4"}
FIRST_PART = 0.25
MAX_GROWTH_MB = scaled(20, 8)  # A short run still fills the caches of statements and texts.


async def test_memory_usage_is_stable(database_url: str, tmp_path: Path, report) -> None:
    login = add_editor(database_url)
    with Server.start(database_url, log=tmp_path / "log", environment=SETTINGS) as server:
        numbers, statuses = itertools.count(), Counter[int]()
        sizes: dict[float, float] = {}

        async def request_until(last: int) -> None:
            async with create_client(server.base_url, login) as editor, create_client(server.base_url) as public:
                while (number := next(numbers)) < last:
                    statuses[await _send_random_request(number, editor, public)] += 1

        for part in (FIRST_PART, 0.5, 0.75, 1.0):
            await asyncio.gather(*[request_until(int(REQUESTS * part)) for _ in range(CLIENTS)])
            sizes[part] = _memory_mb(server)
        report(f"{sum(statuses.values())} requests: {', '.join(f'{size:.1f}' for size in sizes.values())} MB")
        assert not [status for status in statuses if status >= 500], statuses
        assert {200, 201, 400, 401, 404} <= set(statuses), statuses
        assert sizes[1.0] - sizes[FIRST_PART] < MAX_GROWTH_MB, sizes


async def _send_random_request(number: int, editor: httpx.AsyncClient, public: httpx.AsyncClient) -> int:
    """One of many requests; which one depends on its number alone."""
    rng = random.Random(number)
    path, record_id = rng.choice(PATHS), rng.randint(1, 50)
    if number < 50 or rng.random() < 0.05:
        body = {"title": f"Event {number}", "description": "words " * rng.randint(1, 200), **DATES}
        return (await editor.post("/events", json=body)).status_code
    if rng.random() < 0.1:
        return (await editor.patch(f"/events/{record_id}", json={"title": f"Again {number}"})).status_code
    if rng.random() < 0.02:
        return (await public.get("/events", auth=(f"nobody-{number}", "wrong"))).status_code
    client = rng.choice((editor, public))
    return (await client.get(path.format(known=record_id, number=number))).status_code


PATHS = (
    "/events",
    "/events?page={known}&per_page=3",
    "/events?search=word{number}",
    "/events?start_date=2026-01-01&end_date=20{known:02}-01-01",
    "/events/{known}",
    "/events/by-slug/event-{known}",
    "/events/{number}",
    "/venues?search={number}",
    "/categories?per_page={known}",
    "/events?per_page=none{number}",
    "/nowhere/{number}",
    "/doc",
    "/",
)


def _memory_mb(server: Server) -> float:
    """What the worker process holds; the first one only watches over it."""
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    status = Path(f"/proc/{children[-1]}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024

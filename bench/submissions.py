"""The public form under attack: what it stores, and how long others wait meanwhile.

Posts come at a fixed rate from many networks, every tenth with a picture of 8 MB, while readers open pages and an
editor saves events. The exit code is 1 if a limit is exceeded (docs/proposals.md).
"""

import argparse
import asyncio
import io
import itertools
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg
from PIL import Image
from rich.console import Console

from bench.seeded_sites import NS, SETTINGS, SeededSite, make_site
from tests.servers import Server
from tools import postgres

LOCK_LOGGING = {"log_lock_waits": "on", "deadlock_timeout": "10ms"}
PICTURE_BYTES = 8 * 1000 * 1000
MAX_ROWS = 70
PAGES = ("/events/", "/events/list/", "/events/add/", f"{NS}/events?per_page=10")
STAMP = re.compile(r'name="stamp" value="([^"]+)"')
WAIT = re.compile(r"still waiting for .*\n(?:.*\n){0,3}?.*STATEMENT:\s+(.*)")
OWN_STATEMENT = re.compile(r"login_failures|proposals|submitters|proposal_pictures")


@dataclass
class Figures:
    """Statuses of posts, and latencies in seconds by what was measured."""

    statuses: Counter[int] = field(default_factory=Counter[int])
    latencies: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def add(self, name: str, seconds: float) -> None:
        self.latencies.setdefault(name, []).append(seconds)

    def p99(self, name: str) -> float:
        return statistics.quantiles(self.latencies[name], n=100)[98] if len(self.latencies[name]) > 1 else 0.0


def make_picture() -> bytes:
    """Return a picture of 8 MB that a decoder accepts."""
    file = io.BytesIO()
    Image.effect_noise((3500, 2600), 120).convert("RGB").save(file, "JPEG", quality=97)
    return file.getvalue()[:PICTURE_BYTES].ljust(PICTURE_BYTES, b"\0")


async def attack(base_url: str, per_minute: int, seconds: float, networks: int, figures: Figures) -> None:
    """Send events at a fixed rate. Many share an address, and others are random."""
    picture, stamps = make_picture(), list[str]()
    async with httpx.AsyncClient(base_url=base_url, timeout=120) as client:

        async def send(number: int) -> None:
            address = "victim@example.org" if number % 5 == 0 else f"a{number}@d{number % 40}.example"
            form = {
                "stamp": stamps[0], "title": f"Offer {number}", "start_day": f"2031-05-{number % 28 + 1:02}",
                "start_time": "19:00", "venue": f"Hall {number % 50}", "description": "Buy " * 200, "email": address,
                "is_different": "1",
            }  # fmt: skip
            content = picture if number % 10 == 0 else b""
            network = f"10.0.{number % networks}.7"
            response = await client.post(
                "/events/add/", data=form, files={"file": ("p.jpg", content)}, headers={"x-forwarded-for": network}
            )
            figures.statuses[response.status_code] += 1

        stamps.append(STAMP.search((await client.get("/events/add/")).text)[1])  # type: ignore[index]
        await asyncio.sleep(4)
        await _repeat(send, 60 / per_minute, seconds)


async def use(base_url: str, site: SeededSite, seconds: float, figures: Figures) -> None:
    """Read pages and save an event, as readers and an editor do."""
    auth = httpx.BasicAuth(site.login, site.password)
    async with httpx.AsyncClient(base_url=base_url, timeout=60) as client:

        async def read(number: int) -> None:
            started = time.perf_counter()
            # A parameter that nobody has used before, so that no cache answers.
            response = await client.get(PAGES[number % len(PAGES)], params={"search": f"word {number}"})
            figures.add("page", time.perf_counter() - started)
            response.raise_for_status()

        async def edit() -> None:
            """Save at most twice a second, one save after the other."""
            deadline = time.perf_counter() + seconds
            for number in itertools.count():
                started = time.perf_counter()
                if started >= deadline:
                    return
                response = await client.patch(f"{NS}/events/{site.event_id}", json={"cost": str(number)}, auth=auth)
                figures.add("save", time.perf_counter() - started)
                response.raise_for_status()
                await asyncio.sleep(max(0.0, started + 0.5 - time.perf_counter()))

        await asyncio.gather(_repeat(read, 0.1, seconds), edit())


async def _repeat(work: Callable[[int], Awaitable[None]], interval: float, seconds: float) -> None:
    """Start work at a fixed rate, whether the earlier one has ended or not."""
    started, running = time.perf_counter(), set[asyncio.Task[None]]()
    for number in itertools.count():
        if number * interval >= seconds:
            break
        await asyncio.sleep(max(0.0, started + number * interval - time.perf_counter()))
        running.add(asyncio.ensure_future(work(number)))
    await asyncio.gather(*running)


def count_foreign_waits(log: str) -> int:
    """Count waits for locks of statements that are not part of sending an event."""
    return sum(not OWN_STATEMENT.search(statement) for statement in WAIT.findall(log))


def run(events: int, seconds: float, per_minute: int, networks: int) -> dict[str, Any]:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kalends-submissions-")))
        directory.chmod(0o755)
        cluster = postgres.start(directory / "postgres", settings={**SETTINGS, **LOCK_LOGGING})
        stack.callback(cluster.stop)
        site = make_site(cluster, events)
        settings = {
            "KALENDS_SMTP_URL": "smtp://127.0.0.1:1",
            "KALENDS_BASE_URL": "http://calendar.test",
            "KALENDS_TRUSTED_PROXIES": "127.0.0.1",
            "KALENDS_MEDIA_DIR": str(directory / "media"),
        }
        with psycopg.connect(site.url, autocommit=True) as connection:
            connection.execute("UPDATE sites SET submissions = true")
        server = stack.enter_context(Server.start(site.url, log=directory / "log", environment=settings))
        alone, loaded = Figures(), Figures()
        asyncio.run(use(server.base_url, site, min(seconds, 60), alone))
        log = directory / "postgres" / "server.log"
        quiet = len(log.read_text())
        with psycopg.connect(site.url, autocommit=True) as connection:
            before = _read_calendar(connection)
            attacking = attack(server.base_url, per_minute, seconds, networks, loaded)
            asyncio.run(_gather(attacking, use(server.base_url, site, seconds + 4, loaded)))
            saves = len(loaded.latencies["save"])
            return {
                "posts": sum(loaded.statuses.values()),
                "statuses": dict(sorted(loaded.statuses.items())),
                "rows": _count(connection, "SELECT count(*) FROM proposals"),
                "new events": _count(connection, "SELECT count(*) FROM events") - before[0],
                "changes besides saves": _count(connection, "SELECT max(revision) FROM sites") - before[1] - saves,
                "emails to one address": _count(connection, _VICTIM),
                "megabytes of pictures": _count(connection, _PICTURES) / 1e6,
                "waits for locks of others": count_foreign_waits(log.read_text()[quiet:]),
                "p99 in ms (without load)": {
                    name: (round(loaded.p99(name) * 1000), round(alone.p99(name) * 1000)) for name in ("page", "save")
                },
            }


_VICTIM = """SELECT count(*) FROM procrastinate_jobs j JOIN proposals p ON p.id::text = j.args ->> 'key'
    JOIN submitters s ON s.id = p.submitter_id WHERE s.email = 'victim@example.org'"""
_PICTURES = "SELECT coalesce(sum(octet_length(content)), 0)::bigint FROM proposal_pictures"


def _count(connection: psycopg.Connection[Any], query: str) -> int:
    row = connection.execute(query).fetchone()  # type: ignore[call-overload]
    return int(row[0])


def _read_calendar(connection: psycopg.Connection[Any]) -> tuple[int, int]:
    return _count(connection, "SELECT count(*) FROM events"), _count(connection, "SELECT max(revision) FROM sites")


async def _gather(*work: Awaitable[None]) -> None:
    await asyncio.gather(*work)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--per-minute", type=int, default=1000)
    parser.add_argument("--networks", type=int, default=200)
    arguments = parser.parse_args()
    console = Console(highlight=False)
    figures = run(arguments.events, arguments.seconds, arguments.per_minute, arguments.networks)
    for name, value in figures.items():
        console.print(f"{name}: {value}")
    limits = {"rows": MAX_ROWS, "new events": 0, "changes besides saves": 0, "emails to one address": 3,
              "megabytes of pictures": 100, "waits for locks of others": 0}  # fmt: skip
    exceeded = [name for name, limit in limits.items() if figures[name] > limit]
    console.print(f"Exceeded: {', '.join(exceeded)}" if exceeded else "All limits hold.")
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())

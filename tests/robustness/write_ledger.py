"""Acknowledgement counting, the heart of every loss test.

Writers note what was acknowledged, and only then; whatever was not is tried again with the same key. At the end
the database must hold everything that was acknowledged, each key once, and every record whole.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import psycopg

from tests.robustness.site_fixtures import DATES


@dataclass
class WriteLedger:
    acknowledged: dict[str, int] = field(default_factory=dict)  # title -> ID
    attempted: set[str] = field(default_factory=set)
    outcomes: Counter[str] = field(default_factory=Counter)  # status and code
    replays: int = 0
    without_retry_after: int = 0
    last_at: float = 0.0
    longest_gap: float = 0.0  # seconds without an acknowledgement

    def record(self, title: str, response: httpx.Response) -> None:
        if response.status_code != 201:
            self.outcomes[f"{response.status_code} {response.json()['code']}"] += 1
            self.without_retry_after += "retry-after" not in response.headers
            return
        self.outcomes["201"] += 1
        self.acknowledged[title] = response.json()["id"]
        self.replays += "idempotent-replay" in response.headers
        now = time.monotonic()
        self.longest_gap = max(self.longest_gap, now - (self.last_at or now))
        self.last_at = now

    def __str__(self) -> str:
        return (
            f"{len(self.acknowledged)} acknowledged of {len(self.attempted)} tried, {self.replays} replays, "
            f"longest gap {self.longest_gap:.1f} s, {dict(self.outcomes)}"
        )


@asynccontextmanager
async def run_writers(client: httpx.AsyncClient, number: int = 6) -> AsyncIterator[WriteLedger]:
    """So many writers at work, two of whom send no key. At the end each gives up what it was about to write."""
    ledger, stop = WriteLedger(), asyncio.Event()
    tasks = [asyncio.create_task(_write(client, ledger, f"w{n}", stop, keyed=n >= 2)) for n in range(number)]
    try:
        yield ledger
    finally:
        stop.set()
        await asyncio.gather(*tasks)


async def _write(
    client: httpx.AsyncClient, ledger: WriteLedger, name: str, stop: asyncio.Event, *, keyed: bool
) -> None:
    """Create events one after another, each with a new venue, category and tag."""
    number = 0
    while not stop.is_set():
        number += 1
        title = f"{name}-{number}"
        ledger.attempted.add(title)
        body = {"title": title, "venue": {"venue": title}, "categories": [title], "tags": [title, "common"], **DATES}
        headers = {"Idempotency-Key": title} if keyed else {}
        while title not in ledger.acknowledged and not stop.is_set():
            try:
                ledger.record(title, await client.post("/events", json=body, headers=headers))
            except httpx.TransportError as error:
                ledger.outcomes[type(error).__name__] += 1
            if title not in ledger.acknowledged:
                await asyncio.sleep(0.05)
                if not keyed:
                    break  # Nobody can tell whether it is stored, so it is not repeated.


def assert_no_lost_writes(ledger: WriteLedger, database_url: str) -> None:
    """Nothing acknowledged is lost, nothing is there twice, nothing is there in part."""
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            """
            SELECT e.title, e.id, v.titles, c.names, t.names FROM events e
            CROSS JOIN LATERAL (SELECT array_agg(v.title) AS titles FROM event_venues l
                JOIN venues v ON v.site_id = l.site_id AND v.id = l.venue_id
                WHERE l.site_id = e.site_id AND l.event_id = e.id) v
            CROSS JOIN LATERAL (SELECT array_agg(c.name) AS names FROM event_categories l
                JOIN categories c ON c.site_id = l.site_id AND c.id = l.category_id
                WHERE l.site_id = e.site_id AND l.event_id = e.id) c
            CROSS JOIN LATERAL (SELECT array_agg(t.name ORDER BY l.position) AS names FROM event_tags l
                JOIN tags t ON t.site_id = l.site_id AND t.id = l.tag_id
                WHERE l.site_id = e.site_id AND l.event_id = e.id) t
            """
        ).fetchall()
        venue_count = connection.execute("SELECT count(*) FROM venues WHERE title NOT LIKE 'Scheduled %'").fetchone()
    stored = {title: record_id for title, record_id, *_ in rows}
    assert len(stored) == len(rows), "a key has several records"
    assert stored.items() >= ledger.acknowledged.items(), "acknowledged writes are lost"
    assert stored.keys() <= ledger.attempted
    assert all(linked == [[title], [title], [title, "common"]] for title, _, *linked in rows), "an event in part"
    assert venue_count == (len(rows),), "a venue without its event"

"""One site of 200,000 events, made once per session: large enough that a wrong plan shows."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg
import pytest

from kalends.demo.seed import DemoOptions, seed
from tests.conftest import address, temporary_database
from tests.plans.plan_collector import Explaining, explaining

EVENTS = int(os.environ.get("KALENDS_TEST_PLAN_EVENTS", "200000"))
UPCOMING = EVENTS // 20


@dataclass(frozen=True)
class Site:
    """Where it is, and records to ask for: `venue` has many events, `parent` has a few children."""

    url: str
    now: datetime
    venue: int
    quiet_venue: int
    organizer: int
    category: int
    small_category: int
    tag: int
    parent: int
    some: list[int]


@pytest.fixture(scope="session")
def site(postgres_url: str, template_database: str) -> Iterator[Site]:
    with temporary_database(postgres_url, template=template_database) as name:
        url = address(postgres_url, name)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE sites SET timezone = 'Europe/Berlin'")
            wanted = DemoOptions(events=EVENTS, upcoming=UPCOMING, venues=1000, organizers=500, seed=1)
            asyncio.run(seed(url, "", wanted, lambda *_: None))
            yield _look_around(connection, url)


@pytest.fixture
async def explained(site: Site) -> AsyncIterator[Explaining]:
    async with explaining(site.url, site.now) as explained:
        yield explained


def _look_around(connection: psycopg.Connection, url: str) -> Site:
    def one(query: str) -> int:
        row = connection.execute(query).fetchone()
        assert row is not None
        return row[0]

    busiest = "SELECT {0}_id FROM event_{1} GROUP BY 1 ORDER BY count(*) {2}, 1 LIMIT 1"
    parent = one("SELECT id FROM events WHERE listed AND start_utc > now() ORDER BY start_utc LIMIT 1")
    connection.execute(
        """UPDATE events SET post_parent = %s WHERE id IN (
            SELECT id FROM events WHERE listed AND start_utc > now() AND id <> %s ORDER BY start_utc LIMIT 20)""",
        [parent, parent],
    )
    connection.execute("VACUUM (ANALYZE) events")
    some = connection.execute("SELECT id FROM events WHERE listed ORDER BY md5(id::text) LIMIT 12").fetchall()
    return Site(
        url=url,
        now=datetime.now(UTC),
        venue=one(busiest.format("venue", "venues", "DESC")),
        quiet_venue=one(busiest.format("venue", "venues", "ASC")),
        organizer=one(busiest.format("organizer", "organizers", "DESC")),
        category=one(busiest.format("category", "categories", "DESC")),
        small_category=one(busiest.format("category", "categories", "ASC")),
        tag=one(busiest.format("tag", "tags", "DESC")),
        parent=parent,
        some=[row[0] for row in some],
    )

"""One site of 200,000 events, made once per session: large enough that a wrong plan shows."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg
import pytest

from kalends.demo.seed import DemoOptions, seed
from tests.conftest import replace_database, temporary_database
from tests.plans.plan_collector import PlanCollector, open_plan_collector

EVENTS = int(os.environ.get("KALENDS_TEST_PLAN_EVENTS", "200000"))
UPCOMING = EVENTS // 20


@dataclass(frozen=True)
class PlanSite:
    """Where it is, and records to ask for: `venue` has many events, `parent` is an upcoming event."""

    url: str
    now: datetime
    venue: int
    quiet_venue: int
    organizer: int
    category: int
    small_category: int
    tag: int
    parent: int
    sample_ids: list[int]


@pytest.fixture(scope="session")
def site(postgres_url: str, template_database: str) -> Iterator[PlanSite]:
    with temporary_database(postgres_url, template=template_database) as name:
        url = replace_database(postgres_url, name)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE sites SET timezone = 'Europe/Berlin'")
            options = DemoOptions(events=EVENTS, upcoming=UPCOMING, venues=1000, organizers=500, seed=1)
            asyncio.run(seed(url, "", options, lambda *_: None))
            yield _select_records(connection, url)


@pytest.fixture
async def plan_collector(site: PlanSite) -> AsyncIterator[PlanCollector]:
    async with open_plan_collector(site.url, site.now) as explained:
        yield explained


def _select_records(connection: psycopg.Connection, url: str) -> PlanSite:
    def fetch_value(query: str) -> int:
        row = connection.execute(query).fetchone()
        assert row is not None
        return row[0]

    busiest = "SELECT {0}_id FROM event_{1} GROUP BY 1 ORDER BY count(*) {2}, 1 LIMIT 1"
    parent = fetch_value("SELECT id FROM events WHERE listed AND start_utc > now() ORDER BY start_utc LIMIT 1")
    connection.execute("VACUUM (ANALYZE) events")
    some = connection.execute("SELECT id FROM events WHERE listed ORDER BY md5(id::text) LIMIT 12").fetchall()
    return PlanSite(
        url=url,
        now=datetime.now(UTC),
        venue=fetch_value(busiest.format("venue", "venues", "DESC")),
        quiet_venue=fetch_value(busiest.format("venue", "venues", "ASC")),
        organizer=fetch_value(busiest.format("organizer", "organizers", "DESC")),
        category=fetch_value(busiest.format("category", "categories", "DESC")),
        small_category=fetch_value(busiest.format("category", "categories", "ASC")),
        tag=fetch_value(busiest.format("tag", "tags", "DESC")),
        parent=parent,
        sample_ids=[row[0] for row in some],
    )

"""Lists of a site of which half the events are dates of series: filters by series, and the first date of each."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from kalends.calendar.kinds.events import EVENTS
from kalends.demo.demo_records import AVERAGE_DATES
from kalends.demo.seed import DemoOptions, seed
from tests.conftest import replace_database, temporary_database
from tests.plans.conftest import EVENTS as EVENT_COUNT
from tests.plans.list_requests import RawParams
from tests.plans.plan_collector import PlanCollector, open_plan_collector
from tests.plans.test_query_plans import LARGE_TABLES, MAX_WASTED_ROWS
from tests.soak import scaled

TABLES = LARGE_TABLES | {"series_steps"}
HIDE = {"hide_subsequent_recurrences": "true"}

pytestmark = pytest.mark.large


@dataclass(frozen=True)
class SeriesSite:
    url: str
    now: datetime
    series: list[int]
    venue: int


@pytest.fixture(scope="session")
def series_site(postgres_url: str, template_database: str) -> Iterator[SeriesSite]:
    with temporary_database(postgres_url, template=template_database) as name:
        url = replace_database(postgres_url, name)
        single = EVENT_COUNT // scaled(8, 2)
        options = DemoOptions(
            events=single, upcoming=single // 20, venues=1000, organizers=500, series=single // AVERAGE_DATES
        )
        asyncio.run(seed(url, "", options, lambda *_: None))
        with psycopg.connect(url) as connection:
            series = connection.execute(
                "SELECT id FROM series WHERE status = 'publish' ORDER BY id LIMIT 2"
            ).fetchall()
            venue = connection.execute("SELECT venue_id FROM event_venues GROUP BY 1 ORDER BY count(*) LIMIT 1")
            yield SeriesSite(url, datetime.now(UTC), [row[0] for row in series], venue.fetchall()[0][0])


@pytest.fixture
async def plan_collector(series_site: SeriesSite) -> AsyncIterator[PlanCollector]:
    async with open_plan_collector(series_site.url, series_site.now) as explained:
        yield explained


def series_filters(site: SeriesSite) -> dict[str, RawParams]:
    soon, later = (f"{site.now + timedelta(days=days):%Y-%m-%d}" for days in (20, 50))
    series = ",".join(map(str, site.series))
    return {
        "series": {"series": series},
        "series (years ago)": {"series": series, "start_date": "2015-01-01"},
        "series, venue": {"series": series, "venue": site.venue},
        "series, search": {"series": series, "search": "accordion"},
        "series, orderby": {"series": series, "orderby": "modified"},
        "first dates": HIDE,
        "first dates, page": {**HIDE, "page": 20},
        "first dates, desc": {**HIDE, "order": "desc"},
        "first dates, overlaps": {**HIDE, "overlaps_from": soon},
        "first dates, a month": {**HIDE, "overlaps_from": soon, "overlaps_to": later},
        "first dates, start_date, end_date": {**HIDE, "start_date": soon, "end_date": later},
        "first dates, venue": {**HIDE, "venue": site.venue},
        "first dates, series": {**HIDE, "series": series},
    }


EXAMPLE_SITE = SeriesSite("", datetime(2026, 3, 14, tzinfo=UTC), [1, 2], 1)


@pytest.mark.parametrize("name", series_filters(EXAMPLE_SITE))
async def test_lists_of_series_use_index(name: str, series_site: SeriesSite, plan_collector: PlanCollector) -> None:
    for statement in await plan_collector.collect_plans(EVENTS, series_filters(series_site)[name]):
        assert not TABLES & set(statement.sequential_scans()), statement.outline()
        assert statement.wasted_rows(TABLES) <= MAX_WASTED_ROWS, statement.outline()


async def test_filter_by_series_uses_its_index(series_site: SeriesSite, plan_collector: PlanCollector) -> None:
    statements = await plan_collector.collect_plans(EVENTS, series_filters(series_site)["series"])
    used = [node.get("Index Name") for statement in statements for node in statement.nodes()]
    assert used.count("events_series") == 2, used  # page and total

"""Plans on a site whose events nearly all last one to three hours, as series have them.

On such data the planner would read all events before a window to find those that run beyond its end. The statement
has to force one lookup per duration class.
"""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from psycopg import sql

from kalends.calendar.kinds.events import EVENTS
from tests.conftest import replace_database, temporary_database
from tests.plans.list_requests import RawParams
from tests.plans.plan_collector import ANONYMOUS, REPETITIONS, PlanCollector, open_plan_collector
from tests.plans.test_query_plans import EDITOR, find_problems

EVENT_COUNT = 50_000
NOW = datetime(2027, 3, 1, tzinfo=UTC)

pytestmark = pytest.mark.large

# Four years of events, of which one in a thousand lasts up to thirty days.
ADD_EVENTS = """
    INSERT INTO events (site_id, id, uid, revision, author_id, status, slug, published_at, modified_utc, title,
        timezone, start_local, end_local, start_utc, end_utc)
    SELECT 1, n, gen_random_uuid(), n, 1, 'publish', 'event-' || n, %(now)s, %(now)s, 'Event ' || n,
        'UTC', t.start_at, t.end_at, t.start_at AT TIME ZONE 'UTC', t.end_at AT TIME ZONE 'UTC'
    FROM generate_series(1, %(count)s) n
    CROSS JOIN LATERAL (
        SELECT %(now)s AT TIME ZONE 'UTC' - interval '2 years' + n * interval '4 years' / %(count)s AS at) s
    CROSS JOIN LATERAL (
        SELECT s.at AS start_at, s.at + CASE WHEN n %% 1000 = 0 THEN n %% 31 * interval '1 day'
            ELSE (1 + n %% 3) * interval '1 hour' END AS end_at) t
"""
ADD_CATEGORY = """
    INSERT INTO categories (site_id, id, revision, name, name_folded, slug) VALUES (1, 1, 1, 'All', 'all', 'all');
    INSERT INTO event_categories (site_id, event_id, category_id, position, start_utc, listed, published)
    SELECT site_id, id, 1, 1, start_utc, true, true FROM events
"""
TABLES = ("events", "event_categories", "link_days")


@pytest.fixture(scope="module")
def short_events_url(postgres_url: str, template_database: str) -> Iterator[str]:
    with temporary_database(postgres_url, template=template_database) as name:
        url = replace_database(postgres_url, name)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("INSERT INTO users (site_id, id, login, role) VALUES (1, 1, 'editor', 'editor')")
            connection.execute(ADD_EVENTS, {"now": NOW, "count": EVENT_COUNT})
            connection.execute(ADD_CATEGORY)
            for table in TABLES:
                connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(table)))
        yield url


@pytest.fixture
async def short_events(short_events_url: str) -> AsyncIterator[PlanCollector]:
    async with open_plan_collector(short_events_url, NOW) as collector:
        yield collector


def _between(first_day: int, last_day: int) -> RawParams:
    return {
        "start_date": f"{NOW + timedelta(days=first_day):%Y-%m-%d}",
        "end_date": f"{NOW + timedelta(days=last_day):%Y-%m-%d}",
    }


WINDOWS = {
    "a day": _between(14, 14),
    "a week": _between(14, 21),
    "a week at the end": _between(700, 707),
    "a week in the past": _between(-400, -393),
    "a year": _between(14, 379),
    "the default": {},
}


@pytest.mark.parametrize("repetitions", [1, REPETITIONS])
@pytest.mark.parametrize("name", WINDOWS)
async def test_lists_with_both_dates_use_index(name: str, repetitions: int, short_events: PlanCollector) -> None:
    """The first plan is made for its arguments; that of the seventh request may be kept for all arguments."""
    for actor in (ANONYMOUS, EDITOR):
        statements = await short_events.collect_plans(EVENTS, WINDOWS[name], actor, repetitions)
        assert not find_problems(statements)


@pytest.mark.parametrize("repetitions", [1, REPETITIONS])
@pytest.mark.parametrize("name", WINDOWS)
async def test_lists_of_large_category_do_not_read_all_its_events(
    name: str, repetitions: int, short_events: PlanCollector
) -> None:
    """The page is read from the link index, and the total is a sum over at most two years of days."""
    for order in ("asc", "desc"):
        raw = {**WINDOWS[name], "categories": "1", "order": order}
        for statement in await short_events.collect_plans(EVENTS, raw, repetitions=repetitions):
            nodes = [node for node in statement.nodes() if node.get("Relation Name") in TABLES]
            assert sum(node["Actual Rows"] * node["Actual Loops"] for node in nodes) < 1200, statement.outline()

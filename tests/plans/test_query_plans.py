"""Every statement of a list has an index that serves it: the plan is looked at, not the clock."""

import pytest

from kalends.api.wordpress.wordpress_shapes import CORE_EVENTS
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Actor
from tests.plans.conftest import PlanSite
from tests.plans.list_requests import EXAMPLE_SITE, RawParams, filter_pairs, single_filters, unlimited_filters
from tests.plans.plan_collector import PlanCollector, Statement

# The tables that grow with the number of events. A few terms or venues are read faster without an index.
LARGE_TABLES = {"events", "event_venues", "event_organizers", "event_categories", "event_tags"}
# The maximum number of rows that one step may read and discard. Duration classes contain up to twice as many events
# as are running, a search finds events of the first month that have begun before today, and a page has up to 50 rows:
# a few hundred are normal. Without the right index a step discards thousands, with 10,000 of 200,000 events upcoming.
MAX_WASTED_ROWS = 500

EDITOR = Actor(1, "editor")

pytestmark = pytest.mark.large


def find_problems(statements: list[Statement], max_wasted_rows: int = MAX_WASTED_ROWS) -> list[str]:
    problems = []
    for statement in statements:
        scanned = LARGE_TABLES & set(statement.sequential_scans())
        wasted = statement.wasted_rows(LARGE_TABLES)
        if scanned or wasted > max_wasted_rows:
            problems.append(f"reads {scanned or 'no table'} whole, {wasted} rows in vain:\n{statement.outline()}")
    return problems


@pytest.mark.parametrize("name", single_filters(EXAMPLE_SITE))
async def test_single_filters_use_index(name: str, site: PlanSite, plan_collector: PlanCollector) -> None:
    assert not find_problems(await plan_collector.collect_plans(EVENTS, single_filters(site)[name]))


@pytest.mark.parametrize("name", unlimited_filters(EXAMPLE_SITE))
async def test_filters_over_all_dates_use_index(name: str, site: PlanSite, plan_collector: PlanCollector) -> None:
    assert not find_problems(await plan_collector.collect_plans(EVENTS, unlimited_filters(site)[name]))


async def test_short_search_words_do_not_scan_text_index(site: PlanSite, plan_collector: PlanCollector) -> None:
    """Also with a plan that is kept for all words: after a few requests for long ones."""
    for word in ("a", "a b"):
        statements = await plan_collector.collect_plans(
            EVENTS, {**unlimited_filters(site)["nothing"], "search": word}
        )
        conditions = [str(node.get("Index Cond", "")) for statement in statements for node in statement.nodes()]
        assert not [condition for condition in conditions if "search_text" in condition], word


@pytest.mark.parametrize("name", filter_pairs(EXAMPLE_SITE))
async def test_filter_pairs_use_index(name: str, site: PlanSite, plan_collector: PlanCollector) -> None:
    """What two filters have in common is found among what the index of one of them finds in the window."""
    raw = filter_pairs(site)[name]
    linked = {key: raw[key] for key in ("categories", "geoloc_lat", "geoloc_lng") if key in raw}
    matching = (await plan_collector.list_records(EVENTS, linked)).body["total"] if linked else 0
    assert not find_problems(await plan_collector.collect_plans(EVENTS, raw), max(MAX_WASTED_ROWS, matching))


@pytest.mark.parametrize(
    "raw", [{}, {"status": "draft"}, {"status": "draft,pending"}, {"status": "publish"}, {"status": "publish,draft"}]
)
async def test_editor_queries_use_index(raw: RawParams, site: PlanSite, plan_collector: PlanCollector) -> None:
    assert not find_problems(await plan_collector.collect_plans(EVENTS, raw, EDITOR))


@pytest.mark.parametrize("raw", [{}, {"status": "draft"}, {"status": "draft,pending,private"}])
async def test_author_queries_use_index(raw: RawParams, site: PlanSite, plan_collector: PlanCollector) -> None:
    """The author of most events, few of which are drafts."""
    assert not find_problems(await plan_collector.collect_plans(EVENTS, raw, Actor(1, "author")))


async def test_cursor_uses_index(site: PlanSite, plan_collector: PlanCollector) -> None:
    page = await plan_collector.list_records(EVENTS, {"page": 100})
    cursor = page.body["next_cursor"]
    assert not find_problems(await plan_collector.collect_plans(EVENTS, {"cursor": cursor}))


async def test_core_list_of_events_uses_index(site: PlanSite, plan_collector: PlanCollector) -> None:
    statements = await plan_collector.collect_plans(CORE_EVENTS, {})
    assert not find_problems(statements)
    page = next(statement for statement in statements if "published_at DESC" in statement.text)
    assert "events_published" in [node.get("Index Name") for node in page.nodes()], page.outline()


def test_all_filters_are_covered() -> None:
    covered = {name for raw in single_filters(EXAMPLE_SITE).values() for name in raw}
    in_other_files = {"cursor", "series", "hide_subsequent_recurrences"}
    assert {row.param.name for row in EVENTS.filters} <= covered | in_other_files

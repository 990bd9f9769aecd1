"""Every statement of a list has an index that serves it: the plan is looked at, not the clock."""

import pytest

from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Actor
from tests.plans.conftest import Site
from tests.plans.list_requests import EXAMPLE, Raw, alone, in_pairs, in_the_wide_window
from tests.plans.plan_collector import Explaining, Statement

# These grow with the number of events. Terms and venues are few, and reading few rows whole is quicker.
LARGE = {"events", "event_venues", "event_organizers", "event_categories", "event_tags"}
# Rows that one step may read in vain. What runs is found through length classes that hold up to twice as many, a
# quarter of texts begins before today, a page is up to 50 rows: a few hundred are part of an answer. Walking past
# what the filter is for is not, and with 10,000 of 200,000 events to come it throws away thousands.
IN_VAIN = 500

EDITOR = Actor(1, "editor")

pytestmark = pytest.mark.large


def faults(statements: list[Statement], in_vain: int = IN_VAIN) -> list[str]:
    found = []
    for statement in statements:
        whole = LARGE & set(statement.whole_tables())
        wasted = statement.rows_in_vain(LARGE)
        if whole or wasted > in_vain:
            found.append(f"reads {whole or 'no table'} whole, {wasted} rows in vain:\n{statement.outline()}")
    return found


@pytest.mark.parametrize("name", alone(EXAMPLE))
async def test_single_filters_use_index(name: str, site: Site, explained: Explaining) -> None:
    assert not faults(await explained.list(EVENTS, alone(site)[name]))


@pytest.mark.parametrize("name", in_the_wide_window(EXAMPLE))
async def test_filters_over_all_dates_use_index(name: str, site: Site, explained: Explaining) -> None:
    assert not faults(await explained.list(EVENTS, in_the_wide_window(site)[name]))


async def test_short_search_words_do_not_scan_text_index(site: Site, explained: Explaining) -> None:
    """Also with a plan that is kept for all words: after a few requests for long ones."""
    for word in ("a", "a b"):
        statements = await explained.list(EVENTS, {**in_the_wide_window(site)["nothing"], "search": word})
        conditions = [str(node.get("Index Cond", "")) for statement in statements for node in statement.nodes()]
        assert not [condition for condition in conditions if "search_text" in condition], word


@pytest.mark.parametrize("name", in_pairs(EXAMPLE))
async def test_filter_pairs_use_index(name: str, site: Site, explained: Explaining) -> None:
    """What two filters have in common is found among what the index of one of them finds in the window."""
    raw = in_pairs(site)[name]
    linked = {key: raw[key] for key in ("categories", "geoloc_lat", "geoloc_lng") if key in raw}
    found = (await explained.ask(EVENTS, linked)).body["total"] if linked else 0
    assert not faults(await explained.list(EVENTS, raw), max(IN_VAIN, found))


@pytest.mark.parametrize("raw", [{}, {"status": "draft"}, {"status": "draft,pending"}, {"status": "publish"}])
async def test_editor_queries_use_index(raw: Raw, site: Site, explained: Explaining) -> None:
    assert not faults(await explained.list(EVENTS, raw, EDITOR))


async def test_cursor_uses_index(site: Site, explained: Explaining) -> None:
    page = await explained.ask(EVENTS, {"page": 100})
    cursor = page.body["next_cursor"]
    assert not faults(await explained.list(EVENTS, {"cursor": cursor}))


def test_all_filters_are_covered() -> None:
    asked = {name for raw in alone(EXAMPLE).values() for name in raw}
    assert {row.param.name for row in EVENTS.filters} <= asked | {"cursor"}

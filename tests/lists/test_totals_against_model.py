"""Totals that are summed up from counters by day are those of the slow model, whatever the window."""

from hypothesis import given

from tests.lists.comparison import compare
from tests.lists.hypothesis_settings import quick, seed, seeds
from tests.lists.list_site import Site
from tests.lists.random_datasets import make_world
from tests.lists.random_queries import make_total_query
from tests.lists.trigger_counters import compare_counters


@quick(8)
@given(seed, seeds(30, 60), seeds(40, 70))
def test_totals_match_model_for_narrow_and_wide_windows(
    site: Site, world_seed: int, event_seeds: list[int], query_seeds: list[int]
) -> None:
    world = make_world(world_seed, event_seeds)
    site.fill(world)
    compare_counters(site, world)
    for query_seed in query_seeds:
        compare(site, world, make_total_query(query_seed, world))

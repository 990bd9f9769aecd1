"""After any changes the counters are right, and lists are still those of the slow model."""

from hypothesis import given

from tests.lists.comparison import compare
from tests.lists.hypothesis_settings import quick, seed, seeds
from tests.lists.list_site import Site
from tests.lists.random_changes import change_world
from tests.lists.random_datasets import make_world
from tests.lists.random_queries import ALL_TOGETHER, make_event_query, make_total_query
from tests.lists.trigger_counters import compare_counters


@quick(8)
@given(seed, seeds(8, 25), seeds(10, 40), seeds(10, 15))
def test_lists_and_counters_match_model_after_changes(
    site: Site, world_seed: int, event_seeds: list[int], change_seeds: list[int], query_seeds: list[int]
) -> None:
    world = make_world(world_seed, event_seeds)
    site.fill(world)
    for change_seed in change_seeds:
        world = change_world(site, world, change_seed)
    compare_counters(site, world)
    for query_seed in query_seeds:
        compare(site, world, make_event_query(query_seed, world, ALL_TOGETHER))
        compare(site, world, make_total_query(query_seed, world))

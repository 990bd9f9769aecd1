"""Totals that are summed up from counters by day are those of the slow model, whatever the window."""

from hypothesis import given

from tests.lists.comparison import compare_with_model
from tests.lists.hypothesis_settings import list_settings, seed, seed_lists
from tests.lists.list_site import ListSite
from tests.lists.random_datasets import make_dataset
from tests.lists.random_queries import make_total_query
from tests.lists.trigger_counters import compare_counters


@list_settings(8)
@given(seed, seed_lists(30, 60), seed_lists(40, 70))
def test_totals_match_model_for_narrow_and_wide_windows(
    site: ListSite, dataset_seed: int, event_seeds: list[int], query_seeds: list[int]
) -> None:
    dataset = make_dataset(dataset_seed, event_seeds)
    site.load(dataset)
    compare_counters(site, dataset)
    for query_seed in query_seeds:
        compare_with_model(site, dataset, make_total_query(query_seed, dataset))

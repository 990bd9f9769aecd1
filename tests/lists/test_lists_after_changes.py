"""After any changes the counters are right, and lists are still those of the slow model."""

from hypothesis import example, given

from tests.lists.comparison import compare_with_model
from tests.lists.hypothesis_settings import list_settings, seed, seed_lists
from tests.lists.list_site import ListSite
from tests.lists.random_changes import change_dataset
from tests.lists.random_datasets import make_dataset
from tests.lists.random_queries import ALL_PARAMS, make_event_query, make_total_query
from tests.lists.trigger_counters import compare_counters


# A venue whose date of publication has come, but which the worker has not published yet.
@example(4542619, [1, 1, 1, 1, 1, 1, 1, 1053, 8], [14], [2550])
@list_settings(8)
@given(seed, seed_lists(8, 25), seed_lists(10, 40), seed_lists(10, 15))
def test_lists_and_counters_match_model_after_changes(
    site: ListSite, dataset_seed: int, event_seeds: list[int], change_seeds: list[int], query_seeds: list[int]
) -> None:
    dataset = make_dataset(dataset_seed, event_seeds)
    site.load(dataset)
    for change_seed in change_seeds:
        dataset = change_dataset(site, dataset, change_seed)
    compare_counters(site, dataset)
    for query_seed in query_seeds:
        compare_with_model(site, dataset, make_event_query(query_seed, dataset, ALL_PARAMS))
        compare_with_model(site, dataset, make_total_query(query_seed, dataset))

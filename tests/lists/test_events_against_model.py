"""GET /events gives exactly the records, order, totals and links that the slow model gives."""

from collections.abc import Sequence

import pytest
from hypothesis import given

from tests.lists.comparison import compare_with_model
from tests.lists.hypothesis_settings import list_settings, seed, seed_lists
from tests.lists.list_site import ListSite
from tests.lists.random_datasets import make_dataset
from tests.lists.random_queries import (
    ALL_PARAMS,
    PLACE_PARAMS,
    SEARCH_PARAMS,
    TIME_PARAMS,
    ParamGenerator,
    make_event_query,
)


@list_settings(6)
@given(seed, seed_lists(20, 60), seed_lists(25, 50))
def test_events_match_model_for_any_parameters(
    site: ListSite, dataset_seed: int, event_seeds: list[int], query_seeds: list[int]
) -> None:
    _compare(site, dataset_seed, event_seeds, query_seeds, ALL_PARAMS)


@pytest.mark.parametrize(
    "ingredients", [TIME_PARAMS, SEARCH_PARAMS, PLACE_PARAMS], ids=["in time", "by words", "in places"]
)
@list_settings(3)
@given(seed, seed_lists(20, 60), seed_lists(25, 50))
def test_events_match_model_for_related_parameters(
    site: ListSite,
    ingredients: Sequence[ParamGenerator],
    dataset_seed: int,
    event_seeds: list[int],
    query_seeds: list[int],
) -> None:
    _compare(site, dataset_seed, event_seeds, query_seeds, ingredients)


def _compare(
    site: ListSite,
    dataset_seed: int,
    event_seeds: list[int],
    query_seeds: list[int],
    ingredients: Sequence[ParamGenerator],
) -> None:
    dataset = make_dataset(dataset_seed, event_seeds)
    site.load(dataset)
    for query_seed in query_seeds:
        compare_with_model(site, dataset, make_event_query(query_seed, dataset, ingredients))

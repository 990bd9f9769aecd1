"""GET /venues, /organizers, /categories and /tags give exactly what the slow model gives."""

import pytest
from hypothesis import given

from tests.lists.comparison import compare_with_model
from tests.lists.hypothesis_settings import list_settings, seed, seed_lists
from tests.lists.list_site import ListSite
from tests.lists.place_and_term_queries import make_place_query, make_term_query
from tests.lists.random_datasets import make_dataset


@pytest.mark.parametrize("kind", ["venues", "organizers"])
@list_settings(4)
@given(seed, seed_lists(5, 20), seed_lists(20, 40))
def test_venues_and_organizers_match_model(
    site: ListSite, kind: str, dataset_seed: int, event_seeds: list[int], query_seeds: list[int]
) -> None:
    dataset = make_dataset(dataset_seed, event_seeds)
    site.load(dataset)
    for query_seed in query_seeds:
        compare_with_model(site, dataset, make_place_query(query_seed, dataset, kind))


@pytest.mark.parametrize("kind", ["categories", "tags"])
@list_settings(4)
@given(seed, seed_lists(5, 20), seed_lists(20, 40))
def test_terms_match_model(
    site: ListSite, kind: str, dataset_seed: int, event_seeds: list[int], query_seeds: list[int]
) -> None:
    dataset = make_dataset(dataset_seed, event_seeds)
    site.load(dataset)
    for query_seed in query_seeds:
        compare_with_model(site, dataset, make_term_query(query_seed, dataset, kind))

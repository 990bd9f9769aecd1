"""GET /events gives exactly the records, order, totals and links that the slow model gives."""

from collections.abc import Sequence

import pytest
from hypothesis import given

from tests.lists.comparison import compare
from tests.lists.hypothesis_settings import quick, seed, seeds
from tests.lists.list_site import Site
from tests.lists.random_datasets import make_world
from tests.lists.random_queries import ALL_TOGETHER, BY_WORDS, IN_PLACES, IN_TIME, Ingredient, make_event_query


@quick(6)
@given(seed, seeds(20, 60), seeds(25, 50))
def test_events_match_model_for_any_parameters(
    site: Site, world_seed: int, event_seeds: list[int], query_seeds: list[int]
) -> None:
    _compare(site, world_seed, event_seeds, query_seeds, ALL_TOGETHER)


@pytest.mark.parametrize("ingredients", [IN_TIME, BY_WORDS, IN_PLACES], ids=["in time", "by words", "in places"])
@quick(3)
@given(seed, seeds(20, 60), seeds(25, 50))
def test_events_match_model_for_related_parameters(
    site: Site, ingredients: Sequence[Ingredient], world_seed: int, event_seeds: list[int], query_seeds: list[int]
) -> None:
    _compare(site, world_seed, event_seeds, query_seeds, ingredients)


def _compare(
    site: Site, world_seed: int, event_seeds: list[int], query_seeds: list[int], ingredients: Sequence[Ingredient]
) -> None:
    world = make_world(world_seed, event_seeds)
    site.fill(world)
    for query_seed in query_seeds:
        compare(site, world, make_event_query(query_seed, world, ingredients))

"""GET /venues, /organizers, /categories and /tags give exactly what the slow model gives."""

import pytest
from hypothesis import given

from tests.lists.comparison import compare
from tests.lists.hypothesis_settings import quick, seed, seeds
from tests.lists.list_site import Site
from tests.lists.place_and_term_queries import make_place_query, make_term_query
from tests.lists.random_datasets import make_world


@pytest.mark.parametrize("kind", ["venues", "organizers"])
@quick(4)
@given(seed, seeds(5, 20), seeds(20, 40))
def test_venues_and_organizers_match_model(
    site: Site, kind: str, world_seed: int, event_seeds: list[int], query_seeds: list[int]
) -> None:
    world = make_world(world_seed, event_seeds)
    site.fill(world)
    for query_seed in query_seeds:
        compare(site, world, make_place_query(query_seed, world, kind))


@pytest.mark.parametrize("kind", ["categories", "tags"])
@quick(4)
@given(seed, seeds(5, 20), seeds(20, 40))
def test_terms_match_model(
    site: Site, kind: str, world_seed: int, event_seeds: list[int], query_seeds: list[int]
) -> None:
    world = make_world(world_seed, event_seeds)
    site.fill(world)
    for query_seed in query_seeds:
        compare(site, world, make_term_query(query_seed, world, kind))

"""Random queries of venues, organizers, categories and tags: every list parameter, as any role."""

from random import Random

from tests.lists.dataset import ROLES, Dataset, Query
from tests.lists.random_queries import (
    BOOLEANS,
    UNKNOWN_ID,
    ParamGenerator,
    Params,
    combine_params,
    make_ids,
    make_page,
    make_search,
    make_statuses,
    single_param,
)
from tests.lists.search_words import SEARCH_WORDS

TERM_ORDERS = ("name", "id", "term_id", "slug", "description", "count", "term_group", "parent", "include")


def make_place_query(seed: int, dataset: Dataset, kind: str) -> Query:
    rng = Random(seed)
    ingredients: tuple[ParamGenerator, ...] = (
        make_search,
        _make_event,
        make_statuses,
        single_param("has_events", BOOLEANS),
        single_param("only_with_upcoming", BOOLEANS),
    )
    return _build_query(rng, kind, combine_params(rng, dataset, rng.sample(ingredients, k=rng.randint(0, 3))))


def make_term_query(seed: int, dataset: Dataset, kind: str) -> Query:
    rng = Random(seed)
    ids = [str(term.id) for term in dataset.terms(kind)]
    slugs = [term.slug for term in dataset.terms(kind)]
    ingredients: tuple[ParamGenerator, ...] = (
        single_param("search", SEARCH_WORDS),
        make_ids("include", kind),
        make_ids("exclude", kind),
        single_param("order", ("asc", "desc")),
        single_param("orderby", TERM_ORDERS),
        single_param("hide_empty", BOOLEANS),
        single_param("hide_empty", ("false",)),
        _make_event,
        lambda rng, world: [("post", value) for _, value in _make_event(rng, world)],
        single_param("slug", [*slugs, "ЁЛКА", "Alpha", "nowhere"]),
        single_param("parent", [*ids * 4, "0", UNKNOWN_ID]),
    )
    return _build_query(rng, kind, combine_params(rng, dataset, rng.sample(ingredients, k=rng.randint(0, 4))))


def _make_event(rng: Random, dataset: Dataset) -> Params:
    return [("event", rng.choice([*(str(event.id) for event in dataset.events), UNKNOWN_ID]))]


def _build_query(rng: Random, kind: str, params: Params) -> Query:
    walk = rng.choice(("one", "one", "pages"))
    paging = make_page(rng, walk) if walk == "one" else [("per_page", rng.choice("123"))]
    return Query(kind, rng.choice(ROLES), (*params, *paging), walk)

"""Random queries of venues, organizers, categories and tags: every list parameter, as any role."""

from random import Random

from tests.lists.dataset import ROLES, Query, World
from tests.lists.random_queries import (
    SWITCHES,
    UNKNOWN,
    Ingredient,
    Params,
    make_ids,
    make_page,
    make_search,
    make_statuses,
    mix,
    one,
)
from tests.lists.search_words import SOUGHT

TERM_ORDERS = ("name", "id", "term_id", "slug", "description", "count", "term_group", "parent", "include")


def make_place_query(seed: int, world: World, kind: str) -> Query:
    rng = Random(seed)
    ingredients: tuple[Ingredient, ...] = (
        make_search,
        _make_event,
        make_statuses,
        one("has_events", SWITCHES),
        one("only_with_upcoming", SWITCHES),
    )
    return _of_kind(rng, kind, mix(rng, world, rng.sample(ingredients, k=rng.randint(0, 3))))


def make_term_query(seed: int, world: World, kind: str) -> Query:
    rng = Random(seed)
    ids = [str(term.id) for term in world.terms(kind)]
    slugs = [term.slug for term in world.terms(kind)]
    ingredients: tuple[Ingredient, ...] = (
        one("search", SOUGHT),
        make_ids("include", kind),
        make_ids("exclude", kind),
        one("order", ("asc", "desc")),
        one("orderby", TERM_ORDERS),
        one("hide_empty", SWITCHES),
        one("hide_empty", ("false",)),
        _make_event,
        lambda rng, world: [("post", value) for _, value in _make_event(rng, world)],
        one("slug", [*slugs, "ЁЛКА", "Alpha", "nowhere"]),
        one("parent", [*ids * 4, "0", UNKNOWN]),
    )
    return _of_kind(rng, kind, mix(rng, world, rng.sample(ingredients, k=rng.randint(0, 4))))


def _make_event(rng: Random, world: World) -> Params:
    return [("event", rng.choice([*(str(event.id) for event in world.events), UNKNOWN]))]


def _of_kind(rng: Random, kind: str, params: Params) -> Query:
    walk = rng.choice(("one", "one", "pages"))
    paging = make_page(rng, walk) if walk == "one" else [("per_page", rng.choice("123"))]
    return Query(kind, rng.choice(ROLES), (*params, *paging), walk)

"""The same questions at later times, with nothing changed in between: no answer outlives its truth."""

from dataclasses import replace
from random import Random

from hypothesis import given

from tests.lists.comparison import compare
from tests.lists.dataset import Query, World
from tests.lists.hypothesis_settings import quick, seed, seeds
from tests.lists.list_site import Site
from tests.lists.place_and_term_queries import make_place_query
from tests.lists.random_datasets import make_world
from tests.lists.random_queries import make_date
from tests.lists.zone_model import DAY, SECOND, seconds_of_day, wall_of


@quick(4)
@given(seed, seeds(10, 30), seeds(4, 8))
def test_lists_match_model_as_time_passes(
    site: Site, world_seed: int, event_seeds: list[int], query_seeds: list[int]
) -> None:
    world = make_world(world_seed, event_seeds)
    site.fill(world)
    queries = [query for number in query_seeds for query in _make_queries(number, world)]
    tonight = seconds_of_day(wall_of(world.now, world.zone).date(), world.zone)[1]
    soon = [event.start for event in world.events if world.now < event.start < world.now + 3 * DAY]
    for now in sorted({world.now, world.now + SECOND, tonight, tonight + SECOND, world.now + 100 * DAY, *soon[:2]}):
        site.now = now
        for query in queries:
            compare(site, replace(world, now=now), query)


def _make_queries(number: int, world: World) -> list[Query]:
    """What depends on the time of day: windows that are not given in full, and what is upcoming."""
    rng = Random(number)
    window = rng.choice(([], [], ["start_date"], ["end_date"], ["start_date", "end_date"]))
    dates = tuple((name, make_date(rng, world)) for name in window)
    role = rng.choice(("anonymous", "anonymous", "editor"))
    return [Query("events", role, dates), replace(make_place_query(number, world, "venues"), role=role)]

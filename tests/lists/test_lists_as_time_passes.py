"""The same questions at later times, with nothing changed in between: no answer outlives its truth."""

from dataclasses import replace
from random import Random

from hypothesis import given

from tests.lists.comparison import compare_with_model
from tests.lists.dataset import Dataset, Query
from tests.lists.hypothesis_settings import list_settings, seed, seed_lists
from tests.lists.list_site import ListSite
from tests.lists.place_and_term_queries import make_place_query
from tests.lists.random_datasets import make_dataset
from tests.lists.random_queries import make_date
from tests.lists.zone_model import DAY, SECOND, day_bounds, to_local


@list_settings(4)
@given(seed, seed_lists(10, 30), seed_lists(4, 8))
def test_lists_match_model_as_time_passes(
    site: ListSite, dataset_seed: int, event_seeds: list[int], query_seeds: list[int]
) -> None:
    dataset = make_dataset(dataset_seed, event_seeds)
    site.load(dataset)
    queries = [query for number in query_seeds for query in _make_queries(number, dataset)]
    tonight = day_bounds(to_local(dataset.now, dataset.zone).date(), dataset.zone)[1]
    soon = [event.start for event in dataset.events if dataset.now < event.start < dataset.now + 3 * DAY]
    for now in sorted(
        {dataset.now, dataset.now + SECOND, tonight, tonight + SECOND, dataset.now + 100 * DAY, *soon[:2]}
    ):
        site.now = now
        for query in queries:
            compare_with_model(site, replace(dataset, now=now), query)


def _make_queries(number: int, dataset: Dataset) -> list[Query]:
    """What depends on the time of day: windows that are not given in full, and what is upcoming."""
    rng = Random(number)
    window = rng.choice(([], [], ["start_date"], ["end_date"], ["start_date", "end_date"]))
    dates = tuple((name, make_date(rng, dataset)) for name in window)
    role = rng.choice(("anonymous", "anonymous", "editor"))
    return [Query("events", role, dates), replace(make_place_query(number, dataset, "venues"), role=role)]

"""The requests that are measured, each with its limit (the growth that the project allows itself)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, urlencode

from bench.measuring import Running
from bench.worlds import LATITUDE, LONGITUDE, RARE_WORDS, World

CONSTANT = 1.5
BY_NUMBER = 5.0
DEEP = 1000
BASE = "/events"

# From everywhere to hardly anywhere; all of them are words of the made-up descriptions.
COMMON_WORDS = ("the", "venue", "library", "accordion", "beavers", "baroque", "kookaburra")


@dataclass(frozen=True)
class Case:
    name: str
    limit: float
    paths: Callable[[World, datetime], list[str]]


def _list(**values: object) -> str:
    return f"{BASE}?{urlencode(values)}"


def _current(_: World, now: datetime) -> list[str]:
    return [_list(strict_dates="true", ends_after=now.strftime("%Y-%m-%dT%H:%M:%SZ"))]


def _include(world: World, _: datetime) -> list[str]:
    chunks = (world.event_ids[begin : begin + 12] for begin in range(0, 600 - 12, 12))
    return [_list(include=",".join(map(str, chunk))) for chunk in chunks if len(chunk) == 12]


def _circle(_: World, __: datetime) -> list[str]:
    return [_list(geoloc_lat=LATITUDE, geoloc_lng=LONGITUDE, geoloc_radius=30)]


CASES = (
    Case("the default list", CONSTANT, lambda _, __: [BASE]),
    Case("ends_after=now", CONSTANT, _current),
    Case("one event by ID", CONSTANT, lambda world, _: [f"{BASE}/{n}" for n in world.event_ids]),
    Case("one event by slug", CONSTANT, lambda world, _: [f"{BASE}/by-slug/{quote(s)}" for s in world.slugs]),
    Case("include, 12 IDs", CONSTANT, _include),
    Case("one category", CONSTANT, lambda world, _: [_list(categories=world.category_id)]),
    Case("one venue", CONSTANT, lambda world, _: [_list(venue=world.venue_id)]),
    Case("a circle", CONSTANT, _circle),
    Case("two rare words", CONSTANT, lambda _, __: [_list(search=" ".join(RARE_WORDS))]),
)


def common_word(word: str) -> str:
    return _list(search=word)


def deep_pages(running: Running) -> Iterator[tuple[Case, str]]:
    """Page 1,000 (or the last) by cursor and by number."""
    first = running.ask(BASE).json()
    page = min(DEEP, int(first["total_pages"]) - 1)  # The last page may be short.
    cursor = running.ask(_list(page=page - 1)).json()["next_cursor"]
    yield Case(f"page {page:,} by cursor", CONSTANT, lambda _, __: []), _list(cursor=cursor)
    yield Case(f"page {page:,} by number", BY_NUMBER, lambda _, __: []), _list(page=page)

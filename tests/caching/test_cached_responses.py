"""Cached responses against responses of a server without a cache, while the site is changed at random."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from difflib import unified_diff
from itertools import islice
from typing import Any
from unittest.mock import patch

import pytest

from kalends.calendar.access import caching
from kalends.core.times import utc_now
from kalends.http.cache import CachedResponse, SiteTags
from tests.api.conftest import start_single_site as start_app
from tests.api.running_app import RunningApp
from tests.caching.random_site import Clock, RandomSite
from tests.soak import scaled, some

__all__ = ["start_app"]

UNAVAILABLE, MAX_RETRIES = 503, 10
MAX_LINES = 30  # of a difference
SETTINGS = {"KALENDS_API_ALIASES": "/wp-json/tribe/events/v1"}
COMPARED_HEADERS = ("etag", "content-type", "content-language", "x-wp-total", "x-wp-totalpages", "link")


@dataclass
class Comparison:
    """A site on two servers, of which only the first has a cache."""

    site: RandomSite
    uncached: RunningApp
    compared: int = 0
    survivors: int = 0  # responses that were used although the site has changed since they were rendered
    statuses: Counter[int] = field(default_factory=Counter[int])

    def find_difference(self, comparisons: int) -> str | None:
        """Write and read until the responses differ; return the path and the difference, or None."""
        with patch.object(CachedResponse, "outlives", self._count_survivors(CachedResponse.outlives)):
            while self.compared < comparisons:
                self.site.writer.write_randomly()
                for path in self.site.next_paths():
                    self.compared += 1
                    cached, new = self._read(self.site.app, path), self._read(self.uncached, path)
                    if cached != new:
                        return "\n".join([path, *islice(unified_diff(cached, new, "cached", "new", n=1), MAX_LINES)])
        return None

    def _read(self, app: RunningApp, path: str) -> list[str]:
        """Return the parts of a response that must be equal, as lines."""
        plain, _, query = path.partition("?")
        status, headers, body = app.raw("GET", plain, query=query.encode())
        for _ in range(MAX_RETRIES):
            if status != UNAVAILABLE:
                break
            # The machine is overloaded, which says nothing about the cache.
            time.sleep(1)
            status, headers, body = app.raw("GET", plain, query=query.encode())
        self.statuses[status] += 1
        lines = body.decode(errors="replace").replace(',"', ',\n"').splitlines()
        return [str(status), *[f"{name}: {headers.get(name, '')}" for name in COMPARED_HEADERS], *lines]

    def _count_survivors(
        self, outlives: Callable[[CachedResponse, SiteTags | None, int], bool]
    ) -> Callable[[CachedResponse, SiteTags | None, int], bool]:
        def count(response: CachedResponse, site: SiteTags | None, revision: int) -> bool:
            is_older = response.revision < revision
            is_valid = outlives(response, site, revision)
            self.survivors += is_older and is_valid
            return is_valid

        return count


@pytest.fixture
def make_comparison(start_app: Callable[..., RunningApp]) -> Iterator[Callable[[int], Comparison]]:
    clock = Clock(utc_now())
    servers: list[RunningApp] = []
    with patch("kalends.asgi.utc_now", clock):

        def make(seed: int) -> Comparison:
            cached = start_app(SETTINGS)
            uncached = cached.twin({**SETTINGS, "KALENDS_CACHE_MB": "0"})
            servers.append(uncached.__enter__())
            site = RandomSite(cached, clock, seed)
            site.fill()
            return Comparison(site, uncached)

        yield make
        for server in servers:
            server.__exit__()


@pytest.mark.parametrize("seed", range(scaled(1, 8)))
def test_cached_responses_equal_new_ones(make_comparison: Callable[[int], Comparison], seed: int) -> None:
    comparison = make_comparison(seed)
    assert comparison.find_difference(scaled(500, 25_000)) is None
    assert comparison.survivors > 0.05 * comparison.compared
    assert comparison.statuses[200] > 0.6 * comparison.statuses.total()


def _ignore_columns(column: str) -> Callable[[], object]:
    return lambda: patch.object(caching, "SHOWN_COLUMNS", caching.SHOWN_COLUMNS | {column})


def _without(column: str) -> Callable[[], object]:
    links = tuple(link for link in caching.EVENTS.links if link.column != column)
    return lambda: patch.object(caching, "EVENTS", replace(caching.EVENTS, links=links))


def _change_fragments(has_tag: Callable[[str], bool]) -> object:
    def make(json: Any, tags: tuple[str, ...], revision: int) -> object:
        return fragment(json, tuple(filter(has_tag, tags)), revision)

    fragment = caching.EventFragment
    return patch.object(caching, "EventFragment", make)


# Rules whose absence random writes hardly ever show have tests of their own (test_invalidation.py).
MUTANTS: dict[str, Callable[[], object]] = {
    # A normal run tries the first two, which are found soon.
    "status is only shown": _ignore_columns("status"),
    "no linked records": lambda: patch.object(
        caching,
        "_list_references",
        lambda kind, rows: [caching.record_tag(kind.name, row["id"]) for row in rows],
    ),
    "title is only shown": _ignore_columns("title"),
    "no sets of venues": _without("venue_id"),
    "no counts of terms": lambda: patch.object(caching, "_count_terms", lambda *_: set()),
    "no texts in searches": lambda: patch.object(caching, "SEARCHED_COLUMNS", frozenset()),
    "events deleted since": lambda: patch.object(caching, "_is_gone", lambda *_: False),
    "fragments without linked records": lambda: _change_fragments(
        lambda tag: "/" not in tag or tag.startswith("event")
    ),
    "fragments without settings": lambda: _change_fragments(lambda tag: tag != caching.SITE),
}


@pytest.mark.parametrize("name", some(list(MUTANTS), 2))
def test_comparison_finds_missing_tags_and_keys(make_comparison: Callable[[int], Comparison], name: str) -> None:
    comparison = make_comparison(100)
    with MUTANTS[name]():  # type: ignore[attr-defined]
        assert comparison.find_difference(20_000) is not None

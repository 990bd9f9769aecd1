"""The measured requests and the performance limits of the project."""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlencode

from bench.calendar_pages import FEED, MONTH
from bench.seeded_sites import SeededSite

LIST = "default list"
BY_ID = "one event by ID"
NOT_MODIFIED = "default list, 304"
WRITE = "a write (PATCH of an event)"
WEEK, TAGS = "a week", "tags"
# CPU of the server and the database without a cache, relative to the bare SQL, which varies by a factor of two
# between runs. Each maximum is a third above the higher of two runs of 2026-11-18 and finds regressions; the goals
# are lower (docs/performance/cold-path.md).
MAX_RATIOS = {LIST: 6.0, BY_ID: 8.7, WEEK: 5.7, TAGS: 12.0, WRITE: 5.7}
# CPU of the server and the database without a cache, relative to a minimal server that runs the same statements.
MAX_MINIMAL_RATIOS = {LIST: 2.3, BY_ID: 2.8, TAGS: 3.0}
# CPU of a list whose records are known, relative to a server without a cache.
MAX_MISS_RATIO = 1.0
# CPU of the cached list at 64 connections, relative to an ASGI application that sends the same bytes.
MAX_ASGI_RATIO = 10.0
RARE, COMMON = "kookaburra", "the"
# Milliseconds of CPU of the server and the database.
MAX_COLD_MONTH_MS, MAX_COLD_FEED_MS = 40.0, 1300.0


@dataclass(frozen=True)
class Case:
    name: str
    path: Callable[[SeededSite], str]
    quick: bool = False  # measured in a quick run too


def _list_path(**values: object) -> str:
    return f"/events?{urlencode(values)}"


def _week_path(site: SeededSite) -> str:
    first, last = site.week
    return _list_path(start_date=first, end_date=last)


CASES = (
    Case(LIST, lambda _: "/events", quick=True),
    Case("one category", lambda site: _list_path(categories=site.category_id)),
    Case("one venue", lambda site: _list_path(venue=site.venue_id)),
    Case(WEEK, _week_path),
    Case("search, rare word", lambda _: _list_path(search=RARE)),
    Case("search, common word", lambda _: _list_path(search=COMMON)),
    Case("page 40", lambda _: _list_path(page=40)),
    Case(BY_ID, lambda site: f"/events/{site.event_id}", quick=True),
    Case("one event by slug", lambda site: site.by_slug),
    Case("venues", lambda _: "/venues"),
    Case(TAGS, lambda _: "/tags"),
    Case(NOT_MODIFIED, lambda _: "/events", quick=True),
    Case(WRITE, lambda site: f"/events/{site.event_id}"),
)


@dataclass(frozen=True)
class Page:
    """A page or feed, which is measured in milliseconds of CPU, because it has no bare SQL to compare with."""

    name: str
    path: str
    requests: int  # of one run
    max_cold: float


PAGES = (
    Page("a month with 1,000 events", MONTH, requests=20, max_cold=MAX_COLD_MONTH_MS),
    Page("a feed of 5,000 events", FEED, requests=2, max_cold=MAX_COLD_FEED_MS),
)


@dataclass(frozen=True)
class Limit:
    """The maximum or minimum of a figure. Limits are relaxed for quick runs, which run next to other tests."""

    name: str
    figure: float
    maximum: float | None = None
    minimum: float | None = None

    def is_kept(self) -> bool:
        return self.figure <= self.maximum if self.maximum is not None else self.figure >= (self.minimum or 0.0)

    def relaxed(self, factor: float) -> "Limit":
        return Limit(
            self.name,
            self.figure,
            self.maximum * factor if self.maximum is not None else None,
            self.minimum / factor if self.minimum is not None else None,
        )


@dataclass(frozen=True)
class Reference:
    """Lowest CPU milliseconds per request of the original service at 1,000 and 10,000 events."""

    name: str
    path: Callable[[SeededSite, str], str]
    at_1000: float
    at_10000: float


REFERENCES = (
    Reference("default list", lambda _, __: _list_path(per_page=12), 105, 360),
    Reference("one event", lambda site, _: f"/events/{site.event_id}", 68, 79),
    Reference("search, 2 % of events match", lambda _, word: _list_path(search=word), 181, 753),
    Reference("page 40", lambda _, __: _list_path(per_page=12, page=40), 166, 358),
    Reference("venues", lambda _, __: "/venues", 73, 81),
)

"""The measured requests, each with the growth that the project permits."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote, urlencode

from bench.measurement import RunningServer
from bench.sized_sites import LATITUDE, LONGITUDE, RARE_WORDS, SizedSite

MAX_CONSTANT_RATIO = 1.5
MAX_PAGE_NUMBER_RATIO = 5.0
DEEP_PAGE = 800  # Lists skip at most 10,000 records.
BASE = "/events"

# From very frequent to rare words of the demo descriptions.
COMMON_WORDS = ("the", "venue", "library", "accordion", "beavers", "baroque", "kookaburra")


@dataclass(frozen=True)
class Case:
    name: str
    limit: float
    paths: Callable[[SizedSite, datetime], list[str]]


def _list_path(**values: object) -> str:
    return f"{BASE}?{urlencode(values)}"


def _current_paths(_: SizedSite, now: datetime) -> list[str]:
    return [_list_path(strict_dates="true", ends_after=now.strftime("%Y-%m-%dT%H:%M:%SZ"))]


def _week_paths(_: SizedSite, now: datetime) -> list[str]:
    first = now.date() + timedelta(days=14)
    return [_list_path(start_date=first, end_date=first + timedelta(days=7))]


def _include_paths(site: SizedSite, _: datetime) -> list[str]:
    chunks = (site.event_ids[start : start + 12] for start in range(0, 600 - 12, 12))
    return [_list_path(include=",".join(map(str, chunk))) for chunk in chunks if len(chunk) == 12]


def _radius_paths(_: SizedSite, __: datetime) -> list[str]:
    return [_list_path(geoloc_lat=LATITUDE, geoloc_lng=LONGITUDE, geoloc_radius=30)]


CASES = (
    Case("the default list", MAX_CONSTANT_RATIO, lambda _, __: [BASE]),
    Case("ends_after=now", MAX_CONSTANT_RATIO, _current_paths),
    Case("a week, start_date and end_date", MAX_CONSTANT_RATIO, _week_paths),
    Case("one event by ID", MAX_CONSTANT_RATIO, lambda site, _: [f"{BASE}/{n}" for n in site.event_ids]),
    Case("one event by slug", MAX_CONSTANT_RATIO, lambda site, _: [f"{BASE}/by-slug/{quote(s)}" for s in site.slugs]),
    Case("include, 12 IDs", MAX_CONSTANT_RATIO, _include_paths),
    Case("one category", MAX_CONSTANT_RATIO, lambda site, _: [_list_path(categories=site.category_id)]),
    Case("one venue", MAX_CONSTANT_RATIO, lambda site, _: [_list_path(venue=site.venue_id)]),
    Case("a circle", MAX_CONSTANT_RATIO, _radius_paths),
    Case("two rare words", MAX_CONSTANT_RATIO, lambda _, __: [_list_path(search=" ".join(RARE_WORDS))]),
)
SERIES_CASES = (
    Case("one series", MAX_CONSTANT_RATIO, lambda site, _: [_list_path(series=n) for n in site.series_ids]),
)


def search_path(word: str) -> str:
    return _list_path(search=word)


def make_deep_page_cases(server: RunningServer) -> Iterator[tuple[Case, str]]:
    """Yield cases for page 800 (or the last one) by cursor and by number."""
    first = server.get(BASE).json()
    page = min(DEEP_PAGE, int(first["total_pages"]) - 1)  # The last page may be short.
    cursor = server.get(_list_path(page=page - 1)).json()["next_cursor"]
    yield Case(f"page {page:,} by cursor", MAX_CONSTANT_RATIO, lambda _, __: []), _list_path(cursor=cursor)
    yield Case(f"page {page:,} by number", MAX_PAGE_NUMBER_RATIO, lambda _, __: []), _list_path(page=page)

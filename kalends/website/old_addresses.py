"""The addresses of a WordPress site with The Events Calendar, and where their content is found here.

Two tables, of paths and of query parameters, translate an old address to a current one. `routes.py` redirects to it,
or responds with iCalendar if the address asks for it (`?ical=1`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final
from urllib.parse import quote, urlencode

from kalends.core.date_forms import DateTimeInput, read_datetime
from kalends.core.errors import InvalidValue
from kalends.website.handler import DAY, MONTH, SLUG
from kalends.website.models.urls import has_page

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Address:
    """A decoded path and the pairs of its query string."""

    path: str
    query: tuple[Pair, ...] = ()

    @property
    def url(self) -> str:
        return quote(self.path) + (f"?{urlencode(self.query)}" if self.query else "")


@dataclass(frozen=True, slots=True)
class OldPath:
    """A pattern of old paths, and the path and parameters of the target, which may contain groups of the pattern."""

    pattern: str
    path: str
    query: tuple[Pair, ...] = ()

    def translate(self, path: str) -> Address | None:
        match = re.fullmatch(self.pattern, path, re.ASCII)
        if match is None:
            return None
        groups = match.groupdict(default="")
        query = [(name, value) for name, text in self.query if (value := text.format(**groups))]
        return Address(self.path.format(**groups), tuple(query))


NUMBER: Final = r"(?P<page>[1-9]\d{0,5})"
LIST: Final = rf"(?=list/|page/)(?:list/)?(?:page/{NUMBER}/)?"
PAGE: Final = (("page", "{page}"),)
FEED: Final = r"feed/(?:rss2?/)?"
PARENTS: Final = r"(?:[^/]+/)*?"
# The archives of terms: the old path, the current one, and the parameter of lists.
ARCHIVES: Final = (
    (rf"/events/category/{PARENTS}{SLUG}/", "/events/category/{slug}/", "categories"),
    (rf"/events/tag/{SLUG}/", "/tag/{slug}/", "tags"),
)
OLD_PATHS: Final = (
    OldPath(rf"/events/{MONTH}/", "/events/month/{month}/"),
    OldPath(rf"/events/{DAY}/", "/events/day/{day}/"),
    OldPath(r"/events/today/", "/events/day/"),
    OldPath(rf"/events/(?:list/|month/)?page/{NUMBER}/", "/events/list/", PAGE),
    OldPath(rf"/events/(?:list/)?featured/(?:page/{NUMBER}/)?", "/events/list/", (("featured", "1"), *PAGE)),
    *[
        row
        for archive, page, name in ARCHIVES
        for row in (
            OldPath(archive + LIST, page, PAGE),
            OldPath(rf"{archive}(?:month/)?{MONTH}/", "/events/month/{month}/", ((name, "{slug}"),)),
            OldPath(rf"{archive}(?:day/)?{DAY}/", "/events/day/{day}/", ((name, "{slug}"),)),
            OldPath(rf"{archive}month/", "/events/month/", ((name, "{slug}"),)),
            OldPath(rf"{archive}(?:today|day)/", "/events/day/", ((name, "{slug}"),)),
            OldPath(archive + FEED, "/events.rss", ((name, "{slug}"),)),
            OldPath(rf"{archive}feed/atom/", "/events.atom", ((name, "{slug}"),)),
        )
    ],
    OldPath(rf"/events/tag/{SLUG}/", "/tag/{slug}/"),
    OldPath(rf"/tag/{SLUG}/{FEED}", "/events.rss", (("tags", "{slug}"),)),
    OldPath(rf"/(?P<kind>tag|venue|organizer)/{SLUG}/page/{NUMBER}/", "/{kind}/{slug}/", PAGE),
    OldPath(rf"/(?:events/)?{FEED}", "/events.rss"),
    OldPath(r"/(?:events/)?feed/atom/", "/events.atom"),
    OldPath(rf"/event/{SLUG}/embed/", "/embed/event/{slug}/"),
    OldPath(r"/wp-sitemap(?:-(?:posts|taxonomies)-[\w-]+-\d+)?\.xml/", "/sitemap.xml"),
    OldPath(r"/index\.php/", "/"),
)

HOME: Final = ("/", "/events/")
PERMANENT_ID: Final = "p"
CALENDAR_NAMES: Final = ("ical", "outlook-ical")
DISPLAY_NAMES: Final = ("eventDisplay", "tribe_event_display")
DATE_NAMES: Final = ("tribe-bar-date", "eventDate")
# The feeds that `feed` selects.
FEED_PATHS: Final = {"rss2": "/events.rss", "rss": "/events.rss", "feed": "/events.rss", "atom": "/events.atom"}
RENAMED: Final = {"tribe-bar-search": "search", "tribe_events_cat": "categories", "tribe_paged": "page"}
RECORD_PATHS: Final = {
    "tribe_events": "/event/{}/", "tribe_venue": "/venue/{}/", "tribe_organizer": "/organizer/{}/"
}  # fmt: skip
# Views that a parameter selects, and the form of a date in their paths.
VIEWS: Final = {"list": "", "month": "%Y-%m/", "week": "%Y-%m-%d/", "day": "%Y-%m-%d/"}
LIST_PATH: Final = re.compile(r"/|/(?:events|tag|venue|organizer)/.*|/events\.(?:rss|atom)", re.ASCII)
VIEW_PATH: Final = re.compile(r"/events/(?P<view>month|week|day)/(?:[\d-]+/)?", re.ASCII)
ANY_VIEW_PATH: Final = re.compile(r"/events/(?:list|month|week|day)/(?:[\d-]+/)?", re.ASCII)
TERM_PATHS: Final = tuple(
    (re.compile(pattern, re.ASCII), name)
    for pattern, name in ((ARCHIVES[0][0], "categories"), (rf"/tag/{SLUG}/", "tags"))
)
# Parameters that select a page and never belong to the current address.
OLD_NAMES: Final = frozenset(
    (*DISPLAY_NAMES, *DATE_NAMES, *RENAMED, *RECORD_PATHS, PERMANENT_ID, "feed", "post_type", "tribe_display")
)
# Parameters that the server reads from old addresses.
READ_NAMES: Final = OLD_NAMES.union(CALENDAR_NAMES) - {"post_type", "tribe_display"}


def wants_calendar(query: Sequence[Pair]) -> bool:
    """Return whether an address asks for iCalendar."""
    return any(name in CALENDAR_NAMES and value not in ("", "0") for name, value in query)


def find_permanent_id(path: str, query: Sequence[Pair]) -> int | None:
    """Return the ID in `/?p=ID`, the permanent link of a record."""
    value = dict(query).get(PERMANENT_ID, "")
    is_home = end_with_slash(path) in (*HOME, "/index.php/")
    return int(value) if is_home and value.isdecimal() and value.isascii() and len(value) < 16 else None


def keep_query(query: Sequence[Pair]) -> tuple[Pair, ...]:
    """Return the parameters that a redirect keeps."""
    return tuple(pair for pair in query if pair[0] not in OLD_NAMES)


def translate(path: str, query: Sequence[Pair]) -> Address | None:
    """Return the current address of an old one; None if neither the path nor a parameter is in the tables."""
    path = end_with_slash(path)
    moved = next((address for row in OLD_PATHS if (address := row.translate(path))), None)
    address = _translate_parameters(moved or Address(path), dict(query))
    if moved is None and address == Address(path):
        return None
    replaced = {name for name, _ in address.query}
    return Address(address.path, (*[pair for pair in keep_query(query) if pair[0] not in replaced], *address.query))


def _translate_parameters(address: Address, values: dict[str, str]) -> Address:
    values = {name: value.strip() for name, value in values.items() if name in OLD_NAMES and value.strip()}
    if not values or not LIST_PATH.fullmatch(address.path):
        return address
    path, query = address.path, [*address.query]
    if path in HOME:
        for name, template in RECORD_PATHS.items():
            if name in values:
                return Address(template.format(values[name].replace("/", "")))
    display = next((values[name] for name in DISPLAY_NAMES if name in values), "")
    day = _read_day(next((values[name] for name in DATE_NAMES if name in values), ""))
    query += [(RENAMED[name], values[name]) for name in RENAMED if name in values and _is_usable(name, values[name])]
    if (feed_path := FEED_PATHS.get(values.get("feed", ""))) and not path.startswith(("/venue/", "/organizer/")):
        return Address(feed_path, (*query, *_find_term(path)))
    has_filter = day is not None or "tribe-bar-search" in values
    path, term = _choose_view(path, display, has_filter=has_filter, has_day=day is not None)
    query += term
    view = VIEW_PATH.fullmatch(path)
    if display == "past" and view is None:
        query.append(("past", "1"))
    elif day is not None and view:
        path = f"/events/{view['view']}/{day.strftime(VIEWS[view['view']])}"
    elif day is not None:
        query.append(("start_date", day.isoformat()))
    return Address(path, tuple(query))


def _choose_view(path: str, display: str, *, has_filter: bool, has_day: bool) -> tuple[str, list[Pair]]:
    """Return the path of the view that the parameters select, and the filter that replaces the page of a term."""
    if path in HOME:
        if display in VIEWS:
            return f"/events/{display}/", []
        # The start page may be a month, which shows neither past events nor those from a date on.
        return ("/events/list/" if has_day or display == "past" else path), []
    if ANY_VIEW_PATH.fullmatch(path) and (display in VIEWS or display == "past"):
        is_shown = path.startswith(f"/events/{display}/")
        return (path if is_shown else f"/events/{display if display in VIEWS else 'list'}/"), []
    # The page of a term has no filters of its own.
    if (term := _find_term(path)) and (has_filter or VIEWS.get(display)):
        return f"/events/{display if display in VIEWS else 'list'}/", term
    return path, []


def _find_term(path: str) -> list[Pair]:
    """Return the filter that selects the events of a term's page."""
    return [(name, match["slug"]) for pattern, name in TERM_PATHS if (match := pattern.fullmatch(path))]


def _is_usable(name: str, value: str) -> bool:
    return name != "tribe_paged" or re.fullmatch(NUMBER, value, re.ASCII) is not None


def _read_day(text: str) -> date | None:
    """Return the day that a date parameter names, of a month its first; None if it has no pages."""
    try:
        value = read_datetime(text)
    except InvalidValue:
        return None
    day = value.wall.date() if isinstance(value, DateTimeInput) else None
    return day if day is not None and has_page(day) else None


def end_with_slash(path: str) -> str:
    return path if path.endswith("/") else f"{path}/"

"""Redirects from former slugs, permanent links and old addresses to the current address of a page."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final
from urllib.parse import quote, unquote, urlencode

from starlette.responses import Response

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.kinds.posts import build_file_url
from kalends.calendar.kinds.terms import CATEGORIES, TAGS
from kalends.calendar.operations import calendar_months
from kalends.calendar.storage import record_tables
from kalends.core import errors
from kalends.core.date_forms import read_datetime
from kalends.core.errors import InvalidValue
from kalends.core.params import parse_id
from kalends.core.slugs import normalize_lookup
from kalends.core.times import DateTimeInput
from kalends.rendering.page_urls import has_page
from kalends.website.context import DAY, MONTH, SLUG, PageRequest

# Addresses on a WordPress site with The Events Calendar, and the corresponding addresses in Kalends.

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Address:
    """A decoded path, and the pairs of the query string."""

    path: str
    query: tuple[Pair, ...] = ()

    @property
    def url(self) -> str:
        return quote(self.path) + (f"?{urlencode(self.query)}" if self.query else "")


@dataclass(frozen=True, slots=True)
class OldPath:
    """A pattern for old paths. The target path and the parameters can use the pattern's groups."""

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
# Term archives: old path, current path, and list parameter.
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
# Paths of feeds by the value of the `feed` parameter.
FEED_PATHS: Final = {"rss2": "/events.rss", "rss": "/events.rss", "feed": "/events.rss", "atom": "/events.atom"}
RENAMED: Final = {"tribe-bar-search": "search", "tribe_events_cat": "categories", "tribe_paged": "page"}
RECORD_PATHS: Final = {
    "tribe_events": "/event/{}/", "tribe_venue": "/venue/{}/", "tribe_organizer": "/organizer/{}/"
}  # fmt: skip
# Views that a parameter selects, and the format of the date in their paths.
VIEWS: Final = {"list": "", "month": "%Y-%m/", "week": "%Y-%m-%d/", "day": "%Y-%m-%d/"}
LIST_PATH: Final = re.compile(r"/|/(?:events|tag|venue|organizer)/.*|/events\.(?:rss|atom)", re.ASCII)
VIEW_PATH: Final = re.compile(r"/events/(?P<view>month|week|day)/(?:[\d-]+/)?", re.ASCII)
ANY_VIEW_PATH: Final = re.compile(r"/events/(?:list|month|week|day)/(?:[\d-]+/)?", re.ASCII)
TERM_PATHS: Final = tuple(
    (re.compile(pattern, re.ASCII), name)
    for pattern, name in ((ARCHIVES[0][0], "categories"), (rf"/tag/{SLUG}/", "tags"))
)
# Parameters that select a page. They are never part of a current address.
OLD_NAMES: Final = frozenset(
    (*DISPLAY_NAMES, *DATE_NAMES, *RENAMED, *RECORD_PATHS, PERMANENT_ID, "feed", "post_type", "tribe_display")
)
# Parameters that the server reads from old addresses.
READ_NAMES: Final = OLD_NAMES.union(CALENDAR_NAMES) - {"post_type", "tribe_display"}


def wants_calendar(query: Sequence[Pair]) -> bool:
    return any(name in CALENDAR_NAMES and value not in ("", "0") for name, value in query)


def find_permanent_id(path: str, query: Sequence[Pair]) -> int | None:
    """Return the ID in `/?p=ID`, a record's permanent link."""
    value = dict(query).get(PERMANENT_ID, "")
    is_home = end_with_slash(path) in (*HOME, "/index.php/")
    return parse_id(value) if is_home else None


def keep_query(query: Sequence[Pair]) -> tuple[Pair, ...]:
    return tuple(pair for pair in query if pair[0] not in OLD_NAMES)


def translate(path: str, query: Sequence[Pair]) -> Address | None:
    """Return the current address for an old one.

    Return None if the tables contain neither the path nor the parameters.
    """
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
    """Return the path of the selected view, and the filter that replaces a term page."""
    if path in HOME:
        if display in VIEWS:
            return f"/events/{display}/", []
        # The home page may be a month view. A month view can neither show past events nor start at a given date.
        return ("/events/list/" if has_day or display == "past" else path), []
    if ANY_VIEW_PATH.fullmatch(path) and (display in VIEWS or display == "past"):
        is_shown = path.startswith(f"/events/{display}/")
        return (path if is_shown else f"/events/{display if display in VIEWS else 'list'}/"), []
    # Term pages have no filters.
    if (term := _find_term(path)) and (has_filter or VIEWS.get(display)):
        return f"/events/{display if display in VIEWS else 'list'}/", term
    return path, []


def _find_term(path: str) -> list[Pair]:
    return [(name, match["slug"]) for pattern, name in TERM_PATHS if (match := pattern.fullmatch(path))]


def _is_usable(name: str, value: str) -> bool:
    return name != "tribe_paged" or re.fullmatch(NUMBER, value, re.ASCII) is not None


def _read_day(text: str) -> date | None:
    """Parse a day, or a month as its first day. Return None if the day has no page."""
    try:
        value = read_datetime(text)
    except InvalidValue:
        return None
    day = value.wall.date() if isinstance(value, DateTimeInput) else None
    return day if day is not None and has_page(day) else None


def end_with_slash(path: str) -> str:
    return path if path.endswith("/") else f"{path}/"


HOUR_HEADERS: Final = {"Cache-Control": "public, max-age=3600"}
TERM_KINDS: Final = {"categories": CATEGORIES, "tags": TAGS}


def redirect(url: str) -> Response:
    return Response(status_code=301, headers={"Location": url, **HOUR_HEADERS})


async def redirect_former_slug(page_request: PageRequest) -> Response | None:
    route, path = page_request.route, page_request.request.scope["path"]
    match = re.search(route.pattern + "$", path, re.ASCII) if route else None
    if match is None or route is None or route.kind is None:
        return None
    start, end = match.span("path" if "path" in match.groupdict() else "slug")
    slug = normalize_lookup(path[start:end].rpartition("/")[2])
    async with page_request.transaction() as tx:
        new_slug = await record_tables.current_slug(tx, route.kind.name, slug, is_post=route.kind.is_post)
    return redirect(page_request.with_query(path[:start] + new_slug + path[end:])) if new_slug else None


async def redirect_permanent_link(page_request: PageRequest, post_id: int) -> Response:
    """Redirect `/?p=ID` to the published event, venue or organizer with this ID."""
    async with page_request.transaction() as tx:
        found = await calendar_months.find_record_url(page_request.operation_context(tx), post_id)
    if found is None:
        raise errors.no_route()
    path = unquote(f"/{found[0]}/{found[1]}/")
    return redirect(Address(path, keep_query(page_request.sent_query)).url)


async def redirect_former_address(page_request: PageRequest) -> Response | None:
    """Redirect an image path from the former site, or a path with a former prefix."""
    path = page_request.path
    if "\0" in path:  # PostgreSQL text cannot contain NUL.
        return None
    async with page_request.transaction() as tx:
        context = page_request.operation_context(tx)
        name = await record_tables.find_file(tx, path)
        if name is not None:
            return redirect(build_file_url(name, context.render_context))
        new_path = await record_tables.find_prefix(tx, path)
    # A path with two leading slashes would redirect to another host.
    if new_path is None or new_path.startswith("//"):
        return None
    return redirect(Address(new_path, tuple(page_request.sent_query)).url)


async def find_target(page_request: PageRequest, address: Address, kind: Kind | None) -> Address:
    """Return the final target of an old address, to save a second redirect.

    `kind` is the kind of the record in the path.
    """
    async with page_request.transaction() as tx:
        context = page_request.operation_context(tx)
        path = await _find_current_path(context, address.path, kind) if kind else address.path
        query = address.query
        if path.startswith("/events."):
            query = tuple([(name, await _find_term_id(context, name, value)) for name, value in query])
    return Address(path, query)


async def _find_current_path(context: OperationContext, path: str, kind: Kind) -> str:
    start, _, slug = path.removesuffix("/").rpartition("/")
    row = await calendar_months.find_by_slug(context, kind, slug)
    if row is None:
        return path
    return unquote(f"{start}/{row['slug']}/" if kind is not CATEGORIES else f"/events/category/{row['path']}/")


async def _find_term_id(context: OperationContext, name: str, value: str) -> str:
    """Replace a term's slug with its ID, to keep feed subscriptions valid if the slug changes."""
    row = await calendar_months.find_by_slug(context, TERM_KINDS[name], value) if name in TERM_KINDS else None
    return str(row["id"]) if row else value

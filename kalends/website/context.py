"""The request for a public page or feed, its route, and the context that its views share.

Templates escape all values that are not `Markup`. Records are never used as templates.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from markupsafe import Markup
from starlette.responses import Response

from kalends.calendar.access import caching
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.event_list import find_relative_expiry
from kalends.calendar.kinds.event_shortcuts import HIDE_SUBSEQUENT
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.operations import calendar_months
from kalends.calendar.operations.page_filters import ResolvedFilters
from kalends.calendar.operations.site_feeds import FEED_PARAMS
from kalends.calendar.rules.record_types import Event
from kalends.core import date_forms, messages, params, times
from kalends.core.date_forms import DateInput
from kalends.core.errors import InvalidValue
from kalends.core.html_text import to_plain_text
from kalends.core.messages import DEFAULT, LANGUAGES, find_language, gettext_noop as N_, translator
from kalends.core.params import BOOLEAN, Param, parse_id
from kalends.http import bodies
from kalends.http.bodies import NO_CORRECTIONS, Corrections, base_name
from kalends.http.request import RequestContext
from kalends.http.router import Router
from kalends.rendering.cards import Card, find_origin, make_card, shorten
from kalends.rendering.page_locale import PageLocale, make_page_locale
from kalends.rendering.page_urls import THEMES, VIEWS, Frame, UrlBuilder, readable_slug
from kalends.rendering.templates import make_environment
from kalends.store import Row
from kalends.store.sites import Site
from kalends.website import assets
from kalends.website.models.page_parts import WHOLE_API, ApiAddress, Highlights, make_discovery, take_fitting
from kalends.website.pages import CategoryLink, CategoryNav, LanguageLink, Layout, Page

# Parts of paths, for route patterns.
SLUG: Final = r"(?P<slug>[^/]+)"
PATH: Final = r"(?P<path>[^/]+(?:/[^/]+)*)"
MONTH: Final = r"(?P<month>\d{4}-\d\d)"
DAY: Final = r"(?P<day>\d{4}-\d\d-\d\d)"


MAX_FRAME_EVENTS: Final = 24
FRAME_PARAMS: Final = (
    Param("limit", params.integer(minimum=1, maximum=MAX_FRAME_EVENTS), ""),
    Param("tabs", BOOLEAN, ""),
    Param("theme", params.one_of(*THEMES), ""),
)


@dataclass(frozen=True, slots=True)
class MapSettings:
    tiles_url: str
    tiles_attribution: str


@dataclass(slots=True, kw_only=True)
class PageRequest(RequestContext["PageRoute"]):
    """A request for a public page or feed. The actor is anonymous, except in the console's event preview."""

    map_settings: MapSettings
    routes: "PageRoutes" = field(default_factory=lambda: PageRoutes((), ()))
    legacy_prefix: str = ""  # API path prefix for existing clients; empty if there is no alias
    frame: Frame | None = None  # set below /embed
    query: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    sent_query: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])  # including unknown parameters
    is_moved: bool = False  # whether a parameter of an old address leads to a redirect
    filters: ResolvedFilters = field(default_factory=ResolvedFilters)
    highlights: Highlights = field(default_factory=Highlights)  # for the home page only

    @property
    def accept_language(self) -> str:
        """Return no preference: pages use the language of the site and its records, unless `?lang=` overrides it."""
        return ""

    @property
    def error_language(self) -> str:
        """Return the client's preferred language, for errors that are not shown as pages, such as errors in feeds."""
        headers = self.request.headers
        return messages.choose_language(self.request.scope["query_string"], headers.get("accept-language", ""))

    @property
    def requested_language(self) -> str:
        return bodies.query_value(self.request, "lang") or ""

    def with_query(self, url: str) -> str:
        """Append this request's query string to a URL."""
        query = self.request.scope["query_string"].decode("latin-1")
        return url + (f"?{query}" if query else "")


@dataclass(frozen=True, slots=True)
class PageResponse:
    """The body of a view's response, with the response's expiry and cache tags."""

    body: str | bytes
    media_type: str
    expires_at: datetime | None = None
    cache_tags: tuple[str, ...] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    is_cacheable: bool = True


PageView = Callable[[PageRequest, OperationContext, dict[str, str]], Awaitable[PageResponse]]
FormView = Callable[[PageRequest], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class PageRoute:
    """A path pattern and its view.

    If `is_page`, errors are shown as HTML pages. If `kind` is set, the path contains the slug of a record of this
    kind.
    """

    pattern: str
    show: PageView | None  # None if there is only a `handle`
    params: tuple[Param, ...] = ()
    is_page: bool = True
    accepts_post: bool = False
    # Reads the body and opens transactions itself. Its responses are never stored. Beside `show`, it gets forms only.
    handle: FormView | None = None
    kind: Kind | None = None
    is_feed: bool = False  # rendering takes seconds, so only a few may run at the same time
    embeds: bool = False  # whether it is available below /embed too, where other sites may frame it
    extra_names: tuple[str, ...] = ()  # query parameters that the view reads from the request
    known_names: frozenset[str] = field(init=False)
    corrections: Corrections = NO_CORRECTIONS

    def __post_init__(self) -> None:
        params = (*self.params, *FRAME_PARAMS) if self.embeds else self.params
        names = [*[param.name for param in params], *self.extra_names]
        object.__setattr__(self, "known_names", frozenset(names))


@dataclass(frozen=True, slots=True)
class PageRoutes:
    """All pages and feeds, and the calendars at page addresses with `?ical=1`."""

    pages: tuple[PageRoute, ...]
    calendars: tuple[PageRoute, ...]
    router: Router[PageRoute] = field(init=False)
    calendar_router: Router[PageRoute] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "router", Router(self.pages))
        object.__setattr__(self, "calendar_router", Router(self.calendars))


# Page contexts and rendering.

PAGE_TYPE: Final = "text/html; charset=utf-8"
# Whether search and record pages list all dates of each series ("all") or only the first.
REPEATS: Final = "repeats"
FILTERS: Final = frozenset(row.name for row in FEED_PARAMS) | {"near", REPEATS}
COORDINATES: Final = ("geoloc_lat", "geoloc_lng")
RADIUS_PARAMS: Final = ("near", *COORDINATES, "geoloc_radius")
KEPT_PARAMS: Final = FILTERS | {"page", "per_page", "past", "after"}
# Each translation of this sentence contains the name of the translation's language.
LANGUAGE_OFFER: Final = N_("This page in English")
# Filters that do not affect month, week and day views.
LIST_FILTERS: Final = calendar_months.DATE_PARAMS | {HIDE_SUBSEQUENT}
HOME_PATHS: Final = ("/", "/events/")
TEMPLATES: Final = Path(__file__).resolve().parent / "templates"
VIEW_NAMES: Final = {"month": N_("Month"), "week": N_("Week"), "day": N_("Day"), "list": N_("List"), "map": N_("Map")}
MAX_CATEGORIES: Final = 8  # in the bar; the others are under "More"
MAX_CATEGORY_NAME: Final = 20
MAX_NAVIGATION: Final = 40
MAX_NAVIGATION_BYTES: Final = 800  # for the links under "More"
LINK_BYTES: Final = 30
_SELF_TARGET: Final = Markup(' target="_self"')
_ENVIRONMENT: Final = make_environment(TEMPLATES)


def take_frame(values: dict[str, Any]) -> Frame:
    """Take the parameters of a frame out of the parameters of the page in it."""
    return Frame(**{param.name: values.pop(param.name) for param in FRAME_PARAMS if param.name in values})


@dataclass(frozen=True, slots=True)
class PageContext:
    request: PageRequest
    context: OperationContext
    locale: PageLocale
    links: UrlBuilder

    @property
    def site(self) -> Site:
        return self.context.transaction.site

    @property
    def filters(self) -> ResolvedFilters:
        return self.request.filters

    @property
    def today(self) -> date:
        return times.local_of(self.context.transaction.now, self.site.timezone).date()

    @property
    def day_start(self) -> datetime:
        return times.day_begins(calendar_months.make_date_filter(self.today), self.site.timezone)

    @property
    def midnight(self) -> datetime:
        """Return the end of the site's current day. Pages expire then, even if nothing was written."""
        return times.next_midnight(self.context.transaction.now, self.site.timezone)

    def find_day(self, name: str) -> date | None:
        """Return the day of a date parameter in the site's time zone, or None if it is absent or out of range."""
        value: DateInput | None = self.context.values.get(name)
        if value is None:
            return None
        zone = self.site.timezone
        try:
            moment = date_forms.make_absolute(value, self.context.transaction.now, zone)
            return times.local_of(times.to_utc(moment, zone), zone).date()
        except (InvalidValue, OverflowError):
            return None

    def make_card(self, event: Event) -> Card:
        return make_card(event, self.locale, self.links, self.site.timezone)


def make_page_context(
    page_request: PageRequest, context: OperationContext, *, keep_dates: bool = True
) -> PageContext:
    """Build the context of a page.

    Without `keep_dates`, the path determines the period, and date filters are dropped.
    """
    site = context.transaction.site
    locale = make_page_locale(page_request.language, site.language, translator(page_request.language))
    filters = [
        (name, value)
        for name, value in page_request.query
        if value and base_name(name) in FILTERS and (keep_dates or base_name(name) not in LIST_FILTERS)
    ]
    if "near" in dict(filters):
        filters = [pair for pair in filters if pair[0] not in COORDINATES]
    links = UrlBuilder(
        context.base_url,
        tuple(filters),
        tuple(_stable_filters(page_request.filters, filters)),
        language=page_request.language if page_request.requested_language else "",
        frame=page_request.frame,
    )
    return PageContext(page_request, context, locale, links)


def _stable_filters(resolved: ResolvedFilters, filters: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Replace slugs with IDs, and places with coordinates, for links that must survive renames (feeds, embeds)."""
    for name, value in filters:
        if name == REPEATS:
            continue
        if name == "near":
            if resolved.place:
                yield from zip(COORDINATES, (f"{degrees:.5f}" for degrees in resolved.place), strict=True)
            continue
        named = resolved.named.get(base_name(name), {})
        entries = [entry.strip() for entry in value.split(",")] if named else []
        ids = [named[key].id for entry in entries for key in (entry, parse_id(entry) or 0) if key in named]
        # Keep unknown values, because the record may be restored.
        yield name, ",".join(map(str, ids)) if ids and len(ids) == len(entries) else value


async def show_page(
    page: PageContext,
    model: Page,
    *,
    cache_tags: tuple[str, ...] = (),
    expires_at: datetime | None = None,
    status: int = 200,
    is_cacheable: bool = True,
    image_urls: tuple[str, ...] = (),
    api_address: ApiAddress = WHOLE_API,
    categories: Sequence[Row] | None = None,
) -> PageResponse:
    """Render a page with the category navigation. Its Content-Security-Policy allows the images in `image_urls`.

    `categories` are the rows of the navigation if the page has already loaded them.
    """
    page_request, site = page.request, page.site
    if site.follow_by_email and not page_request.state.can_send_links(site):
        site = replace(site, follow_by_email=False)
    if site.logo_url.startswith("/"):
        site = replace(site, logo_url=page.context.base_url + site.logo_url)
    if page_request.path in HOME_PATHS and model.view:
        # The default view has a permanent canonical URL, because the view and its period change over time.
        model = replace(model, canonical=page.context.base_url + HOME_PATHS[-1], robots="")
    if page.links.filters and not model.robots:
        model = replace(model, robots="noindex")
    cache_tags = (*cache_tags, *page_request.highlights.cache_tags)
    category_nav = CategoryNav()
    if not page_request.frame:
        category_nav = _make_category_nav(page, await list_categories(page) if categories is None else categories)
        cache_tags = (*cache_tags, "categories", caching.EVENT_SET)
    discovery = make_discovery(page.context.base_url, page_request.legacy_prefix, api_address)
    body = render(model, replace(_make_layout(page, site), category_nav=category_nav, discovery=discovery))
    headers = {
        **(discovery.headers if discovery else {}),
        "Content-Security-Policy": _content_security_policy(
            page_request,
            (site.logo_url, *page_request.highlights.image_urls, *image_urls),
            has_custom_css=bool(site.custom_css_hash),
        ),
        "Referrer-Policy": "strict-origin-when-cross-origin",
    }
    relative_expiry = find_relative_expiry(page.context.values, page.context.transaction.now, page.site.timezone)
    expires_at = min(filter(None, (expires_at, relative_expiry, page.midnight)))
    return PageResponse(body, PAGE_TYPE, expires_at, cache_tags, status, headers, is_cacheable)


async def list_categories(page: PageContext) -> Sequence[Row]:
    """Return the main categories, ordered by number of upcoming events."""
    return await calendar_months.list_main_categories(page.context, page.day_start, MAX_NAVIGATION)


def _make_category_nav(page: PageContext, rows: Sequence[Row]) -> CategoryNav:
    links = [make_category_link(page, row) for row in rows]
    others = links[MAX_CATEGORIES:]
    more = take_fitting(
        others, MAX_NAVIGATION_BYTES, lambda link: LINK_BYTES + len(f"{link.name}{link.url}".encode())
    )
    if len(more) < len(others) or len(rows) == MAX_NAVIGATION:
        search_url = page.links.top_level("/events/search/") + "#categories"
        more.append(CategoryLink(page.locale.text(N_("All categories")), search_url))
    return CategoryNav(links[:MAX_CATEGORIES], more)


def make_category_link(page: PageContext, row: Row) -> CategoryLink:
    """Link to a category. It is current on the category's and its subcategories' pages, and if it is a filter."""
    slug = readable_slug(row["slug"])
    path = f"/events/category/{slug}/"
    is_filter = any(entry.id == row["id"] for entry in page.filters.list_named("categories"))
    is_within = page.request.path.startswith(path)
    current = "page" if page.request.path == path else "true" if is_within or is_filter else ""
    return CategoryLink(shorten(to_plain_text(row["name"]), MAX_CATEGORY_NAME), page.links.top_level(path), current)


def _make_layout(page: PageContext, site: Site) -> Layout:
    map_settings = page.request.map_settings
    return Layout(
        locale=page.locale,
        links=page.links,
        site=site,
        frame=page.request.frame,
        search_text=dict(page.links.filters).get("search", ""),
        unknown_names=page.filters.unknown,
        unknown_place=page.filters.unknown_place,
        tiles_url=map_settings.tiles_url,
        tiles_host=urlsplit(map_settings.tiles_url).netloc.removeprefix("{s}."),
        tiles_attribution=map_settings.tiles_attribution,
        has_map=bool(map_settings.tiles_url),
        highlights=page.request.highlights,
        parent_name=urlsplit(page.site.parent_url).netloc.removeprefix("www."),
        languages=_make_language_links(page.request, page.site.language),
        takes_events=site.submissions and page.request.state.can_send_links(site),
    )


def _make_language_links(page_request: PageRequest, site_language: str) -> list[LanguageLink]:
    """Return links to this page in all languages. For the site's language, no parameter is needed."""
    pairs = [(name, value) for name, value in page_request.query if value and base_name(name) in KEPT_PARAMS]
    own = find_language(site_language) or DEFAULT
    return [
        LanguageLink(
            tag,
            name,
            "?" + urlencode(pairs if tag == own else [*pairs, ("lang", tag)]),
            translator(tag)(LANGUAGE_OFFER),
        )
        for tag, name in LANGUAGES.items()
    ]


def _content_security_policy(page_request: PageRequest, image_urls: tuple[str, ...], *, has_custom_css: bool) -> str:
    """Forbid inline code. From other hosts, allow only images (media library and map tiles).

    Custom CSS can embed images (`core/sanitize.py`).
    """
    # A tile URL can contain {s}, a placeholder for one of several subdomains.
    origins = {
        find_origin(url) for url in (*image_urls, page_request.map_settings.tiles_url.replace("{s}.", "*."))
    } - {""}
    sources = ["'self'", *(["data:"] if has_custom_css else []), *sorted(origins)]
    ancestors = "*" if page_request.frame else "'self'"
    return (
        "default-src 'none'; style-src 'self'; font-src 'self'; script-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; "
        f"img-src {' '.join(sources)}; "
        f"frame-ancestors {ancestors}"
    )


def load_templates() -> None:
    """Compile all templates now, not on first use."""
    for name in _ENVIRONMENT.list_templates():
        _ENVIRONMENT.get_template(name)


def render(page: Page, layout: Layout) -> str:
    return _ENVIRONMENT.get_template(page.template).render(
        _=layout.locale.gettext,
        # By default, links on an embedded page open outside the frame. This attribute keeps them inside.
        self_target=_SELF_TARGET if layout.frame else "",
        styles=page.styles,
        scripts=page.scripts,
        **_read_fields(layout),
        **_read_fields(page),
    )


def _read_fields(model: Page | Layout) -> dict[str, Any]:
    return {field.name: getattr(model, field.name) for field in fields(model)}


def with_values(context: OperationContext, **more: Any) -> OperationContext:
    return replace(context, values={**context.values, **more})


def _escape_json(value: str) -> Markup:
    """Escape JSON for a script element, to prevent it from closing the element."""
    safe = value.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(safe)  # noqa: S704


_ENVIRONMENT.filters["data_block"] = _escape_json
_ENVIRONMENT.globals.update(
    asset=assets.asset_name,
    style=assets.style_name,
    list_preloads=assets.list_preloads,
    VIEWS=VIEWS,
    VIEW_NAMES=VIEW_NAMES,
    LANGUAGES=LANGUAGES,
)

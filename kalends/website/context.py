"""The context that the views of one page request share, and the response that they return."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from kalends.core import times
from kalends.core.errors import InvalidValue
from kalends.core.messages import gettext_noop as N_
from kalends.core.record_types import Event
from kalends.core.times import DateInput, DateTimeInput
from kalends.http.language import DEFAULT, LANGUAGES, find_language, translator
from kalends.http.requests import base_name
from kalends.kinds.event_list.dates import find_relative_expiry
from kalends.kinds.event_list.first_dates import HIDE_SUBSEQUENT
from kalends.operations import calendar
from kalends.operations.context import OperationContext
from kalends.operations.page_filters import ResolvedFilters
from kalends.store.sites import Site
from kalends.website.feed_views import FEED_PARAMS
from kalends.website.handler import PageRequest, PageResponse
from kalends.website.models.cards import Card, find_origin, make_card
from kalends.website.models.discovery import WHOLE_API, ApiAddress, make_discovery
from kalends.website.models.page_locale import PageLocale, make_page_locale
from kalends.website.models.urls import UrlBuilder
from kalends.website.pages import LanguageLink, Layout, Page
from kalends.website.rendering import render

PAGE_TYPE: Final = "text/html; charset=utf-8"
FILTERS: Final = frozenset(row.name for row in FEED_PARAMS) | {"near"}
COORDINATES: Final = ("geoloc_lat", "geoloc_lng")
RADIUS_PARAMS: Final = ("near", *COORDINATES, "geoloc_radius")
KEPT_PARAMS: Final = FILTERS | {"page", "per_page", "past", "after"}
# Each catalogue names its own language in this sentence.
LANGUAGE_OFFER: Final = N_("This page in English")
# Filters without effect on the views of a period.
LIST_FILTERS: Final = calendar.DATE_PARAMS | {HIDE_SUBSEQUENT}
HOME_PATHS: Final = ("/", "/events/")


@dataclass(frozen=True, slots=True)
class PageContext:
    """The request, the operation context, the locale and the links of one page."""

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
        return times.day_begins(make_date_filter(self.today), self.site.timezone)

    @property
    def midnight(self) -> datetime:
        """Return the end of the current day of the site, when a page expires even without a write."""
        return times.next_midnight(self.context.transaction.now, self.site.timezone)

    def find_day(self, name: str) -> date | None:
        """Return the day of a date parameter in the zone of the site; None if it is absent or out of range."""
        value: DateInput | None = self.context.values.get(name)
        if value is None:
            return None
        zone = self.site.timezone
        try:
            moment = times.make_absolute(value, self.context.transaction.now, zone)
            return times.local_of(times.to_utc(moment, zone), zone).date()
        except (InvalidValue, OverflowError):
            return None

    def make_card(self, event: Event) -> Card:
        return make_card(event, self.locale, self.links, self.site.timezone)


def make_page_context(
    page_request: PageRequest, context: OperationContext, *, keep_dates: bool = True
) -> PageContext:
    """Build the context of a page.

    Month, week and day views show the period in their path, so they drop date filters (`keep_dates=False`).
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
        embedded=page_request.embedded,
    )
    return PageContext(page_request, context, locale, links)


def _stable_filters(resolved: ResolvedFilters, filters: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Replace slugs by IDs and places by coordinates, for links that must survive renames (feeds, embeds)."""
    for name, value in filters:
        if name == "near":
            if resolved.place:
                yield from zip(COORDINATES, (f"{degrees:.5f}" for degrees in resolved.place), strict=True)
            continue
        named = resolved.named.get(base_name(name), {})
        entries = [entry.strip() for entry in value.split(",")] if named else []
        ids = [named[key].id for entry in entries for key in (entry, parse_id(entry)) if key in named]
        # Keep unknown values: the record may be restored.
        yield name, ",".join(map(str, ids)) if ids and len(ids) == len(entries) else value


def parse_id(entry: str) -> int:
    """Return the ID that a filter value contains, or 0 if it is not a number."""
    return int(entry) if entry.isdecimal() and len(entry) < 20 else 0


def show_page(
    page: PageContext,
    model: Page,
    *,
    cache_tags: tuple[str, ...] = (),
    expires_at: datetime | None = None,
    status: int = 200,
    is_cacheable: bool = True,
    image_urls: tuple[str, ...] = (),
    api_address: ApiAddress = WHOLE_API,
) -> PageResponse:
    """Render a page and return it with its headers, cache tags and expiry.

    `image_urls` are the images on the page, which the Content-Security-Policy has to allow.
    """
    page_request, site = page.request, _with_absolute_logo(page)
    if page_request.path in HOME_PATHS:
        # The default view and its period change over time, so search engines index it under a permanent URL.
        model = replace(model, canonical=page.context.base_url + HOME_PATHS[-1], robots="")
    if page.links.filters and not model.robots:
        model = replace(model, robots="noindex")
    cache_tags = (*cache_tags, *page_request.highlights.cache_tags)
    if model.category_nav.shown:
        cache_tags = (*cache_tags, "categories")
    discovery = make_discovery(page.context.base_url, page_request.legacy_prefix, api_address)
    body = render(model, replace(_make_layout(page, site), discovery=discovery))
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


def _with_absolute_logo(page: PageContext) -> Site:
    """Return the site with the URL of its logo, whose setting may be a path."""
    site = page.site
    return replace(site, logo_url=page.context.base_url + site.logo_url) if site.logo_url[:1] == "/" else site


def _make_layout(page: PageContext, site: Site) -> Layout:
    map_settings = page.request.map_settings
    return Layout(
        locale=page.locale,
        links=page.links,
        site=site,
        embedded=page.request.embedded,
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
    )


def _make_language_links(page_request: PageRequest, site_language: str) -> list[LanguageLink]:
    """Return links to this page in all languages; that of the site needs no parameter."""
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
    """Allow nothing inline, and from other hosts only images: those of the media library and map tiles.

    Custom CSS may have embedded images (`core/custom_css.py`).
    """
    # A tile URL may contain {s}, the placeholder for one of several subdomains.
    origins = {
        find_origin(url) for url in (*image_urls, page_request.map_settings.tiles_url.replace("{s}.", "*."))
    } - {""}
    sources = ["'self'", *(["data:"] if has_custom_css else []), *sorted(origins)]
    ancestors = "*" if page_request.embedded else "'self'"
    return (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; "
        f"img-src {' '.join(sources)}; "
        f"frame-ancestors {ancestors}"
    )


def with_values(context: OperationContext, **more: Any) -> OperationContext:
    """Return the context with additional parameter values."""
    return replace(context, values={**context.values, **more})


def make_date_filter(day: date) -> DateTimeInput:
    """Return a day in the form in which date parameters are parsed."""
    return DateTimeInput(datetime.combine(day, datetime.min.time()), None, True)

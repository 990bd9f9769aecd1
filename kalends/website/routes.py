"""Routes of the public pages and feeds, and the assets that pages need."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.messages import gettext_noop as N_
from kalends.http.requests import read_pairs
from kalends.kinds.categories import CATEGORIES
from kalends.kinds.event_passwords import PASSWORD
from kalends.kinds.events import EVENTS
from kalends.kinds.organizers import ORGANIZERS
from kalends.kinds.series import SERIES
from kalends.kinds.tags import TAGS
from kalends.kinds.venues import VENUES
from kalends.operations.cache_tags import SITE
from kalends.operations.context import OperationContext
from kalends.operations.sites import read_css
from kalends.website import calendar_views, detail_views, list_views, old_addresses
from kalends.website.assets import STATIC, find_asset
from kalends.website.context import make_page_context, show_page
from kalends.website.feed_views import FEEDS
from kalends.website.handler import (
    DAY,
    MONTH,
    PATH,
    SLUG,
    PageRequest,
    PageResponse,
    PageRoute,
    handle_page_request,
    make_context,
    respond,
)
from kalends.website.home import load_highlights
from kalends.website.ical_views import CALENDARS, ICAL
from kalends.website.old_addresses import Address
from kalends.website.pages import MessagePage
from kalends.website.redirects import (
    HOUR_HEADERS,
    find_target,
    redirect,
    redirect_former_address,
    redirect_former_slug,
    redirect_permanent_link,
)
from kalends.website.series_views import SERIES_PARAMS, show_series, show_series_calendar

ASSETS: Final = "/assets/"
EMBED: Final = "/embed"
IMMUTABLE_HEADERS: Final = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "Content-Security-Policy": "default-src 'none'",
}
VIEWS: Final = {
    "month": calendar_views.show_month,
    "week": calendar_views.show_week,
    "day": calendar_views.show_day,
    "list": list_views.show_list,
    "map": list_views.show_map,
}
MISSING: Final = N_("There is no page at this address. It may have moved, or the event is no longer public.")


async def show_default_view(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    """Show the default view of the site, below its highlights."""
    page_request.highlights = await load_highlights(page_request, context)
    return await VIEWS[_find_default_view(page_request, context)](page_request, context, {})


def _find_default_view(page_request: PageRequest, context: OperationContext) -> str:
    view: str = context.transaction.site.default_view
    return "list" if view == "map" and not page_request.map_settings.tiles_url else view


async def show_custom_style(_: PageRequest, context: OperationContext, __: dict[str, str]) -> PageResponse:
    """Return the custom CSS of the site. The hash in the path only makes clients ask for a new version."""
    css = await read_css(context.transaction)
    if not css:
        raise errors.no_route()
    headers = {"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff"}
    return PageResponse(css, "text/css; charset=utf-8", cache_tags=(SITE,), headers=headers)


async def show_favicon(_: PageRequest, context: OperationContext, __: dict[str, str]) -> PageResponse:
    """Return the icon for clients that ask for this name only: the logo of the site, else the built-in icon."""
    if logo_url := context.transaction.site.logo_url:
        return PageResponse(b"", "text/plain", status=302, headers={"Location": logo_url}, is_cacheable=False)
    return PageResponse((STATIC / "favicon.ico").read_bytes(), "image/x-icon")


ROUTES: Final[tuple[PageRoute, ...]] = (
    PageRoute(r"/(?:events/)?", show_default_view, list_views.LIST_PARAMS),
    PageRoute(rf"/events/month/(?:{MONTH}/)?", calendar_views.show_month, list_views.LIST_PARAMS),
    PageRoute(rf"/events/week/(?:{DAY}/)?", calendar_views.show_week, list_views.LIST_PARAMS),
    PageRoute(rf"/events/day/(?:{DAY}/)?", calendar_views.show_day, list_views.LIST_PARAMS),
    PageRoute(r"/events/list/", list_views.show_list, list_views.LIST_PARAMS),
    PageRoute(r"/events/map/", list_views.show_map, list_views.LIST_PARAMS),
    PageRoute(r"/events/search/", list_views.show_search, list_views.LIST_PARAMS, extra_names=list_views.FIND_PARAMS),
    PageRoute(rf"/event/{SLUG}/", detail_views.show_event, (PASSWORD,), accepts_post=True, kind=EVENTS),
    PageRoute(rf"/series/{SLUG}/", show_series, SERIES_PARAMS, accepts_post=True, kind=SERIES),
    PageRoute(r"/series/(?P<slug>[^/]+)\.ics", show_series_calendar, is_page=False, kind=SERIES, is_feed=True),
    PageRoute(rf"/venue/{SLUG}/", detail_views.show_venue, list_views.LIST_PARAMS, kind=VENUES),
    PageRoute(rf"/organizer/{SLUG}/", detail_views.show_organizer, list_views.LIST_PARAMS, kind=ORGANIZERS),
    PageRoute(rf"/events/category/{PATH}/", detail_views.show_category, list_views.LIST_PARAMS, kind=CATEGORIES),
    PageRoute(rf"/tag/{SLUG}/", detail_views.show_tag, list_views.LIST_PARAMS, kind=TAGS),
    PageRoute(r"/custom\.[0-9a-f]{12}\.css", show_custom_style, is_page=False),
    PageRoute(r"/favicon\.ico", show_favicon, is_page=False),
    *FEEDS,
)


def find_route(path: str, routes: Iterable[PageRoute] = ROUTES) -> tuple[PageRoute, dict[str, str]] | None:
    """Return the route that matches a path, and its path parameters."""
    for route in routes:
        match = re.fullmatch(route.pattern, path, re.ASCII)
        if match:
            return route, {name: value for name, value in match.groupdict().items() if value is not None}
    return None


async def serve_page(page_request: PageRequest) -> Response:
    """Respond to a page request. Client errors of pages become HTML error pages."""
    if _is_asset(page_request.path):
        return _serve_asset(page_request)
    try:
        return await _serve_route(page_request)
    except ApiError as error:
        if error.status == 404 and (response := await _find_redirect(page_request)):
            return response
        wants_html = (
            page_request.route.is_page
            if page_request.route
            else "text/html" in page_request.request.headers.get("accept", "")
        )
        if not wants_html or error.status >= 500:
            raise
        return await _error_page(page_request, error)


def match_route(page_request: PageRequest) -> None:
    """Set the route and the path parameters of a request. Embedded pages have the same paths below `/embed`.

    This comes before unknown parameters are removed from the query string, so it also looks for those of old
    addresses.
    """
    if _is_asset(page_request.path):
        return
    if page_request.path.startswith(f"{EMBED}/"):
        page_request.path, page_request.embedded = page_request.path.removeprefix(EMBED), True
    page_request.route, page_request.path_params = find_route(page_request.path) or (None, {})
    page_request.sent_query = query = _read_query(page_request)
    page_request.is_moved = _may_redirect(page_request) and _has_old_parameters(page_request.path, query)
    if page_request.is_moved:
        page_request.route = None
    elif old_addresses.wants_calendar(query):
        _match_calendar(page_request)


def _read_query(page_request: PageRequest) -> list[tuple[str, str]]:
    try:
        return read_pairs(page_request.request.scope["query_string"])
    except ApiError:
        return []  # It is rejected when the parameters are read.


def _may_redirect(page_request: PageRequest) -> bool:
    return page_request.request.method in ("GET", "HEAD") and not page_request.embedded


def _has_old_parameters(path: str, query: list[tuple[str, str]]) -> bool:
    """Return whether a parameter of an old address selects another page."""
    if old_addresses.find_permanent_id(path, query) is not None:
        return True
    if old_addresses.wants_calendar(query) or not any(name in old_addresses.OLD_NAMES for name, _ in query):
        return False
    address = old_addresses.translate(path, query)
    return address is not None and find_route(address.path) is not None


def _match_calendar(page_request: PageRequest) -> None:
    """Handle a request for iCalendar as one for the current address of the list or event.

    The path and the query string are replaced, because they are the key of the response cache.
    """
    path, query = old_addresses.end_with_slash(page_request.path), page_request.sent_query
    address = old_addresses.translate(path, query) or Address(path, tuple(query))
    found = find_route(address.path, CALENDARS)
    if found is None:
        return
    page_request.route, page_request.path_params = found
    page_request.path = page_request.request.scope["path"] = address.path
    others = [pair for pair in address.query if pair[0] not in old_addresses.CALENDAR_NAMES]
    page_request.request.scope["query_string"] = urlencode([*others, (ICAL, "1")]).encode()


def _is_asset(path: str) -> bool:
    return path.startswith(ASSETS) or path == "/embed.js"


async def _serve_route(page_request: PageRequest) -> Response:
    if page_request.is_moved:
        return await _redirect_old_parameters(page_request)
    if page_request.route is None:
        if find_route(f"{page_request.path}/"):
            return redirect(page_request.with_query(quote(page_request.request.scope["path"]) + "/"))
        raise errors.no_route()
    return await handle_page_request(page_request, page_request.route)


async def _redirect_old_parameters(page_request: PageRequest) -> Response:
    path, query = page_request.path, page_request.sent_query
    post_id = old_addresses.find_permanent_id(path, query)
    if post_id is not None:
        return await redirect_permanent_link(page_request, post_id)
    address = old_addresses.translate(path, query)
    if address is None:
        raise AssertionError("a redirect without a target")
    return await _redirect_to(page_request, address)


async def _find_redirect(page_request: PageRequest) -> Response | None:
    """Redirect a path at which nothing is found: one with a former slug, or an old one."""
    if page_request.route and (response := await redirect_former_slug(page_request)):
        return response
    if not _may_redirect(page_request) or page_request.is_moved:
        return None
    address = old_addresses.translate(page_request.path, page_request.sent_query)
    if address:
        return await _redirect_to(page_request, address)
    return None if page_request.route else await redirect_former_address(page_request)


async def _redirect_to(page_request: PageRequest, address: Address) -> Response:
    found = find_route(address.path.removeprefix(EMBED))
    address = await find_target(page_request, address, found[0].kind if found else None)
    if (
        "page" in dict(address.query)
        and found
        and found[0].is_page
        and not await _has_page(page_request, address, found[0])
    ):
        # The lists of the old site had other pages, some of them without events.
        address = Address(address.path, tuple(pair for pair in address.query if pair[0] != "page"))
    return redirect(address.url)


async def _has_page(page_request: PageRequest, address: Address, route: PageRoute) -> bool:
    """Return whether a list has the page that an address names, by rendering it."""
    query = urlencode(address.query).encode()
    scope = {**page_request.request.scope, "method": "GET", "path": address.path, "query_string": query}
    target = replace(page_request, request=Request(scope), path=address.path)
    _, target.path_params = find_route(address.path) or (route, {})
    try:
        response = await handle_page_request(target, route)
    except ApiError as error:
        return error.status != 404
    return response.status_code in (200, 304)


async def _error_page(page_request: PageRequest, error: ApiError) -> Response:
    """Show an error message of the API on a page of the site."""
    async with page_request.transaction() as tx:
        page_request.site_language = tx.site.language
        page = make_page_context(page_request, make_context(page_request, tx, {}))
        is_missing = error.status in (403, 404, 410)
        heading = N_("Page not found") if is_missing else N_("This page cannot be shown")
        message = page.locale.gettext(MISSING) if is_missing else error.message.render(page.locale.translate)
        model = MessagePage(title=page.locale.gettext(heading), message=message, robots="noindex")
        page_response = show_page(page, model, status=404 if is_missing else error.status, is_cacheable=False)
    page_request.site_revision = None
    response = respond(page_request, page_response)
    response.headers.update(error.headers)
    return response


def _serve_asset(page_request: PageRequest) -> Response:
    if page_request.request.method not in ("GET", "HEAD"):
        raise errors.method_not_allowed(page_request.request.method, ["GET"])
    if page_request.path == "/embed.js":
        body = (STATIC / "embed.js").read_bytes()
        return Response(body, 200, HOUR_HEADERS, media_type="text/javascript; charset=utf-8")
    asset = find_asset(page_request.path.removeprefix(ASSETS))
    if asset is None:
        raise errors.no_route()
    return Response(asset.body, 200, IMMUTABLE_HEADERS, media_type=asset.media_type)

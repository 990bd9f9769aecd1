"""Handles requests for public pages and feeds: routes, parameters, one read-only transaction, response, assets."""

import logging
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response

from kalends.calendar.access.caching import SITE
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.events import EVENTS, PASSWORD
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.kinds.organizers import ORGANIZERS
from kalends.calendar.kinds.terms import CATEGORIES, TAGS
from kalends.calendar.kinds.venues import VENUES
from kalends.calendar.operations.page_filters import resolve_filters
from kalends.calendar.operations.site_options import read_css
from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.limits import rate_limit_key
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import read_params
from kalends.http import bodies, responses
from kalends.http.auth import admit_password
from kalends.http.bodies import read_pairs
from kalends.rendering.page_urls import EMBED, EMBEDDING, Frame
from kalends.store.site_revisions import SiteRevision
from kalends.website import (
    calendar_views,
    detail_views,
    embed_views,
    list_views,
    map_views,
    redirects,
    suggest_views,
)
from kalends.website.assets import STATIC, find_asset
from kalends.website.calendar_views import list_today
from kalends.website.context import (
    DAY,
    FRAME_PARAMS,
    MONTH,
    PATH,
    SLUG,
    PageRequest,
    PageResponse,
    PageRoute,
    PageView,
    make_page_context,
    show_page,
    take_frame,
)
from kalends.website.feed_views import FEEDS, ICAL
from kalends.website.front_views import show_start_page
from kalends.website.pages import MessagePage
from kalends.website.redirects import (
    HOUR_HEADERS,
    Address,
    find_target,
    redirect,
    redirect_former_address,
    redirect_former_slug,
    redirect_permanent_link,
)

log = logging.getLogger(__name__)

MAX_FEED_WAIT: Final = 2.0
ASSETS: Final = "/assets/"
IMMUTABLE_HEADERS: Final = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "Content-Security-Policy": "default-src 'none'",
}
MISSING_STATUSES: Final = (403, 404, 410)
MAX_TODAY: Final = 5
MISSING: Final = N_("There’s no page at this address. It may have moved, or the event is no longer public.")


async def show_custom_style(_: PageRequest, context: OperationContext, __: dict[str, str]) -> PageResponse:
    """Return the site's custom CSS. The path contains a hash only so that clients fetch new versions."""
    css = await read_css(context.transaction)
    if not css:
        raise errors.no_route()
    headers = {"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff"}
    return PageResponse(css, "text/css; charset=utf-8", cache_tags=(SITE,), headers=headers)


async def show_favicon(_: PageRequest, context: OperationContext, __: dict[str, str]) -> PageResponse:
    """Redirect to the site's logo, or return the built-in icon.

    This is for clients that request only /favicon.ico.
    """
    if logo_url := context.transaction.site.logo_url:
        return PageResponse(b"", "text/plain", status=302, headers={"Location": logo_url}, is_cacheable=False)
    return PageResponse((STATIC / "favicon.ico").read_bytes(), "image/x-icon")


def _view(pattern: str, show: PageView, kind: Kind | None = None) -> PageRoute:
    return PageRoute(pattern, show, list_views.LIST_PARAMS, kind=kind, embeds=True)


ROUTES: Final[tuple[PageRoute, ...]] = (
    _view(r"/(?:events/)?", show_start_page),
    _view(rf"/events/month/(?:{MONTH}/)?", calendar_views.show_month),
    _view(rf"/events/week/(?:{DAY}/)?", calendar_views.show_week),
    _view(rf"/events/weekend/(?:{DAY}/)?", calendar_views.show_weekend),
    _view(rf"/events/day/(?:{DAY}/)?", calendar_views.show_day),
    _view(r"/events/list/", list_views.show_list),
    PageRoute(list_views.MINE, list_views.show_mine, list_views.MINE_PARAMS),
    _view(r"/events/map/", map_views.show_map),
    PageRoute(r"/events/search/", list_views.show_search, list_views.LIST_PARAMS, extra_names=list_views.FIND_PARAMS),
    PageRoute(EMBEDDING, embed_views.show_embedding, embed_views.EMBED_PARAMS, extra_names=list_views.FIND_PARAMS),
    PageRoute(r"/events/suggest\.json", suggest_views.show_suggestions, (suggest_views.TEXT,), is_page=False),
    PageRoute(rf"/event/{SLUG}/", detail_views.show_event, (PASSWORD,), accepts_post=True, kind=EVENTS, embeds=True),
    _view(rf"/venue/{SLUG}/", detail_views.show_venue, VENUES),
    _view(rf"/organizer/{SLUG}/", detail_views.show_organizer, ORGANIZERS),
    _view(rf"/events/category/{PATH}/", detail_views.show_category, CATEGORIES),
    _view(rf"/tag/{SLUG}/", detail_views.show_tag, TAGS),
    PageRoute(r"/custom\.[0-9a-f]{12}\.css", show_custom_style, is_page=False),
    PageRoute(r"/favicon\.ico", show_favicon, is_page=False),
    *FEEDS,
)


async def serve_page(page_request: PageRequest) -> Response:
    """Respond to a page request. Client errors on pages become HTML error pages."""
    if _is_asset(page_request.path):
        return _serve_asset(page_request)
    try:
        return await _serve_route(page_request)
    except ApiError as error:
        if error.status == 404 and (response := await _find_redirect(page_request)):
            return response
        accepts_html = "text/html" in page_request.request.headers.get("accept", "")
        # Below /embed, show errors as pages, because only pages have the header that forbids framing.
        is_page = accepts_html or page_request.path.startswith(f"{EMBED}/")
        wants_html = page_request.route.is_page if page_request.route else is_page
        if not wants_html or error.status >= 500:
            raise
        return await _error_page(page_request, error)


async def handle_page_request(page_request: PageRequest, route: PageRoute) -> Response:
    request = page_request.request
    if request.method not in ("GET", "HEAD") and not (route.accepts_post and request.method == "POST"):
        raise errors.method_not_allowed(request.method, ["GET"])
    if route.handle is not None and (route.show is None or request.method == "POST"):
        page_request.query = read_pairs(request.scope["query_string"])
        return await route.handle(page_request)
    is_post = request.method == "POST"
    body = await bodies.read_body(request, page_request.state.max_body_bytes) if is_post else b""
    raw = await bodies.read_values(request, body)
    page_request.query = raw.query
    # Browsers also submit empty form fields.
    filled = {name: value for name, value in raw.values.items() if value not in ("", [""])}
    async with AsyncExitStack() as stack:
        values = read_params((*route.params, *FRAME_PARAMS) if page_request.frame else route.params, filled)
        if page_request.frame:
            page_request.frame = take_frame(values)
        values = await stack.enter_async_context(admit_password(page_request, values))
        if route.is_feed:
            owner = rate_limit_key(page_request.client_ip)
            await stack.enter_async_context(page_request.state.feed_limiter.slot(owner, MAX_FEED_WAIT))
        tx = await stack.enter_async_context(page_request.transaction())
        page_request.site_language = tx.site.language
        context, page_request.filters = await resolve_filters(page_request.operation_context(tx, values=values))
        if route.show is None:
            raise AssertionError("a route without a view")
        page_response = await route.show(page_request, context, page_request.path_params)
        site_revision = SiteRevision(tx.site.id, tx.site.revision)
        page_request.site_secret = tx.site.secret
    if page_response.is_cacheable and not is_post:
        page_request.site_revision, page_request.expires_at, page_request.cache_tags = (
            site_revision,
            page_response.expires_at,
            page_response.cache_tags,
        )
    return respond(page_request, page_response)


def respond(page_request: PageRequest, page_response: PageResponse) -> Response:
    """Return the HTTP response for a view, or a 304 if the client has the current version."""
    body = page_response.body.encode() if isinstance(page_response.body, str) else page_response.body
    headers = {"Content-Language": page_request.language, **page_response.headers}
    if page_response.status == 200 and page_request.site_revision is not None:
        headers["ETag"] = responses.body_etag(body)
        known_etags = responses.split_etags(page_request.request.headers.get("if-none-match", ""))
        if responses.is_known_etag(headers["ETag"], known_etags):
            return Response(status_code=304, headers=headers)
    return Response(body, page_response.status, headers, media_type=page_response.media_type)


def match_route(page_request: PageRequest) -> None:
    """Set the route and path parameters, before parameters of old addresses are removed from the query string."""
    if _is_asset(page_request.path):
        return
    page_request.sent_query = query = _read_query(page_request)
    if page_request.path.startswith(f"{EMBED}/"):
        _match_embedded(page_request)
        return
    page_request.route, page_request.path_params = page_request.routes.router.find(page_request.path) or (None, {})
    page_request.is_moved = _may_redirect(page_request) and _has_old_parameters(page_request, query)
    if page_request.is_moved:
        page_request.route = None
    elif redirects.wants_calendar(query):
        _match_calendar(page_request)


def _match_embedded(page_request: PageRequest) -> None:
    """Match a path below `/embed`.

    Only routes with `embeds` exist there, because other sites may frame the response.
    """
    path = page_request.path.removeprefix(EMBED)
    found = page_request.routes.router.find(path)
    target = found or page_request.routes.router.find(f"{path}/")
    if target is None or not target[0].embeds or redirects.wants_calendar(page_request.sent_query):
        return
    page_request.path, page_request.frame = path, Frame()
    page_request.route, page_request.path_params = found or (None, {})


def _read_query(page_request: PageRequest) -> list[tuple[str, str]]:
    try:
        return read_pairs(page_request.request.scope["query_string"])
    except ApiError:
        return []  # An invalid query is rejected later, when the parameters are read.


def _may_redirect(page_request: PageRequest) -> bool:
    is_below_embed = page_request.frame or page_request.path.startswith(f"{EMBED}/")
    return page_request.request.method in ("GET", "HEAD") and not is_below_embed


def _has_old_parameters(page_request: PageRequest, query: list[tuple[str, str]]) -> bool:
    """Return whether a parameter of an old address selects another page."""
    path = page_request.path
    if redirects.find_permanent_id(path, query) is not None:
        return True
    if redirects.wants_calendar(query) or not any(name in redirects.OLD_NAMES for name, _ in query):
        return False
    address = redirects.translate(path, query)
    return address is not None and page_request.routes.router.find(address.path) is not None


def _match_calendar(page_request: PageRequest) -> None:
    """Map an iCalendar request to the current path and query string, because they form the response cache key."""
    path, query = redirects.end_with_slash(page_request.path), page_request.sent_query
    address = redirects.translate(path, query) or Address(path, tuple(query))
    found = page_request.routes.calendar_router.find(address.path)
    if found is None:
        return
    page_request.route, page_request.path_params = found
    page_request.path = page_request.request.scope["path"] = address.path
    others = [pair for pair in address.query if pair[0] not in redirects.CALENDAR_NAMES]
    page_request.request.scope["query_string"] = urlencode([*others, (ICAL, "1")]).encode()


def _is_asset(path: str) -> bool:
    return path.startswith(ASSETS) or path == "/embed.js"


async def _serve_route(page_request: PageRequest) -> Response:
    if page_request.is_moved:
        path, query = page_request.path, page_request.sent_query
        post_id = redirects.find_permanent_id(path, query)
        if post_id is not None:
            return await redirect_permanent_link(page_request, post_id)
        address = redirects.translate(path, query)
        if address is None:
            raise AssertionError("a redirect without a target")
        return await _redirect_to(page_request, address)
    if page_request.route is None:
        if page_request.routes.router.find(f"{page_request.path}/"):
            return redirect(page_request.with_query(quote(page_request.request.scope["path"]) + "/"))
        raise errors.no_route()
    return await handle_page_request(page_request, page_request.route)


async def _find_redirect(page_request: PageRequest) -> Response | None:
    """If a path was not found, redirect it if it contains a former slug or is an old address."""
    if page_request.route and (response := await redirect_former_slug(page_request)):
        return response
    if not _may_redirect(page_request) or page_request.is_moved:
        return None
    address = redirects.translate(page_request.path, page_request.sent_query)
    if address:
        return await _redirect_to(page_request, address)
    return None if page_request.route else await redirect_former_address(page_request)


async def _redirect_to(page_request: PageRequest, address: Address) -> Response:
    found = page_request.routes.router.find(address.path.removeprefix(EMBED))
    address = await find_target(page_request, address, found[0].kind if found else None)
    if (
        "page" in dict(address.query)
        and found
        and found[0].is_page
        and not await _has_page(page_request, address, found[0])
    ):
        # The old site divided its lists differently, so there may be no page with this number.
        address = Address(address.path, tuple(pair for pair in address.query if pair[0] != "page"))
    return redirect(address.url)


async def _has_page(page_request: PageRequest, address: Address, route: PageRoute) -> bool:
    """Return whether a page of a list exists, by rendering it."""
    query = urlencode(address.query).encode()
    scope = {**page_request.request.scope, "method": "GET", "path": address.path, "query_string": query}
    target = replace(page_request, request=Request(scope), path=address.path)
    _, target.path_params = page_request.routes.router.find(address.path) or (route, {})
    try:
        response = await handle_page_request(target, route)
    except ApiError as error:
        return error.status != 404
    return response.status_code in (200, 304)


async def _error_page(page_request: PageRequest, error: ApiError) -> Response:
    """Return the page for an error. A missing page lists today's events if the database can find them."""
    if error.status in MISSING_STATUSES:
        try:
            return await _render_error(page_request, error, max_events=MAX_TODAY)
        except Exception as failure:
            if not isinstance(failure, ApiError):
                log.exception("today's events cannot be listed")
    return await _render_error(page_request, error)


async def _render_error(page_request: PageRequest, error: ApiError, *, max_events: int = 0) -> Response:
    async with page_request.transaction() as tx:
        page_request.site_language = tx.site.language
        page = make_page_context(page_request, page_request.operation_context(tx))
        is_missing = error.status in MISSING_STATUSES
        heading = N_("Page not found") if is_missing else N_("This page can’t be shown")
        message = page.locale.gettext(MISSING) if is_missing else error.message.render(page.locale.translate)
        model = MessagePage(
            title=page.locale.gettext(heading),
            message=message,
            robots="noindex",
            cards=await list_today(page, max_events) if max_events else (),
        )
        page_response = await show_page(page, model, status=404 if is_missing else error.status, is_cacheable=False)
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

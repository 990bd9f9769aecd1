"""Routes of the public pages and feeds, and the assets that pages need."""

import re
from typing import Final
from urllib.parse import quote

from starlette.responses import Response

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.messages import gettext_noop as N_
from kalends.core.slugs import normalize_lookup
from kalends.kinds.categories import CATEGORIES
from kalends.kinds.event_passwords import PASSWORD
from kalends.kinds.events import EVENTS
from kalends.kinds.organizers import ORGANIZERS
from kalends.kinds.tags import TAGS
from kalends.kinds.venues import VENUES
from kalends.operations import calendar
from kalends.operations.context import OperationContext
from kalends.operations.sites import read_css
from kalends.store import slug_redirects
from kalends.website import calendar_views, detail_views, list_views
from kalends.website.assets import STATIC, find_asset
from kalends.website.context import make_page_context, show_page
from kalends.website.feed_views import FEEDS
from kalends.website.handler import PageRequest, PageResponse, PageRoute, handle_page_request, make_context, respond
from kalends.website.home import load_highlights
from kalends.website.pages import MessagePage

ASSETS: Final = "/assets/"
EMBED: Final = "/embed"
IMMUTABLE_HEADERS: Final = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "Content-Security-Policy": "default-src 'none'",
}
HOUR_HEADERS: Final = {"Cache-Control": "public, max-age=3600"}
VIEWS: Final = {
    "month": calendar_views.show_month,
    "week": calendar_views.show_week,
    "day": calendar_views.show_day,
    "list": list_views.show_list,
    "map": list_views.show_map,
}
MISSING: Final = N_("There is no page at this address. It may have moved, or the event is no longer public.")
PATH: Final = r"(?P<path>[^/]+(?:/[^/]+)*)"
DAY: Final = r"(?P<day>\d{4}-\d\d-\d\d)"


async def show_default_view(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    """Show the default view of the site, below its highlights.

    `/?p=ID`, the permanent link of a record, redirects to its page.
    """
    post = dict(page_request.query).get("p", "")
    if post.isdecimal() and len(post) < 16:
        record_path = await calendar.find_record_url(context, int(post))
        if record_path is None:
            raise errors.no_route()
        location = f"/{record_path[0]}/{record_path[1]}/"
        return PageResponse(b"", "text/plain", status=302, headers={"Location": location}, is_cacheable=False)
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
    return PageResponse(
        css, "text/css; charset=utf-8", cache_tags=(f"s{context.transaction.site.id}",), headers=headers
    )


async def show_favicon(_: PageRequest, context: OperationContext, __: dict[str, str]) -> PageResponse:
    """Return the icon for clients that ask for this name only: the logo of the site, else the built-in icon."""
    if logo_url := context.transaction.site.logo_url:
        return PageResponse(b"", "text/plain", status=302, headers={"Location": logo_url}, is_cacheable=False)
    return PageResponse((STATIC / "favicon.ico").read_bytes(), "image/x-icon")


ROUTES: Final[tuple[PageRoute, ...]] = (
    PageRoute(r"/(?:events/)?", show_default_view, list_views.LIST_PARAMS, extra_names=("p",)),
    PageRoute(r"/events/month/(?:(?P<month>\d{4}-\d\d)/)?", calendar_views.show_month, list_views.LIST_PARAMS),
    PageRoute(rf"/events/week/(?:{DAY}/)?", calendar_views.show_week, list_views.LIST_PARAMS),
    PageRoute(rf"/events/day/(?:{DAY}/)?", calendar_views.show_day, list_views.LIST_PARAMS),
    PageRoute(r"/events/list/", list_views.show_list, list_views.LIST_PARAMS),
    PageRoute(r"/events/map/", list_views.show_map, list_views.LIST_PARAMS),
    PageRoute(r"/events/search/", list_views.show_search, list_views.LIST_PARAMS, extra_names=list_views.FIND_PARAMS),
    PageRoute(r"/event/(?P<slug>[^/]+)/", detail_views.show_event, (PASSWORD,), accepts_post=True, kind=EVENTS),
    PageRoute(r"/venue/(?P<slug>[^/]+)/", detail_views.show_venue, list_views.LIST_PARAMS, kind=VENUES),
    PageRoute(r"/organizer/(?P<slug>[^/]+)/", detail_views.show_organizer, list_views.LIST_PARAMS, kind=ORGANIZERS),
    PageRoute(rf"/events/category/{PATH}/", detail_views.show_category, list_views.LIST_PARAMS, kind=CATEGORIES),
    PageRoute(r"/tag/(?P<slug>[^/]+)/", detail_views.show_tag, list_views.LIST_PARAMS, kind=TAGS),
    PageRoute(r"/custom\.[0-9a-f]{12}\.css", show_custom_style, is_page=False),
    PageRoute(r"/favicon\.ico", show_favicon, is_page=False),
    *FEEDS,
)


def find_route(path: str) -> tuple[PageRoute, dict[str, str]] | None:
    """Return the route that matches a path, and its path parameters."""
    for route in ROUTES:
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
        if (
            error.status == 404
            and page_request.route
            and page_request.route.kind
            and (redirect := await _find_redirect(page_request))
        ):
            return redirect
        wants_html = (
            page_request.route.is_page
            if page_request.route
            else "text/html" in page_request.request.headers.get("accept", "")
        )
        if not wants_html or error.status >= 500:
            raise
        return await _error_page(page_request, error)


def match_route(page_request: PageRequest) -> None:
    """Set the route and the path parameters of a request. Embedded pages have the same paths below `/embed`."""
    if _is_asset(page_request.path):
        return
    if page_request.path.startswith(f"{EMBED}/"):
        page_request.path, page_request.embedded = page_request.path.removeprefix(EMBED), True
    page_request.route, page_request.path_params = find_route(page_request.path) or (None, {})


def _is_asset(path: str) -> bool:
    return path.startswith(ASSETS) or path == "/embed.js"


async def _serve_route(page_request: PageRequest) -> Response:
    if page_request.route is None:
        if find_route(f"{page_request.path}/"):
            return _redirect(page_request, quote(page_request.request.scope["path"]) + "/")
        raise errors.no_route()
    return await handle_page_request(page_request, page_request.route)


def _redirect(page_request: PageRequest, path: str) -> Response:
    return Response(status_code=301, headers={"Location": page_request.with_query(path), **HOUR_HEADERS})


async def _find_redirect(page_request: PageRequest) -> Response | None:
    """Redirect a path with a former slug of a record to the current one."""
    route, path = page_request.route, page_request.request.scope["path"]
    match = re.search(route.pattern + "$", path, re.ASCII) if route else None
    if match is None or route is None or route.kind is None:
        return None
    start, end = match.span("path" if "path" in match.groupdict() else "slug")
    slug = normalize_lookup(path[start:end].rpartition("/")[2])
    async with page_request.transaction() as tx:
        new_slug = await slug_redirects.current_slug(tx, route.kind.name, slug, is_post=route.kind.is_post)
    return _redirect(page_request, path[:start] + new_slug + path[end:]) if new_slug else None


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

"""All public addresses beside the interface, on one page: pages, feeds, and the files that pages need."""

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
from kalends.operations.context import Call
from kalends.store import slug_redirects
from kalends.website import calendar_views, detail_views, list_views
from kalends.website.assets import STATIC, find_asset
from kalends.website.context import make_frame, show_page
from kalends.website.feed_views import FEEDS
from kalends.website.handler import PageRoute, Shown, Visit, answer, make_call, respond

ASSETS: Final = "/assets/"
EMBED: Final = "/embed"
FOR_EVER: Final = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "Content-Security-Policy": "default-src 'none'",
}
FOR_AN_HOUR: Final = {"Cache-Control": "public, max-age=3600"}
VIEWS: Final = {
    "month": calendar_views.show_month,
    "week": calendar_views.show_week,
    "day": calendar_views.show_day,
    "list": list_views.show_list,
    "map": list_views.show_map,
}
PATH: Final = r"(?P<path>[^/]+(?:/[^/]+)*)"
DAY: Final = r"(?P<day>\d{4}-\d\d-\d\d)"


async def show_home(visit: Visit, call: Call, _: dict[str, str]) -> Shown:
    """The view that the site has chosen. `/?p=` is the lasting address of a record."""
    post = dict(visit.query).get("p", "")
    if post.isdecimal() and len(post) < 16:
        found = await calendar.find_record_url(call, int(post))
        if found is None:
            raise errors.no_route()
        location = f"/{found[0]}/{found[1]}/"
        return Shown(b"", "text/plain", status=302, headers={"Location": location}, kept=False)
    return await VIEWS[_default_view(visit, call)](visit, call, {})


def _default_view(visit: Visit, call: Call) -> str:
    chosen: str = call.transaction.site.default_view
    return "list" if chosen == "map" and not visit.look.tiles_url else chosen


ROUTES: Final[tuple[PageRoute, ...]] = (
    PageRoute(r"/(?:events/)?", show_home, list_views.LIST_PARAMS, more_names=("p",)),
    PageRoute(r"/events/month/(?:(?P<month>\d{4}-\d\d)/)?", calendar_views.show_month, list_views.LIST_PARAMS),
    PageRoute(rf"/events/week/(?:{DAY}/)?", calendar_views.show_week, list_views.LIST_PARAMS),
    PageRoute(rf"/events/day/(?:{DAY}/)?", calendar_views.show_day, list_views.LIST_PARAMS),
    PageRoute(r"/events/list/", list_views.show_list, list_views.LIST_PARAMS),
    PageRoute(r"/events/map/", list_views.show_map, list_views.LIST_PARAMS),
    PageRoute(r"/events/search/", list_views.show_search, list_views.LIST_PARAMS),
    PageRoute(r"/event/(?P<slug>[^/]+)/", detail_views.show_event, (PASSWORD,), posts=True, kind=EVENTS),
    PageRoute(r"/venue/(?P<slug>[^/]+)/", detail_views.show_venue, list_views.LIST_PARAMS, kind=VENUES),
    PageRoute(r"/organizer/(?P<slug>[^/]+)/", detail_views.show_organizer, list_views.LIST_PARAMS, kind=ORGANIZERS),
    PageRoute(rf"/events/category/{PATH}/", detail_views.show_category, list_views.LIST_PARAMS, kind=CATEGORIES),
    PageRoute(r"/tag/(?P<slug>[^/]+)/", detail_views.show_tag, list_views.LIST_PARAMS, kind=TAGS),
    *FEEDS,
)


def find_route(path: str) -> tuple[PageRoute, dict[str, str]] | None:
    for route in ROUTES:
        match = re.fullmatch(route.pattern, path, re.ASCII)
        if match:
            return route, {name: value for name, value in match.groupdict().items() if value is not None}
    return None


async def show(visit: Visit) -> Response:
    """The answer to a visit; what people read is refused in a page of its own."""
    if _is_file(visit.path):
        return _show_file(visit)
    try:
        return await _show(visit)
    except ApiError as refusal:
        if refusal.status == 404 and visit.route and visit.route.kind and (moved := await _find_moved(visit)):
            return moved
        wanted = visit.route.is_page if visit.route else "text/html" in visit.request.headers.get("accept", "")
        if not wanted or refusal.status >= 500:
            raise
        return await _refuse(visit, refusal)


def locate(visit: Visit) -> None:
    """Finds the route of a visit; embedded pages have the paths of others below one of their own."""
    if _is_file(visit.path):
        return
    if visit.path.startswith(f"{EMBED}/"):
        visit.path, visit.embedded = visit.path.removeprefix(EMBED), True
    visit.route, visit.address = find_route(visit.path) or (None, {})


def _is_file(path: str) -> bool:
    return path.startswith(ASSETS) or path == "/embed.js"


async def _show(visit: Visit) -> Response:
    if visit.route is None:
        if find_route(f"{visit.path}/"):
            return _led_to(visit, quote(visit.request.scope["path"]) + "/")
        raise errors.no_route()
    return await answer(visit, visit.route)


def _led_to(visit: Visit, path: str) -> Response:
    return Response(status_code=301, headers={"Location": visit.with_query(path), **FOR_AN_HOUR})


async def _find_moved(visit: Visit) -> Response | None:
    """An address with a slug that the record had before leads to the one that it has."""
    route, place = visit.route, visit.request.scope["path"]
    match = re.search(route.pattern + "$", place, re.ASCII) if route else None
    if match is None or route is None or route.kind is None:
        return None
    begin, end = match.span("path" if "path" in match.groupdict() else "slug")
    slug = normalize_lookup(place[begin:end].rpartition("/")[2])
    async with visit.transaction() as tx:
        found = await slug_redirects.current_slug(tx, route.kind.name, slug, is_post=route.kind.is_post)
    return _led_to(visit, place[:begin] + found + place[end:]) if found else None


async def _refuse(visit: Visit, refusal: ApiError) -> Response:
    """The same sentence as the interface gives, on a page of the site."""
    async with visit.transaction() as tx:
        visit.site_language = tx.site.language
        frame = make_frame(visit, make_call(visit, tx, {}))
        missing = refusal.status in (403, 404, 410)
        heading = N_("Page not found") if missing else N_("This page cannot be shown")
        message = "" if missing else refusal.message.render(frame.speech.translate)
        shown = show_page(
            frame, "message.html", status=404 if missing else refusal.status, kept=False, kind="message-page",
            title=frame.speech.say(heading), message=message, asks_password=False, robots="noindex",
        )  # fmt: skip
    visit.made_at = None
    response = respond(visit, shown)
    response.headers.update(refusal.headers)
    return response


def _show_file(visit: Visit) -> Response:
    if visit.request.method not in ("GET", "HEAD"):
        raise errors.method_not_allowed(visit.request.method, ["GET"])
    if visit.path == "/embed.js":
        body = (STATIC / "embed.js").read_bytes()
        return Response(body, 200, FOR_AN_HOUR, media_type="text/javascript; charset=utf-8")
    found = find_asset(visit.path.removeprefix(ASSETS))
    if found is None:
        raise errors.no_route()
    return Response(found.body, 200, FOR_EVER, media_type=found.media_type)

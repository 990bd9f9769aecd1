"""iCalendar at the addresses of The Events Calendar: every page with `?ical=1` or `?outlook-ical=1`."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, Final

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.kinds.categories import CATEGORIES
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Kind
from kalends.kinds.organizers import ORGANIZERS
from kalends.kinds.series import SERIES
from kalends.kinds.tags import TAGS
from kalends.kinds.venues import VENUES
from kalends.operations.calendar import DATE_PARAMS
from kalends.operations.context import OperationContext
from kalends.operations.page_filters import LINKS, resolve_filters
from kalends.operations.typed_records import read_organizer, read_term, read_venue
from kalends.website.calendar_views import read_day
from kalends.website.context import make_date_filter, make_page_context
from kalends.website.feed_views import CALENDAR_PARAMS, show_calendar, show_event_calendar
from kalends.website.handler import DAY, MONTH, PATH, SLUG, PageRequest, PageResponse, PageRoute
from kalends.website.models.grid import find_week_start
from kalends.website.series_views import show_series_calendar

ICAL: Final = "ical"
ONE_DAY: Final = timedelta(days=1)
READERS: Final[dict[str, Callable[[OperationContext], Awaitable[Any]]]] = {
    "categories": lambda context: read_term(CATEGORIES, context),
    "tags": lambda context: read_term(TAGS, context),
    "venues": read_venue,
    "organizers": read_organizer,
}
FILTERS: Final = {kind: name for name, kind in LINKS.items()}


async def show_list_calendar(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    return _as_download(await show_calendar(page_request, context, path_params))


async def show_single_calendar(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    response = await show_event_calendar(page_request, context, path_params, shows_locked=True)
    return _as_download(response, "event.ics")


async def show_dates_calendar(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    return _as_download(await show_series_calendar(page_request, context, path_params), "series.ics")


async def show_period_calendar(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    """Return the events of a month, week or day, by default of the current one."""
    page = make_page_context(page_request, context)
    text = path_params.get("day") or (f"{path_params['month']}-01" if "month" in path_params else "")
    first, last = _find_period(path_params["view"], read_day(text) if text else page.today, page.site.first_weekday)
    values = {name: value for name, value in context.values.items() if name not in DATE_PARAMS}
    dates = {"overlaps_from": make_date_filter(first), "overlaps_to": make_date_filter(last)}
    response = await show_list_calendar(page_request, replace(context, values={**values, **dates}), {})
    # The current period changes at midnight at the earliest.
    expiries = [time for time in (response.expires_at, None if text else page.midnight) if time]
    return replace(response, expires_at=min(expiries, default=None))


async def show_record_calendar(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    """Return the events of a category, tag, venue or organizer, which the last part of the path names."""
    route = page_request.route
    if route is None or route.kind is None:
        raise AssertionError("a route without a kind")
    slug = (path_params.get("slug") or path_params["path"]).rpartition("/")[2]
    try:
        read = await READERS[route.kind.name](replace(context, slug=slug, values={}))
    except ApiError as error:
        # As on pages, a record that is not public does not differ from an unknown one.
        raise errors.no_route() from error
    values = {**context.values, FILTERS[route.kind.name]: [read.record.id]}
    context, page_request.filters = await resolve_filters(replace(context, values=values))
    return await show_list_calendar(page_request, context, {})


def _find_period(view: str, day: date, first_weekday: int) -> tuple[date, date]:
    if view == "month":
        return day.replace(day=1), (day.replace(day=28) + 4 * ONE_DAY).replace(day=1) - ONE_DAY
    if view == "week":
        first = find_week_start(day, first_weekday)
        return first, first + 6 * ONE_DAY
    return day, day


def _as_download(response: PageResponse, name: str = "events.ics") -> PageResponse:
    """Send the headers that The Events Calendar sends: its addresses are pages, which crawlers may know."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Robots-Tag": "noindex, nofollow"}
    return replace(response, headers={**response.headers, **headers})


def _route(pattern: str, show: Any, kind: Kind | None = None) -> PageRoute:
    return PageRoute(pattern, show, CALENDAR_PARAMS, is_page=False, kind=kind, is_feed=True, extra_names=(ICAL,))


CALENDARS: Final = (
    _route(r"/(?:events/(?:list/|map/|search/)?)?", show_list_calendar),
    _route(rf"/events/(?P<view>month)/(?:{MONTH}/)?", show_period_calendar),
    _route(rf"/events/(?P<view>week|day)/(?:{DAY}/)?", show_period_calendar),
    _route(rf"/events/category/{PATH}/", show_record_calendar, CATEGORIES),
    _route(rf"/tag/{SLUG}/", show_record_calendar, TAGS),
    _route(rf"/venue/{SLUG}/", show_record_calendar, VENUES),
    _route(rf"/organizer/{SLUG}/", show_record_calendar, ORGANIZERS),
    PageRoute(
        rf"/series/{SLUG}/", show_dates_calendar, is_page=False, kind=SERIES, is_feed=True, extra_names=(ICAL,)
    ),
    PageRoute(rf"/event/{SLUG}/", show_single_calendar, is_page=False, kind=EVENTS, extra_names=(ICAL,)),
)

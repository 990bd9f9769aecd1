"""Feeds: iCalendar for one event or a filtered list, RSS, Atom and JSON Feed, sitemaps and robots.txt.

iCalendar is also available at The Events Calendar's addresses: every page with `?ical=1` or `?outlook-ical=1`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, Final
from urllib.parse import quote

from kalends.calendar.access import caching
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.event_shortcuts import HIDE_SUBSEQUENT
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.kinds.organizers import ORGANIZERS
from kalends.calendar.kinds.terms import CATEGORIES, TAGS
from kalends.calendar.kinds.venues import VENUES
from kalends.calendar.operations import site_feeds
from kalends.calendar.operations.calendar_months import DATE_PARAMS, make_date_filter
from kalends.calendar.operations.page_filters import LINKS, resolve_filters
from kalends.calendar.operations.record_verbs import (
    read_event,
    read_locked_event,
    read_organizer,
    read_term,
    read_venue,
)
from kalends.calendar.operations.site_feeds import FEED_PARAMS, PAST
from kalends.calendar.rules.record_types import Event
from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.html_text import to_plain_text
from kalends.core.messages import Translate, gettext_noop as N_, translator
from kalends.core.search_words import find_weekend
from kalends.core.times import next_midnight
from kalends.feeds import ics, syndication
from kalends.rendering.cards import make_when, mark_title
from kalends.rendering.page_locale import PageLocale, make_page_locale
from kalends.store import Row
from kalends.website.calendar_views import read_day
from kalends.website.context import DAY, MONTH, PATH, SLUG, PageRequest, PageResponse, PageRoute, make_page_context
from kalends.website.models.grid import find_week_start
from kalends.website.models.page_parts import WHOLE_API, make_discovery

CALENDAR_TYPE: Final = "text/calendar; charset=utf-8"
CALENDAR_PARAMS: Final = (*FEED_PARAMS, PAST)
MAX_FEED_ITEMS: Final = 50
DISALLOWED_PATHS: Final = ("/events/day/", "/events/week/", "/events/search/", "/events/list/?", "/embed/", "/*.ics")
FeedWriter = Callable[[syndication.Channel, Sequence[syndication.Item]], str | bytes]
SYNDICATION_FORMATS: Final[dict[str, tuple[FeedWriter, str]]] = {
    "rss": (syndication.write_rss, syndication.RSS_TYPE),
    "atom": (syndication.write_atom, syndication.ATOM_TYPE),
    "json": (syndication.write_json, syndication.JSON_TYPE),
}
ICAL: Final = "ical"
ONE_DAY: Final = timedelta(days=1)
READERS: Final[dict[str, Callable[[OperationContext], Awaitable[Any]]]] = {
    "categories": lambda context: read_term(CATEGORIES, context),
    "tags": lambda context: read_term(TAGS, context),
    "venues": read_venue,
    "organizers": read_organizer,
}
FILTERS: Final = {kind: name for name, kind in LINKS.items()}


async def show_calendar(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    """Return a list as iCalendar. It is rendered in batches, to avoid blocking other requests."""
    feed = await site_feeds.find_feed(context)
    calendar = _make_calendar(page_request, context)
    cancelled = await asyncio.to_thread(lambda: [_make_cancelled(row) for row in feed.withdrawn])
    spans = [_make_times(row) for row in feed.rows]
    # Collecting the time zones of thousands of events takes long enough to block the event loop.
    times = [*spans, *[event.times for event in cancelled]]
    parts = [await asyncio.to_thread(ics.begin_calendar, calendar, times)]
    translate = translator(page_request.language)
    async for batch in site_feeds.build_feed_events(context, feed.rows):
        parts += [ics.write_event(event, feed.sequences[event.id], mark(event, translate)) for event in batch]
    parts += await asyncio.to_thread(lambda: [ics.write_cancelled(event, calendar) for event in cancelled])
    parts.append(ics.end_calendar())
    return PageResponse(
        await asyncio.to_thread("".join(parts).encode), CALENDAR_TYPE, feed.expires_at, feed.cache_tags,
        headers={"Content-Disposition": 'inline; filename="events.ics"'},
    )  # fmt: skip


async def show_event_calendar(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str], *, shows_locked: bool = False
) -> PageResponse:
    """Return one event or its cancellation as iCalendar.

    With `shows_locked`, show the title and time of a protected event.
    """
    event_context = replace(context, slug=path_params["slug"])
    calendar = _make_calendar(page_request, context)
    try:
        read = await read_event(event_context)
    except ApiError as error:
        if error.code == "event-password-protected":
            if not shows_locked:
                raise
            return await _show_locked_event(event_context, calendar)
        row = await site_feeds.find_withdrawn_event(event_context)
        cancelled = _make_cancelled(row)
        parts = [ics.begin_calendar(calendar, [cancelled.times]), ics.write_cancelled(cancelled, calendar)]
        expires_at = row["withdrawn_at"] + site_feeds.WITHDRAWN_PERIOD
        tags = caching.tags_for_event(row["id"])
    else:
        event = read.record
        sequences = await site_feeds.read_sequences(event_context, [event.id])
        title = mark(event, translator(page_request.language))
        parts = [ics.begin_calendar(calendar, [event]), ics.write_event(event, sequences[event.id], title)]
        expires_at, tags = None, read.cache_tags
    parts.append(ics.end_calendar())
    headers = {"Content-Disposition": 'attachment; filename="event.ics"'}
    return PageResponse("".join(parts), CALENDAR_TYPE, expires_at, tags, headers=headers)


async def _show_locked_event(context: OperationContext, calendar: ics.Calendar) -> PageResponse:
    event = await read_locked_event(context)
    sequences = await site_feeds.read_sequences(context, [event.id])
    parts = [ics.begin_calendar(calendar, [event]), ics.write_event(event, sequences[event.id]), ics.end_calendar()]
    # The sequence depends on the venues, but the cache tags must not reveal the venues of a protected event.
    tags = (*caching.tags_for_event(event.id), "venues")
    return PageResponse("".join(parts), CALENDAR_TYPE, None, tags)


def mark(event: Event, translate: Translate) -> str:
    return mark_title(to_plain_text(event.title), event.event_status, translate)


def _make_calendar(page_request: PageRequest, context: OperationContext) -> ics.Calendar:
    site = context.transaction.site
    cancelled = translator(page_request.language)(N_("Cancelled"))
    return ics.Calendar(_feed_name(page_request, context), _feed_url(page_request, context), site.timezone, cancelled)


def _feed_name(page_request: PageRequest, context: OperationContext) -> str:
    names = [entry.name for param in LINKS for entry in page_request.filters.list_named(param) if entry.name]
    names += filter(None, [context.values.get("search", "")])
    return ": ".join(filter(None, (context.transaction.site.name, ", ".join(names))))


def _make_cancelled(row: Row) -> ics.CancelledEvent:
    return ics.CancelledEvent(row["uid"], row["sequence"], row["modified_utc"], _make_times(row))


def _make_times(row: Row) -> ics.Times:
    # It is not public whether a protected event lasts all day, so write the exact times.
    is_locked = row.get("password_hash") is not None
    return ics.Times(
        start_local=row["start_local"],
        end_local=row["end_local"],
        start_utc=row["start_utc"],
        end_utc=row["end_utc"],
        timezone=row["timezone"],
        all_day=row["all_day"] and not is_locked,
    )


async def show_syndication_feed(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    """Return the next events of a list as RSS, Atom or JSON Feed.

    By default, include only the next date of each series.
    """
    values = {HIDE_SUBSEQUENT: "series" not in context.values, **context.values}
    feed = await site_feeds.find_feed(replace(context, values=values), MAX_FEED_ITEMS, upcoming_only=True)
    site = context.transaction.site
    locale = make_page_locale(page_request.language, site.language, translator(page_request.language))
    items: list[syndication.Item] = []
    async for batch in site_feeds.build_feed_events(context, feed.rows):
        items += [_make_item(event, locale, site.timezone) for event in batch]
    channel = syndication.Channel(
        _feed_name(page_request, context),
        f"{context.base_url}/events/",
        _feed_url(page_request, context),
        page_request.language,
    )
    write, media_type = SYNDICATION_FORMATS[path_params["form"]]
    discovery = make_discovery(context.base_url, page_request.legacy_prefix, WHOLE_API)
    headers = discovery.headers if discovery and media_type is syndication.RSS_TYPE else {}
    return PageResponse(write(channel, items), media_type, feed.expires_at, feed.cache_tags, headers=headers)


def _make_item(event: Event, locale: PageLocale, zone: str) -> syndication.Item:
    when = make_when(event, locale, zone, long=True, names_zone=True)
    return syndication.Item(event, when.text, ics.format_location(event), mark(event, locale.translate))


async def show_sitemap_index(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    parts = [f"{context.base_url}/sitemap/{number}.xml" for number in range(await site_feeds.count_parts(context))]
    return _xml_response(syndication.write_sitemap_index([*parts, f"{context.base_url}/sitemap/terms.xml"]))


async def show_sitemap(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    number = int(path_params["number"])
    if number >= await site_feeds.count_parts(context):
        raise errors.no_route()
    first = [(f"{context.base_url}/events/", "")] if number == 0 else []
    urls = first + await site_feeds.list_posts(context, number)
    # At midnight, the period of the list moves.
    midnight = next_midnight(context.transaction.now, context.transaction.site.timezone)
    return replace(_xml_response(syndication.write_sitemap(urls)), expires_at=midnight)


async def show_term_sitemap(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    return _xml_response(syndication.write_sitemap(await site_feeds.list_terms(context)))


async def show_robots(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    """Exclude crawlers from the API and from endless or duplicate pages, such as those for days and weeks."""
    lines = [
        "User-agent: *",
        *[f"Disallow: {path}" for path in DISALLOWED_PATHS],
        f"Disallow: {page_request.canonical_prefix}/",
    ]
    text = "\n".join([*lines, f"Sitemap: {context.base_url}/sitemap.xml", ""])
    return PageResponse(text, "text/plain; charset=utf-8", None, (caching.SITE,))


def _xml_response(text: str) -> PageResponse:
    tags = (caching.SITE, "events", "series", "venues", "organizers", "categories", "tags")
    return PageResponse(text, "application/xml; charset=utf-8", None, tags)


def _feed_url(page_request: PageRequest, context: OperationContext) -> str:
    return page_request.with_query(context.base_url + quote(page_request.request.scope["path"]))


async def show_list_calendar(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    return as_download(await show_calendar(page_request, context, path_params))


async def show_single_calendar(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    response = await show_event_calendar(page_request, context, path_params, shows_locked=True)
    return as_download(response, "event.ics")


async def show_period_calendar(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
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
    """Return the events for the category, tag, venue or organizer that the last part of the path names."""
    route = page_request.route
    if route is None or route.kind is None:
        raise AssertionError("a route without a kind")
    slug = (path_params.get("slug") or path_params["path"]).rpartition("/")[2]
    try:
        read = await READERS[route.kind.name](replace(context, slug=slug, values={}))
    except ApiError as error:
        # As on pages, treat a record that is not public as unknown.
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
    if view == "weekend":
        _, sunday = find_weekend(day)
        return sunday - ONE_DAY, sunday
    return day, day


def as_download(response: PageResponse, name: str = "events.ics") -> PageResponse:
    """Add the headers that The Events Calendar sends. They also keep crawlers from indexing downloads."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Robots-Tag": "noindex, nofollow"}
    return replace(response, headers={**response.headers, **headers})


def _route(pattern: str, show: Any, kind: Kind | None = None) -> PageRoute:
    return PageRoute(pattern, show, CALENDAR_PARAMS, is_page=False, kind=kind, is_feed=True, extra_names=(ICAL,))


FEEDS: Final = (
    PageRoute(r"/events\.ics", show_calendar, CALENDAR_PARAMS, is_page=False, is_feed=True),
    PageRoute(r"/events\.(?P<form>rss|atom|json)", show_syndication_feed, FEED_PARAMS, is_page=False, is_feed=True),
    PageRoute(r"/event/(?P<slug>[^/]+)\.ics", show_event_calendar, is_page=False, kind=EVENTS),
    PageRoute(r"/sitemap\.xml", show_sitemap_index, is_page=False),
    PageRoute(r"/sitemap/(?P<number>\d{1,6})\.xml", show_sitemap, is_page=False, is_feed=True),
    PageRoute(r"/sitemap/terms\.xml", show_term_sitemap, is_page=False, is_feed=True),
    PageRoute(r"/robots\.txt", show_robots, is_page=False),
)
CALENDARS: Final = (
    _route(r"/(?:events/(?:list/|map/|search/|mine/)?)?", show_list_calendar),
    _route(rf"/events/(?P<view>month)/(?:{MONTH}/)?", show_period_calendar),
    _route(rf"/events/(?P<view>week|weekend|day)/(?:{DAY}/)?", show_period_calendar),
    _route(rf"/events/category/{PATH}/", show_record_calendar, CATEGORIES),
    _route(rf"/tag/{SLUG}/", show_record_calendar, TAGS),
    _route(rf"/venue/{SLUG}/", show_record_calendar, VENUES),
    _route(rf"/organizer/{SLUG}/", show_record_calendar, ORGANIZERS),
    PageRoute(rf"/event/{SLUG}/", show_single_calendar, is_page=False, kind=EVENTS, extra_names=(ICAL,)),
)

"""Feeds: iCalendar of one event or a filtered list, RSS, Atom and JSON Feed, sitemaps and robots.txt."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from kalends.core import errors, params
from kalends.core.errors import ApiError
from kalends.core.html.text import to_plain_text
from kalends.core.messages import Translate
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import Param
from kalends.core.record_types import Event
from kalends.core.times import next_midnight
from kalends.feeds import ics, syndication
from kalends.http.language import translator
from kalends.kinds.event_list.filters import EVENT_FILTERS
from kalends.kinds.event_list.first_dates import HIDE_SUBSEQUENT
from kalends.kinds.events import EVENTS
from kalends.operations import cache_tags, feeds, sitemap
from kalends.operations.context import OperationContext
from kalends.operations.page_filters import LINKS
from kalends.operations.typed_records import read_event, read_locked_event
from kalends.store import Row
from kalends.website.handler import PageRequest, PageResponse, PageRoute
from kalends.website.models.cards import make_when
from kalends.website.models.discovery import WHOLE_API, make_discovery
from kalends.website.models.page_locale import PageLocale, make_page_locale
from kalends.website.models.states import mark_title

CALENDAR_TYPE: Final = "text/calendar; charset=utf-8"
# A feed has the filters of a list; its order is fixed, and it has neither pages nor unpublished events.
NON_FEED_PARAMS: Final = ("status", "order", "orderby", "cursor")
FEED_PARAMS: Final[tuple[Param, ...]] = tuple(
    row.param for row in EVENT_FILTERS if row.param.name not in NON_FEED_PARAMS
)
# Past instead of upcoming events, of pages and of iCalendar.
PAST: Final = Param("past", params.BOOLEAN, "")
CALENDAR_PARAMS: Final = (*FEED_PARAMS, PAST)


async def show_calendar(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    """Return a list as iCalendar, rendered in batches so that other requests are not blocked."""
    feed = await feeds.find_feed(context)
    calendar = _make_calendar(page_request, context)
    cancelled = await asyncio.to_thread(lambda: [_make_cancelled(row) for row in feed.withdrawn])
    spans = [_make_times(row) for row in feed.rows]
    # Collecting the time zones of thousands of events takes long enough to block the event loop.
    times = [*spans, *[event.times for event in cancelled]]
    parts = [await asyncio.to_thread(ics.begin_calendar, calendar, times)]
    translate = translator(page_request.language)
    async for batch in feeds.build_feed_events(context, feed.rows):
        parts += [ics.write_event(event, feed.sequences[event.id], _mark(event, translate)) for event in batch]
    parts += await asyncio.to_thread(lambda: [ics.write_cancelled(event, calendar) for event in cancelled])
    parts.append(ics.end_calendar())
    return PageResponse(
        await asyncio.to_thread("".join(parts).encode), CALENDAR_TYPE, feed.expires_at, feed.cache_tags,
        headers={"Content-Disposition": 'inline; filename="events.ics"'},
    )  # fmt: skip


async def show_event_calendar(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str], *, shows_locked: bool = False
) -> PageResponse:
    """Return one event as iCalendar; if it was withdrawn recently, its cancellation.

    With `shows_locked`, a protected event is returned with title and time, as in feeds of lists.
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
        row = await feeds.find_withdrawn_event(event_context)
        cancelled = _make_cancelled(row)
        parts = [ics.begin_calendar(calendar, [cancelled.times]), ics.write_cancelled(cancelled, calendar)]
        expires_at = row["withdrawn_at"] + feeds.WITHDRAWN_PERIOD
        tags = cache_tags.tags_for_event(row["id"])
    else:
        event = read.record
        sequences = await feeds.read_sequences(event_context, [event.id])
        title = _mark(event, translator(page_request.language))
        parts = [ics.begin_calendar(calendar, [event]), ics.write_event(event, sequences[event.id], title)]
        expires_at, tags = None, read.cache_tags
    parts.append(ics.end_calendar())
    headers = {"Content-Disposition": 'attachment; filename="event.ics"'}
    return PageResponse("".join(parts), CALENDAR_TYPE, expires_at, tags, headers=headers)


async def _show_locked_event(context: OperationContext, calendar: ics.Calendar) -> PageResponse:
    event = await read_locked_event(context)
    sequences = await feeds.read_sequences(context, [event.id])
    parts = [ics.begin_calendar(calendar, [event]), ics.write_event(event, sequences[event.id]), ics.end_calendar()]
    # The sequence depends on the venues, which tags of a protected event must not name.
    tags = (*cache_tags.tags_for_event(event.id), "venues")
    return PageResponse("".join(parts), CALENDAR_TYPE, None, tags)


def _mark(event: Event, translate: Translate) -> str:
    return mark_title(to_plain_text(event.title), event.event_status, translate)


def _make_calendar(page_request: PageRequest, context: OperationContext) -> ics.Calendar:
    site = context.transaction.site
    cancelled = translator(page_request.language)(N_("Cancelled"))
    return ics.Calendar(_feed_name(page_request, context), _feed_url(page_request, context), site.timezone, cancelled)


def _feed_name(page_request: PageRequest, context: OperationContext) -> str:
    """Return the name of the site, followed by the filters of the feed."""
    names = [entry.name for param in LINKS for entry in page_request.filters.list_named(param) if entry.name]
    names += filter(None, [context.values.get("search", "")])
    return ": ".join(filter(None, (context.transaction.site.name, ", ".join(names))))


def _make_cancelled(row: Row) -> ics.CancelledEvent:
    return ics.CancelledEvent(row["uid"], row["sequence"], row["modified_utc"], _make_times(row))


def _make_times(row: Row) -> ics.Times:
    # Whether a protected event is an all-day event is not public, so it is written with its exact times.
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
    """Return the next events of a list as RSS, Atom or JSON Feed: the next date of each series, unless the request
    asks for all dates or for certain series."""
    values = {HIDE_SUBSEQUENT: "series" not in context.values, **context.values}
    feed = await feeds.find_feed(replace(context, values=values), MAX_FEED_ITEMS, upcoming_only=True)
    site = context.transaction.site
    locale = make_page_locale(page_request.language, site.language, translator(page_request.language))
    items: list[syndication.Item] = []
    async for batch in feeds.build_feed_events(context, feed.rows):
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
    when = make_when(event, locale, zone, long=True)
    return syndication.Item(event, when.text, ics.format_location(event), _mark(event, locale.translate))


async def show_sitemap_index(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    parts = [f"{context.base_url}/sitemap/{number}.xml" for number in range(await sitemap.count_parts(context))]
    return _xml_response(syndication.write_sitemap_index([*parts, f"{context.base_url}/sitemap/terms.xml"]))


async def show_sitemap(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    number = int(path_params["number"])
    if number >= await sitemap.count_parts(context):
        raise errors.no_route()
    first = [(f"{context.base_url}/events/", "")] if number == 0 else []
    urls = first + await sitemap.list_posts(context, number)
    # The period whose dates are listed moves at midnight.
    midnight = next_midnight(context.transaction.now, context.transaction.site.timezone)
    return replace(_xml_response(syndication.write_sitemap(urls)), expires_at=midnight)


async def show_term_sitemap(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    return _xml_response(syndication.write_sitemap(await sitemap.list_terms(context)))


async def show_robots(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    """Keep crawlers out of the endless day and week pages, whose events are on other pages, too."""
    lines = [
        "User-agent: *",
        *[f"Disallow: {path}" for path in DISALLOWED_PATHS],
        f"Disallow: {page_request.canonical_prefix}/",
    ]
    text = "\n".join([*lines, f"Sitemap: {context.base_url}/sitemap.xml", ""])
    return PageResponse(text, "text/plain; charset=utf-8", None, (cache_tags.SITE,))


def _xml_response(text: str) -> PageResponse:
    tags = (cache_tags.SITE, "events", "series", "venues", "organizers", "categories", "tags")
    return PageResponse(text, "application/xml; charset=utf-8", None, tags)


def _feed_url(page_request: PageRequest, context: OperationContext) -> str:
    return page_request.with_query(context.base_url + quote(page_request.request.scope["path"]))


MAX_FEED_ITEMS: Final = 50
DISALLOWED_PATHS: Final = ("/events/day/", "/events/week/", "/events/search/", "/events/list/?", "/embed/", "/*.ics")
FeedWriter = Callable[[syndication.Channel, Sequence[syndication.Item]], str | bytes]
SYNDICATION_FORMATS: Final[dict[str, tuple[FeedWriter, str]]] = {
    "rss": (syndication.write_rss, syndication.RSS_TYPE),
    "atom": (syndication.write_atom, syndication.ATOM_TYPE),
    "json": (syndication.write_json, syndication.JSON_TYPE),
}
FEEDS: Final = (
    PageRoute(r"/events\.ics", show_calendar, CALENDAR_PARAMS, is_page=False, is_feed=True),
    PageRoute(r"/events\.(?P<form>rss|atom|json)", show_syndication_feed, FEED_PARAMS, is_page=False, is_feed=True),
    PageRoute(r"/event/(?P<slug>[^/]+)\.ics", show_event_calendar, is_page=False, kind=EVENTS),
    PageRoute(r"/sitemap\.xml", show_sitemap_index, is_page=False),
    PageRoute(r"/sitemap/(?P<number>\d{1,6})\.xml", show_sitemap, is_page=False, is_feed=True),
    PageRoute(r"/sitemap/terms\.xml", show_term_sitemap, is_page=False, is_feed=True),
    PageRoute(r"/robots\.txt", show_robots, is_page=False),
)

"""The addresses of feeds: .ics of one event and of any filtered list, news of it, and what crawlers read."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import Param
from kalends.feeds import ics, syndication
from kalends.http.language import translator
from kalends.kinds.event_filters import EVENT_FILTERS
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Represented
from kalends.operations import cache_tags, feeds, sitemap
from kalends.operations.context import Call
from kalends.operations.page_filters import LINKS
from kalends.operations.records import read_record
from kalends.store import Row
from kalends.website.handler import PageRoute, Shown, Visit
from kalends.website.models.cards import make_when, venues_of
from kalends.website.models.page_locale import Speech, make_speech

CALENDAR_TYPE: Final = "text/calendar; charset=utf-8"
# The parameters of a list, without those that only say which part of it and in which order.
NOT_OF_FEEDS: Final = ("status", "order", "orderby", "cursor")
FEED_PARAMS: Final[tuple[Param, ...]] = tuple(
    row.param for row in EVENT_FILTERS if row.param.name not in NOT_OF_FEEDS
)


async def show_calendar(visit: Visit, call: Call, _: dict[str, str]) -> Shown:
    """The .ics of a list, made batch by batch so that others get their turn."""
    found = await feeds.find_feed(call)
    calendar = _calendar(visit, call)
    withdrawn = [_withdrawn(row) for row in found.withdrawn]
    spans = [_times(row) for row in found.rows]
    # The time zones of thousands of events take a while to find.
    times = [*spans, *[event.times for event in withdrawn]]
    parts = [await asyncio.to_thread(ics.begin_calendar, calendar, times)]
    async for batch in feeds.represent_feed(call, found.rows):
        parts += [ics.write_event(record, found.sequences[record["id"]]) for record in batch]
    parts += [ics.write_cancelled(event, calendar) for event in withdrawn]
    parts.append(ics.end_calendar())
    return Shown(
        await asyncio.to_thread("".join(parts).encode), CALENDAR_TYPE, found.until, found.keys,
        headers={"Content-Disposition": 'inline; filename="events.ics"'},
    )  # fmt: skip


async def show_event_calendar(visit: Visit, call: Call, address: dict[str, str]) -> Shown:
    """The .ics of one event; of one that was withdrawn lately, that it is off."""
    asked = replace(call, slug=address["slug"])
    calendar = _calendar(visit, call)
    try:
        outcome = await read_record(EVENTS, asked)
    except ApiError as refusal:
        if refusal.code == "event-password-protected":
            raise
        row = await feeds.find_withdrawn_one(asked)
        event = _withdrawn(row)
        parts = [ics.begin_calendar(calendar, [event.times]), ics.write_cancelled(event, calendar)]
        until, named = row["withdrawn_at"] + feeds.REMEMBERED, cache_tags.of_event(call.transaction.site, row["id"])
    else:
        record = outcome.body
        sequences = await feeds.read_sequences(asked, [record["id"]])
        parts = [ics.begin_calendar(calendar, [ics.read_times(record)])]
        parts.append(ics.write_event(record, sequences[record["id"]]))
        until, named = None, outcome.keys
    parts.append(ics.end_calendar())
    headers = {"Content-Disposition": 'attachment; filename="event.ics"'}
    return Shown("".join(parts), CALENDAR_TYPE, until, named, headers=headers)


def _calendar(visit: Visit, call: Call) -> ics.Calendar:
    site = call.transaction.site
    cancelled = translator(visit.language)(N_("Cancelled"))
    return ics.Calendar(_name(visit, call), _own_url(visit, call), site.timezone, cancelled)


def _name(visit: Visit, call: Call) -> str:
    """The site, and what the feed has of it."""
    names = [entry.name for param in LINKS for entry in visit.filters.named_by(param) if entry.name]
    names += filter(None, [call.values.get("search", "")])
    return ": ".join(filter(None, (call.transaction.site.name, ", ".join(names))))


def _withdrawn(row: Row) -> ics.CancelledEvent:
    return ics.CancelledEvent(str(row["uid"]), row["sequence"], row["modified_utc"], _times(row))


def _times(row: Row) -> ics.Times:
    # Whether a protected event lasts whole days is not told: it is written from its first to its last second.
    shut = row.get("password_hash") is not None
    return ics.Times(
        start_local=row["start_local"],
        end_local=row["end_local"],
        start_utc=row["start_utc"],
        end_utc=row["end_utc"],
        timezone=row["timezone"],
        all_day=row["all_day"] and not shut,
    )


async def show_news(visit: Visit, call: Call, address: dict[str, str]) -> Shown:
    """RSS, Atom and JSON Feed: the next events of a list."""
    found = await feeds.find_feed(call, MOST_NEWS, coming_only=True)
    site = call.transaction.site
    speech = make_speech(visit.language, site.language, translator(visit.language))
    items: list[syndication.Item] = []
    async for batch in feeds.represent_feed(call, found.rows):
        items += [_item(record, speech, site.timezone) for record in batch]
    channel = syndication.Channel(
        _name(visit, call), f"{call.base_url}/events/", _own_url(visit, call), visit.language
    )
    write, media_type = NEWS[address["form"]]
    return Shown(write(channel, items), media_type, found.until, found.keys)


def _item(record: Represented, speech: Speech, zone: str) -> syndication.Item:
    when = make_when(record, speech, zone, long=True)
    return syndication.Item(record, when.text, "; ".join(map(ics.format_address, venues_of(record))))


async def show_sitemap_index(visit: Visit, call: Call, _: dict[str, str]) -> Shown:
    parts = [f"{call.base_url}/sitemap/{number}.xml" for number in range(await sitemap.count_parts(call))]
    return _xml(call, syndication.write_sitemap_index([*parts, f"{call.base_url}/sitemap/terms.xml"]))


async def show_sitemap(visit: Visit, call: Call, address: dict[str, str]) -> Shown:
    number = int(address["number"])
    if number >= await sitemap.count_parts(call):
        raise errors.no_route()
    first = [(f"{call.base_url}/events/", "")] if number == 0 else []
    return _xml(call, syndication.write_sitemap(first + await sitemap.list_posts(call, number)))


async def show_sitemap_of_terms(visit: Visit, call: Call, _: dict[str, str]) -> Shown:
    return _xml(call, syndication.write_sitemap(await sitemap.list_terms(call)))


async def show_robots(visit: Visit, call: Call, _: dict[str, str]) -> Shown:
    """Days and weeks never end, and what they show is on other pages too."""
    lines = ["User-agent: *", *[f"Disallow: {path}" for path in UNWANTED], f"Disallow: {visit.home}/"]
    text = "\n".join([*lines, f"Sitemap: {call.base_url}/sitemap.xml", ""])
    return Shown(text, "text/plain; charset=utf-8", None, (f"s{call.transaction.site.id}",))


def _xml(call: Call, text: str) -> Shown:
    site_id = call.transaction.site.id
    kinds = ("events", "venues", "organizers", "categories", "tags")
    named = (f"s{site_id}", *[f"s{site_id}-{kind}" for kind in kinds])
    return Shown(text, "application/xml; charset=utf-8", None, named)


def _own_url(visit: Visit, call: Call) -> str:
    return visit.with_query(call.base_url + quote(visit.request.scope["path"]))


MOST_NEWS: Final = 50
UNWANTED: Final = ("/events/day/", "/events/week/", "/events/search/", "/events/list/?", "/embed/", "/*.ics")
Write = Callable[[syndication.Channel, Sequence[syndication.Item]], str | bytes]
NEWS: Final[dict[str, tuple[Write, str]]] = {
    "rss": (syndication.write_rss, syndication.RSS_TYPE),
    "atom": (syndication.write_atom, syndication.ATOM_TYPE),
    "json": (syndication.write_json, syndication.JSON_TYPE),
}
FEEDS: Final = (
    PageRoute(r"/events\.ics", show_calendar, FEED_PARAMS, is_page=False, is_feed=True),
    PageRoute(r"/events\.(?P<form>rss|atom|json)", show_news, FEED_PARAMS, is_page=False, is_feed=True),
    PageRoute(r"/event/(?P<slug>[^/]+)\.ics", show_event_calendar, is_page=False, kind=EVENTS),
    PageRoute(r"/sitemap\.xml", show_sitemap_index, is_page=False),
    PageRoute(r"/sitemap/(?P<number>\d{1,6})\.xml", show_sitemap, is_page=False, is_feed=True),
    PageRoute(r"/sitemap/terms\.xml", show_sitemap_of_terms, is_page=False, is_feed=True),
    PageRoute(r"/robots\.txt", show_robots, is_page=False),
)

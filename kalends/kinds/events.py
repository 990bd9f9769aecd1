"""Events: the calendar entries."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import LiteralString

import orjson

from kalends.core import credentials, errors, params, times
from kalends.core.cost import NO_CURRENCY, Currency, format_cost
from kalends.core.errors import InvalidValue
from kalends.core.event_states import MAX_REASON_LENGTH, SCHEDULED, STATES
from kalends.core.html.sanitize import clean_html, clean_plain, clean_title, fold
from kalends.core.params import BOOLEAN, DATE_TIME, LINKED_RECORDS, WEBSITE, ZONE, param
from kalends.core.record_types import Event, SeriesReference, Term
from kalends.core.slugs import make_slug
from kalends.core.times import DateInput, DateTimeInput, Span
from kalends.kinds.event_list.dates import expires_at_midnight
from kalends.kinds.event_list.filters import EVENT_FILTERS, PASSWORD_GUARDED_FILTERS
from kalends.kinds.event_list.order import build_next_cursor, order_events
from kalends.kinds.event_list.queries import (
    build_event_page_and_total_query,
    build_event_page_query,
    build_event_total_query,
)
from kalends.kinds.event_passwords import HASHES
from kalends.kinds.image_json import serialize_image
from kalends.kinds.json_ld import describe_event
from kalends.kinds.kind import Columns, JsonObject, Kind, Link, Reads, RenderContext, Values, WriteContext, Writes
from kalends.kinds.linked_records import LinkedRecord
from kalends.kinds.posts import (
    DESCRIPTION,
    POST_COLUMNS,
    build_html,
    build_post_columns,
    build_post_image,
    build_post_url,
    build_search_text,
    post_fields,
    refer_to_images,
    serialize_post,
)
from kalends.store import Row
from kalends.store.series import decode_parts

FLAGS: tuple[LiteralString, ...] = ("show_map", "show_map_link", "hide_from_listings", "sticky", "featured")
STATE_COLUMNS: tuple[LiteralString, ...] = ("event_status", "status_reason", "online_url")
CURRENCY_COLUMNS: tuple[LiteralString, ...] = ("currency_symbol", "currency_code", "currency_position")
# Columns that a write sets to the argument as it is.
PLAIN_COLUMNS: tuple[LiteralString, ...] = (
    *(*FLAGS, *STATE_COLUMNS, *CURRENCY_COLUMNS, "excerpt", "cost", "website", "ticket_url"),
)
LOCAL_TIME_COLUMNS: tuple[LiteralString, ...] = (
    "start_local",
    "end_local",
    "start_fold",
    "end_fold",
    "timezone",
    "all_day",
)
NO_COST = {"currency_symbol": "", "currency_code": "", "currency_position": "", "values": []}


def build_event(row: Row, context: RenderContext) -> Event:
    linked, site = context.linked, context.site
    currency = Currency(row["currency_symbol"], row["currency_code"], row["currency_position"])
    cost, cost_details = format_cost(row["cost"], site.currency_symbol, site.currency_position, currency)
    event = Event(
        id=row["id"],
        author=row["author_id"],
        status=row["status"],
        date_utc=row["published_at"],
        modified_utc=row["modified_utc"],
        slug=row["slug"],
        url=build_post_url(row, context, "event"),
        description=build_html(row, "description", context),
        image=build_post_image(row, context),
        uid=row["uid"],
        title=row["title"],
        excerpt=build_html(row, "excerpt", context),
        timezone=row["timezone"],
        all_day=row["all_day"],
        start_local=row["start_local"],
        end_local=row["end_local"],
        start_utc=row["start_utc"],
        end_utc=row["end_utc"],
        cost=cost,
        cost_details=cost_details,
        currency=currency,
        website=row["website"],
        ticket_url=row["ticket_url"],
        show_map=row["show_map"],
        show_map_link=row["show_map_link"],
        hide_from_listings=row["hide_from_listings"],
        sticky=row["sticky"],
        featured=row["featured"],
        categories=_sort_terms(_select_linked(linked.categories, row["category_ids"])),
        tags=_sort_terms(_select_linked(linked.tags, row["tag_ids"])),
        venues=tuple(_select_linked(linked.venues, row["venue_ids"])),
        organizers=tuple(_select_linked(linked.organizers, row["organizer_ids"])),
        event_status=row["event_status"],
        status_reason=row["status_reason"],
        online_url=row["online_url"],
        feed_guid=row.get("feed_guid") or "",
        series=_build_series_reference(row, context),
    )
    return hide_protected_attributes(event) if event.id in context.locked_ids else event


def _build_series_reference(row: Row, context: RenderContext) -> SeriesReference | None:
    """Return the series of an event; None if the event is public and the series is not."""
    if row["series_id"] is None:
        return None
    facts = orjson.loads(row["series_facts"])
    if row["status"] == "publish" and facts["status"] != "publish":
        return None
    return SeriesReference(
        id=row["series_id"],
        slug=facts["slug"],
        url=f"{context.base_url}/series/{facts['slug']}/",
        uid=facts["uid"],
        title=facts["title"],
        parts=decode_parts(facts["parts"]),
        slot=row["slot"],
        own_fields=tuple(row["own_fields"] or ()),
    )


def hide_protected_attributes(event: Event) -> Event:
    """Return the public part of a protected event without its password: title, dates and URLs (behaviour 6.3)."""
    return replace(
        event,
        description="",
        excerpt="",
        image=None,
        all_day=False,
        cost="",
        cost_details=NO_COST,
        currency=NO_CURRENCY,
        website="",
        ticket_url="",
        show_map=False,
        show_map_link=False,
        hide_from_listings=False,
        sticky=False,
        featured=False,
        categories=(),
        tags=(),
        venues=(),
        organizers=(),
        event_status=SCHEDULED,
        status_reason="",
        online_url="",
        series=None,
        is_locked=True,
    )


def serialize_event(event: Event, context: RenderContext) -> JsonObject:
    linked = context.linked
    venues = [linked.venues[venue.id].json for venue in event.venues]
    record: JsonObject = {
        **serialize_post(event, context),
        "rest_url": f"{context.api_url}/events/{event.id}",
        "title": event.title,
        "description": event.description,
        "excerpt": event.excerpt,
        "slug": event.slug,
        "image": serialize_image(event.image) if event.image else False,
        "all_day": event.all_day,
        "start_date": times.format_datetime(event.start_local),
        "start_date_details": times.datetime_parts(event.start_local),
        "end_date": times.format_datetime(event.end_local),
        "end_date_details": times.datetime_parts(event.end_local),
        "utc_start_date": times.format_datetime(event.start_utc),
        "utc_start_date_details": times.datetime_parts(event.start_utc),
        "utc_end_date": times.format_datetime(event.end_utc),
        "utc_end_date_details": times.datetime_parts(event.end_utc),
        "timezone": event.timezone,
        "timezone_abbr": times.abbreviation(event.start_utc, event.timezone),
        "cost": event.cost,
        "cost_details": event.cost_details,
        "website": event.website or event.url,
        "show_map": event.show_map,
        "show_map_link": event.show_map_link,
        "hide_from_listings": event.hide_from_listings,
        "sticky": event.sticky,
        "featured": event.featured,
        "categories": [linked.categories[term.id].json for term in event.categories],
        "tags": [linked.tags[term.id].json for term in event.tags],
        # Existing clients expect an object for one venue, [] for none; several are a list.
        "venue": venues[0] if len(venues) == 1 else venues,
        "organizer": [linked.organizers[organizer.id].json for organizer in event.organizers],
        "custom_fields": [],
        "ticket_url": event.ticket_url,
        "event_status": event.event_status,
        "status_reason": event.status_reason,
        "online_url": event.online_url,
        "currency_symbol": event.currency.symbol,
        "currency_code": event.currency.code,
        "currency_position": event.currency.position,
        "uid": event.uid,
        "series": serialize_series_reference(event.series, context) if event.series else None,
    }
    if event.is_locked:
        # The API writes null for the state and the booleans that a password protects, and no website in place of the
        # URL.
        record.update({"all_day": None, "website": "", "event_status": None, **dict.fromkeys(FLAGS)})
    return record


def serialize_series_reference(series: SeriesReference, context: RenderContext) -> JsonObject:
    return {
        "id": series.id,
        "slug": series.slug,
        "url": series.url,
        "rest_url": f"{context.extension_url}/series/{series.id}",
        "slot": times.format_datetime(series.slot),
        "own": list(series.own_fields),
    }


def _select_linked[R](linked: Mapping[int, LinkedRecord[R]], ids: list[int]) -> list[R]:
    """Return the linked records that the caller may see, in the order of the event."""
    return [linked[entry].record for entry in ids if entry in linked]


def _sort_terms(terms: list[Term]) -> tuple[Term, ...]:
    return tuple(sorted(terms, key=lambda term: (_fold_cached(term.name), term.id)))


# Sites have few terms, and every page repeats their names.
_fold_cached = lru_cache(maxsize=4096)(fold)


async def build_event_columns(context: WriteContext) -> Values:
    arguments, row = context.arguments, context.row
    values = await build_post_columns(context, "events", "title", allow_empty_slug=True)
    for name in PLAIN_COLUMNS:
        if name in arguments:
            values[name] = arguments[name]
    if "excerpt" in arguments:
        values["excerpt"] = await refer_to_images(context.transaction, arguments["excerpt"])
    if "password_hash" in arguments:  # Not an API parameter: a restore passes the stored hash.
        values["password_hash"] = arguments["password_hash"]
    if "new_password" in arguments:
        password = arguments["new_password"]
        values["password_hash"] = await HASHES.compute_and_add(context.site.secret, password) if password else None
    if row is None:
        values["uid"] = credentials.new_uid()
    if row is None or {"start_date", "end_date", "timezone", "all_day"} & set(arguments):
        values.update(build_time_columns(context))
    values["search_text"] = build_search_text(values, row, ("title", "excerpt", "description"))
    return values


def build_time_columns(context: WriteContext) -> Values:
    """Build the time columns: wall times, time zone and instants. Omitted parameters keep their stored values."""
    arguments, row = context.arguments, context.row
    zone = (arguments["timezone"] or context.site.timezone) if "timezone" in arguments else None
    zone = zone or (row["timezone"] if row else context.site.timezone)
    start: DateInput = arguments.get("start_date") or _read_stored_time(row, "start", zone)
    end: DateInput = arguments.get("end_date") or _read_stored_time(row, "end", zone)
    try:
        now = context.transaction.now
        start, end = times.make_absolute(start, now, zone), times.make_absolute(end, now, zone)
        all_day = _is_all_day(context, start, end, zone)
        span: Span = times.event_span(start, end, zone, all_day)
        # The very first instant of all is the driver's way to say "never".
        first = datetime(1, 1, 1)
        if first in (span.start.wall, span.start.utc.replace(tzinfo=None)):
            raise InvalidValue("must be a date between the years 1 and {last}.", last=times.LAST_YEAR)
    except InvalidValue as error:
        name = "start_date" if "start_date" in arguments and "end_date" not in arguments else "end_date"
        raise errors.invalid_params({name: errors.for_param(name, error.message)}) from error
    return {
        "timezone": zone,
        "all_day": all_day,
        "start_local": span.start.wall,
        "end_local": span.end.wall,
        "start_fold": span.start.fold,
        "end_fold": span.end.fold,
        "start_utc": span.start.utc,
        "end_utc": span.end.utc,
    }


def _is_all_day(context: WriteContext, start: DateTimeInput, end: DateTimeInput, zone: str) -> bool:
    """Return whether the event lasts all day after the write.

    An update that sends hours without `all_day` makes the event one of hours. The first and the last second of a day
    are no hours: a client that writes back what it read changes nothing.
    """
    arguments, row = context.arguments, context.row
    if "all_day" in arguments or row is None or not row["all_day"]:
        return bool(arguments.get("all_day", row is not None and row["all_day"]))
    sends_hours = ("start_date" in arguments and not times.is_first_second(start, zone)) or (
        "end_date" in arguments and not times.is_last_second(end, zone)
    )
    return not sends_hours


def _read_stored_time(row: Row | None, side: str, zone: str) -> DateTimeInput:
    """Return a stored wall time. In its own time zone it keeps its instant, even in a repeated hour."""
    if row is None:
        raise AssertionError("a new event without its dates")
    wall = row[f"{side}_local"]
    offset: timedelta | None = times.offset_of(row[f"{side}_utc"], zone) if zone == row["timezone"] else None
    return DateTimeInput(wall, offset, False)


def _clean_slug(value: str, limit: int = 2000) -> str:
    if len(value) > limit:
        raise InvalidValue("must have at most 2,000 characters.")
    return make_slug(value)


def _clean_reason(value: str, limit: int = MAX_REASON_LENGTH) -> str:
    return clean_plain(value, limit)


def _clean_excerpt(value: str, limit: int = 64_000) -> str:
    return clean_html(value, limit)


EVENTS = Kind(
    name="events",
    singular="event",
    title_param="title",
    fields=(
        param("title", params.text(clean_title, allow_empty=False), "The event title", required=True),
        param("start_date", DATE_TIME, "The start, in the event's time zone", required=True),
        param("end_date", DATE_TIME, "The end, in the event's time zone", required=True),
        *post_fields(),
        DESCRIPTION,
        param("slug", params.text(_clean_slug), "The event slug"),
        param("excerpt", params.text(_clean_excerpt), "The event excerpt"),
        param("timezone", ZONE, "The event time zone; by default the site's"),
        param("all_day", BOOLEAN, "Whether the event lasts the whole day", default=False),
        param("cost", params.COST, "The event cost"),
        param("website", WEBSITE, "The event website URL"),
        param("show_map", BOOLEAN, "Whether to show a map"),
        param("show_map_link", BOOLEAN, "Whether to show a map link"),
        param("hide_from_listings", BOOLEAN, "Whether to hide the event in lists"),
        param("sticky", BOOLEAN, "Whether the event is sticky in the calendar view"),
        param("featured", BOOLEAN, "Whether the event is featured"),
        param("categories", params.terms(allow_empty=True), "Category IDs, slugs or names"),
        param("tags", params.terms(allow_empty=True), "Tag IDs, slugs or names"),
        param("venue", LINKED_RECORDS, "Venue IDs or venue data"),
        param("organizer", LINKED_RECORDS, "Organizer IDs or organizer data"),
        param("ticket_url", WEBSITE, "URL where tickets are sold", is_extension=True),
        param(
            "event_status",
            params.one_of(*STATES, null_value=SCHEDULED),
            "Whether the event takes place as announced",
            default=SCHEDULED,
            is_extension=True,
        ),
        param("status_reason", params.text(_clean_reason), "Why it does not, as plain text", is_extension=True),
        param("online_url", WEBSITE, "URL where one can take part online", is_extension=True),
        param(
            "currency_symbol", params.CURRENCY_SYMBOL, "The currency symbol; by default the site's", is_extension=True
        ),
        param("currency_code", params.CURRENCY_CODE, "The currency code; by default the site's", is_extension=True),
        param(
            "currency_position",
            params.CURRENCY_POSITION,
            "Whether the symbol is before or after the amount; by default as on the site",
            is_extension=True,
        ),
        param("new_password", params.NEW_PASSWORD, "Sets the event password; empty clears it", is_extension=True),
    ),
    filters=EVENT_FILTERS,
    reads=Reads(
        columns=POST_COLUMNS
        + Columns(
            *(
                "uid",
                "feed_guid",
                "excerpt",
                *LOCAL_TIME_COLUMNS,
                "start_utc",
                "end_utc",
                "cost",
                "website",
                "ticket_url",
            ),
            *(*FLAGS, *STATE_COLUMNS, *CURRENCY_COLUMNS, "password_hash", "series_id", "slot", "own_fields"),
            computed={
                "series_facts": """CASE WHEN r.series_id IS NOT NULL THEN (
                    SELECT jsonb_build_object('uid', s.uid, 'slug', s.slug, 'status', s.status, 'title', s.title,
                        'parts', s.parts::text)::text
                    FROM series s WHERE s.site_id = r.site_id AND s.id = r.series_id) END""",
                "venue_ids": """ARRAY(SELECT l.venue_id FROM event_venues l
                    WHERE l.site_id = r.site_id AND l.event_id = r.id ORDER BY l.position)""",
                "organizer_ids": """ARRAY(SELECT l.organizer_id FROM event_organizers l
                    WHERE l.site_id = r.site_id AND l.event_id = r.id ORDER BY l.position)""",
                "category_ids": """ARRAY(SELECT l.category_id FROM event_categories l
                    WHERE l.site_id = r.site_id AND l.event_id = r.id ORDER BY l.position)""",
                "tag_ids": """ARRAY(SELECT l.tag_id FROM event_tags l
                    WHERE l.site_id = r.site_id AND l.event_id = r.id ORDER BY l.position)""",
            },
        ),
        from_row=build_event,
        to_json=serialize_event,
        order=order_events,
        page_query=build_event_page_query,
        total_query=build_event_total_query,
        page_and_total_query=build_event_page_and_total_query,
        next_cursor=build_next_cursor,
        expires_at=expires_at_midnight,
        password_guarded_filters=PASSWORD_GUARDED_FILTERS,
        to_json_ld=describe_event,
    ),
    writes=Writes(
        to_columns=build_event_columns,
        passthrough_columns=("title", "description", *PLAIN_COLUMNS),
        sequence_columns=frozenset(
            {*LOCAL_TIME_COLUMNS, *STATE_COLUMNS, "start_utc", "end_utc", "status", "venue_ids"}
        ),
    ),
    links=(
        Link("venue", "venues", "event_venues", "venue_id"),
        Link("organizer", "organizers", "event_organizers", "organizer_id"),
        Link("categories", "categories", "event_categories", "category_id"),
        Link("tags", "tags", "event_tags", "tag_id"),
    ),
    is_event=True,
)

"""WordPress-shaped records: typed records as JSON, and kinds with WordPress list parameters.

Functions take each record twice: in typed form and as the stored row. Users who may edit the record also get the
row's texts as `raw`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from html import escape
from typing import Any, Final, LiteralString

from kalends.calendar.access import permissions
from kalends.calendar.kinds.event_list import ANY_DATE
from kalends.calendar.kinds.event_window import ORDERS as EVENT_ORDERS
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import (
    Clause,
    ClauseBuilder,
    Filter,
    JsonObject,
    Kind,
    LinkCondition,
    ListQuery,
    TextCondition,
    build_page_and_total_query,
    build_page_query,
    value_clause,
)
from kalends.calendar.kinds.list_queries import build_event_page_query
from kalends.calendar.kinds.media_kind import MEDIA
from kalends.calendar.kinds.organizers import ORGANIZERS
from kalends.calendar.kinds.terms import CATEGORIES, ORDERS as TERM_ORDERS, TAGS
from kalends.calendar.kinds.venues import VENUES
from kalends.calendar.rules.record_types import CANCELLED, POSTPONED, Event, MediaItem, Organizer, Post, Term, Venue
from kalends.core import errors, params, times
from kalends.core.date_forms import DateInput, RelativeDate, make_absolute
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.html_text import to_paragraphs
from kalends.core.image_types import FULL
from kalends.core.params import Type, param
from kalends.core.slugs import normalize_lookup
from kalends.store import Row
from kalends.store.sites import Site
from kalends.store.sql import Sql

CURIES: Final = [{"name": "wp", "href": "https://api.w.org/{rel}", "templated": True}]
# Event statuses in The Events Calendar, in its spelling.
EVENT_STATUSES: Final = {CANCELLED: "canceled", POSTPONED: "postponed"}


@dataclass(frozen=True, slots=True)
class ShapeContext:
    site: Site
    core_url: str  # URL of the `wp/v2` namespace
    is_edit: bool = False  # whether to add `raw` texts


# Posts ---------------------------------------------------------------------------------------


def shape_event(event: Event, row: Row, context: ShapeContext) -> JsonObject:
    terms = [("post_tag", "tags"), ("tribe_events_cat", "tribe_events_cat")]
    links = {
        "wp:term": [
            {"taxonomy": taxonomy, "embeddable": True, "href": f"{context.core_url}/{base}?post={event.id}"}
            for taxonomy, base in terms
        ]
    }
    is_protected = row["password_hash"] is not None
    return {
        **_shape_post(event, row, context, "tribe_events", event.title),
        "content": {**_text(event.description, row["description"], context), "protected": is_protected},
        "excerpt": {**_text(event.excerpt, row["excerpt"], context), "protected": is_protected},
        "meta": {} if event.is_locked else _event_meta(event, row),
        "tags": [tag.id for tag in event.tags],
        "tribe_events_cat": [category.id for category in event.categories],
        "_links": _post_links(event, context, "tribe_events", links),
    }


def shape_venue(venue: Venue, row: Row, context: ShapeContext) -> JsonObject:
    return {
        **_shape_post(venue, row, context, "tribe_venue", venue.name),
        "meta": {
            "_VenueAddress": venue.address,
            "_VenueCity": venue.city,
            "_VenueCountry": venue.country,
            "_VenueProvince": venue.province,
            "_VenueState": venue.state,
            "_VenueZip": venue.zip,
            "_VenuePhone": venue.phone,
            "_VenueURL": venue.website,
            "_VenueStateProvince": venue.stateprovince,
            "_VenueLat": _coordinate(venue.latitude),
            "_VenueLng": _coordinate(venue.longitude),
            "_VenueShowMap": venue.show_map,
            "_VenueShowMapLink": venue.show_map_link,
        },
        "_links": _post_links(venue, context, "tribe_venue", {}),
    }


def shape_organizer(organizer: Organizer, row: Row, context: ShapeContext) -> JsonObject:
    return {
        **_shape_post(organizer, row, context, "tribe_organizer", organizer.name),
        "meta": {
            "_OrganizerEmail": organizer.email,
            "_OrganizerPhone": organizer.phone,
            "_OrganizerWebsite": organizer.website,
        },
        "_links": _post_links(organizer, context, "tribe_organizer", {}),
    }


def _shape_post(post: Post, row: Row, context: ShapeContext, post_type: str, title: str) -> JsonObject:
    """Return the keys that every post has. Only events have an excerpt and can be protected."""
    return {
        **_shape_dates(post.id, post.date_utc, post.modified_utc, post.url, context),
        "slug": post.slug,
        "status": post.status,
        "type": post_type,
        "link": post.url,
        "title": _text(title, row["title"], context),
        "content": {**_text(post.description, row["description"], context), "protected": False},
        "excerpt": {**_text("", "", context), "protected": False},
        "author": post.author or 0,
        "featured_media": post.image.id if post.image else 0,
        "template": "",
    }


def _shape_dates(
    record_id: int, date_utc: datetime, modified_utc: datetime, address: str, context: ShapeContext
) -> JsonObject:
    zone = context.site.timezone
    return {
        "id": record_id,
        "date": _iso(times.in_zone(date_utc, zone)),
        "date_gmt": _iso(date_utc),
        "guid": _text(address, address, context),
        "modified": _iso(times.in_zone(modified_utc, zone)),
        "modified_gmt": _iso(modified_utc),
    }


def _event_meta(event: Event, row: Row) -> JsonObject:
    status = EVENT_STATUSES.get(event.event_status, "")  # empty for statuses that The Events Calendar lacks
    return {
        "_EventAllDay": event.all_day,
        "_EventTimezone": event.timezone,
        "_EventStartDate": times.format_datetime(event.start_local),
        "_EventEndDate": times.format_datetime(event.end_local),
        "_EventStartDateUTC": times.format_datetime(event.start_utc),
        "_EventEndDateUTC": times.format_datetime(event.end_utc),
        "_EventShowMap": event.show_map,
        "_EventShowMapLink": event.show_map_link,
        "_EventURL": event.website,
        "_EventCost": row["cost"],
        "_EventCurrencySymbol": event.cost_details["currency_symbol"],
        "_EventCurrencyCode": event.cost_details["currency_code"],
        "_EventCurrencyPosition": event.cost_details["currency_position"],
        "_EventOrganizerID": [organizer.id for organizer in event.organizers],
        "_EventVenueID": [venue.id for venue in event.venues],
        "_tribe_events_status": status,
        "_tribe_events_status_reason": event.status_reason if status else "",
    }


def _post_links(post: Post, context: ShapeContext, post_type: str, more: Mapping[str, Any]) -> JsonObject:
    core_url = context.core_url
    links: JsonObject = {
        **_record_links(f"{core_url}/{post_type}", post.id),
        "about": [{"href": f"{core_url}/types/{post_type}"}],
    }
    if post.author:
        links["author"] = [{"embeddable": True, "href": f"{core_url}/users/{post.author}"}]
    if post.image:
        links["wp:featuredmedia"] = [{"embeddable": True, "href": f"{core_url}/media/{post.image.id}"}]
    return {**links, **more, "curies": CURIES}


# Terms and images ----------------------------------------------------------------------------


def shape_category(term: Term, _: object, context: ShapeContext) -> JsonObject:
    collection = f"{context.core_url}/tribe_events_cat"
    up = {"up": [{"embeddable": True, "href": f"{collection}/{term.parent}"}]} if term.parent else {}
    links = _term_links(term, context, "tribe_events_cat", up)
    return {**_shape_term(term, "tribe_events_cat"), "parent": term.parent, "meta": [], "_links": links}


def shape_tag(term: Term, _: object, context: ShapeContext) -> JsonObject:
    return {**_shape_term(term, "post_tag"), "meta": [], "_links": _term_links(term, context, "tags", {})}


def _shape_term(term: Term, taxonomy: str) -> JsonObject:
    return {
        "id": term.id,
        "count": term.count,
        "description": term.description,
        "link": term.url,
        "name": term.name,
        "slug": term.slug,
        "taxonomy": taxonomy,
    }


def _term_links(term: Term, context: ShapeContext, base: str, more: Mapping[str, Any]) -> JsonObject:
    events = f"{context.core_url}/tribe_events?{base}={term.id}"
    return {
        **_record_links(f"{context.core_url}/{base}", term.id),
        **more,
        "wp:post_type": [{"href": events}],
        "curies": CURIES,
    }


def shape_media(item: MediaItem, row: Row, context: ShapeContext) -> JsonObject:
    links: JsonObject = {
        **_record_links(f"{context.core_url}/media", item.id),
        "about": [{"href": f"{context.core_url}/types/attachment"}],
    }
    if item.author:
        links["author"] = [{"embeddable": True, "href": f"{context.core_url}/users/{item.author}"}]
    return {
        **_shape_dates(item.id, item.date_utc, item.modified_utc, item.url, context),
        "slug": _file_name(item.url).partition(".")[0],
        "status": "inherit",
        "type": "attachment",
        "link": item.url,
        "title": _text(escape(item.title, quote=False), row["title"], context),
        "author": item.author or 0,
        "featured_media": 0,
        "template": "",
        "meta": {},
        "description": _text("", "", context),
        "caption": _text(to_paragraphs(item.caption), row["caption"], context),
        "alt_text": item.alt_text,
        "media_type": "image",
        "mime_type": item.mime_type,
        "media_details": _media_details(item),
        "post": None,
        "source_url": item.url,
        "_links": links,
    }


def _media_details(item: MediaItem) -> JsonObject:
    sizes = {name: _shape_size(size, item) for name, size in item.sizes.items() if "url" in size}
    full = {"url": item.url, "width": item.width, "height": item.height}
    return {
        "width": item.width,
        "height": item.height,
        "file": _file_name(item.url),
        "filesize": item.filesize,
        "sizes": {**sizes, FULL: _shape_size(full, item)},
        "image_meta": {},
    }


def _shape_size(size: Mapping[str, Any], item: MediaItem) -> JsonObject:
    """Return an image size. A size made by another system may have only a URL."""
    shape = {
        "file": _file_name(size["url"]),
        "width": size.get("width", 0),
        "height": size.get("height", 0),
        "mime_type": size.get("mime-type", item.mime_type),
        "source_url": size["url"],
    }
    return {**shape, "filesize": size["filesize"]} if "filesize" in size else shape


# Parts ---------------------------------------------------------------------------------------


def _text(rendered: str, raw: str, context: ShapeContext) -> JsonObject:
    return {"raw": raw, "rendered": rendered} if context.is_edit else {"rendered": rendered}


def _record_links(collection: str, record_id: int) -> JsonObject:
    return {"self": [{"href": f"{collection}/{record_id}"}], "collection": [{"href": collection}]}


def _iso(value: datetime) -> str:
    return times.format_datetime(value).replace(" ", "T")


def _coordinate(degrees: float | None) -> str:
    return "" if degrees is None else f"{degrees:.10g}"


def _file_name(url: str) -> str:
    return url.rpartition("/")[2]


# Filters and sort orders per kind in core route (`wp/v2`) lists.

MAX_PER_PAGE: Final = 100
# Filters whose `wp/v2` names differ from the API's names.
NAMES: Final[Mapping[LiteralString, LiteralString]] = {"categories": "tribe_events_cat"}
MAX_SLUGS: Final = 100
# `orderby` values and their columns.
POST_ORDERS: Final[Mapping[str, LiteralString]] = {
    "date": "r.published_at",
    "modified": "r.modified_utc",
    "title": "r.title",
    "id": "r.id",
    "slug": "r.slug",
    "author": "r.author_id",
}
MEDIA_ORDERS: Final[Mapping[str, LiteralString]] = {
    **{name: column for name, column in POST_ORDERS.items() if name != "slug"},
    "date": "r.added_at",
}


def _read_slugs(value: object) -> list[str]:
    slugs = [str(entry) for entry in params.read_list(value)]
    if len(slugs) > MAX_SLUGS:
        raise InvalidValue("must have at most {maximum} slugs.", maximum=MAX_SLUGS)
    return [normalize_lookup(slug) for slug in slugs]


SLUGS: Final = Type({"type": "array", "items": {"type": "string"}}, _read_slugs, accepts_lists=True)


def _published(name: str, column: LiteralString, operator: LiteralString) -> ClauseBuilder:
    async def clause(value: DateInput, query: ListQuery) -> Clause:
        zone = query.site.timezone
        try:
            absolute = make_absolute(value, query.transaction.now, zone)
            return Sql(column + " " + operator + " ?", times.to_utc(absolute, zone))
        except (InvalidValue, OverflowError) as error:
            raise errors.invalid(
                name, "must be a date between the years 1 and {last}.", last=times.LAST_YEAR
            ) from error

    return clause


def _ignore_unknown(clause: ClauseBuilder) -> ClauseBuilder:
    """Return a filter that ignores unknown records instead of rejecting them; if all are unknown, nothing matches."""

    async def build(value: Any, query: ListQuery) -> Clause:
        try:
            return await clause(value, query)
        except ApiError:
            known = [entry for entry in value if await _is_known(entry, query)] if isinstance(value, list) else []
            return await clause(known, query) if known else Sql("false")

    async def _is_known(entry: Any, query: ListQuery) -> bool:
        try:
            await clause([entry], query)
        except ApiError:
            return False
        return True

    return build


def _own_filter(kind: Kind, name: str) -> Filter:
    return next(row for row in kind.filters if row.param.name == name)


def _lenient_filter(kind: Kind, name: str) -> Filter:
    row = _own_filter(kind, name)
    return Filter(row.param, _ignore_unknown(row.clause))


INCLUDE: Final = Filter(
    param("include", params.ids(allow_empty=True), "Limit to these IDs"),
    value_clause(lambda value: Sql("r.id = ANY(?)", value)),
)
EXCLUDE: Final = Filter(
    param("exclude", params.ids(allow_empty=True), "Exclude these IDs"),
    value_clause(lambda value: Sql("NOT r.id = ANY(?)", value)),
)
SLUG: Final = Filter(
    param("slug", SLUGS, "The slug of the record"), value_clause(lambda value: Sql("r.slug = ANY(?)", value))
)
HIDE_EMPTY: Final = Filter(
    param("hide_empty", params.BOOLEAN, "Hide terms not assigned to any published event", default=False),
    value_clause(lambda value: Sql("r.count > 0") if value else Sql("")),
)


def _date_filters(column: LiteralString) -> tuple[Filter, ...]:
    return (
        Filter(
            param("after", params.DATE_TIME, "Only records published after this date"),
            _published("after", column, ">"),
        ),
        Filter(
            param("before", params.DATE_TIME, "Only records published before this date"),
            _published("before", column, "<"),
        ),
    )


def _find_expiry(query: ListQuery) -> datetime | None:
    """Return when a list expires: immediately if a date is relative to now."""
    is_relative = any(isinstance(query.values.get(name), RelativeDate) for name in ("after", "before"))
    return query.transaction.now if is_relative else None


def _order(columns: Mapping[str, LiteralString], query: ListQuery) -> Sql:
    """Order by a column and the ID, or by the IDs' position in `include`."""
    column = columns.get(query.values["orderby"])
    direction: LiteralString = "DESC" if query.values["order"] == "desc" else "ASC"
    if column is None:
        return Sql("array_position(?::bigint[], r.id), r.id " + direction, query.values.get("include") or [])
    return Sql(column + " " + direction + ", r.id " + direction)


def _build_event_page_query(kind: Kind, query: ListQuery, clauses: list[Clause]) -> Sql:
    """Use the event list query if it supports the order, but for `date` only if a filter has an index."""
    has_index = any(isinstance(clause, LinkCondition | TextCondition) for clause in clauses)
    is_by_date = query.values["orderby"] == "date" and not has_index
    if query.values["orderby"] in EVENT_ORDERS and not is_by_date:
        return build_event_page_query(kind, query, clauses)
    return build_page_query(kind, query, [Sql("NOT r.hide_from_listings"), *clauses])


def _make_post_kind(kind: Kind, *extra: Filter) -> Kind:
    filters = (INCLUDE, EXCLUDE, SLUG, *_date_filters("r.published_at"), *extra)
    reads = replace(
        kind.reads,
        order=lambda query: _order(POST_ORDERS, query),
        next_cursor=None,
        expires_at=_find_expiry,
        max_per_page=MAX_PER_PAGE,
    )
    return replace(kind, filters=(*filters, _own_filter(kind, "search"), _own_filter(kind, "status")), reads=reads)


def _make_term_kind(kind: Kind, *extra: Filter) -> Kind:
    filters = (INCLUDE, EXCLUDE, SLUG, HIDE_EMPTY, _own_filter(kind, "search"), _lenient_filter(kind, "post"), *extra)
    return replace(kind, filters=filters, reads=replace(kind.reads, max_per_page=MAX_PER_PAGE))


def _make_event_kind() -> Kind:
    kind = _make_post_kind(EVENTS, _lenient_filter(EVENTS, "categories"), _lenient_filter(EVENTS, "tags"))
    reads = replace(kind.reads, page_query=_build_event_page_query, page_and_total_query=build_page_and_total_query)
    return replace(kind, reads=reads)


CORE_EVENTS: Final = _make_event_kind()
CORE_VENUES: Final = _make_post_kind(VENUES)
CORE_ORGANIZERS: Final = _make_post_kind(ORGANIZERS)
CORE_CATEGORIES: Final = _make_term_kind(CATEGORIES, _lenient_filter(CATEGORIES, "parent"))
CORE_TAGS: Final = _make_term_kind(TAGS)
CORE_MEDIA: Final = replace(
    MEDIA,
    filters=(INCLUDE, EXCLUDE, *_date_filters("r.added_at"), _own_filter(MEDIA, "search")),
    reads=replace(
        MEDIA.reads,
        order=lambda query: _order(MEDIA_ORDERS, query),
        expires_at=_find_expiry,
        max_per_page=MAX_PER_PAGE,
        visible=permissions.shown_media_condition,
    ),
)


def list_orders(kind: Kind) -> tuple[str, ...]:
    if kind.is_term:
        return (*(name for name in TERM_ORDERS if name not in ("term_id", "parent")), "include")
    return (*(MEDIA_ORDERS if kind.is_media else POST_ORDERS), "include")


def complete_values(kind: Kind, values: Mapping[str, Any]) -> dict[str, Any]:
    """Add WordPress defaults to a list's values: published records, newest first; terms by name."""
    filled = {name: value for name, value in values.items() if value not in ("", [])}
    filled |= {name: filled.pop(sent) for name, sent in NAMES.items() if sent in filled}
    if kind.is_term:
        return {"orderby": "name", "order": "asc", "per_page": 10, **filled}
    defaults = {"orderby": "date", "order": "desc", "per_page": 10}
    if kind.is_post:
        defaults["status"] = ["publish"]
    return {**defaults, **filled, **({ANY_DATE: True} if kind.is_event else {})}

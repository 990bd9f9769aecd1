"""Records in the form of WordPress: straight functions from typed records to JSON.

`row` is the stored row of the record: the source of texts as they were written, which callers who may edit the record
get as `raw`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any, Final

from kalends.core import times
from kalends.core.event_states import CANCELLED, POSTPONED
from kalends.core.html.text import to_paragraphs
from kalends.core.image_types import FULL
from kalends.core.record_types import Event, MediaItem, Organizer, Post, Term, Venue
from kalends.kinds.kind import JsonObject
from kalends.store import Row
from kalends.store.sites import Site

CURIES: Final = [{"name": "wp", "href": "https://api.w.org/{rel}", "templated": True}]
# The states that The Events Calendar has, in its spelling.
EVENT_STATUSES: Final = {CANCELLED: "canceled", POSTPONED: "postponed"}


@dataclass(frozen=True, slots=True)
class ShapeContext:
    """The input of a shape besides the record."""

    site: Site
    core_url: str  # of the namespace `wp/v2`
    is_edit: bool = False  # whether `raw` texts are added


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
    """Return the keys of every post. Only events have an excerpt and can be protected."""
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
        **_event_status_meta(event),
    }


def _event_status_meta(event: Event) -> JsonObject:
    """Return the state of an event; empty for the states that The Events Calendar does not have."""
    status = EVENT_STATUSES.get(event.event_status, "")
    return {"_tribe_events_status": status, "_tribe_events_status_reason": event.status_reason if status else ""}


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
    """Return a size; sizes that another system made may lack any key but the URL."""
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

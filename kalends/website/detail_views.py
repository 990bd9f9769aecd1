"""The pages of single records: events, venues, organizers, categories and tags."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

import orjson
from markupsafe import Markup

from kalends.core.errors import ApiError
from kalends.core.html_text import to_plain_text, to_single_line
from kalends.core.messages import gettext_noop as N_
from kalends.core.sanitize import to_paragraphs
from kalends.feeds.ics import format_address
from kalends.kinds.categories import CATEGORIES
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import JsonObject, Kind
from kalends.kinds.organizers import ORGANIZERS
from kalends.kinds.tags import TAGS
from kalends.kinds.venues import VENUES
from kalends.operations import calendar
from kalends.operations.context import OperationContext
from kalends.operations.records import list_records, read_record
from kalends.website.context import PageContext, make_page_context, show_page
from kalends.website.handler import PageRequest, PageResponse
from kalends.website.list_views import list_cards
from kalends.website.models.cards import When, list_venues, make_page_image, make_when, pick_hue, shorten
from kalends.website.models.description_html import adapt
from kalends.website.models.urls import has_page, make_calendar_links
from kalends.website.pages import EventPage, Facts, Line, MessagePage, NamedUrls, RecordPage

MAX_SIMILAR: Final = 3
MAX_SUMMARY: Final = 200


async def show_event(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    """Show an event, or ask for its password."""
    page = replace(make_page_context(page_request, context), context=replace(context, slug=path_params["slug"]))
    try:
        outcome = await read_record(EVENTS, page.context)
    except ApiError as error:
        if error.code != "event-password-protected":
            raise
        return _password_page(page)
    record = outcome.body
    # An event unlocked by a password must not be cached.
    is_unlocked = "password" in context.values
    similar = [
        page.make_card(other) for other in await calendar.list_similar(_with_values(context), record, MAX_SIMILAR)
    ]
    image = make_page_image(record["image"])
    when = make_when(record, page.locale, page.site.timezone, long=True)
    end_utc = datetime.fromisoformat(record["utc_end_date"]).replace(tzinfo=UTC)
    is_past = end_utc <= context.transaction.now
    image_urls = [card.image.src for card in similar if card.image] + ([image.src] if image else [])
    model = EventPage(
        title=to_plain_text(record["title"]),
        summary=_summary(record, when),
        canonical=record["url"],
        when=when,
        is_past=is_past,
        current_day=when.first,
        has_month=has_page(when.first),
        places=_places(page, record),
        image=image,
        description=adapt(record["description"] or record["excerpt"], _own_hosts(page)),
        calendar_links=make_calendar_links(record),
        ticket_url=record["ticket_url"],
        facts=_event_facts(page, record),
        points=_event_points(record, page) if record["show_map"] else "",
        similar=similar,
        hue=pick_hue(record["categories"][0]["id"] if record["categories"] else None),
        categories=[(term["name"], _category_url(page, term)) for term in record["categories"]],
        tags=[(term["name"], page.links.top_level(f"/tag/{term['slug']}/")) for term in record["tags"]],
        json_ld=orjson.dumps(_json_ld(record)).decode(),
    )
    return show_page(
        page,
        model,
        cache_tags=(*outcome.cache_tags, f"s{page.site.id}-events"),
        expires_at=None if is_past else end_utc,
        is_cacheable=not is_unlocked,
        image_urls=tuple(image_urls),
    )


async def show_venue(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    page, record, _ = await _read_record(page_request, context, VENUES, path_params["slug"])
    lines = [Line(text) for text in address_lines(record)]
    if record["show_map_link"] and (lines or "geo_lat" in record):
        lines += [Line(page.locale.text(N_("Open in OpenStreetMap")), map_link(record), is_external=True)]
    facts = [*([(N_("Address"), lines)] if lines else []), *_contact_facts(record)]
    points = _venue_points(record) if record["show_map"] else ""
    return await _show_record(
        page, record, to_plain_text(record["venue"]), ("venue", str(record["id"])), facts=facts, points=points
    )


async def show_organizer(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    page, record, _ = await _read_record(page_request, context, ORGANIZERS, path_params["slug"])
    name = to_plain_text(record["organizer"])
    return await _show_record(page, record, name, ("organizer", str(record["id"])), facts=_contact_facts(record))


async def show_category(
    page_request: PageRequest, context: OperationContext, path_params: dict[str, str]
) -> PageResponse:
    """Show a category by the last part of the path. Redirects if the path is not its current one."""
    page, record, _ = await _read_record(page_request, context, CATEGORIES, path_params["path"].rpartition("/")[2])
    # Decode both sides: the server passes paths decoded, records store them percent-encoded.
    canonical_path = unquote(urlsplit(record["url"]).path)
    if canonical_path != f"/events/category/{unquote(path_params['path'])}/" and not page_request.embedded:
        location = page_request.with_query(record["url"])
        return PageResponse(b"", "text/plain", status=301, headers={"Location": location}, is_cacheable=False)
    subcategories = await list_records(CATEGORIES, _with_values(context, parent=record["id"], per_page=50))
    subcategory_links = [
        (term["name"], page.links.top_level(urlsplit(term["url"]).path)) for term in subcategories.body["categories"]
    ]
    filter_ = ("categories", str(record["id"]))
    return await _show_record(page, record, record["name"], filter_, subcategories=subcategory_links)


async def show_tag(page_request: PageRequest, context: OperationContext, path_params: dict[str, str]) -> PageResponse:
    page, record, _ = await _read_record(page_request, context, TAGS, path_params["slug"])
    return await _show_record(page, record, record["name"], ("tags", str(record["id"])))


async def _show_record(
    page: PageContext,
    record: JsonObject,
    name: str,
    filter_: tuple[str, str],
    *,
    facts: Facts = (),
    points: str = "",
    subcategories: NamedUrls = (),
) -> PageResponse:
    """Show a venue, organizer, category or tag with its events, which `filter_` selects."""
    page = replace(page, links=page.links.with_filters([filter_]))
    values = {key: entry for key, entry in page.context.values.items() if key in ("page", "per_page", "past")}
    context = replace(page.context, values={**values, filter_[0]: [int(filter_[1])]}, slug=None)
    path = urlsplit(record["url"]).path
    card_list = await list_cards(replace(page, links=page.links.with_filters([])), context, path)
    image = make_page_image(record.get("image"))
    text = record.get("description", "")
    model = RecordPage(
        title=name,
        heading=name,
        card_list=card_list,
        summary=shorten(to_single_line(text), MAX_SUMMARY),
        canonical=record["url"],
        robots="index",
        image=image,
        facts=facts,
        points=points,
        description=adapt(to_paragraphs(text), _own_hosts(page)) if text else Markup(),
        subcategories=subcategories,
        json_ld=orjson.dumps(record["json_ld"]).decode() if "json_ld" in record else "",
    )
    image_urls = (*card_list.image_urls, *([image.src] if image else []))
    return show_page(page, model, cache_tags=card_list.cache_tags, image_urls=image_urls)


# Helpers, in the order they are called -----------------------------------------------------------


async def _read_record(
    page_request: PageRequest, context: OperationContext, kind: Kind, slug: str
) -> tuple[PageContext, JsonObject, tuple[str, ...]]:
    page = make_page_context(page_request, context)
    outcome = await read_record(kind, replace(context, slug=slug, values={}))
    return page, outcome.body, outcome.cache_tags


def _password_page(page: PageContext) -> PageResponse:
    """Ask for the password. The existence of a protected event is public, its content is not."""
    gettext = page.locale.gettext
    is_wrong = "password" in page.context.values
    message = N_("Wrong password.") if is_wrong else N_("This event is protected by a password.")
    model = MessagePage(
        title=gettext(N_("Protected by a password")),
        message=gettext(message),
        asks_password=True,
        robots="noindex",
    )
    return show_page(page, model, status=403, is_cacheable=False)


def _with_values(context: OperationContext, **values: Any) -> OperationContext:
    return replace(context, slug=None, values=values)


def _summary(record: JsonObject, when: When) -> str:
    """Return the excerpt or description as one line; without one, the time and the place."""
    text = to_single_line(record["excerpt"] or record["description"])
    return shorten(text or " · ".join([when.text, *map(format_address, list_venues(record))]), MAX_SUMMARY)


def _places(page: PageContext, record: JsonObject) -> list[tuple[str, str, str]]:
    return [
        (
            to_plain_text(venue["venue"]),
            page.links.top_level(f"/venue/{venue.get('slug', '')}/"),
            venue.get("city", ""),
        )
        for venue in list_venues(record)
    ]


def _json_ld(record: JsonObject) -> JsonObject:
    """Return the JSON-LD of the API; all-day events get dates without times, as search engines expect."""
    days = {"startDate": record["start_date"][:10], "endDate": record["end_date"][:10]} if record["all_day"] else {}
    return {**record["json_ld"], **days}


def _own_hosts(page: PageContext) -> frozenset[str]:
    host = page.request.request.headers.get("host", "").lower()
    return frozenset((host, urlsplit(page.context.base_url).netloc.lower()))


def _event_facts(page: PageContext, record: JsonObject) -> Facts:
    links = page.links
    facts: list[tuple[str, list[Line]]] = []
    for venue in list_venues(record):
        lines = [Line(to_plain_text(venue["venue"]), links.top_level(f"/venue/{venue.get('slug', '')}/"))]
        lines += [Line(text) for text in address_lines(venue)]
        if record["show_map_link"] and venue["show_map_link"]:
            lines += [Line(page.locale.text(N_("Open in OpenStreetMap")), map_link(venue), is_external=True)]
        facts.append((N_("Where"), lines))
    if record["cost"]:
        facts.append((N_("Cost"), [Line(record["cost"])]))
    organizers = [
        Line(to_plain_text(entry["organizer"]), links.top_level(f"/organizer/{entry.get('slug', '')}/"))
        for entry in record["organizer"]
    ]
    if organizers:
        facts.append((N_("Organizer"), organizers))
    if record["website"] and record["website"] != record["url"]:
        facts.append((N_("Website"), [_website_line(record["website"])]))
    return facts


def _contact_facts(record: JsonObject) -> Facts:
    facts: list[tuple[str, list[Line]]] = []
    if record.get("phone"):
        facts.append((N_("Phone"), [Line(record["phone"])]))
    if record.get("email"):
        facts.append((N_("E-mail"), [Line(record["email"], f"mailto:{quote(record['email'], safe='@')}")]))
    if record.get("website"):
        facts.append((N_("Website"), [_website_line(record["website"])]))
    return facts


def _website_line(url: str) -> Line:
    host = urlsplit(url).netloc.removeprefix("www.")
    return Line(host or url, url, is_external=True)


def address_lines(venue: JsonObject) -> list[str]:
    town = " ".join(filter(None, (venue.get("zip"), venue.get("city"))))
    lines = (venue.get("address"), town, venue.get("stateprovince"), venue.get("country"))
    return list(dict.fromkeys(line for line in lines if line))


def map_link(venue: JsonObject) -> str:
    """Return the OpenStreetMap URL of a venue, by its coordinates or else by its address."""
    if "geo_lat" in venue:
        latitude, longitude = f"{venue['geo_lat']:.5f}", f"{venue['geo_lng']:.5f}"
        return f"https://www.openstreetmap.org/?mlat={latitude}&mlon={longitude}#map=17/{latitude}/{longitude}"
    return f"https://www.openstreetmap.org/search?query={quote(', '.join(address_lines(venue)))}"


def _event_points(record: JsonObject, page: PageContext) -> str:
    venues = [venue for venue in list_venues(record) if "geo_lat" in venue and venue["show_map"]]
    return _format_points(venues) if venues and page.request.map_settings.tiles_url else ""


def _venue_points(venue: JsonObject) -> str:
    return _format_points([venue]) if "geo_lat" in venue else ""


def _format_points(venues: list[JsonObject]) -> str:
    points = [(venue["geo_lat"], venue["geo_lng"], [to_plain_text(venue["venue"])]) for venue in venues]
    return orjson.dumps(points).decode()


def _category_url(page: PageContext, term: JsonObject) -> str:
    """Return a URL with the slug only; the category page redirects to the full path."""
    return page.links.top_level(f"/events/category/{term['slug']}/")

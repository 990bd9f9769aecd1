"""The map view, and what pages say about places: markers, addresses and links to an external map."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import quote, urlencode

import orjson

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.operations import page_filters
from kalends.calendar.operations.page_filters import FacetRecord
from kalends.calendar.rules.record_types import MOVED_ONLINE, STATES, Event, Venue
from kalends.core import errors
from kalends.core.html_text import to_plain_text
from kalends.core.messages import gettext_noop as N_
from kalends.feeds.ics import address_lines
from kalends.rendering.cards import Card, shorten
from kalends.website.context import PageContext, PageRequest, PageResponse, make_page_context, show_page, with_values
from kalends.website.list_views import list_cards, make_chips, make_list_values
from kalends.website.models.page_parts import take_fitting
from kalends.website.pages import MapPage, Place

MAX_CARDS: Final = 18
MAX_PLACES: Final = 24
MAX_NAME: Final = 60
MAX_PLACES_BYTES: Final = 3_000  # part of the size budget of the page (models/page_parts.py)
PLACE_BYTES: Final = 95  # of markup per place


async def show_map(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    if not page_request.map_settings.tiles_url:
        raise errors.no_route()
    page = make_page_context(page_request, context)
    # Show only the next events, because more markers would be unreadable and counting all events is slow. An event
    # that has moved online is no longer at its venue.
    states = [state for state in context.values.get("event_status", STATES) if state != MOVED_ONLINE]
    values = {name: value for name, value in context.values.items() if name != "page"}
    map_context = with_values(replace(context, values=values), geoloc=True, event_status=states, per_page=MAX_CARDS)
    card_list = await list_cards(page, map_context, "/events/map/", counted=False)
    ids = await page_filters.list_event_ids(replace(context, values=make_list_values(page, map_context)))
    found = await page_filters.find_facet(context, "venue", ids, chosen=[], text="", limit=MAX_PLACES)
    plus = "+" if len(ids) == page_filters.MAX_EVENTS else ""
    heading = page.locale.gettext(N_("Map"))
    model = MapPage(
        title=heading,
        heading=heading,
        card_list=card_list,
        points=_format_markers(card_list.cards),
        places=_fit([_describe_venue(page, record, plus) for record in found.records]),
        active_filters=make_chips(page, "/events/map/"),
        canonical=f"{context.base_url}/events/map/",
    )
    return await show_page(page, model, cache_tags=(*card_list.cache_tags, "venues"), image_urls=card_list.image_urls)


def _format_markers(cards: list[Card]) -> str:
    """Return the map markers as JSON: each location once, with its cards' indexes."""
    places: dict[tuple[float, float], list[int]] = {}
    for number, card in enumerate(cards):
        if card.latitude is not None and card.longitude is not None:
            places.setdefault((card.latitude, card.longitude), []).append(number)
    return orjson.dumps([[*place, numbers] for place, numbers in places.items()]).decode()


def _describe_venue(page: PageContext, record: FacetRecord, plus: str) -> Place:
    name = shorten(f"{record.name}, {record.town}" if record.town else record.name, MAX_NAME)
    note = page.locale.text(N_("{n} events") if record.count > 1 else N_("One event"), n=f"{record.count}{plus}")
    return Place(name, note, page.links.top_level(f"/venue/{record.slug}/"))


def _fit(places: Sequence[Place]) -> list[Place]:
    return take_fitting(
        places, MAX_PLACES_BYTES, lambda place: PLACE_BYTES + len(f"{place.name}{place.note}{place.url}".encode())
    )


# Venues on other pages.


def map_link(venue: Venue) -> str:
    """Return a venue's OpenStreetMap URL, based on its coordinates or else its address."""
    if venue.coordinates:
        latitude, longitude = (f"{degrees:.5f}" for degrees in venue.coordinates)
        return f"https://www.openstreetmap.org/?mlat={latitude}&mlon={longitude}#map=17/{latitude}/{longitude}"
    return f"https://www.openstreetmap.org/search?query={quote(', '.join(address_lines(venue)))}"


def is_locatable(venue: Venue) -> bool:
    """Return whether pages may link to the venue on an external map, and it has coordinates or an address."""
    return venue.show_map_link and bool(venue.coordinates or address_lines(venue))


def find_directions(event: Event) -> str:
    """Return the URL for directions to an event's first locatable venue; empty if there is none."""
    venue = next(filter(is_locatable, event.places), None) if event.show_map_link else None
    return directions_link(venue) if venue else ""


def directions_link(venue: Venue) -> str:
    latitude, longitude = venue.coordinates or (0, 0)
    target = f"{latitude:.5f},{longitude:.5f}" if venue.coordinates else ", ".join(address_lines(venue))
    return f"https://www.openstreetmap.org/directions?{urlencode({'to': target})}"


def list_mapped(page: PageContext, venues: Iterable[Venue]) -> list[Venue]:
    """Return the venues that a map can show; none if there is no map."""
    if not page.request.map_settings.tiles_url:
        return []
    return [venue for venue in venues if venue.coordinates and venue.show_map]


def make_places(page: PageContext, venues: Iterable[Venue]) -> list[Place]:
    return [
        Place(
            name=to_plain_text(venue.name),
            note=", ".join(address_lines(venue)),
            url=page.links.top_level(f"/venue/{venue.slug}/"),
            directions_url=directions_link(venue) if venue.show_map_link else "",
        )
        for venue in venues
    ]


def format_points(venues: Iterable[Venue]) -> str:
    """Return the venues as JSON for the map; empty if there are none."""
    points = [(venue.latitude, venue.longitude, [to_plain_text(venue.name)]) for venue in venues]
    return orjson.dumps(points).decode() if points else ""

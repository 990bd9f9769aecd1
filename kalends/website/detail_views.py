"""The pages of one record: event, venue, organizer, category, tag."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

import orjson

from kalends.core.errors import ApiError
from kalends.core.html_text import to_plain_text, to_single_line
from kalends.core.messages import gettext_noop as N_
from kalends.core.sanitize import to_paragraphs
from kalends.feeds.ics import format_address
from kalends.kinds.categories import CATEGORIES
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Kind, Represented
from kalends.kinds.organizers import ORGANIZERS
from kalends.kinds.tags import TAGS
from kalends.kinds.venues import VENUES
from kalends.operations import calendar
from kalends.operations.context import Call
from kalends.operations.records import list_records, read_record
from kalends.website.context import Frame, make_frame, show_page
from kalends.website.handler import Shown, Visit
from kalends.website.list_views import list_cards
from kalends.website.models.cards import When, hue_of, make_picture, make_when, shorten, venues_of
from kalends.website.models.description_html import fit_in
from kalends.website.models.urls import add_links, has_page

SIMILAR: Final = 3
MOST_SUMMARY: Final = 200


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    url: str = ""
    outside: bool = False


Facts = Sequence[tuple[str, list[Line]]]
NO_FACTS: Final[Facts] = ()


async def show_event(visit: Visit, call: Call, address: dict[str, str]) -> Shown:
    frame = replace(make_frame(visit, call), call=replace(call, slug=address["slug"]))
    try:
        outcome = await read_record(EVENTS, frame.call)
    except ApiError as refusal:
        if refusal.code != "event-password-protected":
            raise
        return _ask_password(frame)
    record = outcome.body
    # Known by a password, it is nobody else's.
    opened = "password" in call.values
    similar = [frame.card(other) for other in await calendar.list_similar(_plain(call), record, SIMILAR)]
    picture = make_picture(record["image"])
    when = make_when(record, frame.speech, frame.site.timezone, long=True)
    ends = datetime.fromisoformat(record["utc_end_date"]).replace(tzinfo=UTC)
    is_over = ends <= call.transaction.now
    pictures = [card.picture.src for card in similar if card.picture] + ([picture.src] if picture else [])
    return show_page(
        frame, "event.html", keys=(*outcome.keys, f"s{frame.site.id}-events"), until=None if is_over else ends,
        kept=not opened, pictures=tuple(pictures), kind="event-page", title=to_plain_text(record["title"]),
        summary=_summary(record, when), canonical=record["url"], og_type="article", when=when, is_over=is_over,
        shown_day=when.first, has_month=has_page(when.first), places=_places(frame, record),
        picture=picture, prose=fit_in(record["description"] or record["excerpt"], _own_hosts(frame)),
        add=add_links(record), ticket_url=record["ticket_url"], facts=_event_facts(frame, record),
        point=_point(record, frame) if record["show_map"] else "", similar=similar,
        hue=hue_of(record["categories"][0]["id"] if record["categories"] else None),
        categories=[(term["name"], _category_url(frame, term)) for term in record["categories"]],
        tags=[(term["name"], frame.links.outside(f"/tag/{term['slug']}/")) for term in record["tags"]],
        json_ld=orjson.dumps(_json_ld(record)).decode(),
    )  # fmt: skip


async def show_venue(visit: Visit, call: Call, address: dict[str, str]) -> Shown:
    frame, record, _ = await _read(visit, call, VENUES, address["slug"])
    where = [Line(text) for text in address_lines(record)]
    if record["show_map_link"] and (where or "geo_lat" in record):
        where += [Line(frame.speech.plain(N_("Open in OpenStreetMap")), map_link(record), outside=True)]
    facts = [*([(N_("Address"), where)] if where else []), *_contact_facts(record)]
    point = _venue_point(record) if record["show_map"] else ""
    return await _show_place(
        frame, record, to_plain_text(record["venue"]), ("venue", str(record["id"])), facts=facts, point=point
    )


async def show_organizer(visit: Visit, call: Call, address: dict[str, str]) -> Shown:
    frame, record, _ = await _read(visit, call, ORGANIZERS, address["slug"])
    name = to_plain_text(record["organizer"])
    return await _show_place(frame, record, name, ("organizer", str(record["id"])), facts=_contact_facts(record))


async def show_category(visit: Visit, call: Call, address: dict[str, str]) -> Shown:
    """The last part of the path names it; one that has moved is found all the same."""
    frame, record, _ = await _read(visit, call, CATEGORIES, address["path"].rpartition("/")[2])
    # Decoded on both sides: servers hand on paths decoded, records have them encoded.
    own = unquote(urlsplit(record["url"]).path)
    if own != f"/events/category/{unquote(address['path'])}/" and not visit.embedded:
        where = visit.with_query(record["url"])
        return Shown(b"", "text/plain", status=301, headers={"Location": where}, kept=False)
    below = await list_records(CATEGORIES, _plain(call, parent=record["id"], per_page=50))
    children = [(term["name"], frame.links.outside(urlsplit(term["url"]).path)) for term in below.body["categories"]]
    return await _show_place(frame, record, record["name"], ("categories", str(record["id"])), children=children)


async def show_tag(visit: Visit, call: Call, address: dict[str, str]) -> Shown:
    frame, record, _ = await _read(visit, call, TAGS, address["slug"])
    return await _show_place(frame, record, record["name"], ("tags", str(record["id"])))


async def _show_place(
    frame: Frame,
    record: Represented,
    name: str,
    filter_: tuple[str, str],
    *,
    facts: Facts = NO_FACTS,
    point: str = "",
    children: Any = (),
) -> Shown:
    """What the site says about something that events are linked to, and these events."""
    frame = replace(frame, links=frame.links.with_filters([filter_]))
    values = {key: entry for key, entry in frame.call.values.items() if key in ("page", "per_page", "past")}
    call = replace(frame.call, values={**values, filter_[0]: [int(filter_[1])]}, slug=None)
    path = urlsplit(record["url"]).path
    listing = await list_cards(replace(frame, links=frame.links.with_filters([])), call, path)
    picture = make_picture(record.get("image"))
    pictures = (*listing.pop("pictures"), *([picture.src] if picture else []))
    listing["heading"] = name
    text = record.get("description", "")
    return show_page(
        frame, "place.html", kind="place-page", title=name, summary=shorten(to_single_line(text), MOST_SUMMARY),
        canonical=record["url"], robots="index", pictures=pictures, picture=picture, facts=facts, point=point,
        prose=fit_in(to_paragraphs(text), _own_hosts(frame)) if text else "", active=[], children=children,
        json_ld=orjson.dumps(record["json_ld"]).decode() if "json_ld" in record else "",
        **listing,
    )  # fmt: skip


# Helpers, in the order they are called -----------------------------------------------------------


async def _read(visit: Visit, call: Call, kind: Kind, slug: str) -> tuple[Frame, Represented, tuple[str, ...]]:
    frame = make_frame(visit, call)
    outcome = await read_record(kind, replace(call, slug=slug, values={}))
    return frame, outcome.body, outcome.keys


def _ask_password(frame: Frame) -> Shown:
    """Whether there is such an event is public; what it says is not."""
    say = frame.speech.say
    wrong = "password" in frame.call.values
    message = N_("Wrong password.") if wrong else N_("This event is protected by a password.")
    return show_page(
        frame, "message.html", status=403, kept=False, kind="message-page",
        title=say(N_("Protected by a password")), message=say(message), asks_password=True, robots="noindex",
    )  # fmt: skip


def _plain(call: Call, **values: Any) -> Call:
    return replace(call, slug=None, values=values)


def _summary(record: Represented, when: When) -> str:
    """What it is about; of one that says nothing, when and where."""
    words = to_single_line(record["excerpt"] or record["description"])
    return shorten(words or " · ".join([when.text, *map(format_address, venues_of(record))]), MOST_SUMMARY)


def _places(frame: Frame, record: Represented) -> list[tuple[str, str, str]]:
    return [
        (
            to_plain_text(venue["venue"]),
            frame.links.outside(f"/venue/{venue.get('slug', '')}/"),
            venue.get("city", ""),
        )
        for venue in venues_of(record)
    ]


def _json_ld(record: Represented) -> Represented:
    """As in the interface; but of whole days search engines read days, not their first and last second."""
    days = {"startDate": record["start_date"][:10], "endDate": record["end_date"][:10]} if record["all_day"] else {}
    return {**record["json_ld"], **days}


def _own_hosts(frame: Frame) -> frozenset[str]:
    asked = frame.visit.request.headers.get("host", "").lower()
    return frozenset((asked, urlsplit(frame.call.base_url).netloc.lower()))


def _event_facts(frame: Frame, record: Represented) -> Facts:
    links = frame.links
    facts: list[tuple[str, list[Line]]] = []
    for venue in venues_of(record):
        lines = [Line(to_plain_text(venue["venue"]), links.outside(f"/venue/{venue.get('slug', '')}/"))]
        lines += [Line(text) for text in address_lines(venue)]
        if record["show_map_link"] and venue["show_map_link"]:
            lines += [Line(frame.speech.plain(N_("Open in OpenStreetMap")), map_link(venue), outside=True)]
        facts.append((N_("Where"), lines))
    if record["cost"]:
        facts.append((N_("Cost"), [Line(record["cost"])]))
    people = [
        Line(to_plain_text(entry["organizer"]), links.outside(f"/organizer/{entry.get('slug', '')}/"))
        for entry in record["organizer"]
    ]
    if people:
        facts.append((N_("Organizer"), people))
    if record["website"] and record["website"] != record["url"]:
        facts.append((N_("Website"), [_website(record["website"])]))
    return facts


def _contact_facts(record: Represented) -> Facts:
    facts: list[tuple[str, list[Line]]] = []
    if record.get("phone"):
        facts.append((N_("Phone"), [Line(record["phone"])]))
    if record.get("email"):
        facts.append((N_("E-mail"), [Line(record["email"], f"mailto:{quote(record['email'], safe='@')}")]))
    if record.get("website"):
        facts.append((N_("Website"), [_website(record["website"])]))
    return facts


def _website(url: str) -> Line:
    host = urlsplit(url).netloc.removeprefix("www.")
    return Line(host or url, url, outside=True)


def address_lines(venue: Represented) -> list[str]:
    town = " ".join(filter(None, (venue.get("zip"), venue.get("city"))))
    lines = (venue.get("address"), town, venue.get("stateprovince"), venue.get("country"))
    return list(dict.fromkeys(line for line in lines if line))


def map_link(venue: Represented) -> str:
    if "geo_lat" in venue:
        at = f"{venue['geo_lat']:.5f}", f"{venue['geo_lng']:.5f}"
        return f"https://www.openstreetmap.org/?mlat={at[0]}&mlon={at[1]}#map=17/{at[0]}/{at[1]}"
    return f"https://www.openstreetmap.org/search?query={quote(', '.join(address_lines(venue)))}"


def _point(record: Represented, frame: Frame) -> str:
    venues = [venue for venue in venues_of(record) if "geo_lat" in venue and venue["show_map"]]
    return _points(venues) if venues and frame.visit.look.tiles_url else ""


def _venue_point(venue: Represented) -> str:
    return _points([venue]) if "geo_lat" in venue else ""


def _points(venues: list[Represented]) -> str:
    points = [(venue["geo_lat"], venue["geo_lng"], [to_plain_text(venue["venue"])]) for venue in venues]
    return orjson.dumps(points).decode()


def _category_url(frame: Frame, term: Represented) -> str:
    """By its last part alone: the page itself knows the whole path."""
    return frame.links.outside(f"/events/category/{term['slug']}/")

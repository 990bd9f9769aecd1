"""Reads the events of a web page from its structured data."""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import Any, Final

from kalends.calendar.rules.record_types import CANCELLED, MOVED_ONLINE, POSTPONED, SCHEDULED, SOLD_OUT
from kalends.core.cost import parse_cost
from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.core.sanitize import fold
from kalends.core.zones import read_zone
from kalends.imports.rules.import_places import describe, make_linked
from kalends.imports.rules.import_records import ImportedRecord, ParsedSource
from kalends.imports.rules.page_data import (
    Node,
    PageData,
    as_list,
    decode,
    is_node,
    list_events,
    read_line,
    read_text,
)
from kalends.imports.rules.table_cells import Moment, read_moment
from kalends.imports.rules.table_values import MAX_OVERNIGHT, make_values

MAX_EVENTS: Final = 100
MAX_TEXT: Final = 50_000
MIN_VISIBLE: Final = 200  # characters; pages that scripts build in the browser have fewer
_STATUSES: Final = {
    "eventcancelled": CANCELLED,
    "eventcanceled": CANCELLED,
    "eventpostponed": POSTPONED,
    "eventmovedonline": MOVED_ONLINE,
}
# Parts of an address, by field of a venue.
_ADDRESS: Final = {
    "address": "streetAddress",
    "zip": "postalCode",
    "city": "addressLocality",
    "stateprovince": "addressRegion",
    "country": "addressCountry",
}
_PRICES: Final = ("price", "lowPrice", "highPrice", "minPrice", "maxPrice")
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]*>")
_FRACTION: Final = re.compile(r"(?<=:\d\d)\.\d+")
_DAY: Final = timedelta(days=1)
_LAST_MINUTE: Final = time(23, 59)


def read_page(data: bytes, options: Mapping[str, Any]) -> ParsedSource:
    """Read a page's events, with the venues and organizers that they link to. Raise InvalidValue if there are none.

    Options: the `url` and `content_type` of the page. If the page does not say when an event takes place, the event
    has no `start_date`. Warnings say what is missing or was left out.
    """
    content_type = str(options.get("content_type") or "").lower()
    if content_type and "html" not in content_type:
        raise InvalidValue("leads to a file, not to a web page.")
    page = PageData(str(options["url"]), decode(data, content_type))
    events, described = list_events(page.scripts), page.describe()
    if len(events) == 1:
        details = {name: value for name, value in described.items() if "Date" not in name}
        events = [details | {name: value for name, value in events[0].items() if value}]
    elif not events and ("startDate" in described or "event" in page.meta.get("og:type", "").lower()):
        events = [described]
    if not events and page.has_programs and page.visible < MIN_VISIBLE:
        raise InvalidValue("can’t be read, because scripts build the page in the browser.")
    records: dict[tuple[str, str, str], ImportedRecord] = {}
    for event in _choose(page, events)[:MAX_EVENTS]:
        for record in _make_records(page, event):
            records.setdefault(record.key, record)
    if not records:
        raise InvalidValue("there is no event on the page.")
    return ParsedSource(list(records.values()))


def _choose(page: PageData, events: Sequence[Node]) -> Sequence[Node]:
    """Return only the event at the page's own address if all others are at other addresses."""
    links = [page.link(event.get("url")).rstrip("/") for event in events]
    own = page.url.partition("#")[0].rstrip("/")
    return [events[links.index(own)]] if links.count(own) == 1 and all(links) else events


def _make_records(page: PageData, event: Node) -> Iterator[ImportedRecord]:
    """Yield an event's venue and organizer, then the event. Yield nothing if the event has no title."""
    title, warnings = read_line(event.get("name")), list[Message]()
    if not title:
        return
    venue, online_url = _read_place(page, event)
    linked = {"venue": ("venues", venue), "organizer": ("organizers", _read_organizer(page, event))}
    places = {
        name: make_linked(kind, describe(found), found, None) for name, (kind, found) in linked.items() if found
    }
    yield from places.values()
    website = page.link(event.get("url")) or page.url
    values = {
        "title": title,
        "description": _read_description(event),
        "website": website,
        "image": page.link(event.get("image")),
        "online_url": online_url,
        **_read_offers(page, event, website),
        **_read_times(page, event, warnings),
    }
    yield ImportedRecord(
        "events",
        f"{fold(title)} {values.get('start_date', '')}",
        {name: value for name, value in values.items() if value != ""},
        links={name: [record.identity] for name, record in places.items()},
        warnings=warnings,
    )


def _read_description(event: Node) -> str:
    """Return the description as HTML. Some programs escape its tags or its line breaks twice."""
    text = read_text(event.get("description"), MAX_TEXT).replace("\\n", "\n")
    if not _TAG.search(text):
        text = html.unescape(text)
    return text if _TAG.search(text) else html.escape(text, quote=False)


def _read_place(page: PageData, event: Node) -> tuple[Node, str]:
    """Return the values of the first venue, and the address for taking part online."""
    venue, online_url = Node(), ""
    is_online = "Online" in read_text(event.get("eventAttendanceMode"))
    for place in as_list(event.get("location")):
        name = read_line(place)
        if is_online or "://" in name or (is_node(place) and "VirtualLocation" in read_text(place.get("@type"))):
            online_url = online_url or page.link(place)
        elif not is_node(place):
            title, _, address = name.partition(",")
            venue = venue or {"venue": title, "address": address.strip()}
        else:
            venue = venue or _read_venue(page, place, name)
    return {name: value for name, value in venue.items() if value}, online_url


def _read_venue(page: PageData, place: Node, name: str) -> Node:
    address = next(iter(as_list(place.get("address"))), "")
    parts = (
        {field: read_line(address.get(part)) for field, part in _ADDRESS.items()}
        if is_node(address)
        else {"address": read_line(address)}
    )
    name = name or parts["address"] or parts.get("city", "")
    return {"venue": name, **parts, "website": page.link(place.get("sameAs"))} if name else {}


def _read_organizer(page: PageData, event: Node) -> Node:
    for entry in as_list(event.get("organizer")):
        if name := read_line(entry):
            website = page.link(entry.get("sameAs")) or page.link(entry) if is_node(entry) else ""
            return {"organizer": name, **({"website": website} if website else {})}
    return {}


def _read_offers(page: PageData, event: Node, website: str) -> Node:
    """Return cost, currency, ticket address and status."""
    offers = [entry for entry in as_list(event.get("offers")) if is_node(entry)]
    for offer in offers:  # the list grows
        parts = as_list(offer.get("offers")) + as_list(offer.get("priceSpecification"))
        offers += [entry for entry in parts if is_node(entry)]
    texts = [read_text(offer.get(name)) for offer in offers for name in _PRICES]
    amounts = sorted({amount.value for text in texts for amount in parse_cost(text).amounts})
    is_free = read_text(event.get("isAccessibleForFree")).lower().endswith("true")
    limits = [f"{amount:.2f}".removesuffix(".00") for amount in (*amounts[:1], *amounts[-1:])]
    codes = [read_text(offer.get("priceCurrency")).upper() for offer in offers]
    links = [page.link(offer.get("url")) for offer in offers]
    states = [text for offer in offers if (text := read_text(offer.get("availability")))]
    is_sold_out = bool(states) and all(text.endswith("SoldOut") for text in states)
    stated = re.split("[/:]", read_text(event.get("eventStatus")).lower())[-1]
    return {
        "cost": "–".join(dict.fromkeys(limits)) or "0" * is_free,
        "currency_code": next((code for code in codes if re.fullmatch("[A-Z]{3}", code)), ""),
        "ticket_url": next((link for link in links if link not in ("", website, page.url)), ""),
        "event_status": _STATUSES.get(stated, SOLD_OUT if is_sold_out else SCHEDULED),
    }


# Times ------------------------------------------------------------------------------------------


def _read_times(page: PageData, event: Node, warnings: list[Message]) -> Node:
    """Return start and end, with the offset or the zone if the page states one."""
    start, end = (_read_moment(page, event.get(name), warnings) for name in ("startDate", "endDate"))
    if start is None or start.day is None:
        if not warnings:
            warnings.append(Message("The page doesn’t say when the event takes place."))
        return {}
    if start.time_of_day and end and end.time_of_day is None:
        end = Moment(end.day, _LAST_MINUTE, start.offset) if end.day != start.day else None
    if end is not None and end.day and (begun := _to_instant(start, end)) > (ended := _to_instant(end, start)):
        is_overnight = end.day == start.day and end.time_of_day and ended + _DAY - begun <= MAX_OVERNIGHT
        end = Moment(end.day + _DAY, end.time_of_day, end.offset) if is_overnight else None
        if end is None:
            warnings.append(Message("According to the page, the event ends before it starts. Please enter the end."))
    if _is_whole_day(start, end):
        is_midnight = end is not None and end.time_of_day == time() and end.day != start.day
        last = end.day if end and end.day else start.day
        start, end = Moment(start.day), Moment(last - _DAY if is_midnight else last)
    values = make_values("events", {"start_date": start, "end_date": end, "timezone": _find_zone(event)}, {})
    return values if end else {name: value for name, value in values.items() if name != "end_date"}


def _read_moment(page: PageData, value: Any, warnings: list[Message]) -> Moment | None:
    text = _FRACTION.sub("", read_text(value))
    try:
        moment = read_moment(text, page.order)
        if moment is not None:
            _to_instant(moment, moment)
        return moment
    except (InvalidValue, ValueError):  # the offset may be impossible
        warnings.append(Message("The date “{date}” can’t be read.", date=text[:50]))
        return None


def _to_instant(moment: Moment, other: Moment) -> datetime:
    """Return a moment to compare. A moment without an offset has the other's."""
    offset = moment.offset or other.offset or "+00:00"
    return datetime.fromisoformat(f"{moment.day} {moment.time_of_day or time()}{offset}")


def _is_whole_day(start: Moment, end: Moment | None) -> bool:
    """Return whether an event has no time, or lasts from midnight to midnight, as some programs write whole days."""
    last = end.time_of_day if end else None
    ends_at_midnight = last is None or last == time() or last >= _LAST_MINUTE
    return start.time_of_day is None or (start.time_of_day == time() and ends_at_midnight)


def _find_zone(event: Node) -> str:
    nodes = [event, *(entry for entry in as_list(event.get("eventSchedule")) if is_node(entry))]
    for name in (read_text(node.get(key)) for node in nodes for key in ("timezone", "scheduleTimezone")):
        try:
            return read_zone(name)
        except InvalidValue:
            continue
    return ""

"""Structured data (schema.org) of a single event, venue or organizer, in plain text."""

from typing import Any

from kalends.core.sanitize import to_plain_text
from kalends.core.times import in_zone
from kalends.kinds.kind import Represented, View
from kalends.store import Row

MOST_TEXT = 5000


def describe_event(record: Represented, row: Row, view: View) -> Represented:
    """The record with its `json_ld`, and with those of what it links to."""
    venues = record["venue"] if isinstance(record["venue"], list) else [record["venue"]]
    described: Represented = {
        "@context": "https://schema.org",
        "@type": "Event",
        "name": to_plain_text(record["title"]),
        "description": _text(record["excerpt"] or record["description"]),
        "url": record["url"],
        "eventAttendanceMode": "https://schema.org/OfflineEventAttendanceMode",
        "eventStatus": "https://schema.org/EventScheduled",
        "startDate": in_zone(row["start_utc"], row["timezone"]).isoformat(),
        "endDate": in_zone(row["end_utc"], row["timezone"]).isoformat(),
    }
    if record["image"]:
        described["image"] = record["image"]["url"]
    if venues:
        places = [place(venue) for venue in venues]
        described["location"] = places[0] if len(places) == 1 else places
    if record["organizer"]:
        described["organizer"] = [organization(organizer) for organizer in record["organizer"]]
    offers = _offers(record, view)
    if offers:
        described["offers"] = offers
    return {**record, "json_ld": described}


def describe_venue(record: Represented, _: Row, __: View) -> Represented:
    return {**record, "json_ld": {"@context": "https://schema.org", **place(record)}}


def describe_organizer(record: Represented, _: Row, __: View) -> Represented:
    return {**record, "json_ld": {"@context": "https://schema.org", **organization(record)}}


def place(venue: Represented) -> Represented:
    address = {
        "streetAddress": venue.get("address"),
        "addressLocality": venue.get("city"),
        "addressRegion": venue.get("stateprovince"),
        "postalCode": venue.get("zip"),
        "addressCountry": venue.get("country"),
    }
    described: Represented = {
        "@type": "Place",
        "name": to_plain_text(venue["venue"]),
        "url": venue["url"],
        "description": _text(venue.get("description", "")),
        "telephone": venue.get("phone"),
        "sameAs": venue.get("website"),
        "address": {"@type": "PostalAddress", **_filled(address)} if any(address.values()) else None,
    }
    if "geo_lat" in venue:
        described["geo"] = {"@type": "GeoCoordinates", "latitude": venue["geo_lat"], "longitude": venue["geo_lng"]}
    return _filled(described)


def organization(organizer: Represented) -> Represented:
    return _filled(
        {
            "@type": "Organization",
            "name": to_plain_text(organizer["organizer"]),
            "url": organizer["url"],
            "description": _text(organizer.get("description", "")),
            "telephone": organizer.get("phone"),
            "email": organizer.get("email"),
            "sameAs": organizer.get("website"),
        }
    )


def _offers(record: Represented, view: View) -> Represented | None:
    """One price, a range, or none that is a number; free is a price of 0."""
    prices = [price for price in map(_price, record["cost_details"]["values"]) if price is not None]
    if not record["cost"] or not prices:
        return None
    common = {
        "priceCurrency": view.site.currency_code,
        "url": record["ticket_url"] or record["url"],
        "availability": "https://schema.org/InStock",
        "validFrom": record["date_utc"].replace(" ", "T") + "Z",
    }
    if len(prices) > 1:
        return {"@type": "AggregateOffer", "lowPrice": prices[0], "highPrice": prices[-1], **common}
    return {"@type": "Offer", "price": prices[0], **common}


def _price(value: str) -> str | None:
    if value.lower() == "free":
        return "0"
    return value if value.replace(".", "", 1).isdecimal() else None


def _text(html: str) -> str:
    return to_plain_text(html)[:MOST_TEXT]


def _filled(values: dict[str, Any]) -> Represented:
    return {key: value for key, value in values.items() if value not in (None, "")}

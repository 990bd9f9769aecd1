"""Structured data (schema.org) of a single event, venue or organizer, in plain text."""

from typing import Any

from kalends.core.sanitize import to_plain_text
from kalends.core.times import in_zone
from kalends.kinds.kind import JsonObject, RenderContext
from kalends.store import Row

MAX_TEXT_LENGTH = 5000


def describe_event(record: JsonObject, row: Row, context: RenderContext) -> JsonObject:
    """Return the record with its `json_ld`, which includes venues and organizers."""
    venues = record["venue"] if isinstance(record["venue"], list) else [record["venue"]]
    json_ld: JsonObject = {
        "@context": "https://schema.org",
        "@type": "Event",
        "name": to_plain_text(record["title"]),
        "description": _shorten_text(record["excerpt"] or record["description"]),
        "url": record["url"],
        "eventAttendanceMode": "https://schema.org/OfflineEventAttendanceMode",
        "eventStatus": "https://schema.org/EventScheduled",
        "startDate": in_zone(row["start_utc"], row["timezone"]).isoformat(),
        "endDate": in_zone(row["end_utc"], row["timezone"]).isoformat(),
    }
    if record["image"]:
        json_ld["image"] = record["image"]["url"]
    if venues:
        places = [describe_place(venue) for venue in venues]
        json_ld["location"] = places[0] if len(places) == 1 else places
    if record["organizer"]:
        json_ld["organizer"] = [describe_organization(organizer) for organizer in record["organizer"]]
    offers = _build_offers(record, context)
    if offers:
        json_ld["offers"] = offers
    return {**record, "json_ld": json_ld}


def describe_venue(record: JsonObject, _: Row, __: RenderContext) -> JsonObject:
    return {**record, "json_ld": {"@context": "https://schema.org", **describe_place(record)}}


def describe_organizer(record: JsonObject, _: Row, __: RenderContext) -> JsonObject:
    return {**record, "json_ld": {"@context": "https://schema.org", **describe_organization(record)}}


def describe_place(venue: JsonObject) -> JsonObject:
    address = {
        "streetAddress": venue.get("address"),
        "addressLocality": venue.get("city"),
        "addressRegion": venue.get("stateprovince"),
        "postalCode": venue.get("zip"),
        "addressCountry": venue.get("country"),
    }
    json_ld: JsonObject = {
        "@type": "Place",
        "name": to_plain_text(venue["venue"]),
        "url": venue["url"],
        "description": _shorten_text(venue.get("description", "")),
        "telephone": venue.get("phone"),
        "sameAs": venue.get("website"),
        "address": {"@type": "PostalAddress", **_omit_empty(address)} if any(address.values()) else None,
    }
    if "geo_lat" in venue:
        json_ld["geo"] = {"@type": "GeoCoordinates", "latitude": venue["geo_lat"], "longitude": venue["geo_lng"]}
    return _omit_empty(json_ld)


def describe_organization(organizer: JsonObject) -> JsonObject:
    return _omit_empty(
        {
            "@type": "Organization",
            "name": to_plain_text(organizer["organizer"]),
            "url": organizer["url"],
            "description": _shorten_text(organizer.get("description", "")),
            "telephone": organizer.get("phone"),
            "email": organizer.get("email"),
            "sameAs": organizer.get("website"),
        }
    )


def _build_offers(record: JsonObject, context: RenderContext) -> JsonObject | None:
    """Return an offer with a price or a price range, or None without numeric prices; free is a price of 0."""
    prices = [price for price in map(_parse_price, record["cost_details"]["values"]) if price is not None]
    if not record["cost"] or not prices:
        return None
    common = {
        "priceCurrency": context.site.currency_code,
        "url": record["ticket_url"] or record["url"],
        "availability": "https://schema.org/InStock",
        "validFrom": record["date_utc"].replace(" ", "T") + "Z",
    }
    if len(prices) > 1:
        return {"@type": "AggregateOffer", "lowPrice": prices[0], "highPrice": prices[-1], **common}
    return {"@type": "Offer", "price": prices[0], **common}


def _parse_price(value: str) -> str | None:
    if value.lower() == "free":
        return "0"
    return value if value.replace(".", "", 1).isdecimal() else None


def _shorten_text(html: str) -> str:
    return to_plain_text(html)[:MAX_TEXT_LENGTH]


def _omit_empty(values: dict[str, Any]) -> JsonObject:
    return {key: value for key, value in values.items() if value not in (None, "")}

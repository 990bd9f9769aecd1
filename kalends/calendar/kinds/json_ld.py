"""Structured data (schema.org, JSON-LD) for events, series, venues and organizers. All texts are plain text."""

from collections.abc import Sequence
from typing import Any, Final

from kalends.calendar.kinds.kind import JsonObject, RenderContext
from kalends.calendar.rules.record_types import (
    CANCELLED,
    MOVED_ONLINE,
    POSTPONED,
    SCHEDULED,
    SOLD_OUT,
    Event,
    Organizer,
    Series,
    Venue,
)
from kalends.core.html_text import to_plain_text
from kalends.core.recurrence import Weekday
from kalends.core.recurrence.rule_parts import WEEKDAY_CODES, WEEKDAYS
from kalends.core.times import format_datetime, in_zone
from kalends.series.rules.series_slots import Part

# Series rules as schema.org schedules.

SCHEMA: Final = "https://schema.org/"
PERIODS: Final = {"daily": "D", "weekly": "W", "monthly": "M", "yearly": "Y"}


def describe_event_series(title: str, url: str, parts: Sequence[Part]) -> JsonObject:
    """Describe a series with its rules. Omit rules that schema.org cannot express."""
    schedules = [schedule for part in parts if (schedule := describe_schedule(part)) is not None]
    described: JsonObject = {"@type": "EventSeries", "name": to_plain_text(title), "url": url}
    if schedules:
        described["eventSchedule"] = schedules[0] if len(schedules) == 1 else schedules
    return described


def describe_schedule(part: Part) -> JsonObject | None:
    """Describe a part's rule. Return None without a rule, or if schema.org cannot express its set positions."""
    rule = part.rule
    if rule is None or rule.set_positions:
        return None
    values: JsonObject = {
        "@type": "Schedule",
        "startDate": part.start.date().isoformat(),
        "endDate": rule.until.isoformat() if rule.until else None,
        "startTime": None if part.all_day else part.start.time().isoformat(),
        "endTime": None if part.all_day else part.end.time().isoformat(),
        "scheduleTimezone": part.timezone,
        "repeatFrequency": f"P{rule.interval}{PERIODS[rule.frequency]}",
        "repeatCount": rule.count,
        "byDay": [_describe_weekday(weekday) for weekday in rule.weekdays],
        "byMonth": list(rule.months),
        "byMonthDay": list(rule.month_days),
    }
    return {name: value for name, value in values.items() if value not in (None, [])}


def _describe_weekday(weekday: Weekday) -> str:
    """Return the weekday's URL at schema.org. If the weekday has an ordinal, return the iCalendar form."""
    if weekday.ordinal is None:
        return f"{SCHEMA}{WEEKDAYS[weekday.day].capitalize()}"
    return f"{weekday.ordinal}{WEEKDAY_CODES[weekday.day]}"


CONTEXT: Final = {"@context": "https://schema.org"}
MAX_TEXT_LENGTH: Final = 5000

# schema.org has no status for sold-out events, so the offers state that an event is sold out.
EVENT_STATUSES: Final = {
    SCHEDULED: "EventScheduled",
    CANCELLED: "EventCancelled",
    POSTPONED: "EventPostponed",
    MOVED_ONLINE: "EventMovedOnline",
    SOLD_OUT: "EventScheduled",
}


def describe_event(event: Event, context: RenderContext) -> JsonObject:
    """Describe an event with its venues, organizers and prices."""
    json_ld: JsonObject = {
        **CONTEXT,
        "@type": "Event",
        "name": to_plain_text(event.title),
        "description": _shorten_text(event.excerpt or event.description),
        "url": event.url,
        "eventAttendanceMode": f"{SCHEMA}{_find_attendance_mode(event)}EventAttendanceMode",
        "eventStatus": f"{SCHEMA}{EVENT_STATUSES[event.event_status]}",
        "startDate": in_zone(event.start_utc, event.timezone).isoformat(),
        "endDate": in_zone(event.end_utc, event.timezone).isoformat(),
    }
    if event.image:
        json_ld["image"] = event.image.url
    places = [_describe_place(venue) for venue in event.places]
    if event.is_online:
        places.append({"@type": "VirtualLocation", "url": event.virtual_url})
    if places:
        json_ld["location"] = _unwrap(places)
    if event.organizers:
        json_ld["organizer"] = _unwrap([_describe_organization(organizer) for organizer in event.organizers])
    offers = _build_offers(event, context)
    if offers:
        json_ld["offers"] = offers
    if series := event.series:
        json_ld["superEvent"] = describe_event_series(series.title, series.url, series.parts)
    return json_ld


def describe_series(series: Series, context: RenderContext) -> JsonObject:
    """Describe a series: its rules, and the content that its dates share."""
    content = describe_event(series.content, context)
    kept = ("description", "eventAttendanceMode", "image", "location", "organizer", "offers")
    return {
        **CONTEXT,
        **describe_event_series(series.title, series.url, series.definition.parts),
        **{name: content[name] for name in kept if name in content},
    }


def _find_attendance_mode(event: Event) -> str:
    if not event.is_online:
        return "Offline"
    return "Mixed" if event.places else "Online"


def describe_venue(venue: Venue, _: RenderContext) -> JsonObject:
    return {**CONTEXT, **_describe_place(venue)}


def describe_organizer(organizer: Organizer, _: RenderContext) -> JsonObject:
    return {**CONTEXT, **_describe_organization(organizer)}


def _describe_place(venue: Venue) -> JsonObject:
    address = {
        "streetAddress": venue.address,
        "addressLocality": venue.city,
        "addressRegion": venue.stateprovince,
        "postalCode": venue.zip,
        "addressCountry": venue.country,
    }
    json_ld: JsonObject = {
        "@type": "Place",
        "name": to_plain_text(venue.name),
        "url": venue.url,
        "description": _shorten_text(venue.description),
        "telephone": venue.phone,
        "sameAs": venue.website,
        "address": {"@type": "PostalAddress", **_omit_empty(address)} if any(address.values()) else None,
    }
    if venue.coordinates:
        latitude, longitude = venue.coordinates
        json_ld["geo"] = {"@type": "GeoCoordinates", "latitude": latitude, "longitude": longitude}
    return _omit_empty(json_ld)


def _describe_organization(organizer: Organizer) -> JsonObject:
    return _omit_empty(
        {
            "@type": "Organization",
            "name": to_plain_text(organizer.name),
            "url": organizer.url,
            "description": _shorten_text(organizer.description),
            "telephone": organizer.phone,
            "email": organizer.email,
            "sameAs": organizer.website,
        }
    )


def _build_offers(event: Event, context: RenderContext) -> JsonObject | None:
    """Return one price or a price range; None if the cost contains neither a number nor the word “free”.

    A cancelled event has no offers. A sold-out event has an offer even without a price.
    """
    prices = [price for price in map(_parse_price, event.cost_details["values"]) if price is not None]
    is_sold_out, has_prices = event.event_status == SOLD_OUT, bool(event.cost and prices)
    if event.event_status == CANCELLED or not (has_prices or is_sold_out):
        return None
    common = {
        "url": event.ticket_url or event.url,
        "availability": f"{SCHEMA}{'SoldOut' if is_sold_out else 'InStock'}",
    }
    if not has_prices:
        return {"@type": "Offer", **common}
    common |= {
        "priceCurrency": event.currency.code or context.site.currency_code,
        "validFrom": format_datetime(event.date_utc).replace(" ", "T") + "Z",
    }
    if len(prices) > 1:
        # Existing clients read the `price` of each offer.
        limits = {"price": prices[0], "lowPrice": prices[0], "highPrice": prices[-1]}
        return {"@type": "AggregateOffer", **limits, **common}
    return {"@type": "Offer", "price": prices[0], **common}


def _unwrap(entries: list[JsonObject]) -> JsonObject | list[JsonObject]:
    """Return several entries as a list, but a single entry as an object, because existing clients expect that."""
    return entries[0] if len(entries) == 1 else entries


def _parse_price(value: str) -> str | None:
    if value.lower() == "free":
        return "0"
    return value if value.replace(".", "", 1).isdecimal() else None


def _shorten_text(html: str) -> str:
    return to_plain_text(html)[:MAX_TEXT_LENGTH]


def _omit_empty(values: dict[str, Any]) -> JsonObject:
    return {key: value for key, value in values.items() if value not in (None, "")}

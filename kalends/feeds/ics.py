"""Write iCalendar (RFC 5545 and 7986). Equal records produce identical bytes.

UID never changes. SEQUENCE increases with every change to the time, place, post status or event status. A time is
written in the event's zone if all clients derive the same instant from it, otherwise in UTC.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from html import escape as escape_html
from typing import Final

from kalends.calendar.rules.record_types import CANCELLED, POSTPONED, Event, Organizer, Venue
from kalends.core.addresses import format_lines
from kalends.core.errors import InvalidValue
from kalends.core.html_text import to_plain_lines, to_plain_text
from kalends.core.times import DIGITS, is_only_time
from kalends.feeds.vtimezone import FIRST_INSTANT, LAST_INSTANT, zone_lines

PRODUCT: Final = "-//Kalends//Calendar//EN"
MAX_LINE_OCTETS: Final = 75  # excluding the line ending
MAX_TEXT_LENGTH: Final = 20_000  # characters per description; longer ones are truncated
# Continuation lines begin with a space, which counts toward the limit, and never with a UTF-8 continuation byte.
_REST_OF_ASCII: Final = re.compile(f"(?s).{{1,{MAX_LINE_OCTETS - 1}}}")
_REST_OF_UTF8: Final = re.compile(rb"(?s).{1,%d}(?![\x80-\xbf])" % (MAX_LINE_OCTETS - 1))
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_UNSAFE_IN_URI: Final = re.compile(r"[\x00-\x1f\x7f\"]")
_IANA_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9_+-]*/[A-Za-z0-9_+/-]+")
# iCalendar has no equivalent for the other event statuses; titles and descriptions mention them.
STATUSES: Final = {CANCELLED: "CANCELLED", POSTPONED: "TENTATIVE"}
MEDIA_TYPES: Final = {"jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png", "webp": "image/webp",
                      "gif": "image/gif", "avif": "image/avif", "svg": "image/svg+xml"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Calendar:
    """A feed's properties. `cancelled_title` replaces the titles of events that are no longer public."""

    name: str
    url: str
    timezone: str
    cancelled_title: str = "Cancelled"


@dataclass(frozen=True, slots=True)
class Times:
    """An event's start and end as wall times and as instants, with the time zone."""

    start_local: datetime
    end_local: datetime
    start_utc: datetime
    end_utc: datetime
    timezone: str
    all_day: bool


@dataclass(frozen=True, slots=True)
class CancelledEvent:
    """An event that is no longer public. The feed discloses only its times and cancellation."""

    uid: str
    sequence: int
    modified_utc: datetime
    times: Times


def begin_calendar(calendar: Calendar, times: Iterable[Times | Event]) -> str:
    """Write the start of a feed, including the time zones required for these times."""
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        f"PRODID:{PRODUCT}",
        "CALSCALE:GREGORIAN",
        "METHOD:PUBLISH",
        f"NAME:{escape(calendar.name)}",
        f"X-WR-CALNAME:{escape(calendar.name)}",
        f"X-WR-TIMEZONE:{calendar.timezone}",
        f"SOURCE;VALUE=URI:{_clean_uri(calendar.url)}",
        "REFRESH-INTERVAL;VALUE=DURATION:PT1H",
        "X-PUBLISHED-TTL:PT1H",
    ]
    for zone, (first, last) in sorted(_collect_zones(times).items()):
        lines += zone_lines(zone, first, last)
    return _join_lines(lines)


def end_calendar() -> str:
    return "END:VCALENDAR\r\n"


def write_event(event: Event, sequence: int, marked_title: str = "") -> str:
    """Write an event as shown to anonymous visitors. `marked_title` includes the event status."""
    return write_component(event, sequence, marked_title, event.uid, format_times(event))


def write_component(event: Event, sequence: int, marked_title: str, uid: str, time_lines: Iterable[str]) -> str:
    """Write an event with the given date and recurrence lines."""
    modified = format_utc(max([record.modified_utc for record in (event, *event.venues, *event.organizers)]))
    lines = [
        "BEGIN:VEVENT",
        f"UID:{uid}",
        f"DTSTAMP:{modified}",
        f"LAST-MODIFIED:{modified}",
        f"CREATED:{format_utc(event.date_utc)}",
        f"SEQUENCE:{sequence}",
        f"STATUS:{STATUSES.get(event.event_status, 'CONFIRMED')}",
        "TRANSP:TRANSPARENT",
        *time_lines,
        f"SUMMARY:{escape(marked_title or to_plain_text(event.title))}",
        f"URL:{_clean_uri(event.url)}",
    ]
    if event.series:
        lines.append(f"REFID:{event.series.uid}")  # RFC 9253: clients can group a series' dates.
    lines += _description_lines(event)
    lines += _location_lines(event)
    if event.categories:
        lines.append("CATEGORIES:" + ",".join(escape(term.name) for term in event.categories))
    if event.organizers:
        lines.append("CONTACT:" + escape(", ".join(map(_format_contact, event.organizers))))
    if event.image:
        media_type = MEDIA_TYPES.get(event.image.extension.lower())
        format_type = f";FMTTYPE={media_type}" if media_type else ""
        lines.append(f"IMAGE;VALUE=URI;DISPLAY=BADGE{format_type}:{_clean_uri(event.image.url)}")
    lines.append("END:VEVENT")
    return _join_lines(lines)


def write_cancelled(event: CancelledEvent, calendar: Calendar) -> str:
    modified = format_utc(event.modified_utc)
    return _join_lines(
        [
            "BEGIN:VEVENT",
            f"UID:{event.uid}",
            f"DTSTAMP:{modified}",
            f"LAST-MODIFIED:{modified}",
            f"SEQUENCE:{event.sequence}",
            "STATUS:CANCELLED",
            "TRANSP:TRANSPARENT",
            *format_times(event.times),
            f"SUMMARY:{escape(calendar.cancelled_title)}",
            "END:VEVENT",
        ]
    )


def escape(text: str) -> str:
    """Escape a TEXT value (RFC 5545, section 3.3.11)."""
    text = text.replace("\r\n", "\n").replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    text = text.replace("\n", "\\n")
    return text if text.isprintable() else _CONTROL.sub("", text)


def fold(line: str) -> str:
    """Fold a line after at most 75 octets, never inside a character."""
    if line.isascii():
        return "\r\n ".join([line[:MAX_LINE_OCTETS], *_REST_OF_ASCII.findall(line, MAX_LINE_OCTETS)])
    encoded = line.encode()
    end = MAX_LINE_OCTETS
    while end < len(encoded) and encoded[end] & 0xC0 == 0x80:  # a UTF-8 continuation byte
        end -= 1
    return b"\r\n ".join([encoded[:end], *_REST_OF_UTF8.findall(encoded, end)]).decode()


def _collect_zones(times: Iterable[Times | Event]) -> dict[str, tuple[datetime, datetime]]:
    """Return the required zones, each with the first and last instant written in it."""
    by_zone: dict[str, list[tuple[datetime, datetime]]] = {}
    for row in times:
        if not row.all_day:
            by_zone.setdefault(row.timezone, []).extend(
                ((row.start_utc, row.start_local), (row.end_utc, row.end_local))
            )
    spans: dict[str, tuple[datetime, datetime]] = {}
    for zone, pairs in by_zone.items():
        pairs.sort()
        first = _find_unambiguous(pairs, zone)
        last = _find_unambiguous(reversed(pairs), zone)
        if first is not None and last is not None:
            spans[zone] = (first, last)
    return spans


def _find_unambiguous(pairs: Iterable[tuple[datetime, datetime]], zone: str) -> datetime | None:
    return next((utc for utc, local in pairs if is_unambiguous(local, utc, zone)), None)


def is_unambiguous(local: datetime, utc: datetime, zone: str) -> bool:
    """Return whether all clients derive this instant from the wall time and the zone name.

    Clients may disagree if the wall time is ambiguous or in a gap, if the zone has a fixed offset, or if the rules
    for the year are unknown.
    """
    if not FIRST_INSTANT <= utc < LAST_INSTANT or not is_named(zone):
        return False
    try:
        return is_only_time(local, utc, zone)
    except InvalidValue:
        return False


@lru_cache(maxsize=1024)
def is_named(zone: str) -> bool:
    return bool(_IANA_NAME.fullmatch(zone))


def format_times(times: Times | Event) -> Iterator[str]:
    if times.all_day:
        yield f"DTSTART;VALUE=DATE:{format_day(times.start_local.date())}"
        yield f"DTEND;VALUE=DATE:{format_day(times.end_local.date() + timedelta(days=1))}"
        return
    yield "DTSTART" + format_time(times.start_local, times.start_utc, times.timezone)
    if times.end_utc > times.start_utc:
        yield "DTEND" + format_time(times.end_local, times.end_utc, times.timezone)


def format_time(local: datetime, utc: datetime, zone: str) -> str:
    if is_unambiguous(local, utc, zone):
        return f";TZID={zone}:{compact_datetime(local)}"
    return f":{format_utc(utc)}"


def format_day(day: date) -> str:
    return day.isoformat().replace("-", "")


def format_utc(utc: datetime) -> str:
    return f"{compact_datetime(utc.astimezone(UTC))}Z"


def compact_datetime(value: datetime) -> str:
    """Format a date-time like 20270401T193000; `strftime` would not pad years before 1000."""
    century, year = divmod(value.year, 100)
    return (
        f"{DIGITS[century]}{DIGITS[year]}{DIGITS[value.month]}{DIGITS[value.day]}"
        f"T{DIGITS[value.hour]}{DIGITS[value.minute]}{DIGITS[value.second]}"
    )


def _description_lines(event: Event) -> Iterator[str]:
    """Yield the description as plain text and as HTML. The text ends with the URL, for clients that ignore `URL`."""
    html = (event.description or event.excerpt)[:MAX_TEXT_LENGTH]
    plain = "\n\n".join(filter(None, (event.reason, to_plain_lines(html), event.url)))
    yield f"DESCRIPTION:{escape(plain)}"
    if html and len(event.description) <= MAX_TEXT_LENGTH:
        reason = f"<p>{escape_html(event.reason)}</p>" if event.reason else ""
        yield f"X-ALT-DESC;FMTTYPE=text/html:{escape(reason + html)}"


def _location_lines(event: Event) -> Iterator[str]:
    location = format_location(event)
    if location:
        yield f"LOCATION:{escape(location)}"
    if event.online_url:
        yield f"CONFERENCE;VALUE=URI:{_clean_uri(event.online_url)}"
    places = event.places
    if len(places) == 1 and (coordinates := places[0].coordinates):
        latitude, longitude = coordinates
        yield f"GEO:{latitude:.6f};{longitude:.6f}"


def format_location(event: Event) -> str:
    """Format an event's places on one line, or return the online URL if there are none."""
    return "; ".join(map(format_address, event.places)) or event.online_url


def format_address(venue: Venue) -> str:
    return _join_address(venue.name, *address_lines(venue))


def address_lines(venue: Venue) -> tuple[str, ...]:
    """Return a venue's address as lines, in the order that its country uses."""
    return format_lines(venue.address, venue.zip, venue.city, venue.stateprovince, venue.country)


@lru_cache(maxsize=4096)  # events in a feed often share venues
def _join_address(name: str, *lines: str) -> str:
    return ", ".join(dict.fromkeys(filter(None, (to_plain_text(name), *lines))))


def _format_contact(organizer: Organizer) -> str:
    return " ".join(filter(None, (to_plain_text(organizer.name), organizer.phone, organizer.email)))


def _clean_uri(url: str) -> str:
    """Remove line breaks and quotation marks, which would break the format. URLs are validated on write."""
    return _UNSAFE_IN_URI.sub("", url)


def _join_lines(lines: Iterable[str]) -> str:
    # Most lines are short, and calling a function for every line would take longer than folding the long ones.
    folded = [line if len(line) <= MAX_LINE_OCTETS and line.isascii() else fold(line) for line in lines]
    return "\r\n".join([*folded, ""])

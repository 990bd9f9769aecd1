"""iCalendar (RFC 5545 and 7986): the same records always make the same bytes.

UID never changes. SEQUENCE rises with every change of time, place or status. A time is written in the zone of
its event where that says which instant is meant, else in UTC: a subscriber never has to guess.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from kalends.core.errors import InvalidValue
from kalends.core.html_text import to_plain_lines, to_plain_text
from kalends.core.zones import utc_of
from kalends.feeds.vtimezone import FIRST_INSTANT, LAST_INSTANT, zone_lines

PRODUCT: Final = "-//Kalends//Calendar//EN"
MAX_LINE_OCTETS: Final = 75  # octets of a line, without its end
MAX_TEXT_LENGTH: Final = 20_000  # characters of a description: calendars are no place for books
_SPECIAL: Final = re.compile(r"[\\;,\n]")
_ESCAPES: Final = {"\\": "\\\\", ";": "\\;", ",": "\\,", "\n": "\\n"}
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_UNSAFE_IN_URI: Final = re.compile(r"[\x00-\x1f\x7f\"]")
_IANA_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9_+-]*/[A-Za-z0-9_+/-]+")
MEDIA_TYPES: Final = {"jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png", "webp": "image/webp",
                      "gif": "image/gif", "avif": "image/avif", "svg": "image/svg+xml"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Calendar:
    """What a feed says of itself. `cancelled` is the word that stands for the title of an event that is off."""

    name: str
    url: str
    timezone: str
    cancelled_title: str = "Cancelled"


@dataclass(frozen=True, slots=True)
class Times:
    """When something is: wall times as written, their instants, and the zone."""

    start_local: datetime
    end_local: datetime
    start_utc: datetime
    end_utc: datetime
    timezone: str
    all_day: bool


@dataclass(frozen=True, slots=True)
class CancelledEvent:
    """An event that everybody could see and nobody can any more: only that it is off is told."""

    uid: str
    sequence: int
    modified_utc: datetime
    times: Times


def begin_calendar(calendar: Calendar, times: Iterable[Times]) -> str:
    """The head of a feed, with the zones in which these times are written."""
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


def write_event(record: dict[str, Any], sequence: int) -> str:
    """One event, from its representation to everybody."""
    times = read_times(record)
    venues = record["venue"] if isinstance(record["venue"], list) else [record["venue"]]
    modified = max(row["modified_utc"] for row in (record, *venues, *record["organizer"]))
    lines = [
        "BEGIN:VEVENT",
        f"UID:{record['uid']}",
        f"DTSTAMP:{_compact_datetime(modified)}Z",
        f"LAST-MODIFIED:{_compact_datetime(modified)}Z",
        f"CREATED:{_compact_datetime(record['date_utc'])}Z",
        f"SEQUENCE:{sequence}",
        "STATUS:CONFIRMED",
        "TRANSP:TRANSPARENT",
        *_time_lines(times),
        f"SUMMARY:{escape(to_plain_text(record['title']))}",
        f"URL:{_clean_uri(record['url'])}",
    ]
    lines += _description_lines(record)
    lines += _location_lines(venues)
    if record["categories"]:
        lines.append("CATEGORIES:" + ",".join(escape(term["name"]) for term in record["categories"]))
    if record["organizer"]:
        lines.append("CONTACT:" + escape(", ".join(map(_format_contact, record["organizer"]))))
    if record["image"]:
        media_type = MEDIA_TYPES.get(str(record["image"].get("extension", "")).lower())
        format_type = f";FMTTYPE={media_type}" if media_type else ""
        lines.append(f"IMAGE;VALUE=URI;DISPLAY=BADGE{format_type}:{_clean_uri(record['image']['url'])}")
    lines.append("END:VEVENT")
    return _join_lines(lines)


def write_cancelled(event: CancelledEvent, calendar: Calendar) -> str:
    modified = f"{event.modified_utc.astimezone(UTC):%Y%m%dT%H%M%S}Z"
    return _join_lines(
        [
            "BEGIN:VEVENT",
            f"UID:{event.uid}",
            f"DTSTAMP:{modified}",
            f"LAST-MODIFIED:{modified}",
            f"SEQUENCE:{event.sequence}",
            "STATUS:CANCELLED",
            "TRANSP:TRANSPARENT",
            *_time_lines(event.times),
            f"SUMMARY:{escape(calendar.cancelled_title)}",
            "END:VEVENT",
        ]
    )


def read_times(record: dict[str, Any]) -> Times:
    return Times(
        start_local=datetime.fromisoformat(record["start_date"]),
        end_local=datetime.fromisoformat(record["end_date"]),
        start_utc=datetime.fromisoformat(record["utc_start_date"]).replace(tzinfo=UTC),
        end_utc=datetime.fromisoformat(record["utc_end_date"]).replace(tzinfo=UTC),
        timezone=record["timezone"],
        # A protected event does not say whether it lasts whole days; its times do not lie.
        all_day=bool(record["all_day"]),
    )


def escape(text: str) -> str:
    """TEXT of RFC 5545."""
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], _CONTROL.sub("", text.replace("\r\n", "\n")))


def fold(line: str) -> str:
    """Lines of at most 75 octets, never parted inside a character."""
    if len(line) <= MAX_LINE_OCTETS and line.isascii():
        return line
    encoded = line.encode()
    if len(encoded) <= MAX_LINE_OCTETS:
        return line
    parts: list[bytes] = []
    begin, room = 0, MAX_LINE_OCTETS
    while len(encoded) - begin > room:
        end = begin + room
        while encoded[end] & 0xC0 == 0x80:  # the middle of a character
            end -= 1
        parts.append(encoded[begin:end])
        begin, room = end, MAX_LINE_OCTETS - 1  # the space in front counts
    parts.append(encoded[begin:])
    return b"\r\n ".join(parts).decode()


# Helpers, in the order they are called -------------------------------------------------------


def _collect_zones(times: Iterable[Times]) -> dict[str, tuple[datetime, datetime]]:
    """Each zone that is named, with the first and last instant written in it."""
    spans: dict[str, tuple[datetime, datetime]] = {}
    for row in times:
        if row.all_day:
            continue
        for local, utc in ((row.start_local, row.start_utc), (row.end_local, row.end_utc)):
            if _is_unambiguous(local, utc, row.timezone):
                first, last = spans.get(row.timezone, (utc, utc))
                spans[row.timezone] = (min(first, utc), max(last, utc))
    return spans


def _is_unambiguous(local: datetime, utc: datetime, zone: str) -> bool:
    """Whether wall time and zone name mean this instant to everybody: two equal wall times (readers do not agree
    on which is meant), one in a gap, a fixed offset and a far year do not."""
    if not FIRST_INSTANT <= utc < LAST_INSTANT or not _IANA_NAME.fullmatch(zone):
        return False
    try:
        return utc_of(local, zone) == utc == utc_of(local, zone, fold=1)
    except InvalidValue:
        return False


def _time_lines(times: Times) -> Iterator[str]:
    if times.all_day:
        yield f"DTSTART;VALUE=DATE:{_format_day(times.start_local.date())}"
        yield f"DTEND;VALUE=DATE:{_format_day(times.end_local.date() + timedelta(days=1))}"
        return
    yield "DTSTART" + _format_time(times.start_local, times.start_utc, times.timezone)
    if times.end_utc > times.start_utc:
        yield "DTEND" + _format_time(times.end_local, times.end_utc, times.timezone)


def _format_time(local: datetime, utc: datetime, zone: str) -> str:
    if _is_unambiguous(local, utc, zone):
        return f";TZID={zone}:{_compact_datetime(local.isoformat())}"
    return f":{_compact_datetime(utc.isoformat())}Z"


def _format_day(day: date) -> str:
    return day.isoformat().replace("-", "")


def _compact_datetime(text: str) -> str:
    """`2027-04-01 19:30:00` as 20270401T193000."""
    return f"{text[:4]}{text[5:7]}{text[8:10]}T{text[11:13]}{text[14:16]}{text[17:19]}"


def _description_lines(record: dict[str, Any]) -> Iterator[str]:
    """The description as plain text, with the address at its end for calendars that show no URL, and as HTML."""
    html = (record["description"] or record["excerpt"])[:MAX_TEXT_LENGTH]
    plain = "\n\n".join(filter(None, (to_plain_lines(html), record["url"])))
    yield f"DESCRIPTION:{escape(plain)}"
    if html and len(record["description"]) <= MAX_TEXT_LENGTH:
        yield f"X-ALT-DESC;FMTTYPE=text/html:{escape(html)}"


def _location_lines(venues: list[dict[str, Any]]) -> Iterator[str]:
    if not venues:
        return
    yield f"LOCATION:{escape('; '.join(map(format_address, venues)))}"
    if len(venues) == 1 and "geo_lat" in venues[0]:
        yield f"GEO:{venues[0]['geo_lat']:.6f};{venues[0]['geo_lng']:.6f}"


def format_address(venue: dict[str, Any]) -> str:
    """Name and address on one line, as a person would write it."""
    town = " ".join(filter(None, (venue.get("zip"), venue.get("city"))))
    parts = (
        to_plain_text(venue["venue"]),
        venue.get("address"),
        town,
        venue.get("stateprovince"),
        venue.get("country"),
    )
    return ", ".join(dict.fromkeys(part for part in parts if part))


def _format_contact(organizer: dict[str, Any]) -> str:
    return " ".join(
        filter(None, (to_plain_text(organizer["organizer"]), organizer.get("phone"), organizer.get("email")))
    )


def _clean_uri(url: str) -> str:
    """Addresses are checked when they are stored; a line end or a quotation mark would still break the format."""
    return _UNSAFE_IN_URI.sub("", url)


def _join_lines(lines: Iterable[str]) -> str:
    return "".join([fold(line) + "\r\n" for line in lines])

"""iCalendar events as API parameters: times, content, places, organizers, and warnings."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import unquote

from kalends.calendar.rules.record_types import CANCELLED, SCHEDULED
from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.core.sanitize import clean_name, clean_title
from kalends.core.times import format_datetime, format_offset, offset_of, utc_of, year_error
from kalends.core.urls import read_email, read_website
from kalends.imports.rules import ical_zones
from kalends.imports.rules.ical_lines import Component, Property
from kalends.imports.rules.ical_zones import LocalMoment, Moment, Zones
from kalends.imports.rules.import_places import make_linked
from kalends.imports.rules.import_records import ImportedRecord

# Venues and organizers ------------------------------------------------------------------------------

MAX_NAME_LENGTH: Final = 200
MAX_ADDRESS_LENGTH: Final = 500
_BRACKETS: Final = re.compile(r"([^(),\n]{1,200})\(([^()\n]{1,500},[^()\n]{1,500})\)")
_URL: Final = re.compile(r"https?://\S+", re.IGNORECASE)
_GEO_URI: Final = re.compile(r"geo:(-?\d{1,3}(?:\.\d{1,20})?),(-?\d{1,3}(?:\.\d{1,20})?)", re.IGNORECASE | re.ASCII)
# Addresses that identify a calendar, not a person.
_TECHNICAL_ADDRESS: Final = re.compile(
    r".*@(group\.calendar|import\.calendar|calendar)\.google\.com|.*(no-?reply|unknownorganizer|invalid:nomail).*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event takes place: a venue, an online address, or both."""

    venue: ImportedRecord | None = None
    online_url: str = ""


def read_place(event: Component) -> Place:
    text = ical_zones.read_text(event.first("LOCATION"))
    urls = _URL.findall(text[:2000])
    text = " ".join(_URL.sub("", text).split(" ")).strip(" ,;|-\n") if urls else text
    online = _read_conference(event) or next((url.rstrip(",;)>.") for url in urls), "")
    return Place(_read_venue(event, text), online)


def _read_conference(event: Component) -> str:
    found = event.first("CONFERENCE") or event.first("X-GOOGLE-CONFERENCE")
    url = (found.value or "").strip() if found else ""
    return url if _URL.fullmatch(url) else ""


def _read_venue(event: Component, text: str) -> ImportedRecord | None:
    structured = event.first("X-APPLE-STRUCTURED-LOCATION")
    params = ical_zones.read_params(structured) if structured else {}
    title, address = _split_location(text)
    title = params.get("X-TITLE", "").split("\\n")[0].strip()[:MAX_NAME_LENGTH] or title
    address = params.get("X-ADDRESS", "").replace("\\n", ", ")[:MAX_ADDRESS_LENGTH] or address
    if not clean_title(title):
        return None
    position = _read_geo_uri(structured.value or "") if structured else None
    position = position or ical_zones.read_position(event.first("GEO"))
    values: dict[str, Any] = {"venue": title, "address": address}
    if position is not None:
        values |= {"geo_lat": position[0], "geo_lng": position[1]}
    return make_linked("venues", f"{title}, {address}", values, event.line)


def _split_location(text: str) -> tuple[str, str]:
    """Split a location into name and address at the first line break or comma.

    Some programs write `name @ address` or `name (address)`.
    """
    if (match := _BRACKETS.fullmatch(text)) is not None:
        return " ".join(match[1].split())[:MAX_NAME_LENGTH], match[2].strip()[:MAX_ADDRESS_LENGTH]
    separator = next((entry for entry in ("\n", " @ ", ",") if entry in text), ",")
    first, _, rest = text.partition(separator)
    address = ", ".join(part.strip(" ,") for part in rest.split("\n") if part.strip(" ,"))
    return " ".join(first.split())[:MAX_NAME_LENGTH], address[:MAX_ADDRESS_LENGTH]


def _read_geo_uri(text: str) -> tuple[float, float] | None:
    match = _GEO_URI.match(text.strip())
    latitude, longitude = (float(match[1]), float(match[2])) if match else (0.0, 0.0)
    is_valid = abs(latitude) <= 90 and abs(longitude) <= 180
    return (latitude, longitude) if is_valid and (latitude or longitude) else None


def read_organizer(event: Component) -> ImportedRecord | None:
    """Return the organizer. Return None if it has no name, because an email address must not become a public name."""
    found = event.first("ORGANIZER")
    name = _read_name(ical_zones.read_params(found).get("CN", "")) if found else ""
    if found is None or not clean_title(name) or "@" in name:
        return None
    values: dict[str, Any] = {"organizer": name, "email": _read_address(found.value or "")}
    return make_linked("organizers", name, values, event.line)


def leave_out_email(record: ImportedRecord) -> ImportedRecord:
    return replace(record, values={name: value for name, value in record.values.items() if name != "email"})


def _read_name(text: str) -> str:
    """Return a name, decoded if a program percent-encoded it."""
    decoded = unquote(text) if "%20" in text else text
    return " ".join(decoded.strip("\"' ").split())[:MAX_NAME_LENGTH]


def _read_address(text: str) -> str:
    scheme, _, address = text.strip().partition(":")
    if scheme.lower() != "mailto" or _TECHNICAL_ADDRESS.fullmatch(address):
        return ""
    try:
        return read_email(address)
    except InvalidValue:
        return ""


MAX_CATEGORIES: Final = 20

DAY: Final = timedelta(days=1)
_IMAGE_PATH: Final = re.compile(r"https?://[^?#]+\.(?:jpe?g|png|gif|webp|avif)(?:[?#].*)?", re.IGNORECASE)
_HIDDEN: Final = frozenset({"PRIVATE", "CONFIDENTIAL"})


@dataclass(frozen=True, slots=True)
class Times:
    """Start and end in the same zone. The end of an all-day event is on its last day."""

    start: LocalMoment
    end: LocalMoment

    @property
    def zone(self) -> str | None:
        return self.start.zone

    def instants(self) -> tuple[datetime, datetime]:
        """Return start and end in UTC. Days without a zone are treated as days in UTC."""
        zone = self.zone or "UTC"
        end = self.end.wall + DAY if self.end.is_day else self.end.wall
        return utc_of(self.start.wall, zone, self.start.fold), utc_of(end, zone, self.end.fold)


@dataclass(frozen=True, slots=True)
class Content:
    """An event's content, except for its times, and its linked records by parameter."""

    values: Mapping[str, Any]
    linked: Mapping[str, ImportedRecord]
    warnings: tuple[Message, ...]


def read_times(event: Component, zones: Zones, *, is_recurring: bool = False) -> Times:
    """Return an event's times. Raise InvalidValue if the times are missing or contradictory."""
    start = read_start(event, zones, is_recurring=is_recurring)
    with_end = _read_end(event, zones, start)
    if with_end.end.wall < start.wall and utc_of(with_end.end.wall, start.zone or "UTC") < utc_of(
        start.wall, start.zone or "UTC"
    ):
        raise InvalidValue(
            "the end, {end}, must not be before the start, {start} ({zone}).",
            end=format_datetime(with_end.end.wall),
            start=format_datetime(start.wall),
            zone=start.zone or "UTC",
        )
    return _find_whole_days(event, with_end)


def read_start(event: Component, zones: Zones, *, is_recurring: bool = False) -> LocalMoment:
    found = event.first("DTSTART")
    if found is None or not (found.value or "").strip():
        raise InvalidValue("`{name}` is missing.", name="DTSTART")
    moment = naming("DTSTART", lambda: ical_zones.read_moments(found)[0])
    start = naming("DTSTART", lambda: zones.resolve(moment))
    return start if is_recurring else _show_locally(start, moment, zones)


def _show_locally(start: LocalMoment, moment: Moment, zones: Zones) -> LocalMoment:
    """Convert an instant to the calendar's zone. If the calendar has no zone, the site's zone applies later.

    A recurring event keeps UTC, because its local hour in any other zone changes with the seasons.
    """
    if moment.is_day or moment.tzid != "UTC":
        return start
    return zones.move(start, zones.shown) if zones.shown else replace(start, zone=None)


def _read_end(event: Component, zones: Zones, start: LocalMoment) -> Times:
    found, duration = event.first("DTEND"), event.first("DURATION")
    if found is not None and (found.value or "").strip():
        moment = naming("DTEND", lambda: ical_zones.read_moments(found)[0])
        return Times(start, _align_end(start, naming("DTEND", lambda: zones.resolve(moment)), zones))
    length = naming("DURATION", lambda: ical_zones.read_duration(duration)) if duration is not None else timedelta(0)
    if start.is_day:
        return Times(start, replace(start, wall=start.wall + max(timedelta(0), timedelta(days=length.days - 1))))
    return Times(start, replace(start, wall=_add(start, length), fold=0))


def _add(start: LocalMoment, length: timedelta) -> datetime:
    """Add a duration in local time."""
    days = timedelta(days=length.days)
    try:
        return start.wall + days + (length - days)
    except OverflowError:
        raise InvalidValue("`{name}`: {problem}", name="DURATION", problem=year_error().message) from None


def _align_end(start: LocalMoment, end: LocalMoment, zones: Zones) -> LocalMoment:
    """Return the end in the same form as the start.

    In a file, an all-day event ends on the day after its last day.
    """
    if start.is_day:
        last = end.wall - DAY if end.is_day else end.wall - timedelta(seconds=1)
        return replace(start, wall=max(start.wall, datetime.combine(last.date(), start.wall.time())))
    if end.is_day:
        return replace(start, wall=max(start.wall, end.wall))
    return replace(zones.move(end, start.zone or "UTC"), zone=start.zone)


def _find_whole_days(event: Component, times: Times) -> Times:
    """Convert an event from midnight to midnight to whole days if it is marked as all-day."""
    is_marked = event.text("X-MICROSOFT-CDO-ALLDAYEVENT").upper() == "TRUE"
    if not is_marked or times.start.is_day or _is_inside_day(times.start.wall) or _is_inside_day(times.end.wall):
        return times
    last = max(times.start.wall, times.end.wall - DAY)
    return Times(replace(times.start, is_day=True, fold=0), replace(times.end, wall=last, is_day=True, fold=0))


def _is_inside_day(moment: datetime) -> bool:
    return (moment.hour, moment.minute, moment.second) != (0, 0, 0)


def format_times(times: Times) -> dict[str, Any]:
    zone = {"timezone": times.zone} if times.zone is not None else {}
    return {
        "start_date": format_moment(times.start),
        "end_date": format_moment(times.end),
        "all_day": times.start.is_day,
        **zone,
    }


def format_moment(moment: LocalMoment) -> str:
    """Format a day or a local time. If a local time occurs twice, the second occurrence includes the offset."""
    if moment.is_day:
        return moment.wall.date().isoformat()
    if moment.zone is None:
        return f"{moment.wall.isoformat(timespec='seconds')}Z"
    if not moment.fold:
        return format_datetime(moment.wall)
    offset = offset_of(utc_of(moment.wall, moment.zone, moment.fold), moment.zone)
    return f"{moment.wall.isoformat(timespec='seconds')}{format_offset(offset)}"


# Content ----------------------------------------------------------------------------------------


def read_content(event: Component, *, is_cancelled: bool) -> Content:
    """Return an event's content. Unreadable parts lead to warnings, but a missing title is an error."""
    title = " ".join(ical_zones.read_text(event.first("SUMMARY")).split())
    if not title:
        raise InvalidValue("the event has no title: `{name}` is missing or empty.", name="SUMMARY")
    warnings = [
        Message("`{name}` was left out, because it is too long.", name=found.name)
        for found in (entry for entries in event.properties.values() for entry in entries)
        if found.value is None
    ]
    place = read_place(event)
    linked = {"venue": place.venue, "organizer": read_organizer(event)}
    values: dict[str, Any] = {
        "title": title,
        "description": ical_zones.read_description(event),
        "website": _read_url(event.text("URL"), "URL", warnings),
        "online_url": _read_url(place.online_url, "LOCATION", warnings),
        "event_status": CANCELLED if is_cancelled or event.text("STATUS").upper() == CANCELLED.upper() else SCHEDULED,
        "categories": _read_categories(event),
    }
    image = _read_url(_find_image(event), "ATTACH", warnings)
    if image:
        values["image"] = image
    if event.text("CLASS").upper() in _HIDDEN:
        values["status"] = "private"
    return Content(values, {name: record for name, record in linked.items() if record}, tuple(warnings))


def _read_url(text: str, name: str, warnings: list[Message]) -> str:
    try:
        return read_website(text)
    except InvalidValue as error:
        warnings.append(ical_zones.left_out(name, error.message))
        return ""


def _find_image(event: Component) -> str:
    candidates = [*event.all("IMAGE"), *event.all("ATTACH")]
    return next((found.value.strip() for found in candidates if found.value and _is_image(found)), "")


def _is_image(found: Property) -> bool:
    """Return whether a property is an image URL rather than an embedded image."""
    url, params = (found.value or "").strip(), ical_zones.read_params(found)
    if not url.lower().startswith(("http://", "https://")) or params.get("VALUE", "").upper() == "BINARY":
        return False
    return params.get("FMTTYPE", "").lower().startswith("image/") or _IMAGE_PATH.fullmatch(url) is not None


def _read_categories(event: Component) -> list[str]:
    """Return category names, except for numbers, because the API would read them as IDs."""
    names = [name for found in event.all("CATEGORIES")[:MAX_CATEGORIES] for name in ical_zones.read_list(found)]
    cleaned = [clean_name(" ".join(name.replace(",", " ").split())[:MAX_NAME_LENGTH]) for name in names]
    kept = [name for name in cleaned if name and not name.isdecimal()]
    return list({name.casefold(): name for name in reversed(kept)}.values())[::-1][:MAX_CATEGORIES]


def naming[T](name: str, read: Callable[[], T]) -> T:
    """Read a property. If that fails, add the property's name to the error."""
    try:
        return read()
    except IndexError:
        raise InvalidValue("`{name}` is missing.", name=name) from None
    except InvalidValue as error:
        raise InvalidValue("`{name}`: {problem}", name=name, problem=error.message) from None

"""Venues and organizers of iCalendar events: separate records that events link to."""

import re
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import unquote

from kalends.core.errors import InvalidValue
from kalends.core.html.sanitize import clean_title
from kalends.core.imports.ical_lines import Component
from kalends.core.imports.ical_values import read_params, read_position, read_text
from kalends.core.imports.places import make_linked
from kalends.core.imports.records import ImportedRecord
from kalends.core.urls import read_email

MAX_NAME_LENGTH: Final = 200
MAX_ADDRESS_LENGTH: Final = 500
_BRACKETS: Final = re.compile(r"([^(),\n]{1,200})\(([^()\n]{1,500},[^()\n]{1,500})\)")
_URL: Final = re.compile(r"https?://\S+", re.IGNORECASE)
_GEO_URI: Final = re.compile(r"geo:(-?\d{1,3}(?:\.\d{1,20})?),(-?\d{1,3}(?:\.\d{1,20})?)", re.IGNORECASE | re.ASCII)
# Addresses that identify a calendar instead of a person.
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
    text = read_text(event.first("LOCATION"))
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
    params = read_params(structured) if structured else {}
    title, address = _split_location(text)
    title = params.get("X-TITLE", "").split("\\n")[0].strip()[:MAX_NAME_LENGTH] or title
    address = params.get("X-ADDRESS", "").replace("\\n", ", ")[:MAX_ADDRESS_LENGTH] or address
    if not clean_title(title):
        return None
    position = _read_geo_uri(structured.value or "") if structured else None
    position = position or read_position(event.first("GEO"))
    values: dict[str, Any] = {"venue": title, "address": address}
    if position is not None:
        values |= {"geo_lat": position[0], "geo_lng": position[1]}
    return make_linked("venues", f"{title}, {address}", values, event.line)


def _split_location(text: str) -> tuple[str, str]:
    """Return name and address: the first line or the text before the first comma, and the rest.

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
    """Return the organizer; None without a name, because an e-mail address is no name for the public."""
    found = event.first("ORGANIZER")
    name = _read_name(read_params(found).get("CN", "")) if found else ""
    if found is None or not clean_title(name) or "@" in name:
        return None
    values: dict[str, Any] = {"organizer": name, "email": _read_address(found.value or "")}
    return make_linked("organizers", name, values, event.line)


def leave_out_email(record: ImportedRecord) -> ImportedRecord:
    """Return a venue or an organizer without its e-mail address."""
    return replace(record, values={name: value for name, value in record.values.items() if name != "email"})


def _read_name(text: str) -> str:
    """Return a name; some programs encode it like a part of a URL."""
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

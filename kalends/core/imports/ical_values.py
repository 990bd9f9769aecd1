"""The values of iCalendar properties. Parameters and types are read with the library `icalendar`."""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import unquote

from icalendar import prop
from icalendar.parser import Contentline

from kalends.core.errors import InvalidValue
from kalends.core.imports.ical_lines import Component, Property
from kalends.core.messages import Message

MAX_PARAMS: Final = 5_000  # characters; longer ones are embedded files
_TAG: Final = re.compile(
    r"<(?:/?(?:p|br|a|b|i|u|em|strong|ul|ol|li|div|span|h[1-6]|table|tr|td|html-blob|html|body)\b[^<>]{0,2000}|!doctype[^<>]{0,500})>",
    re.IGNORECASE,
)
_BODY: Final = re.compile(r"<body\b[^<>]{0,2000}>", re.IGNORECASE)
_ANY_TAG: Final = re.compile(r"<[^<>]*>")
_ESCAPE: Final = re.compile(r"\\([nN\\;,:\"])")
_DATE: Final = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)", re.ASCII)
_MOMENT: Final = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)[T ](\d\d):?(\d\d)(?::?(\d\d))?(?:\.\d{1,9})?(Z)?", re.ASCII)
_DATA_HTML: Final = re.compile(r"data:text/html[^,]{0,100},", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Moment:
    """A day, or a local time with the ID of its zone. `UTC` is the zone of instants; empty: no zone is given."""

    wall: datetime
    is_day: bool
    tzid: str = ""


def read_params(found: Property) -> dict[str, str]:
    """Return the parameters of a property with names in upper case; of a list, the first value."""
    if not found.params or len(found.params) > MAX_PARAMS:
        return {}
    try:
        _, params, _ = Contentline(f"X{found.params}:").raw_parts()  # type: ignore[no-untyped-call]
    except ValueError:
        return {}
    return {name.upper(): str(value[0] if isinstance(value, list) else value) for name, value in params.items()}


def read_text(found: Property | None) -> str:
    """Return a text without its escapes; empty if the property is missing."""
    if found is None or found.value is None:
        return ""
    return _unescape(found.value).replace("\r\n", "\n").strip()


def read_list(found: Property) -> list[str]:
    """Return the texts of a list that is separated by commas."""
    parts = re.split(r"(?<!\\),", found.value or "")
    return [text for part in parts if (text := _unescape(part).strip())]


def _unescape(text: str) -> str:
    """Replace escapes; a backslash before any other character stays."""
    return _ESCAPE.sub(lambda match: "\n" if match[1] in "nN" else match[1], text)


def read_moments(found: Property) -> list[Moment]:
    """Return the dates of a property; of periods, the start."""
    tzid = read_params(found).get("TZID", "")
    return [read_moment(part.partition("/")[0], tzid) for part in (found.value or "").split(",") if part.strip()]


def split_moments(found: Property) -> Iterator[Property]:
    """Yield the dates of a list as properties of their own, so that each can be read for itself."""
    for part in (found.value or "").split(","):
        if part.strip():
            yield replace(found, value=part)


def left_out(name: str, problem: Message) -> Message:
    return Message("`{name}` was left out: {problem}", name=name, problem=problem)


def read_moment(text: str, tzid: str) -> Moment:
    """Read a day or a time. Raise InvalidValue if there is no such date."""
    stripped = text.strip().upper()
    day, moment = _DATE.fullmatch(stripped), _MOMENT.fullmatch(stripped)
    try:
        if day is not None:
            return Moment(datetime(*map(int, day.groups())), is_day=True, tzid=tzid)  # type: ignore[arg-type]
        if moment is not None:
            return _read_time(moment, tzid)
    except ValueError:
        pass
    raise InvalidValue("there is no date {value}.", value=text.strip()[:50])


def _read_time(match: re.Match[str], tzid: str) -> Moment:
    year, month, day, hour, minute = (int(match[number]) for number in range(1, 6))
    second = min(int(match[6] or 0), 59)  # A leap second is the one before.
    next_day = timedelta(days=1) if (hour, minute, second) == (24, 0, 0) else timedelta(0)
    wall = datetime(year, month, day, 0 if next_day else hour, minute, second) + next_day
    return Moment(wall, is_day=False, tzid="UTC" if match[7] else tzid)


def read_duration(found: Property) -> timedelta:
    try:
        duration: timedelta = prop.vDuration.from_ical((found.value or "").strip())  # type: ignore[no-untyped-call]
    except (ValueError, OverflowError):
        raise _no_duration() from None
    if duration < timedelta(0):
        raise _no_duration()
    return duration


def _no_duration() -> InvalidValue:
    return InvalidValue("must be a duration such as PT1H30M.")


def read_position(found: Property | None) -> tuple[float, float] | None:
    """Return latitude and longitude; None if they are missing, invalid or zero."""
    try:
        latitude, longitude = prop.vGeo.from_ical((found.value or "").strip().replace(",", ";")) if found else (0, 0)
    except ValueError:
        return None
    is_valid = -90 <= latitude <= 90 and -180 <= longitude <= 180
    return (latitude, longitude) if is_valid and (latitude or longitude) else None


def read_description(event: Component) -> str:
    """Return the description as HTML: the one that the source has as HTML, or the plain text."""
    rich = next(filter(None, map(_read_rich, [*event.all("X-ALT-DESC"), *event.all("STYLED-DESCRIPTION")])), "")
    found = event.first("DESCRIPTION")
    if not rich and found is not None:
        rich = _read_altrep(found)
    if rich:
        return rich
    text = read_text(found)
    return text if _TAG.search(text) else html.escape(text, quote=False)


def _read_rich(found: Property) -> str:
    """Return the body of an HTML description; empty if it has no text."""
    if "HTML" not in read_params(found).get("FMTTYPE", "").upper():
        return ""
    return _cut_body(read_text(found))


def _read_altrep(found: Property) -> str:
    """Return the HTML in the parameter ALTREP, which some programs write."""
    altrep = read_params(found).get("ALTREP", "")
    begin = _DATA_HTML.match(altrep)
    return _cut_body(unquote(altrep[begin.end() :])) if begin else ""


def _cut_body(text: str) -> str:
    begin = _BODY.search(text)
    inner = text[begin.end() :] if begin else text
    end = inner.lower().rfind("</body")
    inner = inner[:end] if end >= 0 else inner
    return inner.strip() if html.unescape(_ANY_TAG.sub("", inner)).strip() else ""

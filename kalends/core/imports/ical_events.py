"""Single events of iCalendar files: their times and their content as parameters of the API."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from kalends.core.date_forms import year_error
from kalends.core.errors import InvalidValue
from kalends.core.event_states import CANCELLED, SCHEDULED
from kalends.core.html.sanitize import clean_name
from kalends.core.imports.ical_lines import Component, Property
from kalends.core.imports.ical_places import read_organizer, read_place
from kalends.core.imports.ical_values import (
    Moment,
    left_out,
    read_description,
    read_duration,
    read_list,
    read_moments,
    read_params,
    read_text,
)
from kalends.core.imports.ical_zones import LocalMoment, UnknownZone, Zones
from kalends.core.imports.records import ImportedRecord
from kalends.core.local_times import format_offset
from kalends.core.messages import Message
from kalends.core.times import format_datetime
from kalends.core.urls import read_website
from kalends.core.zones import offset_of, utc_of

MAX_CATEGORIES: Final = 20
MAX_NAME_LENGTH: Final = 200
DAY: Final = timedelta(days=1)
_IMAGE_PATH: Final = re.compile(r"https?://[^?#]+\.(?:jpe?g|png|gif|webp|avif)(?:[?#].*)?", re.IGNORECASE)
_HIDDEN: Final = frozenset({"PRIVATE", "CONFIDENTIAL"})


@dataclass(frozen=True, slots=True)
class Times:
    """Start and end, in the same zone. The end of whole days is the last of them."""

    start: LocalMoment
    end: LocalMoment

    @property
    def zone(self) -> str | None:
        return self.start.zone

    def instants(self) -> tuple[datetime, datetime]:
        """Return start and end in UTC; without a zone, the days are those of UTC."""
        zone = self.zone or "UTC"
        end = self.end.wall + DAY if self.end.is_day else self.end.wall
        return utc_of(self.start.wall, zone, self.start.fold), utc_of(end, zone, self.end.fold)


@dataclass(frozen=True, slots=True)
class Content:
    """What an event says besides its times, and the records that it links to, by parameter."""

    values: Mapping[str, Any]
    linked: Mapping[str, ImportedRecord]
    warnings: tuple[Message, ...]


def read_times(event: Component, zones: Zones, *, is_recurring: bool = False) -> Times:
    """Return the times of an event. Raise InvalidValue if it has none, or if they are contradictory."""
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
    moment = naming("DTSTART", lambda: read_moments(found)[0])
    start = _resolve("DTSTART", moment, zones)
    return start if is_recurring else _show_locally(start, moment, zones)


def _show_locally(start: LocalMoment, moment: Moment, zones: Zones) -> LocalMoment:
    """Return an instant in the zone of the calendar; without one it has no zone, and gets that of the site.

    A recurring event keeps UTC, because its hour in any other zone changes with the seasons.
    """
    if moment.is_day or moment.tzid != "UTC":
        return start
    return zones.move(start, zones.shown) if zones.shown else replace(start, zone=None)


def _read_end(event: Component, zones: Zones, start: LocalMoment) -> Times:
    found, duration = event.first("DTEND"), event.first("DURATION")
    if found is not None and (found.value or "").strip():
        moment = naming("DTEND", lambda: read_moments(found)[0])
        return Times(start, _align_end(start, _resolve("DTEND", moment, zones), zones))
    length = naming("DURATION", lambda: read_duration(duration)) if duration is not None else timedelta(0)
    if start.is_day:
        return Times(start, replace(start, wall=start.wall + max(timedelta(0), timedelta(days=length.days - 1))))
    return Times(start, replace(start, wall=_add(start, length), fold=0))


def _add(start: LocalMoment, length: timedelta) -> datetime:
    """Add a duration: its days in local time, the rest exactly."""
    days = timedelta(days=length.days)
    try:
        return start.wall + days + (length - days)
    except OverflowError:
        raise InvalidValue("`{name}`: {problem}", name="DURATION", problem=year_error().message) from None


def _align_end(start: LocalMoment, end: LocalMoment, zones: Zones) -> LocalMoment:
    """Return the end in the form of the start. The end of whole days in a file is the day after the last."""
    if start.is_day:
        last = end.wall - DAY if end.is_day else end.wall - timedelta(seconds=1)
        return replace(start, wall=max(start.wall, datetime.combine(last.date(), start.wall.time())))
    if end.is_day:
        return replace(start, wall=max(start.wall, end.wall))
    return replace(zones.move(end, start.zone or "UTC"), zone=start.zone)


def _find_whole_days(event: Component, times: Times) -> Times:
    """Return whole days for an event from midnight to midnight that its program shows as one of whole days."""
    is_marked = event.text("X-MICROSOFT-CDO-ALLDAYEVENT").upper() == "TRUE"
    if not is_marked or times.start.is_day or _is_inside_day(times.start.wall) or _is_inside_day(times.end.wall):
        return times
    last = max(times.start.wall, times.end.wall - DAY)
    return Times(replace(times.start, is_day=True, fold=0), replace(times.end, wall=last, is_day=True, fold=0))


def _is_inside_day(moment: datetime) -> bool:
    return (moment.hour, moment.minute, moment.second) != (0, 0, 0)


def format_times(times: Times) -> dict[str, Any]:
    """Return the parameters of the times."""
    zone = {"timezone": times.zone} if times.zone is not None else {}
    return {
        "start_date": format_moment(times.start),
        "end_date": format_moment(times.end),
        "all_day": times.start.is_day,
        **zone,
    }


def format_moment(moment: LocalMoment) -> str:
    """Format a day or a local time; the second of two equal times has its offset."""
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
    """Return the content of an event. What cannot be read is left out with a warning, except for the title."""
    title = " ".join(read_text(event.first("SUMMARY")).split())
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
        "description": read_description(event),
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
        warnings.append(left_out(name, error.message))
        return ""


def _find_image(event: Component) -> str:
    candidates = [*event.all("IMAGE"), *event.all("ATTACH")]
    return next((found.value.strip() for found in candidates if found.value and _is_image(found)), "")


def _is_image(found: Property) -> bool:
    """Return whether a property is the address of an image. Embedded images have no address."""
    url, params = (found.value or "").strip(), read_params(found)
    if not url.lower().startswith(("http://", "https://")) or params.get("VALUE", "").upper() == "BINARY":
        return False
    return params.get("FMTTYPE", "").lower().startswith("image/") or _IMAGE_PATH.fullmatch(url) is not None


def _read_categories(event: Component) -> list[str]:
    """Return the names of categories. The API would read a number as an ID."""
    names = [name for found in event.all("CATEGORIES")[:MAX_CATEGORIES] for name in read_list(found)]
    cleaned = [clean_name(" ".join(name.replace(",", " ").split())[:MAX_NAME_LENGTH]) for name in names]
    kept = [name for name in cleaned if name and not name.isdecimal()]
    return list({name.casefold(): name for name in reversed(kept)}.values())[::-1][:MAX_CATEGORIES]


def naming[T](name: str, read: Callable[[], T]) -> T:
    """Read a property; an error names it."""
    try:
        return read()
    except IndexError:
        raise InvalidValue("`{name}` is missing.", name=name) from None
    except InvalidValue as error:
        raise InvalidValue("`{name}`: {problem}", name=name, problem=error.message) from None


def _resolve(name: str, moment: Moment, zones: Zones) -> LocalMoment:
    try:
        return zones.resolve(moment)
    except UnknownZone as error:
        raise InvalidValue("`{name}`: {problem}", name=name, problem=error.message) from None

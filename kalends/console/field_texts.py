"""Field labels, and field values as text, for conflicts and the history."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from kalends.calendar.kinds.kind import Kind
from kalends.calendar.operations.event_links import Names
from kalends.calendar.rules.fields import EVENT_FIELDS, ORGANIZER_FIELDS, VENUE_FIELDS, Field, in_group, pick
from kalends.console.console_request import ConsoleRequest
from kalends.core import times
from kalends.core.html_text import to_plain_lines
from kalends.core.messages import gettext_noop as N_, translator
from kalends.rendering.cards import STATE_LABELS
from kalends.rendering.page_locale import PageLocale, make_page_locale


def _labels(*tables: Iterable[Field]) -> dict[str, str]:
    return {row.name: row.label for fields in tables for row in fields}


LABELS: Final = {
    "title": N_("Title"),
    "dates": N_("Date and time"),
    "start_date": N_("Start"),
    "end_date": N_("End"),
    "timezone": N_("Time zone"),
    "all_day": N_("All day"),
    "description": N_("Description"),
    **_labels(in_group(EVENT_FIELDS, "text")),
    "venue": N_("Venue"),
    "organizer": N_("Organizer"),
    "categories": N_("Categories"),
    "tags": N_("Tags"),
    "image": N_("Picture"),
    "status": N_("Status"),
    "date_utc": N_("Publication date"),
    "author": N_("Author"),
    "slug": N_("Web address"),
    **_labels(*(in_group(EVENT_FIELDS, group) for group in ("cost", "links", "state")), EVENT_FIELDS),
    "new_password": N_("Password"),
    **_labels(pick(VENUE_FIELDS, "address", "city", "country", "province", "state", "stateprovince", "zip", "phone")),
    **_labels(ORGANIZER_FIELDS),
    "position": N_("Position on the map"),
    **_labels(VENUE_FIELDS),
}
STATUS_NAMES: Final = {
    "publish": N_("Published"),
    "draft": N_("Draft"),
    "pending": N_("Waiting for review"),
    "private": N_("Private"),
    "future": N_("Scheduled"),
    "trash": N_("In the trash"),
}
# Statuses as table filters, in the order in which a record passes through them.
STATUS_FILTERS: Final = {
    **{name: STATUS_NAMES[name] for name in ("draft", "pending", "future", "publish", "private")},
    "trash": N_("Trash"),
}
# Fields that are compared word by word. HTML fields are compared as plain text.
PROSE: Final = ("title", "description", "excerpt", "status_reason")
EMPTY: Final = N_("Empty")


def field_label(kind: Kind, name: str) -> str:
    """Return a field's label as a message ID. The title field is called "Name" for all kinds but events."""
    if name == kind.title_param and not kind.is_event:
        return N_("Name")
    return LABELS.get(name, name)


def is_prose(kind: Kind, name: str) -> bool:
    return name in PROSE or name == kind.title_param


def make_locale(console_request: ConsoleRequest) -> PageLocale:
    """Return the user's language with the site's date formats."""
    language = console_request.language
    return make_page_locale(language, console_request.site.language, translator(language))


def value_text(kind: Kind, name: str, value: Any, names: Names, locale: PageLocale) -> str:
    text = locale.text
    if name == "new_password":
        return text(N_("A password is set")) if value else text(N_("No password"))
    if value in (None, "", [], {}):
        return text(EMPTY)
    if isinstance(value, bool):
        return text(N_("Yes")) if value else text(N_("No"))
    if name == "status":
        return text(STATUS_NAMES.get(value, str(value)))
    if name == "event_status":
        return text(STATE_LABELS.get(value, str(value)))
    if name == "dates":
        return _dates_text(value, locale)
    if name == "position":
        return ", ".join("–" if part is None else f"{part:.5f}" for part in value.values())
    if name in ("date_utc", "start_date", "end_date"):
        return _moment_text(value, locale)
    if is_prose(kind, name):
        return to_plain_lines(str(value))
    return _linked_text(name, value, names, locale)


def _linked_text(name: str, value: Any, names: Names, locale: PageLocale) -> str:
    known = names.get(name, {})
    if name == "image":
        return locale.text(N_("Picture {id}"), id=value)
    if name == "author":
        return known.get(value, f"#{value}")
    if not isinstance(value, list):
        return str(value)
    return ", ".join(_entry_text(entry, known) for entry in value)  # pyright: ignore[reportUnknownVariableType]


def _entry_text(entry: Any, known: Mapping[int, str]) -> str:
    """Return the name of a linked record. The entry is an ID, the data of a record, or the name of a term."""
    if isinstance(entry, int):
        return known.get(entry, f"#{entry}")
    if isinstance(entry, dict):
        data: dict[str, Any] = entry  # pyright: ignore[reportUnknownVariableType]
        found = next((data[key] for key in ("venue", "organizer", "name", "id") if data.get(key)), "")
        return str(found)
    return str(entry)


def _dates_text(value: Mapping[str, Any], locale: PageLocale) -> str:
    start, end = _read_wall(value.get("start_date")), _read_wall(value.get("end_date"))
    if start is None or end is None:
        return ", ".join(str(part) for part in value.values() if part not in (None, ""))
    days = locale.days(start.date(), end.date()) if value.get("all_day") else locale.range(start, end, year=True)
    zone = value.get("timezone")
    return f"{days} ({zone})" if zone else days


def _moment_text(value: Any, locale: PageLocale) -> str:
    wall = _read_wall(value)
    return f"{locale.day(wall.date())}, {locale.time(wall)}" if wall else str(value)


def _read_wall(value: Any) -> datetime | None:
    """Return the local time in a formatted date-time, or None if it is malformed."""
    try:
        return datetime.fromisoformat(str(value)).replace(tzinfo=None)
    except ValueError:
        return None


def local_text(moment: datetime, zone: str, locale: PageLocale) -> str:
    wall = times.local_of(moment, zone)
    return f"{locale.bare_day(wall.date())}, {locale.time(wall)}"

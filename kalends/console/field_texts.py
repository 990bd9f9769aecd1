"""Names of the fields of records and texts of their values, for conflicts and the history."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from kalends.console.request import ConsoleRequest
from kalends.core import times
from kalends.core.html.text import to_plain_lines
from kalends.core.messages import gettext_noop as N_
from kalends.http.language import translator
from kalends.kinds.kind import Kind
from kalends.operations.linked_names import Names
from kalends.website.models.page_locale import PageLocale, make_page_locale
from kalends.website.models.states import STATE_LABELS

# Parameters that make sense only together: they are merged, chosen and shown as one field.
GROUPS: Final = {
    "dates": ("start_date", "end_date", "timezone", "all_day"),
    "position": ("geo_lat", "geo_lng"),
}
GROUP_OF: Final = {name: group for group, names in GROUPS.items() for name in names}
LABELS: Final = {
    "title": N_("Title"),
    "dates": N_("Date and time"),
    "start_date": N_("Start"),
    "end_date": N_("End"),
    "timezone": N_("Time zone"),
    "all_day": N_("All day"),
    "description": N_("Description"),
    "excerpt": N_("Summary"),
    "venue": N_("Venue"),
    "organizer": N_("Organizer"),
    "categories": N_("Categories"),
    "tags": N_("Tags"),
    "image": N_("Picture"),
    "status": N_("Status"),
    "date_utc": N_("Publication date"),
    "author": N_("Author"),
    "slug": N_("Address of the page"),
    "cost": N_("Cost"),
    "currency_symbol": N_("Currency symbol"),
    "currency_code": N_("Currency"),
    "currency_position": N_("Position of the currency symbol"),
    "website": N_("Website"),
    "ticket_url": N_("Tickets"),
    "online_url": N_("Online link"),
    "event_status": N_("State of the event"),
    "status_reason": N_("Reason"),
    "show_map": N_("Show a map"),
    "show_map_link": N_("Show a link to a map"),
    "hide_from_listings": N_("Hidden from lists"),
    "sticky": N_("Sticky"),
    "featured": N_("Featured"),
    "new_password": N_("Password"),
    "address": N_("Street address"),
    "city": N_("City"),
    "country": N_("Country"),
    "province": N_("Province"),
    "state": N_("State"),
    "stateprovince": N_("State or province"),
    "zip": N_("Postal code"),
    "phone": N_("Phone"),
    "email": N_("E-mail"),
    "position": N_("Position on the map"),
    "geo_lat": N_("Latitude"),
    "geo_lng": N_("Longitude"),
}
STATUS_NAMES: Final = {
    "publish": N_("Published"),
    "draft": N_("Draft"),
    "pending": N_("Waiting for review"),
    "private": N_("Private"),
    "future": N_("Scheduled"),
    "trash": N_("In the trash"),
}
# The statuses as filters of a table, in the order in which a record passes through them.
STATUS_FILTERS: Final = {
    **{name: STATUS_NAMES[name] for name in ("draft", "pending", "future", "publish", "private")},
    "trash": N_("Trash"),
}
# Fields with text that is compared by words. Those with HTML are compared as plain text.
PROSE: Final = ("title", "description", "excerpt", "status_reason")
EMPTY: Final = N_("Empty")


def field_label(kind: Kind, name: str) -> str:
    """Return the name of a field as a message ID; the name of a venue or organizer is called "Name"."""
    if name == kind.title_param and not kind.is_event:
        return N_("Name")
    return LABELS.get(name, name)


def is_prose(kind: Kind, name: str) -> bool:
    return name in PROSE or name == kind.title_param


def make_locale(console_request: ConsoleRequest) -> PageLocale:
    """Return the language of the user with the date formats of the site."""
    language = console_request.language
    return make_page_locale(language, console_request.site.language, translator(language))


def group_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by field, with those of a group as one object."""
    fields: dict[str, Any] = {}
    for name, value in values.items():
        if group := GROUP_OF.get(name):
            fields.setdefault(group, {})[name] = value
        else:
            fields[name] = value
    return fields


def value_text(kind: Kind, name: str, value: Any, names: Names, locale: PageLocale) -> str:
    """Return the value of a field as a person reads it."""
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
    """Return the names of linked records; values of other fields as they are."""
    known = names.get(name, {})
    if name == "image":
        return locale.text(N_("Picture {id}"), id=value)
    if name == "author":
        return known.get(value, f"#{value}")
    if not isinstance(value, list):
        return str(value)
    return ", ".join(_entry_text(entry, known) for entry in value)  # pyright: ignore[reportUnknownVariableType]


def _entry_text(entry: Any, known: Mapping[int, str]) -> str:
    """Return the name of a linked record: one with an ID, a new one with its data, or a term by its name."""
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
    """Return the local time of a formatted date-time; None if it has another form."""
    try:
        return datetime.fromisoformat(str(value)).replace(tzinfo=None)
    except ValueError:
        return None


def local_text(moment: datetime, zone: str, locale: PageLocale) -> str:
    """Return a moment as date and time of the site."""
    wall = times.local_of(moment, zone)
    return f"{locale.bare_day(wall.date())}, {locale.time(wall)}"

"""Fields of WordPress records, whose types differ between versions and plugins."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from kalends.core import times
from kalends.core.errors import InvalidValue
from kalends.core.tec.exchanges import JsonObject
from kalends.core.urls import read_email, read_website

NO_DATE: Final = "0000-00-00"
# Meta fields that are read, that WordPress or TEC derives from others, and the state of an editor's screen.
KNOWN_META: Final = frozenset(
    (
        *("_EventAllDay", "_EventTimezone", "_EventTimezoneAbbr", "_EventStartDate", "_EventEndDate", "_EventURL"),
        *("_EventStartDateUTC", "_EventEndDateUTC", "_EventDuration", "_EventCost", "_EventCurrencySymbol"),
        *("_EventCurrencyCode", "_EventCurrencyPosition", "_EventVenueID", "_EventOrganizerID", "_EventOrigin"),
        *("_EventShowMap", "_EventShowMapLink", "_EventDateTimeSeparator", "_EventTimeRangeSeparator"),
        *("_EventHideFromUpcoming", "_tribe_featured", "_tribe_events_status", "_tribe_events_status_reason"),
        *("_VenueAddress", "_VenueCity", "_VenueCountry", "_VenueProvince", "_VenueState", "_VenueStateProvince"),
        *("_VenueZip", "_VenuePhone", "_VenueURL", "_VenueLat", "_VenueLng", "_VenueShowMap", "_VenueShowMapLink"),
        *("_OrganizerEmail", "_OrganizerPhone", "_OrganizerWebsite", "persisted_preferences"),
    )
)
VIRTUAL_META: Final = ("_tribe_events_virtual_", "_tribe_events_is_virtual")
TAXONOMIES: Final = ("tags", "tribe_events_cat", "categories")


def read_raw(record: JsonObject, name: str) -> str:
    """Return a text as it was written: `title.raw`, `content.raw` …"""
    return read_part(record, name, "raw")


def read_rendered(record: JsonObject, name: str) -> str:
    return read_part(record, name, "rendered")


def read_part(record: JsonObject, name: str, part: str) -> str:
    value: Any = record.get(name)
    if isinstance(value, dict):
        value = value.get(part)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return value if isinstance(value, str) else ""


def read_meta(record: JsonObject) -> JsonObject:
    """Return the meta fields; PHP writes an empty object as a list."""
    return _read_dict(record, "meta")


def read_text(meta: JsonObject, name: str) -> str:
    value: Any = meta.get(name)
    if isinstance(value, list):
        value = value[0] if value else ""  # pyright: ignore[reportUnknownVariableType]
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def list_other_fields(record: JsonObject, shown: JsonObject) -> list[str]:
    """Return the names of fields with content that have no equivalent: custom fields, taxonomies and tickets.

    `shown` is the record as `tribe/events/v1` describes it; Events Calendar Pro adds its fields there.
    """
    names = [
        name
        for name, value in read_meta(record).items()
        if _has_content(value) and name not in KNOWN_META and not name.startswith(VIRTUAL_META)
    ]
    names += [name for name, value in _read_dict(record, "acf").items() if _has_content(value)]
    names += [name for name, value in record.items() if name not in TAXONOMIES and _is_id_list(value)]
    for name, entry in _read_dict(shown, "custom_fields").items():
        if not isinstance(entry, dict) or _has_content(entry.get("value")):  # pyright: ignore[reportUnknownMemberType]
            label: Any = entry.get("label") if isinstance(entry, dict) else ""  # pyright: ignore
            names.append(str(label or name))
    return [*names, "tickets"] if shown.get("ticketed") else names


def _read_dict(record: JsonObject, name: str) -> JsonObject:
    value: Any = record.get(name)
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _has_content(value: Any) -> bool:
    if isinstance(value, dict | list):
        parts: list[Any] = list(value.values()) if isinstance(value, dict) else value  # pyright: ignore
        return any(map(_has_content, parts))
    return bool(value)


def _is_id_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, int) for entry in value)  # pyright: ignore


def read_flag(value: object) -> bool:
    return value in (True, 1, "1", "yes", "true", "on")


def read_ids(value: object) -> list[str]:
    """Return IDs in their order, each once; a single one may be no list."""
    entries: list[Any] = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
    texts = [str(entry) for entry in entries if isinstance(entry, str | int) and not isinstance(entry, bool)]
    return list(dict.fromkeys(text for text in texts if text.isdecimal() and int(text) > 0))


def read_utc(record: JsonObject, name: str, zone: str) -> datetime | None:
    """Return the time `date` or `modified` in UTC; drafts may have only the local one."""
    if (utc := parse_time(record.get(f"{name}_gmt"))) is not None:
        return utc.replace(tzinfo=UTC)
    local = parse_time(record.get(name))
    return times.utc_of(local, zone) if local is not None else None


def parse_time(value: object) -> datetime | None:
    """Return a time without a zone, None for none: `2026-11-15T06:58:13` or with a space."""
    if not isinstance(value, str) or value.startswith(NO_DATE):
        return None
    try:
        return datetime.fromisoformat(value).replace(tzinfo=None)
    except ValueError:
        return None


def clean_website(text: str) -> str | None:
    """Return a URL that is acceptable, None if there is none; WordPress adds a missing scheme."""
    for candidate in (text.strip(), f"http://{text.strip()}"):
        try:
            return read_website(candidate)
        except InvalidValue:
            continue
    return None


def clean_email(text: str) -> str | None:
    try:
        return read_email(text.strip())
    except InvalidValue:
        return None


def find_prevalent[T](values: Iterable[T]) -> T | None:
    """Return the value that occurs more often than the others; None if there are no values."""
    counts = Counter(values)
    return max(counts, key=lambda value: counts[value], default=None)


def read_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

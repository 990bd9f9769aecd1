"""Represents a WordPress site with The Events Calendar (TEC) as import records: fields, slugs, UIDs and warnings.

Identities are WordPress IDs as text; images that exist only as files have the identity `file-…`. In every record,
`links["author"]` is the author and `links["image"]` the image; in a category, `links["parent"]` is the parent. All
other links are named after event parameters. Descriptions refer to images as `media:IDENTITY`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Self
from urllib.parse import urljoin, urlsplit

from kalends.core import times
from kalends.core.errors import InvalidValue
from kalends.core.messages import Message, find_language
from kalends.core.urls import read_email, read_website
from kalends.core.zones import read_zone
from kalends.imports.rules.import_records import ImportedRecord, Rejection
from kalends.move_in.rules.exchanges import (
    DEFAULT_LIST,
    INDEX,
    SETTINGS,
    Exchange,
    Exchanges,
    JsonObject,
    count_pages,
    read_items,
    read_object,
)

# Kinds in writing order.
KINDS = ("users", "categories", "tags", "media", "venues", "organizers", "events")

_MEDIA_REFERENCE = re.compile(r"(?<=[\"'])media:([a-z0-9-]+)(?=[\"'])")


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """The old site's settings that have an equivalent in Kalends. A value is empty if it is unknown."""

    url: str  # the home page, without a trailing slash
    host: str  # the host in UIDs and in global IDs
    name: str
    timezone: str
    language: str
    first_weekday: int  # 1 is Monday, 7 is Sunday
    per_page: int | None = None
    currency_symbol: str = ""
    currency_code: str = ""
    currency_position: str = ""  # prefix or postfix
    namespaces: Sequence[str] = ()
    # The highest IDs seen; new records get higher IDs.
    highest_post_id: int = 0
    highest_term_id: int = 0
    highest_user_id: int = 0


@dataclass(frozen=True, slots=True)
class SlugRedirect:
    kind: str
    identity: str
    slug: str


@dataclass(frozen=True, slots=True)
class PrefixRedirect:
    """An old path prefix and its replacement, such as `/veranstaltung/` and `/event/`."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class LegacyFile:
    """An image file's path on the old site, without the host."""

    path: str
    identity: str  # the image that the file belongs to
    width: int


@dataclass(frozen=True, slots=True)
class MoveInWarning:
    """Something that the move loses or changes, with the kind and identity of each affected record."""

    cause: Message
    records: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class MoveIn:
    """A site's records in writing order, and everything else to import.

    A record in the trash has the status `trash`.
    """

    site: SiteFacts
    records: Sequence[ImportedRecord]
    redirects: Sequence[SlugRedirect] = ()
    prefixes: Sequence[PrefixRedirect] = ()
    legacy_files: Sequence[LegacyFile] = ()
    warnings: Sequence[MoveInWarning] = ()
    rejections: Sequence[Rejection] = ()
    # Image file addresses by image identity; the snapshot holds the files.
    image_urls: Mapping[str, str] = field(default_factory=dict[str, str])

    def of_kind(self, kind: str) -> list[ImportedRecord]:
        return [record for record in self.records if record.kind == kind]


def find_media_references(html: str) -> list[str]:
    """Return the identities of images that a description refers to."""
    return _MEDIA_REFERENCE.findall(html)


def replace_media_references(html: str, ids: Mapping[str, int]) -> str:
    """Replace image identities in a description with the IDs of the imported images."""
    return _MEDIA_REFERENCE.sub(lambda match: f"media:{ids[match[1]]}" if match[1] in ids else match[0], html)


# Fields of WordPress records; their types differ between versions and plugins -----------------------

NO_DATE: Final = "0000-00-00"
# Meta fields that the import reads, that WordPress or TEC derives, or that only store the state of an editor screen.
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
    """Return a text field as written: `title.raw`, `content.raw` …"""
    return read_part(record, name, "raw")


def read_rendered(record: JsonObject, name: str) -> str:
    return read_part(record, name, "rendered")


def read_part(record: JsonObject, name: str, part: str) -> str:
    value: Any = record.get(name)
    if isinstance(value, dict):
        value = value.get(part)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return value if isinstance(value, str) else ""


def read_meta(record: JsonObject) -> JsonObject:
    """Return the meta fields; PHP encodes an empty object as a list."""
    return _read_dict(record, "meta")


def read_text(meta: JsonObject, name: str) -> str:
    value: Any = meta.get(name)
    if isinstance(value, list):
        value = value[0] if value else ""  # pyright: ignore[reportUnknownVariableType]
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def list_other_fields(record: JsonObject, shown: JsonObject) -> list[str]:
    """Return the names of non-empty fields without an equivalent: custom fields, taxonomies and tickets.

    `shown` is the record in `tribe/events/v1`, where Events Calendar Pro adds its fields.
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
    """Return unique IDs in order; a single ID may come without a list."""
    entries: list[Any] = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
    texts = [str(entry) for entry in entries if isinstance(entry, str | int) and not isinstance(entry, bool)]
    return list(dict.fromkeys(text for text in texts if text.isdecimal() and int(text) > 0))


def read_utc(record: JsonObject, name: str, zone: str) -> datetime | None:
    """Return the time `date` or `modified` in UTC; drafts may have only the local time."""
    if (utc := parse_time(record.get(f"{name}_gmt"))) is not None:
        return utc.replace(tzinfo=UTC)
    local = parse_time(record.get(name))
    return times.utc_of(local, zone) if local is not None else None


def parse_time(value: object) -> datetime | None:
    """Parse a time without a zone, such as `2026-11-15T06:58:13` or `2026-11-15 06:58:13`; return None if invalid."""
    if not isinstance(value, str) or value.startswith(NO_DATE):
        return None
    try:
        return datetime.fromisoformat(value).replace(tzinfo=None)
    except ValueError:
        return None


def clean_website(text: str) -> str | None:
    """Return an acceptable URL or None. Like WordPress, add a missing scheme."""
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
    """Return the most frequent value, or None if there are no values."""
    counts = Counter(values)
    return max(counts, key=lambda value: counts[value], default=None)


def read_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


# Slugs, kept as stored ------------------------------------------------------------------------------

_TRASHED: Final = re.compile(r"__trashed(?:-\d+)?$")


def strip_trashed(slug: str) -> str:
    return _TRASHED.sub("", slug)


def choose_slugs(records: Mapping[int, JsonObject]) -> dict[int, str]:
    """Return the slugs of a kind's records.

    A record that TEC restored from the trash may still have a trashed slug; in this case, use the former slug if it
    is free.
    """
    slugs = {record_id: str(record.get("slug") or "") for record_id, record in records.items()}
    taken = set(slugs.values())
    for record_id, slug in slugs.items():
        bare = strip_trashed(slug)
        if bare != slug and bare and bare not in taken and records[record_id].get("status") != "trash":
            slugs[record_id] = bare
            taken.add(bare)
    return slugs


# UIDs in the feeds of The Events Calendar -----------------------------------------------------------


def compute_uid(post_id: int, start_local: datetime, end_local: datetime, host: str) -> str:
    """Return the UID that subscribers already have. TEC computes it from the local times as if they were UTC."""
    return f"{post_id}-{_seconds(start_local)}-{_seconds(end_local)}@{host}"


def _seconds(local: datetime) -> int:
    return round(local.replace(tzinfo=UTC).timestamp())


# What a move loses or changes -----------------------------------------------------------------------

Key = tuple[str, str]  # kind and identity


@dataclass(slots=True)
class Warnings:
    by_cause: dict[Message, list[Key]] = field(default_factory=dict[Message, list[Key]])
    by_record: dict[Key, list[Message]] = field(default_factory=dict[Key, list[Message]])

    def add(self, key: Key, cause: Message) -> None:
        records = self.by_cause.setdefault(cause, [])
        if key not in records[-1:]:
            records.append(key)
            self.by_record.setdefault(key, []).append(cause)

    def of(self, key: Key) -> Sequence[Message]:
        return tuple(self.by_record.get(key, ()))

    def list(self) -> list[MoveInWarning]:
        causes: Mapping[Message, Sequence[Key]] = self.by_cause
        return [MoveInWarning(cause, tuple(records)) for cause, records in causes.items()]


# The former site's settings and addresses ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Home:
    """The old site's address. It may include a folder. Addresses with and without `www.` are equivalent."""

    url: str  # without a trailing slash
    host: str
    port: int | None
    folder: str  # such as `/blog`; empty for most sites

    @classmethod
    def read(cls, url: str) -> Self:
        parts = urlsplit(url)
        return cls(url.rstrip("/"), parts.hostname or "", parts.port, parts.path.rstrip("/"))

    def find_path(self, url: str) -> str | None:
        """Return the path, query and fragment of a URL on the site, or None for another site."""
        try:
            parts = urlsplit(urljoin(self.url + "/", url.strip()))
            port = parts.port
        except ValueError:
            return None
        if (
            parts.scheme not in ("http", "https")
            or port != self.port
            or _bare(parts.hostname or "") != _bare(self.host)
        ):
            return None
        return (
            parts.path + (f"?{parts.query}" if parts.query else "") + (f"#{parts.fragment}" if parts.fragment else "")
        )

    def move(self, url: str, base_url: str) -> str:
        """Return a URL on the site moved to `base_url`; return other URLs unchanged."""
        path = self.find_path(url) if base_url and urlsplit(url).netloc else None
        return url if path is None else base_url.rstrip("/") + path.removeprefix(self.folder)


def last_segment(url: str) -> str:
    """Return the last segment of a URL's path. In a record's address, this is the slug."""
    return urlsplit(url).path.rstrip("/").rpartition("/")[2]


def _bare(host: str) -> str:
    return host.lower().removeprefix("www.")


MONDAY, SUNDAY = 1, 7

_AMOUNT: Final = re.compile(r"\d+(?:[.,]\d+)?")


def read_site_facts(
    exchanges: Exchanges,
    events: Mapping[int, JsonObject],
    tribe_events: Mapping[int, JsonObject],
    ids: dict[str, int],
) -> SiteFacts:
    index, settings = _read_object(exchanges, INDEX), _read_object(exchanges, SETTINGS)
    home = Home.read(str(index.get("home") or index.get("url") or exchanges.read_fact("url", "")))
    symbol, position = find_currency(events, tribe_events)
    return SiteFacts(
        url=home.url,
        host=home.host,
        name=str(settings.get("title") or index.get("name") or ""),
        timezone=_find_zone(index, settings),
        language=find_language(str(settings.get("language") or "en")) or "",
        first_weekday=_read_weekday(settings.get("start_of_week")),
        per_page=_count_default_page(exchanges.find(DEFAULT_LIST)),
        currency_symbol=symbol,
        currency_position=position,
        currency_code=find_currency_code(events, tribe_events),
        namespaces=tuple(index.get("namespaces") or ()),
        highest_post_id=ids.get("posts", 0),
        highest_term_id=ids.get("terms", 0),
        highest_user_id=ids.get("users", 0),
    )


def find_currency(events: Mapping[int, JsonObject], tribe_events: Mapping[int, JsonObject]) -> tuple[str, str]:
    """Return the currency symbol that the site adds to a plain amount, and its position."""
    found: list[tuple[str, str]] = []
    for record_id, event in events.items():
        meta, shown = read_meta(event), str(tribe_events.get(record_id, {}).get("cost") or "")
        cost = read_text(meta, "_EventCost").strip()
        if read_text(meta, "_EventCurrencySymbol") or not _AMOUNT.fullmatch(cost) or cost not in shown:
            continue
        before, _, after = shown.partition(cost)
        if bool(before.strip()) != bool(after.strip()) and len(before + after) <= 16:
            found.append(((before + after).strip(), "prefix" if before.strip() else "postfix"))
    return find_prevalent(found) or ("", "")


def find_currency_code(events: Mapping[int, JsonObject], tribe_events: Mapping[int, JsonObject]) -> str:
    codes = (
        code
        for record_id, event in events.items()
        if not read_text(read_meta(event), "_EventCurrencyCode")
        for code in _list_codes(tribe_events.get(record_id, {}).get("json_ld"))
    )
    return find_prevalent(codes) or ""


def _list_codes(json_ld: Any) -> Iterable[str]:
    offers = json_ld.get("offers") if isinstance(json_ld, dict) else None  # pyright: ignore
    for offer in offers if isinstance(offers, list) else [offers]:  # pyright: ignore
        code = offer.get("priceCurrency") if isinstance(offer, dict) else None  # pyright: ignore
        if isinstance(code, str) and re.fullmatch(r"[A-Z]{3}", code):
            yield code


def _find_zone(index: JsonObject, settings: JsonObject) -> str:
    """Return the time zone name, or a UTC offset if the site has no named zone."""
    for name in (index.get("timezone_string"), settings.get("timezone")):
        if isinstance(name, str) and name and (zone := _read_zone(name)):
            return zone
    hours = read_number(str(index.get("gmt_offset") or 0)) or 0.0
    minutes = round(abs(hours) * 60)
    sign = "-" if hours < 0 else "+"
    return _read_zone(f"UTC{sign}{minutes // 60}:{minutes % 60:02}") or "UTC"


def _read_zone(name: str) -> str:
    try:
        return read_zone(name)
    except InvalidValue:
        return ""


def _read_weekday(value: object) -> int:
    """Convert a WordPress weekday number, where Sunday is 0."""
    return int(value) or SUNDAY if isinstance(value, int | str) and str(value) in tuple("0123456") else MONDAY


def _count_default_page(exchange: Exchange | None) -> int | None:
    """Return the number of events per page.

    If there is only one page, return None, because that page may not be full.
    """
    if exchange is None or exchange.status != 200 or count_pages(exchange.headers) < 2:
        return None
    return len(read_items(exchange)) or None


def _read_object(exchanges: Exchanges, address: str) -> JsonObject:
    exchange = exchanges.find(address)
    return read_object(exchange) if exchange is not None and exchange.status == 200 else {}

"""Requests to a site, its responses, and where in the responses to find each part of a site.

Plugins by many authors shape the responses, so this module checks all types, and no other module needs to. A response
that is neither a list nor a record raises InvalidValue. Fields whose type differs from FIELD_TYPES count as missing.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import orjson

from kalends.core.errors import InvalidValue
from kalends.core.params import parse_id

JsonObject = dict[str, Any]

_PER_PAGE: Final = re.compile(r"per_page=(\d+)")

STATUSES: Final = "publish%2Cfuture%2Cdraft%2Cpending%2Cprivate%2Ctrash"
TRIBE_STATUSES: Final = "publish%2Cdraft%2Cpending%2Cprivate%2Cfuture%2Ctrash"
# If a request names no dates, the list contains only events in a default period.
ALL_DATES: Final = "start_date=1970-01-02+00%3A00%3A00&end_date=2100-01-01+00%3A00%3A00"

INDEX: Final = "index"
SETTINGS: Final = "wp/v2/settings"
ME: Final = "wp/v2/users/me?context=edit"
DEFAULT_LIST: Final = "tribe/events/v1/events"

# Complete lists with all fields, by kind name.
WP_LISTS: Final = {
    "users": "wp/v2/users?context=edit&per_page=100",
    "categories": "wp/v2/tribe_events_cat?context=edit&per_page=100",
    "tags": "wp/v2/tags?context=edit&per_page=100",
    "media": "wp/v2/media?context=edit&per_page=100",
    "venues": f"wp/v2/tribe_venue?context=edit&status={STATUSES}&per_page=100&orderby=id&order=asc",
    "organizers": f"wp/v2/tribe_organizer?context=edit&status={STATUSES}&per_page=100&orderby=id&order=asc",
    # Past events are missing from this list, regardless of the parameters.
    "events": f"wp/v2/tribe_events?context=edit&status={STATUSES}&per_page=100&orderby=id&order=asc",
}
# Events hidden from listings are missing from these lists.
TRIBE_LISTS: Final = {
    "categories": "tribe/events/v1/categories?hide_empty=0&per_page=50",
    "tags": "tribe/events/v1/tags?hide_empty=0&per_page=50",
    "venues": f"tribe/events/v1/venues?status={TRIBE_STATUSES}&per_page=50",
    "organizers": f"tribe/events/v1/organizers?status={TRIBE_STATUSES}&per_page=50",
    "events": f"tribe/events/v1/events?{ALL_DATES}&status={TRIBE_STATUSES}&per_page=50",
}
# All events except trashed ones; requires TEC 6.15 or later.
TEC_EVENTS: Final = "tec/v1/events?per_page=100&" + "&".join(
    f"status%5B%5D={status}" for status in ("publish", "draft", "pending", "private", "future")
)
# Comments on all posts. Only the post IDs are fetched, because comments are not imported.
COMMENTS: Final = "wp/v2/comments?status=all&_fields=id%2Cpost&per_page=100"
MAX_COMMENT_PAGES: Final = 10
PUBLIC_EVENTS: Final = (f"tribe/events/v1/events?{ALL_DATES}&per_page=50", "tec/v1/events?per_page=100")
# The wp/v2 collections for single records.
WP_COLLECTIONS: Final = {
    "users": "wp/v2/users",
    "categories": "wp/v2/tribe_events_cat",
    "tags": "wp/v2/tags",
    "media": "wp/v2/media",
    "venues": "wp/v2/tribe_venue",
    "organizers": "wp/v2/tribe_organizer",
    "events": "wp/v2/tribe_events",
}
# Types of fields that no other code checks. Every field can be null.
FIELD_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    **dict.fromkeys(
        (
            *("status", "slug", "link", "date", "date_gmt", "modified", "modified_gmt", "registered_date"),
            *("username", "name", "email", "password", "source_url", "alt_text", "media_type", "mime_type"),
            *("timezone_string", "timezone", "language", "home"),
        ),
        (str,),
    ),
    **dict.fromkeys(("title", "content", "excerpt", "guid", "caption", "description"), (str, dict)),
    **dict.fromkeys(("author", "featured_media", "parent"), (int, str)),
    **dict.fromkeys(("tags", "tribe_events_cat", "namespaces", "roles"), (list,)),
    **dict.fromkeys(("meta", "media_details", "capabilities"), (dict, list)),  # PHP encodes {} as [].
    "gmt_offset": (int, float, str),
}
WRONG_FIELDS: Final = "(wrong fields)"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request, identified by its address, and its response."""

    address: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    crawl: int = 0

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


class Exchanges(Protocol):
    """Access to a snapshot: its exchanges by request address, and its facts."""

    def find(self, address: str) -> Exchange | None: ...

    def list(self, prefix: str) -> Iterator[Exchange]: ...

    def read_fact(self, name: str, default: Any = None) -> Any: ...


def wp_address(kind: str, record_id: int | str) -> str:
    return f"{WP_COLLECTIONS[kind]}/{record_id}?context=edit"


def tribe_event_address(record_id: int | str) -> str:
    return f"tribe/events/v1/events/{record_id}?context=edit"


def page_address(address: str, page: int, size: int = 0) -> str:
    """Return the address of a list page, optionally with another page size. The first page has no page number."""
    if size:
        address = _PER_PAGE.sub(f"per_page={size}", address)
    return address if page == 1 else f"{address}&page={page}"


def read_page_size(address: str) -> int:
    return int(_PER_PAGE.findall(address)[0])


def count_pages(headers: Mapping[str, str]) -> int:
    return parse_id(headers.get("x-wp-totalpages") or headers.get("x-tec-totalpages") or "") or 1


def read_total(headers: Mapping[str, str]) -> int | None:
    return parse_id(headers.get("x-wp-total") or headers.get("x-tec-total") or "")


def read_items(exchange: Exchange) -> list[JsonObject]:
    """Return a page's records, from a list or from an object with one list (`events`, `venues` …)."""
    body = exchange.json
    if isinstance(body, dict):
        names = ("events", "venues", "organizers", "categories", "tags")
        body = next((body[name] for name in names if name in body), None)  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(body, list):
        raise InvalidValue(
            "The response to {address} must be a list of records.", address=exchange.address.partition("?")[0]
        )
    entries: list[Any] = body
    return [drop_wrong_fields(entry) for entry in entries if isinstance(entry, dict) and _read_id(entry)]  # pyright: ignore


def read_object(exchange: Exchange) -> JsonObject:
    """Return a response's object, such as a record or the settings."""
    body = exchange.json
    if not isinstance(body, dict):
        raise InvalidValue(
            "The response to {address} must be a JSON object.", address=exchange.address.partition("?")[0]
        )
    return drop_wrong_fields(body)  # pyright: ignore[reportUnknownArgumentType]


def drop_wrong_fields(record: JsonObject) -> JsonObject:
    """Return a record without the fields that have an unexpected type, but with a list of their names."""
    wrong = [name for name, types in FIELD_TYPES.items() if name in record and not _has_type(record[name], types)]
    if not wrong:
        return record
    return {**{name: value for name, value in record.items() if name not in wrong}, WRONG_FIELDS: wrong}


def _has_type(value: Any, types: tuple[type, ...]) -> bool:
    return value is None or (isinstance(value, types) and not isinstance(value, bool))


def _read_id(record: JsonObject) -> int:
    value: Any = record.get("id")
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def read_list(exchanges: Exchanges, address: str) -> dict[int, JsonObject]:
    """Return the records from all pages of a list, by ID."""
    first = exchanges.find(address)
    records: dict[int, JsonObject] = {}
    for page in range(1, count_pages(first.headers) + 1 if first else 1):
        exchange = exchanges.find(page_address(address, page))
        if exchange is not None and exchange.status == 200:
            records.update({entry["id"]: entry for entry in read_items(exchange)})
    return records


def list_single_ids(exchanges: Exchanges, kind: str, status: int | None = 200) -> list[int]:
    """Return the IDs of records whose individual request returned this status; None means any status."""
    prefix = f"{WP_COLLECTIONS[kind]}/"
    ids = [
        exchange.address.removeprefix(prefix).partition("?")[0]
        for exchange in exchanges.list(prefix)
        if status in (None, exchange.status)
    ]
    return sorted(int(entry) for entry in ids if entry.isdecimal())


def read_records(exchanges: Exchanges, kind: str) -> dict[int, JsonObject]:
    """Return a kind's wp/v2 records, from single requests and, except for events, from its list."""
    records = read_list(exchanges, WP_LISTS[kind]) if kind != "events" else {}
    for exchange in exchanges.list(f"{WP_COLLECTIONS[kind]}/"):
        if exchange.status == 200 and exchange.address.endswith("?context=edit"):
            record = read_object(exchange)
            if record_id := _read_id(record):
                records[record_id] = record
    return dict(sorted(records.items()))

"""Cache tags (surrogate keys) of responses: the records that they contain, and the sets of records that they list.

A response is outdated if a change touches one of its tags (`operations/touched_tags.py`). A list of events that names
all records it shows carries a narrow tag for its set: the linked record or the months that it is restricted to. Every
other response carries the tag of the kind, which every change of a record of that kind touches.
"""

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from itertools import batched
from typing import Any, Final

from kalends.kinds.event_list.dates import build_window
from kalends.kinds.event_list.first_dates import hides_subsequent
from kalends.kinds.event_list.order import read_order
from kalends.kinds.kind import Clause, Kind, LinkCondition, ListQuery, SeriesCondition, TextCondition
from kalends.store import Row
from kalends.store.sites import Site

# A response with more records carries one tag for all of them.
MAX_TAGS: Final = 1000
# Tags in a header, and in one PURGE request: a header has room for about 8,000 characters.
MAX_HEADER_TAGS: Final = 100
MAX_TAGS_PER_REQUEST: Final = 200
# A list restricted to more records or months carries a wider tag.
MAX_LINKS: Final = 20
MAX_MONTHS: Final = 14

SITE: Final = "site"  # touched by the settings of the site
MANY: Final = "many"  # touched by a change of any record
ANY_SET: Final = "events:any"  # carried by every narrowed list; touched by changes of unknown effect
EVENT_SET: Final = "events:set"  # touched if an event may appear in lists, disappear from them or move inside
SEARCHED: Final = "events:search"  # the same, and touched by changes of texts
WIDE_SETS: Final = frozenset({EVENT_SET, SEARCHED})
LONG_EVENTS: Final = "events:long"  # events whose months are not listed one by one
# Tables of links, and the letters of their records in the tags of sets.
LINK_LETTERS: Final = {"event_venues": "v", "event_organizers": "o", "event_categories": "c", "event_tags": "t"}
SERIES_LETTER: Final = "s"

# Filters that read records of another kind: a list with such a filter is outdated when one of those changes.
FILTER_KINDS: Final[Mapping[str, Mapping[str, str]]] = {
    "events": {
        "categories": "categories",
        "tags": "tags",
        "venue": "venues",
        "organizer": "organizers",
        "geoloc": "venues",
        "geoloc_lat": "venues",
        "series": "series",
    },
    **{kind: {"event": "events", "has_events": "events"} for kind in ("venues", "organizers")},
    **{kind: {"event": "events", "post": "events"} for kind in ("categories", "tags")},
    "media": {},
    "series": {},
}


def record_tag(kind: str, record_id: int) -> str:
    return f"{kind}/{record_id}"


def link_set_tag(letter: str, record_id: int) -> str:
    """Return the tag of the set of events that are linked to a record."""
    return f"events:{letter}{record_id}"


def month_tag(month: int) -> str:
    """Return the tag of the set of events in a month, which is counted from the year 0."""
    return f"events:m{month}"


def tags_for_record(kind: Kind, row: Row) -> tuple[str, ...]:
    # A series shows the number of its events.
    events = (ANY_SET, link_set_tag(SERIES_LETTER, row["id"])) if kind.name == "series" else ()
    return (SITE, *events, *_list_references(kind, [row]))


def tags_for_event(event_id: int) -> tuple[str, ...]:
    """Return the tags of a response about an event that is no longer public. Another event may get its slug."""
    return (SITE, "events", record_tag("events", event_id))


def tags_for_list(kind: Kind, rows: list[Row], filters: Container[str]) -> tuple[str, ...]:
    """Return the tags of a response that depends on all records of a kind."""
    events = (EVENT_SET,) if kind.name == "series" else ()
    return (SITE, kind.name, *events, *_filter_kinds(kind, filters), *_list_references(kind, rows))


def tags_for_shown(kind: Kind, values: Mapping[str, Any], rows: list[Row]) -> tuple[str, ...]:
    """Return the tags of a page that names all events whose texts it shows, and may depend on other events."""
    if not kind.is_event or values.get("orderby") == "modified":
        return tags_for_list(kind, rows, values)
    members = SEARCHED if "search" in values else EVENT_SET
    return (SITE, members, *_filter_kinds(kind, values), *_list_references(kind, rows))


def tags_for_page(kind: Kind, query: ListQuery, clauses: Sequence[Clause], rows: list[Row]) -> tuple[str, ...]:
    """Return the tags of a response that shows one page of a list and nothing else."""
    if not kind.is_event:
        return tags_for_list(kind, rows, query.values)
    members = _tags_for_set(query, clauses)
    return (SITE, ANY_SET, *members, *_filter_kinds(kind, query.values), *_list_references(kind, rows))


def format_surrogate_key(site_id: int, secret: bytes, tags: Collection[str]) -> str:
    """Return the header of a response, in which long lists of records are replaced by a tag for all of them."""
    records = {tag for tag in tags if "/" in tag}
    if len(records) > MAX_HEADER_TAGS:
        tags = [*(tag for tag in tags if tag not in records), MANY]
    return " ".join(dict.fromkeys(_publish_tag(site_id, secret, tag) for tag in tags))


def batch_tags(site: Site, tags: set[str]) -> Iterator[str]:
    """Yield the tags as values of the header of PURGE requests, each short enough for one request."""
    for part in batched(sorted(_publish_tag(site.id, site.secret, tag) for tag in tags), MAX_TAGS_PER_REQUEST):
        yield " ".join(part)


def months_between(first: datetime, last: datetime) -> range:
    return range(12 * first.year + first.month - 1, 12 * last.year + last.month)


def _tags_for_set(query: ListQuery, clauses: Sequence[Clause]) -> Sequence[str]:
    """Return the tags of the set of events that a list selects from.

    Each of the restrictions of a list alone is sufficient: an event that enters, leaves or moves inside the list
    meets all of them before or after the change. The first one that applies is used.
    """
    values: Mapping[str, Any] = query.values
    if read_order(query)[0] == "modified" or hides_subsequent(query):
        return ["events"]
    if "include" in values:
        return [record_tag("events", event_id) for event_id in values["include"]]
    if any(isinstance(clause, TextCondition) for clause in clauses):
        return [SEARCHED]
    for clause in clauses:
        if isinstance(clause, LinkCondition) and len(clause.ids) <= MAX_LINKS:
            return [link_set_tag(LINK_LETTERS[clause.table], entry) for entry in clause.ids]
        if isinstance(clause, SeriesCondition) and len(clause.ids) <= MAX_LINKS:
            return [link_set_tag(SERIES_LETTER, entry) for entry in clause.ids]
    window = build_window(query)
    first, last = window.start_from or window.end_from, window.last_start
    if first is not None and last is not None and len(months := months_between(first, last)) <= MAX_MONTHS:
        return [LONG_EVENTS, *map(month_tag, months)]
    return [EVENT_SET]


def _filter_kinds(kind: Kind, filters: Container[str]) -> dict[str, None]:
    return {other: None for name, other in FILTER_KINDS[kind.name].items() if name in filters}


def _list_references(kind: Kind, rows: list[Row]) -> list[str]:
    """Return the tags of the records that a response depends on.

    The links of a password-protected event are left out, because the response does not show them. Linked records that
    are not public are included, because the response changes when they are published.
    """
    if len(rows) > MAX_TAGS:
        return [MANY]
    references = {record_tag(kind.name, row["id"]): None for row in rows}
    unprotected = [row for row in rows if row.get("password_hash") is None] if kind.links else []
    for link in kind.links:
        references.update(
            {record_tag(link.kind, entry): None for row in unprotected for entry in row[f"{link.column}s"]}
        )
    if kind.is_event:
        series = (row["series_id"] for row in unprotected)
        references.update({record_tag("series", entry): None for entry in series if entry is not None})
    return list(references) if len(references) <= MAX_TAGS else [MANY]


def _publish_tag(site_id: int, secret: bytes, tag: str) -> str:
    """Return a tag for shared caches. IDs are hashed: they would disclose linked records that are not public."""
    if tag == SITE:
        return f"s{site_id}"
    kind, separator, record = tag.partition("/")
    if not separator and ":" not in tag:
        return f"s{site_id}-{tag}"
    # Tags of records keep their names from before there were tags of sets.
    name = f"surrogate-key\0{kind}\0{record}" if separator else f"surrogate-key\0{tag}"
    return f"s{site_id}-{blake2b(name.encode(), key=secret, digest_size=9).hexdigest()}"

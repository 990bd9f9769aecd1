"""Cache tags (surrogate keys) for responses and changes, and the events that lists reuse.

A tag stands for a record or a set of records. A response carries tags for everything that it depends on. It is
outdated as soon as a change touches one of these tags. A page of events carries a tag for each event, and tags for
its list. The list's tags are as narrow as possible: they stand for the linked records or months that restrict it.
A list of another kind carries a tag for the kind. A change to any record of that kind touches this tag.
"""

from collections.abc import Awaitable, Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from itertools import batched
from typing import Any, Final, Protocol

import orjson

from kalends.calendar.kinds.event_list import build_window
from kalends.calendar.kinds.event_shortcuts import hides_subsequent
from kalends.calendar.kinds.event_window import read_order
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import (
    Clause,
    Kind,
    LinkCondition,
    ListQuery,
    RenderContext,
    SeriesCondition,
    TextCondition,
)
from kalends.core.errors import ApiError
from kalends.core.limits import ByteLru
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sites import Site
from kalends.store.sql import Sql

# A response with more records than this carries a single tag for all of them.
MAX_TAGS: Final = 1000
# Maximum number of tags in a header or a PURGE request. A header holds about 8,000 characters.
MAX_HEADER_TAGS: Final = 100
MAX_TAGS_PER_REQUEST: Final = 200
# If a list is restricted to more records or months than this, it carries a wider tag.
MAX_LINKS: Final = 20
MAX_MONTHS: Final = 14

SITE: Final = "site"  # touched by changes to the site settings
MANY: Final = "many"  # touched by changes to any record
ANY_SET: Final = "events:any"  # carried by every narrowed list; touched by a change with unknown effects
EVENT_SET: Final = "events:set"  # touched if an event may enter a list, leave it, or move within it
SEARCHED: Final = "events:search"  # like `EVENT_SET`, but changes to texts touch it, too
PICTURED: Final = "events:image"  # touched if an event gets another image, or loses its image
WIDE_SETS: Final = frozenset({EVENT_SET, SEARCHED})
LONG_EVENTS: Final = "events:long"  # events that span so many months that they have no tags for single months
SERIES_LETTER: Final = "s"

# Filters that read records of another kind. Changes to these records invalidate the list.
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
    """Return the tag for events linked to a record."""
    return f"events:{letter}{record_id}"


def month_tag(month: int) -> str:
    """Return the tag for events in a month. Months are counted from year 0."""
    return f"events:m{month}"


def tags_for_record(kind: Kind, row: Row) -> tuple[str, ...]:
    # The JSON of a series contains its number of events.
    events = (ANY_SET, link_set_tag(SERIES_LETTER, row["id"])) if kind.name == "series" else ()
    return (SITE, *events, *_list_references(kind, [row]))


def tags_for_event(event_id: int) -> tuple[str, ...]:
    """Return the tags for a response about a withdrawn or protected event.

    `events` covers a new event with the same slug.
    """
    return (SITE, "events", record_tag("events", event_id))


def tags_for_list(kind: Kind, rows: list[Row], filters: Container[str]) -> tuple[str, ...]:
    """Return the tags for a response that depends on all records of a kind."""
    events = (EVENT_SET,) if kind.name == "series" else ()
    return (SITE, kind.name, *events, *_filter_kinds(kind, filters), *_list_references(kind, rows))


def tags_for_shown(kind: Kind, values: Mapping[str, Any], rows: list[Row]) -> tuple[str, ...]:
    """Return the tags for a page that shows the texts of `rows`, and may depend on other events as well."""
    if not kind.is_event or values.get("orderby") == "modified":
        return tags_for_list(kind, rows, values)
    members = SEARCHED if "search" in values else EVENT_SET
    return (SITE, members, *_filter_kinds(kind, values), *_list_references(kind, rows))


def tags_for_page(kind: Kind, query: ListQuery, clauses: Sequence[Clause], rows: list[Row]) -> tuple[str, ...]:
    """Return the tags for a response that shows one page of a list and nothing else."""
    if not kind.is_event:
        return tags_for_list(kind, rows, query.values)
    return tags_for_events(query, clauses, _list_references(kind, rows))


def tags_for_events(query: ListQuery, clauses: Sequence[Clause], shown: Collection[str]) -> tuple[str, ...]:
    """Return the tags for one page of an event list, given the tags of the events on this page."""
    members = _tags_for_set(query, clauses)
    references = shown if len(shown) <= MAX_TAGS else [MANY]
    return tuple(dict.fromkeys((SITE, ANY_SET, *members, *_filter_kinds(EVENTS, query.values), *references)))


def format_surrogate_key(site_id: int, secret: bytes, tags: Collection[str]) -> str:
    """Return the header value for a response. If there are too many records, a single tag stands for all of them."""
    records = {tag for tag in tags if "/" in tag}
    if len(records) > MAX_HEADER_TAGS:
        tags = [*(tag for tag in tags if tag not in records), MANY]
    return " ".join(dict.fromkeys(_publish_tag(site_id, secret, tag) for tag in tags))


def batch_tags(site: Site, tags: set[str]) -> Iterator[str]:
    """Yield header values for PURGE requests, each short enough for one request."""
    for part in batched(sorted(_publish_tag(site.id, site.secret, tag) for tag in tags), MAX_TAGS_PER_REQUEST):
        yield " ".join(part)


def months_between(first: datetime, last: datetime) -> range:
    return range(12 * first.year + first.month - 1, 12 * last.year + last.month)


def _tags_for_set(query: ListQuery, clauses: Sequence[Clause]) -> Sequence[str]:
    """Return the tags for the set of events that a list selects from.

    One restriction is enough, because an event that enters, leaves or moves within the list meets all restrictions
    before or after the change. Use the first restriction that has tags.
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
            return [link_set_tag(clause.letter, entry) for entry in clause.ids]
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
    """Return the tags for the records that a response depends on.

    The links of a password-protected event are omitted, because the response does not show them. Linked records that
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
    """Return the form of a tag that shared caches see. Hash IDs to hide linked records that are not public."""
    if tag == SITE:
        return f"s{site_id}"
    kind, separator, record = tag.partition("/")
    if not separator and ":" not in tag:
        return f"s{site_id}-{tag}"
    # Record tags keep the names they had before set tags existed.
    name = f"surrogate-key\0{kind}\0{record}" if separator else f"surrogate-key\0{tag}"
    return f"s{site_id}-{blake2b(name.encode(), key=secret, digest_size=9).hexdigest()}"


# The cache tags that a change touches. Every response with one of these tags may be outdated.

# Event columns that affect neither which events a list contains nor their order. Searches use the columns in the
# first set. Any other column may make events enter or leave a list.
SEARCHED_COLUMNS: Final = frozenset({"description", "excerpt"})
SHOWN_COLUMNS: Final = SEARCHED_COLUMNS | {"image_id", "website", "show_map", "show_map_link", "own_fields"}
# An event's links to terms. The JSON of a term contains its number of events.
COUNTED_LINKS: Final = {"category_ids": "categories", "tag_ids": "tags"}
# If an event spans more months than this, it touches a single tag for all of them.
MAX_EVENT_MONTHS: Final = 24
# More than the difference between any two time zones, because local times are compared with months in UTC.
ZONE_MARGIN: Final = timedelta(days=2)
# Maximum number of changes to read at a time. If there are more, all responses of the site count as outdated.
MAX_CHANGES: Final = 2000
# If a write touches more tags than this, the whole site is purged from shared caches.
MAX_PURGED_TAGS: Final = 2000
PUBLISHED: Final = "publish"

Columns = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Touched:
    """The tags that a change touches.

    `withdrawn` holds the tags of responses that may show a record that the change withdraws, hides, protects or
    deletes.
    """

    revision: int
    tags: frozenset[str]
    changed_at: datetime
    withdrawn: frozenset[str] = frozenset()


def read_touched(rows: Sequence[Row], after: int) -> list[Touched] | None:
    """Return the tags for each revision in rows of `dated_changes`; None if the log lacks some changes."""
    changes = [row for row in rows if row["revision"] is not None]
    if not rows or len(changes) != rows[0]["last_revision"] - after:
        return None
    touched: list[Touched] = []
    # Begin with the newest change: an event's state before a change is its state after the previous one.
    states: dict[int, Columns] = {}
    for row in reversed(changes):
        tags, withdrawn = frozenset(_touch(row, states)), frozenset(_withdraw(row))
        touched.append(Touched(row["revision"], tags, row["changed_at"], withdrawn))
    return touched[::-1]


async def find_touched(tx: Transaction, first: int, last: int) -> set[str]:
    """Return the tags that the changes in these revisions touch; the site's tag if some changes are unknown."""
    touched = read_touched(await tx.fetch_all(select_changes(tx.site.id, first - 1, last)), first - 1)
    tags: set[str] = set().union(*[entry.tags for entry in touched]) if touched is not None else {SITE}
    return tags if len(tags) <= MAX_PURGED_TAGS else {SITE}


def select_changes(site_id: int, after: int, until: int | None = None) -> Sql:
    return Sql("SELECT * FROM dated_changes(?, ?, ?, ?)", site_id, after, until, MAX_CHANGES)


def _touch(change: Row, states: dict[int, Columns]) -> Iterable[str]:
    kind, record_id = change["kind"], change["record_id"]
    if kind == "sites" or (change["action"] == "delete" and change["was_public"]):
        return {SITE}  # Settings and deleted public records may be part of any response.
    tags = {record_tag(kind, record_id), kind, MANY}
    return tags | _touch_sets(change, states) if kind == "events" else tags


def _withdraw(change: Row) -> set[str]:
    """Return the tags of responses that may show a record that a change withdrew, hid, protected or deleted.

    Such a response carries a tag for the record, for its kind or for many records, or a tag from `WIDE_SETS`. Tags
    for months and linked records are not needed here: lists that carry these also carry a tag for each event.
    """
    kind, is_deleted = change["kind"], change["action"] == "delete"
    if kind == "sites":
        return {SITE}  # The log does not record which settings changed.
    if not (is_deleted or _is_withdrawal(change)):
        return set()
    tags = {record_tag(kind, change["record_id"]), kind, MANY}
    if is_deleted and change["was_public"]:
        tags.add(SITE)
    return tags | WIDE_SETS if kind == "events" else tags


def _is_withdrawal(change: Row) -> bool:
    if change["action"] == "create":
        return False
    old, new = _decode(change["old"]).get("status"), _decode(change["new"]).get("status")
    return (old == PUBLISHED and new != PUBLISHED) or change["hides"] or change["protects"]


def _touch_sets(change: Row, states: dict[int, Columns]) -> set[str]:
    """Return the tags for sets that an event may enter, leave or move within, and for terms that count it."""
    columns = frozenset(change["columns"])
    if change["action"] == "derived" or (columns and columns <= SHOWN_COLUMNS):
        searched = {SEARCHED} if columns & SEARCHED_COLUMNS else set[str]()
        return searched | {PICTURED} if "image_id" in columns else searched
    old, new = _decode(change["old"]), _decode(change["new"])
    present = states.setdefault(change["record_id"], _decode(change["present"]))
    states[change["record_id"]] = {**present, **old}
    if _is_gone(change, present):
        return {SITE}
    tags = {EVENT_SET, SEARCHED, *_count_terms(old, new, present)}
    sides = (old, new, present)
    for link in EVENTS.links:
        tags |= {link_set_tag(link.letter, entry) for side in sides for entry in side.get(f"{link.column}s") or ()}
    tags |= {link_set_tag(SERIES_LETTER, side["series_id"]) for side in sides if side.get("series_id") is not None}
    for state in (present, {**present, **old}):
        tags |= _touch_months(state)
    if not columns:
        tags.add(ANY_SET)  # The log does not record what changed.
    return tags


def _is_gone(change: Row, present: Columns) -> bool:
    """Return whether the event has been deleted since the change. If so, its months and terms are unknown."""
    return not present and change["action"] != "delete"


def _touch_months(state: Columns) -> set[str]:
    if not state.get("start_local") or not state.get("end_local"):
        return {ANY_SET}
    start, end = (datetime.fromisoformat(state[name]) for name in ("start_local", "end_local"))
    try:
        months = months_between(start - ZONE_MARGIN, end + ZONE_MARGIN)
    except OverflowError:
        return {LONG_EVENTS, ANY_SET}
    return {LONG_EVENTS} if len(months) > MAX_EVENT_MONTHS else {month_tag(month) for month in months}


def _count_terms(old: Columns, new: Columns, present: Columns) -> set[str]:
    """Return the tags for terms whose count may differ after a change to an event.

    These are the terms that the event gained or lost and, if its status changed, all of its terms. If the event's
    links change again later, that change covers them.
    """
    appeared = "status" in old or "status" in new
    tags: set[str] = set()
    for column, kind in COUNTED_LINKS.items():
        sides = [old.get(column) or (), new.get(column) or ()]
        if not appeared and not any(sides):
            continue
        terms = {term for side in (*sides, present.get(column) or () if appeared else ()) for term in side}
        tags |= {record_tag(kind, term) for term in terms}
        tags |= {kind} if terms else set()
    return tags


def _decode(encoded: str | None) -> Columns:
    columns: Columns = orjson.loads(encoded) if encoded else {}
    return columns


# Events as anonymous callers see them in lists, cached between requests. An entry is valid until a change touches one
# of its tags.

# Estimated bytes of memory for each entry and each of its tags, in addition to the JSON.
FRAGMENT_BYTES: Final = 1000
TAG_BYTES: Final = 80

FragmentKey = tuple[object, ...]


class KnownTags(Protocol):
    known: int  # the last revision whose changes are known; it may be too low if a replica lags

    def is_untouched(self, tags: Iterable[str], since: int) -> bool: ...


@dataclass(slots=True)
class EventFragment:
    json: orjson.Fragment
    tags: tuple[str, ...]
    revision: int  # the last site revision at which the event is known to be unchanged


class EventFragments:
    """Caches the most recently used fragments, up to a number of bytes.

    `learn` returns a site's touched tags. Its last two arguments are the first and the last revision to cover.
    """

    def __init__(self, max_bytes: int, learn: Callable[[int, int, int], Awaitable[KnownTags]]) -> None:
        self._entries: ByteLru[FragmentKey, EventFragment] = ByteLru(max_bytes)
        self._learn = learn

    async def find(self, scope: RenderContext, ids: Iterable[int]) -> dict[int, EventFragment]:
        """Return the cached events, by ID, that have not changed up to the site's revision in `scope`."""
        revision = scope.site.revision
        stored = {event_id: self._entries.get(_fragment_key(scope, event_id)) for event_id in ids}
        entries = {event_id: entry for event_id, entry in stored.items() if entry and entry.revision <= revision}
        if not entries:
            return {}
        try:
            known = await self._learn(scope.site.id, min(entry.revision for entry in entries.values()), revision)
        except ApiError:
            return {}  # The list can load the events instead.
        if known.known < revision:
            return {}
        found = {key: entry for key, entry in entries.items() if known.is_untouched(entry.tags, entry.revision)}
        for entry in found.values():
            entry.revision = max(entry.revision, revision)
        return found

    def add(self, scope: RenderContext, row: Row, body: Mapping[str, Any]) -> EventFragment:
        encoded = orjson.dumps(body)
        entry = EventFragment(orjson.Fragment(encoded), tags_for_record(EVENTS, row), scope.site.revision)
        size = FRAGMENT_BYTES + TAG_BYTES * len(entry.tags) + len(encoded)
        self._entries.put(_fragment_key(scope, row["id"]), entry, size)
        return entry


def _fragment_key(scope: RenderContext, event_id: int) -> FragmentKey:
    """Return a fragment's key. It contains the URL prefixes in the event's JSON, because no tag covers them."""
    return scope.site.id, scope.base_url, scope.api_url, scope.media_url, event_id

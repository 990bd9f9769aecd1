"""The cache tags that changes touch: every response with one of them may be outdated (`operations/cache_tags.py`)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import orjson

from kalends.operations.cache_tags import (
    ANY_SET,
    EVENT_SET,
    LONG_EVENTS,
    MANY,
    SEARCHED,
    SERIES_LETTER,
    SITE,
    WIDE_SETS,
    link_set_tag,
    month_tag,
    months_between,
    record_tag,
)
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql

# Columns of events that decide neither which events a list has nor their order. Those in the first set are searched.
# Every other column counts as a reason for events to enter or leave a list.
SEARCHED_COLUMNS: Final = frozenset({"description", "excerpt"})
SHOWN_COLUMNS: Final = SEARCHED_COLUMNS | {"image_id", "website", "show_map", "show_map_link", "own_fields"}
# Links of an event to records that show the number of their events.
COUNTED_LINKS: Final = {"category_ids": "categories", "tag_ids": "tags"}
LINK_LETTERS: Final = {"venue_ids": "v", "organizer_ids": "o", "category_ids": "c", "tag_ids": "t"}
# An event of more months touches one tag for all of them.
MAX_EVENT_MONTHS: Final = 24
# More than any two time zones differ, because local times are compared with months in UTC.
ZONE_MARGIN: Final = timedelta(days=2)
# Changes that are read at once; after more of them, all responses of the site count as outdated.
MAX_CHANGES: Final = 2000
# A write that touches more tags purges the whole site from shared caches.
MAX_PURGED_TAGS: Final = 2000
PUBLISHED: Final = "publish"

Columns = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Touched:
    """The tags that the change with this revision touches.

    `withdrawn` are the tags of responses that may show a record which the change withdraws, hides, protects or
    deletes.
    """

    revision: int
    tags: frozenset[str]
    changed_at: datetime
    withdrawn: frozenset[str] = frozenset()


def read_touched(rows: Sequence[Row], after: int) -> list[Touched] | None:
    """Return the tags by revision from the rows of `dated_changes`; None if the log does not have all changes."""
    changes = [row for row in rows if row["revision"] is not None]
    if not rows or len(changes) != rows[0]["last_revision"] - after:
        return None
    touched: list[Touched] = []
    # From the newest to the oldest change: the state of an event before a change is the one after the previous one.
    states: dict[int, Columns] = {}
    for row in reversed(changes):
        tags, withdrawn = frozenset(_touch(row, states)), frozenset(_withdraw(row))
        touched.append(Touched(row["revision"], tags, row["changed_at"], withdrawn))
    return touched[::-1]


async def find_touched(tx: Transaction, first: int, last: int) -> set[str]:
    """Return the tags that the changes of these revisions touch; the tag of the site if they are not all known."""
    touched = read_touched(await tx.fetch_all(select_changes(tx.site.id, first - 1, last)), first - 1)
    tags: set[str] = set().union(*[entry.tags for entry in touched]) if touched is not None else {SITE}
    return tags if len(tags) <= MAX_PURGED_TAGS else {SITE}


def select_changes(site_id: int, after: int, until: int | None = None) -> Sql:
    return Sql("SELECT * FROM dated_changes(?, ?, ?, ?)", site_id, after, until, MAX_CHANGES)


def _touch(change: Row, states: dict[int, Columns]) -> Iterable[str]:
    kind, record_id = change["kind"], change["record_id"]
    if kind == "sites" or (change["action"] == "delete" and change["was_public"]):
        return {SITE}  # Neither says what changes: settings are part of everything, and so may a record have been.
    tags = {record_tag(kind, record_id), kind, MANY}
    return tags | _touch_sets(change, states) if kind == "events" else tags


def _withdraw(change: Row) -> set[str]:
    """Return the tags of responses that may show a record which a change withdraws, hides, protects or deletes.

    A response that shows a record names it, or carries the tag of its kind, of many records or, for events, of all
    sets. The sets of months and linked records do not count: a list with one of those names its events.
    """
    kind, is_deleted = change["kind"], change["action"] == "delete"
    if kind == "sites":
        return {SITE}  # The log does not say which settings have changed.
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
    """Return the tags of the sets that an event may enter, leave or move inside, and of its counted terms."""
    columns = frozenset(change["columns"])
    if change["action"] == "derived" or (columns and columns <= SHOWN_COLUMNS):
        return {SEARCHED} if columns & SEARCHED_COLUMNS else set()
    old, new = _decode(change["old"]), _decode(change["new"])
    present = states.setdefault(change["record_id"], _decode(change["present"]))
    states[change["record_id"]] = {**present, **old}
    if _is_gone(change, present):
        return {SITE}
    tags = {EVENT_SET, SEARCHED, *_count_terms(old, new, present)}
    sides = (old, new, present)
    for column, letter in LINK_LETTERS.items():
        tags |= {link_set_tag(letter, entry) for side in sides for entry in side.get(column) or ()}
    tags |= {link_set_tag(SERIES_LETTER, side["series_id"]) for side in sides if side.get("series_id") is not None}
    for state in (present, {**present, **old}):
        tags |= _touch_months(state)
    if not columns:
        tags.add(ANY_SET)  # The change does not say what it changed.
    return tags


def _is_gone(change: Row, present: Columns) -> bool:
    """Return whether the event has been deleted since the change: nothing knows its months and terms any more."""
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
    """Return the tags of the terms whose count may differ after a change of an event.

    These are the terms that the event gained or lost and, if its status changed, all of its terms. Links that have
    changed since then are covered by the change that altered them.
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

"""What a digest says: the events of its window, what has changed since the last email, and what is new."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from kalends.calendar.access import caching
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.event_shortcuts import HIDE_SUBSEQUENT
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.operations.calendar_months import with_filter
from kalends.calendar.operations.page_filters import ResolvedFilters
from kalends.calendar.operations.record_verbs import build_events, find_page
from kalends.calendar.operations.site_feeds import find_withdrawn
from kalends.calendar.rules.record_types import SCHEDULED, Event
from kalends.calendar.storage.history_tables import list_edits_of_records
from kalends.core.times import DateTimeInput
from kalends.follow.operations.followed_queries import resolve_query
from kalends.follow.rules.net_changes import EventState, find_kinds, group_changes, make_group_key, rewind
from kalends.follow.rules.slots import Slot
from kalends.store import Row
from kalends.store.change_log import decode_columns, encode_columns
from kalends.store.sql import Sql

MAX_COMING: Final = 50
MAX_CHANGES: Final = 30
MAX_NEW: Final = 20
MAX_READ: Final = 1000  # changed events, the next ones first
COMING_EVENTS: Final = replace(EVENTS, reads=replace(EVENTS.reads, max_per_page=MAX_COMING))
_CHANGED: Final = with_filter("changed_since", lambda since: Sql("r.revision > ?", since))
CHANGED_EVENTS: Final = replace(_CHANGED, reads=replace(_CHANGED.reads, max_per_page=MAX_READ))
STATE_COLUMNS: Final = (
    *("status", "hide_from_listings", "password_hash", "start_local", "end_local", "start_fold", "end_fold"),
    *("timezone", "all_day", "event_status", "venue_ids"),
)
# What the row of a withdrawn event lacks.
WITHDRAWN_STATE: Final[Mapping[str, Any]] = {
    "status": "trash",
    "hide_from_listings": False,
    "password_hash": None,
    "start_fold": 0,
    "end_fold": 0,
    "event_status": SCHEDULED,
    "venue_ids": [],
}


@dataclass(frozen=True, slots=True)
class Change:
    """A net change of an event, or the same one of several dates of a series."""

    event: Event  # the first date
    then: EventState
    kinds: tuple[str, ...]
    number: int


@dataclass(frozen=True, slots=True)
class News:
    """What has changed since the last email. `more` counts what the digest has no room for."""

    changes: Sequence[Change] = ()
    withdrawn: Sequence[EventState] = ()  # as they were last announced
    changes_more: int = 0  # of both
    new: Sequence[Event] = ()
    new_more: int = 0
    cache_tags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DigestContent:
    coming: Sequence[Event]
    coming_more: int
    news: News
    filters: ResolvedFilters
    values: Mapping[str, Any]
    cache_tags: frozenset[str]

    @property
    def is_empty(self) -> bool:
        return not (self.coming or self.news.changes or self.news.withdrawn or self.news.new)


async def read_digest(context: OperationContext, query: str, slot: Slot, since: int | None) -> DigestContent:
    """Read the digest of a list at a slot. `since` is the revision of the last email; None: there was none."""
    tx = context.transaction
    context, filters = await resolve_query(context, query)
    filtered = context.values
    begin = max(slot.begin, tx.now)
    window = {**_make_window(begin, slot.end), HIDE_SUBSEQUENT: True, "per_page": MAX_COMING}
    page = await find_page(COMING_EVENTS, replace(context, values={**filtered, **window}))
    coming = await build_events(context, page.rows)
    news = News()
    if since is not None and since >= tx.site.trimmed_revision:
        news = await _find_news(replace(context, values={**filtered, **_make_window(begin)}), since, slot.end)
    return DigestContent(
        coming=coming,
        coming_more=page.total - len(coming),
        news=news,
        filters=filters,
        values=filtered,
        cache_tags=news.cache_tags.union(caching.tags_for_shown(EVENTS, filtered, page.rows)),
    )


def _make_window(begin: datetime, end: datetime | None = None) -> dict[str, Any]:
    """Return the parameters for events that run after `begin` and start by `end`."""
    moments = {"overlaps_from": begin, **({"overlaps_to": end} if end is not None else {})}
    exact = {
        name: DateTimeInput(moment.replace(tzinfo=None), timedelta(0), False) for name, moment in moments.items()
    }
    return {**exact, "strict_dates": True}


async def _find_news(context: OperationContext, since: int, window_end: datetime) -> News:
    """Compare the list's events with their states at a revision."""
    values = {**context.values, "changed_since": since, "per_page": MAX_READ}
    changed = (await find_page(CHANGED_EVENTS, replace(context, values=values), with_total=False)).rows
    gone = await find_withdrawn(context)
    edits: dict[int, list[Row]] = {}
    for edit in await list_edits_of_records(
        context.transaction, "events", [row["id"] for row in (*changed, *gone)], since
    ):
        edits.setdefault(edit["record_id"], []).append(edit)
    entries: list[tuple[tuple[object, ...], tuple[Row, EventState, tuple[str, ...]]]] = []
    new: dict[int, Row] = {}
    for row in changed:
        columns = _read_columns(row)
        then, now = _find_former(columns, edits.get(row["id"], [])), EventState.from_columns(columns)
        if then is None:
            if row["start_utc"] >= window_end:
                new.setdefault(row["series_id"] or -row["id"], row)  # A series is new once.
        elif kinds := find_kinds(then, now):
            entries.append((make_group_key(row["series_id"], row["id"], then, now, kinds), (row, then, kinds)))
    formers = [_find_former(_complete(row), edits.get(row["id"], [])) for row in gone]
    withdrawn = [former for former in formers if former is not None]
    groups = group_changes(entries)
    shown = groups[: max(0, MAX_CHANGES - len(withdrawn))]
    events = await build_events(context, [group[0][0] for group in shown])
    return News(
        changes=tuple(
            Change(event, group[0][1], group[0][2], len(group)) for event, group in zip(events, shown, strict=True)
        ),
        changes_more=len(groups) - len(shown) + max(0, len(withdrawn) - MAX_CHANGES),
        withdrawn=tuple(withdrawn[:MAX_CHANGES]),
        new=tuple(await build_events(context, list(new.values())[:MAX_NEW])),
        new_more=max(0, len(new) - MAX_NEW),
        cache_tags=frozenset(
            [
                *caching.tags_for_shown(EVENTS, context.values, changed),
                *[caching.record_tag("events", row["id"]) for row in gone],
            ]
        ),
    )


def read_state(row: Row) -> EventState:
    return EventState.from_columns(_read_columns(row))


def _read_columns(row: Row) -> dict[str, Any]:
    """Return an event's columns as the change log stores them."""
    return decode_columns(encode_columns({name: row[name] for name in STATE_COLUMNS}))


def _find_former(columns: Mapping[str, Any], edits: Sequence[Row]) -> EventState | None:
    """Return an event's state before its edits, which come newest first; None if it was not in lists."""
    if any(edit["action"] == "create" for edit in edits):
        return None
    former = EventState.from_columns(rewind(columns, [decode_columns(edit["before"]) for edit in edits]))
    return former if former.is_listed else None


def _complete(row: Row) -> dict[str, Any]:
    """Return the columns of a withdrawn event, whose times alone are public."""
    known = {name: row[name] for name in STATE_COLUMNS if name in row}
    return {**WITHDRAWN_STATE, **decode_columns(encode_columns(known))}

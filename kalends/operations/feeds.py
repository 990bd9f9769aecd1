"""The events of a feed: those of the list with the same parameters, and those that were withdrawn recently."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import batched
from typing import Any, Final

from kalends.core import errors, times
from kalends.core.record_types import Event
from kalends.core.slugs import TRASHED_SUFFIX, normalize_lookup
from kalends.core.times import DateTimeInput
from kalends.core.zones import SECOND
from kalends.kinds.event_list.dates import build_window, has_dates
from kalends.kinds.event_list.first_dates import HIDE_SUBSEQUENT
from kalends.kinds.events import EVENTS, build_event
from kalends.kinds.kind import row_conditions
from kalends.kinds.linked_records import NO_LINKED_RECORDS
from kalends.operations import cache_tags
from kalends.operations.context import OperationContext
from kalends.operations.records import build_clauses, build_list_query, make_render_context
from kalends.store import Row
from kalends.store.sql import Sql, and_

# The feed of a larger site is limited to the next events; subscribers can narrow it by filters.
MAX_EVENTS: Final = 5000
# How long a feed announces the cancellation of an event.
WITHDRAWN_PERIOD: Final = timedelta(days=30)
MAX_WITHDRAWN: Final = 5000
# Events that are built without yielding to the event loop.
BATCH_SIZE: Final = 25
# Events whose linked records are loaded at once.
LOADED_SIZE: Final = 10 * BATCH_SIZE
WITHDRAWN_COLUMNS: Final = (
    "r.id, r.uid, r.sequence, r.modified_utc, r.withdrawn_at, r.timezone, r.all_day, "
    "r.start_local, r.end_local, r.start_utc, r.end_utc"
)


@dataclass(frozen=True, slots=True)
class Feed:
    """The content of a feed. `sequences` is by event ID; at `expires_at` the content changes without a write."""

    rows: list[Row]
    sequences: Mapping[int, int]
    withdrawn: list[Row]
    expires_at: datetime | None
    cache_tags: tuple[str, ...]


async def find_feed(context: OperationContext, limit: int = MAX_EVENTS, *, upcoming_only: bool = False) -> Feed:
    """Find the events of a feed.

    Without dates among the filters these are the current and upcoming events and, as far as the limit allows, past
    events since the beginning of last month. `upcoming_only` leaves out past and withdrawn events. With `past`, these
    are the events that ended before today, the latest first.
    """
    expires_at: datetime | None
    if context.values.get("past") and not has_dates(context.values):
        context = replace(context, values={**context.values, **past_filters(context)})
        rows, expires_at = await _find_rows(context, {}, limit), _find_midnight(context)
    elif has_dates(context.values):
        query = build_list_query(EVENTS, context)
        rows, expires_at = await _find_rows(context, {}, limit), EVENTS.reads.expires_at(query)
    else:
        rows, expires_at = await _find_around_today(context, limit, upcoming_only=upcoming_only)
    sequences = await read_sequences(context, [row["id"] for row in rows])
    withdrawn = [] if upcoming_only else await find_withdrawn(context)
    expiries = [row["withdrawn_at"] + WITHDRAWN_PERIOD for row in withdrawn]
    # The sequence of a protected event depends on its venues, which its tags must not name.
    venues = ("venues",) if any(row["password_hash"] is not None for row in rows) else ()
    return Feed(
        rows,
        sequences,
        withdrawn,
        min([*([expires_at] if expires_at else []), *expiries], default=None),
        (*cache_tags.tags_for_list(EVENTS, rows, context.values), *venues),
    )


async def build_feed_events(context: OperationContext, rows: Sequence[Row]) -> AsyncIterator[list[Event]]:
    """Yield the events of a feed in batches, letting other requests run in between."""
    linked = NO_LINKED_RECORDS
    for loaded in batched(rows, LOADED_SIZE):
        render_context = await make_render_context(EVENTS, context, list(loaded), known=linked)
        # The events of a site share most of their linked records, which are loaded once for the whole feed.
        linked = render_context.linked
        for batch in batched(loaded, BATCH_SIZE):
            yield [build_event(row, render_context) for row in batch]
            await asyncio.sleep(0)


async def _find_around_today(
    context: OperationContext, limit: int, *, upcoming_only: bool
) -> tuple[list[Row], datetime]:
    today = _find_today(context)
    month = today.wall.replace(day=1)
    last_month = (month - timedelta(days=1)).replace(day=1) if month.year > 1 else month
    upcoming = await _find_rows(context, {"overlaps_from": today}, limit)
    past: list[Row] = []
    if len(upcoming) < limit and not upcoming_only:
        since = {"overlaps_from": DateTimeInput(last_month, None, True)}
        # Past dates stay in the calendars of subscribers, whatever was the first date at the time.
        filters = {**since, **past_filters(context), HIDE_SUBSEQUENT: False}
        past = await _find_rows(context, filters, limit - len(upcoming))
    return [*reversed(past), *upcoming], _find_midnight(context)


def past_filters(context: OperationContext) -> dict[str, Any]:
    """Return the filters of the events that ended before today, the latest first."""
    midnight = times.day_begins(_find_today(context), context.transaction.site.timezone)
    return {
        # An event that ended exactly at midnight is past.
        "ends_before": _build_instant(midnight + SECOND),
        "strict_dates": True,
        "orderby": "start_date",
        "order": "desc",
    }


def _find_today(context: OperationContext) -> DateTimeInput:
    local = times.local_of(context.transaction.now, context.transaction.site.timezone)
    return DateTimeInput(local.replace(hour=0, minute=0, second=0), None, True)


def _find_midnight(context: OperationContext) -> datetime:
    """Return the end of the current day, when a feed of past or upcoming events expires."""
    return times.day_ends(_find_today(context), context.transaction.site.timezone) + SECOND


def _build_instant(utc: datetime) -> DateTimeInput:
    return DateTimeInput(utc.replace(tzinfo=None), timedelta(0), False)


async def _find_rows(context: OperationContext, extra: Mapping[str, Any], limit: int) -> list[Row]:
    """Find the first rows of the list with these parameters added."""
    list_context = replace(context, values={**context.values, **extra})
    query = replace(build_list_query(EVENTS, list_context), page=1, per_page=limit)
    return await context.transaction.fetch_all(
        EVENTS.reads.page_query(EVENTS, query, await build_clauses(EVENTS, list_context, query))
    )


async def read_sequences(context: OperationContext, ids: list[int]) -> dict[int, int]:
    rows = await context.transaction.fetch_all(
        Sql(
            """SELECT e.id, greatest(e.sequence, (
                    SELECT max(v.sequence) FROM event_venues l JOIN venues v ON v.site_id = l.site_id
                        AND v.id = l.venue_id WHERE l.site_id = e.site_id AND l.event_id = e.id)) AS sequence
                FROM events e WHERE e.site_id = ? AND e.id = ANY(?)""",
            context.transaction.site.id,
            ids,
        )
    )
    return {row["id"]: row["sequence"] for row in rows}


async def find_withdrawn(context: OperationContext) -> list[Row]:
    """Find the events that lists showed until recently.

    An event that was changed after its withdrawal has no `withdrawn_at`, so only data that was public is disclosed.
    """
    tx = context.transaction
    query = replace(build_list_query(EVENTS, context), statuses=None)
    clauses = row_conditions(await build_clauses(EVENTS, context, query))
    if has_dates(context.values):
        clauses += build_window(query).clauses()
    recently_withdrawn = Sql("r.site_id = ? AND r.withdrawn_at > ? AND r.status <> 'publish'"
                 " AND NOT r.hide_from_listings", tx.site.id, tx.now - WITHDRAWN_PERIOD)  # fmt: skip
    return await tx.fetch_all(
        Sql("SELECT " + WITHDRAWN_COLUMNS + " FROM events r WHERE")
        + and_([recently_withdrawn, *clauses])
        + Sql("ORDER BY r.start_utc, r.id LIMIT ?", MAX_WITHDRAWN)
    )


async def find_withdrawn_event(context: OperationContext) -> Row:
    """Find the event that had this slug until recently; raise if there is none."""
    tx, slug = context.transaction, normalize_lookup(context.slug or "")
    row = await tx.fetch_one(
        Sql(
            "SELECT "
            + WITHDRAWN_COLUMNS
            + """ FROM events r WHERE r.site_id = ? AND r.slug = ANY(?)
                AND r.withdrawn_at > ? AND r.status <> 'publish' ORDER BY r.slug""",
            tx.site.id,
            [slug, slug + TRASHED_SUFFIX],
            tx.now - WITHDRAWN_PERIOD,
        )
    )
    if row is None:
        raise errors.not_found("event")
    return row

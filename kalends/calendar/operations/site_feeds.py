"""Events in feeds (the list with the same parameters, and recently withdrawn events) and in sitemaps."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import batched
from typing import Any, Final, LiteralString

from kalends.calendar.access import caching
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.event_list import EVENT_FILTERS, build_window, has_dates
from kalends.calendar.kinds.event_shortcuts import HIDE_SUBSEQUENT
from kalends.calendar.kinds.events import EVENTS, build_event
from kalends.calendar.kinds.kind import NO_LINKED_RECORDS, row_conditions
from kalends.calendar.operations.record_verbs import build_clauses, build_list_query, make_render_context
from kalends.calendar.rules.record_types import Event
from kalends.core import errors, params, times
from kalends.core.params import Param
from kalends.core.slugs import TRASHED_SUFFIX, normalize_lookup
from kalends.core.times import SECOND, DateTimeInput
from kalends.store import Row
from kalends.store.sql import Sql, and_

# A feed has the same filters as a list, but a fixed order, no pages, and no unpublished events.
FEED_PARAMS: Final[tuple[Param, ...]] = tuple(
    row.param for row in EVENT_FILTERS if row.param.name not in ("status", "order", "orderby", "cursor")
)
# Selects past instead of upcoming events, on pages and in iCalendar.
PAST: Final = Param("past", params.BOOLEAN, "")
# If a site has more events, its feed contains only the next ones; subscribers can use filters.
MAX_EVENTS: Final = 5000
# How long feeds announce a withdrawn event as cancelled.
WITHDRAWN_PERIOD: Final = timedelta(days=30)
MAX_WITHDRAWN: Final = 5000
# Number of events to build before yielding to the event loop.
BATCH_SIZE: Final = 25
# Number of events whose linked records are loaded together.
LOADED_SIZE: Final = 10 * BATCH_SIZE
WITHDRAWN_COLUMNS: Final = (
    "r.id, r.uid, r.sequence, r.modified_utc, r.withdrawn_at, r.timezone, r.all_day, "
    "r.start_local, r.end_local, r.start_utc, r.end_utc"
)
# IDs per part. Events, series, venues and organizers share one ID sequence.
PART_SIZE: Final = 10_000
MAX_TERMS: Final = 20_000
# How far ahead the dates of series are listed. The series page links to later dates.
DATES_PERIOD: Final = timedelta(days=92)
POSTS: Final[tuple[tuple[LiteralString, LiteralString], ...]] = (
    (
        "events",
        "AND r.listed AND r.password_hash IS NULL AND (r.series_id IS NULL OR r.end_utc >= ? AND r.start_utc < ?)",
    ),
    ("series", "AND r.status = 'publish' AND r.template ->> 'password_hash' IS NULL AND NOT r.hide_from_listings"),
    ("venues", "AND r.status = 'publish'"),
    ("organizers", "AND r.status = 'publish'"),
)


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed's content, which changes at `expires_at` even without a write. The keys of `sequences` are event IDs."""

    rows: list[Row]
    sequences: Mapping[int, int]
    withdrawn: list[Row]
    expires_at: datetime | None
    cache_tags: tuple[str, ...]


async def find_feed(context: OperationContext, limit: int = MAX_EVENTS, *, upcoming_only: bool = False) -> Feed:
    """Find a feed's events.

    Without date filters, a feed contains current and upcoming events and, if there is room, past events since the
    beginning of last month. `upcoming_only` excludes past and withdrawn events. With `past`, the feed contains the
    events that ended before today, latest first.
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
    # The sequence of a protected event depends on its venues. Tags for single venues would reveal them, so use the
    # kind's tag.
    venues = ("venues",) if any(row["password_hash"] is not None for row in rows) else ()
    return Feed(
        rows,
        sequences,
        withdrawn,
        min([*([expires_at] if expires_at else []), *expiries], default=None),
        (*caching.tags_for_list(EVENTS, rows, context.values), *venues),
    )


async def build_feed_events(context: OperationContext, rows: Sequence[Row]) -> AsyncIterator[list[Event]]:
    """Yield a feed's events in batches, to let other requests run in between."""
    linked = NO_LINKED_RECORDS
    for loaded in batched(rows, LOADED_SIZE):
        render_context = await make_render_context(EVENTS, context, list(loaded), known=linked)
        # Events share most linked records, so load each of these records only once per feed.
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
        # Keep all past dates in subscribers' calendars, not only the first date of each series.
        filters = {**since, **past_filters(context), HIDE_SUBSEQUENT: False}
        past = await _find_rows(context, filters, limit - len(upcoming))
    return [*reversed(past), *upcoming], _find_midnight(context)


def past_filters(context: OperationContext) -> dict[str, Any]:
    """Return the filters for events that ended before today, latest first."""
    midnight = times.day_begins(_find_today(context), context.transaction.site.timezone)
    return {
        # An event that ended exactly at midnight is past.
        "ends_before": DateTimeInput((midnight + SECOND).replace(tzinfo=None), timedelta(0), False),
        "strict_dates": True,
        "orderby": "start_date",
        "order": "desc",
    }


def _find_today(context: OperationContext) -> DateTimeInput:
    local = times.local_of(context.transaction.now, context.transaction.site.timezone)
    return DateTimeInput(local.replace(hour=0, minute=0, second=0), None, True)


def _find_midnight(context: OperationContext) -> datetime:
    """Return the end of the current day, when feeds of past or upcoming events expire."""
    return times.day_ends(_find_today(context), context.transaction.site.timezone) + SECOND


async def _find_rows(context: OperationContext, extra: Mapping[str, Any], limit: int) -> list[Row]:
    """Find the first rows of the list, with additional parameters."""
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
    """Find events that were in lists until recently.

    An event edited since its withdrawal has no `withdrawn_at`, so the result contains only data that was public.
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
    """Find the event that had this slug until recently. Raise if there is none."""
    tx, slug = context.transaction, normalize_lookup(context.slug or "")
    row = await tx.fetch_one(
        Sql(
            "SELECT "
            + WITHDRAWN_COLUMNS
            + """ FROM events r WHERE r.site_id = ? AND r.slug = ANY(?)
                AND r.withdrawn_at > ? AND r.status <> 'publish' ORDER BY r.slug""",
            *(tx.site.id, [slug, slug + TRASHED_SUFFIX], tx.now - WITHDRAWN_PERIOD),
        )
    )
    if row is None:
        raise errors.not_found("event")
    return row


# Sitemaps: all public URLs of a site, in stable parts. Posts come first, by ID, then terms.


async def count_parts(context: OperationContext) -> int:
    last_id: int = await context.transaction.fetch_value(
        Sql("SELECT last_post_id FROM sites WHERE id = ?", context.transaction.site.id)
    )
    return last_id // PART_SIZE + 1


async def list_posts(context: OperationContext, part: int) -> list[tuple[str, str]]:
    """List the URLs in one part, each with the date of its last change."""
    entries: list[tuple[str, str]] = []
    today = times.next_midnight(context.transaction.now, context.transaction.site.timezone) - timedelta(days=1)
    period = (today, today + DATES_PERIOD)
    for name, visible in POSTS:
        rows = await context.transaction.fetch_all(
            Sql(
                "SELECT r.slug, r.modified_utc FROM " + name + " r WHERE r.site_id = ? AND r.id >= ? AND r.id < ? "
                "AND r.slug <> '' " + visible + " ORDER BY r.id",
                context.transaction.site.id,
                part * PART_SIZE,
                (part + 1) * PART_SIZE,
                *(period if name == "events" else ()),
            )
        )
        singular = BY_NAME[name].singular
        entries += [
            (f"{context.base_url}/{singular}/{row['slug']}/", f"{row['modified_utc']:%Y-%m-%d}") for row in rows
        ]
    return entries


async def list_terms(context: OperationContext) -> list[tuple[str, str]]:
    entries: list[tuple[str, str]] = []
    for name in ("categories", "tags"):
        kind = BY_NAME[name]
        condition = Sql("r.site_id = ? AND r.count > 0 ORDER BY r.id LIMIT ?", context.transaction.site.id, MAX_TERMS)
        rows = await context.transaction.fetch_all(kind.select(condition))
        entries += [(kind.reads.from_row(row, context.render_context).url, "") for row in rows]
    return entries

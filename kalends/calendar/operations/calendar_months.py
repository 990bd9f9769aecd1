"""Queries for the public calendar pages: days of a month, nearest days with events, similar events, main categories.

The queries take the same parameters as a list and apply the same visibility. An event's day is the day in the event's
local time, as shown on the page.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import Any, Final, LiteralString

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.event_list import build_window
from kalends.calendar.kinds.event_shortcuts import HIDE_SUBSEQUENT
from kalends.calendar.kinds.event_window import plan_branches
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Columns, Filter, Kind, SeriesCondition, value_clause
from kalends.calendar.kinds.organizers import ORGANIZERS
from kalends.calendar.kinds.series_kind import SERIES
from kalends.calendar.kinds.venues import VENUES
from kalends.calendar.operations.record_verbs import (
    RecordList,
    build_clauses,
    build_list_query,
    fetch_visible_row,
    list_events,
)
from kalends.calendar.rules.record_types import Event
from kalends.calendar.storage import record_tables
from kalends.core.errors import ApiError
from kalends.core.params import Param, Type
from kalends.core.slugs import normalize_lookup
from kalends.core.times import DateTimeInput
from kalends.store import Row
from kalends.store.sql import Sql, join

DAY: Final = timedelta(days=1)
# An event that ends by 06:00 belongs to the previous day. `rendering/cards.py` applies the same rule.
NIGHT: LiteralString = "interval '6 hours 1 second'"
EFFECTIVE_END: LiteralString = (
    "greatest(r.start_local, CASE WHEN r.all_day THEN r.end_local ELSE r.end_local - " + NIGHT + " END)"
)
# Maximum number of multi-day events on one page.
MAX_MULTI_DAY: Final = 200
# Maximum number of upcoming events to count per category when sorting the navigation.
MAX_UPCOMING: Final = 20
DATE_PARAMS: Final = frozenset(
    {
        *("start_date", "end_date", "starts_before", "starts_after", "ends_before", "ends_after", "strict_dates"),
        *("overlaps_from", "overlaps_to", "include", "order", "orderby", "cursor"),
    }
)


def with_filter(name: LiteralString, clause: Callable[[Any], Sql]) -> Kind:
    """Return the event kind with an additional filter that is not an API parameter."""
    added = Filter(Param(name, Type({}, lambda value: value), ""), value_clause(clause))
    return replace(EVENTS, filters=(*EVENTS.filters, added))


DAY_EVENTS: Final = with_filter(
    "days",
    lambda days: Sql(
        "r.start_local < ? AND " + EFFECTIVE_END + " >= ?", _start_of_day(days[1]) + DAY, _start_of_day(days[0])
    ),
)
STARTING_EVENTS: Final = with_filter(
    "starts_in", lambda span: Sql("r.start_local >= ? AND r.start_local < ?", span[0], span[1])
)
RUNNING_EVENTS: Final = with_filter(
    "runs_since",
    lambda span: Sql("r.start_local < ? AND " + EFFECTIVE_END + " >= ?", span[0], _start_of_day(span[1])),
)
# An additional column: the name of an open event's first public venue.
FIRST_VENUE: LiteralString = """, (SELECT v.title FROM event_venues l
    JOIN venues v ON v.site_id = l.site_id AND v.id = l.venue_id AND v.status = 'publish'
    WHERE n.is_open AND l.site_id = ? AND l.event_id = n.id ORDER BY l.position LIMIT 1) AS venue"""
OTHER_EVENTS: Final = with_filter("other_series", lambda series_id: Sql("r.series_id IS DISTINCT FROM ?", series_id))


async def list_days(
    context: OperationContext, first: date, last: date, max_per_day: int, *, with_venues: bool = False
) -> list[Row]:
    """List events in a range of days: multi-day events, and the first few per day with the day's total.

    If only one more event would remain on a day, list it too, because a link to it takes as much room. Include
    password-protected events, because their titles and times are public. The result of this single statement does not
    grow with the number of events per day.
    """
    days = await select_days(context, first, last)
    site_id = context.transaction.site.id
    return await context.transaction.fetch_all(
        Sql(
            """SELECT n.*, (SELECT c.category_id FROM event_categories c WHERE n.is_open
                    AND c.site_id = ? AND c.event_id = n.id ORDER BY c.position LIMIT 1) AS category_id"""
            + (FIRST_VENUE if with_venues else "")
            + """ FROM (
                    SELECT f.*, count(*) OVER (PARTITION BY f.day) AS of_day,
                        row_number() OVER (PARTITION BY f.day ORDER BY f.sticky DESC, f.start_local, f.id) AS nth
                    FROM (SELECT e.*, CASE WHEN e.first_day = e.last_day THEN e.first_day END AS day FROM (""",
            *([site_id, site_id] if with_venues else [site_id]),
        )
        + days
        + Sql(
            """) e) f) n WHERE n.nth <= CASE WHEN n.day IS NULL THEN ?::integer ELSE ?::integer END
                    OR n.day IS NOT NULL AND n.of_day = ?::integer
                ORDER BY n.day NULLS FIRST, n.nth""",
            MAX_MULTI_DAY,
            max_per_day,
            max_per_day + 1,
        )
    )


async def select_days(context: OperationContext, first: date, last: date, more: LiteralString = "") -> Sql:
    """Build a query for the events in a range of days, with the columns for calendar entries and `more`."""
    days_context = build_days_context(context, first, last)
    query = build_list_query(DAY_EVENTS, days_context)
    clauses = await build_clauses(DAY_EVENTS, days_context, query)
    branches = [
        Sql(
            "(SELECT r.id, r.title, r.slug, r.timezone, r.start_local, r.end_local, r.start_utc, r.end_utc, "
            "r.start_local::date AS first_day, " + EFFECTIVE_END + "::date AS last_day, "
            "r.password_hash IS NULL AS is_open, r.password_hash IS NULL AND r.all_day AS all_day, "
            "r.password_hash IS NULL AND r.series_id IS NOT NULL AS repeats, "
            "r.password_hash IS NULL AND r.sticky AS sticky, r.password_hash IS NULL AND r.featured AS featured, "
            "CASE WHEN r.password_hash IS NULL THEN r.event_status ELSE 'scheduled' END AS event_status"
            + more
            + " FROM"
        )
        + source
        + Sql("WHERE")
        + where
        + Sql(")")
        for source, where in plan_branches(query, build_window(query), clauses)
    ]
    return join(" UNION ALL ", branches)


async def list_day(context: OperationContext, day: date) -> RecordList[Event]:
    return await list_events(build_days_context(context, day, day), kind=DAY_EVENTS)


async def list_starting(
    context: OperationContext, begin: datetime, last: date, limit: int, *, with_total: bool = True
) -> RecordList[Event]:
    """List the events that start at or after a local time, up to the end of a day."""
    values = _without_dates(context) | {
        "starts_after": make_date_filter(_shift_day(begin.date(), -2)),
        "starts_before": make_date_filter(_shift_day(last, 2)),
        "starts_in": (begin, _start_of_day(last) + DAY),
        "per_page": limit,
    }
    return await list_events(replace(context, values=values), kind=STARTING_EVENTS, with_total=with_total)


async def list_running(
    context: OperationContext, begin: datetime, first: date, limit: int, *, with_total: bool = True
) -> RecordList[Event]:
    """List the events that started before a local time and are still running on a day."""
    values = _without_dates(context) | {
        "overlaps_from": make_date_filter(_shift_day(first, -2)),
        "starts_before": make_date_filter(_shift_day(begin.date(), 2)),
        "runs_since": (begin, first),
        "per_page": limit,
    }
    return await list_events(replace(context, values=values), kind=RUNNING_EVENTS, with_total=with_total)


async def count_dates(found: RecordList[Event], series_ids: Sequence[int]) -> tuple[int, dict[int, int]]:
    """Count all events of a list that hides subsequent dates, and the dates of some series, in one statement.

    Do not count protected dates for their series, because the series is not public.
    """
    query = replace(found.query, values={**found.query.values, HIDE_SUBSEQUENT: False})
    clauses = list(found.clauses)
    of_series = [*clauses, SeriesCondition(list(series_ids)), Sql("r.password_hash IS NULL")]
    dates = [
        Sql("(SELECT r.series_id FROM") + source + Sql("WHERE") + where + Sql(")")
        for source, where in plan_branches(query, build_window(query), of_series)
    ]
    rows = await query.transaction.fetch_all(
        Sql("SELECT NULL::bigint AS series_id, (")
        + EVENTS.reads.total_query(EVENTS, query, clauses)
        + Sql(") AS dates UNION ALL SELECT r.series_id, count(*) FROM (")
        + join(" UNION ALL ", dates)
        + Sql(") r GROUP BY r.series_id")
    )
    counts = {row["series_id"]: row["dates"] for row in rows}
    return counts.pop(None), counts


async def find_day_before(context: OperationContext, first: date) -> date | None:
    """Find the last day before `first` that has events."""
    row = await _find_first(
        context,
        {"ends_before": make_date_filter(_shift_day(first, 2)), "orderby": "end_date", "order": "desc"},
        Sql(EFFECTIVE_END + " < ?", _start_of_day(first)),
    )
    return row["last_day"] if row else None


async def find_day_after(context: OperationContext, last: date) -> date | None:
    """Find the first day after `last` when an event starts."""
    row = await _find_first(
        context,
        {"starts_after": make_date_filter(_shift_day(last, -2)), "orderby": "start_date", "order": "asc"},
        Sql("r.start_local >= ?", _start_of_day(last) + DAY),
    )
    return row["start_local"].date() if row else None


async def list_similar(context: OperationContext, event: Event, limit: int) -> tuple[list[Event], tuple[str, ...]]:
    """List upcoming events like this one: same categories first, then same venues, then all others.

    Skip events in the same series. Also return the cache tags of the lists that were read.
    """
    attempts: list[dict[str, Any]] = []
    others = {"other_series": event.series.id} if event.series else {}
    if event.categories:
        attempts.append({"categories": [term.id for term in event.categories]})
    if event.venues:
        attempts.append({"venue": [venue.id for venue in event.venues]})
    similar: dict[int, Event] = {}
    tags: dict[str, None] = {}
    for filters in (*attempts, {}):
        values = {**filters, **others, "per_page": limit + 1}
        found = await list_events(replace(context, values=values, slug=None), kind=OTHER_EVENTS, with_total=False)
        tags.update(dict.fromkeys(found.cache_tags))
        for other in found.records:
            similar.setdefault(other.id, other)
        similar.pop(event.id, None)
        if len(similar) >= limit:
            break
    return list(similar.values())[:limit], tuple(tags)


async def list_main_categories(context: OperationContext, since: datetime, limit: int) -> list[Row]:
    """List the most used top-level categories, ordered by their number of events at or after `since`.

    A category includes the events of its children. Counting stops at a limit, so the cost does not grow with the
    number of events. Hide the limits and the date from the planner to let it reuse the plan.
    """
    site_id = context.transaction.site.id
    return await context.transaction.fetch_all(
        Sql(
            """SELECT m.id, m.name, m.slug FROM (
                    SELECT r.id, r.name, r.slug, r.count + coalesce(b.count, 0) AS total
                    FROM categories r LEFT JOIN (
                        SELECT c.parent, sum(c.count) AS count FROM categories c
                        WHERE c.site_id = ? AND c.parent IS NOT NULL GROUP BY c.parent) b ON b.parent = r.id
                    WHERE r.site_id = ? AND r.parent IS NULL AND r.count + coalesce(b.count, 0) > 0
                    ORDER BY total DESC, r.id LIMIT (SELECT ?::bigint)) m
                ORDER BY (
                    SELECT sum((SELECT count(*) FROM (
                        SELECT FROM event_categories l WHERE l.site_id = ? AND l.category_id = c.id AND l.listed
                            AND l.start_utc >= (SELECT ?::timestamptz) LIMIT (SELECT ?::bigint)) u))
                    FROM categories c WHERE c.site_id = ? AND (c.id = m.id OR c.parent = m.id)) DESC,
                    m.total DESC, m.id""",
            site_id,
            site_id,
            limit,
            site_id,
            since,
            MAX_UPCOMING,
            site_id,
        )
    )


async def find_record_url(context: OperationContext, post_id: int) -> tuple[str, str] | None:
    """Find the collection and slug of a published post by its ID, or by the ID of a record merged into it."""
    tx = context.transaction
    for kind in (EVENTS, VENUES, ORGANIZERS, SERIES):
        slug = await tx.fetch_value(
            Sql(
                "SELECT slug FROM " + kind.name + " WHERE site_id = ? AND id = ? AND status = 'publish'",
                tx.site.id,
                post_id,
            )
        ) or await record_tables.current_slug(tx, kind.name, record_tables.id_key(post_id), is_post=True)
        if slug:
            return kind.singular, slug
    return None


async def find_by_slug(context: OperationContext, kind: Kind, slug: str) -> Row | None:
    """Find the public record with this slug, or one that had it before."""
    try:
        return await fetch_visible_row(kind, replace(context, slug=slug))
    except ApiError:
        tx, former = context.transaction, normalize_lookup(slug)
        current = await record_tables.current_slug(tx, kind.name, former, is_post=kind.is_post)
        return await fetch_visible_row(kind, replace(context, slug=current)) if current else None


def build_days_context(context: OperationContext, first: date, last: date) -> OperationContext:
    """Return the context for the events in a range of days, with the page's filters but not its dates."""
    values = _without_dates(context)
    values |= {
        "overlaps_from": make_date_filter(_shift_day(first, -2)),
        "overlaps_to": make_date_filter(_shift_day(last, 2)),
        "days": (first, last),
    }
    return replace(context, values=values)


def _without_dates(context: OperationContext) -> dict[str, Any]:
    return {name: value for name, value in context.values.items() if name not in DATE_PARAMS}


async def _find_first(context: OperationContext, dates: dict[str, Any], condition: Sql) -> Row | None:
    """Find the first event in a list that meets a condition.

    The dates of the list are in the site's time zone, whereas `condition` applies to the events' local times.
    """
    list_context = replace(context, values=_without_dates(context) | dates)
    query = replace(build_list_query(EVENTS, list_context), page=1, per_page=1)
    columns = Columns("id", "start_local", computed={"last_day": EFFECTIVE_END + "::date"})
    narrowed_kind = replace(EVENTS, reads=replace(EVENTS.reads, columns=columns))
    clauses = [*await build_clauses(EVENTS, list_context, query), condition]
    return await context.transaction.fetch_one(narrowed_kind.reads.page_query(narrowed_kind, query, clauses))


def make_date_filter(day: date) -> DateTimeInput:
    return DateTimeInput(_start_of_day(day), None, True)


def _start_of_day(day: date) -> datetime:
    return datetime.combine(day, time())


def _shift_day(day: date, days: int) -> date:
    """Shift a day. A shift by two days exceeds the difference between any two time zones."""
    return day + timedelta(days=days)

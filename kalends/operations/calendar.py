"""What the public pages of a calendar ask: the days of a month, where there is more, what is like an event.

The same parameters and the same visibility as a list. A day of the calendar is a day on the event's own clock:
what is printed beside an event is where it stands.
"""

from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import Any, Final, LiteralString

from kalends.core.params import Param, Type
from kalends.core.record_types import Event
from kalends.core.times import DateTimeInput
from kalends.kinds.event_dates import build_window
from kalends.kinds.event_window import plan_branches
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Clause, Columns, Filter, ListQuery
from kalends.kinds.organizers import ORGANIZERS
from kalends.kinds.venues import VENUES
from kalends.operations.context import OperationContext
from kalends.operations.records import build_clauses, build_list_query
from kalends.operations.typed_records import RecordList, list_events
from kalends.store import Row
from kalends.store.sql import Sql, join

DAY: Final = timedelta(days=1)
# A night belongs to the day on which it began: the SQL twin of `pages.cards.last_day`.
NIGHT: LiteralString = "interval '6 hours 1 second'"
EFFECTIVE_END: LiteralString = (
    "greatest(r.start_local, CASE WHEN r.all_day THEN r.end_local ELSE r.end_local - " + NIGHT + " END)"
)
# More than this many that last for days are not told apart on one page.
MAX_MULTI_DAY: Final = 200
DATE_PARAMS: Final = frozenset(
    (
        "start_date",
        "end_date",
        "starts_before",
        "starts_after",
        "ends_before",
        "ends_after",
        "strict_dates",
        "overlaps_from",
        "overlaps_to",
        "include",
        "order",
        "orderby",
        "cursor",
    )
)


async def _days_clause(days: tuple[date, date], _: ListQuery) -> Clause:
    first, last = days
    return Sql("r.start_local < ? AND " + EFFECTIVE_END + " >= ?", _start_of_day(last) + DAY, _start_of_day(first))


# Events as the pages of days list them: one more filter, which no parameter of the interface sets.
DAY_EVENTS: Final = replace(
    EVENTS, filters=(*EVENTS.filters, Filter(Param("days", Type({}, lambda value: value), ""), _days_clause))
)


async def list_days(context: OperationContext, first: date, last: date, max_per_day: int) -> list[Row]:
    """Events that touch some days: of those within one day the first few of each, with how many there are.

    One statement, whose answer does not grow with the number of events of a day. A protected event shows its
    title and its times.
    """
    days_context = build_days_context(context, first, last)
    query = build_list_query(DAY_EVENTS, days_context)
    clauses = await build_clauses(DAY_EVENTS, days_context, query)
    branches = [
        Sql(
            "(SELECT r.id, r.title, r.slug, r.timezone, r.start_local, r.end_local, "
            "r.start_local::date AS first_day, " + EFFECTIVE_END + "::date AS last_day, "
            "r.password_hash IS NULL AS is_open, r.password_hash IS NULL AND r.all_day AS all_day, "
            "r.password_hash IS NULL AND r.sticky AS sticky, r.password_hash IS NULL AND r.featured AS featured FROM"
        )
        + source
        + Sql("WHERE")
        + where
        + Sql(")")
        for source, where in plan_branches(query, build_window(query), clauses)
    ]
    return await context.transaction.fetch_all(
        Sql(
            """SELECT n.*, (SELECT c.category_id FROM event_categories c WHERE n.is_open
                    AND c.site_id = ? AND c.event_id = n.id ORDER BY c.position LIMIT 1) AS category_id
                FROM (
                    SELECT f.*, count(*) OVER (PARTITION BY f.day) AS of_day,
                        row_number() OVER (PARTITION BY f.day ORDER BY f.sticky DESC, f.start_local, f.id) AS nth
                    FROM (SELECT e.*, CASE WHEN e.first_day = e.last_day THEN e.first_day END AS day FROM (""",
            context.transaction.site.id,
        )
        + join(" UNION ALL ", branches)
        + Sql(
            """) e) f) n WHERE n.nth <= CASE WHEN n.day IS NULL THEN ?::integer ELSE ?::integer END
                ORDER BY n.day NULLS FIRST, n.nth""",
            MAX_MULTI_DAY,
            max_per_day,
        )
    )


async def list_day(context: OperationContext, day: date) -> RecordList[Event]:
    """List the events of one day, page by page."""
    return await list_events(build_days_context(context, day, day), kind=DAY_EVENTS)


async def find_day_before(context: OperationContext, first: date) -> date | None:
    """The last day before this one on which there is something."""
    row = await _find_first(
        context,
        {"ends_before": _build_moment(_shift_day(first, 2)), "orderby": "end_date", "order": "desc"},
        Sql(EFFECTIVE_END + " < ?", _start_of_day(first)),
    )
    return row["last_day"] if row else None


async def find_day_after(context: OperationContext, last: date) -> date | None:
    """The first day after this one on which something begins."""
    row = await _find_first(
        context,
        {"starts_after": _build_moment(_shift_day(last, -2)), "orderby": "start_date", "order": "asc"},
        Sql("r.start_local >= ?", _start_of_day(last) + DAY),
    )
    return row["start_local"].date() if row else None


async def list_similar(context: OperationContext, event: Event, limit: int) -> list[Event]:
    """List the next events in the same categories, then at the same venues, then any."""
    attempts: list[dict[str, Any]] = []
    if event.categories:
        attempts.append({"categories": [term.id for term in event.categories]})
    if event.venues:
        attempts.append({"venue": [venue.id for venue in event.venues]})
    similar: dict[int, Event] = {}
    for filters in (*attempts, {}):
        values = {**filters, "per_page": limit + 1}
        found = await list_events(replace(context, values=values, slug=None), with_total=False)
        for other in found.records:
            similar.setdefault(other.id, other)
        similar.pop(event.id, None)
        if len(similar) >= limit:
            break
    return list(similar.values())[:limit]


async def list_main_categories(context: OperationContext, limit: int) -> list[Row]:
    """The most used ones at the top of the tree, with what is right below them."""
    return await context.transaction.fetch_all(
        Sql(
            """SELECT r.name, r.slug FROM categories r LEFT JOIN (
                    SELECT c.parent, sum(c.count) AS count FROM categories c
                    WHERE c.site_id = ? AND c.parent IS NOT NULL GROUP BY c.parent) b ON b.parent = r.id
                WHERE r.site_id = ? AND r.parent IS NULL AND r.count + coalesce(b.count, 0) > 0
                ORDER BY r.count + coalesce(b.count, 0) DESC, r.id LIMIT ?""",
            context.transaction.site.id,
            context.transaction.site.id,
            limit,
        )
    )


async def find_record_url(context: OperationContext, post_id: int) -> tuple[str, str] | None:
    """The collection and slug of a published post with this ID."""
    site_id = context.transaction.site.id
    for kind in (EVENTS, VENUES, ORGANIZERS):
        row = await context.transaction.fetch_one(
            Sql(
                "SELECT slug FROM " + kind.name + " WHERE site_id = ? AND id = ? AND status = 'publish'",
                site_id,
                post_id,
            )
        )
        if row:
            return kind.singular, row["slug"]
    return None


def build_days_context(context: OperationContext, first: date, last: date) -> OperationContext:
    """A call for the events that touch some days, with the filters of the page but not its dates."""
    values = {name: value for name, value in context.values.items() if name not in DATE_PARAMS}
    values |= {
        "overlaps_from": _build_moment(_shift_day(first, -2)),
        "overlaps_to": _build_moment(_shift_day(last, 2)),
        "days": (first, last),
    }
    return replace(context, values=values)


async def _find_first(context: OperationContext, dates: dict[str, Any], condition: Sql) -> Row | None:
    """The first event of a list; dates of the list are read in the site's zone, so the clause is more exact."""
    values = {name: value for name, value in context.values.items() if name not in DATE_PARAMS}
    list_context = replace(context, values={**values, **dates})
    query = replace(build_list_query(EVENTS, list_context), page=1, per_page=1)
    columns = Columns("id", "start_local", computed={"last_day": EFFECTIVE_END + "::date"})
    narrowed_kind = replace(EVENTS, reads=replace(EVENTS.reads, columns=columns))
    clauses = [*await build_clauses(EVENTS, list_context, query), condition]
    return await context.transaction.fetch_one(narrowed_kind.reads.page_query(narrowed_kind, query, clauses))


def _build_moment(day: date) -> DateTimeInput:
    return DateTimeInput(_start_of_day(day), None, True)


def _start_of_day(day: date) -> datetime:
    return datetime.combine(day, time())


def _shift_day(day: date, days: int) -> date:
    """Two days are more than any two clocks differ."""
    return day + timedelta(days=days)

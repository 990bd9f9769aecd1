"""SQL for a page of events and its total. The cost does not grow with the number of past events.

A page comes from the start index and, for events that began before the window and are still in progress, from the
index of duration classes. A total is a sum over days.
"""

from datetime import datetime
from typing import LiteralString

from kalends.calendar.kinds.event_list import build_window
from kalends.calendar.kinds.event_shortcuts import (
    build_link_total_query,
    count_first_dates,
    hides_subsequent,
    plan_first_dates,
    plan_link_page,
    select_singles,
    uses_steps,
)
from kalends.calendar.kinds.event_window import (
    DAY,
    ORDERS,
    WITH_HIDDEN,
    Window,
    build_order_by,
    cursor_condition,
    duration_classes_before,
    join_distance,
    plan_branches,
    qualify_column,
    read_order,
)
from kalends.calendar.kinds.kind import (
    Clause,
    Kind,
    LinkCondition,
    ListQuery,
    SeriesCondition,
    TextCondition,
    build_page_and_total_query,
    has_condition,
)
from kalends.core.times import SECOND
from kalends.store.sql import UNSEEN_DAY, UNSEEN_INSTANT, UNSEEN_TEXTS, Sql, join, limit


def build_event_page_query(kind: Kind, query: ListQuery, clauses: list[Clause]) -> Sql:
    """Build the query for a page. It selects sort columns and IDs first, and then reads only the page's rows."""
    return _select_page(kind, query, Sql("(") + join(" UNION ALL ", _select_keys(query, clauses)) + Sql(")"))


def build_event_page_and_total_query(kind: Kind, query: ListQuery, clauses: list[Clause]) -> Sql:
    """Build the query for a page and its total. A search reads the word index only once for both."""
    indexes = {type(clause) for clause in clauses} & {LinkCondition, SeriesCondition, TextCondition}
    if indexes != {TextCondition} or "cursor" in query.values or hides_subsequent(query):
        return build_page_and_total_query(kind, query, clauses)
    # Each non-empty branch returns at least one row, so the rows contain the count of every branch.
    return (
        Sql("WITH matches AS MATERIALIZED (")
        + join(" UNION ALL ", _select_keys(query, clauses, with_counts=True))
        + Sql("""), totals AS (
                SELECT coalesce(sum(b.matches), 0)::bigint AS total
                FROM (SELECT DISTINCT branch, matches FROM matches) b
            )
            SELECT t.total, p.* FROM totals t LEFT JOIN LATERAL (""")
        + _select_page(kind, query, Sql("matches"))
        + Sql(") p ON true")
    )


def _select_keys(query: ListQuery, clauses: list[Clause], *, with_counts: bool = False) -> list[Sql]:
    """Return the branches of a page. Each selects the sort columns of as many rows as the page may need."""
    orderby, _ = read_order(query)
    keys: LiteralString = ", ".join([qualify_column("r.", column) + " AS " + column for column in ORDERS[orderby]])
    by_cursor = "cursor" in query.values
    window = build_window(query)
    count, offset = _limit_and_offset(query)
    distance = join_distance(query, window.start_from, window.last_start)
    return [
        Sql("(SELECT " + keys)
        + (Sql(", ?::int AS branch, count(*) OVER () AS matches", number) if with_counts else Sql(""))
        + Sql("FROM") + source + distance + Sql("WHERE") + where
        + (Sql("AND") + cursor_condition(query) if by_cursor else Sql(""))
        + Sql("ORDER BY") + build_order_by(query, "r.") + limit(offset + count) + Sql(")")
        for number, (source, where) in enumerate(_plan_page(query, window, clauses, offset + count))
    ]  # fmt: skip


def _select_page(kind: Kind, query: ListQuery, keys: Sql) -> Sql:
    orderby, _ = read_order(query)
    order, bounds = build_order_by(query, "p."), limit(*_limit_and_offset(query))
    page = Sql("FROM (SELECT * FROM") + keys + Sql("p ORDER BY") + order + bounds + Sql(") p")
    if not kind.reads.columns.names:
        return Sql("SELECT p.*") + page + Sql("ORDER BY") + order
    extra_columns: LiteralString = ", p.distance" if orderby == "distance" else ""
    return (
        Sql("SELECT " + kind.reads.columns.sql + extra_columns)
        + page
        + Sql("JOIN events r ON r.site_id = ? AND r.id = p.id ORDER BY", query.site.id)
        + order
    )


def _limit_and_offset(query: ListQuery) -> tuple[int, int]:
    # With a cursor, one extra row shows whether there is a next page.
    return (query.per_page + 1, 0) if "cursor" in query.values else (query.per_page, query.offset)


def _plan_page(query: ListQuery, window: Window, clauses: list[Clause], count: int) -> list[tuple[Sql, Sql]]:
    """Return the branches of a list. If possible, the first branch reads a link index in the order of the list."""
    if hides_subsequent(query):
        return plan_first_dates(query, window, clauses, count)
    if read_order(query)[0] == "end_date" and window.start_from is not None:
        # This follows from the condition on the start, but shows the planner where to begin in the end index.
        clauses = [*clauses, Sql("r.end_utc >= ?", window.start_from)]
    starting, *others = plan_branches(query, window, clauses)
    return [plan_link_page(query, window, clauses, count) or starting, *others]


def build_event_total_query(_: Kind, query: ListQuery, clauses: list[Clause]) -> Sql:
    """Build the query for the exact total: a sum over days if there is no filter or one link, otherwise a count."""
    window = build_window(query)
    if not hides_subsequent(query):
        return _build_total(query, window, clauses)
    first_dates = count_first_dates(query, window, clauses)
    if not uses_steps(query, clauses):
        return Sql("SELECT") + first_dates
    return Sql("SELECT (") + _build_total(select_singles(query), window, []) + Sql(") +") + first_dates


def _build_total(query: ListQuery, window: Window, clauses: list[Clause]) -> Sql:
    if query.statuses is not None and WITH_HIDDEN not in query.values:
        conditions = [clause for clause in clauses if has_condition(clause)]
        by_days = _build_total_by_days if not conditions else build_link_total_query
        if (total := by_days(query, window, conditions)) is not None:
            return total
    branches = [
        Sql("(SELECT count(*) FROM") + source + Sql("WHERE") + where + Sql(")")
        for source, where in plan_branches(query, window, clauses)
    ]
    return Sql("SELECT") + join(" + ", branches)


def _build_total_by_days(query: ListQuery, window: Window, _: list[Clause]) -> Sql | None:
    is_contained = window.start_to is None and window.end_from is None
    is_overlapping = window.start_from is None and window.end_to is None
    if is_contained:
        return _count_contained(query, window.start_from, window.end_to)
    if is_overlapping:
        return _count_overlapping(query, window)
    return None


def _count_contained(query: ListQuery, start_from: datetime | None, end_to: datetime | None) -> Sql:
    """Count events inside a period: events that start late enough, minus events that end too late.

    Events that start too early and also end too late are counted only in the second number, so add them back.
    """
    if start_from is None and end_to is None:
        return Sql("SELECT") + _sum_days(query, "starts", None)
    started = _count_since(query, "start", start_from)
    if end_to is None:
        return Sql("SELECT") + started
    too_late = _count_since(query, "end", end_to + SECOND)
    if start_from is None:
        return Sql("SELECT") + started + Sql("-") + too_late
    if end_to < start_from:
        return Sql("SELECT 0::bigint")
    classes = duration_classes_before(end_to, longer_than=end_to - start_from)
    # OFFSET 0 forces one lookup per class. Otherwise, the planner would read all past events in the longer classes.
    around = Sql(
        """(SELECT count(*) FROM unnest(?::smallint[], ?::timestamptz[]) AS w (duration_class, since)
            CROSS JOIN LATERAL (
                SELECT FROM events r
                WHERE r.duration_class = w.duration_class AND r.start_utc >= w.since AND r.site_id = ?
                    AND NOT r.hide_from_listings AND r.start_utc < """
        + UNSEEN_INSTANT + " AND r.end_utc > " + UNSEEN_INSTANT + " AND",
        *([n for n, _ in classes], [since for _, since in classes], query.site.id, start_from, end_to),
    )  # fmt: skip
    return Sql("SELECT") + started + Sql("-") + too_late + Sql("+") + around + query.visible + Sql("OFFSET 0) r)")


def _count_overlapping(query: ListQuery, window: Window) -> Sql | None:
    """Count events that end late enough, minus events that start too late, plus zero-length events at the start."""
    start_to, end_from = window.start_to, window.end_from
    total = Sql("SELECT") + _count_since(query, "end", end_from)
    if start_to is not None:
        if end_from is not None and start_to < end_from - SECOND:
            return None
        total += Sql("-") + _count_since(query, "start", start_to + SECOND)
    if end_from is not None and window.include_zero_length:
        border = end_from - SECOND
        total += Sql(
            "+ (SELECT count(*) FROM events r WHERE r.site_id = ? AND NOT r.hide_from_listings"
            " AND r.start_utc = ? AND r.end_utc = ? AND",
            *(query.site.id, border, border),
        )
        total += query.visible + Sql(")")
    return total


def _count_since(query: ListQuery, side: str, instant: datetime | None) -> Sql:
    """Count events that start (or end) at or after an instant: on the rest of its day, and on all later days."""
    if instant is None:
        return _sum_days(query, "starts", None)
    column: LiteralString = "r.start_utc" if side == "start" else "r.end_utc"
    counter: LiteralString = "starts" if side == "start" else "ends"
    midnight = instant.replace(hour=0, minute=0, second=0) + DAY
    rest = Sql(
        "(SELECT count(*) FROM events r WHERE r.site_id = ? AND NOT r.hide_from_listings AND "
        + column + " >= " + UNSEEN_INSTANT + " AND " + column + " < " + UNSEEN_INSTANT + " AND",
        *(query.site.id, instant, midnight),
    )  # fmt: skip
    return Sql("(") + rest + query.visible + Sql(") +") + _sum_days(query, counter, midnight) + Sql(")")


def _sum_days(query: ListQuery, counter: LiteralString, since: datetime | None) -> Sql:
    of_statuses = Sql("AND d.status = ANY(" + UNSEEN_TEXTS + ")", list(query.statuses or ()))
    days = _sum_counter(query, "event_days", counter, since, of_statuses)
    if not hides_subsequent(query):
        return days
    return Sql("(") + days + Sql("-") + _sum_counter(query, "series_days", counter, since, Sql("")) + Sql(")")


def _sum_counter(
    query: ListQuery, table: LiteralString, counter: LiteralString, since: datetime | None, more: Sql
) -> Sql:
    later = Sql("AND d.day >= " + UNSEEN_DAY, since.date()) if since is not None else Sql("")
    total: LiteralString = "(SELECT coalesce(sum(d." + counter + "), 0)::bigint FROM " + table
    return Sql(total + " d WHERE d.site_id = ?", query.site.id) + more + later + Sql(")")

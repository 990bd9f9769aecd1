"""Lists with the first date of each series only: `hide_subsequent_recurrences` (decision 0018).

Such a list has the events without a series and, of each series, the first by start of the dates that the list would
have otherwise. Without other filters they come from `series_steps`: a public date is the first from an instant on if
its predecessor starts before that instant. Other lists compare all their events.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, LiteralString

from kalends.core.zones import SECOND
from kalends.kinds.event_list.order import build_order_by, cursor_condition, read_order
from kalends.kinds.event_list.window import (
    EARLIEST,
    WITH_HIDDEN,
    Window,
    listed_conditions,
    plan_branches,
    select_running,
    split_window,
    still_running,
)
from kalends.kinds.kind import Clause, ListQuery, has_condition
from kalends.store.sql import Sql, and_, join

HIDE_SUBSEQUENT: Final = "hide_subsequent_recurrences"
LATEST: Final = datetime.max.replace(tzinfo=UTC)
# A date of gap class n (the column `gap_class`) starts less than this many seconds after its predecessor. The last
# classes have no limit: gaps of more than four years, and dates without a predecessor.
GAP_LIMITS: Final = tuple(
    hours * 3600 + 1 for hours in (1, 4, 12, 25, 49, 97, 169, 337, 673, 745, 1489, 2977, 4441, 8785, 17569, 35136)
)
UNLIMITED_CLASSES: Final = (len(GAP_LIMITS), 99)
# Events that count as events without a series: the series of an event with a password is not public.
SINGLE: LiteralString = "(r.series_id IS NULL OR r.password_hash IS NOT NULL)"
# The key that the events of a series share; every other event has a key of its own.
GROUP: LiteralString = "CASE WHEN " + SINGLE + " THEN -r.id ELSE r.series_id END"


def hides_subsequent(query: ListQuery) -> bool:
    return bool(query.values.get(HIDE_SUBSEQUENT))


def uses_steps(query: ListQuery, clauses: Sequence[Clause]) -> bool:
    """Return whether the list has all public events of its window, so that `series_steps` applies."""
    is_public = query.statuses == ["publish"] and WITH_HIDDEN not in query.values
    return is_public and "include" not in query.values and not any(map(has_condition, clauses))


def select_singles(query: ListQuery) -> ListQuery:
    """Return the query of the events that count as events without a series, for totals.

    IS TRUE keeps the planner from using `events_single` where the index of duration classes has to be used.
    """
    return replace(query, visible=query.visible + Sql("AND (" + SINGLE + ") IS TRUE"))


def plan_first_dates(query: ListQuery, window: Window, clauses: list[Clause], limit: int) -> list[tuple[Sql, Sql]]:
    """Return the branches of a page, as `plan_branches` does."""
    if not uses_steps(query, clauses):
        return [(_with_columns(query, _select_distinct(query, window, clauses)), Sql("true"))]
    by_start = read_order(query)[0] == "start_date"
    rest = _order_and_limit(query, limit) if by_start else Sql("OFFSET 0")
    steps = _with_columns(query, _select_steps(query, window, rest))
    others = [source for source in (_select_running(query, window), _select_next(query, window)) if source]
    return [
        *plan_branches(query, window, [Sql(SINGLE)]),
        *[(source, Sql("true")) for source in (steps, *others)],
    ]


def count_first_dates(query: ListQuery, window: Window, clauses: list[Clause]) -> Sql:
    """Return the number of first dates; with filters, that of all events of the list."""
    if not uses_steps(query, clauses):
        return _count(_union(query, window, clauses) + Sql("GROUP BY r.first_key"))
    sources = (
        _select_steps(query, window, Sql("OFFSET 0")),
        _select_running(query, window),
        _select_next(query, window),
    )
    return join(" + ", [_count(Sql("SELECT FROM") + source) for source in sources if source])


def _count(select: Sql) -> Sql:
    return Sql("(SELECT count(*) FROM (") + select + Sql(") r)")


def _select_steps(query: ListQuery, window: Window, rest: Sql) -> Sql:
    """Select the public dates whose predecessor starts before the window: one lookup for each class of gaps."""
    later, running = split_window(window)
    start_from = _find_beginning(later)
    limits = [_add(start_from, seconds) for seconds in GAP_LIMITS] + [LATEST for _ in UNLIMITED_CLASSES]
    conditions = [
        Sql("r.site_id = ? AND r.gap_class = w.gap_class AND r.start_utc < w.until", query.site.id),
        Sql("r.start_utc >= ? AND r.previous_start < ?", start_from, start_from),
        *replace(later, start_from=None).clauses(),
        *_not_running(query, running),
    ]
    return (
        Sql(
            "(SELECT r.* FROM unnest(?::smallint[], ?::timestamptz[]) AS w (gap_class, until)"
            " CROSS JOIN LATERAL (SELECT * FROM series_steps r WHERE",
            [*range(len(GAP_LIMITS)), *UNLIMITED_CLASSES],
            limits,
        )
        + and_(conditions)
        + rest
        + Sql(") r) r")
    )


def _find_beginning(window: Window) -> datetime:
    """Return the beginning of a window, later than -infinity, as which the driver sends the very first instant."""
    return max(window.start_from or EARLIEST, EARLIEST + SECOND)


def _add(instant: datetime, seconds: int) -> datetime:
    return instant + timedelta(seconds=seconds) if (LATEST - instant).total_seconds() > seconds else LATEST


def _order_and_limit(query: ListQuery, limit: int) -> Sql:
    after = Sql("AND") + cursor_condition(query) if "cursor" in query.values else Sql("")
    return after + Sql("ORDER BY") + build_order_by(query, "r.") + Sql("LIMIT ?", limit)


def _running_dates(query: ListQuery, running: Window) -> Sql:
    return select_running(running, [*listed_conditions(query), Sql("NOT " + SINGLE)])


def _not_running(query: ListQuery, running: Window | None) -> list[Sql]:
    """Return the condition for series without a date that is running when the window begins."""
    if running is None:
        return []
    return [Sql("r.series_id NOT IN (SELECT r.series_id FROM") + _running_dates(query, running) + Sql(")")]


def _select_running(query: ListQuery, window: Window) -> Sql | None:
    """Select the first running date of each series."""
    _, running = split_window(window)
    if running is None:
        return None
    return (
        Sql("(SELECT DISTINCT ON (r.series_id) r.* FROM")
        + _running_dates(query, running)
        + Sql("ORDER BY r.series_id, r.start_utc, r.id) r")
    )


def _select_next(query: ListQuery, window: Window) -> Sql | None:
    """Select the first date of each series whose first date by start ends after the window.

    There is one only if a later date is shorter.
    """
    later, running = split_window(window)
    if later.end_to is None:
        return None
    start_from = _find_beginning(later)
    listed = listed_conditions(query)
    too_long = still_running(
        later.end_to,
        later.start_from,
        and_(
            [
                *listed,
                Sql("NOT " + SINGLE),
                Sql("r.end_utc > ?", later.end_to),
                *replace(later, end_to=None, start_to=later.last_start).clauses(),
            ]
        ),
    )
    first = Sql(
        "EXISTS (SELECT FROM series_steps s WHERE s.site_id = r.site_id AND s.id = r.id AND s.previous_start < ?"
        " OFFSET 0)",
        start_from,
    )
    dates = and_([*listed, Sql("NOT " + SINGLE), Sql("r.series_id = n.series_id"), *later.clauses()])
    return (
        Sql("(SELECT r.* FROM (SELECT DISTINCT r.series_id FROM")
        + too_long
        + Sql("WHERE")
        + and_([first, *_not_running(query, running)])
        + Sql(") n CROSS JOIN LATERAL (SELECT * FROM events r WHERE")
        + dates
        + Sql("ORDER BY r.start_utc, r.id LIMIT 1) r) r")
    )


def _select_distinct(query: ListQuery, window: Window, clauses: list[Clause]) -> Sql:
    """Select the first event of each group of the list."""
    return (
        Sql("(SELECT DISTINCT ON (r.first_key) r.* FROM")
        + _union_source(query, window, clauses)
        + Sql("ORDER BY r.first_key, r.start_utc, r.id) r")
    )


def _union(query: ListQuery, window: Window, clauses: list[Clause]) -> Sql:
    return Sql("SELECT r.first_key FROM") + _union_source(query, window, clauses)


def _union_source(query: ListQuery, window: Window, clauses: list[Clause]) -> Sql:
    columns: LiteralString = "SELECT r.id, r.start_utc, r.published_at, " + GROUP + " AS first_key FROM"
    branches = [
        Sql(columns) + source + Sql("WHERE") + where for source, where in plan_branches(query, window, clauses)
    ]
    return Sql("(") + join(" UNION ALL ", branches) + Sql(") r")


def _with_columns(query: ListQuery, source: Sql) -> Sql:
    """Add the columns of the events, where the order of the list needs them."""
    if read_order(query)[0] in ("start_date", "distance"):
        return source
    return (
        Sql("(SELECT e.* FROM")
        + source
        + Sql(
            "CROSS JOIN LATERAL (SELECT * FROM events e WHERE e.site_id = ? AND e.id = r.id OFFSET 0) e) r",
            query.site.id,
        )
    )

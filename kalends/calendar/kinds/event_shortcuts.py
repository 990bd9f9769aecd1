"""List shortcuts: the first date of each series (decision 0018); pages and totals for one linked record (0017).

A list with `hide_subsequent_recurrences` contains all events without a series, and the first matching date of each
series. Without other filters, these dates come from `series_steps`: a public date is the first one at or after an
instant if the previous date in the series starts before that instant. With other filters, the query reads every event
in the list.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, LiteralString

from kalends.calendar.kinds.event_window import (
    DAY,
    EARLIEST,
    WITH_HIDDEN,
    Window,
    build_order_by,
    by_start,
    cursor_condition,
    link_limits,
    listed_conditions,
    plan_branches,
    read_order,
    select_running,
    split_window,
    still_running,
)
from kalends.calendar.kinds.kind import (
    Clause,
    LinkCondition,
    ListQuery,
    PasswordCondition,
    has_condition,
    row_conditions,
)
from kalends.core.times import SECOND
from kalends.store.sql import Sql, and_, join

HIDE_SUBSEQUENT: Final = "hide_subsequent_recurrences"
LATEST: Final = datetime.max.replace(tzinfo=UTC)
# A date in gap class n (column `gap_class`) starts less than this many seconds after the previous date. The last
# classes have no limit: one is for gaps longer than four years, one for dates without a previous date.
GAP_LIMITS: Final = tuple(
    hours * 3600 + 1 for hours in (1, 4, 12, 25, 49, 97, 169, 337, 673, 745, 1489, 2977, 4441, 8785, 17569, 35136)
)
UNLIMITED_CLASSES: Final = (len(GAP_LIMITS), 99)
# Events that count as having no series. They include password-protected events, because their series is not public.
SINGLE: LiteralString = "(r.series_id IS NULL OR r.password_hash IS NOT NULL)"
# Events in a series share a key; every other event has a unique key.
GROUP: LiteralString = "CASE WHEN " + SINGLE + " THEN -r.id ELSE r.series_id END"


def hides_subsequent(query: ListQuery) -> bool:
    return bool(query.values.get(HIDE_SUBSEQUENT))


def uses_steps(query: ListQuery, clauses: Sequence[Clause]) -> bool:
    """Return whether `series_steps` can be used: only if the list contains all public events in the window."""
    is_public = query.statuses == ["publish"] and WITH_HIDDEN not in query.values
    return is_public and "include" not in query.values and not any(map(has_condition, clauses))


def select_singles(query: ListQuery) -> ListQuery:
    """Restrict a query to events that count as having no series, to count them.

    IS TRUE keeps the planner from using the index `events_single` instead of the duration class index.
    """
    return replace(query, visible=query.visible + Sql("AND (" + SINGLE + ") IS TRUE"))


def plan_first_dates(query: ListQuery, window: Window, clauses: list[Clause], limit: int) -> list[tuple[Sql, Sql]]:
    """Return the branches of a page in the same form as `plan_branches`."""
    if not uses_steps(query, clauses):
        return [(_with_columns(query, _select_distinct(query, window, clauses)), Sql("true"))]
    by_start = read_order(query)[0] == "start_date"
    rest = _order_and_limit(query, limit) if by_start else Sql("OFFSET 0")
    steps = _with_columns(query, _select_steps(query, window, rest))
    others = [source for source in (_select_running(query, window), _select_next(query, window)) if source]
    return [*plan_branches(query, window, [Sql(SINGLE)]), *[(source, Sql("true")) for source in (steps, *others)]]


def count_first_dates(query: ListQuery, window: Window, clauses: list[Clause]) -> Sql:
    """Build an expression that counts first dates and, unless `uses_steps` is true, events without a series."""
    if not uses_steps(query, clauses):
        keys = Sql("SELECT r.first_key FROM") + _union_source(query, window, clauses)
        return _count(keys + Sql("GROUP BY r.first_key"))
    sources = (
        _select_steps(query, window, Sql("OFFSET 0")),
        _select_running(query, window),
        _select_next(query, window),
    )
    return join(" + ", [_count(Sql("SELECT FROM") + source) for source in sources if source])


def _count(select: Sql) -> Sql:
    return Sql("(SELECT count(*) FROM (") + select + Sql(") r)")


def _select_steps(query: ListQuery, window: Window, rest: Sql) -> Sql:
    """Select public dates in the window if the previous date starts before it, with one lookup per gap class."""
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
    """Return when the window begins, but never the earliest instant, because asyncpg encodes it as -infinity."""
    return max(window.start_from or EARLIEST, EARLIEST + SECOND)


def _add(instant: datetime, seconds: int) -> datetime:
    return instant + timedelta(seconds=seconds) if (LATEST - instant).total_seconds() > seconds else LATEST


def _order_and_limit(query: ListQuery, limit: int) -> Sql:
    after = Sql("AND") + cursor_condition(query) if "cursor" in query.values else Sql("")
    return after + Sql("ORDER BY") + build_order_by(query, "r.") + Sql("LIMIT ?", limit)


def _running_dates(query: ListQuery, running: Window) -> Sql:
    return select_running(running, [*listed_conditions(query), Sql("NOT " + SINGLE)])


def _not_running(query: ListQuery, running: Window | None) -> list[Sql]:
    """Exclude series with a date in progress when the window begins."""
    if running is None:
        return []
    return [Sql("r.series_id NOT IN (SELECT r.series_id FROM") + _running_dates(query, running) + Sql(")")]


def _select_running(query: ListQuery, window: Window) -> Sql | None:
    _, running = split_window(window)
    if running is None:
        return None
    return (
        Sql("(SELECT DISTINCT ON (r.series_id) r.* FROM")
        + _running_dates(query, running)
        + Sql("ORDER BY r.series_id, r.start_utc, r.id) r")
    )


def _select_next(query: ListQuery, window: Window) -> Sql | None:
    """If the first date of a series ends after the window, select a later, shorter date instead."""
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
    return (
        Sql("(SELECT DISTINCT ON (r.first_key) r.* FROM")
        + _union_source(query, window, clauses)
        + Sql("ORDER BY r.first_key, r.start_utc, r.id) r")
    )


def _union_source(query: ListQuery, window: Window, clauses: list[Clause]) -> Sql:
    columns: LiteralString = "SELECT r.id, r.start_utc, r.published_at, " + GROUP + " AS first_key FROM"
    branches = [
        Sql(columns) + source + Sql("WHERE") + where for source, where in plan_branches(query, window, clauses)
    ]
    return Sql("(") + join(" UNION ALL ", branches) + Sql(") r")


def _with_columns(query: ListQuery, source: Sql) -> Sql:
    """Add event columns if the order needs them."""
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


# Pages filtered by one venue, organizer, category or tag, which are read in the order of the link index.


def find_single_link(clauses: list[Clause]) -> LinkCondition | None:
    """Return the link to a single record if the clauses contain no other condition, except about passwords."""
    conditions = [clause for clause in clauses if has_condition(clause)]
    links = [clause for clause in conditions if isinstance(clause, LinkCondition)]
    passwords = [clause for clause in conditions if isinstance(clause, PasswordCondition)]
    is_single = len(links) == 1 and len(set(links[0].ids)) == 1
    return links[0] if is_single and len(passwords) + 1 == len(conditions) else None


def plan_link_page(query: ListQuery, window: Window, clauses: list[Clause], count: int) -> tuple[Sql, Sql] | None:
    """Return the branch for events that start in the window, if the link index has the same order as the list.

    The index lacks the other sort keys, so the query reads all events that start at the same time as the last event.
    OFFSET 0 forces one lookup per link. Otherwise, the planner would read all events linked to the record.
    """
    link = find_single_link(clauses)
    orderby, order = read_order(query)
    if link is None or orderby != "start_date":
        return None
    starting, _ = split_window(window)
    conditions = [*listed_conditions(query), *starting.clauses(), *_passwords(clauses)]
    limits = link_limits(query, starting)
    if "cursor" in query.values:
        conditions.append(cursor_condition(query))
        sign: LiteralString = "<=" if order == "desc" else ">="
        limits += Sql("AND l.start_utc " + sign + " ?", query.values["cursor"].keys[0])
    direction: LiteralString = " DESC" if order == "desc" else ""
    source = (
        Sql("(SELECT r.* FROM " + link.table + " l CROSS JOIN LATERAL (")
        + Sql("SELECT * FROM events r WHERE r.id = l.event_id AND")
        + and_(conditions)
        + Sql("OFFSET 0) r WHERE l.site_id = ? AND l." + link.column + " = ?", query.site.id, link.ids[0])
        + limits
        + Sql("ORDER BY l.start_utc" + direction + " FETCH FIRST (?) ROWS WITH TIES) r", count)
    )
    return source, Sql("true")


def _passwords(clauses: list[Clause]) -> list[Sql]:
    return row_conditions([clause for clause in clauses if isinstance(clause, PasswordCondition)])


# Totals of lists filtered by one venue, organizer, category or tag: sums over days.

# The values of `link_days.kind`.
KINDS: Final[dict[str, LiteralString]] = {
    "event_venues": "v",
    "event_organizers": "o",
    "event_categories": "c",
    "event_tags": "t",
}


def build_link_total_query(query: ListQuery, window: Window, clauses: list[Clause]) -> Sql | None:
    """Build the total query; return None if the counters are not exact for this list.

    The query adds up the daily counts of the window's whole days. It counts one by one the events that start on a
    partial first or last day, and the events in progress when the window begins. It subtracts the events that end
    after the window.
    """
    counter = _choose_counter(clauses)
    starting, running = split_window(window)
    first, end = _whole_days(starting.start_from, starting.last_start)
    if counter is None or (first is not None and end is not None and first >= end):
        return None
    total = Sql("SELECT") + _sum_days(query, counter, first, end)
    for part in _partial_days(starting, first, end):
        total += Sql("+") + _count_linked(by_start(query, listed_conditions(query), part, clauses))
    if starting.end_to is not None:
        total += Sql("-") + _count_linked(_ending_later(query, starting, starting.end_to, clauses))
    if running is not None:
        total += Sql("+") + _count_linked(plan_branches(query, window, clauses)[1])
    return total


def _choose_counter(clauses: list[Clause]) -> Sql | None:
    """Start a subquery that adds up a record's daily counts; return None if other filters affect the total."""
    link = find_single_link(clauses)
    passwords = [clause.protected for clause in clauses if isinstance(clause, PasswordCondition)]
    if link is None or None in passwords:
        return None
    number: LiteralString = "d.starts - d.protected" if False in passwords else "d.starts"
    return Sql(
        "(SELECT coalesce(sum(" + number + "), 0)::bigint FROM link_days d "
        "WHERE d.kind = '" + KINDS[link.table] + "' AND d.record_id = ?",
        link.ids[0],
    )


def _sum_days(query: ListQuery, counter: Sql, first: datetime | None, end: datetime | None) -> Sql:
    limits = Sql("AND d.site_id = ? AND d.status = ANY(?)", query.site.id, list(query.statuses or ()))
    if first is not None:
        limits += Sql("AND d.day >= ?", first.date())
    if end is not None:
        limits += Sql("AND d.day < ?", end.date())
    return counter + limits + Sql(")")


def _whole_days(first: datetime | None, last: datetime | None) -> tuple[datetime | None, datetime | None]:
    """Return the first and the last midnight in a period, which enclose its whole days."""
    return (
        None if first is None else _midnight(first) if _midnight(first) == first else _midnight(first) + DAY,
        None if last is None else _midnight(last + SECOND),
    )


def _midnight(instant: datetime) -> datetime:
    return instant.replace(hour=0, minute=0, second=0)


def _partial_days(window: Window, first: datetime | None, end: datetime | None) -> Iterator[Window]:
    if window.start_from is not None and first is not None and window.start_from < first:
        yield Window(start_from=window.start_from, start_to=first - SECOND)
    if window.last_start is not None and end is not None and window.last_start >= end:
        yield Window(start_from=end, start_to=window.last_start)


def _ending_later(query: ListQuery, window: Window, end_to: datetime, clauses: list[Clause]) -> tuple[Sql, Sql]:
    later = Window(start_from=window.start_from, start_to=window.last_start, end_from=end_to + SECOND)
    where = and_([*listed_conditions(query), *later.clauses()])
    return still_running(end_to + SECOND, window.start_from, where), and_([Sql("true"), *row_conditions(clauses)])


def _count_linked(branch: tuple[Sql, Sql]) -> Sql:
    source, where = branch
    return Sql("(SELECT count(*) FROM") + source + Sql("WHERE") + where + Sql(")")

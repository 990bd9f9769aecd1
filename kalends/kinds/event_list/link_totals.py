"""The total of a list that is filtered by one venue, organizer, category or tag: a sum over days.

An event can have several of the records of a filter, so the counters serve only a filter with a single ID.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, LiteralString

from kalends.core.zones import SECOND
from kalends.kinds.event_list.link_pages import find_single_link
from kalends.kinds.event_list.window import (
    DAY,
    Window,
    by_start,
    listed_conditions,
    plan_branches,
    split_window,
    still_running,
)
from kalends.kinds.kind import Clause, ListQuery, PasswordCondition, row_conditions
from kalends.store.sql import Sql, and_

# The values of `link_days.kind`.
KINDS: Final[dict[str, LiteralString]] = {
    "event_venues": "v",
    "event_organizers": "o",
    "event_categories": "c",
    "event_tags": "t",
}


def build_link_total_query(query: ListQuery, window: Window, clauses: list[Clause]) -> Sql | None:
    """Build the query of the total; return None if the counters do not give it exactly.

    The events that start in the window are a sum over its whole days, plus those of its first and last day, which are
    counted one by one. Of these, the events that end after the window are subtracted. Events that are already running
    when the window begins are counted one by one, as in every list.
    """
    counter = _choose_counter(clauses)
    starting, running = split_window(window)
    first, end = _whole_days(starting.start_from, starting.last_start)
    if counter is None or (first is not None and end is not None and first >= end):
        return None
    total = Sql("SELECT") + _sum_days(query, counter, first, end)
    for part in _partial_days(starting, first, end):
        total += Sql("+") + _count(by_start(query, listed_conditions(query), part, clauses))
    if starting.end_to is not None:
        total += Sql("-") + _count(_ending_later(query, starting, starting.end_to, clauses))
    if running is not None:
        total += Sql("+") + _count(plan_branches(query, window, clauses)[1])
    return total


def _choose_counter(clauses: list[Clause]) -> Sql | None:
    """Return the counter, with the condition for its rows, if the clauses are a link to one record and no more."""
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
    """Return the first midnight in a period, and the last one, which ends the whole days of the period."""
    return (
        None if first is None else _midnight(first) if _midnight(first) == first else _midnight(first) + DAY,
        None if last is None else _midnight(last + SECOND),
    )


def _midnight(instant: datetime) -> datetime:
    return instant.replace(hour=0, minute=0, second=0)


def _partial_days(window: Window, first: datetime | None, end: datetime | None) -> Iterator[Window]:
    """Yield the parts of a window before its first whole day and after its last one."""
    if window.start_from is not None and first is not None and window.start_from < first:
        yield Window(start_from=window.start_from, start_to=first - SECOND)
    if window.last_start is not None and end is not None and window.last_start >= end:
        yield Window(start_from=end, start_to=window.last_start)


def _ending_later(query: ListQuery, window: Window, end_to: datetime, clauses: list[Clause]) -> tuple[Sql, Sql]:
    """Select the events that start in a window and end after it."""
    later = Window(start_from=window.start_from, start_to=window.last_start, end_from=end_to + SECOND)
    where = and_([*listed_conditions(query), *later.clauses()])
    return still_running(end_to + SECOND, window.start_from, where), and_([Sql("true"), *row_conditions(clauses)])


def _count(branch: tuple[Sql, Sql]) -> Sql:
    source, where = branch
    return Sql("(SELECT count(*) FROM") + source + Sql("WHERE") + where + Sql(")")

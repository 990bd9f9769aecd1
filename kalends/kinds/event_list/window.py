"""The time window of a list of events, and the index lookups that find its events."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, LiteralString

from kalends.core.times import DateTimeInput
from kalends.core.zones import SECOND
from kalends.kinds.event_list.order import read_order
from kalends.kinds.kind import Clause, LinkCondition, ListQuery, SeriesCondition, TextCondition, row_conditions
from kalends.store.sql import UNSEEN_INSTANT, Sql, and_, join

DAY: Final = timedelta(days=1)
EARLIEST: Final = datetime(1, 1, 1, tzinfo=UTC)
# Not an API parameter: the value by which an operation includes events that are hidden from lists.
WITH_HIDDEN: Final = "with_hidden"
# Exceeds the number of the last month, December of the year 9999.
MAX_MONTHS: Final = 1_000_000
# An event of duration class n (the column `duration_class`) lasts less than 2^n hours.
DURATION_CLASSES: Final = tuple(timedelta(hours=2**n) for n in range(28))


@dataclass(frozen=True, slots=True)
class Window:
    """Inclusive limits of start and end, in whole seconds; None means no limit."""

    start_from: datetime | None = None
    start_to: datetime | None = None
    end_from: datetime | None = None
    end_to: datetime | None = None
    include_zero_length: bool = False  # includes a zero-length event one second before end_from

    def clauses(self, value: LiteralString = "?") -> list[Sql]:
        """Return the conditions for events `r`; `value` is the placeholder of a date."""
        rows: tuple[tuple[LiteralString, datetime | None], ...] = (
            ("r.start_utc >= ", self.start_from),
            ("r.start_utc <= ", self.last_start),
            ("r.end_utc >= ", self.end_from),
            ("r.end_utc <= ", self.end_to),
        )
        return [Sql(text + value, limit) for text, limit in rows if limit is not None]

    @property
    def last_start(self) -> datetime | None:
        """Return the latest start that both upper limits allow: no event ends before it starts."""
        return min((limit for limit in (self.start_to, self.end_to) if limit is not None), default=None)


@dataclass(frozen=True, slots=True)
class Bound:
    """The clause of a date parameter: it sets a limit of the window instead of a condition."""

    limit: str  # an attribute of Window
    read_day: Callable[[DateTimeInput, str], datetime]  # the instant that a whole day stands for
    step: timedelta = timedelta(0)  # makes the limit inclusive
    replaces_default: bool = False  # a list with such a parameter has no default window

    async def __call__(self, _: Any, __: ListQuery) -> Clause:
        """Return no condition: `event_dates.build_window` applies the limit."""
        return Sql("")


async def read_by_window(_: Any, __: ListQuery) -> Clause:
    """Return no condition: `event_dates.build_window` reads the parameter."""
    return Sql("")


def plan_branches(query: ListQuery, window: Window, clauses: list[Clause]) -> list[tuple[Sql, Sql]]:
    """Return disjoint branches of a list, each with its source `r` and its conditions.

    Each branch forces the index that finds its events, whatever the planner estimates: the index of series, else
    that of a link, else that of the words, else that of the order. Only events inside the window are read.
    """
    listed = _plan_listed(query, window, clauses)
    return [*listed, _by_hidden(query, window, clauses)] if WITH_HIDDEN in query.values else listed


def _by_hidden(query: ListQuery, window: Window, clauses: list[Clause]) -> tuple[Sql, Sql]:
    """Select the events that are hidden from lists, which have an index of their own."""
    common = [Sql("r.site_id = ?", query.site.id), query.visible, Sql("r.hide_from_listings")]
    return Sql("events r"), and_([*common, *window.clauses(), *row_conditions(clauses)])


def listed_conditions(query: ListQuery) -> list[Sql]:
    return [Sql("r.site_id = ?", query.site.id), query.visible, Sql("NOT r.hide_from_listings")]


def _plan_listed(query: ListQuery, window: Window, clauses: list[Clause]) -> list[tuple[Sql, Sql]]:
    common = listed_conditions(query)
    if "include" in query.values:
        return [(Sql("events r"), and_([*common, *row_conditions(clauses)]))]
    later, running = split_window(window)
    branches = [by_start(query, common, later, clauses)]
    if running is not None:
        branches.append((select_running(running, common), and_([Sql("true"), *row_conditions(clauses)])))
    return branches


def split_window(window: Window) -> tuple[Window, Window | None]:
    """Return the window of the events that start in it, and that of the events that already run when it begins."""
    start_from, end_from = window.start_from, window.end_from
    if end_from is None:
        return window, None
    border = end_from - SECOND if window.include_zero_length else end_from
    if start_from is not None and start_from >= border:
        return replace(window, end_from=None), None
    later = replace(window, start_from=border, end_from=None)
    if border <= EARLIEST:
        return later, None
    before = border - SECOND
    return later, replace(window, start_to=before if window.start_to is None else min(before, window.start_to))


def select_running(window: Window, conditions: list[Sql]) -> Sql:
    """Select the events of a window that are running at its `end_from`."""
    end_from = window.end_from or EARLIEST
    return still_running(end_from, window.start_from, and_([*conditions, *window.clauses()]))


def by_start(query: ListQuery, common: list[Sql], window: Window, clauses: list[Clause]) -> tuple[Sql, Sql]:
    """Select the events that start in the window, through the index of series, a link, the words or the start."""
    series = [clause for clause in clauses if isinstance(clause, SeriesCondition)]
    links = [clause for clause in clauses if isinstance(clause, LinkCondition)]
    words = [clause for clause in clauses if isinstance(clause, TextCondition)]
    # The index by start serves a period in this order, whatever its dates are.
    is_period = window.start_from is not None and window.last_start is not None
    hides_dates = is_period and read_order(query)[0] == "start_date" and not (series or links or words)
    where = [*common, *window.clauses(UNSEEN_INSTANT if hides_dates else "?")]
    if series:
        return _by_series(query, series[0], window), and_([*where, *row_conditions(clauses)])
    if links:
        others = row_conditions([clause for clause in clauses if not isinstance(clause, LinkCondition)])
        return Sql("events r"), and_([*where, *others, _by_links(query, links, window)])
    if words:
        others = row_conditions([clause for clause in clauses if not isinstance(clause, TextCondition)])
        return _by_text(query, words, window), and_([*where, *others])
    return Sql("events r"), and_([*where, *row_conditions(clauses)])


def _by_series(query: ListQuery, series: SeriesCondition, window: Window) -> Sql:
    """Select the dates of series. OFFSET 0 forces their index, because a series has few dates."""
    limits = Window(start_from=window.start_from, start_to=window.last_start).clauses()
    conditions = [Sql("r.site_id = ? AND r.series_id IS NOT NULL", query.site.id), series.row_condition(), *limits]
    return Sql("(SELECT * FROM events r WHERE") + and_(conditions) + Sql("OFFSET 0) r")


def _by_links(query: ListQuery, links: list[LinkCondition], window: Window) -> Sql:
    """Match the events of all links through the link indexes, which contain start and visibility of each event."""
    limits = link_limits(query, window)
    return Sql("r.id = ANY(ARRAY(") + join(" INTERSECT ", [link.event_ids() + limits for link in links]) + Sql("))")


def link_limits(query: ListQuery, window: Window) -> Sql:
    """Return the conditions for links `l` whose events may be in the window."""
    limits = Sql("")
    if query.statuses == ["publish"]:
        limits += Sql("AND l.listed")
    if window.start_from is not None:
        limits += Sql("AND l.start_utc >= ?", window.start_from)
    if window.last_start is not None:
        limits += Sql("AND l.start_utc <= ?", window.last_start)
    return limits


def _by_text(query: ListQuery, words: list[TextCondition], window: Window) -> Sql:
    """Select the events with these words in the months of the window. OFFSET 0 forces the index of words."""
    months = months_between(window.start_from, window.last_start)
    when = Sql("AND r.month_keys && ?", months) if months is not None else Sql("")
    return (
        Sql("(SELECT * FROM events r WHERE r.site_id = ?", query.site.id)
        + when
        + Sql("AND")
        + and_([word.row_condition for word in words])
        + Sql("OFFSET 0) r")
    )


def months_between(first: datetime | None, last: datetime | None) -> list[int] | None:
    """Return the keys of `month_keys` that cover a period: months and groups of 10, 100, … months; None: no limit."""
    if first is None and last is None:
        return None
    low = 0 if first is None else 12 * first.year + first.month - 1
    high = MAX_MONTHS - 1 if last is None else 12 * last.year + last.month - 1
    keys: list[int] = []
    while low <= high:
        level = 0
        while level < 4 and low % 10 ** (level + 1) == 0 and low + 10 ** (level + 1) - 1 <= high:
            level += 1
        keys.append(level * MAX_MONTHS + low // 10**level)
        low += 10**level
    return keys


def still_running(instant: datetime, start_from: datetime | None, where: Sql) -> Sql:
    """Select the events that run at an instant: those of duration class n began less than 2^n hours before it.

    OFFSET 0 forces one lookup per class. The planner would otherwise read all past events in the order of the list.
    """
    classes = [(n, max(since, start_from or EARLIEST)) for n, since in duration_classes_before(instant)]
    return (
        Sql(
            """(SELECT r.* FROM unnest(?::smallint[], ?::timestamptz[]) AS w (duration_class, since)
                CROSS JOIN LATERAL (
                    SELECT * FROM events r
                    WHERE r.duration_class = w.duration_class AND r.start_utc >= w.since AND""",
            [n for n, _ in classes],
            [since for _, since in classes],
        )
        + where
        + Sql("OFFSET 0) r) r")
    )


def duration_classes_before(instant: datetime, longer_than: timedelta = timedelta(0)) -> list[tuple[int, datetime]]:
    """Return the classes above a duration, each with the earliest start of an event that still runs at an instant."""
    return [
        (n, instant - duration if instant - EARLIEST > duration else EARLIEST)
        for n, duration in enumerate(DURATION_CLASSES)
        if duration > longer_than
    ]

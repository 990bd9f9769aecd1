"""The time window and order of an event list, and the index lookups that find its events."""

import base64
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, LiteralString

import orjson

from kalends.calendar.kinds.kind import (
    Clause,
    LinkCondition,
    ListQuery,
    SeriesCondition,
    TextCondition,
    row_conditions,
)
from kalends.core import params
from kalends.core.errors import InvalidValue
from kalends.core.times import SECOND, DateTimeInput
from kalends.store import Row
from kalends.store.sql import UNSEEN_INSTANT, Sql, and_, join, placeholders

# The order of an event list, and the cursor for the next page.

# Columns by `orderby` value. The ID comes last to make the order unique.
ORDERS: Final[dict[str, tuple[LiteralString, ...]]] = {
    "start_date": ("start_utc", "published_at", "id"),
    "end_date": ("end_utc", "id"),
    "title": ("title", "id"),
    "date": ("published_at", "id"),
    "modified": ("modified_utc", "id"),
    "distance": ("distance", "id"),
}
TIME_COLUMNS: Final = frozenset({"start_utc", "end_utc", "published_at", "modified_utc"})
# Titles are sorted only by their first characters, because a cursor contains the title and must fit into a URL.
TITLE: Final = "left(r.title, 200)"


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position in a sorted list, after the event with these keys."""

    orderby: str
    order: str
    keys: tuple[object, ...]

    def text(self) -> str:
        return base64.urlsafe_b64encode(orjson.dumps([self.orderby, self.order, *self.keys])).decode().rstrip("=")


def read_cursor(text: str) -> Cursor:
    try:
        orderby, order, *keys = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        columns = ORDERS[orderby]
        if order not in ("asc", "desc") or len(keys) != len(columns):
            raise ValueError(order)
        return Cursor(orderby, order, tuple(_read_key(c, k) for c, k in zip(columns, keys, strict=True)))
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise InvalidValue("must be a `next_cursor` from a response with the same parameters.") from error


def _read_key(column: str, value: Any) -> object:
    if column in TIME_COLUMNS:
        return datetime.fromisoformat(value).astimezone(UTC)
    if column == "id":
        number = params.read_integer(value)
        if not 0 <= number <= params.MAX_ID:
            raise ValueError(number)
        return number
    if column == "distance":
        return float(value)
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(value)
    return value


def build_next_cursor(query: ListQuery, rows: list[Row], total: int) -> str | None:
    """Return the cursor for the next page, or None on the last page."""
    by_cursor = "cursor" in query.values
    has_more = len(rows) > query.per_page if by_cursor else query.offset + len(rows) < total
    if not has_more or not rows:
        return None
    last = rows[: query.per_page][-1]
    orderby, order = read_order(query)
    keys = tuple(last[column][:200] if column == "title" else last[column] for column in ORDERS[orderby])
    return Cursor(orderby, order, keys).text()


def read_order(query: ListQuery) -> tuple[str, str]:
    """Return the sort key and direction. The default key is the start or, with `include`, the publication date."""
    values = query.values
    orderby: str = values.get("orderby", "date" if "include" in values else "start_date")
    return orderby, values.get("order", "asc")


def order_events(query: ListQuery) -> Sql:
    return build_order_by(query, "r.")


def build_order_by(query: ListQuery, prefix: LiteralString) -> Sql:
    orderby, order = read_order(query)
    direction: LiteralString = " DESC" if order == "desc" else ""
    columns: list[LiteralString] = [qualify_column(prefix, column) for column in ORDERS[orderby]]
    if orderby == "date" and prefix == "r.":
        # Keep the planner from using an index: sorting the events in the window is cheaper than reading the site's
        # events by publication date until enough of them are in the window.
        columns[0] += " + interval '0'"
    return Sql(", ".join([column + direction for column in columns]))


def qualify_column(prefix: LiteralString, column: LiteralString) -> LiteralString:
    if prefix == "r." and column == "distance":
        return "g.distance"
    if prefix == "r." and column == "title":
        return TITLE
    return prefix + column


def cursor_condition(query: ListQuery) -> Sql:
    orderby, order = read_order(query)
    columns: list[LiteralString] = [qualify_column("r.", column) for column in ORDERS[orderby]]
    sign: LiteralString = ") < (" if order == "desc" else ") > ("
    return Sql("(" + ", ".join(columns) + sign + placeholders(len(columns)) + ")", *query.values["cursor"].keys)


def join_distance(query: ListQuery, start_from: datetime | None, start_to: datetime | None) -> Sql:
    """Join each event with the distance to its nearest venue if the list is sorted by distance.

    The query computes the distance once for each venue inside the circle, then looks up the venue's events in the
    period.
    """
    if read_order(query)[0] != "distance":
        return Sql("")
    values, site_id = query.values, query.site.id
    point = values["geoloc_lng"], values["geoloc_lat"]
    limits = Sql("")
    if start_from is not None:
        limits += Sql("AND l.start_utc >= ?", start_from)
    if start_to is not None:
        limits += Sql("AND l.start_utc <= ?", start_to)
    return (
        Sql(
            """JOIN (SELECT l.event_id, min(d.distance) AS distance FROM (
                    SELECT v.id, ST_Distance(v.location, ST_MakePoint(?, ?)::geography) AS distance FROM venues v
                    WHERE v.site_id = ? AND v.status = 'publish'
                        AND ST_DWithin(v.location, ST_MakePoint(?, ?)::geography, ?)
                    OFFSET 0) d
                JOIN event_venues l ON l.site_id = ? AND l.venue_id = d.id""",
            *(*point, site_id, *point, read_radius(query), site_id),
        )
        + limits
        + Sql("GROUP BY l.event_id) g ON g.event_id = r.id")
    )


def read_radius(query: ListQuery) -> float:
    """Return the radius in meters."""
    radius: float = query.values.get("geoloc_radius", 40.0)
    return radius * 1000


DAY: Final = timedelta(days=1)
EARLIEST: Final = datetime(1, 1, 1, tzinfo=UTC)
# Not an API parameter. Operations set it to include events that lists hide.
WITH_HIDDEN: Final = "with_hidden"
# Greater than the number of any month up to December 9999.
MAX_MONTHS: Final = 1_000_000
# An event in duration class n (column `duration_class`) takes less than 2^n hours.
DURATION_CLASSES: Final = tuple(timedelta(hours=2**n) for n in range(28))


@dataclass(frozen=True, slots=True)
class Window:
    """Inclusive limits for the start and end of events, in whole seconds; None means no limit."""

    start_from: datetime | None = None
    start_to: datetime | None = None
    end_from: datetime | None = None
    end_to: datetime | None = None
    include_zero_length: bool = False  # whether to include a zero-length event one second before end_from

    def clauses(self, value: LiteralString = "?") -> list[Sql]:
        """Return the conditions on events `r`. `value` is the SQL that stands for each limit."""
        rows: tuple[tuple[LiteralString, datetime | None], ...] = (
            ("r.start_utc >= ", self.start_from),
            ("r.start_utc <= ", self.last_start),
            ("r.end_utc >= ", self.end_from),
            ("r.end_utc <= ", self.end_to),
        )
        return [Sql(text + value, limit) for text, limit in rows if limit is not None]

    @property
    def last_start(self) -> datetime | None:
        """Return the latest possible start. No event ends before it starts, so `end_to` limits the start, too."""
        return min((limit for limit in (self.start_to, self.end_to) if limit is not None), default=None)


@dataclass(frozen=True, slots=True)
class Bound:
    """The clause for a date parameter. Instead of adding a condition, it sets a limit of the window."""

    limit: str  # a Window attribute
    read_day: Callable[[DateTimeInput, str], datetime]  # converts a whole day to an instant
    step: timedelta = timedelta(0)  # makes the limit inclusive
    replaces_default: bool = False  # whether a list with this parameter has no default window

    async def __call__(self, _: Any, __: ListQuery) -> Clause:
        """Return no condition, because `event_list.build_window` applies the limit."""
        return Sql("")


def plan_branches(query: ListQuery, window: Window, clauses: list[Clause]) -> list[tuple[Sql, Sql]]:
    """Return disjoint branches of a list, each with its source `r` and its conditions.

    Each branch forces the first applicable index (series, link, word or start), regardless of the planner's
    estimates, and reads only events inside the window.
    """
    listed = _plan_listed(query, window, clauses)
    return [*listed, _by_hidden(query, window, clauses)] if WITH_HIDDEN in query.values else listed


def _by_hidden(query: ListQuery, window: Window, clauses: list[Clause]) -> tuple[Sql, Sql]:
    """Select hidden events, which have a separate index."""
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
    """Return two windows: one for events that start in the window, one for events in progress when it begins."""
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
    """Select the window's events that are in progress at `end_from`."""
    end_from = window.end_from or EARLIEST
    return still_running(end_from, window.start_from, and_([*conditions, *window.clauses()]))


def by_start(query: ListQuery, common: list[Sql], window: Window, clauses: list[Clause]) -> tuple[Sql, Sql]:
    """Select events that start in the window, using the series, link, word or start index."""
    series = [clause for clause in clauses if isinstance(clause, SeriesCondition)]
    links = [clause for clause in clauses if isinstance(clause, LinkCondition)]
    words = [clause for clause in clauses if isinstance(clause, TextCondition)]
    # For a period sorted by start, the start index is always best. Hide the dates to let PostgreSQL reuse the plan.
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
    """Select the events in the series. OFFSET 0 forces the series index, because a series has few events."""
    limits = Window(start_from=window.start_from, start_to=window.last_start).clauses()
    conditions = [Sql("r.site_id = ? AND r.series_id IS NOT NULL", query.site.id), series.row_condition(), *limits]
    return Sql("(SELECT * FROM events r WHERE") + and_(conditions) + Sql("OFFSET 0) r")


def _by_links(query: ListQuery, links: list[LinkCondition], window: Window) -> Sql:
    """Match events that have all links. The link indexes contain each event's start and visibility."""
    limits = link_limits(query, window)
    return Sql("r.id = ANY(ARRAY(") + join(" INTERSECT ", [link.event_ids() + limits for link in links]) + Sql("))")


def link_limits(query: ListQuery, window: Window) -> Sql:
    """Return the conditions on links `l` whose events may be in the window."""
    limits = Sql("")
    if query.statuses == ["publish"]:
        limits += Sql("AND l.listed")
    if window.start_from is not None:
        limits += Sql("AND l.start_utc >= ?", window.start_from)
    if window.last_start is not None:
        limits += Sql("AND l.start_utc <= ?", window.last_start)
    return limits


def _by_text(query: ListQuery, words: list[TextCondition], window: Window) -> Sql:
    """Select events with these words in the months of the window. OFFSET 0 forces the word index."""
    months = find_month_keys(window.start_from, window.last_start)
    when = Sql("AND r.month_keys && ?", months) if months is not None else Sql("")
    return (
        Sql("(SELECT * FROM events r WHERE r.site_id = ?", query.site.id)
        + when
        + Sql("AND")
        + and_([word.row_condition for word in words])
        + Sql("OFFSET 0) r")
    )


def find_month_keys(first: datetime | None, last: datetime | None) -> list[int] | None:
    """Return the `month_keys` that cover a period: months, and groups of 10, 100, … months. None means no limit."""
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
    """Select events in progress at an instant: in duration class n, they began less than 2^n hours before it.

    OFFSET 0 forces one lookup per class. Otherwise, the planner would read all past events in the order of the list.
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
    """Return each class above a duration, and the earliest start of an event in it that may still be in progress."""
    return [
        (n, instant - duration if instant - EARLIEST > duration else EARLIEST)
        for n, duration in enumerate(DURATION_CLASSES)
        if duration > longer_than
    ]

"""Where a list of events looks in time, how a page of it is found, and how its total is counted.

The cost of neither may grow with history. A page walks the index by start; what began before the
window and still runs is found through the length classes of events. A total is a sum over days.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, LiteralString

import orjson
from asyncpg import Record

from kalends.core import params, times
from kalends.core.errors import Invalid
from kalends.core.times import Moment
from kalends.kinds.kind import Clause, Kind, Listing, Starts, within
from kalends.store.sql import Sql, all_of, join, places

NO_SOURCE: Final = Sql("")
SECOND: Final = timedelta(seconds=1)
DAY: Final = timedelta(days=1)
FIRST: Final = datetime(1, 1, 2, tzinfo=UTC)
# An event of length class n lasts less than 2^n hours (the column `span`).
SPANS: Final = tuple(timedelta(hours=2**n) for n in range(23))


@dataclass(frozen=True, slots=True)
class Window:
    """Inclusive limits of start and end, in whole seconds; None: no limit."""

    start_from: datetime | None = None
    start_to: datetime | None = None
    end_from: datetime | None = None
    end_to: datetime | None = None

    def clauses(self) -> list[Sql]:
        rows: tuple[tuple[LiteralString, datetime | None], ...] = (
            ("r.start_utc >= ?", self.start_from),
            ("r.start_utc <= ?", self.start_to),
            ("r.end_utc >= ?", self.end_from),
            ("r.end_utc <= ?", self.end_to),
        )
        return [Sql(text, limit) for text, limit in rows if limit is not None]

    @property
    def starts(self) -> Starts:
        """Between which instants the events start: none starts after it ends."""
        last = min((limit for limit in (self.start_to, self.end_to) if limit is not None), default=None)
        return Starts(self.start_from, last)


# Parameter, the limit it sets, how a whole day is read, and what is added to make the limit inclusive.
Reader = Callable[[Moment, str], datetime]
BOUNDS: Final[tuple[tuple[str, str, Reader, timedelta], ...]] = (
    ("start_date", "start_from", times.day_begins, 0 * SECOND),
    ("end_date", "end_to", times.day_ends, 0 * SECOND),
    ("starts_after", "start_from", times.day_ends, SECOND),
    ("starts_before", "start_to", times.day_ends, -SECOND),
    ("ends_after", "end_from", times.day_ends, SECOND),
    ("ends_before", "end_to", times.day_ends, -SECOND),
    ("overlaps_from", "end_from", times.day_begins, SECOND),
    ("overlaps_to", "start_to", times.day_ends, 0 * SECOND),
)
RELATIVE: Final = {name for name, *_ in BOUNDS[2:]}


def window_of(listing: Listing) -> Window:
    """The limits that the parameters set; without any, from today on for two years."""
    values, zone = listing.values, listing.site.timezone
    if "include" in values:
        return Window()
    window = Window()
    sent: dict[str, Any] = dict(values)
    if not RELATIVE & set(values):
        first, last = times.default_window(listing.transaction.now, zone)
        sent = {"start_date": Moment(first, None, True), "end_date": Moment(last, None, True), **values}
    strict = bool(values.get("strict_dates"))
    for name, limit, whole_day, step in BOUNDS:
        if name not in sent:
            continue
        exact = strict and name in values
        value = (times.instant if exact else whole_day)(sent[name], zone) + step
        if exact and name == "overlaps_to":
            value -= SECOND  # What starts at the very end does not overlap.
        held: datetime | None = getattr(window, limit)
        narrower = max if limit.endswith("from") else min
        window = replace(window, **{limit: value if held is None else narrower(held, value)})
    return window


# Pages ---------------------------------------------------------------------------------------


def event_page(kind: Kind, listing: Listing, clauses: list[Clause]) -> Sql:
    """The rows of a page: its IDs from indexes alone, then the rows that they name."""
    orderby, _ = order_of(listing)
    keys: LiteralString = ", ".join([_column("r.", column) for column in ORDERS[orderby]])
    shown: LiteralString = ", p.distance" if orderby == "distance" else ""
    by_cursor = "cursor" in listing.values
    # One more than a page tells a cursor's reader whether there is another.
    wanted, offset = (listing.per_page + 1, 0) if by_cursor else (listing.per_page, listing.offset)
    arms = [
        Sql("(SELECT " + keys + " FROM events r") + source + _distance(listing) + Sql("WHERE") + where
        + (Sql("AND") + _after(listing) if by_cursor else Sql(""))
        + Sql("ORDER BY") + _ordered(listing, "r.") + Sql("LIMIT ?)", offset + wanted)
        for source, where in _arms(listing, window_of(listing), clauses)
    ]  # fmt: skip
    return (
        Sql("SELECT " + kind.columns + shown + " FROM (SELECT * FROM (")
        + join(" UNION ALL ", arms)
        + Sql(") p ORDER BY")
        + _ordered(listing, "p.")
        + Sql("LIMIT ? OFFSET ?) p", wanted, offset)
        + Sql("JOIN events r ON r.site_id = ? AND r.id = p.id ORDER BY", listing.site.id)
        + _ordered(listing, "p.")
    )


def _arms(listing: Listing, window: Window, clauses: list[Clause]) -> list[tuple[Sql, Sql]]:
    """The parts of a list, each with its source and conditions, no event in two of them."""
    common = [Sql("r.site_id = ?", listing.site.id), listing.visible, Sql("NOT r.hide_from_listings")]

    def arm(part: Window, source: Sql = NO_SOURCE) -> tuple[Sql, Sql]:
        return source, all_of([*common, *part.clauses(), *within(clauses, part.starts)])

    begins, ends = window.start_from, window.end_from
    if ends is None or (begins is not None and begins >= ends):
        return [arm(replace(window, end_from=None) if ends is not None else window)]
    later = replace(window, start_from=ends, end_from=None)
    before = ends - SECOND
    running = replace(window, start_to=before if window.start_to is None else min(before, window.start_to))
    return [arm(later), arm(running, _running(ends, begins))]


def _running(at: datetime, begins: datetime | None) -> Sql:
    """Joins the length classes: one of class n that runs at a moment began less than 2^n hours before."""
    spans = [(n, max(_before(at, span), begins or FIRST)) for n, span in enumerate(SPANS)]
    return Sql(
        """JOIN unnest(?::smallint[], ?::timestamptz[]) AS w (span, since)
            ON r.span = w.span AND r.start_utc >= w.since""",
        [n for n, _ in spans],
        [since for _, since in spans],
    )


def _before(at: datetime, span: timedelta) -> datetime:
    return at - span if at - FIRST > span else FIRST


# Totals --------------------------------------------------------------------------------------


def event_total(_: Kind, listing: Listing, clauses: list[Clause]) -> Sql:
    """Exact. Where only time and whole statuses matter, from the counters by day."""
    window = window_of(listing)
    if listing.statuses is not None and not any(not isinstance(c, Sql) or c.text for c in clauses):
        total = _total_by_days(listing, window)
        if total is not None:
            return total
    arms = [
        Sql("(SELECT count(*) FROM events r") + source + Sql("WHERE") + where + Sql(")")
        for source, where in _arms(listing, window, clauses)
    ]
    return Sql("SELECT") + join(" + ", arms)


def _total_by_days(listing: Listing, window: Window) -> Sql | None:
    contained = window.start_to is None and window.end_from is None
    overlapping = window.start_from is None and window.end_to is None
    if contained:
        return _contained(listing, window.start_from, window.end_to)
    if overlapping:
        return _overlapping(listing, window.start_to, window.end_from)
    return None


def _contained(listing: Listing, begins: datetime | None, ends: datetime | None) -> Sql:
    """Those that start in time, less those that end too late, plus those that do neither."""
    if begins is None and ends is None:
        return Sql("SELECT") + _days(listing, "starts", None)
    started = _since(listing, "start", begins)
    if ends is None:
        return Sql("SELECT") + started
    too_late = _since(listing, "end", ends + SECOND)
    if begins is None:
        return Sql("SELECT") + started + Sql("-") + too_late
    if ends < begins:
        return Sql("SELECT 0::bigint")
    spans = [(n, _before(ends, span)) for n, span in enumerate(SPANS) if span > ends - begins]
    around = Sql(
        """(SELECT count(*) FROM unnest(?::smallint[], ?::timestamptz[]) AS w (span, since)
            JOIN events r ON r.span = w.span AND r.start_utc >= w.since
            WHERE r.site_id = ? AND NOT r.hide_from_listings AND r.start_utc < ? AND r.end_utc > ? AND""",
        [n for n, _ in spans],
        [since for _, since in spans],
        listing.site.id,
        begins,
        ends,
    )
    return Sql("SELECT") + started + Sql("-") + too_late + Sql("+") + around + listing.visible + Sql(")")


def _overlapping(listing: Listing, begins: datetime | None, ends: datetime | None) -> Sql | None:
    """Those that end late enough, less those that start too late."""
    lasting = _since(listing, "end", ends)
    if begins is None:
        return Sql("SELECT") + lasting
    if ends is not None and begins < ends - SECOND:
        return None
    return Sql("SELECT") + lasting + Sql("-") + _since(listing, "start", begins + SECOND)


def _since(listing: Listing, side: str, moment: datetime | None) -> Sql:
    """How many start (end) at this moment or later: the rest of its day, and the days after it."""
    if moment is None:
        return _days(listing, "starts", None)
    column: LiteralString = "r.start_utc" if side == "start" else "r.end_utc"
    counter: LiteralString = "starts" if side == "start" else "ends"
    midnight = moment.replace(hour=0, minute=0, second=0) + DAY
    rest = Sql(
        "(SELECT count(*) FROM events r WHERE r.site_id = ? AND NOT r.hide_from_listings AND "
        + column + " >= ? AND " + column + " < ? AND",
        listing.site.id,
        moment,
        midnight,
    )  # fmt: skip
    return Sql("(") + rest + listing.visible + Sql(") +") + _days(listing, counter, midnight) + Sql(")")


def _days(listing: Listing, counter: LiteralString, since: datetime | None) -> Sql:
    later = Sql("AND d.day >= ?", since.date()) if since is not None else Sql("")
    return (
        Sql(
            "(SELECT coalesce(sum(d."
            + counter
            + "), 0)::bigint FROM event_days d WHERE d.site_id = ? AND d.status = ANY(?)",
            listing.site.id,
            list(listing.statuses or ()),
        )
        + later
        + Sql(")")
    )


# Order and cursors ---------------------------------------------------------------------------

# What `orderby` names, and the columns that decide, the last of them always the ID.
ORDERS: Final[dict[str, tuple[LiteralString, ...]]] = {
    "start_date": ("start_utc", "date_utc", "id"),
    "end_date": ("end_utc", "id"),
    "title": ("title", "id"),
    "date": ("date_utc", "id"),
    "modified": ("modified_utc", "id"),
    "distance": ("distance", "id"),
}


@dataclass(frozen=True, slots=True)
class Cursor:
    """The place behind one event in one order."""

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
        raise Invalid("this must be a `next_cursor` of an answer with the same parameters.") from error


def _read_key(column: str, value: Any) -> object:
    if column.endswith("_utc"):
        return datetime.fromisoformat(value).astimezone(UTC)
    if column == "id":
        return params.whole_number(value)
    if column == "distance":
        return float(value)
    return str(value)


def cursor_behind(listing: Listing, rows: list[Record], total: int) -> str | None:
    """The cursor of the next page; None says that the list ends here."""
    by_cursor = "cursor" in listing.values
    more = len(rows) > listing.per_page if by_cursor else listing.offset + len(rows) < total
    if not more or not rows:
        return None
    last = rows[: listing.per_page][-1]
    orderby, order = order_of(listing)
    return Cursor(orderby, order, tuple(last[column] for column in ORDERS[orderby])).text()


def order_of(listing: Listing) -> tuple[str, str]:
    """`include` is ordered by publication date; everything else by start unless asked otherwise."""
    values = listing.values
    orderby: str = values.get("orderby", "date" if "include" in values else "start_date")
    return orderby, values.get("order", "asc")


def order_events(listing: Listing) -> Sql:
    return _ordered(listing, "r.")


def _ordered(listing: Listing, prefix: LiteralString) -> Sql:
    orderby, order = order_of(listing)
    direction: LiteralString = " DESC" if order == "desc" else ""
    return Sql(", ".join([_column(prefix, column) + direction for column in ORDERS[orderby]]))


def _column(prefix: LiteralString, column: LiteralString) -> LiteralString:
    return "g.distance" if column == "distance" and prefix == "r." else prefix + column


def _after(listing: Listing) -> Sql:
    orderby, order = order_of(listing)
    columns: list[LiteralString] = [_column("r.", column) for column in ORDERS[orderby]]
    sign: LiteralString = ") < (" if order == "desc" else ") > ("
    return Sql("(" + ", ".join(columns) + sign + places(len(columns)) + ")", *listing.values["cursor"].keys)


def _distance(listing: Listing) -> Sql:
    """The nearest venue of each event, where the list is ordered by distance."""
    if order_of(listing)[0] != "distance":
        return Sql("")
    values = listing.values
    return Sql(
        """CROSS JOIN LATERAL (
            SELECT min(ST_Distance(v.location, ST_MakePoint(?, ?)::geography)) AS distance
            FROM event_venues l JOIN venues v ON v.site_id = l.site_id AND v.id = l.venue_id
            WHERE l.site_id = r.site_id AND l.event_id = r.id AND v.status = 'publish') g""",
        values["geoloc_lng"],
        values["geoloc_lat"],
    )

"""A page of a list of events, and its total. The cost of neither grows with history.

A page walks the index by start; what began before the window and still runs is found through the
length classes of events. A total is a sum over days.
"""

from datetime import datetime
from typing import LiteralString

from kalends.core.zones import SECOND
from kalends.kinds.event_order import ORDERS, after_cursor, column_of, join_distance, order_of, ordered
from kalends.kinds.event_window import DAY, Window, find_parts, spans_before, window_of
from kalends.kinds.kind import Clause, Kind, Listing
from kalends.store.sql import Sql, join


def event_page(kind: Kind, listing: Listing, clauses: list[Clause]) -> Sql:
    """The rows of a page: its IDs from indexes alone, then the rows that they name."""
    orderby, _ = order_of(listing)
    keys: LiteralString = ", ".join([column_of("r.", column) + " AS " + column for column in ORDERS[orderby]])
    shown: LiteralString = ", p.distance" if orderby == "distance" else ""
    by_cursor = "cursor" in listing.values
    window = window_of(listing)
    if orderby == "end_date" and window.start_from is not None:
        # True of all that start then, and tells the index by end where to begin.
        clauses = [*clauses, Sql("r.end_utc >= ?", window.start_from)]
    # One more than a page tells a cursor's reader whether there is another.
    wanted, offset = (listing.per_page + 1, 0) if by_cursor else (listing.per_page, listing.offset)
    distance = join_distance(listing, window.start_from, window.last_start)
    arms = [
        Sql("(SELECT " + keys + " FROM") + source + distance + Sql("WHERE") + where
        + (Sql("AND") + after_cursor(listing) if by_cursor else Sql(""))
        + Sql("ORDER BY") + ordered(listing, "r.") + Sql("LIMIT ?)", offset + wanted)
        for source, where in find_parts(listing, window, clauses)
    ]  # fmt: skip
    return (
        Sql("SELECT " + kind.columns + shown + " FROM (SELECT * FROM (")
        + join(" UNION ALL ", arms)
        + Sql(") p ORDER BY")
        + ordered(listing, "p.")
        + Sql("LIMIT ? OFFSET ?) p", wanted, offset)
        + Sql("JOIN events r ON r.site_id = ? AND r.id = p.id ORDER BY", listing.site.id)
        + ordered(listing, "p.")
    )


def event_total(_: Kind, listing: Listing, clauses: list[Clause]) -> Sql:
    """Exact. Where only time and whole statuses matter, from the counters by day."""
    window = window_of(listing)
    if listing.statuses is not None and not any(not isinstance(c, Sql) or c.text for c in clauses):
        total = _total_by_days(listing, window)
        if total is not None:
            return total
    arms = [
        Sql("(SELECT count(*) FROM") + source + Sql("WHERE") + where + Sql(")")
        for source, where in find_parts(listing, window, clauses)
    ]
    return Sql("SELECT") + join(" + ", arms)


def _total_by_days(listing: Listing, window: Window) -> Sql | None:
    contained = window.start_to is None and window.end_from is None
    overlapping = window.start_from is None and window.end_to is None
    if contained:
        return _contained(listing, window.start_from, window.end_to)
    if overlapping:
        return _overlapping(listing, window)
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
    spans = spans_before(ends, longer_than=ends - begins)
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


def _overlapping(listing: Listing, window: Window) -> Sql | None:
    """Those that end late enough, less those that start too late, plus those that last no time at the border."""
    begins, ends = window.start_to, window.end_from
    total = Sql("SELECT") + _since(listing, "end", ends)
    if begins is not None:
        if ends is not None and begins < ends - SECOND:
            return None
        total += Sql("-") + _since(listing, "start", begins + SECOND)
    if ends is not None and window.with_moments:
        border = ends - SECOND
        total += Sql(
            "+ (SELECT count(*) FROM events r WHERE r.site_id = ? AND NOT r.hide_from_listings"
            " AND r.start_utc = ? AND r.end_utc = ? AND",
            listing.site.id,
            border,
            border,
        )
        total += listing.visible + Sql(")")
    return total


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

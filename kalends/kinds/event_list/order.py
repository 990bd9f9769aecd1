"""The order of a list of events, and cursors for its next page."""

import base64
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, LiteralString

import orjson

from kalends.core import params
from kalends.core.errors import InvalidValue
from kalends.kinds.kind import Clause, ListQuery
from kalends.store import Row
from kalends.store.sql import Sql, placeholders

# The values of `orderby` and their columns. The ID comes last, so that the order is total.
ORDERS: Final[dict[str, tuple[LiteralString, ...]]] = {
    "start_date": ("start_utc", "published_at", "id"),
    "end_date": ("end_utc", "id"),
    "title": ("title", "id"),
    "date": ("published_at", "id"),
    "modified": ("modified_utc", "id"),
    "distance": ("distance", "id"),
}
TIME_COLUMNS: Final = frozenset({"start_utc", "end_utc", "published_at", "modified_utc"})
# Titles are ordered by their first characters, so that a cursor, which contains them, fits into a URL.
TITLE: Final = "left(r.title, 200)"


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position after one event in an order."""

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
    """Return the cursor of the next page, or None on the last page."""
    by_cursor = "cursor" in query.values
    has_more = len(rows) > query.per_page if by_cursor else query.offset + len(rows) < total
    if not has_more or not rows:
        return None
    last = rows[: query.per_page][-1]
    orderby, order = read_order(query)
    keys = tuple(last[column][:200] if column == "title" else last[column] for column in ORDERS[orderby])
    return Cursor(orderby, order, keys).text()


def read_order(query: ListQuery) -> tuple[str, str]:
    """Return the order and its direction. The default is by start, or by publication date with `include`."""
    values = query.values
    orderby: str = values.get("orderby", "date" if "include" in values else "start_date")
    return orderby, values.get("order", "asc")


async def read_by_order(_: Any, __: ListQuery) -> Clause:
    """Return no condition: `read_order` reads the parameter."""
    return Sql("")


def order_events(query: ListQuery) -> Sql:
    return build_order_by(query, "r.")


def build_order_by(query: ListQuery, prefix: LiteralString) -> Sql:
    orderby, order = read_order(query)
    direction: LiteralString = " DESC" if order == "desc" else ""
    columns: list[LiteralString] = [qualify_column(prefix, column) for column in ORDERS[orderby]]
    if orderby == "date" and prefix == "r.":
        # An expression that no index has: sorting the events of a window is cheaper than reading all events of the
        # site by date of publication until enough of them are in the window.
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
    """Join each event with the distance of its nearest venue, where the list is ordered by distance.

    The distance of each venue inside the circle is computed once; then its events in the period are looked up.
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
            *point,
            site_id,
            *point,
            read_radius(query),
            site_id,
        )
        + limits
        + Sql("GROUP BY l.event_id) g ON g.event_id = r.id")
    )


def read_radius(query: ListQuery) -> float:
    """Return the radius in metres."""
    radius: float = query.values.get("geoloc_radius", 40.0)
    return radius * 1000

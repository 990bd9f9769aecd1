"""The order of a list of events, and cursors: the place behind one event in that order."""

import base64
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, LiteralString

import orjson

from kalends.core import params
from kalends.core.errors import InvalidValue
from kalends.kinds.kind import Listing
from kalends.store import Row
from kalends.store.sql import Sql, placeholders

# What `orderby` names, and the columns that decide, the last of them always the ID.
ORDERS: Final[dict[str, tuple[LiteralString, ...]]] = {
    "start_date": ("start_utc", "date_utc", "id"),
    "end_date": ("end_utc", "id"),
    "title": ("title", "id"),
    "date": ("date_utc", "id"),
    "modified": ("modified_utc", "id"),
    "distance": ("distance", "id"),
}
# Titles are ordered by their beginning, so that a cursor, which holds it, fits into an address.
TITLE: Final = "left(r.title, 200)"


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
        raise InvalidValue("this must be a `next_cursor` of an answer with the same parameters.") from error


def _read_key(column: str, value: Any) -> object:
    if column.endswith("_utc"):
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


def cursor_behind(listing: Listing, rows: list[Row], total: int) -> str | None:
    """The cursor of the next page; None says that the list ends here."""
    by_cursor = "cursor" in listing.values
    more = len(rows) > listing.per_page if by_cursor else listing.offset + len(rows) < total
    if not more or not rows:
        return None
    last = rows[: listing.per_page][-1]
    orderby, order = order_of(listing)
    keys = tuple(last[column][:200] if column == "title" else last[column] for column in ORDERS[orderby])
    return Cursor(orderby, order, keys).text()


def order_of(listing: Listing) -> tuple[str, str]:
    """`include` is ordered by publication date; everything else by start unless asked otherwise."""
    values = listing.values
    orderby: str = values.get("orderby", "date" if "include" in values else "start_date")
    return orderby, values.get("order", "asc")


def order_events(listing: Listing) -> Sql:
    return ordered(listing, "r.")


def ordered(listing: Listing, prefix: LiteralString) -> Sql:
    orderby, order = order_of(listing)
    direction: LiteralString = " DESC" if order == "desc" else ""
    return Sql(", ".join([column_of(prefix, column) + direction for column in ORDERS[orderby]]))


def column_of(prefix: LiteralString, column: LiteralString) -> LiteralString:
    if prefix == "r." and column == "distance":
        return "g.distance"
    if prefix == "r." and column == "title":
        return TITLE
    return prefix + column


def after_cursor(listing: Listing) -> Sql:
    orderby, order = order_of(listing)
    columns: list[LiteralString] = [column_of("r.", column) for column in ORDERS[orderby]]
    sign: LiteralString = ") < (" if order == "desc" else ") > ("
    return Sql("(" + ", ".join(columns) + sign + placeholders(len(columns)) + ")", *listing.values["cursor"].keys)


def join_distance(listing: Listing, begins: datetime | None, ends: datetime | None) -> Sql:
    """Join each event with the distance of its nearest venue, where the list is ordered by distance.

    Each venue inside the circle is measured once, then its events that start between two moments are looked up.
    """
    if order_of(listing)[0] != "distance":
        return Sql("")
    values, site_id = listing.values, listing.site.id
    place = values["geoloc_lng"], values["geoloc_lat"]
    limits = Sql("")
    if begins is not None:
        limits += Sql("AND l.start_utc >= ?", begins)
    if ends is not None:
        limits += Sql("AND l.start_utc <= ?", ends)
    return (
        Sql(
            """JOIN (SELECT l.event_id, min(d.distance) AS distance FROM (
                    SELECT v.id, ST_Distance(v.location, ST_MakePoint(?, ?)::geography) AS distance FROM venues v
                    WHERE v.site_id = ? AND v.status = 'publish'
                        AND ST_DWithin(v.location, ST_MakePoint(?, ?)::geography, ?)
                    OFFSET 0) d
                JOIN event_venues l ON l.site_id = ? AND l.venue_id = d.id""",
            *place,
            site_id,
            *place,
            radius_of(listing),
            site_id,
        )
        + limits
        + Sql("GROUP BY l.event_id) g ON g.event_id = r.id")
    )


def radius_of(listing: Listing) -> float:
    """In metres."""
    radius: float = listing.values.get("geoloc_radius", 40.0)
    return radius * 1000

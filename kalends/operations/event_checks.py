"""Warnings about an event before it is saved: probable duplicates, and other events at the same venue."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kalends.core.html.sanitize import fold
from kalends.core.html.text import to_plain_text
from kalends.operations import permissions
from kalends.operations.context import OperationContext
from kalends.store import Row
from kalends.store.sql import Sql

DUPLICATE_PERIOD: Final = timedelta(days=3)
MIN_SIMILARITY: Final = 0.5
# Events that are compared by title; a period of a week rarely has more.
MAX_COMPARED: Final = 3000
# Longer events are not found as conflicts, so that the search reads few rows.
MAX_DURATION: Final = timedelta(days=31)
MAX_FOUND: Final = 5


@dataclass(frozen=True, slots=True)
class OtherEvent:
    """An event that a warning names."""

    id: int
    title: str
    status: str
    start_local: datetime
    venue: str = ""


async def find_duplicates(
    context: OperationContext, title: str, start_utc: datetime, own_id: int | None
) -> list[OtherEvent]:
    """Find events with the same or a similar title around a start, as far as the caller may read them."""
    folded = fold(to_plain_text(title)).strip()
    if len(folded) < 3:
        return []
    rows = await context.transaction.fetch_all(
        Sql(
            """
            SELECT n.id, n.title, n.status, n.start_local, '' AS venue FROM (
                SELECT r.id, r.title, r.status, r.start_local, split_part(r.search_text, E'\\n', 1) AS folded
                FROM events r WHERE r.site_id = ? AND r.start_utc BETWEEN ? AND ? AND NOT r.hide_from_listings
                    AND r.status <> 'trash' AND r.id <> ? AND
            """,
            context.transaction.site.id,
            start_utc - DUPLICATE_PERIOD,
            start_utc + DUPLICATE_PERIOD,
            own_id or 0,
        )
        + permissions.readable_condition(context.actor)
        + Sql(
            """
                ORDER BY r.start_utc LIMIT ?) n
            WHERE n.folded = ? OR similarity(n.folded, ?) >= ?::real
            ORDER BY similarity(n.folded, ?) DESC, n.start_local, n.id LIMIT ?
            """,
            MAX_COMPARED,
            folded,
            folded,
            MIN_SIMILARITY,
            folded,
            MAX_FOUND,
        )
    )
    return [_read_row(row) for row in rows]


async def find_venue_conflicts(
    context: OperationContext, venue_ids: list[int], start_utc: datetime, end_utc: datetime, own_id: int | None
) -> list[OtherEvent]:
    """Find published, scheduled and pending events at these venues that overlap a period."""
    if not venue_ids:
        return []
    rows = await context.transaction.fetch_all(
        Sql(
            """
            SELECT r.id, r.title, r.status, r.start_local, v.title AS venue
            FROM event_venues l JOIN events r ON r.site_id = l.site_id AND r.id = l.event_id
            JOIN venues v ON v.site_id = l.site_id AND v.id = l.venue_id
            WHERE l.site_id = ? AND l.venue_id = ANY(?) AND l.start_utc >= ? AND l.start_utc < ? AND r.end_utc > ?
                AND r.status IN ('publish', 'future', 'pending') AND r.event_status NOT IN ('cancelled', 'postponed')
                AND r.id <> ? AND
            """,
            context.transaction.site.id,
            venue_ids,
            start_utc - MAX_DURATION,
            max(end_utc, start_utc + timedelta(seconds=1)),
            start_utc,
            own_id or 0,
        )
        + permissions.readable_condition(context.actor)
        + Sql("ORDER BY l.start_utc, r.id LIMIT ?", MAX_FOUND)
    )
    return [_read_row(row) for row in rows]


def _read_row(row: Row) -> OtherEvent:
    title, venue = to_plain_text(row["title"]), to_plain_text(row["venue"])
    return OtherEvent(row["id"], title, row["status"], row["start_local"], venue)

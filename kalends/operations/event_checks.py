"""Warnings about an event before it is saved: probable duplicates, and other events at the same venue."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kalends.core.html.sanitize import fold
from kalends.core.html.text import to_plain_text
from kalends.core.imports.similarity import EventFacts
from kalends.operations import permissions
from kalends.operations.context import OperationContext
from kalends.operations.imports.duplicates import find_similar
from kalends.store import Row
from kalends.store.sql import Sql

DUPLICATE_PERIOD: Final = timedelta(days=3)
MIN_SIMILARITY: Final = 0.5
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
    context: OperationContext, facts: EventFacts, start_utc: datetime, zone: str, own_id: int | None
) -> list[OtherEvent]:
    """Find events with the same or a similar title around a start, as far as the caller may read them.

    While an event is typed its place and time are not final, so other days and times are shown as well.
    """
    if len(fold(to_plain_text(facts.title))) < 3:
        return []
    found = await find_similar(
        context.transaction,
        facts,
        start_utc,
        zone,
        own_id=own_id,
        visible=permissions.readable_condition(context.actor),
        period=DUPLICATE_PERIOD,
    )
    return [
        OtherEvent(row.event_id, row.title, row.status, row.start_local)
        for row in found
        if row.title_similarity >= MIN_SIMILARITY
    ][:MAX_FOUND]


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

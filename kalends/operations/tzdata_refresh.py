"""Recomputing the UTC times of events after an update of tzdata.

The local time and the time zone are the author's and stay; only the UTC times change.
"""

from dataclasses import dataclass
from datetime import datetime

from kalends.core.times import utc_of
from kalends.kinds.kind import Values
from kalends.store import Row, records
from kalends.store.database import Transaction
from kalends.store.sql import Sql

PAGE_SIZE = 5000


@dataclass(frozen=True, slots=True)
class ShiftedEvent:
    event_id: int
    title: str
    timezone: str
    start_local: datetime
    old_utc: datetime
    new_utc: datetime


async def find_shifted(tx: Transaction, after: int) -> tuple[int | None, list[int]]:
    """Check one page of events after an ID; return the next ID (None at the end) and the events that differ."""
    rows = await _fetch_events(tx, Sql("id > ? ORDER BY id LIMIT ?", after, PAGE_SIZE))
    differing = [row["id"] for row in rows if _compute_utc(row) != (row["start_utc"], row["end_utc"])]
    return (rows[-1]["id"] if len(rows) == PAGE_SIZE else None), differing


async def shift_events(tx: Transaction, ids: list[int]) -> list[ShiftedEvent]:
    """Recompute the UTC times of events, with one revision per event. Locks the site."""
    await tx.lock_site(None)
    shifted: list[ShiftedEvent] = []
    for row in await _fetch_events(tx, Sql("id = ANY(?) ORDER BY id", ids)):
        start_utc, end_utc = _compute_utc(row)
        if (start_utc, end_utc) == (row["start_utc"], row["end_utc"]):
            continue
        revision = tx.changes.record("events", row["id"], "update")
        changed: Values = {
            "start_utc": start_utc,
            "end_utc": max(start_utc, end_utc),
            "modified_utc": tx.now,
            "revision": revision,
            "sequence": revision,
        }
        await records.change(tx, "events", row["id"], changed)
        shifted.append(
            ShiftedEvent(row["id"], row["title"], row["timezone"], row["start_local"], row["start_utc"], start_utc)
        )
    return shifted


async def count_events(tx: Transaction) -> int:
    count: int = await tx.fetch_value(Sql("SELECT count(*) FROM events WHERE site_id = ?", tx.site.id))
    return count


async def _fetch_events(tx: Transaction, where: Sql) -> list[Row]:
    columns = Sql(
        """SELECT id, title, timezone, start_local, end_local, start_fold, end_fold, start_utc, end_utc
            FROM events WHERE site_id = ? AND""",
        tx.site.id,
    )
    return await tx.fetch_all(columns + where)


def _compute_utc(row: Row) -> tuple[datetime, datetime]:
    zone = row["timezone"]
    return utc_of(row["start_local"], zone, row["start_fold"]), utc_of(row["end_local"], zone, row["end_fold"])

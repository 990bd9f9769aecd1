"""Jobs that publish due records, empty the trash, trim the change log, and update times after tzdata updates."""

from dataclasses import dataclass
from datetime import datetime

from kalends.calendar.access import permissions
from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.kind import Kind, Values
from kalends.calendar.kinds.series_kind import SERIES
from kalends.calendar.operations.writes import publish_with_due_event, remove_record, write_changes
from kalends.calendar.storage import history_tables, record_tables
from kalends.core.times import utc_of
from kalends.series import storage as series_storage
from kalends.series.operations.series_writing import publish_series
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql


async def publish_due(tx: Transaction, kind_name: str, record_id: int) -> bool:
    """Publish a scheduled record if it is due. The site lock ensures that this happens only once."""
    kind = BY_NAME[kind_name]
    await tx.lock_site(None)
    row = await _fetch_row(kind, tx, record_id, Sql("r.status = 'future' AND r.published_at <= ?", tx.now))
    if row is None:
        return False
    if kind is SERIES:
        await publish_series(tx, row)
        return True
    await write_changes(kind, tx, row, {"status": "publish"})
    if kind.is_event:
        await publish_with_due_event(tx, row)
    return True


async def remove_old_trash(tx: Transaction, kind_name: str, record_id: int, cutoff: datetime) -> bool:
    """Permanently delete a record if it was trashed before `cutoff`. Its entries in the change log remain."""
    kind = BY_NAME[kind_name]
    await tx.lock_site(None)
    row = await _fetch_row(kind, tx, record_id, Sql("r.status = 'trash' AND r.trashed_at < ?", cutoff))
    if row is None or (kind is SERIES and await series_storage.has_events(tx, record_id)):
        return False
    await remove_record(kind, tx, row)
    return True


async def trim_change_log(tx: Transaction, cutoff: datetime) -> int:
    await tx.lock_site(None)
    return await history_tables.trim_log(tx, cutoff)


async def _fetch_row(kind: Kind, tx: Transaction, record_id: int, where: Sql) -> Row | None:
    return await tx.fetch_one(kind.select(Sql("r.site_id = ? AND r.id = ? AND", tx.site.id, record_id) + where))


# Recompute events' UTC times after a tzdata update.

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
    """Check a page of events after the given ID.

    Return the page's last ID (None at the end) and the outdated events.
    """
    rows = await _fetch_events(tx, Sql("id > ? ORDER BY id LIMIT ?", after, PAGE_SIZE))
    differing = [row["id"] for row in rows if _compute_utc(row) != (row["start_utc"], row["end_utc"])]
    return (rows[-1]["id"] if len(rows) == PAGE_SIZE else None), differing


async def shift_events(tx: Transaction, ids: list[int]) -> list[ShiftedEvent]:
    """Lock the site, and recompute the UTC times of these events. Each event gets a separate revision."""
    await tx.lock_site(None)
    shifted: list[ShiftedEvent] = []
    for row in await _fetch_events(tx, Sql("id = ANY(?) ORDER BY id", ids)):
        start_utc, end_utc = _compute_utc(row)
        if (start_utc, end_utc) == (row["start_utc"], row["end_utc"]):
            continue
        revision = tx.changes.record("events", row["id"], "update", was_public=permissions.is_public(row))
        changed: Values = {
            "start_utc": start_utc,
            "end_utc": max(start_utc, end_utc),
            "modified_utc": tx.now,
            "revision": revision,
            "sequence": revision,
        }
        await record_tables.change(tx, "events", row["id"], changed)
        shifted.append(
            ShiftedEvent(row["id"], row["title"], row["timezone"], row["start_local"], row["start_utc"], start_utc)
        )
    return shifted


async def count_events(tx: Transaction) -> int:
    count: int = await tx.fetch_value(Sql("SELECT count(*) FROM events WHERE site_id = ?", tx.site.id))
    return count


async def _fetch_events(tx: Transaction, where: Sql) -> list[Row]:
    columns = Sql(
        """SELECT id, title, timezone, start_local, end_local, start_fold, end_fold, start_utc, end_utc,
                status, hide_from_listings
            FROM events WHERE site_id = ? AND""",
        tx.site.id,
    )
    return await tx.fetch_all(columns + where)


def _compute_utc(row: Row) -> tuple[datetime, datetime]:
    zone = row["timezone"]
    return utc_of(row["start_local"], zone, row["start_fold"]), utc_of(row["end_local"], zone, row["end_fold"])

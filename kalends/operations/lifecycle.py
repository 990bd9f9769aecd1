"""Scheduled changes: publishing due records, emptying the trash, trimming the change log."""

from datetime import datetime

from kalends.kinds import BY_NAME
from kalends.kinds.kind import Kind
from kalends.kinds.series import SERIES
from kalends.operations.linked_drafts import publish_with_due_event
from kalends.operations.series.publication import publish_series
from kalends.operations.writes import remove_record, write_changes
from kalends.store import Row, history
from kalends.store import series as series_store
from kalends.store.database import Transaction
from kalends.store.sql import Sql


async def publish_due(tx: Transaction, kind_name: str, record_id: int) -> bool:
    """Publish a scheduled record if it is due. The lock of the site ensures that this happens only once."""
    kind = BY_NAME[kind_name]
    await tx.lock_site(None)
    row = await _fetch_row(kind, tx, record_id, Sql("r.status = 'future' AND r.published_at <= ?", tx.now))
    if row is None:
        return False
    if kind is SERIES:
        await publish_series(tx, row)
        return True
    await write_changes(kind, tx, row, {"status": "publish"}, {})
    if kind.is_event:
        await publish_with_due_event(tx, row)
    return True


async def remove_old_trash(tx: Transaction, kind_name: str, record_id: int, cutoff: datetime) -> bool:
    """Delete a record permanently if it was trashed before `cutoff`; its entry in the change log stays."""
    kind = BY_NAME[kind_name]
    await tx.lock_site(None)
    row = await _fetch_row(kind, tx, record_id, Sql("r.status = 'trash' AND r.trashed_at < ?", cutoff))
    if row is None or (kind is SERIES and await series_store.has_events(tx, record_id)):
        return False
    await remove_record(kind, tx, row)
    return True


async def trim_change_log(tx: Transaction, cutoff: datetime) -> int:
    await tx.lock_site(None)
    return await history.trim_log(tx, cutoff)


async def _fetch_row(kind: Kind, tx: Transaction, record_id: int, where: Sql) -> Row | None:
    return await tx.fetch_one(kind.select(Sql("r.site_id = ? AND r.id = ? AND", tx.site.id, record_id) + where))

"""Publishing a scheduled series together with its dates."""

from kalends.core.series import Definition, change_content
from kalends.kinds.events import EVENTS
from kalends.operations.linked_drafts import publish_with_due_event
from kalends.operations.series.rows import write_definition
from kalends.operations.series.writing import write_prepared
from kalends.operations.writes import prepare_change
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.series import decode_definition
from kalends.store.sql import Sql


async def publish_series(tx: Transaction, series: Row) -> None:
    """Publish a series and its scheduled dates. The caller has checked that it is due."""
    cause = await write_definition(tx, series, _publish(decode_definition(series)), {"status": "publish"})
    rows = await _load_scheduled(tx, series["id"])
    prepared = [prepare_change(EVENTS, tx, row, {"status": "publish"}, {}, cause=cause) for row in rows]
    await write_prepared(tx, [change for change in prepared if change is not None])
    if rows:
        await publish_with_due_event(tx, rows[0])


def _publish(definition: Definition) -> Definition:
    """Change the status of the content; content that begins later keeps a status of its own."""
    later = {change.since: change.values for change in definition.content_changes if "status" in change.values}
    published = change_content(definition, {"status": "publish"})
    for since, values in later.items():
        status = "publish" if values["status"] == "future" else values["status"]
        published = change_content(published, {"status": status}, since)
    return published


async def _load_scheduled(tx: Transaction, series_id: int) -> list[Row]:
    """Load the dates that are due; dates with a publication date of their own may be due later."""
    where = Sql(
        "r.site_id = ? AND r.series_id = ? AND r.status = 'future' AND r.published_at <= ? ORDER BY r.slot",
        tx.site.id,
        series_id,
        tx.now,
    )
    return await tx.fetch_all(EVENTS.select(where))

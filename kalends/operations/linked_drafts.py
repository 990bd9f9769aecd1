"""Publishing an event publishes the venues and organizers that it links to, as The Events Calendar does."""

from datetime import datetime, timedelta

from kalends.core.times import DateTimeInput
from kalends.kinds import BY_NAME
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Actor, Kind, Link, WriteContext
from kalends.operations import permissions
from kalends.operations.writes import write_changes
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql, join


async def publish_with_event(tx: Transaction, actor: Actor, kind: Kind, record_id: int) -> None:
    """Publish or schedule the linked drafts of an event that was saved, as far as the rights of the actor go.

    The drafts of a scheduled event are scheduled for the same date. This stores the consent of the actor with each
    record: contributors cannot edit scheduled records, and a draft that was withdrawn later stays a draft. Private
    records stay private, and those in the trash stay there.
    """
    if not kind.is_event or not permissions.may_publish(actor):
        return
    event = await _find_event_with_drafts(tx, record_id)
    if event is None:
        return
    if event["status"] == "publish":
        date, later = tx.now, Sql("r.status IN ('draft', 'pending', 'future')")
    else:
        date = event["published_at"]
        later = Sql("r.status IN ('draft', 'pending') OR r.status = 'future' AND r.published_at > ?", date)
    condition = Sql("(") + later + Sql(") AND") + permissions.editable_condition(actor)
    await _publish_linked(tx, actor, record_id, condition, date)


async def _find_event_with_drafts(tx: Transaction, record_id: int) -> Row | None:
    """Return the event if it is published or scheduled and has linked drafts, which is rare: one statement tells."""
    has_drafts = [
        Sql("EXISTS (SELECT FROM " + link.table + " l JOIN " + BY_NAME[link.kind].name + " r")
        + Sql("ON r.site_id = l.site_id AND r.id = l." + link.column)
        + Sql("WHERE l.site_id = e.site_id AND l.event_id = e.id AND r.status IN ('draft', 'pending', 'future'))")
        for link in EVENTS.links
        if BY_NAME[link.kind].is_post
    ]
    return await tx.fetch_one(
        Sql("SELECT e.status, e.published_at FROM events e WHERE e.site_id = ? AND e.id = ?", tx.site.id, record_id)
        + Sql("AND e.status IN ('publish', 'future') AND (")
        + join(" OR ", has_drafts)
        + Sql(")")
    )


async def publish_with_due_event(tx: Transaction, event: Row) -> None:
    """Publish the records that were scheduled with an event in the same transaction as the event."""
    actor = Actor(event["author_id"], "editor")
    condition = Sql("r.status = 'future' AND r.published_at <= ?", tx.now)
    await _publish_linked(tx, actor, event["id"], condition, tx.now)


async def _publish_linked(tx: Transaction, actor: Actor, event_id: int, condition: Sql, date: datetime) -> None:
    for link in EVENTS.links:
        kind = BY_NAME[link.kind]
        if kind.is_post:
            for row in await _find_linked(tx, kind, link, event_id, condition):
                await _publish(tx, actor, kind, row, date)


async def _find_linked(tx: Transaction, kind: Kind, link: Link, event_id: int, condition: Sql) -> list[Row]:
    """Find the linked records that meet a condition, in the order of the event."""
    return await tx.fetch_all(
        Sql("SELECT " + kind.reads.columns.sql + " FROM " + link.table + " l JOIN " + kind.name + " r")
        + Sql("ON r.site_id = l.site_id AND r.id = l." + link.column)
        + Sql("WHERE l.site_id = ? AND l.event_id = ? AND", tx.site.id, event_id)
        + condition
        + Sql("ORDER BY l.position")
    )


async def _publish(tx: Transaction, actor: Actor, kind: Kind, row: Row, date: datetime) -> None:
    """Publish a record, at a date in the future if `date` is one. A date of its own in the past is kept."""
    arguments: dict[str, object] = {"status": "publish"}
    if row["published_at"] > tx.now or date > tx.now:
        arguments["date_utc"] = DateTimeInput(date.replace(tzinfo=None), timedelta(0), False)
    context = WriteContext(
        transaction=tx,
        arguments=arguments,
        row=row,
        record_id=row["id"],
        user_id=actor.user_id or row["author_id"],
        may_publish=True,
    )
    await write_changes(kind, tx, row, await kind.writes.to_columns(context), {})

"""Writes records: their columns, links and change log entries."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.access.permissions import count_new_record
from kalends.calendar.kinds import BY_NAME, KINDS
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import NO_LINKS, Actor, Kind, Link, Links, Values, WriteContext, link_columns
from kalends.calendar.kinds.posts import strip_trashed_suffix
from kalends.calendar.storage import record_tables
from kalends.calendar.storage.record_tables import add_links, record_linked_event_changes, replace_links
from kalends.core.times import DateTimeInput
from kalends.media.images import resolve_image_url
from kalends.series.consequences import follow_single_write, leave_out_deleted
from kalends.series.storage import update_events
from kalends.store import Row, job_queue
from kalends.store.change_log import choose_action, encode_columns
from kalends.store.database import Transaction
from kalends.store.sql import Sql, join

# Columns that are derived from others. If only these differ, the record counts as unchanged and nothing is logged.
DERIVED_COLUMNS: Final = {"search_text", "is_free", "name_folded", "start_utc", "end_utc"}
# Columns that can change even if a write changes only the status.
STATUS_COLUMNS: Final = {
    *("status", "trashed_status", "trashed_at", "published_at", "slug", "revision", "sequence", "modified_utc"),
    *("own_fields", "series_id", "slot"),
}


async def add_record(
    kind: Kind,
    context: OperationContext,
    arguments: Mapping[str, Any],
    links: Links = NO_LINKS,
    *,
    record_id: int | None = None,
    columns: Values | None = None,
) -> int:
    """Add a record and return its ID. The caller must check permissions first.

    An import passes a free ID, and columns that override the values derived from the arguments.
    """
    tx = context.transaction
    await count_new_record(context)
    arguments = await resolve_image_url(context, arguments)
    record_id = tx.changes.take_post_id(record_id) if kind.is_post else tx.changes.take_term_id(record_id)
    values = await kind.writes.to_columns(build_write_context(context, arguments, None, record_id))
    values.update(columns or {})
    revision = log_new_record(kind, tx, record_id, values, links)
    await record_tables.add(tx, kind.name, {"id": record_id, "revision": revision, **values})
    for link, ids in links.items():
        await add_links(tx, link.table, link.column, [record_id], ids)
    await _schedule(kind, tx, record_id, values, {**values})
    return record_id


async def change_record(
    kind: Kind, context: OperationContext, row: Row, arguments: Mapping[str, Any], links: Links = NO_LINKS
) -> Row | None:
    """Write the columns and links that differ. Return the new row, or None if the caller must read it again."""
    arguments = await resolve_image_url(context, arguments)
    values = await kind.writes.to_columns(build_write_context(context, arguments, row, row["id"]))
    return await write_changes(kind, context.transaction, row, values, links)


async def write_changes(kind: Kind, tx: Transaction, row: Row, values: Values, links: Links = NO_LINKS) -> Row | None:
    """Write changes and their consequences. Return the new row, or None if the caller must read it again."""
    cause: int | None = None
    in_series = kind.is_event and row["series_id"] is not None
    if in_series:
        own_values, cause = await follow_single_write(tx, row, values, links)
        values = {**values, **own_values}
    change = plan(kind, tx, row, values, links, cause=cause)
    if change is None:
        # Storing a new file for the image's URL may have changed the record.
        return None if in_series or tx.has_written else row
    await write(kind, tx, [change])
    if kind.writes.after_update is not None:
        await kind.writes.after_update(tx, row, change.values)
    await _schedule(kind, tx, row["id"], change.values, change.row_after)
    needs_reading = in_series or change.links or kind.writes.after_update is not None
    return None if needs_reading else change.written


async def remove_record(kind: Kind, tx: Transaction, row: Row) -> None:
    """Delete a record permanently. Record a change for each event that thereby loses a link."""
    if kind.is_event and row["series_id"] is not None:
        await leave_out_deleted(tx, row)
    for link in (link for other in KINDS for link in other.links if link.kind == kind.name):
        await record_linked_event_changes(tx, link.table, link.column, row["id"])
    tx.changes.record(kind.name, row["id"], "delete", was_public=permissions.is_public(row))
    await record_tables.remove(tx, kind.name, row["id"])


def build_write_context(
    context: OperationContext, arguments: Mapping[str, Any], row: Row | None, record_id: int
) -> WriteContext:
    if context.actor.user_id is None:
        raise AssertionError("a write without a writer")
    permissions.require_author_right(context.actor, arguments.get("author"))
    return WriteContext(
        transaction=context.transaction,
        arguments=arguments,
        row=row,
        record_id=record_id,
        user_id=context.actor.user_id,
        may_publish=permissions.may_publish(context.actor),
    )


async def _schedule(kind: Kind, tx: Transaction, record_id: int, changed: Values, current: Mapping[str, Any]) -> None:
    """Enqueue the job that publishes a scheduled record, in the same transaction."""
    if current.get("status") == "future" and {"status", "published_at"} & set(changed):
        await job_queue.enqueue(
            tx, job_queue.Task.PUBLISH, {"kind": kind.name, "record_id": record_id}, run_at=current["published_at"]
        )


# Change one or many records: log the changes first, then write the rows.


@dataclass(slots=True)
class PlannedChange:
    """Changed columns and links that are logged, but not yet written to the row."""

    row: Row
    values: Values
    links: Links
    written: Row | None = None  # the row after a single change, but with its former links

    @property
    def row_after(self) -> dict[str, Any]:
        return {**self.row, **self.values, **link_columns(self.links)}


def plan(
    kind: Kind, tx: Transaction, row: Row, values: Values, links: Links = NO_LINKS, *, cause: int | None = None
) -> PlannedChange | None:
    """Log a change and return what to write, or None if nothing differs.

    `cause` is the revision of a series change.
    """
    changed: Values = {name: value for name, value in values.items() if name not in row or row[name] != value}
    relinked = {link: ids for link, ids in links.items() if row[f"{link.column}s"] != ids}
    if not set(changed) - DERIVED_COLUMNS and not relinked:
        return None
    logged = _list_logged(changed, relinked)
    changed["revision"] = tx.changes.record(
        kind.name,
        row["id"],
        choose_action(row, changed),
        before=encode_columns({name: row[name] for name in logged if name in row}),
        after=encode_columns(logged),
        was_public=permissions.is_public(row),
        cause=cause,
    )
    if kind.writes.sequence_columns & {*changed, *logged}:
        changed["sequence"] = changed["revision"]
    if "modified_utc" in row and "modified_utc" not in values:
        changed["modified_utc"] = tx.now
    if kind.is_event:
        changed.update(_withdraw(tx, row, changed, is_relinked=bool(relinked)))
    return PlannedChange(row, changed, relinked)


async def write(kind: Kind, tx: Transaction, planned: Iterable[PlannedChange | None]) -> list[PlannedChange]:
    """Write planned changes, with few statements even for many events. Return the changes that are not None."""
    changes = [change for change in planned if change is not None]
    former_slugs = {
        str(change.row["slug"]): int(change.row["id"])
        for change in changes
        if "slug" in change.values and permissions.is_published(change.row)
    }
    if len(changes) == 1:
        (change,) = changes
        change.written = await record_tables.change(
            tx, kind.name, change.row["id"], change.values, kind.reads.columns.sql
        )
        for slug, record_id in former_slugs.items():
            await record_tables.add_redirect(tx, kind.name, slug, record_id)
    elif changes:
        await update_events(tx, {change.row["id"]: change.values for change in changes})
        if former_slugs:
            await record_tables.add_redirects(tx, kind.name, former_slugs)
    groups: dict[tuple[Link, tuple[int, ...]], list[int]] = {}
    for change in changes:
        for link, ids in change.links.items():
            groups.setdefault((link, tuple(ids)), []).append(change.row["id"])
    for (link, linked_ids), event_ids in groups.items():
        await replace_links(tx, link.table, link.column, event_ids, list(linked_ids))
    return changes


def log_new_record(
    kind: Kind, tx: Transaction, record_id: int, values: Values, links: Links, *, cause: int | None = None
) -> int:
    """Log a new record and return its revision."""
    after = encode_columns(_list_logged(values, links))
    return tx.changes.record(kind.name, record_id, "create", after=after, cause=cause)


def _list_logged(values: Values, links: Links) -> dict[str, Any]:
    return {**{name: values[name] for name in values if name not in DERIVED_COLUMNS}, **link_columns(links)}


def _withdraw(tx: Transaction, row: Row, changed: Values, *, is_relinked: bool) -> Values:
    """Return `withdrawn_at`, the time when a public event was withdrawn, if a write changes it.

    For a while, feeds announce a withdrawn event as cancelled, and filters still match it. Clear the column if
    anything but the status changes during or after the withdrawal, because the new data was never public. An event
    that is merely hidden from lists is not withdrawn: it still takes place.
    """
    was_published, is_published = permissions.is_published(row), permissions.is_published({**row, **changed})
    if is_published:
        return {} if was_published else {"withdrawn_at": None}
    # The suffix for trashed records does not make a slug new.
    has_new_slug = "slug" in changed and strip_trashed_suffix(str(changed["slug"])) != row["slug"]
    if is_relinked or has_new_slug or set(changed) - DERIVED_COLUMNS - STATUS_COLUMNS:
        return {"withdrawn_at": None}
    return {"withdrawn_at": tx.now} if was_published else {}


# Publishing an event also publishes its venues and organizers, as in The Events Calendar.


async def publish_with_event(tx: Transaction, actor: Actor, kind: Kind, record_id: int) -> None:
    """Publish or schedule the linked drafts of a saved event, if the actor may publish them.

    If the event is scheduled, its drafts are scheduled for the same date. Their status records the actor's consent:
    contributors cannot edit scheduled records, and a record that is changed back to a draft is not published. Private
    records stay private, and trashed records stay in the trash.
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
    """Return the event if it is published or scheduled and has linked drafts."""
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
    """Publish the records that were scheduled together with an event, in the event's transaction."""
    actor = Actor(event["author_id"], "editor")
    condition = Sql("r.status = 'future' AND r.published_at <= ?", tx.now)
    await _publish_linked(tx, actor, event["id"], condition, tx.now)


async def _publish_linked(tx: Transaction, actor: Actor, event_id: int, condition: Sql, date: datetime) -> None:
    """Publish the linked records that meet a condition, in the event's order."""
    for link in EVENTS.links:
        kind = BY_NAME[link.kind]
        if kind.is_post:
            rows = await tx.fetch_all(
                Sql("SELECT " + kind.reads.columns.sql + " FROM " + link.table + " l JOIN " + kind.name + " r")
                + Sql("ON r.site_id = l.site_id AND r.id = l." + link.column)
                + Sql("WHERE l.site_id = ? AND l.event_id = ? AND", tx.site.id, event_id)
                + condition
                + Sql("ORDER BY l.position")
            )
            for row in rows:
                await _publish(tx, actor, kind, row, date)


async def _publish(tx: Transaction, actor: Actor, kind: Kind, row: Row, date: datetime) -> None:
    """Publish a record, or schedule it if `date` is in the future. Keep a publication date that is in the past."""
    arguments: dict[str, object] = {"status": "publish"}
    if row["published_at"] > tx.now or date > tx.now:
        arguments["date_utc"] = DateTimeInput(date.replace(tzinfo=None), timedelta(0), False)
    user_id = actor.user_id or row["author_id"]
    context = WriteContext(tx, arguments, row, row["id"], user_id, may_publish=True)
    await write_changes(kind, tx, row, await kind.writes.to_columns(context))

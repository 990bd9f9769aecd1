"""Adding, changing and deleting one record: its columns, its links and its entry in the change log."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kalends.kinds import KINDS
from kalends.kinds.kind import Kind, Link, Values, WriteContext
from kalends.kinds.posts import strip_trashed_suffix
from kalends.operations import permissions
from kalends.operations.context import OperationContext
from kalends.operations.media.images import resolve_image_url
from kalends.operations.quotas import count_new_record
from kalends.operations.series.single import follow_single_write, leave_out_deleted
from kalends.store import Row, jobs, records, slug_redirects
from kalends.store.change_log import Action
from kalends.store.database import Transaction
from kalends.store.history import encode_columns
from kalends.store.links import record_linked_event_changes, replace_links

# Derived from other columns; a difference in these alone is not a change and has no history.
DERIVED_COLUMNS: Final = {"search_text", "name_folded", "start_utc", "end_utc"}
# Columns that a change of the status alone also changes.
STATUS_COLUMNS: Final = {
    *("status", "trashed_status", "trashed_at", "published_at", "slug", "revision", "sequence", "modified_utc"),
    *("own_fields", "series_id", "slot"),
}


async def add_record(
    kind: Kind,
    context: OperationContext,
    arguments: Mapping[str, Any],
    links: Mapping[Link, list[int]] | None = None,
    *,
    record_id: int | None = None,
    columns: Values | None = None,
) -> int:
    """Add a record and return its ID. The caller checks the permission.

    An import gives the ID, which must be free, and columns that replace those that the arguments lead to.
    """
    tx, links = context.transaction, links or {}
    await count_new_record(context)
    arguments = await resolve_image_url(context, arguments)
    record_id = tx.changes.take_post_id(record_id) if kind.is_post else tx.changes.take_term_id(record_id)
    values = await kind.writes.to_columns(build_write_context(context, arguments, None, record_id))
    values.update(columns or {})
    revision = log_new_record(kind, tx, record_id, values, links)
    await records.add(tx, kind.name, {"id": record_id, "revision": revision, **values})
    for link, ids in links.items():
        await replace_links(tx, link.table, link.column, [record_id], ids)
    await _schedule(kind, tx, record_id, values, {**values})
    return record_id


def log_new_record(
    kind: Kind,
    tx: Transaction,
    record_id: int,
    values: Values,
    links: Mapping[Link, list[int]],
    *,
    cause: int | None = None,
) -> int:
    """Log a new record and return its revision."""
    after = encode_columns({**_logged_columns(values), **{f"{link.column}s": ids for link, ids in links.items()}})
    return tx.changes.record(kind.name, record_id, "create", after=after, cause=cause)


async def change_record(
    kind: Kind,
    context: OperationContext,
    row: Row,
    arguments: Mapping[str, Any],
    links: Mapping[Link, list[int]] | None = None,
) -> None:
    """Change the columns and links that differ from the row; write nothing if none do."""
    values = await kind.writes.to_columns(
        build_write_context(context, await resolve_image_url(context, arguments), row, row["id"])
    )
    await write_changes(kind, context.transaction, row, values, links or {})


@dataclass(frozen=True, slots=True)
class PreparedChange:
    """A change that is in the log but not yet written to its row."""

    row: Row
    changed: Values
    relinked: Mapping[Link, list[int]]


async def write_changes(
    kind: Kind, tx: Transaction, row: Row, values: Values, links: Mapping[Link, list[int]]
) -> None:
    """Write the columns and links that differ from the row, with its consequences; write nothing if none do."""
    cause: int | None = None
    if kind.is_event and row["series_id"] is not None:
        own_values, cause = await follow_single_write(tx, row, values, links)
        values = {**values, **own_values}
    change = prepare_change(kind, tx, row, values, links, cause=cause)
    if change is None:
        return
    changed = change.changed
    await records.change(tx, kind.name, row["id"], changed)
    if "slug" in changed and permissions.is_published(row):
        await slug_redirects.add_redirect(tx, kind.name, row["slug"], row["id"])
    for link, ids in change.relinked.items():
        await replace_links(tx, link.table, link.column, [row["id"]], ids)
    if kind.writes.after_update is not None:
        await kind.writes.after_update(tx, row, changed)
    await _schedule(kind, tx, row["id"], changed, {**row, **changed})


def prepare_change(
    kind: Kind,
    tx: Transaction,
    row: Row,
    values: Values,
    links: Mapping[Link, list[int]],
    *,
    cause: int | None = None,
) -> PreparedChange | None:
    """Log the change of a record and return what to write; None if nothing differs.

    `cause` is the revision of the change of a series that this one follows from.
    """
    changed: Values = {name: value for name, value in values.items() if name not in row or row[name] != value}
    relinked = {link: ids for link, ids in links.items() if row[f"{link.column}s"] != ids}
    if not set(changed) - DERIVED_COLUMNS and not relinked:
        return None
    logged = _logged_columns(changed)
    before = {name: row[name] for name in logged if name in row}
    for link, ids in relinked.items():
        before[f"{link.column}s"], logged[f"{link.column}s"] = row[f"{link.column}s"], ids
    changed["revision"] = tx.changes.record(
        kind.name,
        row["id"],
        _choose_action(row, changed),
        before=encode_columns(before),
        after=encode_columns(logged),
        was_public=permissions.is_public(row),
        cause=cause,
    )
    if kind.writes.sequence_columns & {*changed, *[f"{link.column}s" for link in relinked]}:
        changed["sequence"] = changed["revision"]
    if "modified_utc" in row and "modified_utc" not in values:
        changed["modified_utc"] = tx.now
    if kind.is_event:
        changed.update(_withdrawn_at(tx, row, changed, relinked=bool(relinked)))
    return PreparedChange(row, changed, relinked)


def _withdrawn_at(tx: Transaction, row: Row, changed: Values, *, relinked: bool) -> Values:
    """Return the column for the time since which a formerly public event is withdrawn.

    Feeds announce such an event as cancelled for a while, with the times, texts and links that were public. A write
    that withdraws an event and also rewrites it, or rewrites it later, therefore clears the column. An event that is
    only hidden from lists still takes place, as its page shows, so it is not withdrawn.
    """
    was_published, is_published = permissions.is_published(row), permissions.is_published({**row, **changed})
    if is_published:
        return {} if was_published else {"withdrawn_at": None}
    is_rewritten = relinked or bool(set(changed) - DERIVED_COLUMNS - STATUS_COLUMNS) or _has_new_slug(row, changed)
    if is_rewritten:
        return {"withdrawn_at": None}
    return {"withdrawn_at": tx.now} if was_published else {}


def _has_new_slug(row: Row, changed: Values) -> bool:
    """Return whether the slug changes, apart from the suffix that the trash adds."""
    return "slug" in changed and strip_trashed_suffix(str(changed["slug"])) != row["slug"]


async def remove_record(kind: Kind, tx: Transaction, row: Row) -> None:
    """Delete a record permanently, and record a change for each event that loses a link."""
    if kind.is_event and row["series_id"] is not None:
        await leave_out_deleted(tx, row)
    for link in (link for other in KINDS for link in other.links if link.kind == kind.name):
        await record_linked_event_changes(tx, link.table, link.column, row["id"])
    tx.changes.record(kind.name, row["id"], "delete", was_public=permissions.is_public(row))
    await records.remove(tx, kind.name, row["id"])


async def _schedule(kind: Kind, tx: Transaction, record_id: int, changed: Values, current: Mapping[str, Any]) -> None:
    """Enqueue the job that publishes a scheduled record, in the same transaction."""
    if current.get("status") == "future" and {"status", "published_at"} & set(changed):
        await jobs.enqueue(
            tx, jobs.Task.PUBLISH, {"kind": kind.name, "record_id": record_id}, run_at=current["published_at"]
        )


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


def _logged_columns(values: Values) -> dict[str, Any]:
    """Return the columns of a write that go into the change log."""
    return {name: value for name, value in values.items() if name not in DERIVED_COLUMNS}


def _choose_action(row: Row, changed: Values) -> Action:
    if "status" not in changed:
        return "update"
    if changed["status"] == "trash":
        return "trash"
    return "restore" if row["status"] == "trash" else "update"

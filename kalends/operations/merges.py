"""Merging a venue, organizer, category or tag into another one of its kind."""

from typing import Any, Final

from kalends.core import errors, params
from kalends.core.params import param
from kalends.kinds import BY_NAME
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Kind, Link
from kalends.operations import permissions
from kalends.operations.context import OperationContext, Outcome
from kalends.operations.records import fetch_editable_row, read_outcome, remove_term
from kalends.operations.writes import change_record
from kalends.store import Row, link_moves, series, slug_redirects
from kalends.store.link_moves import LinkMove
from kalends.store.sql import Sql

INTO: Final = param("into", params.integer(minimum=1), "The ID of the record that gets the events", required=True)
# Events that one transaction moves. All other writes of the site wait for it, about a second on a busy machine.
BATCH_SIZE: Final = 1000
# Events that the record may have, so that the request of a browser does not take minutes.
MAX_EVENTS: Final = 30_000


def find_link(kind: Kind) -> Link:
    """Return the link from events to records of a kind."""
    return next(link for link in EVENTS.links if BY_NAME[link.kind] is kind)


async def merge_record(kind: Kind, context: OperationContext) -> Outcome | None:
    """Move the events of a record to the one in `into`, to which its public addresses redirect from then on.

    The record itself goes to the trash; a term is deleted. The caller has locked the site, and calls this again, in a
    new transaction, while it returns None: some events have moved, others have not yet.
    """
    permissions.require_role(context.actor, permissions.EDITOR)
    row = await fetch_editable_row(kind, context)
    target = await _fetch_target(kind, context, row)
    tx, link = context.transaction, find_link(kind)
    await _check_size(context, link, row["id"])
    # The links move first: a venue that has lost its events is trashed without updating each of them again.
    move = LinkMove(link.table, link.column, row["id"], target["id"])
    if await link_moves.move_links(tx, move, BATCH_SIZE) == BATCH_SIZE:
        return None
    await series.replace_linked_ids(tx, f"{link.column}s", row["id"], target["id"])
    if kind.is_post:
        await change_record(kind, context, row, {"status": "trash"})
    else:
        await remove_term(kind, context, row, await _choose_parent(kind, context, row, target))
    await _redirect(kind, context, row, target["id"])
    return await read_outcome(kind, context, target["id"])


async def _check_size(context: OperationContext, link: Link, record_id: int) -> None:
    count = await link_moves.count_links(context.transaction, link.table, link.column, record_id)
    if count > MAX_EVENTS:
        raise errors.invalid("into", "must not get more than {maximum} events at once.", maximum=MAX_EVENTS)


async def _fetch_target(kind: Kind, context: OperationContext, row: Row) -> Row:
    """Return the row of the record in `into`; raise unless the record in the path can be merged into it."""
    target_id: int = context.values["into"]
    if kind.is_post and row["status"] == "trash":
        raise errors.in_trash(kind.singular)
    if target_id == row["id"]:
        raise errors.invalid("into", "must be another record.")
    tx = context.transaction
    target = await tx.fetch_one(kind.select(Sql("r.site_id = ? AND r.id = ?", tx.site.id, target_id)))
    if target is None or (kind.is_post and target["status"] == "trash"):
        raise errors.unknown_ids("into", kind.name, str(target_id))
    if permissions.is_published(row) and not permissions.is_published(target):
        raise errors.invalid(
            "into", "must be published, because the events and addresses of a published record move."
        )
    return target


async def _choose_parent(kind: Kind, context: OperationContext, row: Row, target: Row) -> int | None:
    """Return the new parent of the children: the target, unless it is below the record itself."""
    if not kind.is_nested:
        return None
    tx = context.transaction
    is_below: Any = await tx.fetch_value(
        Sql(
            """
            WITH RECURSIVE line (id, parent) AS (
                SELECT id, parent FROM categories WHERE site_id = ? AND id = ?
                UNION
                SELECT c.id, c.parent FROM categories c JOIN line ON c.site_id = ? AND c.id = line.parent
            )
            SELECT true FROM line WHERE id = ?
            """,
            tx.site.id,
            target["id"],
            tx.site.id,
            row["id"],
        )
    )
    parent: int | None = row["parent"] if is_below else target["id"]
    return parent


async def _redirect(kind: Kind, context: OperationContext, row: Row, target_id: int) -> None:
    """Redirect the current address and the ID of the record, if it was public, and all former ones."""
    tx = context.transaction
    await slug_redirects.move_redirects(tx, kind.name, row["id"], target_id)
    if permissions.is_published(row):
        await slug_redirects.add_redirect(tx, kind.name, row["slug"], target_id)
        await slug_redirects.add_redirect(tx, kind.name, slug_redirects.id_key(row["id"]), target_id)

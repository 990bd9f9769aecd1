"""Support for console forms: drafts of unsaved input, bulk changes, and merging records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Kind, Link
from kalends.calendar.operations.record_verbs import fetch_active_row, read_outcome, remove_term
from kalends.calendar.operations.writes import change_record
from kalends.calendar.storage import form_drafts, record_tables
from kalends.calendar.storage.record_tables import LinkMove
from kalends.core import errors, params
from kalends.core.errors import InvalidValue
from kalends.core.html_text import to_plain_text
from kalends.core.params import param, read_integer
from kalends.series import storage as series_storage
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql

MAX_PAIRS: Final = 1000
MAX_CHARACTERS: Final = 400_000
# Drafts must not contain passwords.
LEFT_OUT: Final = frozenset(["new_password"])


async def save_draft(tx: Transaction, user_id: int, kind: str, key: str, values: Mapping[str, Any]) -> None:
    """Store a form's fields, as pairs, and the revision it is based on. The record does not change."""
    pairs = _read_pairs(values.get("fields"))
    revision = _read_revision(values.get("base_revision"))
    if await form_drafts.save_draft(tx, user_id, kind, key, base_revision=revision, pairs=pairs):
        await form_drafts.remove_oldest(tx, user_id, kind)


def _read_pairs(value: object) -> list[tuple[str, str]]:
    if not isinstance(value, list) or len(value) > MAX_PAIRS:  # pyright: ignore[reportUnknownArgumentType]
        raise errors.invalid("fields", "must be a list of pairs.")
    pairs: list[tuple[str, str]] = []
    for entry in value:  # pyright: ignore[reportUnknownVariableType]
        match entry:
            case [str(name), str(text)] if "\0" not in name + text:
                pairs.append((name, text))
            case _:
                raise errors.invalid("fields", "must be a list of pairs.")
    if sum(len(name) + len(text) for name, text in pairs) > MAX_CHARACTERS:
        raise errors.draft_too_long(MAX_CHARACTERS)
    return [(name, text) for name, text in pairs if name not in LEFT_OUT]


def _read_revision(value: object) -> int | None:
    if value in (None, ""):
        return None
    try:
        return read_integer(value)
    except InvalidValue as error:
        raise errors.invalid_params({"base_revision": errors.for_param("base_revision", error.message)}) from error


# Bulk changes: the selected events, and the changed events to undo ----------------------------

MAX_EVENTS: Final = 500


@dataclass(frozen=True, slots=True)
class Target:
    id: int
    revision: int


@dataclass(frozen=True, slots=True)
class SelectedEvent:
    title: str
    category_ids: tuple[int, ...]
    tag_ids: tuple[int, ...]
    start: datetime  # in the time zone of the event
    end: datetime
    all_day: bool


async def read_selected(context: OperationContext, targets: Sequence[Target]) -> dict[int, SelectedEvent]:
    """Return the events that the user may read, by ID, in the given order."""
    rows = await context.transaction.fetch_all(
        Sql(
            """SELECT r.id, r.title, r.start_local, r.end_local, r.all_day,
                ARRAY(SELECT l.category_id FROM event_categories l
                    WHERE l.site_id = r.site_id AND l.event_id = r.id ORDER BY l.position) AS category_ids,
                ARRAY(SELECT l.tag_id FROM event_tags l
                    WHERE l.site_id = r.site_id AND l.event_id = r.id ORDER BY l.position) AS tag_ids
                FROM events r WHERE r.site_id = ? AND r.id = ANY(?) AND""",
            context.transaction.site.id,
            [target.id for target in targets],
        )
        + permissions.readable_condition(context.actor)
    )
    found = {
        row["id"]: SelectedEvent(
            to_plain_text(row["title"]),
            *(tuple(row["category_ids"]), tuple(row["tag_ids"])),
            *(row["start_local"], row["end_local"], row["all_day"]),
        )
        for row in rows
    }
    return {target.id: found[target.id] for target in targets if target.id in found}


async def find_changed(context: OperationContext, first: int, last: int) -> list[Target]:
    """Return the events that this user changed between two revisions, with their latest revisions in between."""
    rows = await context.transaction.fetch_all(
        Sql(
            """SELECT record_id, max(revision) AS revision FROM changes WHERE site_id = ? AND kind = 'events'
                AND user_id = ? AND revision > ? AND revision <= ? GROUP BY record_id ORDER BY 2 LIMIT ?""",
            *(context.transaction.site.id, context.actor.user_id, first, last, MAX_EVENTS),
        )
    )
    return [Target(row["record_id"], row["revision"]) for row in rows]


# Merging a venue, organizer, category or tag into another one --------------------------------

INTO: Final = param("into", params.integer(minimum=1), "The ID of the record that gets the events", required=True)
# Number of events to move per transaction, while other writes to the site wait. It takes about a second on a busy
# machine.
BATCH_SIZE: Final = 1000
# Maximum number of events to move in a merge. Moving more would take minutes.
MAX_MERGED_EVENTS: Final = 30_000


def find_link(kind: Kind) -> Link:
    return next(link for link in EVENTS.links if BY_NAME[link.kind] is kind)


async def merge_record(kind: Kind, context: OperationContext) -> Outcome | None:
    """Move the events of the record in the path to the record in `into`, and redirect the public URLs.

    The record itself goes to the trash; a term is deleted. The caller must lock the site first. None means that some
    events remain, and the caller must call again in a new transaction.
    """
    permissions.require_role(context.actor, permissions.EDITOR)
    row = await fetch_active_row(kind, context)
    target = await _fetch_target(kind, context, row)
    tx, link = context.transaction, find_link(kind)
    count = await record_tables.count_links(tx, link.table, link.column, row["id"])
    if count > MAX_MERGED_EVENTS:
        raise errors.invalid("into", "must not get more than {maximum} events at once.", maximum=MAX_MERGED_EVENTS)
    # Move the links first, because trashing a venue with events would update each of these events a second time.
    move = LinkMove(link.table, link.column, row["id"], target["id"])
    if await record_tables.move_links(tx, move, BATCH_SIZE) == BATCH_SIZE:
        return None
    await series_storage.replace_linked_ids(tx, f"{link.column}s", row["id"], target["id"])
    if kind.is_post:
        await change_record(kind, context, row, {"status": "trash"})
    else:
        await remove_term(kind, context, row, await _choose_parent(kind, context, row, target))
    await record_tables.move_redirects(tx, kind.name, row["id"], target["id"])
    if permissions.is_published(row):
        await record_tables.add_redirect(tx, kind.name, row["slug"], target["id"])
        await record_tables.add_redirect(tx, kind.name, record_tables.id_key(row["id"]), target["id"])
    return await read_outcome(kind, context, target["id"])


async def _fetch_target(kind: Kind, context: OperationContext, row: Row) -> Row:
    """Return the row of the record in `into`. Raise unless the record in the path can be merged into it."""
    target_id: int = context.values["into"]
    if target_id == row["id"]:
        raise errors.invalid("into", "must be another record.")
    target = await kind.fetch(context.transaction, target_id)
    if target is None or (kind.is_post and target["status"] == "trash"):
        raise errors.unknown_ids("into", kind.name, str(target_id))
    if permissions.is_published(row) and not permissions.is_published(target):
        raise errors.invalid(
            "into", "must be published, because the events and addresses of a published record move."
        )
    return target


async def _choose_parent(kind: Kind, context: OperationContext, row: Row, target: Row) -> int | None:
    """Return the new parent for the children: the target, unless the target is below the record itself."""
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
            *(tx.site.id, target["id"], tx.site.id, row["id"]),
        )
    )
    parent: int | None = row["parent"] if is_below else target["id"]
    return parent

"""Changes of many events in one transaction, with a result for each event, and undoing them.

A bulk change holds the lock of the site, so its revisions follow each other without gaps: the revisions before and
after it identify it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kalends.core.errors import ApiError
from kalends.core.html.sanitize import to_plain_text
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Kind
from kalends.operations import permissions
from kalends.operations.context import OperationContext, Outcome
from kalends.operations.history import restore_record
from kalends.store import Row
from kalends.store.sql import Sql

MAX_EVENTS: Final = 500
Operation = Callable[[Kind, OperationContext], Awaitable[Outcome]]
# Returns the parameters of the change of an event, from its current row.
MakeValues = Callable[[Row], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Target:
    """An event, and the revision that it must still have."""

    id: int
    revision: int


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """The result for one event: an error, or none if it was changed. The title is empty if it may not be read."""

    id: int
    title: str
    error: ApiError | None = None


@dataclass(frozen=True, slots=True)
class BulkOutcome:
    """The results, and the revisions of the site before and after the change."""

    results: tuple[ChangeResult, ...]
    first: int
    last: int

    @property
    def failures(self) -> list[ChangeResult]:
        return [result for result in self.results if result.error is not None]


async def change_events(
    context: OperationContext, operation: Operation, targets: Sequence[Target], make_values: MakeValues
) -> BulkOutcome:
    """Run an operation on each event, if it still has its revision. An error undoes only the change of its event."""
    tx = context.transaction
    await tx.lock_site(context.actor.user_id)
    first = tx.changes.revision
    rows = await _fetch_readable(context, [target.id for target in targets])
    results = [
        await _change_event(context, operation, target, rows.get(target.id), make_values) for target in targets
    ]
    return BulkOutcome(tuple(results), first, tx.changes.revision)


async def _change_event(
    context: OperationContext, operation: Operation, target: Target, row: Row | None, make_values: MakeValues
) -> ChangeResult:
    title = to_plain_text(row["title"]) if row else ""
    one = replace(context, record_id=target.id, if_match=frozenset([target.revision]))
    try:
        async with context.transaction.savepoint():
            await operation(EVENTS, replace(one, values=make_values(row) if row else {}))
    except ApiError as error:
        return ChangeResult(target.id, title, error)
    return ChangeResult(target.id, title)


async def _fetch_readable(context: OperationContext, ids: list[int]) -> dict[int, Row]:
    rows = await context.transaction.fetch_all(
        Sql(
            """SELECT r.id, r.title, ARRAY(SELECT l.category_id FROM event_categories l
                    WHERE l.site_id = r.site_id AND l.event_id = r.id ORDER BY l.position) AS category_ids
                FROM events r WHERE r.site_id = ? AND r.id = ANY(?) AND""",
            context.transaction.site.id,
            ids,
        )
        + permissions.readable_condition(context.actor)
    )
    return {row["id"]: row for row in rows}


async def list_titles(context: OperationContext, targets: Sequence[Target]) -> list[str]:
    """Return the titles of the events that the user may read, in the given order."""
    rows = await _fetch_readable(context, [target.id for target in targets])
    return [to_plain_text(rows[target.id]["title"]) for target in targets if target.id in rows]


async def find_changed(context: OperationContext, first: int, last: int) -> list[Target]:
    """Return the events that a bulk change of this user has changed, with the revisions that it gave them."""
    rows = await context.transaction.fetch_all(
        Sql(
            """SELECT record_id, max(revision) AS revision FROM changes WHERE site_id = ? AND kind = 'events'
                AND user_id = ? AND revision > ? AND revision <= ? GROUP BY record_id ORDER BY 2 LIMIT ?""",
            context.transaction.site.id,
            context.actor.user_id,
            first,
            last,
            MAX_EVENTS,
        )
    )
    return [Target(row["record_id"], row["revision"]) for row in rows]


async def undo_changes(context: OperationContext, first: int, last: int) -> BulkOutcome:
    """Restore the events of a bulk change to the revision before it. Events that were changed since stay."""
    targets = await find_changed(context, first, last)
    return await change_events(context, restore_record, targets, lambda _: {"revision": first})

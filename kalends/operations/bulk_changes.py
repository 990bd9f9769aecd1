"""Events that one user changes together: reading them before, and finding them again to undo the change.

The user, and the revisions of the site before and after a bulk change, identify it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kalends.core.html.sanitize import to_plain_text
from kalends.operations import permissions
from kalends.operations.context import OperationContext
from kalends.store.sql import Sql

MAX_EVENTS: Final = 500


@dataclass(frozen=True, slots=True)
class Target:
    """An event, and the revision that it must still have."""

    id: int
    revision: int


@dataclass(frozen=True, slots=True)
class SelectedEvent:
    """The parts of an event that a bulk change needs."""

    title: str
    category_ids: tuple[int, ...]


async def read_selected(context: OperationContext, targets: Sequence[Target]) -> dict[int, SelectedEvent]:
    """Return the events that the user may read, by ID, in the given order."""
    rows = await context.transaction.fetch_all(
        Sql(
            """SELECT r.id, r.title, ARRAY(SELECT l.category_id FROM event_categories l
                    WHERE l.site_id = r.site_id AND l.event_id = r.id ORDER BY l.position) AS category_ids
                FROM events r WHERE r.site_id = ? AND r.id = ANY(?) AND""",
            context.transaction.site.id,
            [target.id for target in targets],
        )
        + permissions.readable_condition(context.actor)
    )
    found = {row["id"]: SelectedEvent(to_plain_text(row["title"]), tuple(row["category_ids"])) for row in rows}
    return {target.id: found[target.id] for target in targets if target.id in found}


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

"""The records in the trash that a user may restore."""

from kalends.kinds import KINDS
from kalends.kinds.kind import Actor, Kind
from kalends.operations import permissions
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql

MAX_ROWS = 200  # of each kind; older ones follow when these are restored or deleted


async def list_trash(tx: Transaction, actor: Actor) -> list[tuple[Kind, Row]]:
    """Return the records in the trash that the user may edit, the latest first."""
    found: list[tuple[Kind, Row]] = []
    for kind in KINDS:
        if kind.is_post:
            found += [(kind, row) for row in await tx.fetch_all(_select_trash(tx, actor, kind))]
    return sorted(found, key=lambda entry: entry[1]["trashed_at"], reverse=True)


def _select_trash(tx: Transaction, actor: Actor, kind: Kind) -> Sql:
    return (
        Sql(
            "SELECT r.id, r.title, r.trashed_at, r.trashed_status FROM " + kind.name + " r WHERE r.site_id = ?",
            tx.site.id,
        )
        + Sql("AND r.status = 'trash' AND")
        + permissions.editable_condition(actor)
        + Sql("ORDER BY r.trashed_at DESC, r.id LIMIT ?", MAX_ROWS)
    )

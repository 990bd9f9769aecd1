"""The history of any post, as the operator reads it with a command."""

from typing import Any

from kalends.core.errors import InvalidValue
from kalends.kinds import KINDS
from kalends.operations.history import serialize_change
from kalends.store import history
from kalends.store.database import Transaction


async def read_history(tx: Transaction, kind_name: str, record_id: int) -> list[dict[str, Any]]:
    """Return the changes of a post, newest first. The kind may be in the singular or the plural."""
    posts = [kind for kind in KINDS if kind.is_post]
    kind = next((kind for kind in posts if kind_name.lower() in (kind.singular, kind.name)), None)
    if kind is None:
        allowed = ", ".join(kind.singular for kind in posts)
        raise InvalidValue(f"KIND must be one of {allowed}.")
    rows = await history.list_record_changes(tx, kind.name, record_id, limit=1000)
    if not rows:
        raise InvalidValue(f"There is no {kind.singular} {record_id}, or its history has expired.")
    return [serialize_change(kind, row) for row in rows]

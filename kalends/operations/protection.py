"""Events behind a password: who is shown what (behaviour 6.3)."""

from asyncpg import Record

from kalends.core import secrets
from kalends.kinds.events import hash_event_password
from kalends.operations import permissions
from kalends.operations.call import Call


def is_shut(call: Call, row: Record, *, by_list: bool) -> bool:
    """Whether this event is protected and neither its password nor the right to edit it opens it."""
    stored = row.get("password_hash")
    if stored is None:
        return False
    offered = call.values.get("password")
    if offered and secrets.same(stored, hash_event_password(call.transaction.site.secret, offered)):
        return False
    return by_list or call.values.get("context") != "edit" or not permissions.may_edit(call.actor, row)

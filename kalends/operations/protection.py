"""Events behind a password: who is shown what (behaviour 6.3), and how guessing is slowed down."""

from asyncpg import Record

from kalends.core import errors, secrets
from kalends.core.throttle import Limit, Throttle
from kalends.kinds.events import hash_event_password
from kalends.operations import permissions
from kalends.operations.call import Call

# Wrong tries per client, then one every so many seconds. Kept by each process for itself: the
# passwords of events are shared among readers, and the limit only has to make a search hopeless.
GUESSES = Throttle(Limit(burst=20, seconds=6))


def is_shut(call: Call, row: Record, *, by_list: bool) -> bool:
    """Whether this event is protected and neither its password nor the right to edit it opens it."""
    stored = row.get("password_hash")
    if stored is None:
        return False
    if _is_password(call, stored):
        return False
    return by_list or call.values.get("context") != "edit" or not permissions.may_edit(call.actor, row)


def _is_password(call: Call, stored: bytes) -> bool:
    offered = call.values.get("password")
    if not offered:
        return False
    now, site = call.transaction.now, call.transaction.site
    wait = GUESSES.wait(call.client, now)
    if wait:
        raise errors.slow_down(wait)
    right = secrets.same(stored, hash_event_password(site.secret, offered))
    if not right:
        GUESSES.note(call.client, now)
    return right

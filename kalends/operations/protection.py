"""Events behind a password: who is shown what (behaviour 6.3), and how guessing is slowed down."""

from asyncpg import Record

from kalends.core import errors, secrets
from kalends.core.throttle import Limit, Throttle
from kalends.kinds.events import hash_event_password
from kalends.operations import permissions
from kalends.operations.call import Call
from kalends.store.sql import Sql

# Wrong tries per client, then one every so many seconds. Kept by each process for itself: the
# passwords of events are shared among readers, and the limit only has to make a search hopeless.
GUESSES = Throttle(Limit(burst=20, seconds=6))


def is_shut(call: Call, row: Record) -> bool:
    """Whether one event is protected and neither its password nor the right to edit it opens it."""
    if not shut_of(call, [row]):
        return False
    return call.values.get("context") != "edit" or not permissions.may_edit(call.actor, row)


def shut_of(call: Call, rows: list[Record]) -> frozenset[int]:
    """Which of these events are protected and not opened by the password that was sent."""
    protected = {row["id"]: row["password_hash"] for row in rows if row.get("password_hash") is not None}
    offered = _offered(call) if protected else None
    shut = frozenset(
        event_id for event_id, stored in protected.items() if offered is None or not secrets.same(stored, offered)
    )
    if offered is not None and len(shut) == len(protected):
        GUESSES.note(call.client, call.transaction.now)
    return shut


def opened(call: Call) -> Sql:
    """Events that hide nothing from this caller. A filter by what others hide would tell it."""
    offered = _offered(call)
    by_password = Sql("OR r.password_hash = ?", offered) if offered is not None else Sql("")
    return Sql("(r.password_hash IS NULL OR") + permissions.editable(call.actor) + by_password + Sql(")")


def _offered(call: Call) -> bytes | None:
    """The hash of the password that was sent. Too many wrong ones have to wait."""
    offered = call.values.get("password")
    if not offered:
        return None
    wait = GUESSES.wait(call.client, call.transaction.now)
    if wait:
        raise errors.slow_down(wait)
    return hash_event_password(call.transaction.site.secret, offered)

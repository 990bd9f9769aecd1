"""Password-protected events: locked and unlocked events (behaviour 6.3), and the limit on guesses."""

from typing import Final

from kalends.core import credentials, errors
from kalends.core.throttle import Limit, rate_limit_key, seconds_to_wait
from kalends.kinds.event_passwords import HASHES, hash_fast
from kalends.kinds.kind import Actor, PasswordCondition
from kalends.operations import permissions
from kalends.operations.context import OperationContext
from kalends.store import Row, users
from kalends.store.database import Transaction
from kalends.store.sites import Site
from kalends.store.sql import Sql

# Wrong passwords allowed per client, over all paths and processes: a burst of 20, then one every 6 seconds.
GUESS_LIMIT: Final = Limit(burst=20, seconds=6)


async def count_guess(tx: Transaction, client_ip: str) -> None:
    """Count a password as wrong before it is compared; raise 429 when too many are not yet forgiven."""
    subject = _subject(client_ip)
    if await users.count_attempt(tx, subject, GUESS_LIMIT.burst, GUESS_LIMIT.seconds):
        return
    (failure,) = (await users.find_failures(tx, [subject])).values()
    raise errors.too_many_attempts(max(1, seconds_to_wait(GUESS_LIMIT, *failure, tx.now)))


async def has_passwords(tx: Transaction) -> bool:
    """Return whether any event of the site has a password; if not, the slow hash can be skipped."""
    exists = await tx.fetch_value(
        Sql("SELECT true FROM events WHERE site_id = ? AND password_hash IS NOT NULL LIMIT 1", tx.site.id)
    )
    return bool(exists)


async def refund_guess(tx: Transaction, actor: Actor, client_ip: str, hashes: list[bytes]) -> None:
    """Undo `count_guess` if the password is that of any event that the caller may read.

    The list itself may contain none of these events, because they are on another page or excluded by a filter.
    """
    unlocks = Sql(
        "EXISTS (SELECT FROM events r WHERE r.site_id = ? AND r.password_hash = ANY(?) AND", tx.site.id, hashes
    )
    if await users.refund_attempt(
        tx, _subject(client_ip), unlocks + permissions.readable_condition(actor) + Sql(")")
    ):
        HASHES.add(*hashes)


async def hash_guess(site: Site, password: str) -> list[bytes]:
    """Return the hashes under which the password may be stored: that of earlier versions and the slow one."""
    return [hash_fast(site.secret, password), await HASHES.compute(site.secret, password)]


def is_locked(context: OperationContext, row: Row) -> bool:
    """Return whether an event is protected and neither the password nor the right to edit it unlocks it."""
    if not locked_ids(context, [row]):
        return False
    return context.values.get("context") != "edit" or not permissions.may_edit(context.actor, row)


def locked_ids(context: OperationContext, rows: list[Row]) -> frozenset[int]:
    """Return the IDs of the events that are protected and that the password does not unlock."""
    hashes = _password_hashes(context)
    return frozenset(
        row["id"]
        for row in rows
        if (stored := row.get("password_hash")) is not None
        and not any(credentials.constant_time_equals(stored, entry) for entry in hashes)
    )


def unlocked_condition(context: OperationContext) -> PasswordCondition:
    """Restrict to events that this caller can read in full; otherwise filters would disclose protected fields."""
    hashes = _password_hashes(context)
    by_password = Sql("OR r.password_hash = ANY(?)", hashes) if hashes else Sql("")
    editable = permissions.editable_condition(context.actor)
    condition = Sql("(r.password_hash IS NULL OR") + editable + by_password + Sql(")")
    return PasswordCondition(condition, _unlocks_protected(context.actor, hashes))


def _unlocks_protected(actor: Actor, hashes: list[bytes]) -> bool | None:
    """Return whether the caller can read all protected events or none of them; None: some."""
    if permissions.rank(actor) >= permissions.EDITOR:
        return True
    return None if hashes or permissions.rank(actor) >= permissions.CONTRIBUTOR else False


def _password_hashes(context: OperationContext) -> list[bytes]:
    """Return the hashes of the password, which replace the plain text before the operation begins."""
    hashes: list[bytes] = context.values.get("password", [])
    return hashes


def _subject(client_ip: str) -> str:
    return f"event passwords from {rate_limit_key(client_ip)}"

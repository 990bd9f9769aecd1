"""Events behind a password: who is shown what (behaviour 6.3), and how guessing is slowed down."""

from typing import Final

from kalends.core import credentials, errors
from kalends.core.throttle import Limit, rate_limit_key, seconds_to_wait
from kalends.kinds.event_passwords import HASHES, hash_fast
from kalends.kinds.kind import Actor
from kalends.operations import permissions
from kalends.operations.context import Call
from kalends.store import Row, users
from kalends.store.database import Transaction
from kalends.store.sites import Site
from kalends.store.sql import Sql

# Wrong passwords of one client, over all paths and processes: 20 at once, then one every 6 seconds.
GUESSES: Final = Limit(burst=20, seconds=6)


async def count_guess(tx: Transaction, client: str) -> None:
    """Count a password as wrong before it is compared; raise 429 when too many are not yet forgiven."""
    subject = _subject(client)
    if await users.count_attempt(tx, subject, GUESSES.burst, GUESSES.seconds):
        return
    (held,) = (await users.find_failures(tx, [subject])).values()
    raise errors.too_many_attempts(max(1, seconds_to_wait(GUESSES, *held, tx.now)))


async def has_passwords(tx: Transaction) -> bool:
    """Whether any event of the site has a password: where none has, none needs to be hashed."""
    found = await tx.fetch_value(
        Sql("SELECT true FROM events WHERE site_id = ? AND password_hash IS NOT NULL LIMIT 1", tx.site.id)
    )
    return bool(found)


async def give_back_guess(tx: Transaction, actor: Actor, client: str, hashes: list[bytes]) -> None:
    """Undo `count_guess` if the password is that of any event which this caller may read.

    A list may show none of the events that the password opens: the next page, or another filter, does.
    """
    opens = Sql(
        "EXISTS (SELECT FROM events r WHERE r.site_id = ? AND r.password_hash = ANY(?) AND", tx.site.id, hashes
    )
    if await users.refund_attempt(tx, _subject(client), opens + permissions.readable(actor) + Sql(")")):
        HASHES.keep(*hashes)


async def hash_guess(site: Site, password: str) -> list[bytes]:
    """Return the forms in which the database may hold this password: that of earlier versions and the slow one."""
    return [hash_fast(site.secret, password), await HASHES.compute(site.secret, password)]


def is_shut(call: Call, row: Row) -> bool:
    """Whether one event is protected and neither its password nor the right to edit it opens it."""
    if not shut_of(call, [row]):
        return False
    return call.values.get("context") != "edit" or not permissions.may_edit(call.actor, row)


def shut_of(call: Call, rows: list[Row]) -> frozenset[int]:
    """Which of these events are protected and not opened by the password that was sent."""
    offered = _offered(call)
    return frozenset(
        row["id"]
        for row in rows
        if (stored := row.get("password_hash")) is not None
        and not any(credentials.constant_time_equals(stored, entry) for entry in offered)
    )


def opened(call: Call) -> Sql:
    """Restrict to events that this caller can read in full; otherwise filters would disclose protected fields."""
    offered = _offered(call)
    by_password = Sql("OR r.password_hash = ANY(?)", offered) if offered else Sql("")
    return Sql("(r.password_hash IS NULL OR") + permissions.editable(call.actor) + by_password + Sql(")")


def _offered(call: Call) -> list[bytes]:
    """The hashes of the password that was sent: the plain one is replaced before the operation begins."""
    hashes: list[bytes] = call.values.get("password", [])
    return hashes


def _subject(client: str) -> str:
    return f"event passwords from {rate_limit_key(client)}"

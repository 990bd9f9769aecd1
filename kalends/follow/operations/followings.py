"""What people who follow do: ask for emails, confirm, change, pause and end them."""

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.access.permissions import count_attempt
from kalends.calendar.kinds.kind import ANONYMOUS_ACTOR
from kalends.core.credentials import keyed_hash, new_uid
from kalends.core.limits import Limit, rate_limit_key
from kalends.follow import storage
from kalends.follow.operations import event_follows
from kalends.follow.rules.follow_limits import (
    CONFIRM_PERIOD,
    MAX_FOLLOWED,
    PAST_PERIOD,
    PER_ADDRESS,
    PER_NETWORK,
    PER_SITE,
    SUPPRESSED_PERIOD,
)
from kalends.follow.rules.follow_tokens import KEY_BYTES, Token
from kalends.follow.rules.slots import Rhythm, find_next
from kalends.store import Row, job_queue
from kalends.store.database import Database, Transaction

SITE_SUBJECT: Final = "follow"

type Followable = Literal["query", "event_id"]


def make_reader_context(tx: Transaction, base_url: str) -> OperationContext:
    """Return the context of someone without an account who reads an email."""
    return OperationContext(tx, ANONYMOUS_ACTOR, base_url, base_url)


def read_rhythm(row: Row | Mapping[str, Any]) -> Rhythm:
    return Rhythm(row["rhythm"], row["weekday"], row["hour"])


async def count_post(tx: Transaction, client_ip: str) -> int:
    """Count a form post of a client, or return the seconds until one is allowed."""
    return await count_attempt(tx, f"follow from {rate_limit_key(client_ip)}", PER_NETWORK)


async def ask(
    tx: Transaction, email: str, column: Followable, wanted: Sequence[Any], *, language: str, rhythm: Rhythm
) -> None:
    """Store lists or events that nobody gets emails about until they are confirmed, and enqueue the confirmation.

    The response reveals nothing about the address.
    """
    key = secrets.token_bytes(KEY_BYTES)
    follower_id = await storage.ensure_follower(tx, new_uid(), email, key, language)
    rows = await storage.list_follows(tx, follower_id)
    known = {row[column] for row in rows if row[column] is not None}
    for value in wanted:
        if value in known or len(known) < MAX_FOLLOWED[column]:
            known.add(value)
            await storage.add_follow(tx, new_uid(), follower_id, {column: value, **rhythm.columns})
    await send_link(tx, email, follower_id)


async def send_link(tx: Transaction, email: str, follower_id: str) -> None:
    """Enqueue an email with a link to the person's page, unless there were too many."""
    address = f"follow address {keyed_hash(tx.site.secret, 'follow address', email.lower()).hex()}"
    limits: Mapping[str, Limit] = {address: PER_ADDRESS, SITE_SUBJECT: PER_SITE}
    for subject, limit in limits.items():
        if await count_attempt(tx, subject, limit):
            return
    await job_queue.enqueue(tx, job_queue.Task.SEND_FOLLOW_EMAIL, {"follower_id": follower_id})


# Links in emails -------------------------------------------------------------------------------------------


async def open_manage_token(tx: Transaction, token: Token, *, locked: bool = False) -> Row | None:
    """Return the person that a token belongs to, even if it has expired."""
    row = await storage.find_follower(tx, token.id, locked=locked)
    return row if row is not None and token.is_made_with(row["key"]) else None


async def open_end_token(tx: Transaction, token: Token) -> Row | None:
    """Return the follow that a token ends."""
    row = await storage.find_follow(tx, token.id)
    return row if row is not None and token.is_made_with(row["key"]) else None


async def confirm(tx: Transaction, follower: Row, follow: Row) -> None:
    """Let a follow begin: the first email about a list is due at the next slot."""
    is_suppressed = follower["suppressed_at"] is not None
    if follow["event_id"] is not None:
        waiting = [row for row in await storage.list_follows(tx, follower["id"]) if is_waiting_event(row)]
        for row in waiting:
            await event_follows.confirm_event(tx, row, is_suppressed=is_suppressed)
        await storage.count_mails(tx, {"confirmed": len(waiting)})
    elif follow["confirmed_at"] is None:
        next_at = None if is_suppressed else _plan(tx, follow)
        await storage.change_follow(tx, follow["id"], {"confirmed_at": tx.now, "next_at": next_at})
        await storage.count_mails(tx, {"confirmed": 1})


def is_waiting_event(follow: Row) -> bool:
    """Return whether a follow is of an event and unconfirmed. All of these are confirmed together."""
    return follow["event_id"] is not None and follow["confirmed_at"] is None


async def change_rhythm(tx: Transaction, follow: Row, rhythm: Rhythm) -> None:
    due = find_next(rhythm, tx.now, tx.site.timezone) if follow["next_at"] is not None else None
    await storage.change_follow(tx, follow["id"], {**rhythm.columns, "next_at": due})


async def pause(tx: Transaction, follower: Row, follow: Row, *, paused: bool) -> None:
    is_due = not paused and follow["confirmed_at"] is not None and follower["suppressed_at"] is None
    next_at = _plan(tx, follow) if is_due else None
    await storage.change_follow(tx, follow["id"], {"paused": paused, "next_at": next_at})


async def end(tx: Transaction, follow: Row) -> None:
    """Delete a follow, and the person if it was the last one."""
    await storage.remove_follow(tx, follow["id"])
    await storage.remove_if_idle(tx, follow["follower_id"])
    if follow["confirmed_at"] is not None:
        await storage.count_mails(tx, {"ended": 1})


async def erase(tx: Transaction, follower_id: str) -> int:
    """Delete everything about a person; return the number of follows."""
    follows = await storage.list_follows(tx, follower_id)
    await storage.remove_follower(tx, follower_id)
    await storage.count_mails(tx, {"ended": sum(row["confirmed_at"] is not None for row in follows)})
    return len(follows)


async def forget_email(tx: Transaction, email: str) -> int | None:
    """Delete everything about an address; return the number of follows, or None if it is unknown."""
    follower = await storage.find_by_email(tx, email.strip())
    return await erase(tx, follower["id"]) if follower is not None else None


async def lift_suppression(tx: Transaction, follower_id: str) -> None:
    """Send emails to an address again that was refused."""
    await storage.change_follower(tx, follower_id, {"suppressed_at": None, "refusals": 0, "refusal_code": ""})
    for follow in await storage.list_follows(tx, follower_id):
        if follow["confirmed_at"] is not None and not follow["paused"]:
            await storage.change_follow(tx, follow["id"], {"next_at": _plan(tx, follow)})


def _plan(tx: Transaction, follow: Row) -> datetime:
    """Return when an email is due: for an event now, in case it has changed in the meantime."""
    if follow["event_id"] is not None:
        return tx.now
    return find_next(read_rhythm(follow), tx.now, tx.site.timezone)


async def clean_follows(database: Database, now: datetime) -> None:
    """Delete what nobody has confirmed in time, past events, people who follow nothing, and old suppressions."""
    confirmed_by, suppressed_by = now - CONFIRM_PERIOD, now - SUPPRESSED_PERIOD
    for site_id in await storage.find_sites_to_clean(database, confirmed_by, suppressed_by):
        with job_queue.skipping_unknown_sites():
            async with database.transaction(site_id, now, writing=True) as tx:
                await storage.remove_stale(tx, confirmed_by, now - PAST_PERIOD, suppressed_by)
                await event_follows.drop_idle_consumer(tx)

"""People without an account send events, confirm them, follow links in emails and delete their data."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kalends.accounts.storage import user_tables
from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.operations.duplicates import find_public_candidates
from kalends.calendar.operations.record_verbs import fetch_readable_row
from kalends.calendar.rules.record_types import CANCELLED
from kalends.core.credentials import is_uuid, keyed_hash, new_uid
from kalends.core.errors import ApiError
from kalends.core.limits import Limit, rate_limit_key, seconds_to_wait
from kalends.proposals import storage
from kalends.proposals.operations.proposal_sending import Draft, send
from kalends.proposals.operations.proposal_subjects import enqueue_mail, hash_token
from kalends.proposals.rules import OPEN, PER_ADDRESS, PER_DOMAIN, PER_NETWORK, PER_SITE, TRANSITIONS, Mail
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sites import Site
from kalends.store.sql import Sql

Picture = tuple[bytes, str]  # WebP, and its description
MAX_SIMILAR: Final = 5


async def is_blocked(tx: Transaction, email: str) -> bool:
    submitter = await storage.find_submitter(tx, email)
    return submitter is not None and submitter["blocked_at"] is not None


async def find_wait(tx: Transaction, client_ip: str, email: str) -> int:
    """Return the seconds until a post is allowed, without counting one; 0 if it is allowed now."""
    limits = _make_limits(tx.site, client_ip, email)
    attempts = await user_tables.find_failures(tx, list(limits))
    return max((seconds_to_wait(limits[subject], *row, tx.now) for subject, row in attempts.items()), default=0)


async def count_post(tx: Transaction, client_ip: str, email: str) -> int:
    """Count a post, or return the seconds until one is allowed."""
    for subject, limit in _make_limits(tx.site, client_ip, email).items():
        if seconds := await permissions.count_attempt(tx, subject, limit):
            return seconds
    return 0


def _make_limits(site: Site, client_ip: str, email: str) -> Mapping[str, Limit]:
    """Return the limits in the order in which they count, which is also the order in which rows are locked."""

    def hide(purpose: str, text: str) -> str:
        return f"submission {purpose} {keyed_hash(site.secret, f'submission {purpose}', text).hex()}"

    return {
        f"submission from {rate_limit_key(client_ip)}": PER_NETWORK,
        hide("address", email): PER_ADDRESS,
        hide("domain", email.rpartition("@")[2]): PER_DOMAIN,
        "submission": PER_SITE,
    }


async def find_published(tx: Transaction, values: Mapping[str, Any]) -> list[Row]:
    """Return public events that are probably the same: `title`, `slug`, `start_local`, `all_day`."""
    ids = [candidate.event_id for candidate in await find_public_candidates(tx, values)][:MAX_SIMILAR]
    query = """SELECT title, slug, start_local, all_day FROM events WHERE site_id = ? AND id = ANY(?)
        ORDER BY array_position(?::bigint[], id)"""
    return await tx.fetch_all(Sql(query, tx.site.id, ids, ids)) if ids else []


async def submit(
    context: OperationContext, draft: Draft, email: str, language: str, picture: Picture | None = None
) -> None:
    """Store an event that nobody sees until its sender confirms it, and enqueue the email with the link."""
    tx = context.transaction
    submitter_id = await storage.ensure_submitter(tx, new_uid(), email, language)
    row = await send(context, replace(draft, state="unconfirmed", submitter_id=submitter_id))
    if picture is not None:
        await storage.replace_picture(tx, row["id"], *picture)
    await enqueue_mail(tx, Mail.CONFIRM, row["id"], row["version"])


async def confirm(tx: Transaction, row: Row) -> None:
    """Let a proposal wait. The next run of the job for ageing sets when to look at it again."""
    if row["state"] in TRANSITIONS["confirm"][0]:
        await storage.change_proposal(tx, row["id"], {"state": TRANSITIONS["confirm"][1], "expires_at": tx.now})


@dataclass(frozen=True, slots=True)
class Case:
    """The proposal that a link leads to, and its event as long as everyone can read it."""

    row: Row
    event: Row | None
    is_blocked: bool

    @property
    def can_confirm(self) -> bool:
        return self.row["state"] in TRANSITIONS["confirm"][0] and not self.is_blocked

    @property
    def is_open(self) -> bool:
        return self.row["state"] in OPEN

    @property
    def can_change(self) -> bool:
        is_new = self.is_open and self.row["record_id"] is None
        return (is_new or self.event is not None) and not self.is_blocked

    @property
    def can_cancel(self) -> bool:
        return self.event is not None and self.event["event_status"] != CANCELLED and not self.is_blocked


async def follow_link(context: OperationContext, link: str, *, locked: bool) -> Case | None:
    """Return the proposal that a link leads to, or the sender's open change of the same event; None for a dead link.

    With `locked`, editors wait until the transaction ends.
    """
    tx, (proposal_id, _, token) = context.transaction, link.partition(".")
    row = None
    if is_uuid(proposal_id):
        row = await storage.find_linked_proposal(tx, proposal_id, hash_token(token), locked=locked)
    if row is None:
        return None
    is_blocked = await storage.find_recipient(tx, None, row["submitter_id"]) is None
    if row["record_id"] is None:
        return Case(row, None, is_blocked)
    change = await storage.find_open_change(tx, row["record_id"], None, row["submitter_id"])
    if change is not None:
        row = await storage.find_proposal(tx, change["id"], locked=locked) or row
    try:
        event = await fetch_readable_row(EVENTS, replace(context, record_id=row["record_id"], slug=None, values={}))
    except ApiError:
        event = None
    return Case(row, event, is_blocked)


async def request_links(tx: Transaction, client_ip: str, email: str) -> None:
    """Enqueue an email with links to what this person has sent. Unknown addresses run the same statements."""
    submitter = await storage.find_submitter(tx, email)
    if not await count_post(tx, client_ip, email):
        await enqueue_mail(tx, Mail.LINKS, submitter["id"] if submitter is not None else new_uid())


async def forget_email(tx: Transaction, email: str) -> int:
    """Delete everything about an address, even if it is blocked; return the number of proposals."""
    submitter = await storage.find_submitter(tx, email.strip().lower())
    if submitter is None:
        return 0
    number = len(await storage.list_submitted(tx, submitter["id"]))
    await storage.forget_submitter(tx, submitter["id"])
    await storage.remove_submitter(tx, submitter["id"])
    return number

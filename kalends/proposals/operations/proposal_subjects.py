"""The title and time of a proposal’s event, as senders read them, and the jobs that email links to it."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from kalends.calendar.kinds.events import EVENTS
from kalends.core.times import local_of
from kalends.proposals.rules import Mail
from kalends.proposals.storage import decode_values
from kalends.store import Row, job_queue
from kalends.store.database import Transaction


@dataclass(frozen=True, slots=True)
class Subject:
    title: str  # HTML
    start_local: datetime
    all_day: bool
    event: Row | None  # None if there is none, or no longer


async def load_subject(tx: Transaction, row: Row) -> Subject:
    """Return the event of an accepted proposal as it is now, otherwise the event with the proposed values."""
    event = await EVENTS.fetch(tx, row["record_id"]) if row["record_id"] is not None else None
    if event is not None and row["state"] == "accepted":
        return Subject(event["title"], event["start_local"], event["all_day"], event)
    values = decode_values(row)
    known = dict(event or {})
    zone = values.get("timezone") or known.get("timezone") or tx.site.timezone
    all_day = str(values.get("all_day", known.get("all_day", False))).lower() in ("true", "1")
    title = values.get("title", known.get("title", ""))
    return Subject(title, local_of(row["starts_at"], zone), all_day, event)


async def enqueue_mail(
    tx: Transaction, mail: Mail, key: str, version: int = 0, delay: timedelta = timedelta()
) -> None:
    """Enqueue an email. The job has neither addresses nor texts, which the queue would keep."""
    arguments = {"mail": mail, "key": key, "version": version}
    await job_queue.enqueue(tx, job_queue.Task.SEND_PROPOSAL_EMAIL, arguments, tx.now + delay if delay else None)


def hash_token(token: str) -> bytes:
    """Return the hash of a link's token, which is stored instead of the token."""
    return hashlib.sha256(token.encode()).digest()

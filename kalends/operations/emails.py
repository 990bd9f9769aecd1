"""E-mails, sent by the worker after the transaction that needs them."""

from dataclasses import dataclass
from typing import Final

from kalends.operations import sessions
from kalends.operations.sessions import Purpose
from kalends.store import jobs
from kalends.store.database import Transaction

# Stands for the one-time link in the text of an e-mail.
LINK: Final = "{link}"


@dataclass(frozen=True, slots=True)
class RequestedLink:
    """A one-time link that is created when the e-mail is sent, so that the queue does not contain it."""

    user_id: int
    purpose: Purpose
    base_url: str


async def enqueue_email(tx: Transaction, to: str, subject: str, text: str, link: RequestedLink | None = None) -> None:
    """Send a plain-text e-mail once the transaction is committed. `link` replaces `LINK` in the text."""
    arguments: dict[str, object] = {"to": to, "subject": subject, "text": text}
    if link is not None:
        requested = {"user_id": link.user_id, "purpose": link.purpose.value, "base_url": link.base_url}
        arguments["link"] = requested
    await jobs.enqueue(tx, jobs.Task.SEND_EMAIL, arguments)


async def insert_link(tx: Transaction, text: str, user_id: int, purpose: str, base_url: str) -> str:
    """Return the text of an e-mail with a new one-time link; earlier links for the same purpose stop working."""
    return text.replace(LINK, await sessions.create_link(tx, user_id, Purpose(purpose), base_url))

"""E-mails, sent by the worker after the transaction that needs them."""

from kalends.store import jobs
from kalends.store.database import Transaction


async def enqueue_email(tx: Transaction, to: str, subject: str, text: str) -> None:
    """Send a plain-text e-mail once the transaction is committed."""
    await jobs.enqueue(tx, jobs.Task.SEND_EMAIL, {"to": to, "subject": subject, "text": text})

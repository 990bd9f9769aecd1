"""Send emails through an SMTP server."""

import ssl
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import aiosmtplib

# Timeout in seconds for each step of the SMTP dialogue.
TIMEOUT: Final = 20.0
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Email:
    sender: str
    sender_name: str
    to: str
    subject: str
    text: str


def make_message(email: Email, now: datetime) -> EmailMessage:
    """Build a message from an email. Raise ValueError if an address is invalid.

    Line breaks in names and subjects become spaces to prevent header injection; the library rejects them too.
    """
    message = EmailMessage(policy=SMTP)
    sender = Address(_one_line(email.sender_name), addr_spec=email.sender)
    message["From"] = sender
    message["To"] = Address(addr_spec=email.to)
    message["Subject"] = _one_line(email.subject)
    message["Date"] = format_datetime(now)
    message["Message-ID"] = make_msgid(domain=sender.domain)
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(email.text)
    return message


async def check_server(url: str) -> None:
    """Connect to an smtp:// or smtps:// server and sign in. Raise SMTPException or OSError on failure."""
    async with aiosmtplib.SMTP(**_read_url(url), timeout=TIMEOUT):
        pass


async def send_email(url: str, email: Email, now: datetime, tls_context: ssl.SSLContext | None = None) -> None:
    """Send an email through an smtp:// or smtps:// server. Raise SMTPException or OSError on failure.

    With smtp://, the connection is encrypted if the server offers STARTTLS. Passwords are sent to other machines only
    over encrypted connections.
    """
    await aiosmtplib.send(
        make_message(email, now),
        sender=email.sender,
        recipients=[email.to],
        **_read_url(url),
        tls_context=tls_context,
        timeout=TIMEOUT,
    )


def _read_url(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    needs_tls = bool(parts.password) and parts.hostname not in LOOPBACK
    return {
        "hostname": parts.hostname,
        "port": parts.port,
        "username": unquote(parts.username) if parts.username else None,
        "password": unquote(parts.password) if parts.password else None,
        "use_tls": parts.scheme == "smtps",
        "start_tls": True if needs_tls and parts.scheme == "smtp" else None,
    }


def _one_line(text: str) -> str:
    return " ".join(text.split())

"""Send emails through an SMTP server."""

import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import aiosmtplib

# Timeouts in seconds for each step of the SMTP dialogue, and for the answer to an email (RFC 5321, section 4.5.3.2):
# a client that gives up earlier sends again what the server has accepted.
TIMEOUT: Final = 20.0
DATA_TIMEOUT: Final = 600.0
UNAVAILABLE: Final = (421, -1)
CONNECT, RCPT, RSET = "CONNECT", "RCPT", "RSET"
# The enhanced status code at the beginning of an answer (RFC 3463).
ENHANCED_CODE: Final = re.compile(r"[245]\.\d{1,3}\.\d{1,3}(?!\S)")
BAD_SYNTAX: Final = "5.1.3"
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
    """Send an email through an smtp:// or smtps:// server. Raise ServerAway or Refused on failure.

    With smtp://, the connection is encrypted if the server offers STARTTLS. Passwords are sent to other machines only
    over encrypted connections.
    """
    async with _smtp_step("SEND"):
        await aiosmtplib.send(
            make_message(email, now),
            sender=email.sender,
            recipients=[email.to],
            **_read_url(url),
            tls_context=tls_context,
            timeout=TIMEOUT,
        )


class ServerAway(Exception):
    """Raised if the server does not answer, or ends the session."""

    def __init__(self, step: str, reason: str) -> None:
        super().__init__(f"{step}: {reason}")
        self.has_begun = step != CONNECT  # so it may have accepted the email


class Refused(Exception):
    """Raised if the server refuses a step. Of its answer, only the code is kept."""

    def __init__(self, step: str, status: int, code: str) -> None:
        super().__init__(f"{step}: {code}")
        self.step = step
        self.is_temporary = status < 500
        self.code = code


class SmtpSession:
    """A connection for many emails, in steps: begin an email, then send it, or begin the next one instead."""

    def __init__(self, url: str) -> None:
        self._client = aiosmtplib.SMTP(**_read_url(url), timeout=TIMEOUT)
        self._has_begun = False

    async def begin(self, sender: str, to: str) -> None:
        """Send `MAIL` and `RCPT`, after `RSET` if an earlier email was not sent."""
        if self._has_begun and self._client.is_connected:
            try:
                async with _smtp_step(RSET):
                    await self._client.rset()
            except ServerAway:
                self._client.close()
        if not self._client.is_connected:
            async with _smtp_step(CONNECT):
                await self._client.connect()
        self._has_begun = True
        async with _smtp_step("MAIL"):
            await self._client.mail(sender)
        async with _smtp_step(RCPT):
            await self._client.rcpt(to)

    async def send(self, content: bytes) -> None:
        """Send `DATA` and an email."""
        async with _smtp_step("DATA"):
            await self._client.data(content, timeout=DATA_TIMEOUT)
        self._has_begun = False

    async def close(self) -> None:
        if self._client.is_connected:
            with suppress(aiosmtplib.SMTPException, OSError):
                await self._client.quit()
        self._client.close()


@asynccontextmanager
async def _smtp_step(name: str) -> AsyncIterator[None]:
    """Replace the library's errors, whose texts contain addresses and so must not get into logs."""
    try:
        yield
    except aiosmtplib.SMTPRecipientsRefused as error:
        raise _convert_answer(name, error.recipients[0]) from None
    except aiosmtplib.SMTPResponseException as error:
        raise _convert_answer(name, error) from None
    except UnicodeError:
        raise Refused(name, 553, BAD_SYNTAX) from None
    except (aiosmtplib.SMTPException, OSError) as error:
        raise ServerAway(name, type(error).__name__) from None


def _convert_answer(step: str, answer: aiosmtplib.SMTPResponseException) -> ServerAway | Refused:
    if answer.code in UNAVAILABLE or step in (CONNECT, RSET):
        return ServerAway(step, str(answer.code))
    found = ENHANCED_CODE.match(answer.message)
    return Refused(step, answer.code, found[0] if found else str(answer.code))


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

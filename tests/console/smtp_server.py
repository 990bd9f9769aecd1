"""A real SMTP server that keeps the e-mails it receives."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, Session

from tests.servers import find_free_port


@dataclass
class SmtpServer:
    """Received e-mails, and the envelopes and sessions that they came in."""

    url: str
    messages: list[EmailMessage] = field(default_factory=list[EmailMessage])
    recipients: list[list[str]] = field(default_factory=list[list[str]])
    senders: list[str] = field(default_factory=list[str])
    encrypted: list[bool] = field(default_factory=list[bool])
    logins: list[tuple[bytes, bytes]] = field(default_factory=list[tuple[bytes, bytes]])

    # The answer to a step (MAIL, RCPT, DATA) for an address; empty: the server accepts it.
    answer: Callable[[str, str], str] = lambda step, address: ""

    async def handle_MAIL(
        self, server: Any, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if refusal := self.answer("MAIL", address):
            return refusal
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 OK"

    async def handle_RCPT(
        self, server: Any, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if refusal := self.answer("RCPT", address):
            return refusal
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Session, envelope: Envelope) -> str:
        if refusal := self.answer("DATA", envelope.rcpt_tos[0]):
            return refusal
        assert isinstance(envelope.content, bytes)
        message = message_from_bytes(envelope.content, policy=default)
        assert isinstance(message, EmailMessage)
        self.messages.append(message)
        self.recipients.append(list(envelope.rcpt_tos))
        self.senders.append(envelope.mail_from or "")
        self.encrypted.append(session.ssl is not None)
        return "250 OK"

    def authenticate(
        self, server: Any, session: Session, envelope: Envelope, mechanism: str, data: Any
    ) -> AuthResult:
        self.logins.append((data.login, data.password))
        return AuthResult(success=data.password == b"s3cret/@")


@contextmanager
def run_smtp_server(scheme: str = "smtp", userinfo: str = "", **options: Any) -> Iterator[SmtpServer]:
    """Run a server on a free port of this machine."""
    port = find_free_port()
    server = SmtpServer(f"{scheme}://{userinfo}127.0.0.1:{port}")
    controller = Controller(server, hostname="127.0.0.1", port=port, authenticator=server.authenticate, **options)
    controller.start()
    try:
        yield server
    finally:
        controller.stop()

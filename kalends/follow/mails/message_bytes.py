"""A digest as bytes: both parts are encoded once, and each recipient gets only other headers and another end."""

import secrets
from base64 import encodebytes
from binascii import b2a_qp
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Final

from kalends.core.messages import gettext_noop as N_
from kalends.follow.mails.digest_formats import FOOTER_PLACE, make_html_footer, to_html, to_text
from kalends.follow.mails.digest_model import DigestModel, Reader
from kalends.follow.rules.follow_tokens import make_end_token, make_manage_token, make_message_id

REASON: Final = N_("You’re getting this email because you follow {site}.")
UNSUBSCRIBE: Final = N_("Unsubscribe from this list")
UNSUBSCRIBE_EVENT: Final = N_("No more emails about this event")
MANAGE: Final = N_("Change, pause or end your emails")
FOLLOW_PATH: Final = "/follow/"
END_PATH: Final = f"{FOLLOW_PATH}end/"
PART: Final = "Content-Type: text/{kind}; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
CALENDAR_PART: Final = (
    b"Content-Type: text/calendar; charset=utf-8; method=PUBLISH\r\nContent-Transfer-Encoding: base64\r\n"
    b'Content-Disposition: attachment; filename="event.ics"\r\n\r\n'
)


@dataclass(frozen=True, slots=True)
class Recipient:
    """A person and the follow that an email is about."""

    email: str
    key: bytes
    follower_id: str
    follow_id: str


@dataclass(frozen=True, slots=True)
class PreparedMessage:
    """What all recipients of a rendering share."""

    reader: Reader
    domain: str
    unsubscribe: str
    headers: bytes
    boundary: str
    text: bytes
    html_begin: bytes
    html_end: bytes
    attachment: bytes = b""  # the end of the email if it has an attachment

    @property
    def size(self) -> int:
        return sum(map(len, (self.headers, self.text, self.html_begin, self.html_end, self.attachment)))

    def make_bytes(self, recipient: Recipient, purpose: str, now: datetime) -> bytes:
        """Return the email. Emails with the same `purpose` have the same Message-ID."""
        end_url = self.reader.url(f"{END_PATH}{make_end_token(recipient.key, recipient.follow_id)}")
        manage_url = make_manage_url(self.reader, recipient.key, recipient.follower_id, now)
        message_id = make_message_id(recipient.key, f"{recipient.follow_id} {purpose}")
        locale, site = self.reader.locale, self.reader.site
        texts = {
            "reason": locale.text(REASON, site=site.name),
            "unsubscribe": self.unsubscribe,
            "manage": locale.text(MANAGE),
            "footer": site.mail_footer,
        }
        text = "\n".join(
            (
                "",
                "-- ",
                texts["reason"],
                f"{texts['unsubscribe']}: {end_url}",
                f"{texts['manage']}: {manage_url}",
                *(["", site.mail_footer] if site.mail_footer else []),
                "",
            )
        )
        html = make_html_footer(end_url=end_url, manage_url=manage_url, **texts)
        personal = (
            f"To: {recipient.email}\r\nDate: {format_datetime(now)}\r\nMessage-ID: <{message_id}@{self.domain}>\r\n"
        )
        if end_url.startswith("https://"):
            personal += f"List-Unsubscribe: <{end_url}>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"
        delimiter = f"\r\n--{self.boundary}".encode()
        return b"".join(
            (
                personal.encode("ascii"),
                self.headers,
                delimiter,
                b"\r\n" + PART.format(kind="plain").encode(),
                self.text,
                encode_lines(text),
                delimiter,
                b"\r\n" + PART.format(kind="html").encode(),
                self.html_begin,
                encode_lines(html),
                self.html_end,
                delimiter,
                b"--\r\n",
                self.attachment,
            )
        )


def make_manage_url(reader: Reader, key: bytes, follower_id: str, now: datetime) -> str:
    return reader.url(f"{FOLLOW_PATH}{make_manage_token(key, follower_id, now)}/")


def prepare(digest: DigestModel, reader: Reader, sender: str, calendar: str = "") -> PreparedMessage:
    """Encode what all recipients share. A calendar becomes an attachment."""
    head = EmailMessage(policy=SMTP)
    address = Address(" ".join(reader.site.name.split()), addr_spec=sender)
    head["From"] = address
    if reader.site.reply_to:
        head["Reply-To"] = Address(addr_spec=reader.site.reply_to)
    head["Subject"] = " ".join(digest.subject.split())
    head["List-Id"] = f"<digests.site{reader.site.id}.{address.domain}>"
    head["Auto-Submitted"] = "auto-generated"
    boundary = f"=_{secrets.token_hex(16)}"  # Quoted-printable text never contains "=_".
    headers = f'Content-Type: multipart/alternative; boundary="{boundary}"\r\n'
    attachment = b""
    if calendar:
        outer = f"=_{secrets.token_hex(16)}"
        headers = f'Content-Type: multipart/mixed; boundary="{outer}"\r\n\r\n--{outer}\r\n{headers}'
        encoded = encodebytes(calendar.encode()).replace(b"\n", b"\r\n")
        attachment = b"\r\n--%b\r\n%b%b--%b--\r\n" % (outer.encode(), CALENDAR_PART, encoded, outer.encode())
    begin, _, end = to_html(digest).partition(FOOTER_PLACE)
    return PreparedMessage(
        reader=reader,
        domain=address.domain,
        unsubscribe=reader.locale.text(UNSUBSCRIBE_EVENT if digest.is_event else UNSUBSCRIBE),
        headers=bytes(head).partition(b"\r\n\r\n")[0] + f"\r\nMIME-Version: 1.0\r\n{headers}".encode(),
        boundary=boundary,
        text=encode_lines(to_text(digest)),
        html_begin=encode_lines(begin),
        html_end=encode_lines(end),
        attachment=attachment,
    )


def encode_lines(text: str) -> bytes:
    """Encode whole lines as quoted-printable, so that encoded texts can be joined."""
    return b2a_qp(text.encode(), istext=True).replace(b"\n", b"\r\n")

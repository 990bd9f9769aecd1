"""Tokens in links, made with a follower's key: one ends a follow, the other opens the follower's page for a while.

The key itself never leaves the database. Tokens keep working after a site has moved to another server.
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from kalends.core.credentials import constant_time_equals

KEY_BYTES: Final = 16
MAC_BYTES: Final = 16
ID_BYTES: Final = 16
EXPIRY_BYTES: Final = 5
MANAGE_PERIOD: Final = timedelta(days=30)
END, MANAGE = b"end follow\0", b"manage follows\0"


@dataclass(frozen=True, slots=True)
class Token:
    """A token whose key is still to be checked: the ID of a follow or follower, and the signed bytes."""

    id: str
    signed: bytes
    mac: bytes
    expires_at: datetime  # of a manage token

    def is_made_with(self, key: bytes) -> bool:
        return constant_time_equals(_make_mac(key, self.signed), self.mac)


def make_end_token(key: bytes, follow_id: str) -> str:
    return _encode(key, END, UUID(follow_id).bytes)


def make_manage_token(key: bytes, follower_id: str, now: datetime) -> str:
    seconds = int((now + MANAGE_PERIOD).timestamp())
    return _encode(key, MANAGE, UUID(follower_id).bytes + seconds.to_bytes(EXPIRY_BYTES, "big"))


def read_end_token(text: str) -> Token | None:
    return _read(text, END, 0)


def read_manage_token(text: str) -> Token | None:
    return _read(text, MANAGE, EXPIRY_BYTES)


def make_message_id(key: bytes, purpose: str) -> str:
    """Return the local part of a Message-ID, which a repeated email has again."""
    return hmac.digest(key, f"message\0{purpose}".encode(), hashlib.sha256)[:MAC_BYTES].hex()


def mask_email(email: str) -> str:
    """Return an address of which others can recognize only the domain."""
    local, _, domain = email.rpartition("@")
    return f"{local[:1]}…@{domain}"


def _make_mac(key: bytes, signed: bytes) -> bytes:
    return hmac.digest(key, signed, hashlib.sha256)[:MAC_BYTES]


def _encode(key: bytes, purpose: bytes, content: bytes) -> str:
    return base64.urlsafe_b64encode(content + _make_mac(key, purpose + content)).decode().rstrip("=")


def _read(text: str, purpose: bytes, expiry_bytes: int) -> Token | None:
    """Read a token of the right length. Only one spelling of each token is accepted."""
    try:
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        content, mac = decoded[:-MAC_BYTES], decoded[-MAC_BYTES:]
        expires_at = datetime.fromtimestamp(int.from_bytes(content[ID_BYTES:], "big"), UTC)
    except (binascii.Error, ValueError, OverflowError):
        return None
    is_exact = base64.urlsafe_b64encode(decoded).decode().rstrip("=") == text
    if not is_exact or len(content) != ID_BYTES + expiry_bytes:
        return None
    return Token(str(UUID(bytes=content[:ID_BYTES])), purpose + content, mac, expires_at)

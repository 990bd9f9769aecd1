"""Sessions: signing in and out, and links that sign in once.

A token is 32 random bytes. Only its SHA-256 is stored: a hash without a key suffices for a random secret, and a copy
of the database does not contain anything that could be used to sign in.
"""

import hashlib
import secrets
from datetime import timedelta
from enum import StrEnum
from typing import Final

from kalends.store import Row, sessions
from kalends.store.database import Transaction
from kalends.store.sessions import Session

SEEN_INTERVAL: Final = timedelta(minutes=5)
# Changes of credentials require a proof of identity that is not older than this.
CONFIRMATION_AGE: Final = timedelta(minutes=15)
# The longest text that can be a token.
MAX_TOKEN_LENGTH: Final = 64
# The path of links that work once; the token follows.
LINK_PATH: Final = "/console/link/"


class Purpose(StrEnum):
    """The purpose of a one-time token."""

    SIGN_IN = "sign_in"
    INVITE = "invite"
    RESET = "reset"
    USED_CHALLENGE = "used_challenge"


LIFETIMES: Final = {
    Purpose.SIGN_IN: timedelta(hours=1),
    Purpose.INVITE: timedelta(days=7),
    Purpose.RESET: timedelta(hours=1),
}


def hash_token(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


async def start_session(tx: Transaction, user_id: int, client_ip: str, user_agent: str) -> str:
    """Start a session and return its token."""
    token = secrets.token_urlsafe(32)
    await sessions.remove_expired(tx)
    await sessions.add_session(tx, hash_token(token), user_id, client_ip, user_agent)
    return token


async def find_session(tx: Transaction, token: str) -> Session | None:
    """Return the valid session with this token, or None."""
    if not token or len(token) > MAX_TOKEN_LENGTH:
        return None
    return await sessions.find_session(tx, hash_token(token))


async def create_link_token(tx: Transaction, user_id: int, purpose: Purpose) -> str:
    """Create a token for a link that works once, and return it. Earlier links for this purpose stop working."""
    token = secrets.token_urlsafe(32)
    await sessions.remove_tokens(tx, user_id, purpose)
    await sessions.add_token(tx, hash_token(token), purpose, user_id, tx.now + LIFETIMES[purpose])
    return token


async def create_link(tx: Transaction, user_id: int, purpose: Purpose, base_url: str) -> str:
    """Create a link that works once, and return its URL."""
    return f"{base_url.rstrip('/')}{LINK_PATH}{await create_link_token(tx, user_id, purpose)}"


async def find_link(tx: Transaction, token: str) -> Row | None:
    """Return the purpose and the user of a link that still works."""
    return await sessions.find_token(tx, hash_token(token)) if len(token) <= MAX_TOKEN_LENGTH else None


async def use_link(tx: Transaction, token: str) -> Row | None:
    """Use up a link and return its purpose and user, or None if it does not work any more.

    Of several concurrent requests, only the one that deletes the row gets the user.
    """
    link = await find_link(tx, token)
    if link is None or not await sessions.remove_token(tx, hash_token(token)):
        return None
    return link

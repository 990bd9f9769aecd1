"""HTTP Basic with application passwords -> the actor. Anything else is nobody."""

import base64
import binascii
from dataclasses import dataclass
from uuid import UUID

from kalends.core import errors, secrets
from kalends.kinds.kind import Actor
from kalends.store import people
from kalends.store.database import Transaction


@dataclass(frozen=True, slots=True)
class SignedIn:
    actor: Actor
    # The password whose use is to be noted; None when that was done lately.
    to_note: UUID | None = None


async def sign_in(tx: Transaction, header: str) -> SignedIn:
    """Who asks. Wrong credentials fail every request; credentials of another scheme are nobody's."""
    pair = _basic(header)
    if pair is None:
        return SignedIn(Actor())
    login, password = pair
    offered = secrets.hash_application_password(tx.site.secret, password)
    found: people.Credential | None = None
    # All are compared, so that the time tells nothing about which one matched.
    for credential in await people.find_credentials(tx, login):
        if secrets.same(credential.hash, offered):
            found = credential
    if found is None:
        raise errors.bad_credentials()
    stale = found.last_used_at is None or tx.now - found.last_used_at > people.NOTED_EVERY
    actor = Actor(found.user_id, found.role, found.login)
    return SignedIn(actor, found.password_id if stale else None)


def _basic(header: str) -> tuple[str, str] | None:
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
    login, colon, password = decoded.partition(":")
    return (login, password) if colon and "\0" not in decoded else None

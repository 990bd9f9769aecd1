"""Sessions, one-time links and passkeys.

A passkey challenge consists of random bytes, the time and an HMAC with the site's secret, so unused challenges need
no storage. A used challenge is stored until it expires, to prevent reuse.
"""

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    options_to_json,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers import base64url_to_bytes, parse_client_data_json
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from kalends.accounts.storage import session_tables
from kalends.accounts.storage.session_tables import Passkey, Session
from kalends.core import credentials
from kalends.store import Row
from kalends.store.database import Transaction

SEEN_INTERVAL: Final = timedelta(minutes=5)
# Changing credentials requires a proof of identity no older than this.
CONFIRMATION_AGE: Final = timedelta(minutes=15)
MAX_TOKEN_LENGTH: Final = 64
# Path prefix of one-time links; the token follows it.
LINK_PATH: Final = "/console/link/"


class Purpose(StrEnum):
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
    token = secrets.token_urlsafe(32)
    await session_tables.remove_expired(tx)
    await session_tables.add_session(tx, hash_token(token), user_id, client_ip, user_agent)
    return token


async def find_session(tx: Transaction, token: str) -> Session | None:
    if not token or len(token) > MAX_TOKEN_LENGTH:
        return None
    return await session_tables.find_session(tx, hash_token(token))


async def create_link_token(tx: Transaction, user_id: int, purpose: Purpose) -> str:
    """Create a token for a one-time link. Earlier links for this purpose stop working."""
    token = secrets.token_urlsafe(32)
    await session_tables.remove_tokens(tx, user_id, purpose)
    await session_tables.add_token(tx, hash_token(token), purpose, user_id, tx.now + LIFETIMES[purpose])
    return token


async def create_link(tx: Transaction, user_id: int, purpose: Purpose, base_url: str) -> str:
    return f"{base_url.rstrip('/')}{LINK_PATH}{await create_link_token(tx, user_id, purpose)}"


async def find_link(tx: Transaction, token: str) -> Row | None:
    return await session_tables.find_token(tx, hash_token(token)) if len(token) <= MAX_TOKEN_LENGTH else None


async def use_link(tx: Transaction, token: str) -> Row | None:
    """Use up a link and return its purpose and user, or None if it is no longer valid.

    If several requests use a link at once, only one of them deletes the row and gets the user.
    """
    link = await find_link(tx, token)
    if link is None or not await session_tables.remove_token(tx, hash_token(token)):
        return None
    return link


CHALLENGE_AGE: Final = timedelta(minutes=5)
RANDOM_BYTES: Final = 24
TIME_BYTES: Final = 8
HMAC_BYTES: Final = 32
TIMEOUT_MS: Final = int(CHALLENGE_AGE.total_seconds() * 1000)


@dataclass(frozen=True, slots=True)
class RelyingParty:
    """The host that passkeys belong to (`id`) and the origin of the site's pages."""

    id: str
    origin: str


class InvalidPasskey(Exception):
    """Raised if an authenticator's response is malformed, expired, reused, or not signed by a known passkey."""


def make_challenge(secret: bytes, action: str, now: datetime) -> bytes:
    """Return a new challenge for one action, such as "sign-in"."""
    head = secrets.token_bytes(RANDOM_BYTES) + int(now.timestamp()).to_bytes(TIME_BYTES)
    return head + _sign(secret, action, head)


def is_valid_challenge(secret: bytes, action: str, challenge: bytes, now: datetime) -> bool:
    head, signature = challenge[:-HMAC_BYTES], challenge[-HMAC_BYTES:]
    if len(challenge) != RANDOM_BYTES + TIME_BYTES + HMAC_BYTES:
        return False
    if not credentials.constant_time_equals(_sign(secret, action, head), signature):
        return False
    made_at = datetime.fromtimestamp(int.from_bytes(head[RANDOM_BYTES:]), UTC)
    return now - made_at < CHALLENGE_AGE


async def make_registration_options(tx: Transaction, session: Session, relying_party: RelyingParty) -> str:
    known = [row["credential_id"] for row in await session_tables.list_passkeys(tx, session.user_id)]
    options = generate_registration_options(
        rp_id=relying_party.id,
        rp_name=tx.site.name,
        user_id=make_user_handle(tx.site.secret, session.user_id),
        user_name=session.login,
        user_display_name=session.display_name or session.login,
        challenge=make_challenge(tx.site.secret, f"register {session.user_id}", tx.now),
        timeout=TIMEOUT_MS,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED,
            require_resident_key=True,
            user_verification=UserVerificationRequirement.REQUIRED,
        ),
        exclude_credentials=[PublicKeyCredentialDescriptor(id=credential_id) for credential_id in known],
    )
    return options_to_json(options)


async def register_passkey(
    tx: Transaction, user_id: int, name: str, credential: Mapping[str, Any], relying_party: RelyingParty
) -> None:
    """Verify an authenticator's response and add its passkey; raise InvalidPasskey if verification fails."""
    challenge = await _use_challenge(tx, credential, f"register {user_id}")
    try:
        verified = verify_registration_response(
            credential=dict(credential),
            expected_challenge=challenge,
            expected_rp_id=relying_party.id,
            expected_origin=relying_party.origin,
            require_user_verification=True,
        )
    except Exception as error:  # The library's parsers raise many exception types for malformed input.
        raise InvalidPasskey from error
    passkey = Passkey(user_id, verified.credential_public_key, verified.sign_count)
    if not await session_tables.add_passkey(tx, verified.credential_id, passkey, name):
        raise InvalidPasskey


def make_request_options(secret: bytes, action: str, relying_party: RelyingParty, now: datetime) -> str:
    """Return the options, as JSON, for signing with any passkey that belongs to this host."""
    options = generate_authentication_options(
        rp_id=relying_party.id,
        challenge=make_challenge(secret, action, now),
        timeout=TIMEOUT_MS,
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    return options_to_json(options)


async def verify_passkey(
    tx: Transaction, credential: Mapping[str, Any], action: str, relying_party: RelyingParty
) -> int:
    """Verify a signature and return the user's ID; raise InvalidPasskey if it is invalid."""
    challenge = await _use_challenge(tx, credential, action)
    try:
        credential_id = base64url_to_bytes(credential["rawId"])
        passkey = await session_tables.find_passkey(tx, credential_id)
        if passkey is None:
            raise InvalidPasskey
        _check_user_handle(tx.site.secret, passkey.user_id, credential)
        verified = verify_authentication_response(
            credential=dict(credential),
            expected_challenge=challenge,
            expected_rp_id=relying_party.id,
            expected_origin=relying_party.origin,
            credential_public_key=passkey.public_key,
            credential_current_sign_count=passkey.sign_count,
            require_user_verification=True,
        )
    except Exception as error:  # The library's parsers raise many exception types for malformed input.
        raise InvalidPasskey from error
    await session_tables.record_passkey_use(tx, credential_id, verified.new_sign_count, tx.now)
    return passkey.user_id


def make_user_handle(secret: bytes, user_id: int) -> bytes:
    """Return the opaque user ID that authenticators store."""
    return credentials.keyed_hash(secret, "passkey-user", str(user_id))


def _check_user_handle(secret: bytes, user_id: int, credential: Mapping[str, Any]) -> None:
    """Raise InvalidPasskey if the response contains a user handle that does not belong to the passkey's owner."""
    handle = credential["response"].get("userHandle")
    if handle and base64url_to_bytes(handle) != make_user_handle(secret, user_id):
        raise InvalidPasskey


async def _use_challenge(tx: Transaction, credential: Mapping[str, Any], action: str) -> bytes:
    """Return the signed challenge and mark it as used; raise InvalidPasskey if it is invalid.

    The mark persists only if the transaction commits; an invalid signature rolls it back.
    """
    try:
        client_data = parse_client_data_json(base64url_to_bytes(credential["response"]["clientDataJSON"]))
    except Exception as error:  # The library's parsers raise many exception types for malformed input.
        raise InvalidPasskey from error
    challenge = client_data.challenge
    if not is_valid_challenge(tx.site.secret, action, challenge, tx.now):
        raise InvalidPasskey
    token_hash = credentials.keyed_hash(tx.site.secret, "used-challenge", challenge.hex())
    expires_at = tx.now + CHALLENGE_AGE
    if not await session_tables.add_token(tx, token_hash, Purpose.USED_CHALLENGE, None, expires_at):
        raise InvalidPasskey
    return challenge


def _sign(secret: bytes, action: str, head: bytes) -> bytes:
    return credentials.keyed_hash(secret, f"passkey-challenge {action}", head.hex())

"""Passkeys: registering them, and verifying the signature of one.

A challenge is random bytes, the time and an HMAC with the secret of the site, so it needs no storage until it is
used. A used one is recorded until it expires, so it works once.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
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

from kalends.core import credentials
from kalends.operations.sessions import Purpose
from kalends.store import passkeys, sessions
from kalends.store.database import Transaction
from kalends.store.passkeys import Passkey
from kalends.store.sessions import Session

CHALLENGE_AGE: Final = timedelta(minutes=5)
RANDOM_BYTES: Final = 24
TIME_BYTES: Final = 8
HMAC_BYTES: Final = 32
TIMEOUT_MS: Final = int(CHALLENGE_AGE.total_seconds() * 1000)


@dataclass(frozen=True, slots=True)
class RelyingParty:
    """The host that passkeys belong to (`id`), and the origin of its pages."""

    id: str
    origin: str


class InvalidPasskey(Exception):
    """A response of an authenticator is malformed, expired, used before, or not signed by a known passkey."""


def make_challenge(secret: bytes, action: str, now: datetime) -> bytes:
    """Return a new challenge that is valid for one action, such as "sign-in"."""
    head = secrets.token_bytes(RANDOM_BYTES) + int(now.timestamp()).to_bytes(TIME_BYTES)
    return head + _sign(secret, action, head)


def is_valid_challenge(secret: bytes, action: str, challenge: bytes, now: datetime) -> bool:
    """Return whether a challenge was made for this action and has not expired."""
    head, signature = challenge[:-HMAC_BYTES], challenge[-HMAC_BYTES:]
    if len(challenge) != RANDOM_BYTES + TIME_BYTES + HMAC_BYTES:
        return False
    if not credentials.constant_time_equals(_sign(secret, action, head), signature):
        return False
    made_at = datetime.fromtimestamp(int.from_bytes(head[RANDOM_BYTES:]), UTC)
    return now - made_at < CHALLENGE_AGE


async def make_registration_options(tx: Transaction, session: Session, relying_party: RelyingParty) -> str:
    """Return the options for a new passkey of a user, as JSON."""
    known = [row["credential_id"] for row in await passkeys.list_passkeys(tx, session.user_id)]
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
    """Verify the response of an authenticator and add its passkey; raise InvalidPasskey if that is not possible."""
    challenge = await _use_challenge(tx, credential, f"register {user_id}")
    try:
        verified = verify_registration_response(
            credential=dict(credential),
            expected_challenge=challenge,
            expected_rp_id=relying_party.id,
            expected_origin=relying_party.origin,
            require_user_verification=True,
        )
    except Exception as error:  # The parsers of the library raise many types for malformed input.
        raise InvalidPasskey from error
    passkey = Passkey(user_id, verified.credential_public_key, verified.sign_count)
    if not await passkeys.add_passkey(tx, verified.credential_id, passkey, name):
        raise InvalidPasskey


def make_request_options(secret: bytes, action: str, relying_party: RelyingParty, now: datetime) -> str:
    """Return the options for a signature of any passkey of this host, as JSON."""
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
    """Verify a signature and return the ID of the user; raise InvalidPasskey if it is not valid."""
    challenge = await _use_challenge(tx, credential, action)
    try:
        credential_id = base64url_to_bytes(credential["rawId"])
        passkey = await passkeys.find_passkey(tx, credential_id)
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
    except Exception as error:  # The parsers of the library raise many types for malformed input.
        raise InvalidPasskey from error
    await passkeys.record_passkey_use(tx, credential_id, verified.new_sign_count, tx.now)
    return passkey.user_id


def make_user_handle(secret: bytes, user_id: int) -> bytes:
    """Return the opaque ID of a user that authenticators store."""
    return credentials.keyed_hash(secret, "passkey-user", str(user_id))


def _check_user_handle(secret: bytes, user_id: int, credential: Mapping[str, Any]) -> None:
    """Raise InvalidPasskey if the authenticator names another user than the owner of the passkey."""
    handle = credential["response"].get("userHandle")
    if handle and base64url_to_bytes(handle) != make_user_handle(secret, user_id):
        raise InvalidPasskey


async def _use_challenge(tx: Transaction, credential: Mapping[str, Any], action: str) -> bytes:
    """Return the challenge that was signed, and record it as used; raise InvalidPasskey if it is not valid.

    The record is kept only if the transaction is committed, that is, if the signature is valid.
    """
    try:
        client_data = parse_client_data_json(base64url_to_bytes(credential["response"]["clientDataJSON"]))
    except Exception as error:  # The parsers of the library raise many types for malformed input.
        raise InvalidPasskey from error
    challenge = client_data.challenge
    if not is_valid_challenge(tx.site.secret, action, challenge, tx.now):
        raise InvalidPasskey
    token_hash = credentials.keyed_hash(tx.site.secret, "used-challenge", challenge.hex())
    expires_at = tx.now + CHALLENGE_AGE
    if not await sessions.add_token(tx, token_hash, Purpose.USED_CHALLENGE, None, expires_at):
        raise InvalidPasskey
    return challenge


def _sign(secret: bytes, action: str, head: bytes) -> bytes:
    return credentials.keyed_hash(secret, f"passkey-challenge {action}", head.hex())

"""Generating, hashing and comparing passwords: account passwords with a slow hash, random ones with a keyed one."""

import hashlib
import hmac
import secrets
import string
import time
from functools import cache
from typing import Final
from uuid import UUID

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

ALPHABET: Final = string.ascii_letters + string.digits
PASSWORD_LENGTH: Final = 24  # random characters: 142 bits

_hasher = PasswordHasher()


def new_application_password() -> str:
    """Generate a password in groups of four characters; the spaces are ignored when it is checked."""
    letters = "".join(secrets.choice(ALPHABET) for _ in range(PASSWORD_LENGTH))
    return " ".join(letters[at : at + 4] for at in range(0, PASSWORD_LENGTH, 4))


def keyed_hash(key: bytes, purpose: str, secret: str) -> bytes:
    """Hash a secret that is long and random, or that is checked on every request."""
    return hmac.digest(key, f"{purpose}\0{secret}".encode(), hashlib.sha256)


def hash_application_password(key: bytes, password: str) -> bytes:
    return keyed_hash(key, "application-password", password.replace(" ", ""))


def constant_time_equals(one: bytes, other: bytes) -> bool:
    """Compare in a time that does not depend on the position of the first difference."""
    return hmac.compare_digest(one, other)


def hash_account_password(password: str) -> str:
    return _hasher.hash(password)


def verify_account_password(stored: str, password: str) -> bool:
    """Return whether a password matches its hash. Without one (an empty text), this takes as long and is False."""
    try:
        _hasher.verify(stored or _dummy_hash(), password)
    except (VerificationError, InvalidHashError):
        return False
    return bool(stored)


@cache
def _dummy_hash() -> str:
    """Return the hash of a password that nobody knows, so that an unknown login takes as long as a known one."""
    return hash_account_password(new_application_password())


def new_uid() -> str:
    """Generate a UUID of version 7, whose leading timestamp keeps new entries together in an index."""
    milliseconds = time.time_ns() // 1_000_000
    value = milliseconds << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    return str(UUID(int=value & ~(0x3 << 62) | 0x2 << 62))


def is_uuid(uid: str) -> bool:
    """Return whether a UID is a UUID, as those that Kalends generates; imported ones may be any text."""
    try:
        return str(UUID(uid)) == uid
    except ValueError:
        return False

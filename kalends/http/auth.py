"""HTTP Basic with application passwords -> the actor. Anything else is nobody.

Wrong tries are counted in the database, so that all processes slow a guesser down together.
"""

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from kalends.core import credentials, errors
from kalends.core.throttle import Limit, rate_limit_key, seconds_to_wait
from kalends.http.context import RequestContext
from kalends.kinds.kind import Actor
from kalends.store import users
from kalends.store.database import Transaction

# Wrong tries that are free, and in how many seconds one of them is forgiven.
PER_ACCOUNT_AND_IP = Limit(burst=10, seconds=30)  # one account from one address
PER_IP = Limit(burst=60, seconds=10)  # any account from one address
PER_ACCOUNT = Limit(burst=200, seconds=5)  # one account from anywhere; known addresses are exempt


@dataclass(frozen=True, slots=True)
class Authentication:
    actor: Actor
    password_id: UUID | None = None


class WrongCredentials(Exception):
    """Raised inside the transaction; the try is counted after it. `account` is what it is counted for."""

    def __init__(self, account: str) -> None:
        super().__init__(account)
        self.account = account


async def authenticate(tx: Transaction, header: str, client_ip: str) -> Authentication:
    """Who asks. Wrong credentials fail every request; credentials of another scheme are nobody's."""
    pair = _basic(header)
    if pair is None:
        return Authentication(Actor())
    login, password = pair
    candidates = await users.find_credentials(tx, login)
    account = _account_subject(login, candidates)
    await _check_rate_limit(tx, login, account, client_ip)
    offered_hash = credentials.hash_application_password(tx.site.secret, password)
    match: users.Credential | None = None
    # All are compared, so that the time tells nothing about which one matched.
    for credential in candidates:
        if credentials.constant_time_equals(credential.hash, offered_hash):
            match = credential
    if match is None:
        raise WrongCredentials(account)
    return Authentication(_make_actor(match), match.password_id)


async def reauthenticate(tx: Transaction, password_id: UUID) -> Actor:
    """Return the caller with the current role; raise if the password was revoked since the authentication."""
    credential = await users.find_credential(tx, password_id)
    if credential is None:
        raise errors.bad_credentials()
    return _make_actor(credential)


def _make_actor(credential: users.Credential) -> Actor:
    return Actor(credential.user_id, credential.role, credential.login, credential.read_only)


def _account_subject(login: str, candidates: list[users.Credential]) -> str:
    """Return what wrong tries are counted for: the user, however the login is written, or a login of nobody."""
    return f"user {candidates[0].user_id}" if candidates else f"login {login.lower()[:100]}"


async def _check_rate_limit(tx: Transaction, login: str, account: str, client_ip: str) -> None:
    """Refuses to look at a password while too many wrong ones are not yet forgiven."""
    limits = make_limits(account, client_ip)
    failures = await users.find_failures(tx, list(limits))
    if not failures:
        return
    waits = {
        subject: seconds_to_wait(limits[subject], count, counted_at, tx.now)
        for subject, (count, counted_at) in failures.items()
    }
    account_subject = f"account {account}"
    if waits.get(account_subject) and await users.is_known_client_ip(tx, login, client_ip):
        # The owner is not locked out by what others do elsewhere.
        waits[account_subject] = 0
    seconds = max(waits.values(), default=0)
    if seconds:
        raise errors.too_many_attempts(seconds)


def make_limits(account: str, client_ip: str) -> dict[str, Limit]:
    client_network = rate_limit_key(client_ip)
    return {
        # The address in front: a login may hold any text, " from " included.
        f"from {client_network} account {account}": PER_ACCOUNT_AND_IP,
        f"address {client_network}": PER_IP,
        f"account {account}": PER_ACCOUNT,
    }


async def record_failure(tx: Transaction, account: str, client_ip: str) -> None:
    limits = make_limits(account, client_ip)
    await users.record_failures(tx, {subject: limit.seconds for subject, limit in limits.items()})


class UsageLog:
    """Which uses of passwords were noted lately by this process: one note an hour and address will do."""

    MAX_ENTRIES = 10_000

    def __init__(self) -> None:
        self._recorded: dict[tuple[UUID, str], datetime] = {}

    def is_new(self, password_id: UUID, client_ip: str, now: datetime) -> bool:
        key, hour = (password_id, client_ip), now.replace(minute=0, second=0)
        if self._recorded.get(key) == hour:
            return False
        if len(self._recorded) >= self.MAX_ENTRIES:
            self._recorded.clear()
        self._recorded[key] = hour
        return True


USAGE_LOG = UsageLog()


def has_credentials(header: str) -> bool:
    """Tells whether a header holds credentials that can be checked; those of another scheme are nobody's."""
    return _basic(header) is not None


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


async def record_use(context: RequestContext[Any]) -> None:
    """Record the use of an application password, after the response and once an hour."""
    if context.password_id is None or not USAGE_LOG.is_new(context.password_id, context.client_ip, context.now):
        return
    agent = context.request.headers.get("user-agent", "")[:200]
    async with context.transaction(writing=True) as tx:
        await users.record_use(tx, context.password_id, context.client_ip, agent)

"""HTTP Basic authentication with application passwords, and sessions. All other requests are anonymous.

Failed logins are counted in the database, so that the limit holds across all processes.
"""

import base64
import binascii
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from kalends.core import credentials, errors
from kalends.core.errors import ApiError
from kalends.core.throttle import Limit, rate_limit_key, seconds_to_wait
from kalends.http.context import RequestContext
from kalends.kinds.kind import Actor
from kalends.operations import sessions
from kalends.store import users
from kalends.store.database import Transaction
from kalends.store.sessions import touch_session

# Failed logins allowed in a burst, and seconds until one is forgiven.
PER_ACCOUNT_AND_IP = Limit(burst=10, seconds=30)  # one account from one client
PER_IP = Limit(burst=60, seconds=10)  # any account from one client
PER_ACCOUNT = Limit(burst=200, seconds=5)  # one account from anywhere, except known clients


SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,30}", re.ASCII)
DEFAULT_REALM: Final = "Kalends"


@dataclass(frozen=True, slots=True)
class Authentication:
    actor: Actor
    password_id: UUID | None = None


class WrongCredentials(Exception):
    """The credentials are wrong. Internal: the failure is counted for `account` after the transaction."""

    def __init__(self, account: str) -> None:
        super().__init__(account)
        self.account = account


async def authenticate(tx: Transaction, header: str, client_ip: str) -> Authentication:
    """Return the caller; raise for wrong credentials, and after too many failures."""
    pair = _basic(header)
    if pair is None:
        return Authentication(Actor())
    login, password = pair
    candidates = await users.find_credentials(tx, login)
    account = _account_subject(login, candidates)
    await check_rate_limit(tx, login, account, client_ip)
    offered_hash = credentials.hash_application_password(tx.site.secret, password)
    match: users.Credential | None = None
    # Every hash is compared, so that the response time does not reveal which one matched.
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


async def authenticate_session(context: RequestContext[Any], tx: Transaction) -> None:
    """Set the caller to the user of the session cookie, or to an anonymous one if there is no valid session."""
    session = await sessions.find_session(tx, token) if (token := context.session_token) else None
    context.session = session
    context.actor = Actor(session.user_id, session.role, session.login) if session else Actor()


def _make_actor(credential: users.Credential) -> Actor:
    return Actor(credential.user_id, credential.role, credential.login, credential.read_only)


def _account_subject(login: str, candidates: list[users.Credential]) -> str:
    """Return the key of the failure counter: the user, however the login is spelled, or the unknown login."""
    return f"user {candidates[0].user_id}" if candidates else f"login {login.lower()[:100]}"


async def check_rate_limit(tx: Transaction, login: str, account: str, client_ip: str) -> None:
    """Raise 429 while too many failed logins are not yet forgiven."""
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
        # Attacks from elsewhere must not lock out the owner.
        waits[account_subject] = 0
    seconds = max(waits.values(), default=0)
    if seconds:
        raise errors.too_many_attempts(seconds)


def make_limits(account: str, client_ip: str) -> dict[str, Limit]:
    client_network = rate_limit_key(client_ip)
    return {
        # The address comes first, because a login may contain any text, including " from ".
        f"from {client_network} account {account}": PER_ACCOUNT_AND_IP,
        f"address {client_network}": PER_IP,
        f"account {account}": PER_ACCOUNT,
    }


async def record_failure(tx: Transaction, account: str, client_ip: str) -> None:
    limits = make_limits(account, client_ip)
    await users.record_failures(tx, {subject: limit.seconds for subject, limit in limits.items()})


class UsageLog:
    """Recent uses of application passwords, so that a process records one per hour and client."""

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
    """Return whether an Authorization header has Basic credentials."""
    return _basic(header) is not None


def explain_rejection(headers: Mapping[str, str]) -> ApiError | None:
    """Return the error for an Authorization header that has no Basic credentials; None if there is no such header."""
    header = headers.get("authorization", "")
    if not header or has_credentials(header):
        return None
    scheme = header.partition(" ")[0]
    if scheme.lower() != "basic" and SCHEME.fullmatch(scheme):
        return errors.unsupported_scheme(scheme)
    return errors.malformed_credentials()


def make_challenge(site_name: str) -> str:
    """Return the value of WWW-Authenticate, with the name of the site in the characters that a header permits."""
    letters = unicodedata.normalize("NFKD", site_name).encode("ascii", "ignore").decode()
    realm = re.sub(r"[^ !#-\[\]-~]+", "", letters).strip()[:100]
    return f'Basic realm="{realm or DEFAULT_REALM}", charset="UTF-8"'


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
    """Record the use of an application password, once an hour, or of a session; called after the response."""
    session = context.session
    if session is not None and context.now - session.seen_at >= sessions.SEEN_INTERVAL:
        async with context.transaction(writing=True) as tx:
            await touch_session(tx, session.token_hash, context.client_ip)
    if context.password_id is None or not USAGE_LOG.is_new(context.password_id, context.client_ip, context.now):
        return
    agent = context.request.headers.get("user-agent", "")[:200]
    async with context.transaction(writing=True) as tx:
        await users.record_use(tx, context.password_id, context.client_ip, agent)

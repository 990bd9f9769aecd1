"""HTTP Basic authentication with application passwords, and sessions. All other requests are anonymous.

Failed logins are counted in the database, so the limit holds across all processes. The console and the API accept the
session cookie only for same-origin requests. Public pages ignore it, so all visitors get the same cached page.
"""

import asyncio
import base64
import binascii
import re
import unicodedata
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from kalends.accounts.operations import sign_in_methods
from kalends.accounts.storage import user_tables
from kalends.accounts.storage.session_tables import MAX_AGE, touch_session
from kalends.calendar.access import permissions
from kalends.calendar.kinds.events import HASHES
from kalends.calendar.kinds.kind import Actor
from kalends.core import credentials, errors
from kalends.core.errors import ApiError
from kalends.core.limits import ConcurrencyLimits, Limit, PerOwnerLimiter, rate_limit_key, seconds_to_wait
from kalends.store.database import Transaction
from kalends.store.sites import Site

if TYPE_CHECKING:
    from kalends.http.request import RequestContext

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
    """Raised for wrong credentials. The failure is counted for `account` after the transaction."""

    def __init__(self, account: str) -> None:
        super().__init__(account)
        self.account = account


async def authenticate(tx: Transaction, header: str, client_ip: str) -> Authentication:
    """Return the caller; raise for wrong credentials or after too many failures."""
    pair = _basic(header)
    if pair is None:
        return Authentication(Actor())
    login, password = pair
    unknown = _account_subject(login, [])
    subjects = list(make_limits(unknown, client_ip))
    prefixes = [subject.removesuffix(unknown) for subject in subjects if subject.endswith(unknown)]
    candidates, failures = await user_tables.find_credentials(tx, login, subjects, prefixes)
    account = _account_subject(login, candidates)
    await _reject_after(failures, tx, login, account, client_ip)
    offered_hash = credentials.hash_application_password(tx.site.secret, password)
    match: user_tables.Credential | None = None
    # Compare every hash, so the response time does not reveal which one matched.
    for credential in candidates:
        if credentials.constant_time_equals(credential.hash, offered_hash):
            match = credential
    if match is None:
        raise WrongCredentials(account)
    return Authentication(_make_actor(match), match.password_id)


async def reauthenticate(tx: Transaction, password_id: UUID) -> Actor:
    """Return the caller with the current role; raise if the password was revoked after authentication."""
    credential = await user_tables.find_credential(tx, password_id)
    if credential is None:
        raise errors.bad_credentials()
    return _make_actor(credential)


async def authenticate_session(context: "RequestContext[Any]", tx: Transaction) -> None:
    """Set the caller to the session cookie's user, or to an anonymous caller if there is no valid session."""
    session = await sign_in_methods.find_session(tx, token) if (token := context.session_token) else None
    context.session = session
    context.actor = Actor(session.user_id, session.role, session.login) if session else Actor()


def _make_actor(credential: user_tables.Credential) -> Actor:
    password = (credential.read_only, credential.may_propose, credential.name)
    return Actor(credential.user_id, credential.role, credential.login, *password)


def _account_subject(login: str, candidates: list[user_tables.Credential]) -> str:
    """Return the key for counting failures: the user, however the login is spelled, or the unknown login."""
    return f"user {candidates[0].user_id}" if candidates else f"login {login.lower()[:100]}"


async def check_rate_limit(tx: Transaction, login: str, account: str, client_ip: str) -> None:
    """Raise 429 after too many failed logins, until enough are forgiven."""
    failures = await user_tables.find_failures(tx, list(make_limits(account, client_ip)))
    await _reject_after(failures, tx, login, account, client_ip)


async def _reject_after(
    failures: user_tables.Failures, tx: Transaction, login: str, account: str, client_ip: str
) -> None:
    limits = make_limits(account, client_ip)
    waits = {
        subject: seconds_to_wait(limit, *failures[subject], tx.now)
        for subject, limit in limits.items()
        if subject in failures
    }
    account_subject = f"account {account}"
    if waits.get(account_subject) and await user_tables.is_known_client_ip(tx, login, client_ip):
        # Attacks from other addresses must not lock out the account's owner.
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
    await user_tables.record_failures(tx, {subject: limit.seconds for subject, limit in limits.items()})


class UsageLog:
    """Remembers which uses of application passwords have been recorded: one per hour and client, in each process."""

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
    return _basic(header) is not None


def explain_rejection(headers: Mapping[str, str]) -> ApiError | None:
    """Return the error for an unsupported or malformed Authorization header; None if there is no such error."""
    header = headers.get("authorization", "")
    if not header or has_credentials(header):
        return None
    scheme = header.partition(" ")[0]
    if scheme.lower() != "basic" and SCHEME.fullmatch(scheme):
        return errors.unsupported_scheme(scheme)
    return errors.malformed_credentials()


def make_challenge(site_name: str) -> str:
    """Return the WWW-Authenticate value, with the site name reduced to characters that a header permits."""
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


async def record_use(context: "RequestContext[Any]") -> None:
    """Record the use of a session or, once an hour, an application password; called after the response."""
    session = context.session
    if session is not None and context.now - session.seen_at >= sign_in_methods.SEEN_INTERVAL:
        async with context.transaction(writing=True) as tx:
            await touch_session(tx, session.token_hash, context.client_ip)
    if context.password_id is None or not USAGE_LOG.is_new(context.password_id, context.client_ip, context.now):
        return
    agent = context.request.headers.get("user-agent", "")[:200]
    async with context.transaction(writing=True) as tx:
        await user_tables.record_use(tx, context.password_id, context.client_ip, agent)


# Event passwords in requests: hashing, and rate limits for guesses.

# Maximum number of different event passwords in a batch; hashing each takes about a tenth of a second.
MAX_NEW_PASSWORDS: Final = 20


@asynccontextmanager
async def admit_password(context: "RequestContext[Any]", values: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """Yield the parameters with the password replaced by its hashes; raise 429 after too many wrong guesses.

    The guess is counted first, in a separate transaction: the request itself is read-only, and concurrent requests
    must not all slip past the limit. A correct guess is refunded afterward.
    """
    if not values.get("password"):
        yield dict(values)
        return
    async with context.transaction(writing=True) as tx:
        await permissions.count_guess(tx, context.client_ip)
        site, has_protected = tx.site, await permissions.has_passwords(tx)
    # Hashing is slow, so hold no database connection meanwhile.
    hashes = await permissions.hash_guess(site, values["password"]) if has_protected else []
    try:
        yield {**values, "password": hashes}
    finally:
        # If the refund fails, the guess stays counted, which is harmless.
        with suppress(ApiError):
            if hashes:
                async with context.transaction(writing=True) as tx:
                    await permissions.refund_guess(tx, context.actor, context.client_ip, hashes)


def find_new_passwords(values: Mapping[str, Any]) -> set[str]:
    """Return the event passwords that a write or batch sets."""
    bodies = [values, *[operation.values for operation in values.get("operations", ())]]
    # An accepted proposal has the parameters of the event in `values`.
    writes = [*bodies, *[nested for body in bodies if isinstance(nested := body.get("values"), dict)]]
    return {password for write in writes if isinstance(password := write.get("new_password"), str) and password}


async def hash_new_passwords(site: Site, values: Mapping[str, Any]) -> None:
    """Hash the event passwords that a write or batch sets, before the site is locked."""
    passwords = find_new_passwords(values)
    if len(passwords) > MAX_NEW_PASSWORDS:
        raise errors.invalid(
            "operations", "must set at most {maximum} different event passwords.", maximum=MAX_NEW_PASSWORDS
        )
    for password in passwords:
        await HASHES.compute_and_add(site.secret, password)


# The session cookie, and protection against requests that other sites trigger with it.

# The prefix makes browsers accept the cookie only over HTTPS (or from localhost), for this host and all paths.
COOKIE: Final = "__Host-kalends"
SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")


def read_cookie(request: Request) -> str:
    return request.cookies.get(COOKIE, "")


def set_cookie(response: Response, token: str) -> None:
    response.set_cookie(
        COOKIE, token, max_age=int(MAX_AGE.total_seconds()), path="/", secure=True, httponly=True, samesite="lax"
    )


def delete_cookie(response: Response) -> None:
    response.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="lax")


def is_same_origin(request: Request, authority: str, base_url: str) -> bool:
    """Return whether a same-origin page sent the request.

    Browsers send `Sec-Fetch-Site` over HTTPS and to localhost, and pages cannot change it. If the header is missing,
    `Origin` is checked. A request with neither header is not accepted.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return site == "same-origin"
    if not origin:
        return False
    return urlsplit(origin).netloc.lower() in {authority, urlsplit(base_url).netloc.lower()} - {""}


def require_same_origin(request: Request, authority: str, base_url: str) -> None:
    """Reject a write with a session cookie that might come from another site's page.

    `request.method` is the method that was sent, because a method override in a form must not bypass this check.
    """
    if request.method not in SAFE_METHODS and not is_same_origin(request, authority, base_url):
        raise errors.cross_site()


def is_navigation(request: Request) -> bool:
    """Return whether the browser is opening the page in a tab, even through a link from another site."""
    headers = request.headers
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


def is_own_read(request: Request, authority: str, base_url: str) -> bool:
    """Return whether a read may use the session cookie: the user entered the URL, or a same-origin page sent it."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return site in ("same-origin", "none")
    return not origin or is_same_origin(request, authority, base_url)


# Account password hashing and verification in a limited number of threads.

# One client alone can neither keep both threads busy nor fill the queue.
LIMITS: Final = ConcurrencyLimits(per_owner=1, total=2, waiting_per_owner=4, waiting=16)
# Seconds that an attempt waits before it is rejected with 503.
MAX_WAIT: Final = 5.0


class AccountPasswords:
    """Hashes and verifies account passwords. Raises 503 if too many attempts are waiting."""

    def __init__(self) -> None:
        self._limiter = PerOwnerLimiter(LIMITS)
        self._threads = ThreadPoolExecutor(LIMITS.total, thread_name_prefix="account-password")
        self._tasks: set[asyncio.Task[Any]] = set()

    async def verify(self, stored: str, password: str, client_ip: str) -> bool:
        """Return whether a password matches its hash.

        An empty hash takes just as long to verify and never matches.
        """
        return await self._run(lambda: credentials.verify_account_password(stored, password), client_ip)

    async def hash(self, password: str, client_ip: str) -> str:
        return await self._run(lambda: credentials.hash_account_password(password), client_ip)

    async def _run[T](self, work: Callable[[], T], client_ip: str) -> T:
        """Run work in a thread. The work counts toward the limit until it ends, even if the client disconnects."""
        task = asyncio.create_task(self._run_in_slot(work, client_ip))
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # nothing awaits the task after the client disconnects

    async def _run_in_slot[T](self, work: Callable[[], T], client_ip: str) -> T:
        async with self._limiter.slot(rate_limit_key(client_ip), MAX_WAIT):
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)


# Protection against cross-site request forgery with credentials stored in a browser.

# Content types that browsers send across sites without a preflight request: HTML form types, or none. Every other
# type needs a preflight, whose response does not allow stored credentials.
SIMPLE_CONTENT_TYPES: Final = ("", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain")


def reject_cross_site(request: Request, origins: Sequence[str]) -> None:
    """Reject a write that a page on another site might have triggered, unless `origins` lists that site.

    Only browsers send `Sec-Fetch-Site`, and pages cannot change it.
    """
    headers, explicit = request.headers, set(origins) - {"*", "null"}
    if headers.get("sec-fetch-site", "") != "cross-site" or headers.get("origin", "*") in explicit:
        return
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method == "POST" and content_type in SIMPLE_CONTENT_TYPES:
        raise errors.cross_site()

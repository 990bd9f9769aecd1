"""The application state, the databases it reads from, and the HTTP request context."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, ClassVar, Final, Protocol
from urllib.parse import quote
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from kalends.accounts.storage.session_tables import Session
from kalends.adapters import metrics
from kalends.calendar.access.caching import EventFragments
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.access.permissions import count_failed_write, is_counted_failure, may_write, rank
from kalends.calendar.kinds.kind import ANONYMOUS_ACTOR, Actor
from kalends.core import errors, messages
from kalends.core.egress import AllowedNetwork
from kalends.core.errors import ApiError
from kalends.core.limits import ConcurrencyLimits, IpNetwork, PerOwnerLimiter, find_client_ip
from kalends.core.params import Param
from kalends.fleet.storage.replica import Replica
from kalends.http import auth
from kalends.http.auth import AccountPasswords
from kalends.http.bodies import Corrections, hide_token
from kalends.http.cache import TouchedTags
from kalends.http.health import WorkerWatch
from kalends.http.router import Endpoint, Interface, Route
from kalends.imports.operations.page_reader import PageReader
from kalends.media.adapters.library import Library
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.site_database import SiteDatabase
from kalends.store.site_revisions import Revisions, SiteRevision, SiteRevisions
from kalends.store.sites import Site
from kalends.store.sql import Sql

MEDIA_PREFIX: Final = "/media"
MAX_REVISION_DIGITS: Final = 100
# Maximum number of feeds and sitemaps rendered concurrently in a process; each takes seconds of CPU time.
FEED_LIMITS = ConcurrencyLimits(per_owner=1, total=1, waiting_per_owner=2, waiting=20)


# A replica answers a read if its data is recent enough for the request; otherwise the primary does.


@dataclass(frozen=True, slots=True)
class ReadRequest:
    host: str
    now: datetime
    client_ip: str
    anonymous: bool = True  # no credentials; the statement timeout is shorter
    prefers_replica: bool = True  # whether a replica may answer while the primary is available
    accepts_replica: bool = True  # whether a replica may answer while the primary is unavailable
    min_revision: int = 0  # the site revision that the response must include


class ReadSources:
    """The primary or all cells, and a replica of the primary if there is one."""

    def __init__(self, primary: SiteDatabase, replica: Replica | None = None) -> None:
        self.primary = primary
        self.replica = replica
        self._revisions: list[Revisions] = [primary.make_revisions()]
        if replica is not None:
            self._revisions.insert(0, SiteRevisions(replica))

    @property
    def is_primary_away(self) -> bool:
        return self.replica is not None and self.replica.is_primary_away

    @property
    def outage_age(self) -> float:
        """Return how many seconds a replica has been answering without the primary."""
        return self.replica.outage_age if self.replica is not None else 0.0

    @property
    def answers_without_primary(self) -> bool:
        return self.is_primary_away and self.replica is not None and self.replica.is_available

    @asynccontextmanager
    async def transaction(self, request: ReadRequest) -> AsyncIterator[Transaction]:
        """Open a read-only transaction, on the replica if it satisfies `request` or else on the primary."""
        async with AsyncExitStack() as stack:
            tx = await self._enter_replica(stack, request)
            if tx is None:
                tx = await stack.enter_async_context(_open_read(self.primary, request))
            yield tx

    async def current_revision(self, host: str, request: ReadRequest | None = None) -> SiteRevision | None:
        """Return the revision to check cached responses against; None if the host has no site.

        Without a replica, `request` has no effect.
        """
        if request is not None and self._may_use_replica(request):
            try:
                found = await self._revisions[0].current(host)
            except ApiError:
                _count_read("failed")
            else:
                if found is not None and found.revision >= request.min_revision:
                    return found
        return await self._revisions[-1].current(host)

    async def fetch_changes(self, site_id: int, sql: Sql) -> Sequence[Row]:
        """Read a site's changes from the primary, or from the replica while the primary is unavailable."""
        if self.replica is None:
            return await self.primary.fetch_for_site(site_id, sql)
        if not self.answers_without_primary:
            with suppress(ApiError):
                return await self.primary.fetch_for_site(site_id, sql)
        return await self.replica.database.fetch_for_site(site_id, sql)

    async def find_site_id(self, host: str) -> int | None:
        """Return the ID of a host's site.

        It was looked up within the last minute, unless all databases are unavailable.
        """
        if self.replica is not None and self.replica.is_available:
            with suppress(ApiError):
                if (site_id := await self._revisions[0].find_site_id(host)) is not None:
                    return site_id
        return await self._revisions[-1].find_site_id(host)

    def last_known(self, host: str, max_age: float) -> tuple[SiteRevision, float] | None:
        """Return the last confirmed revision of a host's site and its age, unless it is older than `max_age`."""
        known = [last for revisions in self._revisions if (last := revisions.last_known(host, max_age))]
        return min(known, key=lambda last: last[1], default=None)

    def _may_use_replica(self, request: ReadRequest) -> bool:
        if self.replica is None:
            return False
        if not (request.prefers_replica or (request.accepts_replica and self.replica.is_primary_away)):
            return False
        if not self.replica.is_available:
            _count_read("unavailable")
            return False
        return True

    async def _enter_replica(self, stack: AsyncExitStack, request: ReadRequest) -> Transaction | None:
        """Open a transaction on the replica; return None if the replica is unavailable or its data is too old."""
        if self.replica is None or not self._may_use_replica(request):
            return None
        async with AsyncExitStack() as attempt:
            try:
                tx = await attempt.enter_async_context(_open_read(self.replica.database, request))
            except ApiError as error:
                # A lower status means that the replica does not have the site yet.
                if error.status >= 500:
                    self.replica.set_unavailable()
                _count_read("failed")
                return None
            outcome = self._judge(self.replica, tx, request)
            _count_read(outcome)
            if outcome == "replica":
                await stack.enter_async_context(attempt.pop_all())
                return tx
        return None

    @staticmethod
    def _judge(replica: Replica, tx: Transaction, request: ReadRequest) -> str:
        if not replica.is_recent(tx.log_position or 0):
            return "behind"
        return "replica" if tx.site.revision >= request.min_revision else "revision"


def _open_read(database: SiteDatabase, request: ReadRequest) -> AbstractAsyncContextManager[Transaction]:
    return database.transaction(
        request.host, request.now, writing=False, anonymous=request.anonymous, client_ip=request.client_ip
    )


def _count_read(outcome: str) -> None:
    metrics.find_series(metrics.REPLICA_READS, outcome).inc()


@dataclass(frozen=True, slots=True)
class AppState:
    database: SiteDatabase
    sources: ReadSources
    touched_tags: TouchedTags
    worker_watch: WorkerWatch
    fragments: EventFragments | None = None  # None without a cache
    batch_params: tuple[Param, ...] = ()  # the parameters of batches that the console's bulk edits run
    base_url: str = ""
    max_body_bytes: int = 2 * 1024 * 1024
    trusted_proxies: tuple[IpNetwork, ...] = ()
    allowed_networks: tuple[AllowedNetwork, ...] = ()  # non-public networks that may be contacted
    origins: tuple[str, ...] = ()  # origins whose scripts may read responses
    stream_url: str = ""  # where live lists are: "/" on this host, another origin, or empty if there are none
    library: Library | None = None
    page_reader: PageReader = field(default_factory=PageReader)
    media_url: str = ""
    feed_limiter: PerOwnerLimiter = field(default_factory=lambda: PerOwnerLimiter(FEED_LIMITS))
    max_daily_records: int = 0
    trash_days: int = 30  # days until the worker deletes trashed records
    sends_email: bool = False  # whether an SMTP server is configured
    account_passwords: AccountPasswords = field(default_factory=AccountPasswords)
    # tasks that count failed writes
    counting: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def can_send_links(self, site: Site) -> bool:
        """Return whether links can be sent to people who are not signed in.

        This requires a configured base URL. Otherwise, attackers could use the Host header to trigger emails that
        link to their own host.
        """
        return self.sends_email and bool(site.base_url or self.base_url)


NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class MatchedRoute(Protocol):
    """Route attributes needed by shared request handling."""

    @property
    def pattern(self) -> str: ...

    @property
    def known_names(self) -> frozenset[str]: ...

    @property
    def corrections(self) -> Corrections:
        """Return the functions that replace invalid parameter values."""
        ...


@dataclass(slots=True, kw_only=True)
class RequestContext[R: MatchedRoute]:
    """One HTTP request; `ApiRequest`, `PageRequest` and `ConsoleRequest` extend it."""

    # How callers may identify themselves: not at all ("public"), with the session cookie ("session"), or with either
    # the cookie or an application password ("credentials").
    access: ClassVar[str] = "public"
    shows_pages: ClassVar[bool] = True  # whether errors are HTML pages instead of JSON
    request: Request
    state: AppState
    authority: str  # the validated Host header
    host: str  # `authority` without the port
    now: datetime
    canonical_prefix: str  # API path prefix for links in records
    path: str
    handler: "Callable[[Any], Awaitable[Response]] | None" = None
    route: R | None = None
    path_params: dict[str, str] = field(default_factory=dict[str, str])
    actor: Actor = ANONYMOUS_ACTOR
    password_id: UUID | None = None  # the caller's application password
    session: Session | None = None
    # Set once the site has been read.
    site_language: str = ""
    site_name: str = ""
    ignored_params: tuple[str, ...] = ()  # names of ignored parameters to report
    is_strict: bool = False  # whether ignored parameters are rejected
    # Set for a cacheable response: its site revision, its expiry and its cache tags.
    site_revision: SiteRevision | None = None
    expires_at: datetime | None = None
    cache_tags: tuple[str, ...] = ()
    is_from_replica: bool = False  # whether a replica answered the last read
    outage_age: float = 0.0  # seconds since the answering replica lost its primary
    needs_primary: bool = False  # whether an attempt on the replica has failed
    is_retried: bool = False
    read_revision: SiteRevision | None = None  # the site and its revision, as read in the last transaction
    is_stream: bool = False  # whether the response is a stream, which has no end
    site_secret: bytes = b""  # key for hashing cache tags in shared caches
    _client_ip: str | None = None

    def remember_site(self, site: Site) -> None:
        """Keep the site settings that responses need after the transaction."""
        self.site_language, self.site_name = site.language, site.name
        self.read_revision = SiteRevision(site.id, site.revision)

    @property
    def accept_language(self) -> str:
        return self.request.headers.get("accept-language", "")

    @property
    def language(self) -> str:
        return messages.choose_language(self.request.scope["query_string"], self.accept_language, self.site_language)

    @property
    def error_language(self) -> str:
        return self.language

    @property
    def route_pattern(self) -> str:
        return self.route.pattern if self.route else "other"

    @property
    def client_ip(self) -> str:
        if self._client_ip is None:
            self._client_ip = read_client_ip(self.request, self.state)
        return self._client_ip

    @property
    def log_path(self) -> str:
        return hide_token(self.request.scope["path"])

    @property
    def credentials(self) -> str:
        """Return the Authorization header if it contains credentials that can be checked, otherwise ""."""
        header = self.request.headers.get("authorization", "") if self.access == "credentials" else ""
        return header if header and auth.has_credentials(header) else ""

    @property
    def session_token(self) -> str:
        """Return the session cookie of a same-origin request; handlers check the origin of a write.

        An `Authorization` header takes precedence over the cookie.

        The console also accepts the cookie if the user followed a link from another site: opening a console page
        changes nothing, and other sites can neither frame nor read the page.
        """
        if self.access == "public":
            return ""
        request, token = self.request, auth.read_cookie(self.request)
        is_write = request.method not in auth.SAFE_METHODS
        if self.access == "session" and not is_write and auth.is_navigation(request):
            return token
        if not token or "authorization" in request.headers:
            return ""
        return token if is_write or auth.is_own_read(request, self.authority, self.state.base_url) else ""

    @property
    def is_cacheable(self) -> bool:
        return self.access != "session"

    @property
    def is_public(self) -> bool:
        """Return whether the response may be shared, because nothing in the request identifies the caller."""
        return "authorization" not in self.request.headers and not self.session_token

    @property
    def own_headers(self) -> Mapping[str, str]:
        """Return headers that depend on this request. They are also added to a response from the cache."""
        return NO_HEADERS

    def make_headers(self, response: Response, vary: str) -> dict[str, str]:
        """Return the headers for all responses of this kind.

        `vary` names the request headers on which they depend.
        """
        return {"Vary": vary} if self.is_cacheable else {}

    def base_url(self, site_url: str) -> str:
        """Return the base URL for links: the site's URL, the server's URL or the requested host, in this order."""
        requested = f"{self.request.scope['scheme']}://{self.authority or 'localhost'}"
        return (site_url or self.state.base_url or requested).rstrip("/")

    @property
    def min_revision(self) -> int | None:
        """Return the minimum site revision that the client requires; None if it requires none."""
        text = self.request.headers.get("x-kalends-revision", "")
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= MAX_REVISION_DIGITS):
            raise errors.invalid("X-Kalends-Revision", "must be a site revision, as in the response to a write.")
        return int(text)

    @property
    def read_request(self) -> ReadRequest:
        """Return this request's requirements for the database that answers it.

        Callers with an account expect to see their own writes, so the primary answers unless the client names the
        required revision. The primary also answers requests for public pages with a session cookie, because the user
        might have just changed these pages.
        """
        min_revision = self.min_revision
        is_read = self.is_cacheable and self.request.method in ("GET", "HEAD") and not self.needs_primary
        is_anonymous = self.is_public and not auth.read_cookie(self.request)
        return ReadRequest(
            self.host,
            self.now,
            self.client_ip,
            anonymous=not (self.credentials or self.session_token),
            prefers_replica=is_read and (is_anonymous or bool(self.credentials and min_revision is not None)),
            accepts_replica=is_read and self.is_public,
            min_revision=min_revision or 0,
        )

    async def current_revision(self) -> SiteRevision | None:
        """Return the revision for checking cached responses to this request; None if the host has no site."""
        sources = self.state.sources
        request = self.read_request if sources.replica is not None else None
        return await sources.current_revision(self.host, request)

    def accepts_revision(self, revision: int) -> bool:
        """Return whether an outdated response has the required revision; never if there is a session cookie."""
        return not auth.read_cookie(self.request) and revision >= (self.min_revision or 0)

    def retry(self) -> bool:
        """Return whether to retry a request that failed on a replica. Only one retry is allowed."""
        if not self.is_from_replica or self.is_retried:
            return False
        self.is_retried = True
        self.needs_primary = not self.state.sources.is_primary_away
        return True

    def transaction(self, *, writing: bool = False) -> AbstractAsyncContextManager[Transaction]:
        """Open a transaction on the request's site; a replica may answer reads."""
        if writing:
            return self._write()
        if self.state.sources.replica is not None:
            return self._read()
        return self._open(writing=False)

    def _open(self, *, writing: bool) -> AbstractAsyncContextManager[Transaction]:
        return self.state.database.transaction(
            self.host,
            self.now,
            writing=writing,
            anonymous=not (self.credentials or self.session_token),
            client_ip=self.client_ip,
        )

    @asynccontextmanager
    async def _write(self) -> AsyncIterator[Transaction]:
        """Open a write transaction. A failed write may count toward the user's quota."""
        tx: Transaction | None = None
        try:
            async with self._open(writing=True) as tx:
                yield tx
        except BaseException as error:
            if tx is not None and is_counted_failure(tx, error):
                counting = asyncio.create_task(self._count_failure())
                self.state.counting.add(counting)
                counting.add_done_callback(self.state.counting.discard)
                # If the client has disconnected, do not wait for the count.
                if not isinstance(error, asyncio.CancelledError):
                    await asyncio.wait([counting])
            raise

    async def _count_failure(self) -> None:
        with suppress(ApiError):
            async with self._open(writing=True) as tx:
                await count_failed_write(self.operation_context(tx))

    @asynccontextmanager
    async def _read(self) -> AsyncIterator[Transaction]:
        async with self.state.sources.transaction(self.read_request) as tx:
            self.is_from_replica = tx.log_position is not None
            self.outage_age = self.state.sources.outage_age if self.is_from_replica else 0.0
            yield tx

    def operation_context(self, tx: Transaction, extension_prefix: str = "", **more: Any) -> OperationContext:
        """Return the context for an operation in a transaction; `more` sets additional fields."""
        base_url = self.base_url(tx.site.base_url)
        return OperationContext(
            transaction=tx,
            actor=self.actor,
            base_url=base_url,
            api_url=base_url + self.canonical_prefix,
            extension_url=base_url + extension_prefix if extension_prefix else "",
            media_url=self.state.media_url or base_url + MEDIA_PREFIX,
            has_base_url=bool(tx.site.base_url or self.state.base_url),
            allowed_networks=self.state.allowed_networks,
            client_ip=self.client_ip,
            max_daily_records=self.state.max_daily_records,
            library=self.state.library,
            **more,
        )


@dataclass(slots=True, kw_only=True)
class ApiRequest(RequestContext[Route]):
    """An API request. `prefix` is the requested path prefix; links use `canonical_prefix`."""

    access = "credentials"
    shows_pages = False
    interface: Interface
    prefix: str
    namespace: str  # empty at a REST root
    namespaces: Mapping[str, Interface]  # namespaces below a REST root

    @property
    def own_headers(self) -> Mapping[str, str]:
        if not self.ignored_params:
            return NO_HEADERS
        return {"X-Kalends-Ignored-Params": ", ".join(quote(name, safe="") for name in self.ignored_params)}

    def make_headers(self, response: Response, vary: str) -> dict[str, str]:
        """Return the headers for API responses, such as `Allow`, `Link` for discovery, and `Vary`."""
        existing = response.headers
        headers = {**self.own_headers, "X-Robots-Tag": "noindex", "Vary": f"Authorization, {vary}"}
        if "Content-Language" in existing:  # Records are not translated, so they do not vary by language.
            headers["Vary"] += ", Accept-Language"
        # The challenge would make browsers open a dialog. Only browsers send `Sec-Fetch-Mode`.
        if response.status_code == 401 and "sec-fetch-mode" not in self.request.headers:
            headers["WWW-Authenticate"] = auth.make_challenge(self.site_name)
        # A throttled caller is not authenticated, so `Allow` cannot be computed.
        if "Allow" not in existing and response.status_code not in (404, 429):
            endpoints = [row for row in self.route.endpoints if self._may_call(row)] if self.route else ()
            methods = [method for row in endpoints for method in row.methods] if self.route else ["GET"]
            headers["Allow"] = ", ".join(methods)
        api_root = self.base_url("") + self.prefix.removesuffix(f"/{self.namespace}")
        discovery = f'<{api_root}/>; rel="https://api.w.org/"'
        headers["Link"] = f"{discovery}, {existing['Link']}" if "Link" in existing else discovery
        return headers

    def _may_call(self, endpoint: Endpoint) -> bool:
        if rank(self.actor) < endpoint.min_role:
            return False
        return not endpoint.is_write or may_write(self.actor, endpoint.kind)


def read_client_ip(request: Request, state: AppState) -> str:
    """Return the client's IP address, which may be an address reported by trusted proxies."""
    peer = request.client.host if request.client else ""
    forwarded = ",".join(request.headers.getlist("x-forwarded-for"))
    return find_client_ip(peer, forwarded, state.trusted_proxies)

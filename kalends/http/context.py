"""The state of the application and the context of one HTTP request."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Protocol
from uuid import UUID

from starlette.requests import Request

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.forwarded import IpNetwork, find_client_ip
from kalends.core.limiter import ConcurrencyLimits, PerOwnerLimiter
from kalends.http import language, sessions
from kalends.http.account_passwords import AccountPasswords
from kalends.http.health import WorkerWatch
from kalends.http.invalidation import TouchedTags
from kalends.http.read_sources import ReadRequest, ReadSources
from kalends.http.request_head import Corrections
from kalends.kinds.kind import ANONYMOUS_ACTOR, Actor
from kalends.operations.context import OperationContext
from kalends.operations.media.library import Library
from kalends.operations.quotas import count_failed_write, is_counted_failure
from kalends.operations.representation_cache import RepresentationCache
from kalends.store.database import Transaction
from kalends.store.sessions import Session
from kalends.store.site_database import SiteDatabase
from kalends.store.site_revisions import SiteRevision
from kalends.store.sites import Site

MEDIA_PREFIX: Final = "/media"
MAX_REVISION_DIGITS: Final = 100
# Feeds and sitemaps that a process renders concurrently; each takes seconds of CPU time.
FEED_LIMITS = ConcurrencyLimits(per_owner=1, total=1, waiting_per_owner=2, waiting=20)


@dataclass(frozen=True, slots=True)
class AppState:
    """Server-wide state that every request uses."""

    database: SiteDatabase
    sources: ReadSources
    touched_tags: TouchedTags
    worker_watch: WorkerWatch
    representation_cache: RepresentationCache | None = None
    base_url: str = ""
    max_body_bytes: int = 2 * 1024 * 1024
    trusted_proxies: tuple[IpNetwork, ...] = ()
    origins: tuple[str, ...] = ()  # origins whose scripts may read responses
    library: Library | None = None
    media_url: str = ""
    feed_limiter: PerOwnerLimiter = field(default_factory=lambda: PerOwnerLimiter(FEED_LIMITS))
    max_daily_records: int = 0
    trash_days: int = 30  # after which the worker deletes trashed records
    sends_email: bool = False  # whether an SMTP server is configured
    account_passwords: AccountPasswords = field(default_factory=AccountPasswords)
    counting: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])  # of failed writes


NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class MatchedRoute(Protocol):
    """The parts of a route that the shared request handling needs."""

    @property
    def pattern(self) -> str: ...

    @property
    def known_names(self) -> frozenset[str]: ...

    @property
    def corrections(self) -> Corrections:
        """Return the functions that replace invalid values of parameters."""
        ...


@dataclass(slots=True, kw_only=True)
class RequestContext[R: MatchedRoute]:
    """One HTTP request; `ApiRequest` and `PageRequest` extend it."""

    request: Request
    state: AppState
    authority: str  # the validated Host header
    host: str  # the same without its port
    now: datetime
    canonical_prefix: str  # path prefix of the API that records link to
    path: str
    route: R | None = None
    path_params: dict[str, str] = field(default_factory=dict[str, str])
    actor: Actor = ANONYMOUS_ACTOR
    password_id: UUID | None = None  # the application password of the caller
    session: Session | None = None  # the session of the caller
    # Set when the site has been read.
    site_language: str = ""
    site_name: str = ""
    ignored_params: tuple[str, ...] = ()  # names of parameters without effect, as far as they are reported
    is_strict: bool = False  # whether such parameters are rejected
    # Set for a response that may be cached: the site revision it was made at, its expiry and its cache tags.
    site_revision: SiteRevision | None = None
    expires_at: datetime | None = None
    cache_tags: tuple[str, ...] = ()
    is_from_replica: bool = False  # whether the last read was answered by a replica
    outage_age: float = 0.0  # seconds since the replica that answered has lost its primary
    needs_primary: bool = False  # whether an attempt on the replica has failed
    is_retried: bool = False
    site_secret: bytes = b""  # hashes the cache tags of shared caches
    _client_ip: str | None = None

    def remember_site(self, site: Site) -> None:
        """Keep the settings of the site that responses depend on after its transaction."""
        self.site_language, self.site_name = site.language, site.name

    @property
    def accept_language(self) -> str:
        return self.request.headers.get("accept-language", "")

    @property
    def language(self) -> str:
        """Return the language of messages and page texts."""
        return language.choose_language(self.request.scope["query_string"], self.accept_language, self.site_language)

    @property
    def error_language(self) -> str:
        return self.language

    @property
    def route_pattern(self) -> str:
        """Return the pattern of the route, for metrics."""
        return self.route.pattern if self.route else "other"

    @property
    def client_ip(self) -> str:
        if self._client_ip is None:
            self._client_ip = read_client_ip(self.request, self.state)
        return self._client_ip

    @property
    def log_path(self) -> str:
        """Return the path for the log."""
        path: str = self.request.scope["path"]
        return path

    @property
    def credentials(self) -> str:
        """Return the Authorization header if it has credentials that can be checked, else an empty string."""
        return ""

    @property
    def session_token(self) -> str:
        """Return the session cookie if this kind of request honours it, else an empty string."""
        return ""

    def read_session_token(self) -> str:
        """Return the session cookie of a request of the same origin; `Authorization` takes precedence over it."""
        request, token = self.request, sessions.read_cookie(self.request)
        if not token or "authorization" in request.headers:
            return ""
        is_write = request.method not in sessions.SAFE_METHODS
        return token if is_write or sessions.is_own_read(request, self.authority, self.state.base_url) else ""

    @property
    def is_cacheable(self) -> bool:
        """Return whether requests of this kind have responses that the response cache may hold."""
        return True

    @property
    def is_public(self) -> bool:
        """Return whether the response may be shared, because nothing in the request identifies its caller."""
        return "authorization" not in self.request.headers and not self.session_token

    @property
    def own_headers(self) -> Mapping[str, str]:
        """Return the headers that belong to this request even if its response comes from the cache."""
        return NO_HEADERS

    def base_url(self, site_url: str) -> str:
        """Return the base URL of links: the site's own, else the server's, else the requested host."""
        requested = f"{self.request.scope['scheme']}://{self.authority or 'localhost'}"
        return (site_url or self.state.base_url or requested).rstrip("/")

    @property
    def min_revision(self) -> int | None:
        """Return the site revision that a response has to include, as the client requires; None if it does not."""
        text = self.request.headers.get("x-kalends-revision", "")
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= MAX_REVISION_DIGITS):
            raise errors.invalid("X-Kalends-Revision", "must be a site revision, as in the response to a write.")
        return int(text)

    @property
    def read_request(self) -> ReadRequest:
        """Return what this request requires of the database that answers it.

        A caller with an account expects to see own writes. The client says which revision that needs, or the primary
        answers. Public pages ignore the session cookie, but its owner may just have changed what they show.
        """
        min_revision = self.min_revision
        is_read = self.is_cacheable and self.request.method in ("GET", "HEAD") and not self.needs_primary
        is_anonymous = self.is_public and not sessions.read_cookie(self.request)
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
        """Return the revision that a cached response to this request has to have; None if the host has no site."""
        sources = self.state.sources
        request = self.read_request if sources.replica is not None else None
        return await sources.current_revision(self.host, request)

    def accepts_revision(self, revision: int) -> bool:
        """Return whether an outdated response of a revision may answer, for strangers that require no later one."""
        return not sessions.read_cookie(self.request) and revision >= (self.min_revision or 0)

    def retry(self) -> bool:
        """Return whether the request is handled once more, because the replica that answered it failed."""
        if not self.is_from_replica or self.is_retried:
            return False
        self.is_retried = True
        self.needs_primary = not self.state.sources.is_primary_away
        return True

    def transaction(self, *, writing: bool = False) -> AbstractAsyncContextManager[Transaction]:
        """Open a transaction on the site of the request; a read may be answered by a replica."""
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
        """Open a transaction for a write. If it fails, it may count for the quota of its user."""
        tx: Transaction | None = None
        try:
            async with self._open(writing=True) as tx:
                yield tx
        except BaseException as error:
            if tx is not None and is_counted_failure(tx, error):
                counting = asyncio.create_task(self._count_failure())
                self.state.counting.add(counting)
                counting.add_done_callback(self.state.counting.discard)
                # After a disconnection nobody waits for it.
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
        """Return the context of an operation in a transaction; `more` are the parameters of the operation."""
        base_url = self.base_url(tx.site.base_url)
        return OperationContext(
            transaction=tx,
            actor=self.actor,
            base_url=base_url,
            api_url=base_url + self.canonical_prefix,
            extension_url=base_url + extension_prefix if extension_prefix else "",
            media_url=self.state.media_url or base_url + MEDIA_PREFIX,
            client_ip=self.client_ip,
            max_daily_records=self.state.max_daily_records,
            representation_cache=self.state.representation_cache,
            library=self.state.library,
            **more,
        )


def read_client_ip(request: Request, state: AppState) -> str:
    """Return the client's IP address; behind trusted proxies, the address that they report."""
    peer = request.client.host if request.client else ""
    forwarded = ",".join(request.headers.getlist("x-forwarded-for"))
    return find_client_ip(peer, forwarded, state.trusted_proxies)

"""In-memory response cache, keyed by request and validated against the changes of the site.

A response of an older revision is valid if no change since then has touched one of its tags (`http/invalidation.py`).
An outdated one is kept to answer reads that get no database connection (decision 0034).
Concurrent requests for the same response wait for the first one instead of rendering it again (single flight).
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from kalends.core.errors import ApiError
from kalends.core.lru import ByteLru
from kalends.http.context import RequestContext
from kalends.http.encoding import compress
from kalends.http.invalidation import SiteTags
from kalends.http.language import find_requested
from kalends.http.request_head import normalize_query
from kalends.operations.cache_tags import ANY_SET, WIDE_SETS
from kalends.operations.touched_tags import Touched
from kalends.store.site_revisions import SiteRevision

# Headers of one response, which are added again to each response from the cache.
UNCACHED_HEADERS: Final = (b"x-request-id", b"content-length", b"cache-control", b"age", b"x-kalends-ignored-params")

# Causes of 503 that leave the database available to others: all connections for this kind of request are in use.
STARVED: Final = frozenset({"too_many_requests", "pool_exhausted"})
# Seconds for which an outdated response answers such requests.
MAX_OUTDATED_SECONDS: Final = 60
# Outcomes of the search for a response to such a request.
ANSWERED, UNKNOWN, WITHDRAWN, TOO_OLD, UNCHECKED = "answered", "unknown", "withdrawn", "too_old", "unchecked"
OUTCOMES: Final = (ANSWERED, UNKNOWN, WITHDRAWN, TOO_OLD, UNCHECKED)

type Context = RequestContext[Any]


class LastKnown(NamedTuple):
    """The last known response and the seconds for which it has been outdated, or why it must not be used."""

    outcome: str
    response: "CachedResponse | None" = None
    age: float = 0.0


@dataclass(slots=True)
class CachedResponse:
    """A response. `expires_at` is the time at which it becomes wrong without a write, such as midnight."""

    site_id: int
    revision: int  # the last revision at which it is known to be valid
    tags: tuple[str, ...]
    expires_at: datetime | None
    headers: list[tuple[bytes, bytes]]
    etag: str
    body: bytes
    route: str
    _compressed: bytes | None = field(default=None)

    async def compress(self) -> bytes | None:
        """Return the compressed body, which is computed once; None if compression is not worthwhile."""
        if self._compressed is None:
            self._compressed = await compress(self.body)
        return self._compressed

    def is_usable(self, current: SiteRevision, now: datetime) -> bool:
        """Return whether the response is valid, unless a change has touched its tags."""
        expired = self.expires_at is not None and now >= self.expires_at
        # A host may be moved to another site.
        return not expired and self.site_id == current.site_id

    def outlives(self, site: SiteTags | None, revision: int) -> bool:
        """Return whether the response is valid at a revision, as far as the changes of the site are known."""
        if self.revision >= revision:
            return True
        # Without tags, a response may depend on anything.
        if site is None or site.known < revision or not self.tags or not site.is_untouched(self.tags, self.revision):
            return False
        self.revision = site.known
        return True

    def judge(self, changes: Sequence[Touched], now: datetime, max_age: float) -> LastKnown:
        """Return whether the response may be used although changes since its revision may have touched it."""
        # An image is public while a public record shows it, and no change tells when that ends.
        if not self.tags or any(tag.partition("/")[0] == "media" for tag in self.tags):
            return LastKnown(UNKNOWN)
        # A narrowed list names all events that it shows.
        shown = frozenset(self.tags) - (WIDE_SETS if ANY_SET in self.tags else frozenset())
        if any(not shown.isdisjoint(change.withdrawn) for change in changes):
            return LastKnown(WITHDRAWN)
        touching = [change.changed_at for change in changes if not change.tags.isdisjoint(self.tags)]
        if self.expires_at is not None and self.expires_at <= now:
            touching.append(self.expires_at)
        age = max((now - min(touching)).total_seconds(), 1.0) if touching else 0.0
        return LastKnown(ANSWERED, self, age) if age <= max_age else LastKnown(TOO_OLD)


def make_cached_response(context: Context, response: Response) -> CachedResponse | None:
    """Return a response in the form that the cache holds; None unless it is a complete public read."""
    if context.site_revision is None or response.status_code != 200 or not response.body:
        return None
    if context.expires_at is not None and context.expires_at <= context.now:
        return None
    return CachedResponse(
        site_id=context.site_revision.site_id,
        revision=context.site_revision.revision,
        tags=context.cache_tags,
        expires_at=context.expires_at,
        headers=[pair for pair in response.raw_headers if _is_cached(pair[0])],
        etag=response.headers.get("etag", ""),
        body=bytes(response.body),
        route=context.route_pattern,
    )


class ResponseCache:
    """`budget` is in bytes; `stale_seconds` is how long responses are used after the database became unavailable."""

    def __init__(self, budget: int, stale_seconds: int) -> None:
        self._is_enabled = budget > 0
        self._stale_seconds = stale_seconds
        self._entries: ByteLru[bytes, CachedResponse] = ByteLru(budget)
        # Responses that are being rendered. The result tells the waiting requests whether to look into the cache.
        self._in_flight: dict[bytes, asyncio.Future[bool]] = {}

    def make_key(self, context: Context | None) -> bytes | None:
        """Return a digest of everything that a public response depends on; None if it must not be cached.

        Unknown parameters are removed from the query string here, for the whole request. Their names are kept in the
        context: they belong to this request and not to the response, which others share.
        """
        if (
            context is None
            or context.route is None
            or not context.is_cacheable
            or context.request.method not in ("GET", "HEAD")
        ):
            return None
        scope = context.request.scope
        query = normalize_query(context.request, context.route.known_names, context.route.corrections)
        if query is None:
            return None
        context.ignored_params, context.is_strict = query.ignored, query.is_strict
        if not context.is_public or not self._is_enabled:
            return None
        if (query.ignored and query.is_strict) or any(name == "password" for name, _ in query.pairs):
            return None
        language = find_requested(scope["query_string"], context.accept_language) or ""
        parts = (scope["scheme"], context.authority, scope["path"], scope["query_string"], language)
        return hashlib.blake2b(repr(parts).encode(), digest_size=16).digest()

    async def find(self, context: Context, key: bytes) -> tuple[CachedResponse | None, float]:
        """Return a valid response, or a recent one while the database is unavailable, with its age in seconds."""
        try:
            current = await context.current_revision()
        except ApiError as error:
            # While the database answers others, a record may be withdrawn that the response shows.
            stale = self._find_stale(context, key) if error.cause not in STARVED else None
            if stale is None:
                raise
            return stale
        while current is not None:
            response, in_flight = await self._get(context, key, current), self._in_flight.get(key)
            if response is not None or in_flight is None:
                # While a replica answers without its primary, a response may be older than its lag.
                return response, context.state.sources.outage_age
            # The response in flight may have a revision that is too old for this request, or never arrive.
            if not await asyncio.shield(in_flight):
                break
        return None, 0.0

    async def _get(self, context: Context, key: bytes, current: SiteRevision) -> CachedResponse | None:
        response = self._entries.get(key)
        if response is None:
            return None
        if response.is_usable(current, context.now):
            touched, revision = context.state.touched_tags, current.revision
            site = touched.find(response.site_id)
            if response.outlives(site, revision):
                return response
            if response.tags and (site is None or site.known < revision):
                site = await touched.learn(response.site_id, response.revision, revision)
                if response.outlives(site, revision):
                    return response
        if response.site_id != current.site_id and self._entries.get(key) is response:
            self._entries.discard(key)
        return None

    def forget(self, key: bytes) -> None:
        """Forget a response because a newer one is known that cannot be cached."""
        self._entries.discard(key)

    async def find_last_known(self, context: Context, key: bytes, now: datetime) -> LastKnown:
        """Return the last known response to a read that got no connection, if it may be used.

        The current revision and the changes are read through the connections that are reserved for lookups, after the
        wait for a connection, so all withdrawals that were acknowledged until then are known.
        """
        response = self._entries.get(key)
        if response is None:
            return LastKnown(UNKNOWN)
        try:
            current = await context.state.sources.current_revision(context.host)
            if current is None or current.site_id != response.site_id:
                return LastKnown(UNKNOWN)
            if not context.accepts_revision(response.revision):
                return LastKnown(UNKNOWN)
            touched, since = context.state.touched_tags, response.revision
            changes = await touched.list_changes(response.site_id, since, current.revision)
        except ApiError:
            return LastKnown(UNCHECKED)
        if changes is None:
            return LastKnown(UNCHECKED)
        return response.judge(changes, now, min(self._stale_seconds, MAX_OUTDATED_SECONDS))

    def _find_stale(self, context: Context, key: bytes) -> tuple[CachedResponse, float] | None:
        last = context.state.sources.last_known(context.host, self._stale_seconds)
        if last is None:
            return None
        known, age = last
        response = self._entries.get(key)
        if response is None or not response.is_usable(known, context.now - timedelta(seconds=age)):
            return None
        site = context.state.touched_tags.find(response.site_id)
        return (response, max(age, 1.0)) if response.outlives(site, known.revision) else None

    @contextmanager
    def rendering(self, key: bytes | None) -> Iterator[Callable[[CachedResponse | None], None] | None]:
        """Announce that a response is being rendered; yield a function that stores it and wakes the waiting requests.

        If the response turns out not to be cacheable (None), every waiting request renders its own; if the block ends
        without a response, one of them does. Yields None if there is no key.
        """
        if key is None:
            yield None
            return
        in_flight: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        is_first = self._in_flight.setdefault(key, in_flight) is in_flight

        def wake(*, look_again: bool) -> None:
            if is_first and not in_flight.done():
                del self._in_flight[key]
                in_flight.set_result(look_again)

        def store(response: CachedResponse | None) -> None:
            if response is not None:
                # Twice the body leaves room for its compressed form. A tag is a short string and its reference.
                self._entries.put(key, response, 2 * (len(response.body) + 1000) + 80 * len(response.tags))
            wake(look_again=response is not None)

        try:
            yield store
        finally:
            wake(look_again=True)


def _is_cached(header: bytes) -> bool:
    return header not in UNCACHED_HEADERS and not header.startswith(b"access-control-")

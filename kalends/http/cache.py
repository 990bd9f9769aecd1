"""Response compression, and an in-memory cache keyed by request and validated against the site's changes.

A response from an older revision is valid if no later change has touched its tags. An outdated response is kept for
reads that get no database connection (decision 0034). Concurrent requests for the same response wait until the first
request has rendered it (single flight).

If a request has the same head as an earlier one, the cached response is sent without parsing the request again
(decision 0036).
"""

import asyncio
import gzip
import hashlib
import re
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from kalends.calendar.access.caching import ANY_SET, WIDE_SETS, Touched, read_touched, select_changes
from kalends.core.errors import ApiError
from kalends.core.limits import MAX_HEAD_BYTES, ByteLru
from kalends.core.messages import find_requested
from kalends.http.auth import COOKIE
from kalends.http.bodies import normalize_query
from kalends.store import Row
from kalends.store.site_revisions import SiteRevision
from kalends.store.sql import Sql

if TYPE_CHECKING:
    from kalends.http.request import AppState, RequestContext

# Cache tags touched by each site's recent changes. Each process reads the changes itself, once per revision and only
# for sites whose responses are requested. `docs/decisions/0029-exact-invalidation.md` explains why a response that
# passes the check equals a newly rendered one.

FetchChanges = Callable[[int, Sql], Awaitable[Sequence[Row]]]

# A tag takes about 150 bytes.
MAX_TAGS_PER_SITE: Final = 20_000
MAX_TAGS: Final = 100_000
MAX_SITES: Final = 10_000


@dataclass(slots=True)
class SiteTags:
    """One site's touched tags for the revisions in `(floor, known]`."""

    known: int
    floor: int
    last_touched: dict[str, int] = field(default_factory=dict[str, int])  # last revision that touched each tag
    size: int = 0
    is_cut: bool = False  # whether changes up to `floor` are unavailable
    _by_revision: deque[Touched] = field(default_factory=deque[Touched])
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def is_untouched(self, tags: Iterable[str], since: int) -> bool:
        """Return whether the changes after a revision are known and none of them touched these tags."""
        last_touched = self.last_touched
        return since >= self.floor and all(last_touched.get(tag, 0) <= since for tag in tags)

    def list_after(self, revision: int) -> list[Touched]:
        """Return the changes after a revision, latest first."""
        return list(takewhile(lambda entry: entry.revision > revision, reversed(self._by_revision)))

    def add(self, touched: Sequence[Touched], known: int) -> None:
        for entry in touched:
            self._by_revision.append(entry)
            self.size += len(entry.tags)
            self.last_touched.update(dict.fromkeys(entry.tags, entry.revision))
        self.known = known
        while self.size > MAX_TAGS_PER_SITE:
            oldest = self._by_revision.popleft()
            self.floor, self.is_cut = oldest.revision, True
            self.size -= len(oldest.tags)
            for tag in oldest.tags:
                if self.last_touched[tag] == oldest.revision:
                    del self.last_touched[tag]

    def reset(self, known: int) -> None:
        """Forget all changes. Responses from before this revision become invalid."""
        self.known = self.floor = known
        self.last_touched.clear()
        self._by_revision.clear()
        self.size = 0


class TouchedTags:
    """Touched tags by site. The least recently used sites are evicted."""

    def __init__(self, fetch: FetchChanges) -> None:
        self._fetch = fetch
        self._sites: OrderedDict[int, SiteTags] = OrderedDict()
        self._size = 0

    def find(self, site_id: int) -> SiteTags | None:
        return self._sites.get(site_id)

    async def learn(self, site_id: int, since: int, revision: int) -> SiteTags:
        """Return a site's touched tags, reading changes up to `revision` if needed. A new site starts at `since`."""
        site = self._sites.setdefault(site_id, SiteTags(since, since))
        self._sites.move_to_end(site_id)
        async with site.lock:
            if site.known < revision:
                await self._read(site_id, site, site.known)
        return site

    async def list_changes(self, site_id: int, since: int, revision: int) -> list[Touched] | None:
        """Return the changes after `since`, latest first; None unless all changes up to `revision` are known."""
        site = await self.learn(site_id, since, revision)
        async with site.lock:
            if since < site.floor and not site.is_cut:
                await self._read(site_id, site, since)
        return site.list_after(since) if site.floor <= since and site.known >= revision else None

    async def _read(self, site_id: int, site: SiteTags, after: int) -> None:
        """Read the changes after a revision, always up to the current one.

        An event may have lost links since `after`, and a removed link remains only in the log entry for its removal.
        """
        rows = await self._fetch(site_id, select_changes(site_id, after))
        if rows and rows[0]["last_revision"] < site.known:
            return  # the replica lags behind
        before = site.size
        touched = read_touched(rows, after)
        if touched is None:
            # The log has been trimmed, there are too many changes, or the site has been removed.
            site.is_cut = True
            if after == site.known:
                site.reset(rows[0]["last_revision"] if rows else site.known)
        else:
            if after < site.known:
                site.reset(after)
            site.add(touched, rows[0]["last_revision"])
        if self._sites.get(site_id) is site:
            self._size += site.size - before
            self._forget_sites()

    def _forget_sites(self) -> None:
        while len(self._sites) > 1 and (self._size > MAX_TAGS or len(self._sites) > MAX_SITES):
            _, site = self._sites.popitem(last=False)
            self._size -= site.size


# Response compression, if the client accepts it.

# Compressing smaller bodies costs more than it saves.
MIN_COMPRESSED_BYTES: Final = 1024
COMPRESSED_TYPE: Final = "font/woff2"  # already compressed
# Larger bodies are compressed in a thread, because a feed with thousands of events would block the event loop.
MIN_THREAD_BYTES: Final = 256 * 1024
ZERO_QUALITY: Final = re.compile(r"q\s*=\s*0?\.?0*")


async def compress(body: bytes) -> bytes | None:
    if len(body) < MIN_COMPRESSED_BYTES:
        return None
    return await asyncio.to_thread(_gzip, body) if len(body) >= MIN_THREAD_BYTES else _gzip(body)


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, 6, mtime=0)


async def compress_response(request: Request, response: Response) -> None:
    """Compress a response's body if this is worthwhile and the client accepts it."""
    if "content-encoding" in response.headers or response.media_type == COMPRESSED_TYPE:
        return
    if not accepts_gzip(request.headers.get("accept-encoding", "")):
        return
    if packed := await compress(bytes(response.body)):
        response.body = packed
        response.headers.update({"Content-Encoding": "gzip", "Content-Length": str(len(packed))})
        response.headers["Vary"] = "Accept-Encoding"


def accepts_gzip(header: str) -> bool:
    """Return whether an Accept-Encoding header accepts gzip; `gzip;q=0` and `*;q=0` do not."""
    accepted: dict[str, bool] = {}
    for part in header.lower().split(","):
        name, *parameters = [piece.strip() for piece in part.split(";")]
        accepted[name] = not any(ZERO_QUALITY.fullmatch(parameter) for parameter in parameters)
    return accepted.get("gzip", accepted.get("*", False))


# The cache does not store these headers, because they are set separately for each response.
UNCACHED_HEADERS: Final = (b"x-request-id", b"content-length", b"cache-control", b"age", b"x-kalends-ignored-params")

# Causes of status 503 if the database is available, but all connections for this kind of request are in use.
STARVED: Final = frozenset({"too_many_requests", "pool_exhausted"})
# How many seconds after it becomes outdated a response may be sent to requests that get no connection.
MAX_OUTDATED_SECONDS: Final = 60
# Results of looking for such a response.
ANSWERED, UNKNOWN, WITHDRAWN, TOO_OLD, UNCHECKED = "answered", "unknown", "withdrawn", "too_old", "unchecked"
OUTCOMES: Final = (ANSWERED, UNKNOWN, WITHDRAWN, TOO_OLD, UNCHECKED)

type Context = RequestContext[Any]

# Request heads. A request with the same head as an earlier request is a repeated hit.

# Scheme, path and query string of a GET request, and the headers that affect its response.
type Head = tuple[object, ...]
# Cached responses depend on these headers. Accept-Language matters only for API responses.
SELECTING_HEADERS: Final = frozenset((b"host", b"accept-encoding", b"accept-language", b"if-none-match", b"origin"))
# These headers identify the caller or announce a body.
EXCLUDING_HEADERS: Final = frozenset((b"authorization", b"content-length", b"transfer-encoding", b"expect"))
SESSION_COOKIE: Final = COOKIE.encode()
STREAM_TYPE: Final = b"text/event-stream"  # the cached response may not be acceptable
# Requests with longer heads are handled in full, to limit the memory that heads take.
MAX_HEAD_LENGTH: Final = 1000
MAX_HEADS_BYTES: Final = 8 * 1024 * 1024
# Maximum number of variants of a response (compressed or not, 200 or 304, by origin), and the bytes for each of them.
MAX_VARIANTS: Final = 8
VARIANT_BYTES: Final = 3000


def read_head(scope: Mapping[str, Any], api_prefixes: tuple[str, ...]) -> Head | None:
    """Return the parts of a GET request that determine its response; None if other parts could matter, too.

    A page's language does not depend on Accept-Language. If the query may contain an API path (`rest_route`), the
    request counts as an API request.
    """
    path, query = scope["path"], scope["query_string"]
    by_language = path.lower().startswith(api_prefixes) or b"rest_route" in query or b"%" in query
    selecting: list[tuple[bytes, bytes]] = []
    size = len(query)
    for pair in scope["headers"]:
        name = pair[0]
        size += len(name) + len(pair[1])
        if name in SELECTING_HEADERS:
            if by_language or name != b"accept-language":
                selecting.append(pair)
        elif (
            name in EXCLUDING_HEADERS
            or (name == b"cookie" and SESSION_COOKIE in pair[1])
            or (name == b"accept" and STREAM_TYPE in pair[1].lower())
        ):
            return None
    if size > MAX_HEAD_BYTES:
        return None
    selecting.sort()  # Browsers differ in the order of headers.
    return (scope["scheme"], path, query, *selecting)


@dataclass(frozen=True, slots=True)
class PreparedResponse:
    """A cached response prepared for requests with the same head, without the headers that differ each time."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class RepeatedHit:
    """The response to requests with the same head, and values for their log lines and metrics."""

    key: bytes  # of the cached response
    route: str
    prepared: PreparedResponse
    host: str  # without the port
    log_fields: Mapping[str, Any]


class LastKnown(NamedTuple):
    """The last known response with the seconds since it became outdated, or the reason why it must not be used."""

    outcome: str
    response: "CachedResponse | None" = None
    age: float = 0.0


@dataclass(slots=True)
class CachedResponse:
    """A cached response.

    `expires_at` is when the response becomes outdated even without a write, for example at midnight.
    """

    site_id: int
    revision: int  # the last revision at which the response is known to be valid
    tags: tuple[str, ...]
    expires_at: datetime | None
    headers: list[tuple[bytes, bytes]]
    etag: str
    body: bytes
    route: str
    variants: dict[Head, RepeatedHit] = field(default_factory=dict[Head, RepeatedHit])
    _compressed: bytes | None = field(default=None)

    async def compress(self) -> bytes | None:
        """Return the compressed body, computed once; None if compression is not worthwhile."""
        if self._compressed is None:
            self._compressed = await compress(self.body)
        return self._compressed

    def is_usable(self, current: SiteRevision, now: datetime) -> bool:
        """Return whether the response has not expired and belongs to the current site of the host."""
        expired = self.expires_at is not None and now >= self.expires_at
        # A host can be moved to another site.
        return not expired and self.site_id == current.site_id

    def outlives(self, site: SiteTags | None, revision: int) -> bool:
        """Return whether the response is known to be valid at a revision."""
        if self.revision >= revision:
            return True
        # A response without tags may depend on anything.
        if site is None or site.known < revision or not self.tags or not site.is_untouched(self.tags, self.revision):
            return False
        self.revision = site.known
        return True

    async def is_current(self, touched: TouchedTags, current: SiteRevision, now: datetime) -> bool:
        """Return whether the response is valid at a revision, reading the changes up to it if needed."""
        if not self.is_usable(current, now):
            return False
        site = touched.find(self.site_id)
        if self.outlives(site, current.revision):
            return True
        if not self.tags or (site is not None and site.known >= current.revision):
            return False
        return self.outlives(await touched.learn(self.site_id, self.revision, current.revision), current.revision)

    def judge(self, changes: Sequence[Touched], now: datetime, max_age: float) -> LastKnown:
        """Return the response if it may be used despite later changes; otherwise return the reason."""
        # An image is public as long as a public record uses it, and the change log does not show when that ends.
        if not self.tags or any(tag.partition("/")[0] == "media" for tag in self.tags):
            return LastKnown(UNKNOWN)
        # A narrowed list has a tag for every event in it, so ignore its wide set tags here.
        shown = frozenset(self.tags) - (WIDE_SETS if ANY_SET in self.tags else frozenset())
        if any(not shown.isdisjoint(change.withdrawn) for change in changes):
            return LastKnown(WITHDRAWN)
        touching = [change.changed_at for change in changes if not change.tags.isdisjoint(self.tags)]
        if self.expires_at is not None and self.expires_at <= now:
            touching.append(self.expires_at)
        age = max((now - min(touching)).total_seconds(), 1.0) if touching else 0.0
        return LastKnown(ANSWERED, self, age) if age <= max_age else LastKnown(TOO_OLD)


def make_cached_response(context: Context, response: Response) -> CachedResponse | None:
    """Convert a response for the cache; return None unless it is a complete public read."""
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
    """Cached responses within a `budget` of bytes.

    While the database is down, they stay usable for `stale_seconds`.
    """

    def __init__(self, budget: int, stale_seconds: int) -> None:
        self._is_enabled = budget > 0
        self._stale_seconds = stale_seconds
        self._entries: ByteLru[bytes, CachedResponse] = ByteLru(budget)
        self._keys: ByteLru[Head, bytes] = ByteLru(MAX_HEADS_BYTES)  # cache keys by head
        # Responses being rendered. The result says whether the waiting requests should check the cache.
        self._in_flight: dict[bytes, asyncio.Future[bool]] = {}

    def make_key(self, context: Context | None) -> bytes | None:
        """Return a digest of everything that a public response depends on; None if it must not be cached.

        This also removes unknown parameters from the request's query string. Their names are kept in the context, not
        in the response, because other requests share the response.
        """
        if (
            context is None
            or context.route is None
            or not context.is_cacheable
            or context.is_stream
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
        """Return a valid response and its age in seconds.

        While the database is unavailable, a recent response is enough.
        """
        try:
            current = await context.current_revision()
        except ApiError as error:
            # A busy database still accepts writes, so a record in the response may have been withdrawn since.
            stale = self._find_stale(context, key) if error.cause not in STARVED else None
            if stale is None:
                raise
            return stale
        while current is not None:
            response = await self._get(context.state, context.now, key, current)
            in_flight = self._in_flight.get(key)
            if response is not None or in_flight is None:
                # While a replica answers without the primary, the replica's data may be as old as the outage.
                return response, context.state.sources.outage_age
            # The response being rendered may be too old for this request, or may never be finished.
            if not await asyncio.shield(in_flight):
                break
        return None, 0.0

    def remember_head(self, head: Head, cached: CachedResponse, hit: RepeatedHit) -> None:
        """Keep a prepared response for later requests with the same head, as long as `cached` stays in the cache.

        If there are too many variants, drop the oldest.
        """
        if len(repr(head)) > MAX_HEAD_LENGTH:
            return
        variants = cached.variants
        while len(variants) >= MAX_VARIANTS:
            del variants[next(iter(variants))]
        variants[head] = hit
        self._keys.put(head, hit.key, VARIANT_BYTES)

    def find_hit(self, head: Head) -> RepeatedHit | None:
        """Return the response to an earlier request with the same head. It may have become invalid."""
        key = self._keys.get(head)
        cached = self._entries.get(key) if key is not None else None
        return cached.variants.get(head) if cached is not None else None

    async def is_valid(self, head: Head, hit: RepeatedHit, state: "AppState", now: datetime) -> bool:
        """Return whether the response to an earlier request is still valid for a new request with the same head."""
        try:
            current = await state.sources.current_revision(hit.host)
        except ApiError:
            return False  # `find` needs the whole request to decide whether to use the response anyway.
        cached = await self._get(state, now, hit.key, current) if current is not None else None
        return cached is not None and cached.variants.get(head) is hit

    async def _get(
        self, state: "AppState", now: datetime, key: bytes, current: SiteRevision
    ) -> CachedResponse | None:
        response = self._entries.get(key)
        if response is None:
            return None
        if await response.is_current(state.touched_tags, current, now):
            return response
        if response.site_id != current.site_id and self._entries.get(key) is response:
            self._entries.discard(key)
        return None

    def forget(self, key: bytes) -> None:
        """Remove a response that has been superseded by one that cannot be cached."""
        self._entries.discard(key)

    async def find_last_known(self, context: Context, key: bytes, now: datetime) -> LastKnown:
        """Return the cached response for a read that got no database connection, or why it must not be used.

        This runs after the wait for a connection, and reads the latest changes over connections reserved for lookups.
        Therefore, every withdrawal acknowledged before the end of the wait is taken into account.
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

        If the response cannot be cached (None), every waiting request renders its own. If the block ends without a
        response, one waiting request takes over. If there is no key, yield None.
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
                # Twice the body's size leaves room for the compressed body. A tag costs a short string and a
                # reference.
                size = 2 * (len(response.body) + 1000) + 80 * len(response.tags) + MAX_VARIANTS * VARIANT_BYTES
                self._entries.put(key, response, size)
            wake(look_again=response is not None)

        try:
            yield store
        finally:
            wake(look_again=True)


def _is_cached(header: bytes) -> bool:
    return header not in UNCACHED_HEADERS and not header.startswith(b"access-control-")

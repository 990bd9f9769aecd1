"""Handling of requests for public pages and feeds: parameters, one read-only transaction, response."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from kalends.core import errors
from kalends.core.params import Param, read_params
from kalends.core.throttle import rate_limit_key
from kalends.http import language, requests, responses
from kalends.http.context import RequestContext
from kalends.http.password_guesses import admit_password
from kalends.http.request_head import NO_CORRECTIONS, Corrections
from kalends.kinds.kind import Kind
from kalends.operations.context import OperationContext
from kalends.operations.page_filters import ResolvedFilters, resolve_filters
from kalends.store.database import Transaction
from kalends.store.site_revisions import SiteRevision
from kalends.website.models.highlights import Highlights

MAX_FEED_WAIT: Final = 2.0
# Parts of paths, for the patterns of routes.
SLUG: Final = r"(?P<slug>[^/]+)"
PATH: Final = r"(?P<path>[^/]+(?:/[^/]+)*)"
MONTH: Final = r"(?P<month>\d{4}-\d\d)"
DAY: Final = r"(?P<day>\d{4}-\d\d-\d\d)"


@dataclass(frozen=True, slots=True)
class MapSettings:
    """The configured tile server of the maps."""

    tiles_url: str
    tiles_attribution: str


@dataclass(slots=True, kw_only=True)
class PageRequest(RequestContext["PageRoute"]):
    """A request for a public page or feed, always served as an anonymous user."""

    map_settings: MapSettings
    legacy_prefix: str = ""  # path prefix of the API that existing clients know; empty without an alias
    embedded: bool = False
    query: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    sent_query: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])  # with unknown parameters
    is_moved: bool = False  # whether a parameter belongs to an old address, which redirects
    filters: ResolvedFilters = field(default_factory=ResolvedFilters)
    highlights: Highlights = field(default_factory=Highlights)  # of the home page

    @property
    def accept_language(self) -> str:
        """Return no preference: pages use the site's language, as its records do, unless `?lang=` overrides it."""
        return ""

    @property
    def error_language(self) -> str:
        """Return the language of errors without a page, such as those of feeds, which follow the client."""
        headers = self.request.headers
        return language.choose_language(self.request.scope["query_string"], headers.get("accept-language", ""))

    @property
    def requested_language(self) -> str:
        return requests.query_value(self.request, "lang") or ""

    def with_query(self, url: str) -> str:
        """Return a URL with the query string of this request."""
        query = self.request.scope["query_string"].decode("latin-1")
        return url + (f"?{query}" if query else "")


@dataclass(frozen=True, slots=True)
class PageResponse:
    """The body that a view returns, with its expiry and its cache tags."""

    body: str | bytes
    media_type: str
    expires_at: datetime | None = None
    cache_tags: tuple[str, ...] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    is_cacheable: bool = True


PageView = Callable[[PageRequest, OperationContext, dict[str, str]], Awaitable[PageResponse]]


@dataclass(frozen=True, slots=True)
class PageRoute:
    """A path pattern and its view.

    `is_page`: errors are shown as HTML pages. `kind`: the path contains the slug of a record of this kind.
    """

    pattern: str
    show: PageView
    params: tuple[Param, ...] = ()
    is_page: bool = True
    accepts_post: bool = False
    kind: Kind | None = None
    is_feed: bool = False  # rendering takes seconds, so concurrency is limited
    extra_names: tuple[str, ...] = ()  # query parameters that the view reads from the request
    known_names: frozenset[str] = field(init=False)
    corrections: Corrections = NO_CORRECTIONS

    def __post_init__(self) -> None:
        names = [*[param.name for param in self.params], *self.extra_names]
        object.__setattr__(self, "known_names", frozenset(names))


async def handle_page_request(page_request: PageRequest, route: PageRoute) -> Response:
    """Read the parameters, run the view in a transaction and return its response."""
    request = page_request.request
    if request.method not in ("GET", "HEAD") and not (route.accepts_post and request.method == "POST"):
        raise errors.method_not_allowed(request.method, ["GET"])
    is_post = request.method == "POST"
    body = await requests.read_body(request, page_request.state.max_body_bytes) if is_post else b""
    raw = await requests.read_values(request, body)
    page_request.query = raw.query
    # Browsers submit the empty fields of a form, too.
    filled = {name: value for name, value in raw.values.items() if value not in ("", [""])}
    async with AsyncExitStack() as stack:
        values = await stack.enter_async_context(admit_password(page_request, read_params(route.params, filled)))
        if route.is_feed:
            owner = rate_limit_key(page_request.client_ip)
            await stack.enter_async_context(page_request.state.feed_limiter.slot(owner, MAX_FEED_WAIT))
        tx = await stack.enter_async_context(page_request.transaction())
        page_request.site_language = tx.site.language
        context, page_request.filters = await resolve_filters(make_context(page_request, tx, values))
        page_response = await route.show(page_request, context, page_request.path_params)
        site_revision = SiteRevision(tx.site.id, tx.site.revision)
        page_request.site_secret = tx.site.secret
    if page_response.is_cacheable and not is_post:
        page_request.site_revision, page_request.expires_at, page_request.cache_tags = (
            site_revision,
            page_response.expires_at,
            page_response.cache_tags,
        )
    return respond(page_request, page_response)


def make_context(page_request: PageRequest, tx: Transaction, values: dict[str, Any]) -> OperationContext:
    """Return the operation context of an anonymous user."""
    return page_request.operation_context(tx, values=values)


def respond(page_request: PageRequest, page_response: PageResponse) -> Response:
    """Return the HTTP response of a view, or 304 if the client has the current version."""
    body = page_response.body.encode() if isinstance(page_response.body, str) else page_response.body
    headers = {"Content-Language": page_request.language, **page_response.headers}
    if page_response.status == 200 and page_request.site_revision is not None:
        headers["ETag"] = responses.body_etag(body)
        if responses.is_known_etag(headers["ETag"], _known_etags(page_request.request)):
            return Response(status_code=304, headers=headers)
    return Response(body, page_response.status, headers, media_type=page_response.media_type)


def _known_etags(request: Request) -> list[str]:
    return responses.split_etags(request.headers.get("if-none-match", ""))

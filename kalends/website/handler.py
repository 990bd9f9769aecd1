"""A request for a public page or feed: which route, which parameters, one read as everybody sees it."""

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
from kalends.http import language, media_files, requests, responses
from kalends.http.context import RequestContext
from kalends.http.password_guesses import admit_password
from kalends.kinds.kind import Kind
from kalends.operations.context import Call
from kalends.operations.page_filters import Filters, settle_filters
from kalends.store.database import Transaction
from kalends.store.site_revisions import SiteRevision

PATIENCE_FOR_FEEDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Look:
    """How the server shows its pages, besides what each site has set."""

    tiles_url: str
    tiles_credit: str


@dataclass(slots=True, kw_only=True)
class Visit(RequestContext["PageRoute"]):
    """A request for a public page or feed, always served as an anonymous user."""

    look: Look
    embedded: bool = False
    query: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    filters: Filters = field(default_factory=Filters)

    @property
    def accept_language(self) -> str:
        """Pages use the site's language, so that texts and records agree; only `?lang=` overrides it."""
        return ""

    @property
    def error_language(self) -> str:
        """Errors without a page, such as those of feeds, follow the client instead."""
        headers = self.request.headers
        return language.choose(self.request.scope["query_string"], headers.get("accept-language", ""))

    @property
    def asked_language(self) -> str:
        return requests.query_value(self.request, "lang") or ""

    def with_query(self, address: str) -> str:
        """Return a URL with the query string of this request."""
        query = self.request.scope["query_string"].decode("latin-1")
        return address + (f"?{query}" if query else "")


@dataclass(frozen=True, slots=True)
class Shown:
    """What a view makes: the body, and until when and by whose change it is right."""

    body: str | bytes
    media_type: str
    until: datetime | None = None
    keys: tuple[str, ...] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    kept: bool = True


View = Callable[[Visit, Call, dict[str, str]], Awaitable[Shown]]


@dataclass(frozen=True, slots=True)
class PageRoute:
    """A pattern of public addresses. `is_page`: people read it, so it is refused in HTML. `kind`: it names one such
    record by its slug."""

    pattern: str
    show: View
    params: tuple[Param, ...] = ()
    is_page: bool = True
    posts: bool = False
    kind: Kind | None = None
    is_feed: bool = False  # takes seconds to make, so few are made at a time
    more_names: tuple[str, ...] = ()  # parameters that the view reads by itself
    known_names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        names = [*[param.name for param in self.params], *self.more_names]
        object.__setattr__(self, "known_names", frozenset(names))


async def answer(visit: Visit, route: PageRoute) -> Response:
    request = visit.request
    if request.method not in ("GET", "HEAD") and not (route.posts and request.method == "POST"):
        raise errors.method_not_allowed(request.method, ["GET"])
    posting = request.method == "POST"
    body = await requests.read_body(request, visit.service.body_limit) if posting else b""
    raw = await requests.read_values(request, body)
    visit.query = raw.query
    # A form sends the fields that nobody filled in as empty ones.
    sent = {name: value for name, value in raw.values.items() if value not in ("", [""])}
    async with AsyncExitStack() as stack:
        values = await stack.enter_async_context(admit_password(visit, read_params(route.params, sent)))
        if route.is_feed:
            owner = rate_limit_key(visit.client)
            await stack.enter_async_context(visit.service.feeds.slot(owner, PATIENCE_FOR_FEEDS))
        tx = await stack.enter_async_context(visit.transaction())
        visit.site_language = tx.site.language
        call, visit.filters = await settle_filters(make_call(visit, tx, values))
        shown = await route.show(visit, call, visit.address)
        made_at = SiteRevision(tx.site.id, tx.site.revision)
    if shown.kept and not posting:
        visit.made_at, visit.until, visit.keys = made_at, shown.until, shown.keys
    return respond(visit, shown)


def make_call(visit: Visit, tx: Transaction, values: dict[str, Any]) -> Call:
    base_url = visit.base_url(tx.site.base_url)
    return Call(
        transaction=tx,
        actor=visit.actor,
        base_url=base_url,
        ns=base_url + visit.home,
        media_url=visit.service.media_url or base_url + media_files.PREFIX,
        client=visit.client,
        fragments=visit.service.fragments,
        values=values,
    )


def respond(visit: Visit, shown: Shown) -> Response:
    body = shown.body.encode() if isinstance(shown.body, str) else shown.body
    headers = {"Content-Language": visit.language, **shown.headers}
    if shown.status == 200 and visit.made_at is not None:
        headers["ETag"] = responses.body_tag(body)
        if responses.is_known(headers["ETag"], _known(visit.request)):
            return Response(status_code=304, headers=headers)
    return Response(body, shown.status, headers, media_type=shown.media_type)


def _known(request: Request) -> list[str]:
    return responses.split_tags(request.headers.get("if-none-match", ""))

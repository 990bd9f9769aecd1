"""One request on its way, and what every request needs of the server."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from starlette.requests import Request

from kalends.core.errors import Invalid
from kalends.core.forwarded import Network, find_client
from kalends.core.turns import Shares, Turns
from kalends.kinds.kind import Actor
from kalends.operations.fragments import Fragments
from kalends.operations.library import Fetched, Library, Taken
from kalends.store.clocks import Clocks, SiteClock
from kalends.store.database import Database, Transaction
from kalends.web import language
from kalends.web.auth import has_credentials, sign_in
from kalends.web.routes import Interface, Route

NOBODY = Actor()
# Feeds and sitemaps that a process makes at a time: each takes seconds of its processor.
FEED_SHARES = Shares(per_owner=1, total=1, waiting_per_owner=2, waiting=20)


@dataclass(frozen=True, slots=True)
class Service:
    """What every request needs of the server."""

    database: Database
    clocks: Clocks
    fragments: Fragments | None = None
    base_url: str = ""
    body_limit: int = 2 * 1024 * 1024
    trusted_proxies: tuple[Network, ...] = ()
    origins: tuple[str, ...] = ()  # whose scripts may read answers
    library: Library | None = None
    media_url: str = ""
    feeds: Turns = field(default_factory=lambda: Turns(FEED_SHARES))
    daily_records: int = 0


@dataclass(slots=True)
class Exchange:
    """One request on its way. `prefix` is the path of the namespace that was asked, `home` that of the
    interface to which records link."""

    request: Request
    service: Service
    interface: Interface
    prefix: str
    namespace: str
    home: str
    path: str
    authority: str  # the validated Host header
    host: str  # the same without its port
    now: datetime
    actor: Actor = NOBODY
    route: Route | None = None
    address: dict[str, str] = field(default_factory=dict[str, str])  # what the pattern of the route found
    password_id: UUID | None = None
    site_language: str = ""  # known once the site is
    # Of an answer to the public: at which revision of its site it is right, until when, and what is in it.
    made_at: SiteClock | None = None
    until: datetime | None = None
    keys: tuple[str, ...] = ()
    # A file that came with the request, and what the addresses of images in it answered.
    upload: Taken | None = None
    fetched: dict[str, Fetched | Invalid] = field(default_factory=dict[str, Fetched | Invalid])

    @property
    def language(self) -> str:
        """The language in which people are spoken to."""
        query, headers = self.request.scope["query_string"], self.request.headers
        return language.choose(query, headers.get("accept-language", ""), self.site_language)

    @property
    def client(self) -> str:
        return client_of(self.request, self.service)

    def base_url(self, site_url: str) -> str:
        return base_url_of(self.request, self.service, self.authority, site_url)

    @property
    def credentials(self) -> str:
        """The Authorization header, where it holds credentials that can be checked; otherwise nobody asks."""
        header = self.request.headers.get("authorization", "")
        return header if has_credentials(header) else ""

    def transaction(self, *, writing: bool = False) -> AbstractAsyncContextManager[Transaction]:
        return self.service.database.transaction(
            self.host,
            self.now,
            writing=writing,
            anonymous=not self.credentials,
            client=self.client,
        )


def base_url_of(request: Request, service: Service, authority: str, site_url: str) -> str:
    """A site's own address, else the server's, else the one that was asked."""
    asked = f"{request.scope['scheme']}://{authority or 'localhost'}"
    return (site_url or service.base_url or asked).rstrip("/")


def client_of(request: Request, service: Service) -> str:
    """Returns the address that asks; behind proxies that are trusted, the one that they saw."""
    peer = request.client.host if request.client else ""
    forwarded = ",".join(request.headers.getlist("x-forwarded-for"))
    return find_client(peer, forwarded, service.trusted_proxies)


async def identify(exchange: Exchange, tx: Transaction) -> None:
    if header := exchange.credentials:
        signed_in = await sign_in(tx, header, exchange.client)
        exchange.actor, exchange.password_id = signed_in.actor, signed_in.password_id


def utc_now() -> datetime:
    """The clock of the server, in whole seconds as the interface shows them."""
    return datetime.now(UTC).replace(microsecond=0)

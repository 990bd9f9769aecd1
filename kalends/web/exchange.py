"""One request on its way, and what every request needs of the server."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from starlette.requests import Request

from kalends.core.errors import Invalid
from kalends.kinds.kind import Actor
from kalends.operations.fragments import Fragments
from kalends.operations.library import Fetched, Library, Taken
from kalends.store.clocks import Clocks, SiteClock
from kalends.store.database import Database, Transaction
from kalends.store.hosts import Hosts
from kalends.web import language
from kalends.web.auth import sign_in
from kalends.web.routes import Interface, Route

NOBODY = Actor()


@dataclass(frozen=True, slots=True)
class Service:
    """What every request needs of the server."""

    database: Database
    clocks: Clocks
    hosts: Hosts
    fragments: Fragments | None = None
    base_url: str = ""
    body_limit: int = 2 * 1024 * 1024
    trust_forwarded: bool = False
    library: Library | None = None
    media_url: str = ""
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
    host: str
    now: datetime
    actor: Actor = NOBODY
    route: Route | None = None
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
        """A site's own address, else the server's, else the one that was asked."""
        asked = f"{self.request.scope['scheme']}://{self.request.headers.get('host', 'localhost')}"
        return (site_url or self.service.base_url or asked).rstrip("/")


def client_of(request: Request, service: Service) -> str:
    """The address that asks; behind a proxy that is trusted, the one that it saw."""
    forwarded = request.headers.get("x-forwarded-for", "") if service.trust_forwarded else ""
    seen = forwarded.rpartition(",")[2].strip()
    return seen[:100] or (request.client.host if request.client else "")


async def identify(exchange: Exchange, tx: Transaction, header: str) -> None:
    if header:
        signed_in = await sign_in(tx, header, exchange.client)
        exchange.actor, exchange.password_id = signed_in.actor, signed_in.password_id


def utc_now() -> datetime:
    """The clock of the server, in whole seconds as the interface shows them."""
    return datetime.now(UTC).replace(microsecond=0)

"""The ASGI application: finds the part that is asked, answers, and lets itself be watched.

What the public asks again is answered from memory: the clock of the site says whether it is right.
"""

import asyncio
import hashlib
import re
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from kalends.api.catalog import Interface
from kalends.api.description import reference
from kalends.api.handler import allowed_methods, answer, note_use
from kalends.api.request import Exchange
from kalends.api.routes import EXTENSION, INTERFACE
from kalends.bootstrap import database_options, open_library
from kalends.core import errors
from kalends.core.clock import utc_now
from kalends.core.errors import Refusal
from kalends.core.forwarded import read_network
from kalends.core.messages import Sentence, mark
from kalends.http import media_files, responses
from kalends.http.context import Service, client_of
from kalends.http.disconnects import ClientGone, Incoming, Receive, Send
from kalends.http.encoding import accepts_gzip
from kalends.http.language import choose, find_wanted
from kalends.http.request_head import normalize_query, read_host, site_name
from kalends.http.response_cache import Page, Pages
from kalends.http.sending import PIECE, send_whole
from kalends.http.telemetry import Observer
from kalends.operations.representation_cache import Fragments
from kalends.settings import Settings, read_settings
from kalends.store.database import Database
from kalends.store.migrations import newest_revision
from kalends.store.site_revisions import Clocks
from kalends.website import routes
from kalends.website.handler import Look, Visit

Scope = MutableMapping[str, Any]

REQUEST_ID = re.compile(r"[\w.:-]{1,100}", re.ASCII)
# Headers that belong to one answer, not to a page that is kept.
OF_ONE_ANSWER = (b"x-request-id", b"content-length", b"cache-control")
# The status in the log of a request whose client has gone; nobody receives it.
CLIENT_GONE = 499
# Bytes from which on compressing is done in a thread.
LARGE_PAGE = 256 * 1024
# What the server says of itself, and not of a site.
OWN_PATHS = ("/healthz", "/readyz", "/docs")
CROSS_ORIGIN = {
    "Access-Control-Expose-Headers": responses.EXPOSED,
    "Access-Control-Allow-Methods": "OPTIONS, GET, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": responses.ACCEPTED,
    "Access-Control-Max-Age": "600",
}
# Seconds for which a shared cache may go on with an old answer while it fetches the new one.
WHILE_REVALIDATING = 60


@dataclass(frozen=True, slots=True)
class Door:
    """A path below which an interface answers; `home` is where its records link to."""

    prefix: str
    namespace: str
    interface: Interface
    home: str


@dataclass(frozen=True, slots=True)
class Front:
    """How the server is reached, which origins may read answers, and for how long others may keep them."""

    doors: Sequence[Door]
    origins: Sequence[str]
    schema: str  # the revision that the database must have
    look: Look
    shared_seconds: int = 10
    cache_bytes: int = 64 * 1024 * 1024
    # For so many seconds a response in memory is still used while the database is away.
    stale_seconds: int = 60
    purges: bool = False  # whether shared caches are told of writes, by the keys of what these change


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request that has arrived, and the way to its client."""

    request: Request
    request_id: str
    send: Send
    started: float = field(default_factory=time.perf_counter)


class Application:
    """`open_service` is called once per process, when the server starts."""

    def __init__(self, front: Front, open_service: Callable[[], Awaitable[Service]], observer: Observer) -> None:
        self._front = front
        self._open = open_service
        self._observer = observer
        self._opened: Service | None = None
        self._pages = Pages(front.cache_bytes)
        # Answers that are being made, for whoever asks the same meanwhile: whether to look for them again in the end.
        self._making: dict[bytes | None, asyncio.Future[bool]] = {}
        self._afterwards: set[asyncio.Task[None]] = set()

    @property
    def _service(self) -> Service:
        if self._opened is None:
            raise AssertionError("a request before the start")
        return self._opened

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._respond(scope, Incoming(receive), send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._opened = await self._open()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if self._afterwards:
            await asyncio.wait(self._afterwards, timeout=5)
        await self._service.database.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _respond(self, scope: Scope, incoming: Incoming, send: Send) -> None:
        request = Request(scope, incoming.receive)
        offered = request.headers.get("x-request-id", "")
        arrival = Arrival(request, offered if REQUEST_ID.fullmatch(offered) else uuid4().hex, send)
        exchange = key = page = refused = None
        age = 0.0
        try:
            host = read_host(request)
            exchange = self._exchange(request, host) or self._visit(request, host)
            key = self._key(exchange)
            if exchange is not None and key is not None:
                page, age = await self._recall(exchange, key)
        except Refusal as refusal:
            refused = refusal
        try:
            if page is not None and exchange is not None:
                sending = self._send_page(arrival, page, exchange.now, age)
                status = await (incoming.run(request, sending) if len(page.body) > PIECE else sending)
                self._note(arrival, status, page.route, cache="stale" if age else "hit")
            else:
                with self._making_of(key) as settle:
                    await incoming.run(request, self._respond_anew(arrival, exchange, refused, settle))
        except ClientGone:
            self._note(arrival, CLIENT_GONE, _route(exchange))

    async def _respond_anew(
        self,
        arrival: Arrival,
        exchange: Exchange | Visit | None,
        refused: Refusal | None,
        settle: Callable[[Page | None], None] | None,
    ) -> None:
        """Makes a response, keeps it where that is allowed, and sends it. `refused`: it is known to be a refusal."""
        request, page = arrival.request, None
        response = await self._answer(arrival, exchange, refused)
        self._finish_headers(request, response, exchange, arrival.request_id)
        if exchange is not None and settle is not None:
            page = _page_of(exchange, response)
            settle(page)
        if page is not None and isinstance(exchange, Visit):
            # A page is compressed from its first visitor on.
            await self._send_page(arrival, page, exchange.now)
        elif isinstance(response, FileResponse):
            await response(request.scope, request.receive, arrival.send)
        else:
            # The length stays that of the answer to GET; only the body is dropped.
            body = b"" if request.method == "HEAD" else bytes(response.body)
            await send_whole(arrival.send, response.status_code, response.raw_headers, body)
        user = exchange.actor.user_id if isinstance(exchange, Exchange) else None
        self._note(arrival, response.status_code, _route(exchange), user=user)
        if isinstance(exchange, Exchange) and exchange.password_id is not None:
            self._do_afterwards(note_use(exchange))

    def _exchange(self, request: Request, host: str) -> Exchange | None:
        """The exchange with an interface, if the path is below one of its doors."""
        path: str = request.scope["path"]
        for door in self._front.doors:
            size = len(door.prefix)
            if path[:size].lower() == door.prefix.lower() and path[size:][:1] in ("", "/"):
                exchange = Exchange(
                    request=request,
                    service=self._service,
                    interface=door.interface,
                    prefix=door.prefix,
                    namespace=door.namespace,
                    home=door.home,
                    path=path[size:].removesuffix("/"),
                    authority=host,
                    host=site_name(host),
                    now=utc_now(),
                )
                exchange.route, exchange.address = door.interface.find(exchange.path) or (None, {})
                return exchange
        return None

    def _visit(self, request: Request, host: str) -> Visit | None:
        """The visit of a public page or feed; None for what only the server itself answers."""
        path: str = request.scope["path"]
        if path in OWN_PATHS or path.startswith(("/docs/", f"{media_files.PREFIX}/")):
            return None
        visit = Visit(
            request=request,
            service=self._service,
            authority=host,
            host=site_name(host),
            now=utc_now(),
            home=self._front.doors[0].prefix,
            look=self._front.look,
            path=path,
        )
        routes.locate(visit)
        return visit

    # Answers from memory ---------------------------------------------------------------------

    def _key(self, exchange: Exchange | Visit | None) -> bytes | None:
        """Returns a digest of all that an answer to the public depends on besides the clock; None: it is not kept.

        Parameters without a meaning are removed from the query string here, for the whole request.
        """
        if exchange is None or exchange.route is None or exchange.request.method not in ("GET", "HEAD"):
            return None
        headers, scope = exchange.request.headers, exchange.request.scope
        query = normalize_query(exchange.request, exchange.route.known_names)
        if query is None or "authorization" in headers or self._front.cache_bytes <= 0:
            return None
        if any(name == "password" for name, _ in query):
            return None
        # Pages speak the language of their site, unless another is asked for in the query string.
        accepted = "" if isinstance(exchange, Visit) else headers.get("accept-language", "")
        language = find_wanted(scope["query_string"], accepted) or ""
        parts = (scope["scheme"], exchange.authority, scope["path"], scope["query_string"], language)
        return hashlib.blake2b(repr(parts).encode(), digest_size=16).digest()

    async def _recall(self, exchange: Exchange | Visit, key: bytes) -> tuple[Page | None, float]:
        """Returns a response in memory that is right, or was so lately if the database is away, and its age."""
        try:
            clock = await self._service.clocks.current(exchange.host)
        except Refusal:
            found = self._find_stale(exchange, key)
            if found is None:
                raise
            return found
        while clock is not None:
            page = self._pages.get(key, clock, exchange.now)
            making = self._making.get(key)
            if page is not None or making is None:
                return page, 0.0
            # Somebody makes it already; perhaps at a revision that is too old for this caller, or only to give up.
            if not await asyncio.shield(making):
                return None, 0.0
        return None, 0.0

    def _find_stale(self, exchange: Exchange | Visit, key: bytes) -> tuple[Page, float] | None:
        last = self._service.clocks.last(exchange.host, self._front.stale_seconds)
        if last is None:
            return None
        clock, age = last
        page = self._pages.get(key, clock, exchange.now - timedelta(seconds=age))
        return (page, max(age, 1.0)) if page is not None else None

    @contextmanager
    def _making_of(self, key: bytes | None) -> Iterator[Callable[[Page | None], None] | None]:
        """Tells the others that this response is being made, unless somebody makes it already.

        What is yielded takes the response, keeps it and wakes the others. If it cannot be kept each of them makes
        it; if it never comes one of them does. None: the response is not to be kept.
        """
        if key is None:
            yield None
            return
        making: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        is_first = self._making.setdefault(key, making) is making

        def wake(*, look_again: bool) -> None:
            if is_first and not making.done():
                del self._making[key]
                making.set_result(look_again)

        def settle(page: Page | None) -> None:
            if page is not None:
                self._pages.put(key, page)
            wake(look_again=page is not None)

        try:
            yield settle
        finally:
            wake(look_again=True)

    async def _send_page(self, arrival: Arrival, page: Page, now: datetime, age: float = 0.0) -> int:
        """Sends a response from memory and returns its status. With an age it may be out of date: nobody keeps it."""
        request = arrival.request
        control = "no-store" if age else self._public(page.until, now)
        headers = [
            *page.headers,
            (b"x-request-id", arrival.request_id.encode()),
            (b"cache-control", control.encode()),
        ]
        if age:
            headers.append((b"age", str(int(age)).encode()))
        headers += [(name.lower().encode(), value.encode()) for name, value in self._for_origin(request).items()]
        body, status = page.body, 200
        if page.etag and responses.is_known(
            page.etag, responses.split_tags(request.headers.get("if-none-match", ""))
        ):
            body, status = b"", 304
        elif accepts_gzip(request.headers.get("accept-encoding", "")) and (packed := await _compressed(page)):
            body = packed
            headers.append((b"content-encoding", b"gzip"))
        if status == 200:
            headers.append((b"content-length", str(len(body)).encode()))
        if request.method == "HEAD":
            body = b""
        await send_whole(arrival.send, status, headers, body)
        return status

    # Answers made anew -----------------------------------------------------------------------

    async def _answer(self, arrival: Arrival, exchange: Exchange | Visit | None, refused: Refusal | None) -> Response:
        request, request_id = arrival.request, arrival.request_id
        try:
            if refused is not None:
                raise refused
            response = await self._answer_to(request, exchange)
        except Refusal as refusal:
            response = responses.refuse(refusal, _language(request, exchange))
        except Exception as error:
            self._observer.fault(error, request_id=request_id, method=request.method, path=request.scope["path"])
            response = responses.refuse(errors.fault(request_id), _language(request, exchange))
        return response

    async def _answer_to(self, request: Request, exchange: Exchange | Visit | None) -> Response:
        if isinstance(exchange, Exchange):
            return await answer(exchange)
        return await routes.show(exchange) if exchange else await self._watch(request)

    async def _watch(self, request: Request) -> Response:
        """/healthz: the process lives. /readyz: the database answers and has the current schema."""
        path = request.scope["path"]
        if path == "/healthz":
            return PlainTextResponse("ok\n")
        if path == "/docs" or path.startswith("/docs/"):
            return await self._reference(request, path.removeprefix("/docs").strip("/"))
        if path.startswith(f"{media_files.PREFIX}/"):
            return await media_files.serve_file(self._service, request, site_name(read_host(request)))
        if path != "/readyz":
            raise errors.no_route()
        found = await self._service.database.answers()
        if found != self._front.schema:
            why = mark("The schema is {found}, not {wanted}: run `kalends migrate`.")
            raise errors.unavailable(Sentence(why, found=found, wanted=self._front.schema))
        return PlainTextResponse("ready\n")

    async def _reference(self, request: Request, name: str) -> Response:
        """/docs: the reference for people, in the language that they or their site want."""
        if request.method not in ("GET", "HEAD"):
            raise errors.method_not_allowed(request.method, ["GET"])
        if name:
            return reference.show_file(name)
        host, client = site_name(read_host(request)), client_of(request, self._service)
        async with self._service.database.transaction(host, utc_now(), writing=False, client=client) as tx:
            site = tx.site
        language = choose(request.scope["query_string"], request.headers.get("accept-language", ""), site.language)
        home, ours = self._front.doors[:2]
        return reference.show_page(language, home.prefix, ours.prefix)

    def _finish_headers(
        self, request: Request, response: Response, exchange: Exchange | Visit | None, request_id: str
    ) -> None:
        headers = response.headers
        headers["X-Request-ID"] = request_id
        headers["X-Content-Type-Options"] = "nosniff"
        if exchange is None:
            return
        public = exchange.made_at is not None and response.status_code in (200, 304)
        if public:
            headers["Cache-Control"] = self._public(exchange.until, exchange.now)
            # Only a shared cache that is told of writes needs the keys.
            if exchange.keys and self._front.purges:
                headers["Surrogate-Key"] = " ".join(exchange.keys)
        elif "Cache-Control" not in headers:
            headers["Cache-Control"] = "private, no-store"
        varies = "" if "*" in self._front.origins else ", Origin"
        if isinstance(exchange, Visit):
            headers["Vary"] = f"Accept-Encoding{varies}"
            headers.update(self._for_origin(request))
            return
        headers["X-Robots-Tag"] = "noindex"
        headers["Vary"] = f"Authorization, Accept-Encoding{varies}"
        if "Content-Language" in headers:  # Records are not ours to translate, and do not vary.
            headers["Vary"] += ", Accept-Language"
        # Who is slowed down is not known yet, and so not what they may do.
        if "Allow" not in headers and response.status_code not in (404, 429):
            headers["Allow"] = ", ".join(allowed_methods(exchange))
        api_root = exchange.base_url("") + exchange.prefix.removesuffix(f"/{exchange.namespace}")
        discovery = f'<{api_root}/>; rel="https://api.w.org/"'
        headers["Link"] = f"{discovery}, {headers['Link']}" if "Link" in headers else discovery
        headers.update(self._for_origin(request))

    def _public(self, until: datetime | None, now: datetime) -> str:
        """Browsers ask again each time; a shared cache may keep an answer, but not beyond its time."""
        seconds = self._front.shared_seconds
        if until is not None:
            seconds = max(0, min(seconds, int((until - now).total_seconds())))
        stale = f", stale-if-error={self._front.stale_seconds}" if self._front.stale_seconds else ""
        return f"public, max-age=0, s-maxage={seconds}, stale-while-revalidate={WHILE_REVALIDATING}{stale}"

    def _for_origin(self, request: Request) -> dict[str, str]:
        """Another origin may read answers, never together with a browser's stored credentials."""
        origin = request.headers.get("origin", "")
        allowed = "*" if "*" in self._front.origins else origin if origin in self._front.origins else ""
        return {"Access-Control-Allow-Origin": allowed, **CROSS_ORIGIN} if allowed else {}

    # What follows an answer ------------------------------------------------------------------

    def _do_afterwards(self, work: Awaitable[None]) -> None:
        task = asyncio.create_task(self._quietly(work))
        self._afterwards.add(task)
        task.add_done_callback(self._afterwards.discard)

    async def _quietly(self, work: Awaitable[None]) -> None:
        """The failure of work after the answer is worth a line in the log; a busy database not even that."""
        try:
            await work
        except Refusal:
            return
        except Exception as error:
            self._observer.fault(error)

    def _note(self, arrival: Arrival, status: int, route: str, **more: Any) -> None:
        request = arrival.request
        self._observer.note(
            request.method,
            route,
            status,
            time.perf_counter() - arrival.started,
            path=request.scope["path"][:500],
            request_id=arrival.request_id,
            host=request.headers.get("host", "")[:255],
            **more,
        )


def _language(request: Request, exchange: Exchange | Visit | None) -> str:
    if isinstance(exchange, Exchange):
        return exchange.language
    return choose(request.scope["query_string"], request.headers.get("accept-language", ""))


async def _compressed(page: Page) -> bytes | None:
    """Large ones in a thread: a feed of thousands of events would keep everybody waiting."""
    return page.compressed() if len(page.body) < LARGE_PAGE else await asyncio.to_thread(page.compressed)


def _page_of(exchange: Exchange | Visit, response: Response) -> Page | None:
    """Returns a response as it can be kept: only whole ones to the public, made by a read."""
    if exchange.made_at is None or response.status_code != 200 or not response.body:
        return None
    if exchange.until is not None and exchange.until <= exchange.now:
        return None
    return Page(
        site_id=exchange.made_at.site_id,
        revision=exchange.made_at.revision,
        until=exchange.until,
        headers=[pair for pair in response.raw_headers if _is_kept(pair[0])],
        etag=response.headers.get("etag", ""),
        body=bytes(response.body),
        route=_route(exchange),
    )


def _route(exchange: Exchange | Visit | None) -> str:
    """The pattern of the route, for metrics."""
    return exchange.route.pattern if exchange and exchange.route else "other"


def _is_kept(header: bytes) -> bool:
    return header not in OF_ONE_ANSWER and not header.startswith(b"access-control-")


def create_application() -> Application:
    """What the server calls in each of its processes."""
    settings = read_settings()
    front = Front(
        doors=_doors(settings),
        origins=settings.cors_origins,
        schema=newest_revision(),
        look=Look(settings.tiles_url, settings.tiles_credit),
        shared_seconds=settings.shared_seconds,
        cache_bytes=settings.cache_mb * 1024 * 1024,
        stale_seconds=settings.stale_seconds,
        purges=bool(settings.purge_urls),
    )

    async def open_service() -> Service:
        database = await Database.open(database_options(settings))
        clocks = Clocks(database)
        return Service(
            database,
            clocks,
            Fragments(settings.cache_mb * 1024 * 1024 // 4) if settings.cache_mb else None,
            base_url=settings.base_url,
            body_limit=settings.body_limit,
            trusted_proxies=tuple(read_network(text) for text in settings.trusted_proxies),
            origins=settings.cors_origins,
            library=open_library(settings),
            media_url=settings.media_url,
            daily_records=settings.daily_records,
        )

    return Application(front, open_service, Observer(settings.log_format))


def _doors(settings: Settings) -> tuple[Door, ...]:
    """The interface, the paths under which existing clients look for it, and what is ours beside it."""
    home = f"{settings.api_root}/{INTERFACE.namespace}"
    extension = f"{settings.api_root}/{EXTENSION.namespace}"
    aliases = [Door(path, "/".join(path.split("/")[-3:]), INTERFACE, path) for path in settings.aliases]
    return (
        Door(home, INTERFACE.namespace, INTERFACE, home),
        Door(extension, EXTENSION.namespace, EXTENSION, home),
        *aliases,
    )

"""The ASGI application: finds the part that is asked, answers, and lets itself be watched.

What the public asks again is answered from memory: the clock of the site says whether it is right.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from kalends.core import errors
from kalends.core.errors import Refusal
from kalends.core.sentences import Sentence, mark
from kalends.web import files, reference, responses, site
from kalends.web.cache import Page, Pages
from kalends.web.endpoint import allowed_methods, answer, note_use
from kalends.web.exchange import Exchange, Service, utc_now
from kalends.web.language import choose
from kalends.web.observe import Observer
from kalends.web.routes import Interface
from kalends.web.visit import Look, Visit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

REQUEST_ID = re.compile(r"[\w.:-]{1,100}", re.ASCII)
# Headers that belong to one answer, not to a page that is kept.
OF_ONE_ANSWER = (b"x-request-id", b"content-length", b"cache-control")
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
    purges: bool = False  # whether shared caches are told of writes, by the keys of what these change


class Application:
    """`open_service` is called once per process, when the server starts."""

    def __init__(self, front: Front, open_service: Callable[[], Awaitable[Service]], observer: Observer) -> None:
        self._front = front
        self._open = open_service
        self._observer = observer
        self._opened: Service | None = None
        self._pages = Pages(front.cache_bytes)
        # Answers that are being made, for whoever asks the same meanwhile.
        self._making: dict[object, asyncio.Future[Page | None]] = {}
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
            await self._respond(Request(scope, receive), receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._opened = await self._open()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if self._afterwards:
            await asyncio.wait(self._afterwards, timeout=5)
        await self._service.database.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _respond(self, request: Request, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        offered = request.headers.get("x-request-id", "")
        request_id = offered if REQUEST_ID.fullmatch(offered) else uuid4().hex
        exchange = self._exchange(request) or self._visit(request)
        key = self._key(request, exchange)
        page = away = None
        if exchange is not None and key is not None:
            try:
                page = await self._recall(exchange, key)
            except Refusal as refusal:
                away = refusal
            if page is not None:
                status = await self._send_page(request, page, request_id, exchange.now, send)
                self._note(request, status, page.route, started, request_id, cache="hit")
                return
        making = self._begin(key)
        try:
            response = await self._answer(request, exchange, request_id, away)
            self._finish_headers(request, response, exchange, request_id)
            if exchange is not None and key is not None:
                page = self._keep(exchange, key, response)
        finally:
            if making is not None:
                del self._making[key]
                making.set_result(page)
        if page is not None and isinstance(exchange, Visit):
            # A page is compressed from its first visitor on.
            await self._send_page(request, page, request_id, exchange.now, send)
        else:
            await response(request.scope, receive, send)
        route = exchange.route.pattern if exchange and exchange.route else "other"
        user = exchange.actor.user_id if isinstance(exchange, Exchange) else None
        self._note(request, response.status_code, route, started, request_id, user=user)
        if isinstance(exchange, Exchange) and exchange.password_id is not None:
            self._do_afterwards(note_use(exchange))

    def _exchange(self, request: Request) -> Exchange | None:
        """The exchange with an interface, if the path is below one of its doors."""
        path: str = request.scope["path"]
        for door in self._front.doors:
            size = len(door.prefix)
            if path[:size].lower() == door.prefix.lower() and path[size:][:1] in ("", "/"):
                return Exchange(
                    request=request,
                    service=self._service,
                    interface=door.interface,
                    prefix=door.prefix,
                    namespace=door.namespace,
                    home=door.home,
                    path=path[size:].removesuffix("/"),
                    host=_host(request),
                    now=utc_now(),
                )
        return None

    def _visit(self, request: Request) -> Visit | None:
        """The visit of a public page or feed; None for what only the server itself answers."""
        path: str = request.scope["path"]
        if path in OWN_PATHS or path.startswith(("/docs/", f"{files.PREFIX}/")):
            return None
        return Visit(
            request=request,
            service=self._service,
            host=_host(request),
            now=utc_now(),
            home=self._front.doors[0].prefix,
            look=self._front.look,
            path=path,
        )

    # Answers from memory ---------------------------------------------------------------------

    def _key(self, request: Request, exchange: Exchange | Visit | None) -> object | None:
        """What an answer to the public depends on besides the clock; None: it is not kept."""
        scope = request.scope
        if exchange is None or request.method not in ("GET", "HEAD") or self._front.cache_bytes <= 0:
            return None
        headers = request.headers
        if "authorization" in headers or b"password" in scope["query_string"]:
            return None
        return (
            scope["scheme"],
            headers.get("host", ""),
            scope["path"],
            scope["query_string"],
            # Pages speak the language of their site.
            "" if isinstance(exchange, Visit) else headers.get("accept-language", ""),
        )

    async def _recall(self, exchange: Exchange | Visit, key: object) -> Page | None:
        clock = await self._service.clocks.current(exchange.host)
        while clock is not None:
            page = self._pages.get(key, clock, exchange.now)
            making = self._making.get(key)
            if page is not None or making is None:
                return page
            # Somebody makes it already; perhaps at a revision that is too old for this caller.
            if await asyncio.shield(making) is None:
                return None
        return None

    def _begin(self, key: object) -> "asyncio.Future[Page | None] | None":
        """Tells the others that this answer is being made, unless somebody makes it already."""
        if key is None or key in self._making:
            return None
        making = self._making[key] = asyncio.get_running_loop().create_future()
        return making

    def _keep(self, exchange: Exchange | Visit, key: object, response: Response) -> Page | None:
        """Only whole answers to the public, made by a read of the interface."""
        if exchange.made_at is None or response.status_code != 200 or not response.body:
            return None
        if exchange.until is not None and exchange.until <= exchange.now:
            return None
        page = Page(
            site_id=exchange.made_at.site_id,
            revision=exchange.made_at.revision,
            until=exchange.until,
            headers=[pair for pair in response.raw_headers if _is_kept(pair[0])],
            etag=response.headers.get("etag", ""),
            body=bytes(response.body),
            route=exchange.route.pattern if exchange.route else "",
        )
        self._pages.put(key, page)
        return page

    async def _send_page(self, request: Request, page: Page, request_id: str, now: datetime, send: Send) -> int:
        headers = [
            *page.headers,
            (b"x-request-id", request_id.encode()),
            (b"cache-control", self._public(page.until, now).encode()),
        ]
        headers += [(name.lower().encode(), value.encode()) for name, value in self._for_origin(request).items()]
        body, status = page.body, 200
        if page.etag and responses.is_known(
            page.etag, responses.split_tags(request.headers.get("if-none-match", ""))
        ):
            body, status = b"", 304
        elif "gzip" in request.headers.get("accept-encoding", "") and (packed := await _compressed(page)):
            body = packed
            headers.append((b"content-encoding", b"gzip"))
        if status == 200:
            headers.append((b"content-length", str(len(body)).encode()))
        if request.method == "HEAD":
            body = b""
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return status

    # Answers made anew -----------------------------------------------------------------------

    async def _answer(
        self, request: Request, exchange: Exchange | Visit | None, request_id: str, away: Refusal | None
    ) -> Response:
        """`away`: the database did not tell its clock, and need not be asked again."""
        try:
            if away is not None:
                raise away
            response = await self._answer_to(request, exchange)
        except Refusal as refusal:
            response = responses.refuse(refusal, _language(request, exchange))
        except Exception as error:
            self._observer.fault(error, request_id=request_id, method=request.method, path=request.scope["path"])
            response = responses.refuse(errors.fault(request_id), _language(request, exchange))
        if request.method == "HEAD" and not isinstance(response, FileResponse):
            # The length stays that of the answer to GET; only the body is dropped.
            response.body = b""
        return response

    async def _answer_to(self, request: Request, exchange: Exchange | Visit | None) -> Response:
        if isinstance(exchange, Exchange):
            return await answer(exchange)
        return await site.show(exchange) if exchange else await self._watch(request)

    async def _watch(self, request: Request) -> Response:
        """/healthz: the process lives. /readyz: the database answers and has the current schema."""
        path = request.scope["path"]
        if path == "/healthz":
            return PlainTextResponse("ok\n")
        if path == "/docs" or path.startswith("/docs/"):
            return await self._reference(request, path.removeprefix("/docs").strip("/"))
        if path.startswith(f"{files.PREFIX}/"):
            return await files.serve_file(self._service, request, _host(request))
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
        async with self._service.database.transaction(_host(request), utc_now(), writing=False) as tx:
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
        return f"public, max-age=0, s-maxage={seconds}, stale-while-revalidate={WHILE_REVALIDATING}"

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

    def _note(self, request: Request, status: int, route: str, started: float, request_id: str, **more: Any) -> None:
        self._observer.note(
            request.method,
            route,
            status,
            time.perf_counter() - started,
            path=request.scope["path"][:500],
            request_id=request_id,
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


def _host(request: Request) -> str:
    """The name by which a site is found: in small letters, without the port."""
    return request.headers.get("host", "").partition(":")[0].lower()


def _is_kept(header: bytes) -> bool:
    return header not in OF_ONE_ANSWER and not header.startswith(b"access-control-")

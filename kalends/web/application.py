"""The ASGI application: finds the part that is asked, answers, and lets itself be watched."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import structlog
from prometheus_client import Counter, Histogram
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from kalends.core import errors
from kalends.core.errors import Refusal
from kalends.web import responses
from kalends.web.endpoint import Exchange, Service, allowed_methods, answer, note_use, utc_now
from kalends.web.routes import Interface

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

REQUESTS = Counter("kalends_requests_total", "Requests answered", ["method", "route", "status"])
SECONDS = Histogram("kalends_request_seconds", "Time to answer", ["method", "route"])
REQUEST_ID = re.compile(r"[\w.:-]{1,100}")

log: Any = structlog.get_logger("kalends.access")


@dataclass(frozen=True, slots=True)
class Front:
    """How the server is reached: the paths of the namespace, and which origins may read answers."""

    doors: Sequence["Door"]
    origins: Sequence[str]
    schema: str  # the revision that the database must have


@dataclass(frozen=True, slots=True)
class Door:
    """A path below which an interface answers; `home` is where its records link to."""

    prefix: str
    namespace: str
    interface: Interface
    home: str


class Application:
    """`open` is called once per process, when the server starts."""

    def __init__(self, front: Front, open_service: Callable[[], Awaitable[Service]]) -> None:
        self._front = front
        self._open = open_service
        self._service: Service | None = None
        self._afterwards: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._respond(Request(scope, receive), receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._service = await self._open()
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
        exchange = self._exchange(request)
        response = await self._answer(request, exchange, request_id)
        self._finish_headers(request, response, exchange, request_id)
        await response(request.scope, receive, send)
        if exchange is not None and exchange.password_id is not None:
            task = asyncio.create_task(_quietly(note_use(exchange)))
            self._afterwards.add(task)
            task.add_done_callback(self._afterwards.discard)
        self._observe(request, response, exchange, request_id, time.perf_counter() - started)

    def _exchange(self, request: Request) -> Exchange | None:
        """The exchange with the interface, if the path is below one of its prefixes."""
        path: str = request.scope["path"]
        for door in self._front.doors:
            prefix = door.prefix
            if path[: len(prefix)].lower() == prefix.lower() and path[len(prefix) :][:1] in ("", "/"):
                below = path[len(prefix) :].removesuffix("/")
                host = request.headers.get("host", "").partition(":")[0].lower()
                if self._service is None:
                    raise AssertionError("a request before the start")
                return Exchange(
                    request=request,
                    service=self._service,
                    interface=door.interface,
                    prefix=prefix,
                    namespace=door.namespace,
                    home=door.home,
                    path=below,
                    host=host,
                    now=utc_now(),
                )
        return None

    async def _answer(self, request: Request, exchange: Exchange | None, request_id: str) -> Response:
        try:
            response = await answer(exchange) if exchange else await self._watch(request)
        except Refusal as refusal:
            response = responses.refuse(refusal)
        except Exception:
            log.exception("fault", request_id=request_id, method=request.method, path=request.scope["path"])
            response = responses.refuse(
                Refusal(500, "internal_server_error", f"A fault of the server; it is logged as {request_id}.")
            )
        if request.method == "HEAD":
            # The length stays that of the answer to GET; only the body is dropped.
            response.body = b""
        return response

    async def _watch(self, request: Request) -> Response:
        """/healthz: the process lives. /readyz: the database answers and has the current schema."""
        path = request.scope["path"]
        if path == "/healthz":
            return PlainTextResponse("ok\n")
        if path != "/readyz" or self._service is None:
            raise errors.no_route()
        found = await self._service.database.answers()
        if found != self._front.schema:
            raise errors.unavailable(f"The schema is {found}, not {self._front.schema}: run `kalends migrate`.")
        return PlainTextResponse("ready\n")

    def _finish_headers(
        self, request: Request, response: Response, exchange: Exchange | None, request_id: str
    ) -> None:
        headers = response.headers
        headers["X-Request-ID"] = request_id
        headers["X-Content-Type-Options"] = "nosniff"
        if exchange is None:
            return
        headers["X-Robots-Tag"] = "noindex"
        headers["Vary"] = "Origin, Authorization"
        private = "authorization" in request.headers or response.status_code >= 400
        headers["Cache-Control"] = "private, no-store" if private else "public, no-cache"
        if "Allow" not in headers and response.status_code != 404:
            headers["Allow"] = ", ".join(allowed_methods(exchange))
        api_root = exchange.base_url("") + exchange.prefix.removesuffix(f"/{exchange.namespace}")
        discovery = f'<{api_root}/>; rel="https://api.w.org/"'
        headers["Link"] = f"{discovery}, {headers['Link']}" if "Link" in headers else discovery
        self._allow_origin(request, response)

    def _allow_origin(self, request: Request, response: Response) -> None:
        """Another origin may read answers, never together with a browser's stored credentials."""
        origin = request.headers.get("origin")
        if not origin or not ("*" in self._front.origins or origin in self._front.origins):
            return
        headers = response.headers
        headers["Access-Control-Allow-Origin"] = origin
        headers["Access-Control-Expose-Headers"] = responses.EXPOSED
        headers["Access-Control-Allow-Methods"] = "OPTIONS, GET, POST, PUT, PATCH, DELETE"
        headers["Access-Control-Allow-Headers"] = (
            "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, "
            "X-HTTP-Method-Override, X-Request-ID"
        )
        headers["Access-Control-Max-Age"] = "600"

    def _observe(
        self, request: Request, response: Response, exchange: Exchange | None, request_id: str, seconds: float
    ) -> None:
        route = exchange.route.pattern if exchange and exchange.route else "other"
        method = request.method if request.method in KNOWN_METHODS else "other"
        REQUESTS.labels(method, route, str(response.status_code)).inc()
        SECONDS.labels(method, route).observe(seconds)
        # The query string is left out: it may hold the password of an event.
        log.info(
            "request",
            request_id=request_id,
            method=method,
            path=request.scope["path"][:500],
            status=response.status_code,
            ms=round(seconds * 1000, 1),
            user=exchange.actor.user_id if exchange else None,
            host=request.headers.get("host", "")[:255],
        )


KNOWN_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


async def _quietly(work: Awaitable[None]) -> None:
    """Work after the answer: its failure is worth a line in the log, nothing more."""
    try:
        await work
    except Exception:
        log.exception("afterwards")

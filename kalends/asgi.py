"""The ASGI application: mounts, dispatch, error boundary, access log. One application per process."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from kalends.api.catalog import Interface
from kalends.api.description import reference
from kalends.api.handler import add_headers, answer
from kalends.api.request import Exchange
from kalends.api.routes import EXTENSION, INTERFACE
from kalends.bootstrap import database_options, open_library
from kalends.core import errors
from kalends.core.clock import utc_now
from kalends.core.errors import ApiError
from kalends.core.forwarded import read_network
from kalends.http import cors, health, language, media_files, responses
from kalends.http.auth import record_use
from kalends.http.context import Service
from kalends.http.disconnects import ClientGone, Incoming, Receive, Send
from kalends.http.request_head import read_host, site_name
from kalends.http.response_cache import CachedResponse, ResponseCache, make_cacheable
from kalends.http.response_headers import HeaderPolicy
from kalends.http.sending import PIECE, send_cached, send_whole
from kalends.http.telemetry import Observer
from kalends.operations.representation_cache import Fragments
from kalends.settings import Settings, read_settings
from kalends.store.database import Database
from kalends.store.migrations import newest_revision
from kalends.store.site_revisions import SiteRevisions
from kalends.website import routes
from kalends.website.handler import Look, Visit

Scope = MutableMapping[str, Any]
Context = Exchange | Visit
StoreResponse = Callable[[CachedResponse | None], None]

REQUEST_ID: Final = re.compile(r"[\w.:-]{1,100}", re.ASCII)
# The status in the access log of a request whose client has disconnected.
CLIENT_GONE: Final = 499
# Paths of the server itself, which belong to no site.
SYSTEM_PATHS: Final = ("/healthz", "/readyz", "/docs")


@dataclass(frozen=True, slots=True)
class Door:
    """A path prefix of an API; `home` is the canonical prefix, which links use."""

    prefix: str
    namespace: str
    interface: Interface
    home: str


@dataclass(frozen=True, slots=True)
class Front:
    """The HTTP configuration: mounts, headers, caching, maps."""

    doors: Sequence[Door]
    headers: HeaderPolicy
    schema: str  # the schema version that the database must have
    look: Look
    cache_bytes: int = 64 * 1024 * 1024


@dataclass(slots=True)
class Arrival:
    """A request, the way to send its response, and what is known of it so far."""

    request: Request
    send: Send
    request_id: str
    host: str = ""  # the validated Host header
    context: Context | None = None  # None: a system path
    started: float = field(default_factory=time.perf_counter)

    @property
    def language(self) -> str:
        """Return the language of error messages."""
        if self.context is not None:
            return self.context.error_language
        headers = self.request.headers
        return language.choose(self.request.scope["query_string"], headers.get("accept-language", ""))


class Application:
    """`open_service` is called once per process, when the server starts."""

    def __init__(self, front: Front, open_service: Callable[[], Awaitable[Service]], observer: Observer) -> None:
        self._front = front
        self._open = open_service
        self._observer = observer
        self._opened: Service | None = None
        self._cache = ResponseCache(front.cache_bytes, front.headers.stale_seconds)
        self._background: set[asyncio.Task[None]] = set()

    @property
    def _service(self) -> Service:
        if self._opened is None:
            raise AssertionError("a request before the start")
        return self._opened

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif scope["type"] == "http":
            await self._respond(scope, Incoming(receive), send)

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        self._opened = await self._open()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if self._background:
            await asyncio.wait(self._background, timeout=5)
        await self._service.database.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _respond(self, scope: Scope, incoming: Incoming, send: Send) -> None:
        request = Request(scope, incoming.receive)
        offered = request.headers.get("x-request-id", "")
        arrival = Arrival(request, send, offered if REQUEST_ID.fullmatch(offered) else uuid4().hex)
        key = cached = error = None
        age = 0.0
        try:
            arrival.host = read_host(request)
            arrival.context = find_context(self._front, self._service, request, arrival.host)
            key = self._cache.make_key(arrival.context)
            if arrival.context is not None and key is not None:
                cached, age = await self._cache.find(arrival.context, key)
        except ApiError as refusal:
            error = refusal
        try:
            if cached is not None:
                sending = self._send_cached(arrival, cached, age)
                status = await (incoming.run(request, sending) if len(cached.body) > PIECE else sending)
                self._log(arrival, status, cached.route, cache="stale" if age else "hit")
            else:
                with self._cache.rendering(key) as store:
                    await incoming.run(request, self._render(arrival, error, store))
        except ClientGone:
            self._log(arrival, CLIENT_GONE, _route(arrival.context))

    async def _render(self, arrival: Arrival, error: ApiError | None, store: StoreResponse | None) -> None:
        """Handle a request, store the response if that is allowed, and send it. `error` is known already."""
        context, cached = arrival.context, None
        response = await self._handle(arrival, error)
        self._add_headers(arrival, response)
        if context is not None and store is not None:
            cached = make_cacheable(context, response)
            store(cached)
        if cached is not None and isinstance(context, Visit):
            # Pages are compressed for their first visitor already.
            await self._send_cached(arrival, cached)
        else:
            await _send(arrival, response)
        self._log(arrival, response.status_code, _route(context), user=context.actor.user_id if context else None)
        if context is not None and context.password_id is not None:
            self._run_in_background(record_use(context))

    async def _handle(self, arrival: Arrival, error: ApiError | None) -> Response:
        """Return the response of the part that the path belongs to. This is the error boundary."""
        request = arrival.request
        try:
            if error is not None:
                raise error
            if isinstance(arrival.context, Exchange):
                return await answer(arrival.context)
            if arrival.context is not None:
                return await routes.show(arrival.context)
            return await self._handle_system_path(request, site_name(arrival.host))
        except ApiError as refusal:
            return responses.refuse(refusal, arrival.language)
        except Exception as exception:
            path = request.scope["path"]
            self._observer.fault(exception, request_id=arrival.request_id, method=request.method, path=path)
            return responses.refuse(errors.internal_error(arrival.request_id), arrival.language)

    async def _handle_system_path(self, request: Request, host: str) -> Response:
        path = request.scope["path"]
        if path == "/healthz":
            return health.show_health()
        if path == "/readyz":
            return await health.show_readiness(self._service.database, self._front.schema)
        if path == "/docs" or path.startswith("/docs/"):
            home, extension = self._front.doors[:2]
            return await reference.show(self._service, request, host, home.prefix, extension.prefix)
        if path.startswith(f"{media_files.PREFIX}/"):
            return await media_files.serve_file(self._service, request, host)
        raise errors.no_route()

    def _add_headers(self, arrival: Arrival, response: Response) -> None:
        policy, context = self._front.headers, arrival.context
        policy.add_common(response, context, arrival.request_id)
        if context is None:
            return
        if isinstance(context, Exchange):
            add_headers(context, response, policy.vary)
        else:
            response.headers["Vary"] = policy.vary
        response.headers.update(cors.make_headers(arrival.request, policy.origins))

    async def _send_cached(self, arrival: Arrival, cached: CachedResponse, age: float = 0.0) -> int:
        headers = [(b"x-request-id", arrival.request_id.encode())]
        now = arrival.context.now if arrival.context else utc_now()
        policy = self._front.headers
        return await send_cached(arrival.request, arrival.send, cached, policy, headers, now=now, age=age)

    def _run_in_background(self, work: Awaitable[None]) -> None:
        task = asyncio.create_task(self._log_failures(work))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _log_failures(self, work: Awaitable[None]) -> None:
        """Await work after the response. A busy database is not worth a line in the log."""
        try:
            await work
        except ApiError:
            return
        except Exception as error:
            self._observer.fault(error)

    def _log(self, arrival: Arrival, status: int, route: str, **more: Any) -> None:
        request, seconds = arrival.request, time.perf_counter() - arrival.started
        self._observer.note(
            request.method, route, status, seconds,
            path=request.scope["path"][:500], request_id=arrival.request_id,
            host=request.headers.get("host", "")[:255], **more,
        )  # fmt: skip


def find_context(front: Front, service: Service, request: Request, host: str) -> Context | None:
    """Return the context of an API or page request; None for a system path."""
    path: str = request.scope["path"]
    for door in front.doors:
        size = len(door.prefix)
        if path[:size].lower() == door.prefix.lower() and path[size:][:1] in ("", "/"):
            return _make_api_request(service, request, host, door)
    if path in SYSTEM_PATHS or path.startswith(("/docs/", f"{media_files.PREFIX}/")):
        return None
    visit = Visit(
        request=request, service=service, authority=host, host=site_name(host), now=utc_now(),
        home=front.doors[0].prefix, look=front.look, path=path,
    )  # fmt: skip
    routes.locate(visit)
    return visit


def _make_api_request(service: Service, request: Request, host: str, door: Door) -> Exchange:
    path: str = request.scope["path"][len(door.prefix) :].removesuffix("/")
    route, path_params = door.interface.find(path) or (None, {})
    return Exchange(
        request=request, service=service, authority=host, host=site_name(host), now=utc_now(),
        home=door.home, path=path, route=route, address=path_params,
        interface=door.interface, prefix=door.prefix, namespace=door.namespace,
    )  # fmt: skip


async def _send(arrival: Arrival, response: Response) -> None:
    request = arrival.request
    if isinstance(response, FileResponse):
        await response(request.scope, request.receive, arrival.send)
        return
    # Content-Length stays that of GET; only the body is dropped.
    body = b"" if request.method == "HEAD" else bytes(response.body)
    await send_whole(arrival.send, response.status_code, response.raw_headers, body)


def _route(context: Context | None) -> str:
    return context.route_pattern if context else "other"


def create_application() -> Application:
    """Create the application; the server calls this in each of its processes."""
    settings = read_settings()
    front = Front(
        doors=_doors(settings),
        headers=HeaderPolicy(
            origins=settings.cors_origins,
            shared_seconds=settings.shared_seconds,
            stale_seconds=settings.stale_seconds,
            sends_tags=bool(settings.purge_urls),
        ),
        schema=newest_revision(),
        look=Look(settings.tiles_url, settings.tiles_credit),
        cache_bytes=settings.cache_mb * 1024 * 1024,
    )

    async def open_service() -> Service:
        database = await Database.open(database_options(settings))
        clocks = SiteRevisions(database)
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
    """Return the mounts of the API, of its aliases for existing clients, and of the extensions."""
    home = f"{settings.api_root}/{INTERFACE.namespace}"
    extension = f"{settings.api_root}/{EXTENSION.namespace}"
    aliases = [Door(path, "/".join(path.split("/")[-3:]), INTERFACE, path) for path in settings.aliases]
    return (
        Door(home, INTERFACE.namespace, INTERFACE, home),
        Door(extension, EXTENSION.namespace, EXTENSION, home),
        *aliases,
    )

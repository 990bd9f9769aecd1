"""The ASGI application: mounts, dispatch, error boundary, access log, warm-up. One application per process."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from kalends.adapters.tracing import Tracer
from kalends.api.catalog import Interface
from kalends.api.core_routes.routes import CORE
from kalends.api.description import reference
from kalends.api.handler import handle_api_request, make_headers, redirect_to_document
from kalends.api.request import ApiRequest
from kalends.api.routes import EXTENSION, INTERFACE, ROOT
from kalends.bootstrap import open_database, open_library, open_replica, open_tracer
from kalends.console.handler import serve_console
from kalends.console.request import PREFIX as CONSOLE
from kalends.console.request import ConsoleRequest
from kalends.console.routes import match_route as match_console_route
from kalends.core import errors
from kalends.core.clock import utc_now
from kalends.core.errors import ApiError
from kalends.core.forwarded import read_network
from kalends.http import cors, health, language, media_files, requests, responses
from kalends.http.auth import record_use
from kalends.http.context import MEDIA_PREFIX, AppState
from kalends.http.disconnects import ClientDisconnected, DisconnectWatcher, Receive, Send
from kalends.http.error_page import make_error_page
from kalends.http.invalidation import TouchedTags
from kalends.http.read_sources import ReadSources
from kalends.http.request_head import read_host, strip_port
from kalends.http.response_cache import STARVED, CachedResponse, LastKnown, ResponseCache, make_cached_response
from kalends.http.response_headers import HeaderPolicy, set_headers
from kalends.http.rest_route import rewrite_rest_route
from kalends.http.sending import CHUNK_BYTES, send_cached, send_response
from kalends.http.telemetry import Telemetry, sample_pool
from kalends.operations.representation_cache import RepresentationCache
from kalends.settings import Settings, read_settings
from kalends.store.migrations import newest_revision
from kalends.website import rendering, routes
from kalends.website.handler import MapSettings, PageRequest

Scope = MutableMapping[str, Any]
Context = ApiRequest | PageRequest | ConsoleRequest
StoreResponse = Callable[[CachedResponse | None], None]
OpenState = Callable[[], Awaitable[AppState]]

log = logging.getLogger(__name__)

HANDLERS: Mapping[type[Context], Callable[[Any], Awaitable[Response]]] = {
    ApiRequest: handle_api_request,
    PageRequest: routes.serve_page,
    ConsoleRequest: serve_console,
}
REQUEST_ID: Final = re.compile(r"[\w.:-]{1,100}", re.ASCII)
# The status in the access log of a request whose client has disconnected.
CLIENT_CLOSED_REQUEST: Final = 499
# Paths of the server itself, which belong to no site.
SYSTEM_PATHS: Final = ("/healthz", "/readyz", "/docs", "/openapi.json")
# The namespace of The Events Calendar, below the REST root of WordPress.
LEGACY_NAMESPACE: Final = "/tribe/events/v1"
# Requests of the warm-up, which run concurrently, each on a connection of its own; those of the API below its prefix.
WARM_UP_PAGES: Final = ("/events/month/", "/events/list/")
WARM_UP_LISTS: Final = ("/events", "/venues")
# Seconds after which the server accepts requests without waiting for the rest of its warm-up.
MAX_WARM_UP: Final = 5.0


@dataclass(frozen=True, slots=True)
class Mount:
    """A path prefix of an API. Links use `canonical_prefix`."""

    prefix: str
    namespace: str
    interface: Interface
    canonical_prefix: str


@dataclass(frozen=True, slots=True)
class HttpConfig:
    """The HTTP configuration: mounts, headers, caching, maps."""

    mounts: Sequence[Mount]
    roots: Mapping[str, Mapping[str, Interface]]  # the namespaces below each REST root, such as /api
    rest_root: str  # the REST root of existing clients, such as /wp-json; empty without an alias
    headers: HeaderPolicy
    schema_version: str  # the schema version that the database must have
    map_settings: MapSettings
    cache_bytes: int = 64 * 1024 * 1024


@dataclass(slots=True)
class InboundRequest:
    """A request with its send function and context."""

    request: Request
    send: Send
    watcher: DisconnectWatcher
    request_id: str
    host: str = ""  # the validated Host header
    context: Context | None = None  # None: a system path
    started_at: float = field(default_factory=time.perf_counter)

    @property
    def language(self) -> str:
        """Return the language of error messages."""
        if self.context is not None:
            return self.context.error_language
        headers = self.request.headers
        return language.choose_language(self.request.scope["query_string"], headers.get("accept-language", ""))


class Application:
    """The ASGI application. `open_state` is called once per process, when the server starts."""

    def __init__(
        self, config: HttpConfig, open_state: OpenState, telemetry: Telemetry, *, warms_up: bool = False
    ) -> None:
        self._config = config
        self._warms_up = warms_up
        self._open_state = open_state
        self._telemetry = telemetry
        self._opened_state: AppState | None = None
        self._cache = ResponseCache(config.cache_bytes, config.headers.stale_seconds)
        self._background: set[asyncio.Task[None]] = set()

    @property
    def _state(self) -> AppState:
        if self._opened_state is None:
            raise AssertionError("a request before the start")
        return self._opened_state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif scope["type"] == "http":
            with self._telemetry.request_span(scope, self._state.trusted_proxies):
                await self._respond(scope, DisconnectWatcher(receive), send)

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        self._opened_state = await self._open_state()
        replica = self._state.sources.replica
        samples = sample_pool(self._state.database, replica)
        watching = [asyncio.create_task(work) for work in (self._state.worker_watch.run(), samples)]
        if replica is not None:
            watching.append(asyncio.create_task(replica.run()))
        if self._warms_up:
            await self._warm_up()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        for task in watching:
            task.cancel()
        if self._background:
            await asyncio.wait(self._background, timeout=5)
        await self._state.database.close()
        if replica is not None:
            await replica.database.close()
        self._telemetry.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _warm_up(self) -> None:
        """Do what would make the first requests slow: open connections, compile templates, fill caches.

        Nobody gets the responses, and they are not counted. Without a database the server starts all the same. The
        templates of the console are compiled when they are used: there are many of them, for few people.
        """
        rendering.load_templates()
        try:
            async with asyncio.timeout(MAX_WARM_UP):
                if (replica := self._state.sources.replica) is not None:
                    await replica.read_positions()
                hosts = await self._sample_hosts()
                await asyncio.gather(*[self._state.sources.current_revision(host) for host in hosts])
                paths = [*WARM_UP_PAGES, *[self._config.mounts[0].prefix + path for path in WARM_UP_LISTS]]
                await asyncio.gather(*[self._render_unseen(host, path) for host in hosts for path in paths])
        except (ApiError, TimeoutError) as error:
            log.warning("the server starts before its warm-up is complete: %r", error)

    async def _sample_hosts(self) -> list[str]:
        """Return a host of each database; any other serves as well, unless there are several sites."""
        try:
            return await self._state.database.sample_hosts() or ["localhost"]
        except ApiError:
            return ["localhost"]

    async def _render_unseen(self, host: str, path: str) -> None:
        scope = {
            "type": "http",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "query_string": b"",
            "headers": [(b"host", host.encode())],
        }
        context = find_context(self._config, self._state, Request(scope), host)
        if context is not None:
            await _run_handler(context)

    async def _respond(self, scope: Scope, watcher: DisconnectWatcher, send: Send) -> None:
        request = Request(scope, watcher.receive)
        offered_id = request.headers.get("x-request-id", "")
        request_id = offered_id if REQUEST_ID.fullmatch(offered_id) else token_hex(16)
        inbound = InboundRequest(request, send, watcher, request_id)
        key = cached = error = None
        age = 0.0
        try:
            inbound.host = read_host(request)
            rewrite_rest_route(scope, self._config.rest_root)
            inbound.context = find_context(self._config, self._state, request, inbound.host)
            key = self._cache.make_key(inbound.context)
            if inbound.context is not None and key is not None:
                cached, age = await self._cache.find(inbound.context, key)
        except ApiError as refusal:
            error = refusal
        try:
            if inbound.context is not None and cached is not None:
                policy = self._config.headers
                sending = send_cached(inbound.context, send, cached, policy, request_id=request_id, age=age)
                status = await (watcher.run(request, sending) if len(cached.body) > CHUNK_BYTES else sending)
                self._log(inbound, status, cached.route, cache="stale" if age else "hit")
            else:
                with self._cache.rendering(key) as store:
                    await watcher.run(request, self._render(inbound, error, key, store))
        except ClientDisconnected:
            self._log(inbound, CLIENT_CLOSED_REQUEST, _route(inbound.context))

    async def _render(
        self, inbound: InboundRequest, error: ApiError | None, key: bytes | None, store: StoreResponse | None
    ) -> None:
        """Handle a request, cache the response if that is allowed, and send it. `error` becomes the response."""
        context, cached = inbound.context, None
        response = await self._handle(inbound, error, key)
        if isinstance(response, LastKnown):
            if store is not None:
                store(None)
            await self._send_last_known(inbound, response)
            return
        _add_headers(self._config.headers, inbound, response)
        await inbound.watcher.discard_body(inbound.request)
        if context is not None and store is not None:
            cached = make_cached_response(context, response)
            if key is not None and cached is None and response.status_code < 500:
                self._cache.forget(key)
            store(cached)
        if cached is not None and isinstance(context, PageRequest):
            # Pages are sent compressed to the first visitor already.
            policy, request_id, age = self._config.headers, inbound.request_id, context.outage_age
            await send_cached(context, inbound.send, cached, policy, request_id=request_id, age=age)
        else:
            await _send(inbound, response)
        self._log(inbound, response.status_code, _route(context), user=context.actor.user_id if context else None)
        if context is not None and context.actor.user_id is not None:
            self._run_in_background(record_use(context))

    async def _send_last_known(self, inbound: InboundRequest, last: LastKnown) -> None:
        if inbound.context is None or last.response is None:
            raise AssertionError("no response to send")
        policy, request_id, age = self._config.headers, inbound.request_id, last.age
        is_outdated = age > 0  # else another request has rendered it in the meantime
        status = await send_cached(
            inbound.context,
            inbound.send,
            last.response,
            policy,
            request_id=request_id,
            age=age,
            is_outdated=is_outdated,
        )
        self._log(inbound, status, last.response.route, cache="outdated" if is_outdated else "hit")

    async def _handle(
        self, inbound: InboundRequest, error: ApiError | None, key: bytes | None
    ) -> Response | LastKnown:
        """Return the response to a request, also to one that fails. This is the error boundary."""
        request = inbound.request
        try:
            return await self._dispatch(inbound, error, key)
        except ApiError as api_error:
            if api_error.status in (503, 507):
                self._telemetry.problem(api_error)
            return make_error_response(inbound, api_error)
        except Exception as exception:
            path = _log_path(inbound)
            self._telemetry.exception(exception, request_id=inbound.request_id, method=request.method, path=path)
            return make_error_response(inbound, errors.internal_error(inbound.request_id))

    async def _dispatch(
        self, inbound: InboundRequest, error: ApiError | None, key: bytes | None
    ) -> Response | LastKnown:
        """Return the response of the handler, or the last known one if the handler got no database connection."""
        try:
            if error is not None:
                raise error
            if inbound.context is not None:
                return await _run_handler(inbound.context)
            return await self._handle_system_path(inbound.request, strip_port(inbound.host))
        except ApiError as refusal:
            if inbound.context is None or key is None or refusal.cause not in STARVED:
                raise
            last = await self._cache.find_last_known(inbound.context, key, utc_now())
            self._telemetry.starved(last.outcome)
            if last.response is None:
                raise
            return last

    async def _handle_system_path(self, request: Request, host: str) -> Response:
        path = request.scope["path"]
        if path == "/healthz":
            return health.show_health()
        if path == "/readyz":
            return await health.show_readiness(
                self._state.worker_watch, self._config.schema_version, self._state.sources
            )
        if path == "/openapi.json":
            return redirect_to_document(request, self._config.mounts[0].prefix)
        if path == "/docs" or path.startswith("/docs/"):
            home, extension = self._config.mounts[:2]
            return await reference.show(self._state, request, host, home.prefix, extension.prefix)
        if path.startswith(f"{MEDIA_PREFIX}/"):
            return await media_files.serve_file(self._state, request, host)
        raise errors.no_route()

    def _run_in_background(self, work: Awaitable[None]) -> None:
        task = asyncio.create_task(self._log_failures(work))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _log_failures(self, work: Awaitable[None]) -> None:
        """Await work after the response and log unexpected errors; a busy database is expected."""
        try:
            await work
        except ApiError:
            return
        except Exception as error:
            self._telemetry.exception(error)

    def _log(self, inbound: InboundRequest, status: int, route: str, **more: Any) -> None:
        request = inbound.request
        self._telemetry.record(
            request.method,
            route,
            status,
            time.perf_counter() - inbound.started_at,
            path=_log_path(inbound)[:500],
            request_id=inbound.request_id,
            host=request.headers.get("host", "")[:255],
            **more,
        )


def find_context(config: HttpConfig, state: AppState, request: Request, host: str) -> Context | None:
    """Return the context of an API or page request; None for a system path."""
    path: str = request.scope["path"]
    for mount in config.mounts:
        if _is_below(path, mount.prefix):
            return _make_api_request(state, request, host, mount)
    for root, namespaces in config.roots.items():
        if _is_below(path, root):
            mount = Mount(root, "", ROOT, config.mounts[0].prefix)
            return replace(_make_api_request(state, request, host, mount), namespaces=namespaces)
    if path in SYSTEM_PATHS or path.startswith(("/docs/", f"{MEDIA_PREFIX}/")):
        return None
    if _is_below(path, CONSOLE):
        return _make_console_request(config, state, request, host)
    page_request = PageRequest(
        request=request,
        state=state,
        authority=host,
        host=strip_port(host),
        now=utc_now(),
        canonical_prefix=config.mounts[0].prefix,
        map_settings=config.map_settings,
        legacy_prefix=config.rest_root and f"{config.rest_root}{LEGACY_NAMESPACE}",
        path=path,
    )
    routes.match_route(page_request)
    return page_request


def _make_console_request(config: HttpConfig, state: AppState, request: Request, host: str) -> ConsoleRequest:
    console_request = ConsoleRequest(
        request=request,
        state=state,
        authority=host,
        host=strip_port(host),
        now=utc_now(),
        canonical_prefix=config.mounts[0].prefix,
        extension_prefix=config.mounts[1].prefix,
        map_settings=config.map_settings,
        path=request.scope["path"],
    )
    match_console_route(console_request)
    return console_request


def _is_below(path: str, prefix: str) -> bool:
    size = len(prefix)
    return path[:size].lower() == prefix.lower() and path[size:][:1] in ("", "/")


def _make_api_request(state: AppState, request: Request, host: str, mount: Mount) -> ApiRequest:
    path: str = request.scope["path"][len(mount.prefix) :].removesuffix("/")
    route, path_params = mount.interface.find(path) or (None, {})
    return ApiRequest(
        request=request,
        state=state,
        authority=host,
        host=strip_port(host),
        now=utc_now(),
        canonical_prefix=mount.canonical_prefix,
        path=path,
        route=route,
        path_params=path_params,
        interface=mount.interface,
        prefix=mount.prefix,
        namespace=mount.namespace,
    )


async def _run_handler(context: Context) -> Response:
    """Return the response of the handler; once more if the replica failed that the handler has read from."""
    handler = HANDLERS[type(context)]
    try:
        return await handler(context)
    except ApiError as error:
        if error.status < 500 or not context.retry():
            raise
    return await handler(context)


def make_error_response(inbound: InboundRequest, error: ApiError) -> Response:
    """Return the response to an error: a page for browsers if the server failed, else JSON."""
    is_page = isinstance(inbound.context, PageRequest | ConsoleRequest) or inbound.request.scope["path"].startswith(
        "/docs"
    )
    if error.status >= 500 and is_page and "text/html" in inbound.request.headers.get("accept", ""):
        return make_error_page(error, inbound.language)
    # A server that failed says so in its status, for proxies and monitoring.
    if not isinstance(inbound.context, ApiRequest) or error.status >= 500:
        return responses.error_response(error, inbound.language)
    inbound.context.site_revision = None  # An error is never cached, even if its status is 200 in an envelope.
    envelope = requests.wants_envelope(inbound.request)
    return responses.error_response(error, inbound.language, envelope=envelope)


async def _send(inbound: InboundRequest, response: Response) -> None:
    request = inbound.request
    if isinstance(response, FileResponse):
        await response(request.scope, request.receive, inbound.send)
        return
    # Content-Length stays that of GET; only the body is dropped.
    body = b"" if request.method == "HEAD" else bytes(response.body)
    await send_response(inbound.send, response.status_code, response.raw_headers, body)


def _log_path(inbound: InboundRequest) -> str:
    path: str = inbound.context.log_path if inbound.context else inbound.request.scope["path"]
    return path


def _route(context: Context | None) -> str:
    return context.route_pattern if context else "other"


def create_server_application() -> Application:
    """Create the application of a server process, which is warm before it accepts requests."""
    return create_application(warms_up=True)


def create_application(tracer: Tracer | None = None, *, warms_up: bool = False) -> Application:
    """Create the application; without a tracer, the one of the settings is opened."""
    settings = read_settings()
    tracer = tracer or open_tracer(settings)
    mounts = _build_mounts(settings)
    http_config = HttpConfig(
        mounts=mounts,
        roots=_group_by_root(mounts),
        rest_root=_find_rest_root(settings),
        headers=HeaderPolicy(
            origins=settings.cors_origins,
            shared_cache_seconds=settings.shared_cache_seconds,
            stale_seconds=settings.stale_if_error_seconds,
            sends_tags=bool(settings.purge_urls),
        ),
        schema_version=newest_revision(),
        map_settings=MapSettings(settings.tiles_url, settings.tiles_attribution),
        cache_bytes=settings.cache_mb * 1024 * 1024,
    )

    async def open_state() -> AppState:
        database = await open_database(settings, tracer)
        sources = ReadSources(database, await open_replica(settings, database))
        return AppState(
            database,
            sources,
            TouchedTags(sources.fetch_changes),
            health.WorkerWatch(database),
            RepresentationCache(settings.cache_mb * 1024 * 1024 // 4) if settings.cache_mb else None,
            base_url=settings.base_url,
            max_body_bytes=settings.max_body_bytes,
            trusted_proxies=tuple(read_network(text) for text in settings.trusted_proxies),
            origins=settings.cors_origins,
            library=open_library(settings),
            media_url=settings.media_url,
            max_daily_records=settings.max_records_per_day,
            trash_days=settings.trash_days,
            sends_email=bool(settings.smtp_url.get_secret_value()),
        )

    return Application(http_config, open_state, Telemetry(tracer), warms_up=warms_up)


def _build_mounts(settings: Settings) -> tuple[Mount, ...]:
    """Return the mounts of the API, of the extensions, and of the aliases for existing clients with core routes."""
    canonical_prefix = f"{settings.api_root}/{INTERFACE.namespace}"
    extension_prefix = f"{settings.api_root}/{EXTENSION.namespace}"
    aliases = [Mount(path, "/".join(path.split("/")[-3:]), INTERFACE, path) for path in settings.api_aliases]
    core_routes = [
        Mount(f"{path.removesuffix(LEGACY_NAMESPACE)}/{CORE.namespace}", CORE.namespace, CORE, path)
        for path in settings.api_aliases
        if path.endswith(LEGACY_NAMESPACE)
    ]
    return (
        Mount(canonical_prefix, INTERFACE.namespace, INTERFACE, canonical_prefix),
        Mount(extension_prefix, EXTENSION.namespace, EXTENSION, canonical_prefix),
        *aliases,
        *core_routes,
    )


def _find_rest_root(settings: Settings) -> str:
    """Return the REST root of the first alias that existing clients know, or an empty string."""
    aliases = [path for path in settings.api_aliases if path.endswith(LEGACY_NAMESPACE)]
    return aliases[0].removesuffix(LEGACY_NAMESPACE) if aliases else ""


def _group_by_root(mounts: Sequence[Mount]) -> dict[str, dict[str, Interface]]:
    """Return the interfaces by namespace for each REST root; the root of the host belongs to the pages."""
    roots: dict[str, dict[str, Interface]] = {}
    for mount in mounts:
        root = mount.prefix.removesuffix(f"/{mount.namespace}").lower()
        if root and root != mount.prefix.lower():
            roots.setdefault(root, {})[mount.namespace] = mount.interface
    return roots


def _add_headers(policy: HeaderPolicy, inbound: InboundRequest, response: Response) -> None:
    """Add the headers that every response of this kind of request has."""
    context = inbound.context
    headers = policy.make_common(response, context, inbound.request_id)
    if isinstance(context, ApiRequest):
        headers |= make_headers(context, response, policy.vary)
    elif isinstance(context, PageRequest):
        headers["Vary"] = policy.vary
    # Scripts of other origins have no access to the console.
    if isinstance(context, ApiRequest | PageRequest):
        headers |= cors.make_headers(inbound.request, policy.origins)
    set_headers(response, headers)

"""The ASGI application: mounts, dispatch, error boundary, access log, warm-up. One application per process."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any, Final, Protocol

from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse

from kalends import routes
from kalends.adapters.tracing import Tracer
from kalends.api.api_handler import handle_api_request, redirect_to_document
from kalends.api.description import reference
from kalends.api.wordpress.wordpress_routes import CORE
from kalends.bootstrap import open_database, open_library, open_page_reader, open_replica, open_tracer
from kalends.calendar.access.caching import EventFragments
from kalends.console.console_rendering import serve_console
from kalends.console.console_request import PREFIX as CONSOLE, ConsoleRequest
from kalends.core import errors, messages
from kalends.core.egress import read_allowed_network
from kalends.core.errors import ApiError
from kalends.core.limits import read_network
from kalends.core.times import utc_now
from kalends.http import bodies, health, responses
from kalends.http.accept import STREAM_TYPE, refuse_stream
from kalends.http.auth import record_use
from kalends.http.bodies import (
    SCRIPT,
    ClientDisconnected,
    DisconnectWatcher,
    Receive,
    Send,
    read_host,
    rewrite_rest_route,
    strip_port,
)
from kalends.http.cache import (
    STARVED,
    CachedResponse,
    Head,
    LastKnown,
    RepeatedHit,
    ResponseCache,
    TouchedTags,
    make_cached_response,
    read_head,
)
from kalends.http.request import MEDIA_PREFIX, ApiRequest, AppState, ReadSources, RequestContext
from kalends.http.responses import (
    CHUNK_BYTES,
    HeaderPolicy,
    make_error_page,
    prepare_cached,
    send_prepared,
    send_response,
    set_headers,
)
from kalends.http.router import Interface, Mount
from kalends.http.telemetry import Telemetry, request_span, sample_pool
from kalends.media import pages as media_pages
from kalends.proposals.api.agents import AGENT_PATH, AgentRequest, AgentServer, has_agent_sdk
from kalends.routes import EXTENSION, INTERFACE, ROOT
from kalends.settings import Settings, read_settings
from kalends.store.migrations import newest_revision
from kalends.website.context import MapSettings, PageRequest, load_templates
from kalends.website.page_server import match_route, serve_page

Scope = MutableMapping[str, Any]
Context = RequestContext[Any]
StoreResponse = Callable[[CachedResponse | None], None]
OpenState = Callable[[], Awaitable[AppState]]


class StreamServer(Protocol):
    """Serves live lists instead of pages and records."""

    def choose_handler(self, context: Context | None, request: Request) -> None:
        """Replace the context's handler if the client prefers a stream; raise 404 for what is not served here."""
        ...

    async def run(self, state: AppState) -> None:
        """Keep the lists up to date until the task is cancelled."""
        ...


log = logging.getLogger(__name__)

REQUEST_ID: Final = re.compile(rb"[\w.:-]{1,100}")
# Status in the access log if the client disconnects before the response.
CLIENT_CLOSED_REQUEST: Final = 499
# Server paths that belong to no site.
SYSTEM_PATHS: Final = ("/healthz", "/readyz", "/docs", "/openapi.json")
# The Events Calendar namespace, below the WordPress REST root.
LEGACY_NAMESPACE: Final = "/tribe/events/v1"
# Warm-up requests run concurrently, each on a separate connection. The list paths are relative to the API prefix.
WARM_UP_PAGES: Final = ("/events/month/", "/events/list/")
WARM_UP_LISTS: Final = ("/events", "/venues")
# Seconds after which the server accepts requests even if the warm-up is still running.
MAX_WARM_UP: Final = 5.0


@dataclass(frozen=True, slots=True)
class HttpConfig:
    mounts: Sequence[Mount]
    rest_root: str  # the REST root that existing clients use, such as /wp-json; empty without an alias
    headers: HeaderPolicy
    schema_version: str  # this code's newest migration, which the database's schema must support
    map_settings: MapSettings
    cache_bytes: int = 64 * 1024 * 1024
    agents: AgentServer | None = None  # None if the SDK for assistants is not installed


@dataclass(slots=True)
class InboundRequest:
    request: Request
    send: Send
    watcher: DisconnectWatcher
    request_id: str
    host: str = ""  # the validated Host header
    context: Context | None = None  # None for a system path
    started_at: float = field(default_factory=time.perf_counter)
    is_logged: bool = False

    @property
    def language(self) -> str:
        if self.context is not None:
            return self.context.error_language
        headers = self.request.headers
        return messages.choose_language(self.request.scope["query_string"], headers.get("accept-language", ""))


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
        self._repeats_hits = False
        self._streams: StreamServer | None = None
        self._api_prefixes = (f"{SCRIPT}/", *[mount.prefix.lower() for mount in config.mounts])

    def serve_streams(self, streams: StreamServer) -> None:
        """Serve only live lists, and health checks; called before the server starts."""
        self._streams = streams

    @property
    def _state(self) -> AppState:
        if self._opened_state is None:
            raise AssertionError("a request before the start")
        return self._opened_state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif scope["type"] == "http":
            is_repeatable = self._repeats_hits and scope["method"] == "GET"
            head = read_head(scope, self._api_prefixes) if is_repeatable else None
            hit = self._cache.find_hit(head) if head is not None else None
            if head is not None and hit is not None and await self._repeat(scope, head, hit, send):
                return
            tracer = self._telemetry.tracer
            with request_span(tracer, scope, self._state.trusted_proxies) if tracer is not None else nullcontext():
                await self._respond(scope, head, DisconnectWatcher(receive), send)

    async def _repeat(self, scope: Scope, head: Head, hit: RepeatedHit, send: Send) -> bool:
        """Send the response to an identical earlier request again if it is still valid; return whether it is."""
        started_at, now = time.perf_counter(), utc_now()
        if not await self._cache.is_valid(head, hit, self._state, now):
            return False
        offered_id = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
        request_id = offered_id.decode("latin-1") if REQUEST_ID.fullmatch(offered_id) else token_hex(16)
        status = hit.prepared.status
        try:
            await send_prepared(send, hit.prepared, self._config.headers, now, request_id=request_id)
        except ClientDisconnected:
            status = CLIENT_CLOSED_REQUEST
        seconds, fields = time.perf_counter() - started_at, {**hit.log_fields, "request_id": request_id}
        self._telemetry.record("GET", hit.route, status, seconds, cache="hit", **fields)
        return True

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        self._opened_state = await self._open_state()
        replica = self._state.sources.replica
        # Tracing and choosing a replica require the whole request.
        self._repeats_hits = self._telemetry.tracer is None and replica is None and self._streams is None
        samples = sample_pool(self._state.database, replica)
        watching = [asyncio.create_task(work) for work in (self._state.worker_watch.run(), samples)]
        if replica is not None:
            watching.append(asyncio.create_task(replica.run()))
        if self._config.agents is not None:
            watching.append(asyncio.create_task(self._config.agents.run()))
        if self._streams is not None:
            watching.append(asyncio.create_task(self._streams.run(self._state)))
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
        """Do what would slow down the first requests: open connections, compile templates, fill caches.

        The responses are discarded and not counted. The server starts even without a database. Console templates are
        compiled on first use, because there are many of them and few people need them.
        """
        load_templates()
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
        """Return a host for each database. With a single site, any host works."""
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
        await self.render(scope)

    async def render(self, scope: Scope) -> tuple[Context, Response]:
        """Handle a request that has no connection, without the cache and the log; raise its ApiError."""
        request = Request(scope)
        context = find_context(self._config, self._state, request, read_host(request))
        if context is None:
            raise errors.no_route()
        return context, await _run_handler(context)

    async def _respond(self, scope: Scope, head: Head | None, watcher: DisconnectWatcher, send: Send) -> None:
        request = Request(scope, watcher.receive)
        offered_id = request.headers.get("x-request-id", "").encode("latin-1")
        request_id = offered_id.decode("latin-1") if REQUEST_ID.fullmatch(offered_id) else token_hex(16)
        inbound = InboundRequest(request, send, watcher, request_id)
        key = cached = error = None
        age = 0.0
        try:
            inbound.host = read_host(request)
            rewrite_rest_route(scope, self._config.rest_root)
            inbound.context = find_context(self._config, self._state, request, inbound.host)
            if self._streams is not None:
                self._streams.choose_handler(inbound.context, request)
            elif STREAM_TYPE in request.headers.get("accept", "").lower():
                refuse_stream(inbound.context)
            key = self._cache.make_key(inbound.context)
            if inbound.context is not None and key is not None:
                cached, age = await self._cache.find(inbound.context, key)
        except ApiError as refusal:
            error = refusal
        try:
            if inbound.context is not None and cached is not None:
                prepared = await prepare_cached(inbound.context, cached, self._config.headers.origins)
                if head is not None and key is not None and not age and len(prepared.body) <= CHUNK_BYTES:
                    hit = RepeatedHit(key, cached.route, prepared, inbound.context.host, _log_fields(inbound))
                    self._cache.remember_head(head, cached, hit)
                policy, now = self._config.headers, inbound.context.now
                sending = send_prepared(send, prepared, policy, now, request_id=inbound.request_id, age=age)
                await (watcher.run(request, sending) if len(prepared.body) > CHUNK_BYTES else sending)
                self._log(inbound, prepared.status, cached.route, cache="stale" if age else "hit")
            else:
                with self._cache.rendering(key) as store:
                    await watcher.run(request, self._render(inbound, error, key, store))
        except ClientDisconnected:
            if not inbound.is_logged:
                self._log(inbound, CLIENT_CLOSED_REQUEST)

    async def _render(
        self, inbound: InboundRequest, error: ApiError | None, key: bytes | None, store: StoreResponse | None
    ) -> None:
        """Handle a request, cache the response if allowed, and send it. If there is an `error`, respond with it."""
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
        if context is not None and cached is not None and context.shows_pages:
            # Even the first visitor gets a compressed page.
            prepared = await prepare_cached(context, cached, self._config.headers.origins)
            policy, age = self._config.headers, context.outage_age
            await send_prepared(inbound.send, prepared, policy, context.now, request_id=inbound.request_id, age=age)
        elif isinstance(response, StreamingResponse):
            # A stream ends when its client leaves, so what counts is the time until it begins.
            self._log(inbound, response.status_code)
            await response(inbound.request.scope, inbound.request.receive, inbound.send)
            return
        else:
            await _send(inbound, response)
        self._log(inbound, response.status_code, user=context.actor.user_id if context else None)
        if context is not None and context.actor.user_id is not None:
            task = asyncio.create_task(self._log_failures(record_use(context)))
            self._background.add(task)
            task.add_done_callback(self._background.discard)

    async def _send_last_known(self, inbound: InboundRequest, last: LastKnown) -> None:
        if inbound.context is None or last.response is None:
            raise AssertionError("no response to send")
        is_outdated = last.age > 0  # if 0, another request has just rendered it
        policy, now = self._config.headers, inbound.context.now
        prepared = await prepare_cached(inbound.context, last.response, policy.origins, is_outdated=is_outdated)
        await send_prepared(inbound.send, prepared, policy, now, request_id=inbound.request_id, age=last.age)
        self._log(inbound, prepared.status, last.response.route, cache="outdated" if is_outdated else "hit")

    async def _handle(
        self, inbound: InboundRequest, error: ApiError | None, key: bytes | None
    ) -> Response | LastKnown:
        """Return the response to a request, even if handling it fails. This is the error boundary."""
        request = inbound.request
        try:
            return await self._dispatch(inbound, error, key)
        except ApiError as api_error:
            if api_error.status in (503, 507):
                self._telemetry.problem(api_error)
            return make_error_response(inbound, api_error)
        except Exception as exception:
            self._telemetry.exception(exception, method=request.method, **_log_fields(inbound))
            return make_error_response(inbound, errors.internal_error(inbound.request_id))

    async def _dispatch(
        self, inbound: InboundRequest, error: ApiError | None, key: bytes | None
    ) -> Response | LastKnown:
        """Return the handler's response, or the last known response if no database connection was available."""
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
            return await reference.show(self._state, request, host, tuple(self._config.mounts[:2]))
        if path.startswith(f"{MEDIA_PREFIX}/"):
            return await media_pages.serve_file(self._state, request, host)
        raise errors.no_route()

    async def _log_failures(self, work: Awaitable[None]) -> None:
        """Await background work and log unexpected errors.

        An ApiError is expected, for example if the database is busy.
        """
        try:
            await work
        except ApiError:
            return
        except Exception as error:
            self._telemetry.exception(error)

    def _log(self, inbound: InboundRequest, status: int, route: str = "", **more: Any) -> None:
        inbound.is_logged = True
        route = route or (inbound.context.route_pattern if inbound.context else "other")
        seconds = time.perf_counter() - inbound.started_at
        self._telemetry.record(inbound.request.method, route, status, seconds, **_log_fields(inbound), **more)


def find_context(config: HttpConfig, state: AppState, request: Request, host: str) -> Context | None:
    path: str = request.scope["path"]
    basics: dict[str, Any] = {
        "request": request,
        "state": state,
        "authority": host,
        "host": strip_port(host),
        "now": utc_now(),
    }
    for mount in config.mounts:
        size = len(mount.prefix)
        if path[:size].lower() == mount.prefix.lower() and path[size:][:1] in ("", "/"):
            return _make_api_request(basics, mount, path[len(mount.prefix) :].removesuffix("/"))
    if path in SYSTEM_PATHS or path.startswith(("/docs/", f"{MEDIA_PREFIX}/")):
        return None
    basics |= {"path": path, "canonical_prefix": config.mounts[0].prefix}
    if path == AGENT_PATH and config.agents is not None:
        return AgentRequest(handler=config.agents.serve, **basics)
    basics |= {"map_settings": config.map_settings}
    if path[: len(CONSOLE)].lower() == CONSOLE and path[len(CONSOLE) :][:1] in ("", "/"):
        route, path_params = routes.CONSOLE_ROUTER.find(path.removeprefix(CONSOLE)) or (None, {})
        return ConsoleRequest(
            handler=serve_console,
            extension_prefix=config.mounts[1].prefix,
            route=route,
            path_params=path_params,
            **basics,
        )
    legacy_prefix = config.rest_root and f"{config.rest_root}{LEGACY_NAMESPACE}"
    page_request = PageRequest(handler=serve_page, routes=routes.PAGES, legacy_prefix=legacy_prefix, **basics)
    match_route(page_request)
    return page_request


def _make_api_request(basics: dict[str, Any], mount: Mount, path: str) -> ApiRequest:
    route, path_params = mount.interface.router.find(path) or (None, {})
    return ApiRequest(
        handler=handle_api_request,
        canonical_prefix=mount.canonical_prefix,
        path=path,
        route=route,
        path_params=path_params,
        interface=mount.interface,
        prefix=mount.prefix,
        namespace=mount.namespace,
        namespaces=mount.namespaces,
        **basics,
    )


async def _run_handler(context: Context) -> Response:
    """Return the handler's response; retry once if the replica that the handler used has failed."""
    if (handler := context.handler) is None:
        raise AssertionError("a request without a handler")
    try:
        return await handler(context)
    except ApiError as error:
        if error.status < 500 or not context.retry():
            raise
    return await handler(context)


def make_error_response(inbound: InboundRequest, error: ApiError) -> Response:
    """Return the response to an error: a page for browsers if the server failed, otherwise JSON."""
    context, is_docs = inbound.context, inbound.request.scope["path"].startswith("/docs")
    is_page = is_docs if context is None else context.shows_pages
    if error.status >= 500 and is_page and "text/html" in inbound.request.headers.get("accept", ""):
        return make_error_page(error, inbound.language)
    # Server errors are never wrapped in an envelope, so proxies and monitoring get the real status.
    if context is None or context.shows_pages or error.status >= 500:
        return responses.error_response(error, inbound.language)
    context.site_revision = None  # An error is never cached, even if its status is 200 in an envelope.
    envelope = bodies.wants_envelope(inbound.request) and not context.is_stream
    return responses.error_response(error, inbound.language, envelope=envelope)


async def _send(inbound: InboundRequest, response: Response) -> None:
    request = inbound.request
    if isinstance(response, FileResponse):
        await response(request.scope, request.receive, inbound.send)
        return
    # Content-Length is the same as for GET; only the body is dropped.
    body = b"" if request.method == "HEAD" else bytes(response.body)
    await send_response(inbound.send, response.status_code, response.raw_headers, body)


def _log_fields(inbound: InboundRequest) -> dict[str, Any]:
    path: str = inbound.context.log_path if inbound.context else inbound.request.scope["path"]
    host = inbound.request.headers.get("host", "")
    return {"path": path[:500], "request_id": inbound.request_id, "host": host[:255]}


def create_server_application() -> Application:
    """Create a server process's application, which warms up before it accepts requests."""
    return create_application(warms_up=True)


def create_application(tracer: Tracer | None = None, *, warms_up: bool = False) -> Application:
    """Create the application. If no tracer is given, open the one configured in the settings."""
    settings = read_settings()
    tracer = tracer or open_tracer(settings)
    mounts = _build_mounts(settings)
    http_config = HttpConfig(
        mounts=(*mounts, *_make_roots(mounts)),
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
        agents=AgentServer() if has_agent_sdk() else None,
    )

    async def open_state() -> AppState:
        database = await open_database(settings, tracer)
        sources = ReadSources(database, await open_replica(settings, database))
        touched_tags = TouchedTags(sources.fetch_changes)
        return AppState(
            database,
            sources,
            touched_tags,
            health.WorkerWatch(database),
            EventFragments(settings.cache_mb * 1024 * 1024 // 4, touched_tags.learn) if settings.cache_mb else None,
            batch_params=routes.BULK_PARAMS,
            base_url=settings.base_url,
            max_body_bytes=settings.max_body_bytes,
            trusted_proxies=tuple(read_network(text) for text in settings.trusted_proxies),
            allowed_networks=tuple(read_allowed_network(text) for text in settings.fetch_allowed_networks),
            origins=settings.cors_origins,
            stream_url=settings.stream_url,
            library=open_library(settings),
            page_reader=open_page_reader(settings),
            media_url=settings.media_url,
            max_daily_records=settings.max_records_per_day,
            trash_days=settings.trash_days,
            sends_email=bool(settings.smtp_url.get_secret_value()),
        )

    return Application(http_config, open_state, Telemetry(tracer), warms_up=warms_up)


def _build_mounts(settings: Settings) -> tuple[Mount, ...]:
    """Return the mounts for the API, extensions, aliases for existing clients, and WordPress's core routes."""
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
    """Return the REST root of the first WordPress alias, or an empty string."""
    aliases = [path for path in settings.api_aliases if path.endswith(LEGACY_NAMESPACE)]
    return aliases[0].removesuffix(LEGACY_NAMESPACE) if aliases else ""


def _make_roots(mounts: Sequence[Mount]) -> list[Mount]:
    """Return a mount for each REST root, such as /api; the host's root path belongs to the pages."""
    roots: dict[str, dict[str, Interface]] = {}
    for mount in mounts:
        root = mount.prefix.removesuffix(f"/{mount.namespace}").lower()
        if root and root != mount.prefix.lower():
            roots.setdefault(root, {})[mount.namespace] = mount.interface
    return [Mount(root, "", ROOT, mounts[0].prefix, namespaces) for root, namespaces in roots.items()]


def _add_headers(policy: HeaderPolicy, inbound: InboundRequest, response: Response) -> None:
    context = inbound.context
    headers = policy.make_common(response, context, inbound.request_id)
    if context is not None:
        headers |= context.make_headers(response, policy.vary)
        # Scripts from other origins have no access to the console.
        if context.access != "session":
            headers |= responses.make_headers(inbound.request, policy.origins)
    set_headers(response, headers)

"""Fetch user-supplied URLs over HTTP, hardened against SSRF.

For each hop, `Fetcher` resolves the name once, checks all of its IP addresses, and connects to one of them. A single
lookup rules out DNS rebinding. Redirects pass the same checks.
"""

import asyncio
import ssl
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from functools import cache
from importlib.util import find_spec
from ipaddress import ip_address
from typing import Any, BinaryIO, Final, Literal, NamedTuple

import httpcore

from kalends import __version__
from kalends.core import egress, errors
from kalends.core.egress import AllowedNetwork, IpAddress, Target
from kalends.core.errors import InvalidValue
from kalends.core.messages import gettext_noop as N_

if find_spec("sniffio") is None:
    # httpcore imports it several times per request. Without this entry, each failure would search all of sys.path.
    sys.modules.setdefault("sniffio", None)  # type: ignore[arg-type]

Resolve = Callable[[str, int], Awaitable[Sequence[IpAddress]]]
Fetch = Callable[[str, BinaryIO, int, Mapping[str, str]], Awaitable["FetchResponse"]]
REDIRECT_STATUSES: Final = (301, 302, 303, 307, 308)
MAX_REDIRECTS: Final = 3
FETCH_TIMEOUT: Final = 10.0
CONNECT_TIMEOUT: Final = 4.0
MAX_CONCURRENT: Final = 8
MAX_VALIDATOR_LENGTH: Final = 500
SESSION_CONNECTIONS: Final = 16
MAX_DISCARDED_BYTES: Final = 1024


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """The status, the headers with lowercase names, the number of bytes written, and the URL after redirects."""

    status: int
    headers: Mapping[str, str]
    size: int
    url: str = ""

    def validator(self, name: str) -> str:
        """Return a validator header's value for the next request; "" if it cannot be sent back."""
        value = self.headers.get(name, "")
        return value if len(value) <= MAX_VALIDATOR_LENGTH and value.isascii() and value.isprintable() else ""


async def resolve_host(host: str, port: int) -> Sequence[IpAddress]:
    rows = await asyncio.get_running_loop().run_in_executor(_resolver_threads(), _resolve_blocking, host, port)
    return [ip_address(str(row[4][0]).partition("%")[0]) for row in rows]


class ConnectionFailed(InvalidValue):
    """Raised if no complete response arrived, because the server is down or slow. Retrying may work."""


class TimedOut(ConnectionFailed):
    """Raised if the server did not send the whole response in time."""


class Fetcher:
    def __init__(
        self,
        allowed_networks: Sequence[AllowedNetwork] = (),
        *,
        resolve: Resolve = resolve_host,
        ports: Collection[int] = egress.DEFAULT_PORTS,
        seconds: float = FETCH_TIMEOUT,
        max_concurrent: int = MAX_CONCURRENT,
    ) -> None:
        self._allowed_networks = allowed_networks
        self._ports = frozenset(ports)
        self._resolve = resolve
        self.seconds = seconds
        self._semaphore = asyncio.Semaphore(max_concurrent)

    async def get(
        self, url: str, into: BinaryIO, *, limit: int, headers: Mapping[str, str] | None = None
    ) -> FetchResponse:
        """Fetch a URL within all limits, following redirects. Raise InvalidValue if fetching is not allowed or fails.

        The body is written only if the status is 200.
        """
        return await self._within_limits(self._follow, url, into, limit, headers or {})

    async def get_once(
        self, url: str, into: BinaryIO, *, limit: int, headers: Mapping[str, str] | None = None
    ) -> FetchResponse:
        """Fetch a URL within all limits, writing the body for any status. Return redirects without following them."""
        return await self._within_limits(self._fetch_once, url, into, limit, headers or {})

    @asynccontextmanager
    async def open_session(self, url: str) -> "AsyncIterator[Session]":
        """Yield a session that posts to this URL only: the name is resolved once, and connections are kept alive.

        A URL that must not be contacted yields a session whose posts all fail. Plain http and other ports than 443
        need an allowed network.
        """
        target, ips = await self._find_post_target(url)
        async with httpcore.AsyncConnectionPool(
            ssl_context=_tls() if target is not None and target.scheme == "https" else None,
            max_connections=SESSION_CONNECTIONS,
            network_backend=PinnedBackend(ips),
        ) as pool:
            yield Session(pool, target, self.seconds, self._semaphore)

    async def _find_post_target(self, url: str) -> tuple[Target | None, Sequence[IpAddress]]:
        try:
            target = egress.read_target(url)
            ports = self._ports & {egress.PORT_BY_SCHEME["https"]} if target.scheme == "https" else ()
            async with asyncio.timeout(CONNECT_TIMEOUT):
                return target, await self._find_ips(target, ports)
        except (InvalidValue, TimeoutError):
            return None, ()

    async def _within_limits(
        self, fetch: Fetch, url: str, into: BinaryIO, limit: int, headers: Mapping[str, str]
    ) -> FetchResponse:
        try:
            async with asyncio.timeout(self.seconds):
                await self._semaphore.acquire()
        except TimeoutError:
            raise errors.overloaded() from None  # The local queue is full; the remote server is not at fault.
        try:
            async with asyncio.timeout(self.seconds):
                return await fetch(url, into, limit, headers)
        except TimeoutError:
            raise TimedOut("the remote server timed out after {seconds} s.", seconds=round(self.seconds)) from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, ConnectionError) as error:
            raise connection_failed() from error
        except ssl.SSLError as error:
            raise connection_failed() from error
        finally:
            self._semaphore.release()

    async def _fetch_once(self, url: str, into: BinaryIO, limit: int, headers: Mapping[str, str]) -> FetchResponse:
        into.seek(0)
        into.truncate()
        return await self._request(egress.read_target(url), into, limit, headers, any_status=True)

    async def _follow(self, url: str, into: BinaryIO, limit: int, headers: Mapping[str, str]) -> FetchResponse:
        for _ in range(MAX_REDIRECTS + 1):
            target = egress.read_target(url)
            into.seek(0)
            into.truncate()
            response = await self._request(target, into, limit, headers)
            if response.status not in REDIRECT_STATUSES or "location" not in response.headers:
                return replace(response, url=url)
            url = egress.read_redirect(target, response.headers["location"])
        raise InvalidValue("too many redirects (maximum {maximum}).", maximum=MAX_REDIRECTS)

    async def _request(
        self, target: Target, into: BinaryIO, limit: int, headers: Mapping[str, str], *, any_status: bool = False
    ) -> FetchResponse:
        ips = await self._find_ips(target, self._ports)
        request_headers = {
            "Host": target.authority,
            "User-Agent": f"Kalends/{__version__}",
            "Accept": "*/*",
            "Accept-Encoding": "identity",  # Uncompressed responses cannot be decompression bombs.
            "Connection": "close",
            **headers,
        }
        url = httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
        async with (
            httpcore.AsyncConnectionPool(
                ssl_context=_tls() if target.scheme == "https" else None, network_backend=PinnedBackend(ips)
            ) as pool,
            pool.stream("GET", url, headers=list(request_headers.items())) as response,
        ):
            response_headers = _headers(response.headers)
            if response.status != 200 and not any_status:
                return FetchResponse(response.status, response_headers, 0)
            length = response_headers.get("content-length", "")
            if length.isdecimal() and (len(length) > 15 or int(length) > limit):
                raise too_large(limit)
            size = 0
            async for chunk in response.aiter_stream():
                size += len(chunk)
                if size > limit:
                    raise too_large(limit)
                into.write(chunk)
            return FetchResponse(response.status, response_headers, size)

    async def _find_ips(self, target: Target, ports: Collection[int]) -> Sequence[IpAddress]:
        """Return a target's IP addresses. Raise InvalidValue unless a connection to each of them is allowed."""
        literal = target.ip_literal
        ips = [literal] if literal is not None else await self._resolve_target(target)
        if not ips or not all(egress.may_connect(ip, target.port, self._allowed_networks, ports) for ip in ips):
            raise unreachable()
        return ips

    async def _resolve_target(self, target: Target) -> Sequence[IpAddress]:
        try:
            return await self._resolve(target.host, target.port)
        except OSError as error:  # Unknown and unreachable hosts must be indistinguishable.
            raise unreachable() from error


PostError = Literal["", "unreachable", "timeout"]


class PostResult(NamedTuple):
    """A response's status and time. Without a response, the status is 0 and `error` says why."""

    status: int
    milliseconds: int
    retry_after: int | None = None  # seconds
    error: PostError = ""


class Session:
    """Posts to one URL. Redirects are not followed, and responses are discarded after their first kilobyte."""

    def __init__(
        self, pool: httpcore.AsyncConnectionPool, target: Target | None, seconds: float, semaphore: asyncio.Semaphore
    ) -> None:
        self._pool = pool
        self._seconds = seconds
        self._semaphore = semaphore
        if target is not None:
            self._url = httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
            self._headers = [("Host", target.authority), ("User-Agent", f"Kalends/{__version__}")]
        self._may_connect = target is not None

    async def post(self, headers: Mapping[str, str], body: bytes) -> PostResult:
        """Post a body. Failures are results: nothing is raised for what the other server does."""
        if not self._may_connect:
            return PostResult(0, 0, error="unreachable")
        async with self._semaphore:
            start = time.monotonic()
            status, retry_after = 0, None
            error: PostError = ""
            try:
                async with asyncio.timeout(self._seconds):
                    status, retry_after = await self._send(headers, body)
            except (TimeoutError, httpcore.TimeoutException):
                error = "timeout"
            except (httpcore.NetworkError, httpcore.ProtocolError, InvalidValue, OSError):
                error = "unreachable"
            return PostResult(status, round((time.monotonic() - start) * 1000), retry_after, error)

    async def _send(self, headers: Mapping[str, str], body: bytes) -> tuple[int, int | None]:
        """Return the status and the seconds of `Retry-After`. A connection with a longer response is closed."""
        sent = [*self._headers, ("Content-Length", str(len(body))), *headers.items()]
        async with self._pool.stream("POST", self._url, headers=sent, content=body) as response:
            size = 0
            async for chunk in response.aiter_stream():
                size += len(chunk)
                if size > MAX_DISCARDED_BYTES:
                    break
            received = _headers(response.headers)
            return response.status, read_retry_after(received.get("retry-after", ""), received.get("date", ""))


def read_retry_after(text: str, date: str) -> int | None:
    """Return the seconds of `Retry-After`, whose time counts from the response's `Date`; None if it is malformed."""
    if text.isascii() and text.isdecimal():
        return int(text[:9])
    try:
        return max(round((parsedate_to_datetime(text) - parsedate_to_datetime(date)).total_seconds()), 0)
    except (ValueError, TypeError):
        return None


class PinnedBackend(httpcore.AsyncNetworkBackend):
    """Connects to the checked IP addresses without resolving the host name again."""

    def __init__(self, ips: Sequence[IpAddress]) -> None:
        self._ips = [str(ip) for ip in ips]
        self._sockets: Any = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore defines the name
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failure: Exception = unreachable()
        for ip in self._ips[:3]:
            try:
                stream: httpcore.AsyncNetworkStream = await self._sockets.connect_tcp(ip, port, CONNECT_TIMEOUT)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
                continue
            return stream
        raise failure

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        raise AssertionError("nothing local is ever asked")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


UNREACHABLE: Final = N_("the remote server is unreachable; only public servers are contacted.")


def unreachable() -> InvalidValue:
    return InvalidValue(UNREACHABLE)


def connection_failed() -> ConnectionFailed:
    """Return an error whose message does not reveal whether a server exists."""
    return ConnectionFailed(UNREACHABLE)


def too_large(limit: int) -> InvalidValue:
    return InvalidValue("exceeds {limit} bytes.", limit=limit)


def _headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in pairs}


def _resolve_blocking(host: str, port: int) -> list[Any]:
    import socket

    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


@cache
def _resolver_threads() -> ThreadPoolExecutor:
    """Return a separate thread pool, because a stalled name server must not block anything else."""
    return ThreadPoolExecutor(MAX_CONCURRENT, thread_name_prefix="look-up")


@cache
def _tls() -> ssl.SSLContext:
    return httpcore.default_ssl_context()

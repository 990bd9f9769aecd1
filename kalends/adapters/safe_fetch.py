"""The one client with which the server asks other servers for what somebody else named.

A name is looked up once per hop, every address that it has is judged, and the connection goes to one of
those very addresses: there is no second look-up that could answer otherwise. Redirects begin again.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from typing import Any, BinaryIO, Final

import httpcore

from kalends import __version__
from kalends.core import errors
from kalends.core.egress import USUAL_PORTS, Address, Permitted, Target, may_connect, read_redirect, read_target
from kalends.core.errors import Invalid

Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]
REDIRECTS: Final = (301, 302, 303, 307, 308)
MOST_REDIRECTS: Final = 3
SECONDS: Final = 10.0
SECONDS_TO_CONNECT: Final = 4.0
AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: a status, headers with names in small letters, and how many bytes were written."""

    status: int
    headers: Mapping[str, str]
    size: int


async def look_up(host: str, port: int) -> Sequence[Address]:
    """All addresses of a name, as the machine sees it."""
    rows = await asyncio.get_running_loop().run_in_executor(_threads(), _look_up, host, port)
    return [ip_address(str(row[4][0]).partition("%")[0]) for row in rows]


class Fetcher:
    def __init__(
        self,
        permitted: Sequence[Permitted] = (),
        *,
        resolve: Resolve = look_up,
        ports: Collection[int] = USUAL_PORTS,
        seconds: float = SECONDS,
    ) -> None:
        self._permitted = permitted
        self._ports = ports
        self._resolve = resolve
        self._seconds = seconds
        self._free = asyncio.Semaphore(AT_ONCE)

    async def get(self, url: str, into: BinaryIO, *, limit: int, headers: Mapping[str, str] | None = None) -> Answer:
        """Fetches within all limits, redirects included; what is refused or fails is `Invalid`."""
        try:
            async with asyncio.timeout(self._seconds):
                await self._free.acquire()
        except TimeoutError:
            raise errors.unavailable() from None  # Ours is the queue, not the other server's.
        try:
            async with asyncio.timeout(self._seconds):
                return await self._follow(url, into, limit, headers or {})
        except TimeoutError:
            raise Invalid("the other server took too long: {seconds} s.", seconds=round(self._seconds)) from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, ConnectionError) as error:
            raise unreachable() from error
        except ssl.SSLError as error:
            raise unreachable() from error
        finally:
            self._free.release()

    async def _follow(self, url: str, into: BinaryIO, limit: int, headers: Mapping[str, str]) -> Answer:
        for _ in range(MOST_REDIRECTS + 1):
            target = read_target(url)
            into.seek(0)
            into.truncate()
            answer = await self._ask(target, into, limit, headers)
            if answer.status not in REDIRECTS or "location" not in answer.headers:
                return answer
            url = read_redirect(target, answer.headers["location"])
        raise Invalid("the address leads on and on; at most {most} redirects are followed.", most=MOST_REDIRECTS)

    async def _ask(self, target: Target, into: BinaryIO, limit: int, headers: Mapping[str, str]) -> Answer:
        literal = target.literal
        found = [literal] if literal is not None else await self._addresses(target)
        if not found or not all(self._may_connect(address, target.port) for address in found):
            raise unreachable()
        sent = {
            "Host": target.authority,
            "User-Agent": f"Kalends/{__version__}",
            "Accept": "*/*",
            "Accept-Encoding": "identity",  # What is not packed cannot swell.
            "Connection": "close",
            **headers,
        }
        url = httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
        async with (
            httpcore.AsyncConnectionPool(
                ssl_context=_tls() if target.scheme == "https" else None, network_backend=Pinned(found)
            ) as pool,
            pool.stream("GET", url, headers=list(sent.items())) as response,
        ):
            names = _headers(response.headers)
            if response.status != 200:
                return Answer(response.status, names, 0)
            length = names.get("content-length", "")
            if length.isdecimal() and (len(length) > 15 or int(length) > limit):
                raise too_much(limit)
            size = 0
            async for chunk in response.aiter_stream():
                size += len(chunk)
                if size > limit:
                    raise too_much(limit)
                into.write(chunk)
            return Answer(200, names, size)

    def _may_connect(self, address: Address, port: int) -> bool:
        return may_connect(address, port, self._permitted, self._ports)

    async def _addresses(self, target: Target) -> Sequence[Address]:
        try:
            return await self._resolve(target.host, target.port)
        except OSError as error:  # Unknown names and those that are not to be reached look the same.
            raise unreachable() from error


class Pinned(httpcore.AsyncNetworkBackend):
    """Connects to addresses that were judged before, whatever the name of the host means by now."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._addresses = [str(address) for address in addresses]
        self._sockets: Any = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the name is the library's
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failure: Exception = unreachable()
        for address in self._addresses[:3]:
            try:
                stream: httpcore.AsyncNetworkStream = await self._sockets.connect_tcp(
                    address, port, SECONDS_TO_CONNECT
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
                continue
            return stream
        raise failure

    async def connect_unix_socket(self, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        raise AssertionError("nothing local is ever asked")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def unreachable() -> Invalid:
    return Invalid("the address cannot be reached; only public servers are asked.")


def too_much(limit: int) -> Invalid:
    return Invalid("the file has more than {limit} bytes.", limit=limit)


def _headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in pairs}


def _look_up(host: str, port: int) -> list[Any]:
    import socket

    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


@cache
def _threads() -> ThreadPoolExecutor:
    """Threads of its own: a name server that stalls must not hold up anything else."""
    return ThreadPoolExecutor(AT_ONCE, thread_name_prefix="look-up")


@cache
def _tls() -> ssl.SSLContext:
    return httpcore.default_ssl_context()

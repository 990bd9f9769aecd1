"""The client of webhooks: it contacts no forbidden server, and hostile responses cost neither time nor memory."""

import asyncio
import resource
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from ipaddress import ip_address

import httpcore
import pytest

from kalends.adapters.safe_fetch import Fetcher, PinnedBackend, PostResult, read_retry_after, resolve_host
from kalends.core.egress import IpAddress, read_allowed_network
from tests.media.image_fixtures import start_listener
from tests.media.ssrf_attempts import HOSTILE_HOSTS, HOSTILE_NAMES

SECONDS = 1.0
UNREACHABLE = PostResult(0, 0, error="unreachable")
PERMITTED = "127.0.0.9"


@dataclass
class Receiver:
    """A permitted server at 127.0.0.9, and a forbidden one with the same port at 127.0.0.1."""

    port: int = 0
    requests: list[bytes] = field(default_factory=list[bytes])
    connections: int = 0
    forbidden: int = 0
    lookups: Counter[str] = field(default_factory=Counter[str])

    async def resolve(self, host: str, port: int) -> Sequence[IpAddress]:
        self.lookups[host] += 1
        if host == "good.test":
            return [ip_address(PERMITTED)]
        if host == "rebinds.test":  # first the permitted address, then the forbidden one
            return [ip_address(PERMITTED if self.lookups[host] == 1 else "127.0.0.1")]
        if host == "public.test":
            return [ip_address("1.1.1.1")]
        if host in HOSTILE_NAMES:
            responses = HOSTILE_NAMES[host]
            return [ip_address(text) for text in responses[min(self.lookups[host], len(responses)) - 1]]
        return await resolve_host(host, port)

    def fetcher(self) -> Fetcher:
        return Fetcher([read_allowed_network(f"{PERMITTED}:{self.port}")], resolve=self.resolve, seconds=SECONDS)

    def url(self, path: str = "", host: str = "good.test", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}/{path}"

    async def post(self, url: str) -> PostResult:
        async with self.fetcher().open_session(url) as session:
            return await session.post({"webhook-id": "msg_1"}, b"{}")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
            self.requests.append(head + await reader.readexactly(length))
            path = head.split(b" ")[1].decode().strip("/")
            await getattr(self, f"respond_{path or 'plain'}")(writer)
            await writer.drain()

    async def forbid(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.forbidden += 1

    async def respond_plain(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    async def respond_redirect(self, writer: asyncio.StreamWriter) -> None:
        place = f"http://127.0.0.1:{self.port}/".encode()
        writer.write(b"HTTP/1.1 307 Elsewhere\r\nLocation: " + place + b"\r\nContent-Length: 0\r\n\r\n")

    async def respond_busy(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 503 Busy\r\nRetry-After: 77\r\nContent-Length: 4\r\n\r\nbusy")

    async def respond_silent(self, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3600)

    async def respond_slow(self, writer: asyncio.StreamWriter) -> None:
        """Send a byte of the head at a time."""
        for byte in b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 10_000:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.05)

    async def respond_slow_body(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n")
        for _ in range(900):
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    async def respond_endless(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n")
            await writer.drain()

    async def respond_endless_head(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-More: " + b"x" * 10_000 + b"\r\n")
            await writer.drain()

    async def respond_huge(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2000000000\r\n\r\n")
        for _ in range(2000):
            writer.write(b"x" * 1_000_000)
            await writer.drain()

    async def respond_garbage(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")

    async def respond_nothing(self, writer: asyncio.StreamWriter) -> None:
        writer.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    started = Receiver()
    async with AsyncExitStack() as running:
        started.port = await running.enter_async_context(start_listener(started.serve, PERMITTED))
        await running.enter_async_context(start_listener(started.forbid, "127.0.0.1", started.port))
        yield started


async def test_permitted_server_receives_the_message(receiver: Receiver) -> None:
    result = await receiver.post(receiver.url())
    assert (result.status, result.error, result.retry_after) == (204, "", None)
    (request,) = receiver.requests
    head = request.decode().lower()
    assert head.startswith("post / http/1.1\r\n")
    assert f"host: good.test:{receiver.port}\r\n" in head
    assert "webhook-id: msg_1\r\n" in head
    assert head.endswith("\r\n\r\n{}")


async def test_session_looks_up_once_and_keeps_connections(receiver: Receiver) -> None:
    async with receiver.fetcher().open_session(receiver.url()) as session:
        results = [await session.post({}, b"{}") for _ in range(50)]
        several = await asyncio.gather(*[session.post({}, b"{}") for _ in range(100)])
    assert {result.status for result in (*results, *several)} == {204}
    assert receiver.lookups == {"good.test": 1}
    assert receiver.connections <= 16


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_forbidden_address_is_never_contacted(receiver: Receiver, scheme: str) -> None:
    assert len(HOSTILE_HOSTS) >= 25
    for host in HOSTILE_HOSTS:
        assert await receiver.post(receiver.url(host=host, scheme=scheme)) == UNREACHABLE, host
        assert await receiver.post(f"{scheme}://{host}/") == UNREACHABLE, host
    assert receiver.forbidden == 0
    assert (await receiver.post(receiver.url())).status == 204


async def test_name_that_rebinds_is_pinned_for_a_session_and_then_refused(receiver: Receiver) -> None:
    async with receiver.fetcher().open_session(receiver.url(host="rebinds.test")) as session:
        assert [(await session.post({}, b"{}")).status for _ in range(3)] == [204] * 3
    assert await receiver.post(receiver.url(host="rebinds.test")) == UNREACHABLE
    assert (receiver.forbidden, receiver.lookups["rebinds.test"]) == (0, 2)


@pytest.mark.parametrize(
    ("url", "attempts"),
    [
        ("https://public.test/", 1),
        *((f"http://public.test{port}/", 0) for port in ("", ":443", ":8080")),
        *((f"https://public.test:{port}/", 0) for port in (80, 8443)),
    ],
)
async def test_public_server_gets_nothing_without_https_on_port_443(
    receiver: Receiver, url: str, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    contacted: list[str] = []

    async def refuse(_: PinnedBackend, host: str, port: int, *__: object, **___: object) -> None:
        """Stand in for the Internet, which tests do not contact."""
        contacted.append(f"{host}:{port}")
        raise httpcore.ConnectError

    monkeypatch.setattr(PinnedBackend, "connect_tcp", refuse)
    result = await receiver.post(url)
    assert (result.status, result.error, len(contacted)) == (0, "unreachable", attempts)


async def test_redirect_is_a_result_and_not_followed(receiver: Receiver) -> None:
    assert (await receiver.post(receiver.url("redirect"))).status == 307
    assert (len(receiver.requests), receiver.forbidden) == (1, 0)


async def test_retry_after_is_reported(receiver: Receiver) -> None:
    result = await receiver.post(receiver.url("busy"))
    assert (result.status, result.retry_after) == (503, 77)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("0", 0), ("120", 120), ("Thu, 19 Nov 2026 10:00:10 GMT", 10), ("Thu, 19 Nov 2026 09:00:00 GMT", 0)),
        *(("", None), ("-1", None), ("soon", None), ("1.5", None), ("٣", None), ("9" * 400, 999_999_999)),
        ("Thu, 99 Nov 2026 10:00:10 GMT", None),
    ],
)
def test_retry_after_is_read(text: str, seconds: int | None) -> None:
    assert read_retry_after(text, "Thu, 19 Nov 2026 10:00:00 GMT") == seconds


def test_retry_after_without_a_date_is_ignored() -> None:
    assert read_retry_after("Thu, 19 Nov 2026 10:00:10 GMT", "") is None
    assert read_retry_after("Thu, 19 Nov 2026 10:00:10 -0000", "Thu, 19 Nov 2026 10:00:00 GMT") is None


@pytest.mark.parametrize("path", ["silent", "slow", "slow_body"])
async def test_slow_response_is_cut(receiver: Receiver, path: str) -> None:
    started = time.monotonic()
    result = await receiver.post(receiver.url(path))
    assert (result.status, result.error) == (0, "timeout")
    assert SECONDS <= time.monotonic() - started < SECONDS + 3
    assert 1000 * SECONDS <= result.milliseconds < 1000 * SECONDS + 3000


@pytest.mark.parametrize(("path", "status"), [("endless", 200), ("huge", 200), ("endless_head", 0)])
async def test_long_response_is_cut(receiver: Receiver, path: str, status: int) -> None:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await receiver.post(receiver.url(path))
    assert result.status == status
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 20_000  # kB
    assert (await receiver.post(receiver.url())).status == 204


@pytest.mark.parametrize("path", ["garbage", "nothing"])
async def test_broken_response_is_a_failure(receiver: Receiver, path: str) -> None:
    result = await receiver.post(receiver.url(path))
    assert (result.status, result.error) == (0, "unreachable")


async def test_closed_port_is_a_failure(receiver: Receiver) -> None:
    fetcher = Fetcher([read_allowed_network("127.0.0.9:1")], seconds=SECONDS)
    async with fetcher.open_session("http://127.0.0.9:1/") as session:
        result = await session.post({}, b"{}")
    assert (result.status, result.error) == (0, "unreachable")


async def test_stalled_name_server_is_a_failure() -> None:
    async def never(_: str, __: int) -> Sequence[IpAddress]:
        await asyncio.sleep(60)
        return []

    started = time.monotonic()
    async with Fetcher(resolve=never).open_session("https://slow.test/") as session:
        assert await session.post({}, b"{}") == UNREACHABLE
    assert time.monotonic() - started < 10

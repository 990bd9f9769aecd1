"""Fetching the file of a source: conditional requests, compression, and servers that must not be reached."""

import asyncio
import gzip
import hashlib
import io
import time
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from ipaddress import ip_address

import pytest

from kalends.adapters.safe_fetch import Fetcher, resolve_host
from kalends.core.egress import IpAddress, read_allowed_network
from kalends.core.errors import InvalidValue
from kalends.imports.operations import sources
from kalends.imports.operations.sources import MAX_BYTES, FetchedFile, fetch_file, make_fetcher, read_source_url
from tests.media.image_fixtures import start_listener
from tests.media.ssrf_attempts import HOSTILE_HOSTS, HOSTILE_NAMES, HOSTILE_URLS

CALENDAR = b"BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"


@dataclass
class Servers:
    """One server that may be reached, and a forbidden one on every address of this machine."""

    content: bytes = CALENDAR
    status: str = "200 OK"
    headers: list[str] = field(default_factory=list[str])
    requests: list[str] = field(default_factory=list[str])
    reached: list[str] = field(default_factory=list[str])
    lookups: Counter[str] = field(default_factory=Counter[str])
    port: int = 0
    forbidden_port: int = 0
    delay: float = 0
    running: int = 0
    most_running: int = 0

    @property
    def url(self) -> str:
        return f"http://calendar.test:{self.port}/feed.ics"

    @property
    def fetcher(self) -> Fetcher:
        allowed = [read_allowed_network(f"127.0.0.9:{self.port}")]
        return Fetcher(allowed, resolve=self.resolve, ports={self.forbidden_port}, seconds=5)

    async def resolve(self, host: str, port: int) -> Sequence[IpAddress]:
        self.lookups[host] += 1
        if host == "calendar.test":
            return [ip_address("127.0.0.9")]
        if host in HOSTILE_NAMES:
            answers = HOSTILE_NAMES[host]
            return [ip_address(text) for text in answers[min(self.lookups[host], len(answers)) - 1]]
        return await resolve_host(host, port)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode("latin-1"))
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        await asyncio.sleep(self.delay)
        head = [f"HTTP/1.1 {self.status}", f"Content-Length: {len(self.content)}", *self.headers, "", ""]
        writer.write("\r\n".join(head).encode("latin-1") + self.content)
        await writer.drain()
        self.running -= 1

    async def serve_forbidden(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reached.append(str(writer.get_extra_info("sockname")))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret")
        await writer.drain()

    async def fetch(self, etag: str = "", last_modified: str = "") -> tuple[FetchedFile | None, bytes]:
        into = io.BytesIO()
        fetched = await fetch_file(self.fetcher, self.url, etag, last_modified, into)
        return fetched, into.getvalue()


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    servers = Servers()
    async with AsyncExitStack() as running:
        servers.port = await running.enter_async_context(start_listener(servers.serve, "127.0.0.9"))
        servers.forbidden_port = await running.enter_async_context(
            start_listener(servers.serve_forbidden, "127.0.0.1")
        )
        yield servers


async def test_file_is_fetched_with_its_validators(servers: Servers) -> None:
    servers.headers = ['ETag: W/"7"', "Last-Modified: Mon, 03 May 2027 10:00:00 GMT"]
    fetched, content = await servers.fetch()
    assert fetched is not None
    assert content == CALENDAR
    assert (fetched.size, fetched.sha256) == (len(CALENDAR), hashlib.sha256(CALENDAR).digest())
    assert (fetched.etag, fetched.last_modified) == ('W/"7"', "Mon, 03 May 2027 10:00:00 GMT")
    assert "if-none-match" not in servers.requests[0].lower()


async def test_unchanged_file_is_none(servers: Servers) -> None:
    servers.status, servers.content = "304 Not Modified", b""
    fetched, _ = await servers.fetch('W/"7"', "Mon, 03 May 2027 10:00:00 GMT")
    assert fetched is None
    assert 'If-None-Match: W/"7"' in servers.requests[0]
    assert "If-Modified-Since: Mon, 03 May 2027 10:00:00 GMT" in servers.requests[0]


async def test_304_without_a_condition_is_an_error(servers: Servers) -> None:
    servers.status, servers.content = "304 Not Modified", b""
    with pytest.raises(InvalidValue, match="responded with 304"):
        await servers.fetch()


@pytest.mark.parametrize(
    "status", ["401 No", "403 Forbidden", "404 Gone", "410 Gone", "429 Slow", "500 No", "503 No"]
)
async def test_error_names_the_status_and_never_the_body(servers: Servers, status: str) -> None:
    servers.status, servers.content = status, b"the secret of the intranet"
    with pytest.raises(InvalidValue, match=f"responded with {status[:3]} after") as caught:
        await servers.fetch()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("header", "compress"),
    [
        ("Content-Encoding: gzip", gzip.compress),
        ("Content-Encoding: X-GZIP", gzip.compress),
        ("Content-Encoding: deflate", zlib.compress),
        ("Content-Type: application/gzip", gzip.compress),
    ],
)
async def test_compressed_file_is_decompressed(servers: Servers, header: str, compress: object) -> None:
    servers.headers, servers.content = [header], compress(CALENDAR * 100)  # type: ignore[operator]
    fetched, content = await servers.fetch()
    assert content == CALENDAR * 100
    assert fetched is not None
    assert fetched.sha256 == hashlib.sha256(CALENDAR * 100).digest()


async def test_gzip_bomb_is_refused_at_the_limit(servers: Servers) -> None:
    """100 MB of zeros are 100 kB of gzip."""
    servers.headers, servers.content = ["Content-Encoding: gzip"], gzip.compress(bytes(100_000_000), 9)
    assert len(servers.content) < 200_000
    begun = time.process_time()
    with pytest.raises(InvalidValue, match="exceeds 10000000 bytes after decompression"):
        await servers.fetch()
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    ("headers", "content", "problem"),
    [
        (["Content-Encoding: gzip"], gzip.compress(CALENDAR)[:-5], "damaged or incomplete"),
        (["Content-Encoding: gzip"], b"not compressed", "damaged or incomplete"),
        (["Content-Encoding: br"], b"\x0b", "only gzip is supported"),
        (["Content-Encoding: gzip, gzip"], gzip.compress(gzip.compress(CALENDAR)), "only gzip is supported"),
        ([], b"", "empty file"),
        ([], b"x" * (MAX_BYTES + 1), "exceeds 10000000 bytes"),
    ],
    ids=["cut", "not-gzip", "brotli", "twice", "empty", "large"],
)
async def test_unusable_file_is_refused(servers: Servers, headers: list[str], content: bytes, problem: str) -> None:
    servers.headers, servers.content = headers, content
    with pytest.raises(InvalidValue, match=problem):
        await servers.fetch()


async def test_validator_that_cannot_be_sent_back_is_ignored(servers: Servers) -> None:
    servers.headers = [f'ETag: "{"x" * 600}"', "Last-Modified: gestern früh"]
    fetched, _ = await servers.fetch()
    assert fetched is not None
    assert (fetched.etag, fetched.last_modified) == ("", "")


async def test_imports_have_their_own_limit_of_concurrent_requests(servers: Servers) -> None:
    servers.delay = 0.05
    fetcher = Fetcher(
        [read_allowed_network(f"127.0.0.9:{servers.port}")],
        resolve=servers.resolve,
        max_concurrent=sources.MAX_CONCURRENT,
    )
    await asyncio.gather(*[fetch_file(fetcher, servers.url, "", "", io.BytesIO()) for _ in range(12)])
    assert servers.most_running == sources.MAX_CONCURRENT
    assert make_fetcher()._semaphore._value == sources.MAX_CONCURRENT


# Servers that must not be reached ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://example.org/a.ics", "https://example.org/a.ics"),
        (" webcal://example.org/a.ics ", "https://example.org/a.ics"),
        ("WEBCALS://example.org/a.ics?key=1", "https://example.org/a.ics?key=1"),
        ("http://example.org:80/a@b.ics", "http://example.org:80/a@b.ics"),
    ],
)
def test_url_of_a_source_is_read(text: str, url: str) -> None:
    assert read_source_url(text) == url


@pytest.mark.parametrize(
    "url",
    [
        "https://user:word@example.org/a.ics",
        "https://user@example.org/a.ics",
        "webcal://user:word@example.org/a.ics",
        "https://:word@example.org/a.ics",
        "https://user%40x:word@example.org/a.ics",
    ],
)
async def test_credentials_in_a_url_are_refused_and_not_repeated(url: str, servers: Servers) -> None:
    with pytest.raises(InvalidValue, match="must not contain a user name or a password") as caught:
        await fetch_file(servers.fetcher, url, "", "", io.BytesIO())
    assert "word@" not in str(caught.value)


async def test_hostile_urls_reach_nothing(servers: Servers) -> None:
    port = servers.forbidden_port
    urls = [f"{scheme}://{host}:{port}/" for host in HOSTILE_HOSTS for scheme in ("http", "webcal")]
    urls += [text.format(port=port) for text in HOSTILE_URLS]
    for url in urls:
        with pytest.raises(InvalidValue):
            await asyncio.wait_for(fetch_file(servers.fetcher, url, "", "", io.BytesIO()), 10)
    assert servers.reached == []


async def test_redirects_to_private_networks_reach_nothing(servers: Servers) -> None:
    """Credentials in a redirect are refused as well."""
    port = servers.forbidden_port
    places = [f"http://{host}:{port}/" for host in HOSTILE_HOSTS if host.isascii() and "\\" not in host]
    places += [f"http://user:word@calendar.test:{servers.port}/", f"ftp://calendar.test:{servers.port}/"]
    for place in places:
        servers.status, servers.headers, servers.content = "302 Found", [f"Location: {place}"], b""
        with pytest.raises(InvalidValue):
            await asyncio.wait_for(servers.fetch(), 10)
    assert len(servers.requests) == len(places)  # Each redirect was received, none was followed.
    assert servers.reached == []


async def test_forbidden_server_is_reachable_without_the_guard(servers: Servers) -> None:
    """What the two tests before show would be worth nothing otherwise."""
    everything = [read_allowed_network(f"127.0.0.0/8:{servers.forbidden_port}")]
    url = f"http://127.0.0.1:{servers.forbidden_port}/"
    fetched = await fetch_file(Fetcher(everything), url, "", "", io.BytesIO())
    assert fetched is not None
    assert len(servers.reached) == 1

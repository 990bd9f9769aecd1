"""The one client that asks other servers: what it must not reach it does not reach, and nothing holds it up."""

import asyncio
import io
import itertools
import ssl
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

import pytest

from kalends.adapters import safe_fetch
from kalends.adapters.safe_fetch import Fetcher, resolve_host
from kalends.core.egress import IpAddress, read_allowed_network
from kalends.core.errors import ApiError, InvalidValue
from tests.media.image_fixtures import report, start_listener
from tests.media.ssrf_attempts import HOSTILE_HOSTS, HOSTILE_NAMES, HOSTILE_URLS

MAX_BYTES = 100_000
TIMEOUT = 1.5


@dataclass
class FakeNetwork:
    """A forbidden listener on every address of this machine, and one allowed server."""

    forbidden_port: int = 0  # port
    permitted_port: int = 0
    reached: list[str] = field(default_factory=list[str])
    requests: list[str] = field(default_factory=list[str])
    lookups: Counter[str] = field(default_factory=Counter[str])

    async def resolve(self, host: str, port: int) -> Sequence[IpAddress]:
        """Names of the attacker, as their name server answers; all others as the machine does."""
        self.lookups[host] += 1
        if host == "good.test":
            return [ip_address("127.0.0.9")]
        if host == "rebinds.test":  # DNS rebinding: first an allowed address, then a forbidden one
            return [ip_address("127.0.0.9" if self.lookups[host] == 1 else "127.0.0.1")]
        if host in HOSTILE_NAMES:
            responses = HOSTILE_NAMES[host]
            return [ip_address(text) for text in responses[min(self.lookups[host], len(responses)) - 1]]
        return await resolve_host(host, port)

    def fetcher(self, **options: object) -> Fetcher:
        """The port of the forbidden listener is as good as 80: only its address keeps the client away."""
        permitted = [read_allowed_network(f"127.0.0.9:{self.permitted_port}")]
        return Fetcher(permitted, resolve=self.resolve, ports={self.forbidden_port}, seconds=TIMEOUT, **options)

    async def get(self, url: str, limit: int = MAX_BYTES) -> bytes:
        into = io.BytesIO()
        await self.fetcher().get(url, into, limit=limit)
        return into.getvalue()

    # The responses of the allowed server, by path.

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.requests.append(head)
        path = head.split(" ")[1].removeprefix("/")
        behaviour, _, rest = path.partition("/")
        await getattr(self, f"respond_{behaviour}")(writer, rest)

    async def respond_plain(self, writer: asyncio.StreamWriter, _: str) -> None:
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: "e"\r\n\r\nhello')
        await writer.drain()

    async def respond_to(self, writer: asyncio.StreamWriter, where: str) -> None:
        """Redirects; the place is hexadecimal, so that any bytes can stand in it."""
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: " + bytes.fromhex(where) + b"\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    async def respond_loop(self, writer: asyncio.StreamWriter, number: str) -> None:
        place = f"/loop/{int(number or 0) + 1}"
        writer.write(f"HTTP/1.1 301 On\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()

    async def respond_silent(self, writer: asyncio.StreamWriter, _: str) -> None:
        await asyncio.sleep(60)

    async def respond_drip(self, writer: asyncio.StreamWriter, _: str) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n")
        while True:
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.05)

    async def respond_drip_headers(self, writer: asyncio.StreamWriter, _: str) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        for number in itertools.count():
            writer.write(f"X-{number}: y\r\n".encode())
            await writer.drain()
            await asyncio.sleep(0.05)

    async def respond_endless(self, writer: asyncio.StreamWriter, _: str) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n")
            await writer.drain()

    async def respond_endless_headers(self, writer: asyncio.StreamWriter, _: str) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX: ")
        while True:
            writer.write(b"x" * 0xFFFF)
            await writer.drain()

    async def respond_endless_continue(self, writer: asyncio.StreamWriter, _: str) -> None:
        while True:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            await writer.drain()

    async def respond_huge(self, writer: asyncio.StreamWriter, _: str) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n")
        await writer.drain()

    async def respond_lying(self, writer: asyncio.StreamWriter, _: str) -> None:
        """Breaks off before what it promised."""
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nshort")
        await writer.drain()

    async def respond_garbage(self, writer: asyncio.StreamWriter, _: str) -> None:
        writer.write(b"\x00\x01\x02 no HTTP at all\r\n\r\n")
        await writer.drain()

    async def respond_nothing(self, writer: asyncio.StreamWriter, _: str) -> None:
        pass

    async def serve_forbidden(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reached.append(str(writer.get_extra_info("sockname")))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret")
        await writer.drain()


@pytest.fixture
async def fake_network() -> AsyncIterator[FakeNetwork]:
    image = FakeNetwork()
    async with AsyncExitStack() as running:
        image.forbidden_port = await running.enter_async_context(start_listener(image.serve_forbidden, "0.0.0.0"))
        await running.enter_async_context(start_listener(image.serve_forbidden, "::1", image.forbidden_port))
        image.permitted_port = await running.enter_async_context(start_listener(image.serve, "127.0.0.9"))
        yield image


async def test_unguarded_client_reaches_forbidden_listener(fake_network: FakeNetwork) -> None:
    """What follows would show nothing otherwise."""
    into = io.BytesIO()
    everything = [
        read_allowed_network(f"{network}:{fake_network.forbidden_port}") for network in ("0.0.0.0/0", "[::/0]")
    ]
    for host in ("127.0.0.1", "127.0.0.2", "[::1]", "localhost", "loopback.attacker.test", "[::ffff:127.0.0.1]"):
        response = await Fetcher(everything, resolve=fake_network.resolve).get(
            f"http://{host}:{fake_network.forbidden_port}/", into, limit=MAX_BYTES
        )
        assert (response.status, into.getvalue()) == (200, b"secret")
    assert len(fake_network.reached) == 6


async def test_attack_urls_do_not_reach_forbidden_listener(fake_network: FakeNetwork) -> None:
    urls = [
        f"{scheme}://{host}:{fake_network.forbidden_port}/" for host in HOSTILE_HOSTS for scheme in ("http", "https")
    ]
    urls += [f"http://{host}/" for host in HOSTILE_HOSTS]
    urls += [text.format(port=fake_network.forbidden_port) for text in HOSTILE_URLS]
    for url in urls:
        with pytest.raises(InvalidValue):
            await asyncio.wait_for(fake_network.get(url), 10)
    assert fake_network.reached == []
    report(f"{len(urls)} URLs of {len(set(HOSTILE_HOSTS)) + len(HOSTILE_URLS)} hosts and forms: none was requested")
    assert len(set(HOSTILE_HOSTS)) + len(HOSTILE_URLS) >= 60


async def test_redirects_do_not_reach_forbidden_listener(fake_network: FakeNetwork) -> None:
    """Repeat the attempts as redirects of the allowed server."""
    places = [f"http://{host}:{fake_network.forbidden_port}/" for host in HOSTILE_HOSTS]
    places += [text.format(port=fake_network.forbidden_port).strip() for text in HOSTILE_URLS]
    places += [f"//{host}:{fake_network.forbidden_port}/" for host in HOSTILE_HOSTS[:10]]
    good = f"http://good.test:{fake_network.permitted_port}"
    hops = 0
    for place in places:
        if "\r" in place:
            continue  # No header can hold it.
        before = len(fake_network.requests)
        url = f"{good}/to/{place.encode().hex()}"
        try:
            await asyncio.wait_for(fake_network.get(url), 10)
        except InvalidValue:
            pass
        else:  # urljoin treats these as paths, which stay on the allowed server.
            assert all("good.test" in head for head in fake_network.requests[before:]), place
        hops += len(fake_network.requests) > before
    assert hops == len([place for place in places if "\r" not in place])
    assert fake_network.reached == []


@pytest.mark.parametrize("place", ["http://[::1/x", "http://[", "//[zz]/", "http://[1]2/"])
async def test_redirect_to_malformed_url_is_rejected(fake_network: FakeNetwork, place: str) -> None:
    with pytest.raises(InvalidValue, match="must be an http or https URL"):
        await fake_network.get(f"http://good.test:{fake_network.permitted_port}/to/{place.encode().hex()}")


async def test_redirect_target_is_resolved_and_checked(fake_network: FakeNetwork) -> None:
    good = f"http://good.test:{fake_network.permitted_port}"
    assert await fake_network.get(f"{good}/to/{f'{good}/plain'.encode().hex()}") == b"hello"
    assert fake_network.lookups["good.test"] == 2  # once per hop, never twice


async def test_connection_uses_checked_address_despite_dns_rebinding(fake_network: FakeNetwork) -> None:
    """Rebinding: the second look-up would lead to the forbidden listener; there is no second look-up."""
    url = f"http://rebinds.test:{fake_network.permitted_port}/plain"
    assert await fake_network.get(url) == b"hello"
    assert fake_network.lookups["rebinds.test"] == 1
    assert "Host: rebinds.test" in fake_network.requests[0]
    with pytest.raises(InvalidValue):  # The name has another address by now, which is checked again.
        await fake_network.get(f"http://rebinds.test:{fake_network.forbidden_port}/plain")
    assert fake_network.reached == []


async def test_rebinding_redirect_is_rejected(fake_network: FakeNetwork) -> None:
    """The first hop is judged by the first answer, the second one by the second."""
    place = f"http://rebinds.test:{fake_network.forbidden_port}/".encode().hex()
    with pytest.raises(InvalidValue):
        await fake_network.get(f"http://rebinds.test:{fake_network.permitted_port}/to/{place}")
    assert (fake_network.lookups["rebinds.test"], fake_network.reached) == (2, [])


@pytest.mark.parametrize("path", ["silent", "drip", "drip_headers"])
async def test_stalled_response_times_out(fake_network: FakeNetwork, path: str) -> None:
    started = time.monotonic()
    with pytest.raises(InvalidValue, match="timed out"):
        await fake_network.get(f"http://good.test:{fake_network.permitted_port}/{path}/")
    assert TIMEOUT * 0.9 < time.monotonic() - started < TIMEOUT + 5


@pytest.mark.parametrize("path", ["endless", "endless_headers", "endless_continue", "huge"])
async def test_endless_response_is_aborted(fake_network: FakeNetwork, path: str) -> None:
    into = io.BytesIO()
    started = time.monotonic()
    with pytest.raises(InvalidValue):
        await fake_network.fetcher().get(
            f"http://good.test:{fake_network.permitted_port}/{path}/", into, limit=MAX_BYTES
        )
    assert len(into.getvalue()) <= MAX_BYTES
    assert time.monotonic() - started < TIMEOUT + 5


@pytest.mark.parametrize("path", ["lying", "garbage", "nothing", "loop/"])
async def test_incomplete_response_is_rejected(fake_network: FakeNetwork, path: str) -> None:
    with pytest.raises(InvalidValue):
        await fake_network.get(f"http://good.test:{fake_network.permitted_port}/{path}")
    assert len(fake_network.requests) == (4 if path == "loop/" else 1)


async def test_concurrent_slow_servers_do_not_accumulate_delay(fake_network: FakeNetwork) -> None:
    """Fetch forty URLs with eight slots: requests that wait too long are rejected with Retry-After."""
    started = time.monotonic()
    fetcher = fake_network.fetcher()
    url = f"http://good.test:{fake_network.permitted_port}/silent/"
    results = await asyncio.gather(
        *[fetcher.get(url, io.BytesIO(), limit=MAX_BYTES) for _ in range(40)], return_exceptions=True
    )
    assert sum(isinstance(error, InvalidValue) for error in results) >= 8
    assert all(isinstance(problem, InvalidValue | ApiError) for problem in results)
    assert time.monotonic() - started < 2 * TIMEOUT + 3


async def test_stalled_name_server_times_out(fake_network: FakeNetwork) -> None:
    async def never(_: str, __: int) -> Sequence[IpAddress]:
        await asyncio.sleep(60)
        return []

    with pytest.raises(InvalidValue, match="timed out"):
        await Fetcher(resolve=never, seconds=0.5).get("http://slow.test/", io.BytesIO(), limit=MAX_BYTES)


# TLS ------------------------------------------------------------------------------------------


def create_certificate(directory: Path, name: str) -> Path:
    """Create a file with a key and a self-signed certificate for a name."""
    image = directory / f"{name}.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    command += ["-addext", f"subjectAltName=DNS:{name}", "-keyout", str(image), "-out", str(directory / "public.pem")]
    subprocess.run(command, check=True, capture_output=True)
    image.write_bytes(image.read_bytes() + (directory / "public.pem").read_bytes())
    return image


async def test_certificate_is_verified_for_host_name_of_pinned_address(
    fake_network: FakeNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str | None] = []
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    image = create_certificate(tmp_path, "good.test")
    context.load_cert_chain(image)
    context.sni_callback = lambda _, name, __: names.append(name)
    async with start_listener(fake_network.serve, "127.0.0.9", tls=context) as fake_network.permitted_port:
        with pytest.raises(InvalidValue):  # Nobody vouches for this certificate.
            await fake_network.get(f"https://good.test:{fake_network.permitted_port}/plain")
        trusting = ssl.create_default_context(cafile=str(image))
        monkeypatch.setattr(safe_fetch, "_tls", lambda: trusting)
        assert await fake_network.get(f"https://good.test:{fake_network.permitted_port}/plain") == b"hello"
        with pytest.raises(InvalidValue):  # The certificate is for another name.
            await fake_network.get(f"https://rebinds.test:{fake_network.permitted_port}/plain")
    # On a busy machine, the first connection can fail before it sends the name.
    assert names[-2:] == ["good.test", "rebinds.test"]
    assert len(fake_network.requests) == 1

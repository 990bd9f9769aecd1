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
from tests.media.image_fixtures import listening, tell
from tests.media.ssrf_attempts import ADDRESSES, HOSTS, NAMES

LIMIT = 100_000
SECONDS = 1.5


@dataclass
class World:
    """A forbidden listener on every address of this machine, and one other server that may be asked."""

    forbidden: int = 0  # port
    permitted: int = 0
    reached: list[str] = field(default_factory=list[str])
    asked: list[str] = field(default_factory=list[str])
    looked_up: Counter[str] = field(default_factory=Counter[str])

    async def resolve(self, host: str, port: int) -> Sequence[IpAddress]:
        """Names of the attacker, as their name server answers; all others as the machine does."""
        self.looked_up[host] += 1
        if host == "good.test":
            return [ip_address("127.0.0.9")]
        if host == "rebinds.test":  # the classic: first an address that may be asked, then one that may not
            return [ip_address("127.0.0.9" if self.looked_up[host] == 1 else "127.0.0.1")]
        if host in NAMES:
            answers = NAMES[host]
            return [ip_address(text) for text in answers[min(self.looked_up[host], len(answers)) - 1]]
        return await resolve_host(host, port)

    def fetcher(self, **options: object) -> Fetcher:
        """The port of the forbidden listener is as good as 80: only its address keeps the client away."""
        permitted = [read_allowed_network(f"127.0.0.9:{self.permitted}")]
        return Fetcher(permitted, resolve=self.resolve, ports={self.forbidden}, seconds=SECONDS, **options)

    async def get(self, url: str, limit: int = LIMIT) -> bytes:
        into = io.BytesIO()
        await self.fetcher().get(url, into, limit=limit)
        return into.getvalue()

    # What the server answers that may be asked, by path.

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.asked.append(head)
        path = head.split(" ")[1].removeprefix("/")
        behaviour, _, rest = path.partition("/")
        await getattr(self, f"answer_{behaviour}")(writer, rest)

    async def answer_plain(self, writer: asyncio.StreamWriter, _: str) -> None:
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: "e"\r\n\r\nhello')
        await writer.drain()

    async def answer_to(self, writer: asyncio.StreamWriter, where: str) -> None:
        """Redirects; the place is hexadecimal, so that any bytes can stand in it."""
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: " + bytes.fromhex(where) + b"\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    async def answer_loop(self, writer: asyncio.StreamWriter, number: str) -> None:
        place = f"/loop/{int(number or 0) + 1}"
        writer.write(f"HTTP/1.1 301 On\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()

    async def answer_silent(self, writer: asyncio.StreamWriter, _: str) -> None:
        await asyncio.sleep(60)

    async def answer_drip(self, writer: asyncio.StreamWriter, _: str) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n")
        while True:
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.05)

    async def answer_drip_headers(self, writer: asyncio.StreamWriter, _: str) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        for number in itertools.count():
            writer.write(f"X-{number}: y\r\n".encode())
            await writer.drain()
            await asyncio.sleep(0.05)

    async def answer_endless(self, writer: asyncio.StreamWriter, _: str) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n")
            await writer.drain()

    async def answer_endless_headers(self, writer: asyncio.StreamWriter, _: str) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX: ")
        while True:
            writer.write(b"x" * 0xFFFF)
            await writer.drain()

    async def answer_endless_continue(self, writer: asyncio.StreamWriter, _: str) -> None:
        while True:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            await writer.drain()

    async def answer_huge(self, writer: asyncio.StreamWriter, _: str) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n")
        await writer.drain()

    async def answer_lying(self, writer: asyncio.StreamWriter, _: str) -> None:
        """Breaks off before what it promised."""
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nshort")
        await writer.drain()

    async def answer_garbage(self, writer: asyncio.StreamWriter, _: str) -> None:
        writer.write(b"\x00\x01\x02 no HTTP at all\r\n\r\n")
        await writer.drain()

    async def answer_nothing(self, writer: asyncio.StreamWriter, _: str) -> None:
        pass

    async def forbid(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reached.append(str(writer.get_extra_info("sockname")))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret")
        await writer.drain()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    async with AsyncExitStack() as running:
        made.forbidden = await running.enter_async_context(listening(made.forbid, "0.0.0.0"))
        await running.enter_async_context(listening(made.forbid, "::1", made.forbidden))
        made.permitted = await running.enter_async_context(listening(made.serve, "127.0.0.9"))
        yield made


async def test_unguarded_client_reaches_forbidden_listener(world: World) -> None:
    """What follows would show nothing otherwise."""
    into = io.BytesIO()
    everything = [read_allowed_network(f"{network}:{world.forbidden}") for network in ("0.0.0.0/0", "[::/0]")]
    for host in ("127.0.0.1", "127.0.0.2", "[::1]", "localhost", "loopback.attacker.test", "[::ffff:127.0.0.1]"):
        answer = await Fetcher(everything, resolve=world.resolve).get(
            f"http://{host}:{world.forbidden}/", into, limit=LIMIT
        )
        assert (answer.status, into.getvalue()) == (200, b"secret")
    assert len(world.reached) == 6


async def test_attack_urls_do_not_reach_forbidden_listener(world: World) -> None:
    urls = [f"{scheme}://{host}:{world.forbidden}/" for host in HOSTS for scheme in ("http", "https")]
    urls += [f"http://{host}/" for host in HOSTS]
    urls += [text.format(port=world.forbidden) for text in ADDRESSES]
    for url in urls:
        with pytest.raises(InvalidValue):
            await asyncio.wait_for(world.get(url), 10)
    assert world.reached == []
    tell(f"{len(urls)} addresses, {len(set(HOSTS)) + len(ADDRESSES)} of them different in kind: none was asked")
    assert len(set(HOSTS)) + len(ADDRESSES) >= 60


async def test_redirects_do_not_reach_forbidden_listener(world: World) -> None:
    """The same attempts, each behind a server that may be asked."""
    places = [f"http://{host}:{world.forbidden}/" for host in HOSTS]
    places += [text.format(port=world.forbidden).strip() for text in ADDRESSES]
    places += [f"//{host}:{world.forbidden}/" for host in HOSTS[:10]]
    good = f"http://good.test:{world.permitted}"
    hops = 0
    for place in places:
        if "\r" in place:
            continue  # No header can hold it.
        before = len(world.asked)
        url = f"{good}/to/{place.encode().hex()}"
        try:
            await asyncio.wait_for(world.get(url), 10)
        except InvalidValue:
            pass
        else:  # What urljoin reads as a path stays with the server that may be asked.
            assert all("good.test" in head for head in world.asked[before:]), place
        hops += len(world.asked) > before
    assert hops == len([place for place in places if "\r" not in place])
    assert world.reached == []


@pytest.mark.parametrize("place", ["http://[::1/x", "http://[", "//[zz]/", "http://[1]2/"])
async def test_redirect_to_malformed_url_is_rejected(world: World, place: str) -> None:
    with pytest.raises(InvalidValue, match="only http"):
        await world.get(f"http://good.test:{world.permitted}/to/{place.encode().hex()}")


async def test_redirect_target_is_resolved_and_checked(world: World) -> None:
    good = f"http://good.test:{world.permitted}"
    assert await world.get(f"{good}/to/{f'{good}/plain'.encode().hex()}") == b"hello"
    assert world.looked_up["good.test"] == 2  # once per hop, never twice


async def test_connection_uses_checked_address_despite_dns_rebinding(world: World) -> None:
    """Rebinding: the second look-up would lead to the forbidden listener; there is no second look-up."""
    url = f"http://rebinds.test:{world.permitted}/plain"
    assert await world.get(url) == b"hello"
    assert world.looked_up["rebinds.test"] == 1
    assert "Host: rebinds.test" in world.asked[0]
    with pytest.raises(InvalidValue):  # It has changed by now, and is judged anew.
        await world.get(f"http://rebinds.test:{world.forbidden}/plain")
    assert world.reached == []


async def test_rebinding_redirect_is_rejected(world: World) -> None:
    """The first hop is judged by the first answer, the second one by the second."""
    place = f"http://rebinds.test:{world.forbidden}/".encode().hex()
    with pytest.raises(InvalidValue):
        await world.get(f"http://rebinds.test:{world.permitted}/to/{place}")
    assert (world.looked_up["rebinds.test"], world.reached) == (2, [])


@pytest.mark.parametrize("path", ["silent", "drip", "drip_headers"])
async def test_stalled_response_times_out(world: World, path: str) -> None:
    began = time.monotonic()
    with pytest.raises(InvalidValue, match="too long"):
        await world.get(f"http://good.test:{world.permitted}/{path}/")
    assert SECONDS * 0.9 < time.monotonic() - began < SECONDS + 2


@pytest.mark.parametrize("path", ["endless", "endless_headers", "endless_continue", "huge"])
async def test_endless_response_is_aborted(world: World, path: str) -> None:
    into = io.BytesIO()
    began = time.monotonic()
    with pytest.raises(InvalidValue):
        await world.fetcher().get(f"http://good.test:{world.permitted}/{path}/", into, limit=LIMIT)
    assert len(into.getvalue()) <= LIMIT
    assert time.monotonic() - began < SECONDS + 2


@pytest.mark.parametrize("path", ["lying", "garbage", "nothing", "loop/"])
async def test_incomplete_response_is_rejected(world: World, path: str) -> None:
    with pytest.raises(InvalidValue):
        await world.get(f"http://good.test:{world.permitted}/{path}")
    assert len(world.asked) == (4 if path == "loop/" else 1)


async def test_concurrent_slow_servers_do_not_accumulate_delay(world: World) -> None:
    """Forty at once, eight at a time: those that wait in vain are asked to come again."""
    began = time.monotonic()
    fetcher = world.fetcher()
    url = f"http://good.test:{world.permitted}/silent/"
    found = await asyncio.gather(
        *[fetcher.get(url, io.BytesIO(), limit=LIMIT) for _ in range(40)], return_exceptions=True
    )
    assert sum(isinstance(problem, InvalidValue) for problem in found) >= 8
    assert all(isinstance(problem, InvalidValue | ApiError) for problem in found)
    assert time.monotonic() - began < 2 * SECONDS + 3


async def test_stalled_name_server_times_out(world: World) -> None:
    async def never(_: str, __: int) -> Sequence[IpAddress]:
        await asyncio.sleep(60)
        return []

    with pytest.raises(InvalidValue, match="too long"):
        await Fetcher(resolve=never, seconds=0.5).get("http://slow.test/", io.BytesIO(), limit=LIMIT)


# TLS ------------------------------------------------------------------------------------------


def certificate(directory: Path, name: str) -> Path:
    """A key and a certificate for a name, signed by itself, in one file."""
    made = directory / f"{name}.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    command += ["-addext", f"subjectAltName=DNS:{name}", "-keyout", str(made), "-out", str(directory / "public.pem")]
    subprocess.run(command, check=True, capture_output=True)
    made.write_bytes(made.read_bytes() + (directory / "public.pem").read_bytes())
    return made


async def test_certificate_is_verified_for_host_name_of_pinned_address(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str | None] = []
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    made = certificate(tmp_path, "good.test")
    context.load_cert_chain(made)
    context.sni_callback = lambda _, name, __: names.append(name)
    async with listening(world.serve, "127.0.0.9", tls=context) as world.permitted:
        with pytest.raises(InvalidValue):  # Nobody vouches for this certificate.
            await world.get(f"https://good.test:{world.permitted}/plain")
        trusting = ssl.create_default_context(cafile=str(made))
        monkeypatch.setattr(safe_fetch, "_tls", lambda: trusting)
        assert await world.get(f"https://good.test:{world.permitted}/plain") == b"hello"
        with pytest.raises(InvalidValue):  # The certificate is for another name.
            await world.get(f"https://rebinds.test:{world.permitted}/plain")
    assert names == ["good.test", "good.test", "rebinds.test"]
    assert len(world.asked) == 1

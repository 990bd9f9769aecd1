"""The requests of `bench/fairness.py`: the attacks, each from a separate process, and those of other clients.

Requests are bytes on asyncio sockets, because an HTTP library would need more CPU than many of the responses.
Attackers bind 127.0.0.2 and further loopback addresses, other clients 127.0.0.1, so that the server can distinguish
them.
"""

import asyncio
import contextlib
import json
import resource
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from urllib.parse import quote

from bench.seeded_sites import NS
from tests.security.raw_requests import COMPLETE_REQUEST, NO_BYTES, PARTIAL_REQUEST, expensive_body, raise_file_limit

ONE_CLIENT = ("127.0.0.2",)
MANY_CLIENTS = tuple(f"127.0.1.{number}" for number in range(1, 25))
VICTIM = "127.0.0.1"
READERS = tuple(f"127.0.2.{number}" for number in range(1, 255))  # one for each known list
TIMEOUT = 10.0  # Seconds after which a victim gives up; an attacker waits three times as long.
WIDE_QUERY = "start_date=1970-01-01&per_page=50"
NO_STATUS = "none"  # Instead of a status: connection refused or reset, or no response in time.
CLOSED = "closed by the server"
OUTDATED = " outdated"  # Behind the status: the last known response, because no connection was free.
CONNECTION_ERRORS = (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError)

type Statuses = Counter[str]


@dataclass(frozen=True)
class SiteInfo:
    """Facts about a site that attackers and other clients use.

    `known_lists` are addresses of lists with the event that an editor saves.
    """

    port: int
    categories: tuple[int, ...]
    tags: tuple[int, ...]
    event_id: int
    known_lists: tuple[str, ...]
    authorization: str


type MakeRequest = Callable[[Random, SiteInfo], bytes]


@dataclass(frozen=True)
class Attack:
    """An attack. `make` returns the next request of a connection; `held` is sent once on an idle connection."""

    name: str
    connections: int
    description: str
    make_request: MakeRequest | None = None
    held_bytes: bytes = b""
    trickle: bytes = b""  # sent once a second on a held connection
    reads_response: bool = True
    sources: Sequence[str] = ONE_CLIENT


@dataclass
class AttackResult:
    """The results of the attackers. `rate` is the number of responses, or of held connections opened, per second."""

    statuses: Statuses = field(default_factory=Counter)
    rate: float = 0.0
    cpu: float = 0.0


@dataclass
class ClientResult:
    """The results of one victim: milliseconds, statuses, and the end of the last bad response."""

    times: list[float] = field(default_factory=list[float])
    statuses: Statuses = field(default_factory=Counter)
    last_bad: float = 0.0

    def percentile(self, share: float) -> float:
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")

    @property
    def p50(self) -> float:
        return self.percentile(0.5)

    @property
    def p99(self) -> float:
        return self.percentile(0.99)

    @property
    def failures(self) -> int:
        """Return the number of 5xx responses and of requests without a response."""
        return sum(number for status, number in self.statuses.items() if status == NO_STATUS or status >= "500")


# Requests of attackers --------------------------------------------------------------------------


def get(target: str) -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def post(target: str, media_type: str, body: bytes) -> bytes:
    head = f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media_type}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def expensive_query(rng: Random, site: SiteInfo) -> bytes:
    """Return one of the slowest public reads, with a varying end, so that none is in the response cache."""
    end = f"{rng.randint(2090, 2099)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    end += f"+{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
    near = "geoloc_lat=50&geoloc_lng=10&geoloc_radius=20000&orderby=distance"
    letters = "+".join("aeioubcdfghlmnprstvw")
    junk = f"-q{rng.getrandbits(40):x}"
    queries = (
        f"{WIDE_QUERY}&end_date={end}&geoloc=1",
        f"geoloc=1&end_date={end}",
        f"{WIDE_QUERY}&end_date={end}&geoloc=0",
        f"{WIDE_QUERY}&end_date={end}&{near}",
        f"{WIDE_QUERY}&end_date={end}&{near}&page=3000",
        f"{WIDE_QUERY}&end_date={end}&search={letters}",
        f"{WIDE_QUERY}&end_date={end}&search=a&categories={','.join(map(str, site.categories[:199]))}",
        f"{WIDE_QUERY}&end_date={end}&search=-zzzzz",
        f"{WIDE_QUERY}&end_date={end}&tags={','.join(map(str, site.tags[:200]))}",
        f"{WIDE_QUERY}&end_date={end}&page=4000&orderby=title",
        f"{WIDE_QUERY}&end_date={end}&search=a",
    )
    pages = (f"/events/map/?search=e+{junk}", f"/events/search/?search=a+{junk}")
    return get(rng.choice([*[f"{NS}/events?{query}" for query in queries], *pages]))


def feed_with_junk(rng: Random, _: SiteInfo) -> bytes:
    return get(f"/events.ics?a=1&z={rng.getrandbits(60)}")


def feed_of_search(rng: Random, _: SiteInfo) -> bytes:
    """Return a feed that excludes a word of no event: as large as the whole feed, and never the same request."""
    return get(f"/events.ics?search={quote(f'-q{rng.getrandbits(40):x}')}")


def _event(description: str) -> bytes:
    dates = {"start_date": "2030-01-01 10:00:00", "end_date": "2030-01-01 11:00:00"}
    return json.dumps({"title": "x", "description": description, **dates}).encode()


JSON = "application/json"
_PART = b'--x\r\nContent-Disposition: form-data; name="f%d"\r\n\r\nx\r\n'
BODIES = (
    post(f"{NS}/venues", JSON, expensive_body()),
    post(f"{NS}/events", JSON, _event("<" * 250_000)),
    post(f"{NS}/events", JSON, b'{"title":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    post(f"{NS}/events", JSON, json.dumps({f"f{number}": "<b>" for number in range(20_000)}).encode()),
    post(f"{NS}/events", "application/x-www-form-urlencoded", b"&".join(b"f%d=%%3C" % n for n in range(20_000))),
    post(
        f"{NS}/events",
        "multipart/form-data; boundary=x",
        b"".join(_PART % number for number in range(3_000)) + b"--x--\r\n",
    ),
)


def hostile_request(rng: Random, _: SiteInfo) -> bytes:
    return rng.choice(BODIES)


SLOW_POST = f"POST {NS}/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: {JSON}\r\nContent-Length: 100000\r\n\r\n"

ATTACKS = (
    Attack("queries", 24, "the slowest public reads, in turn", expensive_query),
    Attack("queries, 24 clients", 24, "the same from 24 IP addresses", expensive_query, sources=MANY_CLIENTS),
    Attack("feeds, junk", 12, "/events.ics with an unknown parameter", feed_with_junk),
    Attack("feeds, search", 12, "/events.ics with a different search each time", feed_of_search),
    Attack("feeds, 12 clients", 12, "the same from 12 IP addresses", feed_of_search, sources=MANY_CLIENTS[:12]),
    Attack("bodies", 64, "hostile bodies without credentials", hostile_request),
    Attack("bodies, 24 clients", 64, "the same from 24 IP addresses", hostile_request, sources=MANY_CLIENTS),
    Attack("silent", 1_100, "connections that send nothing", held_bytes=NO_BYTES),
    Attack("half heads", 1_500, "connections with half a request head", held_bytes=PARTIAL_REQUEST),
    Attack("idle", 1_200, "connections kept alive after one request", held_bytes=COMPLETE_REQUEST),
    Attack(
        "slow readers", 100, "/events.ics requested and not read", held_bytes=get("/events.ics"), reads_response=False
    ),
    Attack("slow bodies", 60, "one byte of the body per second", held_bytes=SLOW_POST.encode(), trickle=b" "),
)


# Clients ---------------------------------------------------------------------------------------


async def attack(spec: Attack, site: SiteInfo, seconds: float, pause: float) -> AttackResult:
    """Attack for some seconds and return the results.

    A connection waits for `pause` seconds after a 429 or 503, because this benchmark measures the limits on expensive
    work, not the number of cheap error responses per second.
    """
    raise_file_limit(spec.connections + 500)
    result, deadline = AttackResult(), time.monotonic() + seconds
    attackers = [Attacker(spec, site, number, deadline, pause, result.statuses) for number in range(spec.connections)]
    tasks = [
        asyncio.create_task(one.send_requests() if spec.make_request else one.hold_connections()) for one in attackers
    ]
    await asyncio.wait(tasks, timeout=seconds)
    for task in tasks:  # Abort pending requests, as an attacker would.
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    result.cpu = (usage.ru_utime + usage.ru_stime) / seconds
    result.rate = sum(number for status, number in result.statuses.items() if status != CLOSED) / seconds
    return result


@dataclass(frozen=True)
class Attacker:
    """One connection of an attack, reopened whenever it ends."""

    spec: Attack
    known: SiteInfo
    number: int
    deadline: float
    pause: float
    statuses: Statuses

    @property
    def source(self) -> str:
        return self.spec.sources[self.number % len(self.spec.sources)]

    async def send_requests(self) -> None:
        rng = _make_random(f"{self.spec.name} {self.number}")
        while time.monotonic() < self.deadline:
            try:
                async with _open_connection(self.known.port, self.source) as (reader, writer):
                    while time.monotonic() < self.deadline:
                        await self._send_request(reader, writer, rng)
            except CONNECTION_ERRORS:
                self.statuses[NO_STATUS] += 1
                await asyncio.sleep(max(self.pause, 0.01))

    async def _send_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rng: Random) -> None:
        if self.spec.make_request is not None:
            writer.write(self.spec.make_request(rng, self.known))
        status = await asyncio.wait_for(_read_response(reader), 3 * TIMEOUT)
        self.statuses[status] += 1
        if status in ("429", "503"):
            await asyncio.sleep(self.pause)

    async def hold_connections(self) -> None:
        while time.monotonic() < self.deadline:
            try:
                async with _open_connection(self.known.port, self.source, reads=self.spec.reads_response) as (
                    reader,
                    writer,
                ):
                    self.statuses["opened"] += 1
                    writer.write(self.spec.held_bytes)
                    await self._hold(reader, writer)
            except CONNECTION_ERRORS:
                pass
            self.statuses[CLOSED] += 1
            await asyncio.sleep(max(self.pause, 0.01))

    async def _hold(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hold a connection until the server closes it."""
        while self.spec.trickle:
            await asyncio.sleep(1)
            writer.write(self.spec.trickle)
            await writer.drain()
        if not self.spec.reads_response:
            await asyncio.Event().wait()  # Until the end of the attack.
        while await reader.read(1 << 16):
            pass


def _make_random(name: str) -> Random:
    return Random(f"{name} {time.time_ns()}")  # noqa: S311  Nothing secret.


async def run_clients(site: SiteInfo, seconds: float, interval: float) -> tuple[dict[str, ClientResult], float]:
    """Run the other clients at a constant rate, with a new connection per request; return results and CPU time."""
    results = {name: ClientResult() for name in VICTIMS}
    deadline = time.monotonic() + seconds
    clients = [(name, VICTIM, make) for name, make in VICTIMS.items() if name != KNOWN]
    clients += [(KNOWN, READERS[n], partial(_known_list, n)) for n in range(len(site.known_lists))]
    await asyncio.gather(
        *[
            _run_client(site, client, deadline, max(interval, MIN_INTERVALS.get(client[0], 0.0)), results[client[0]])
            for client in clients
        ]
    )
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return results, (usage.ru_utime + usage.ru_stime) / seconds


async def fill_caches(site: SiteInfo, connections: int) -> None:
    """Save the event, then request each known list on several connections at once, so that all processes know it."""
    await _send_once(site.port, VICTIMS[SAVE](_make_random(SAVE), site))
    for target in site.known_lists:
        await asyncio.gather(*[_send_once(site.port, get(target)) for _ in range(connections)])


async def _run_client(
    site: SiteInfo, client: tuple[str, str, MakeRequest], deadline: float, interval: float, result: ClientResult
) -> None:
    name, source, make_request = client
    rng = _make_random(f"{name} {source}")
    await asyncio.sleep(interval * rng.random())
    while (started := time.monotonic()) < deadline:
        status = NO_STATUS
        with contextlib.suppress(*CONNECTION_ERRORS):
            status = await asyncio.wait_for(_send_once(site.port, make_request(rng, site), source), TIMEOUT)
        ended = time.monotonic()
        result.times.append(1000 * (ended - started))
        result.statuses[status] += 1
        if not status.startswith("200") or ended - started > SLOW_SECONDS[name]:
            result.last_bad = time.time()
        await asyncio.sleep(max(0.0, started + interval - time.monotonic()))


async def _send_once(port: int, request: bytes, source: str = VICTIM) -> str:
    async with _open_connection(port, source) as (reader, writer):
        writer.write(request)
        return await _read_response(reader)


def _uncached_list(rng: Random, _: SiteInfo) -> bytes:
    """Return a cheap list whose start differs by a second each time."""
    day = f"{rng.randint(2027, 2028)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    at = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
    return get(f"{NS}/events?per_page=10&start_date={day}+{at}")


def _known_list(number: int, _: Random, site: SiteInfo) -> bytes:
    return get(site.known_lists[number])


def _save(rng: Random, site: SiteInfo) -> bytes:
    """Return a save of the event, whose new text makes the known lists outdated but not the cached one."""
    body = json.dumps({"description": f"Saved {rng.getrandbits(40):x}"}).encode()
    head = f"PATCH {NS}/events/{site.event_id} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {JSON}\r\n"
    head += f"Authorization: {site.authorization}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


CACHED, UNCACHED, KNOWN, SAVE, HEALTH = "cached list", "uncached list", "known list", "save", "/healthz"
VICTIMS: dict[str, MakeRequest] = {
    CACHED: lambda _, __: get(f"{NS}/events"),
    UNCACHED: _uncached_list,
    KNOWN: partial(_known_list, 0),
    SAVE: _save,
    HEALTH: lambda _, __: get("/healthz"),
}
# Seconds after which a victim counts as not yet recovered.
SLOW_SECONDS = {CACHED: 0.25, UNCACHED: 1.0, KNOWN: 1.0, SAVE: 1.0, HEALTH: 0.1}
# Seconds between two requests of a victim, if they are more than those of the others.
MIN_INTERVALS = {KNOWN: 1.0, SAVE: 1.0}


@contextlib.asynccontextmanager
async def _open_connection(
    port: int, source: str, *, reads: bool = True
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    connection = socket.socket()
    try:
        connection.setblocking(False)
        if not reads:  # The minimum buffer for a client that does not read.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.bind((source, 0))
        await asyncio.wait_for(asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port)), TIMEOUT)
    except BaseException:
        connection.close()
        raise
    reader, writer = await asyncio.open_connection(sock=connection, limit=1 << 20 if reads else 1024)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()  # Discard unread data.


async def _read_response(reader: asyncio.StreamReader) -> str:
    """Read a whole response, discard its body and return its status, and whether it is outdated."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    lines = {name: value for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])}
    if b"chunked" in lines.get(b"transfer-encoding", b""):
        while size := int((await reader.readline()).strip() or b"0", 16):
            await reader.readexactly(size + 2)
        await reader.readline()
    else:
        await _discard(reader, int(lines.get(b"content-length", b"0")))
    return head[9:12].decode() + (OUTDATED if b"age" in lines else "")


async def _discard(reader: asyncio.StreamReader, size: int) -> None:
    while size:
        part = await reader.read(min(size, 1 << 20))
        if not part:
            raise asyncio.IncompleteReadError(b"", size)
        size -= len(part)

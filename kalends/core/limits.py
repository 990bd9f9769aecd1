"""Limits on concurrency, writes, failed attempts and cache size, and the client IP addresses that they use.

If no slot is free, work waits. Owners with the least work in progress go first. Work is rejected if the queue is full
or the wait is too long.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Hashable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from math import ceil
from typing import Final, Self

from kalends.core import errors

# per user, in each process
MAX_WAITING_WRITES: Final = 2


@dataclass(frozen=True, slots=True)
class ConcurrencyLimits:
    per_owner: int
    total: int
    waiting_per_owner: int = 20
    waiting: int = 200


ONE_WRITE: Final = ConcurrencyLimits(per_owner=1, total=1, waiting_per_owner=MAX_WAITING_WRITES, waiting=1000)


class PerOwnerLimiter:
    """Assigns slots to owners, such as clients or users."""

    def __init__(self, limits: ConcurrencyLimits) -> None:
        self._limits = limits
        self._running: Counter[Hashable] = Counter()
        self._in_progress = 0
        self._queues: dict[Hashable, deque[asyncio.Future[None]]] = {}
        self._waiting = 0

    @property
    def waiting(self) -> int:
        return self._waiting

    @property
    def is_idle(self) -> bool:
        return not self._in_progress and not self._waiting

    def slot(self, owner: Hashable, max_wait: float | None = None) -> "Slot":
        """Return a context manager that waits for a slot and holds it.

        `max_wait` is in seconds; None means no limit.
        """
        return Slot(self, owner, max_wait)

    async def acquire(self, owner: Hashable, max_wait: float | None) -> None:
        if self._in_progress < self._limits.total and self._running[owner] < self._limits.per_owner:
            self._begin(owner)
            return
        queue = self._queues.setdefault(owner, deque())
        if len(queue) >= self._limits.waiting_per_owner or self._waiting >= self._limits.waiting:
            self._discard_idle(owner)
            raise errors.overloaded()
        waiter = asyncio.get_running_loop().create_future()
        queue.append(waiter)
        self._waiting += 1
        try:
            async with asyncio.timeout(max_wait):
                await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled():
                self.release(owner)  # The slot was assigned just as the wait timed out or was canceled.
            elif waiter in queue:
                queue.remove(waiter)
                self._waiting -= 1
                self._discard_idle(owner)
            raise (errors.overloaded() if isinstance(error, TimeoutError) else error) from error

    def _begin(self, owner: Hashable) -> None:
        self._running[owner] += 1
        self._in_progress += 1

    def release(self, owner: Hashable) -> None:
        self._running[owner] -= 1
        self._in_progress -= 1
        if owner in self._queues:
            # In a tie, other owners now go first, even if they started waiting later.
            self._queues[owner] = self._queues.pop(owner)
        self._discard_idle(owner)
        while self._in_progress < self._limits.total and (next_owner := self._next_owner()) is not None:
            queue = self._queues.pop(next_owner)
            waiter = queue.popleft()
            self._waiting -= 1
            self._queues[next_owner] = queue  # Move the owner behind the others.
            if not waiter.cancelled():
                self._begin(next_owner)
                waiter.set_result(None)
            self._discard_idle(next_owner)

    def _next_owner(self) -> Hashable | None:
        """Return the waiting owner with the least work in progress; ties go to the owner that has waited longest."""
        eligible = [owner for owner in self._queues if self._running[owner] < self._limits.per_owner]
        return min(eligible, key=lambda owner: self._running[owner], default=None)

    def _discard_idle(self, owner: Hashable) -> None:
        if not self._running[owner]:
            del self._running[owner]
        if owner in self._queues and not self._queues[owner]:
            del self._queues[owner]


@dataclass(frozen=True, slots=True)
class Slot:
    """Holds a slot for an owner.

    This is a class because every request needs a slot, and a generator would be slower.
    """

    limiter: PerOwnerLimiter
    owner: Hashable
    max_wait: float | None

    async def __aenter__(self) -> None:
        await self.limiter.acquire(self.owner, self.max_wait)

    async def __aexit__(self, *_: object) -> None:
        self.limiter.release(self.owner)


class WriteTurns:
    """Makes a site's users take turns writing, so a user with many writes delays another user by only one write.

    Turns apply within one process. Between processes, the site lock determines the order.
    """

    def __init__(self) -> None:
        self._by_site: dict[int, PerOwnerLimiter] = {}
        self._waiting: Counter[tuple[int, int]] = Counter()

    async def take(self, site_id: int, user_id: int) -> None:
        limiter = self._by_site.setdefault(site_id, PerOwnerLimiter(ONE_WRITE))
        try:
            await limiter.acquire(user_id, None)
        finally:
            self._discard_idle(site_id)

    def end(self, site_id: int, user_id: int) -> None:
        self._by_site[site_id].release(user_id)
        self._discard_idle(site_id)

    def _discard_idle(self, site_id: int) -> None:
        # The limiter may already have been discarded when a canceled write gets here.
        limiter = self._by_site.get(site_id)
        if limiter is not None and limiter.is_idle:
            del self._by_site[site_id]

    @contextmanager
    def waiting(self, site_id: int, user_id: int) -> Iterator[None]:
        """Count a write as waiting; raise 429 if too many of the user's writes are already waiting."""
        key = (site_id, user_id)
        if self._waiting[key] >= MAX_WAITING_WRITES:
            raise errors.too_many_writes()
        self._waiting[key] += 1
        try:
            yield
        finally:
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key]


@dataclass(slots=True)
class WriteTurn:
    """Holds a user's turn to write.

    The turn begins in `waiting` and ends with this context, after the transaction.
    """

    turns: WriteTurns
    key: tuple[int, int] | None = None  # site and user, while it is their turn

    @asynccontextmanager
    async def waiting(self, site_id: int, user_id: int) -> AsyncIterator[None]:
        """Wait for the turn.

        The caller locks the site inside the block. The write counts as waiting until the block ends.
        """
        if self.key is not None:  # An operation can lock a site that its caller has already locked.
            yield
            return
        with self.turns.waiting(site_id, user_id):
            await self.turns.take(site_id, user_id)
            self.key = (site_id, user_id)
            yield

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.key is not None:
            self.turns.end(*self.key)


@dataclass(frozen=True, slots=True)
class Limit:
    """Failed attempts allowed in a burst, and seconds until one is forgiven."""

    burst: int
    seconds: float


def remaining_count(limit: Limit, count: float, counted_at: datetime, now: datetime) -> float:
    """Return an earlier count minus the attempts forgiven since then.

    A time before `counted_at` does not raise the count.
    """
    elapsed = max(0.0, (now - counted_at).total_seconds())
    return max(0.0, count - elapsed / limit.seconds)


def seconds_to_wait(limit: Limit, count: float, counted_at: datetime, now: datetime) -> int:
    """Return the seconds until another attempt is allowed; 0 if it is allowed now."""
    excess = remaining_count(limit, count, counted_at, now) - (limit.burst - 1)
    return ceil(round(excess * limit.seconds, 3)) if excess > 0 else 0


# A client's IP address, even behind proxies, and its rate-limit key.

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network


def read_network(text: str) -> IpNetwork:
    """Parse an IP address or network: `127.0.0.1`, `10.1.0.0/16`, `fd00::/8`."""
    try:
        return ip_network(text.strip(), strict=False)
    except ValueError:
        raise ValueError(
            "each entry must be an IP address or a network, such as 127.0.0.1, 10.1.0.0/16 or fd00::/8"
        ) from None


def find_client_ip(peer: str, forwarded: str, trusted: Sequence[IpNetwork]) -> str:
    """Return the client's most trustworthy IP address.

    Each proxy appends its peer's address to `X-Forwarded-For` (`forwarded`), so an entry is as trustworthy as the
    proxy that wrote it. The search runs from right to left for as long as `trusted` proxies wrote the entries. The
    first address that is not a trusted proxy is the client, which might have forged all entries to the left. An entry
    that is not an IP address ends the search.
    """
    if not trusted:
        return _normalize_ip(peer)
    client_ip = _parse_ip(peer)
    if client_ip is None:
        return peer
    for entry in reversed(forwarded.split(",")):
        if not _is_trusted(client_ip, trusted):
            break
        earlier = _parse_ip(entry)
        if earlier is None:
            break
        client_ip = earlier
    return str(client_ip)


def is_trusted(peer: str, trusted: Sequence[IpNetwork]) -> bool:
    ip = _parse_ip(peer)
    return ip is not None and _is_trusted(ip, trusted)


@lru_cache(maxsize=4096)  # limited, because the addresses come from requests
def _normalize_ip(text: str) -> str:
    return str(_parse_ip(text) or text)


def _is_trusted(ip: IpAddress, trusted: Sequence[IpNetwork]) -> bool:
    return any(ip.version == network.version and ip in network for network in trusted)


def _parse_ip(text: str) -> IpAddress | None:
    """Parse an IP address; map IPv4-mapped IPv6 addresses to IPv4, and reject zone IDs, which are arbitrary text."""
    try:
        ip = ip_address(text.strip())
    except ValueError:
        return None
    if isinstance(ip, IPv4Address):
        return ip
    return None if ip.scope_id is not None else ip.ipv4_mapped or ip


@lru_cache(maxsize=4096)  # limited, because the addresses come from requests
def rate_limit_key(client_ip: str) -> str:
    """Return a client's rate-limit key: its IPv4 address, or the /64 network of its IPv6 address.

    A client with one address in a /64 usually controls all of them. Text that is not an IP address is only truncated.
    """
    try:
        ip = ip_address(client_ip.partition("%")[0])
    except ValueError:
        return client_ip[:100]
    if isinstance(ip, IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(IPv6Network((int(ip) >> 64 << 64, 64)))


class ByteLru[K: Hashable, V]:
    """Caches values up to a total size, evicting the least recently used values first."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._size = 0
        self._entries: OrderedDict[K, tuple[int, V]] = OrderedDict()

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[1]

    def put(self, key: K, value: V, size: int) -> None:
        self.discard(key)
        self._entries[key] = (size, value)
        self._size += size
        while self._size > self._budget and self._entries:
            _, (evicted, _) = self._entries.popitem(last=False)
            self._size -= evicted

    def discard(self, key: K) -> None:
        size, _ = self._entries.pop(key, (0, None))
        self._size -= size


# Limit for the request line and all headers, enforced by both the server process and the application.
MAX_HEAD_BYTES: Final = 32 * 1024

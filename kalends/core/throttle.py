"""Slows guessing down: so many wrong tries at once, then one in a while. The time is an argument."""

from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Address, IPv6Network, ip_address
from math import ceil


@dataclass(frozen=True, slots=True)
class Limit:
    """So many wrong tries are free; one is forgiven every so many seconds."""

    burst: int
    seconds: float


def remaining_count(limit: Limit, count: float, counted_at: datetime, now: datetime) -> float:
    """What is left of a count that was taken some time ago. A clock that was set back adds nothing."""
    elapsed = max(0.0, (now - counted_at).total_seconds())
    return max(0.0, count - elapsed / limit.seconds)


def seconds_to_wait(limit: Limit, count: float, counted_at: datetime, now: datetime) -> int:
    """Until there is room for one more whole try; 0: now."""
    excess = remaining_count(limit, count, counted_at, now) - (limit.burst - 1)
    return ceil(round(excess * limit.seconds, 3)) if excess > 0 else 0


def rate_limit_key(client_ip: str) -> str:
    """Return what a client is counted as: an IPv4 address, or the /64 that an IPv6 address is in.

    Whoever has one address of a /64 has all of them. Anything else is counted as it is.
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

"""Throttling of failed attempts: a burst, then one per interval. The current time is an argument."""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Network, ip_address
from math import ceil


@dataclass(frozen=True, slots=True)
class Limit:
    """Failed attempts allowed in a burst, and seconds until one is forgiven."""

    burst: int
    seconds: float


def remaining_count(limit: Limit, count: float, counted_at: datetime, now: datetime) -> float:
    """Return the rest of an earlier count. The count does not grow if the system clock was set back."""
    elapsed = max(0.0, (now - counted_at).total_seconds())
    return max(0.0, count - elapsed / limit.seconds)


def seconds_to_wait(limit: Limit, count: float, counted_at: datetime, now: datetime) -> int:
    """Return the seconds until another attempt is allowed; 0 if it is allowed now."""
    excess = remaining_count(limit, count, counted_at, now) - (limit.burst - 1)
    return ceil(round(excess * limit.seconds, 3)) if excess > 0 else 0


@lru_cache(maxsize=4096)  # bounded, because addresses come from requests
def rate_limit_key(client_ip: str) -> str:
    """Return the key under which a client is counted: its IPv4 address, or the /64 network of its IPv6 address.

    A client with one address of a /64 usually controls all of them. Other texts are keys themselves.
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

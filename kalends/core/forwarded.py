"""The IP address of a client behind proxies."""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

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
    """Return the IP address of the client, as far as it can be trusted.

    Each proxy appends the address of its peer to `X-Forwarded-For` (`forwarded`), so an entry is as trustworthy as
    the proxy that wrote it. The entries are read from the right while their writers are `trusted`. The first address
    that is not a trusted proxy is the client; it may have forged all entries to the left. An entry that is not an IP
    address ends the search.
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
    """Return whether a peer is one of the trusted proxies."""
    ip = _parse_ip(peer)
    return ip is not None and _is_trusted(ip, trusted)


@lru_cache(maxsize=4096)  # bounded, because addresses come from requests
def _normalize_ip(text: str) -> str:
    return str(_parse_ip(text) or text)


def _is_trusted(ip: IpAddress, trusted: Sequence[IpNetwork]) -> bool:
    return any(ip.version == network.version and ip in network for network in trusted)


def _parse_ip(text: str) -> IpAddress | None:
    """Parse an IP address; convert an IPv4-mapped IPv6 address, as dual-stack sockets report it, to IPv4.

    Addresses with a zone ID (`fe80::1%eth0`) are rejected, because it is text of arbitrary length and content.
    """
    try:
        ip = ip_address(text.strip())
    except ValueError:
        return None
    if isinstance(ip, IPv4Address):
        return ip
    return None if ip.scope_id is not None else ip.ipv4_mapped or ip

"""Which client a request comes from, when it has passed proxies."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network


def read_network(text: str) -> IpNetwork:
    """Reads an address or a network: `127.0.0.1`, `10.1.0.0/16`, `fd00::/8`."""
    try:
        return ip_network(text.strip(), strict=False)
    except ValueError:
        raise ValueError(
            "each entry must be an IP address or a network, such as 127.0.0.1, 10.1.0.0/16 or fd00::/8"
        ) from None


def find_client_ip(peer: str, forwarded: str, trusted: Sequence[IpNetwork]) -> str:
    """Returns the address that a request comes from, as far as it can be believed.

    Each proxy appends the address it was called from to `X-Forwarded-For` (`forwarded`), so an entry is
    worth as much as the proxy that wrote it: the entries are read from the right for as long as their
    writers are `trusted`. The first address that is not a trusted proxy is the client; whatever stands
    to its left, the client may have made up. An entry that is not an address ends the reading.
    """
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


def _is_trusted(ip: IpAddress, trusted: Sequence[IpNetwork]) -> bool:
    return any(ip.version == network.version and ip in network for network in trusted)


def _parse_ip(text: str) -> IpAddress | None:
    """Reads an address; one of IPv4 that a socket for both families shows as IPv6 becomes what it is.

    A zone (`fe80::1%eth0`) is refused: it is text of any length and content.
    """
    try:
        ip = ip_address(text.strip())
    except ValueError:
        return None
    if isinstance(ip, IPv4Address):
        return ip
    return None if ip.scope_id is not None else ip.ipv4_mapped or ip

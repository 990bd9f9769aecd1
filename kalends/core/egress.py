"""Rules for connections to user-supplied URLs. This module does not resolve names.

Every IP address that a name resolves to must pass `may_connect` before anything is sent.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import quote, urljoin, urlsplit

from kalends.core.errors import InvalidValue

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network

MAX_URL_LENGTH: Final = 2000
PORT_BY_SCHEME: Final = {"http": 80, "https": 443}
DEFAULT_PORTS: Final = frozenset(PORT_BY_SCHEME.values())
# Networks without public servers that some Python versions' ipaddress module does not report as special.
NON_PUBLIC_NETWORKS: Final[tuple[IpNetwork, ...]] = (
    ip_network("192.0.0.0/24"),  # IETF protocol assignments
    ip_network("192.88.99.0/24"),  # 6to4 relays
    ip_network("168.63.129.16/32"),  # a cloud provider's platform service
    ip_network("3fff::/20"),  # reserved for documentation
)
NAT64: Final = IPv6Network("64:ff9b::/96")
GLOBAL_UNICAST: Final = IPv6Network("2000::/3")


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed URL. `host` is ASCII, without brackets."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def ip_literal(self) -> IpAddress | None:
        try:
            return ip_address(self.host)
        except ValueError:
            return None

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORT_BY_SCHEME[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class AllowedNetwork:
    """A non-public network that the operator allows, optionally on a single port."""

    network: IpNetwork
    port: int | None  # None means the default ports

    def allows(self, ip: IpAddress, port: int) -> bool:
        if ip.version != self.network.version or ip not in self.network:
            return False
        return port in DEFAULT_PORTS if self.port is None else port == self.port


def read_allowed_network(text: str) -> AllowedNetwork:
    """Parse a network such as `10.1.0.0/16`, `10.1.2.3:8080` or `[fd00::1]:8080`."""
    match = re.fullmatch(r"(?:\[([^\]]+)\]|([^:\[\]]+)|([0-9a-fA-F:/.]+))(?::([0-9]{1,5}))?", text.strip())
    if match is None:
        raise ValueError(
            "each entry must be a network such as 10.1.0.0/16, or an IP address and port such as 10.1.2.3:8080"
        )
    network = ip_network(match[1] or match[2] or match[3], strict=False)
    return AllowedNetwork(network, int(match[4]) if match[4] else None)


def read_target(text: str) -> Target:
    """Parse an http or https URL. Reject credentials and unusual host notations."""
    if len(text) > MAX_URL_LENGTH or re.search(r"[\s\\\x00-\x20\x7f]", text):
        raise _invalid_url()
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise _invalid_url() from None
    if parts.scheme not in PORT_BY_SCHEME or not parts.hostname or "@" in parts.netloc or port == 0:
        raise _invalid_url()
    if "[" in parts.netloc and ":" not in parts.hostname:
        raise _invalid_url()
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = f"?{quote(parts.query, safe="/%:@!$&'()*+,;=~-._?")}" if parts.query else ""
    return Target(parts.scheme, _read_host(parts.hostname), port or PORT_BY_SCHEME[parts.scheme], path + query)


def read_redirect(target: Target, location: str) -> str:
    """Return the absolute URL that a redirect leads to. It still has to pass the same checks as any other URL."""
    try:
        return urljoin(f"{target.scheme}://{target.authority}{target.path}", location)
    except ValueError:
        raise _invalid_url() from None


def may_connect(
    ip: IpAddress, port: int, allowed_networks: Sequence[AllowedNetwork] = (), ports: Collection[int] = DEFAULT_PORTS
) -> bool:
    """Return whether a connection is allowed: to public addresses on the default ports, or to allowed networks."""
    if any(entry.allows(ip, port) for entry in allowed_networks):
        return True
    return port in ports and is_public(ip)


def is_public(ip: IpAddress) -> bool:
    if isinstance(ip, IPv6Address):
        if ip in NAT64:
            return is_public(IPv4Address(int(ip) & 0xFFFFFFFF))
        if ip.sixtofour or ip.teredo or ip not in GLOBAL_UNICAST:
            return False  # These ranges embed an IPv4 address or are not routed.
    if ip.is_multicast or ip.is_reserved or ip.is_link_local or ip.is_loopback:
        return False
    return ip.is_global and not any(
        ip.version == network.version and ip in network for network in NON_PUBLIC_NETWORKS
    )


def _read_host(host: str) -> str:
    """Convert a host name to ASCII.

    Reject unusual IP notations (`127.1`, `0x7f000001`), because they bypass checks.
    """
    if "%" in host:
        raise _invalid_url()
    if ":" in host:
        try:
            return str(IPv6Address(host))
        except ValueError:
            raise _invalid_url() from None
    try:
        ascii_host = host.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError:
        raise _invalid_url() from None
    if not re.fullmatch(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", ascii_host) or len(ascii_host) > 253:
        raise _invalid_url()
    if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", ascii_host.rpartition(".")[2]):
        try:
            return str(IPv4Address(ascii_host))
        except ValueError:
            raise _invalid_url() from None
    return ascii_host


def _invalid_url() -> InvalidValue:
    return InvalidValue("must be an http or https URL of a public server.")

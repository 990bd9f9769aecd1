"""Which client a request comes from: proxies are believed as far as they are trusted, and no further."""

import pytest

from kalends.core.limits import find_client_ip, read_network

TRUSTED = [read_network(text) for text in ("127.0.0.1", "10.1.0.0/16", "fd00::/8")]


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        # Nobody in front, or nobody who is trusted: the header is worth nothing.
        ("203.0.113.5", "", "203.0.113.5"),
        ("203.0.113.5", "198.51.100.7", "203.0.113.5"),
        ("203.0.113.5", "198.51.100.7, 127.0.0.1", "203.0.113.5"),
        # One proxy, two, and two by IPv6.
        ("127.0.0.1", "203.0.113.5", "203.0.113.5"),
        ("127.0.0.1", "203.0.113.5, 10.1.2.3", "203.0.113.5"),
        ("fd00::1", "2001:db8::7,fd00::2", "2001:db8::7"),
        # The client can forge everything to the left of its own address.
        ("127.0.0.1", "198.51.100.7, 203.0.113.5", "203.0.113.5"),
        ("127.0.0.1", "198.51.100.7, 203.0.113.5, 10.1.2.3", "203.0.113.5"),
        ("127.0.0.1", "10.1.9.9, 127.0.0.1, 203.0.113.5, 10.1.2.3", "203.0.113.5"),
        # An entry that is no address ends the walk at the last that was believed.
        ("127.0.0.1", "203.0.113.5, nonsense", "127.0.0.1"),
        ("127.0.0.1", "203.0.113.5, unknown, 10.1.2.3", "10.1.2.3"),
        ("127.0.0.1", "203.0.113.5,", "127.0.0.1"),
        ("127.0.0.1", "", "127.0.0.1"),
        ("127.0.0.1", ",,,", "127.0.0.1"),
        ("127.0.0.1", "203.0.113.5:4711", "127.0.0.1"),
        ("127.0.0.1", "127.1", "127.0.0.1"),
        ("127.0.0.1", "010.001.002.003", "127.0.0.1"),
        ("127.0.0.1", "fe80::1%" + "x" * 5000, "127.0.0.1"),
        ("127.0.0.1", "x" * 100_000, "127.0.0.1"),
        # Only proxies on the way: the first of them asks for itself.
        ("127.0.0.1", "10.1.2.3, 10.1.2.4", "10.1.2.3"),
        # One address, however it is written.
        ("::ffff:127.0.0.1", "203.0.113.5", "203.0.113.5"),
        ("127.0.0.1", "::ffff:203.0.113.5", "203.0.113.5"),
        ("127.0.0.1", "2001:DB8:0:0::7", "2001:db8::7"),
        ("127.0.0.1", " \t203.0.113.5 ", "203.0.113.5"),
        # A socket that has no address.
        ("", "203.0.113.5", ""),
    ],
)
def test_client_is_last_untrusted_address(peer: str, forwarded: str, client: str) -> None:
    assert find_client_ip(peer, forwarded, TRUSTED) == client


def test_client_is_peer_without_trusted_proxies() -> None:
    assert find_client_ip("127.0.0.1", "203.0.113.5", []) == "127.0.0.1"


@pytest.mark.parametrize("text", ["", "proxy", "10.1.0.0/33", "10.1", "127.0.0.1:80", "*", "fd00::/200", "true"])
def test_invalid_network_is_rejected_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match=r"such as 127\.0\.0\.1, 10\.1\.0\.0/16"):
        read_network(text)

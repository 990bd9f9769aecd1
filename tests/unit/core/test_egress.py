"""Which addresses the server may be sent to by others."""

from ipaddress import ip_address

import pytest

from kalends.core.egress import is_public, may_connect, read_allowed_network, read_target
from kalends.core.errors import InvalidValue

PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.215.14", "100.63.255.255", "172.15.0.1", "172.32.0.1", "2606:4700::1111",
          "2001:4860:4860::8888", "64:ff9b::808:808"]  # fmt: skip
NOT_PUBLIC = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254",
    "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.9", "192.0.2.1",
    "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "224.0.1.1",
    "239.255.255.250", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::",
    "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "ff0e::1", "4000::1",
]  # fmt: skip


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_are_allowed_on_standard_ports(text: str) -> None:
    address = ip_address(text)
    assert is_public(address)
    assert [port for port in (22, 80, 443, 5432, 8080) if may_connect(address, port)] == [80, 443]


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_non_public_addresses_are_blocked(text: str) -> None:
    address = ip_address(text)
    assert not is_public(address)
    assert not any(may_connect(address, port) for port in (22, 80, 443, 5432, 8080))


def test_operator_can_allow_networks_and_ports() -> None:
    rows = [read_allowed_network(text) for text in ("10.1.0.0/16", "10.2.3.4:8080", "[fd00::1]:8080", "fd01::/16")]

    def allowed_ports(address: str) -> list[int]:
        return [port for port in (22, 80, 443, 8080) if may_connect(ip_address(address), port, rows)]

    assert allowed_ports("10.1.9.9") == [80, 443]
    assert allowed_ports("10.2.3.4") == [8080]
    assert allowed_ports("fd00::1") == [8080]
    assert allowed_ports("fd01::5") == [80, 443]
    assert allowed_ports("10.2.3.5") == allowed_ports("fd00::2") == allowed_ports("127.0.0.1") == []


@pytest.mark.parametrize("text", ["", "intranet", "10.1.0.0/99", "10.1.2.3:port", "[fd00::1"])
def test_invalid_networks_cannot_be_allowed(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_allowed_network(text)


@pytest.mark.parametrize(
    ("text", "host", "port", "path", "authority"),
    [
        ("http://example.org", "example.org", 80, "/", "example.org"),
        ("https://example.org:8443/a b".replace(" ", "%20"), "example.org", 8443, "/a%20b", "example.org:8443"),
        ("https://EXAMPLE.org./ä?q=ü#part", "example.org", 443, "/%C3%A4?q=%C3%BC", "example.org"),
        ("http://bücher.example/", "xn--bcher-kva.example", 80, "/", "xn--bcher-kva.example"),
        ("http://127.0.0.1/", "127.0.0.1", 80, "/", "127.0.0.1"),
        ("http://１２７.０.０.１/", "127.0.0.1", 80, "/", "127.0.0.1"),
        ("http://[::1]:81/", "::1", 81, "/", "[::1]:81"),
        ("http://[0:0:0:0:0:ffff:7f00:1]/", "::ffff:7f00:1", 80, "/", "[::ffff:7f00:1]"),
    ],
)
def test_url_is_parsed_into_target(text: str, host: str, port: int, path: str, authority: str) -> None:
    target = read_target(text)
    parsed = (target.host.replace("::ffff:127.0.0.1", "::ffff:7f00:1"), target.port, target.path)
    assert parsed == (host, port, path)
    assert target.authority.replace("::ffff:127.0.0.1", "::ffff:7f00:1") == authority


@pytest.mark.parametrize(
    "text",
    [
        "", "example.org", "//example.org/", "file:///etc/passwd", "ftp://example.org/", "gopher://example.org/",
        "data:image/png;base64,AA", "javascript:alert(1)", "http://", "http:///a", "http://:80/", "http://a@b.example/",
        "http://a:b@b.example/", "http://@b.example/", "http://b.example:0/", "http://b.example:99999/",
        "http://b.example:x/", "http://b.example\\@a.example/", "http://b.example/\r\nHost: a", "http://b.exa mple/",
        "http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0177.0.0.1/",
        "http://017700000001/", "http://127.0.0.01/", "http://1.2.3.4.5/", "http://256.1.1.1/", "http://[::1",
        "http://]/",
        "http://[fe80::1%25eth0]/", "http://[v1.a]/", "http://[127.0.0.1]/", "http://a..b/",
        "http://" + "a" * 64 + ".b/", "http://x/" + "a" * 2000,
    ],
)  # fmt: skip
def test_ambiguous_urls_are_rejected(text: str) -> None:
    with pytest.raises(InvalidValue):
        read_target(text)

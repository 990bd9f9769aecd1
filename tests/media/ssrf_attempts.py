"""Attempts to make the server ask what it must not: addresses in every notation, names, redirects, schemes."""

from collections.abc import Mapping
from typing import Final

# Names as a hostile name server answers them: each look-up takes the next answer, the last one stays.
HOSTILE_NAMES: Final[Mapping[str, list[list[str]]]] = {
    "loopback.attacker.test": [["127.0.0.1"]],
    "six.attacker.test": [["::1"]],
    "private.attacker.test": [["10.0.0.1"]],
    "metadata.attacker.test": [["169.254.169.254"]],
    "mixed.attacker.test": [["203.0.114.1", "127.0.0.1"]],
    "mixed-last.attacker.test": [["2606:4700::1", "203.0.114.1", "::1"]],
    "mapped.attacker.test": [["::ffff:127.0.0.1"]],
    "nat64.attacker.test": [["64:ff9b::7f00:1"]],
    "sixtofour.attacker.test": [["2002:7f00:1::1"]],
    "teredo.attacker.test": [["2001:0:0:0:0:0:80ff:fffe"]],
    "unspecified.attacker.test": [["0.0.0.0"]],
    "multicast.attacker.test": [["224.0.0.251"]],
    "cgnat.attacker.test": [["100.100.100.200"]],
    "ula.attacker.test": [["fd00:ec2::254"]],
    "linklocal.attacker.test": [["fe80::1"]],
    "broadcast.attacker.test": [["255.255.255.255"]],
    "nothing.attacker.test": [[]],
}

# Hosts that resolve to this machine or to another private address.
HOSTILE_HOSTS: Final = (
    "127.0.0.1", "127.0.0.2", "127.1", "127.0.1", "127.255.255.254", "0", "0.0.0.0", "0x7f.0.0.1", "0x7f.1",
    "0x7f000001", "0x7F000001", "2130706433", "017700000001", "0177.0.0.1", "0177.0.0.01", "00000177.0.0.1",
    "127.0.0.1.", "%31%32%37.0.0.1", "127。0。0。1", "１２７.０.０.１", "①②⑦.⓪.⓪.①", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
    "localhost", "LOCALHOST", "localhost.", "ip6-localhost",
    "[::1]", "[0:0:0:0:0:0:0:1]", "[0000::1]", "[::]", "[::127.0.0.1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
    "[::ffff:0:7f00:1]", "[64:ff9b::127.0.0.1]", "[64:ff9b:1::127.0.0.1]", "[2002:7f00:1::]", "[fe80::1%25lo]",
    "[::1%25lo]", "[fe80::1]", "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]", "[2001:db8::1]", "[3fff::1]",
    "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16",
    "192.0.0.192", "224.0.0.1", "240.0.0.1", "255.255.255.255", "198.18.0.1", "0.0.0.1", "2852039166",
    "user@127.0.0.1", "user:word@127.0.0.1", "example.org@127.0.0.1", "127.0.0.1#@example.org",
    "example.org\\@127.0.0.1", "127.0.0.1?@example.org", *HOSTILE_NAMES,
)  # fmt: skip

# Whole addresses; {port} is that of the forbidden listener.
HOSTILE_URLS: Final = (
    "file:///etc/passwd", "file://127.0.0.1:{port}/", "ftp://127.0.0.1:{port}/", "gopher://127.0.0.1:{port}/_GET%20/",
    "dict://127.0.0.1:{port}/", "ldap://127.0.0.1:{port}/", "jar:http://127.0.0.1:{port}/!/", "//127.0.0.1:{port}/",
    "data:image/png;base64,iVBORw0KGgo=", "unix:///var/run/postgresql/.s.PGSQL.5432", "http+unix://%2Ftmp%2Fx/",
    "http:/127.0.0.1:{port}/", "http:127.0.0.1:{port}", "http:///127.0.0.1:{port}/", "http://127.0.0.1:{port}\\x",
    "http://127.0.0.1:{port}/\r\nX: y", " http://127.0.0.1:{port}/", "http://\t127.0.0.1:{port}/", "HTTP://127.0.0.1:{port}/",
    "http://[::1]:{port}@127.0.0.1:{port}/", "https://127.0.0.1:{port}/",
)  # fmt: skip

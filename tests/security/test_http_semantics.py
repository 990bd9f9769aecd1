"""Details of HTTP: the log (L3), the parser (L8), tags of lists (L9), negotiation (L10), `_fields` (L12)."""

import base64
import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.seeded_sites import run_command
from tests.conftest import replace_database, temporary_database
from tests.robustness.site_fixtures import DATES, Login, add_editor
from tests.security.raw_requests import (
    API_PATH,
    parse_reply,
    seeded_database,
    send_bytes,
    send_request,
    total_cpu_seconds,
)
from tests.servers import Server

FORGED_LOG_LINE = "%0a2026-01-01T00:00:00.000+00:00 event=request method=GET status=200 path=/FORGED"
CONTROL_CHARACTERS = ("%0a", "%0d", "%0d%0a", "%1b[31m", "%00", "%08", "%0b", "%7f", "%c2%85", "%e2%80%a8")


@pytest.fixture(scope="module")
def login_and_server(
    postgres_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Login, Server]]:
    with seeded_database(postgres_url, template_database) as url:
        login = add_editor(url)
        with Server.start(url, log=tmp_path_factory.mktemp("details") / "log") as server:
            yield login, server


@pytest.fixture(scope="module")
def server(login_and_server: tuple[Login, Server]) -> Server:
    return login_and_server[1]


@pytest.mark.parametrize("log_format", ["plain", "json"])
def test_request_is_one_log_line_for_any_path(database_url: str, tmp_path: Path, log_format: str) -> None:
    environment = {"KALENDS_LOG_FORMAT": log_format}
    with Server.start(database_url, log=tmp_path / "log", environment=environment) as server:
        skipped = len(server.log.read_bytes())
        paths = [f"/x{control}y" for control in CONTROL_CHARACTERS] + [f"/x{FORGED_LOG_LINE.replace(' ', '%20')}"]
        for path in paths:
            assert 300 <= send_request(server, path).status < 500, path
            # Some of these are refused by the parser, which has no line for them.
            send_request(server, "/healthz", hosts=[b"a\x1b[31m\x08test"])
        deadline = time.monotonic() + 5
        while (log := server.log.read_bytes()[skipped:]).count(b"/x") < len(paths) and time.monotonic() < deadline:
            time.sleep(0.1)
    lines = [line for line in log.split(b"\n") if b"/x" in line or b"FORGED" in line]
    assert len(lines) == len(paths), lines
    assert not [byte for byte in log if byte < 0x20 and byte != 0x0A], log
    if log_format == "plain":  # In JSON they are inside a string.
        assert not {"\x7f", "\x85", "\u2028"} & set(log.decode())
    assert not [line for line in log.split(b"\n") if line.startswith(b"2026-01-01T00:00:00.000")]


def test_duplicate_host_header_is_rejected(server: Server) -> None:
    for hosts in (["a.test", "a.test"], ["a.test", "b.test"], ["", "a.test"]):
        assert send_request(server, hosts=hosts).status == 400


def test_cleartext_http_2_is_rejected(server: Server) -> None:
    settings = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
    received = send_bytes(server, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings, timeout=20)
    assert received == b"" or received.startswith(b"HTTP/1.1 4"), received
    upgrade = {"Upgrade": "h2c", "HTTP2-Settings": "AAMAAABkAAQCAAAAAAIAAAAA"}
    assert send_request(server, "/healthz", headers=upgrade).status == 200  # The connection stays HTTP/1.1.


@pytest.mark.parametrize("target", ["evil:80", "evil.example:443"])
def test_connect_method_is_rejected(server: Server, target: str) -> None:
    reply = parse_reply(
        send_bytes(server, f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n".encode())
    )
    assert (reply.status, "location" in reply.headers) == (405, False)


def test_private_writes_do_not_change_etags_of_public_lists(login_and_server: tuple[Login, Server]) -> None:
    login, server = login_and_server
    credentials = base64.b64encode(":".join(login).encode()).decode()
    headers = {"Content-Type": "application/json", "Authorization": f"Basic {credentials}"}

    def write(kind: str, **fields: str) -> None:
        body = json.dumps(fields).encode()
        assert send_request(server, f"{API_PATH}/{kind}", method="POST", headers=headers, body=body).status == 201

    def tags() -> dict[str, str]:
        paths = [f"{API_PATH}/{kind}?per_page=5" for kind in ("events", "venues", "organizers", "categories", "tags")]
        return {path: send_request(server, path).headers["etag"] for path in paths}

    before = tags()
    for number in range(5):
        write("events", title=f"Hidden {number}", status="draft", **DATES)
        write("venues", venue=f"Hidden {number}", status="private")
    assert tags() == before
    write("venues", venue="Shown", status="publish")
    changed = [path for path, tag in tags().items() if tag != before[path]]
    assert changed == [f"{API_PATH}/venues?per_page=5"]


@pytest.mark.parametrize(
    ("accepted", "is_packed"),
    [
        ("gzip", True),
        ("GZIP", True),
        ("br;q=1.0, gzip;q=0.8, *;q=0.1", True),
        ("gzip;q=0.5", True),
        ("gzip;q=0, identity", False),
        ("gzip; q=0.000", False),
        ("identity, gzip;q=0.0", False),
        ("deflate, x-notgzip", False),
        ("identity", False),
        ("", False),
    ],
)
def test_bodies_are_compressed_only_if_accepted(server: Server, accepted: str, is_packed: bool) -> None:
    for path in (f"{API_PATH}/events?per_page=3", "/events/list/", "/events.ics"):
        plain = send_request(server, path)
        reply = send_request(server, path, headers={"Accept-Encoding": accepted})
        assert reply.status == 200
        assert (reply.headers.get("content-encoding") == "gzip") is is_packed, path
        assert (gzip.decompress(reply.body) if is_packed else reply.body) == plain.body


def test_links_are_lowercase(server: Server) -> None:
    for path in (f"{API_PATH}/events", "/", "/events.ics", "/events.rss"):
        reply = send_request(server, path, hosts=["A.TEST"])
        assert (reply.status, b"A.TEST" in reply.body, "A.TEST" in str(reply.headers)) == (200, False, False), path


def test_fields_parameter_is_limited_to_100_names(server: Server) -> None:
    names = [f"name{number}" for number in range(101)]
    path = f"{API_PATH}/events?per_page=50&_fields="
    rejection = send_request(server, path + ",".join(names))
    assert rejection.status == 400
    assert "_fields" in json.loads(rejection.body)["data"]["params"]
    assert send_request(server, path + "id," + ",".join(names[:99])).status == 200
    before = total_cpu_seconds(server)
    for number in range(10):  # Each of them another, or it would come from memory.
        assert send_request(server, path + ",".join(["id", f"x{number}", *names[:98]])).status == 200
    assert (total_cpu_seconds(server) - before) / 10 < 0.06


def test_repeated_fields_parameters_are_counted_together(server: Server) -> None:
    query = "&".join(f"_fields[]=name{number}" for number in range(101))
    assert send_request(server, f"{API_PATH}/events?{query}").status == 400


def test_site_is_selected_by_validated_host_only(postgres_url: str, template_database: str, tmp_path: Path) -> None:
    with temporary_database(postgres_url, template=template_database) as name:
        url = replace_database(postgres_url, name)
        run_command(url, "site", "add", "b.test", "--first-host", "a.test")
        with Server.start(url, log=tmp_path / "log") as server:
            assert send_request(server, hosts=["a.test:80"]).status == 200
            for host in ("a.test:80@evil.example", "a.test:" + "9" * 6_000, "a.test:80/evil"):
                reply = send_request(server, f"{API_PATH}/", hosts=[host])
                assert (reply.status, b"evil" in reply.body) == (400, False), host

"""What only a real process shows: bytes on a socket, and its log."""

import base64
import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.api.running_app import User
from tests.conftest import replace_database, temporary_database
from tests.servers import Server

API_PATH = "/api/calendar/events/v1"


@pytest.fixture(scope="module")
def server(
    postgres_url: str, user_template: tuple[str, dict[str, User]], start_server: Callable[..., Server]
) -> Iterator[Server]:
    template, _ = user_template
    with temporary_database(postgres_url, template=template) as name:
        running = start_server(replace_database(postgres_url, name))
        yield running
        running.stop()


def send_raw(server: Server, request: bytes) -> tuple[int, bytes]:
    """Send raw bytes and return the status and the whole response."""
    host = urlsplit(server.base_url)
    with socket.create_connection((host.hostname, host.port or 80), timeout=10) as connection:
        connection.sendall(request)
        connection.settimeout(10)
        response = b""
        while chunk := connection.recv(65536):
            response += chunk
    assert response.startswith(b"HTTP/1.1 "), response[:200]
    return int(response[9:12]), response


def build_request(line: bytes, *headers: bytes, body: bytes = b"") -> bytes:
    return b"\r\n".join([line, b"Host: calendar.test", b"Connection: close", *headers, b"", body])


def read_log_entries(server: Server, request_id: str) -> list[dict[str, Any]]:
    """The lines of the log that name a request; the last one is written after the answer."""
    for _ in range(100):
        if f'"{request_id}"' in server.read_log():
            break
        time.sleep(0.05)
    lines = [json.loads(line) for line in server.read_log().splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("request_id") == request_id]


HOSTILE_TARGETS = {
    "a raw byte in the query": b"/events?search=\xff",
    "raw UTF-8 in the query": "/events?search=ä".encode(),
    "an escaped byte in the path": b"/events/by-slug/%ff",
    "raw UTF-8 in the path": "/events/by-slug/ä".encode(),
    "NUL in the path": b"/events/by-slug/%00",
    "no escape": b"/events/by-slug/%zz",
    "a long path": b"/events/by-slug/" + b"a" * 8000,
    "a long query": b"/events?search=" + b"a" * 8000,
    "brackets": b"/events?include[]=1&status[0][1]=x",
    "an ID of 5,000 digits": b"/events/" + b"9" * 5000,
}


@pytest.mark.parametrize("target", HOSTILE_TARGETS.values(), ids=HOSTILE_TARGETS)
def test_hostile_request_lines_cause_no_server_error(server: Server, target: bytes) -> None:
    status, response = send_raw(server, build_request(b"GET " + API_PATH.encode() + target + b" HTTP/1.1"))
    assert 200 <= status < 500, response


HOSTILE_HEADER_LINES = {
    "a length that is no number": b"Content-Length: x",
    "a length of 5,000 digits": b"Content-Length: " + b"9" * 5000,
    "a raw byte": b"Authorization: Basic \xff",
    "a raw byte in the request's ID": b"X-Request-ID: \xff",
    "a raw byte in the key": b"Idempotency-Key: \xff\xfe",
    "a long header": b"X-Long: " + b"a" * 60_000,
    "a second host": b"Host: other.test",
    "a tag of 5,000 digits": b'If-Match: "' + b"9" * 5000 + b'"',
}


@pytest.mark.parametrize("line", HOSTILE_HEADER_LINES.values(), ids=HOSTILE_HEADER_LINES)
def test_hostile_header_lines_cause_no_server_error(server: Server, line: bytes) -> None:
    status, response = send_raw(server, build_request(b"GET " + API_PATH.encode() + b"/events HTTP/1.1", line))
    assert 200 <= status < 500, response


def authorization_line(peopled: tuple[str, dict[str, User]]) -> bytes:
    """The header of a subscriber, who may read but not write."""
    user = peopled[1]["subscriber"]
    return b"Authorization: Basic " + base64.b64encode(f"{user.login}:{user.password}".encode())


def test_chunked_body_is_accepted_and_limited(server: Server, user_template: tuple[str, dict[str, User]]) -> None:
    head = b"POST " + API_PATH.encode() + b"/tags HTTP/1.1"
    headers = (b"Content-Type: application/json", b"Transfer-Encoding: chunked", authorization_line(user_template))
    status, response = send_raw(
        server, build_request(head, *headers, body=b"b\r\n" + b'{"name":"x"' + b"\r\n1\r\n}\r\n0\r\n\r\n")
    )
    assert (status, b"rest_forbidden" in response) == (403, True)
    many = b"".join(b"10000\r\n" + b"x" * 65536 + b"\r\n" for _ in range(33)) + b"0\r\n\r\n"
    status, response = send_raw(server, build_request(head, *headers, body=many))
    assert (status, b"rest_body_too_large" in response) == (413, True)


def test_head_over_socket_has_no_body(server: Server) -> None:
    status, response = send_raw(server, build_request(b"HEAD " + API_PATH.encode() + b"/events HTTP/1.1"))
    assert status == 200
    assert response.endswith(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", response)
    assert length is None or int(length[1]) > 0


def test_aborted_request_body_is_logged_as_408(server: Server, user_template: tuple[str, dict[str, User]]) -> None:
    host, port = server.base_url.removeprefix("http://").split(":")
    head = f"POST {API_PATH}/tags HTTP/1.1\r\nHost: x\r\nX-Request-ID: left-1\r\nContent-Length: 100\r\n"
    head += authorization_line(user_template).decode() + "\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(head.encode() + b'{"name": ')
    assert [(line["event"], line["status"]) for line in read_log_entries(server, "left-1")] == [("request", 408)]


def test_access_log_contains_no_secrets(server: Server, user_template: tuple[str, dict[str, User]]) -> None:
    user = user_template[1]["editor"]
    with server.client(login=user.login, password=user.password) as client:
        response = client.post(
            f"{API_PATH}/events",
            json={
                "title": "Logged",
                "start_date": "2027-01-01",
                "end_date": "2027-01-01",
                "new_password": "s3cret-word",
            },
            headers={"X-Request-ID": "log-1"},
        )
        assert response.status_code == 201
        read = client.get(
            f"{API_PATH}/events/{response.json()['id']}?password=s3cret-word", headers={"X-Request-ID": "log-2"}
        )
        assert read.status_code == 200
        wrong = client.get(f"{API_PATH}/events?password=t0psecret&search=x", headers={"X-Request-ID": "log-3"})
        assert wrong.status_code == 200
    with server.client() as client:
        client.get(f"{API_PATH}/tags", auth=("editor", "wr0ng-w0rd"), headers={"X-Request-ID": "log-4"})
    lines = [line for number in range(1, 5) for line in read_log_entries(server, f"log-{number}")]
    assert [(line["method"], line["status"], line["user"]) for line in lines] == [
        ("POST", 201, user.id),
        ("GET", 200, user.id),
        ("GET", 200, user.id),
        ("GET", 401, None),
    ]
    assert [line["path"] for line in lines][1] == f"{API_PATH}/events/{response.json()['id']}"
    log = server.read_log()
    for secret in ("s3cret-word", "t0psecret", "wr0ng-w0rd", user.password, user.password.replace(" ", ""), "?"):
        assert secret not in log


def test_log_entry_stays_on_one_line(server: Server) -> None:
    before = len(server.read_log().splitlines())
    send_raw(
        server,
        build_request(
            b"GET " + API_PATH.encode() + b"/events/by-slug/a%0d%0a%7b%22forged%22%3a1%7d HTTP/1.1",
            b"X-Request-ID: log-5",
        ),
    )
    deadline = time.monotonic() + 5  # The line is written after the answer.
    while len(server.read_log().splitlines()) == before and time.monotonic() < deadline:
        time.sleep(0.02)
    after = server.read_log().splitlines()
    assert len(after) == before + 1
    assert json.loads(after[-1])["path"].endswith('a\r\n{"forged":1}')


def test_server_stops_cleanly(server: Server) -> None:
    assert server.is_running()
    assert server.stop() == 0

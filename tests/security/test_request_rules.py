"""Rules for requests, without a network. `test_request_head.py` and `test_connections.py` send bytes to a server."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from kalends.bootstrap import JsonFormatter, PlainFormatter
from kalends.http import bodies, responses
from kalends.http.bodies import ClientDisconnected
from tests.api.running_app import API_PATH, RunningApp, assert_error

LIST = f"{API_PATH}/events"


@pytest.fixture(scope="module")
def app(start_app_for_module: Callable[..., RunningApp]) -> RunningApp:
    return start_app_for_module()


@pytest.mark.parametrize("path", [LIST, "/"])
def test_only_a_name_with_an_optional_port_is_a_host(app: RunningApp, path: str) -> None:
    def read_status(*hosts: str) -> int:
        return app.raw("GET", path, headers=[("host", host) for host in hosts])[0]

    assert [read_status(host) for host in (app.host, f"{app.host.upper()}:8080")] == [200, 200]
    for hosts in (
        [app.host, app.host],
        [app.host, "evil.example"],
        [f"{app.host}:80@evil.example"],
        [f"{app.host}/evil"],
        [f"{app.host}:80a"],
        ["<script>"],
        ["a" * 256],
    ):
        assert read_status(*hosts) == 400, hosts


def test_large_request_head_is_rejected(app: RunningApp) -> None:
    assert app.raw("GET", LIST, headers=[("x-large", "a" * 30_000)])[0] == 200
    assert app.raw("GET", LIST, headers=[("x-large", "a" * 32_768)])[0] == 431
    assert app.raw("GET", LIST, query=b"search=" + b"a" * 32_768)[0] == 431


def test_connect_is_rejected(app: RunningApp) -> None:
    for path in (LIST, "/", "/console/"):
        assert app.raw("CONNECT", path)[0] == 405, path


def test_body_is_parsed_after_authentication(app: RunningApp) -> None:
    for role, status in (("anonymous", 401), ("subscriber", 400), ("editor", 400)):
        response = app.caller(role).request(
            "POST", "/tags", content=b'{"name": ', headers={"Content-Type": "application/json"}
        )
        assert response.status_code == status, role


def test_slow_body_is_rejected(app: RunningApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_BODY_SECONDS", 0.1)

    async def send_slowly() -> AsyncIterator[bytes]:
        yield b'{"name": '
        await asyncio.sleep(1)
        yield b'"Late"}'

    response = app.caller("editor").request(
        "POST", "/tags", content=send_slowly(), headers={"Content-Type": "application/json"}
    )
    assert_error(response, 408, "rest_request_timeout")
    assert app.sql("SELECT FROM tags WHERE name = 'Late'") == []


async def test_slow_reader_gets_one_chunk_and_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "MAX_SECONDS_PER_CHUNK", 0.1)
    chunks: list[int] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            chunks.append(len(message["body"]))
            await asyncio.Event().wait()

    with pytest.raises(ClientDisconnected):
        await responses.send_response(send, 200, [], b"x" * 1_000_000)
    assert chunks == [64 * 1024]


def test_false_length_does_not_admit_a_long_body(app: RunningApp) -> None:
    """Some servers accept a length with leading zeros, whose first digits say nothing."""
    headers = [("authorization", "Basic bm9ib2R5Ong="), ("content-length", "0" * 17 + "2000000")]
    status, _, _ = app.raw("POST", f"{API_PATH}/events", headers=headers, body=[b"x" * 40_000] * 50)
    assert status == 413


def test_log_line_has_no_query_and_no_control_characters(app: RunningApp, caplog: pytest.LogCaptureFixture) -> None:
    app.flush_log()
    caplog.clear()
    with caplog.at_level(logging.INFO, "kalends"):
        app.raw("GET", "/events/\r\nGET /forged\x1b[31m", query=b"password=open+sesame")
        app.flush_log()
    formatters = (JsonFormatter(), PlainFormatter())
    lines = [line for record in caplog.records for form in formatters for line in form.format(record).split("\n")]
    assert sum("forged" in line for line in lines) == 2
    for line in lines:
        assert "sesame" not in line
        assert line.isprintable(), line

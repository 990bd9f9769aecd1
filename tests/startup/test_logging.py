"""All processes log in one format: a line of JSON, or of text, per record."""

import json
import logging
import subprocess
import sys
from collections.abc import Callable

import httpx
import pytest

from kalends.bootstrap import JsonFormatter, PlainFormatter
from tests.api.running_app import API_PATH
from tests.servers import Server, find_free_port, make_environment


def make_record(message: str, error: BaseException | None = None, **attributes: object) -> logging.LogRecord:
    exc_info = (type(error), error, error.__traceback__) if error else None
    record = logging.LogRecord("kalends.worker", logging.WARNING, __file__, 1, message, (), exc_info)
    record.created = 1_900_000_000.1234
    record.__dict__.update(attributes)
    return record


def test_message_is_formatted_as_json() -> None:
    assert json.loads(JsonFormatter().format(make_record("connection lost"))) == {
        "timestamp": "2030-03-17T17:46:40.123+00:00",
        "level": "warning",
        "logger": "kalends.worker",
        "message": "connection lost",
    }


def test_event_keeps_its_fields_in_order() -> None:
    record = make_record("request", fields={"method": "GET", "status": 200, "ms": 1.5})
    line = '{"timestamp":"2030-03-17T17:46:40.123+00:00","event":"request","method":"GET","status":200,"ms":1.5}'
    assert JsonFormatter().format(record) == line


def test_traceback_stays_on_one_line() -> None:
    try:
        raise ValueError("x\ny")
    except ValueError as error:
        record = make_record("fault", error, fields={"level": "error"})
    text = JsonFormatter().format(record)
    assert "\n" not in text
    assert "ValueError: x\ny" in json.loads(text)["exception"]
    assert "\n" not in PlainFormatter().format(record)


def test_plain_format_escapes_control_characters() -> None:
    record = make_record("request", fields={"method": "GET", "path": "/a\x1b[31m\n"})
    expected = "2030-03-17T17:46:40.123+00:00 event=request method=GET path='/a\\x1b[31m\\n'"
    assert PlainFormatter().format(record) == expected


def test_server_logs_every_line_as_json_without_the_query(
    database_url: str, start_server: Callable[..., Server]
) -> None:
    environment = {"KALENDS_BASE_URL": "http://127.0.0.1"}
    server = start_server(database_url, environment=environment)
    httpx.get(f"{server.base_url}/healthz?password=s3cret", headers={"X-Request-ID": "one"})
    server.stop()
    records = [json.loads(line) for line in server.read_log().splitlines()]
    # The server warns of its login, a superuser; the others are lines of Granian.
    loggers = {record["logger"].partition(".")[0] for record in records if "logger" in record}
    assert loggers == {"_granian", "kalends"}
    request = next(record for record in records if record.get("request_id") == "one")
    assert list(request) == ["timestamp", "event", "method", "status", "ms", "path", "request_id", "host", "user"]
    assert (request["event"], request["status"], request["path"]) == ("request", 200, "/healthz")
    assert "s3cret" not in server.read_log()


@pytest.mark.parametrize("log_format", ["json", "plain"])
def test_commands_log_in_the_configured_format(log_format: str) -> None:
    program = (
        "import logging\nfrom kalends.cli.runtime import load_settings\nload_settings()\n"
        "logging.getLogger('kalends.x').info('hello')\nlogging.getLogger('library').info('hidden')"
    )
    environment = make_environment("postgresql:///x", {"KALENDS_LOG_FORMAT": log_format})
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    (line,) = done.stderr.splitlines()
    if log_format == "json":
        assert json.loads(line)["message"] == "hello"
    else:
        assert line.endswith(" level=info logger=kalends.x message=hello")


@pytest.mark.parametrize("log_format", ["json", "plain"])
def test_every_request_has_one_line_and_one_count(
    database_url: str, start_server: Callable[..., Server], log_format: str
) -> None:
    port, number, path = find_free_port(), 200, f"{API_PATH}/events"
    environment = {"KALENDS_LOG_FORMAT": log_format, "KALENDS_METRICS_PORT": str(port)}
    server = start_server(database_url, environment=environment)
    ids = [f"request-{place:03}" for place in range(number)]
    with server.client() as client:
        for request_id in ids:
            assert client.get(path, headers={"X-Request-ID": request_id}).headers["X-Request-ID"] == request_id
    lines = httpx.get(f"http://127.0.0.1:{port}/metrics").text.splitlines()
    counts = [
        line.split() for line in lines if line.startswith("kalends_requests_total{") and 'route="/events"' in line
    ]
    server.stop()  # The last lines are less than 0.1 s old.
    assert sum(float(count) for *_, count in counts) == number
    assert [server.read_log().count(request_id) for request_id in ids] == [1] * number

"""A full connection table, and a machine whose time is wrong: what clients get, what the log says, what helps."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack

import httpx
import psycopg
import pytest

from tests.robustness.site_fixtures import API_PATH, DATES, add_editor
from tests.servers import Server, make_environment

HOUR = 3600


def take_all_connections(database_url: str, stack: ExitStack) -> str:
    """Open connections until PostgreSQL refuses one, also those that are reserved; return its message."""
    while True:
        try:
            stack.enter_context(psycopg.connect(database_url))
        except psycopg.OperationalError as error:
            return str(error)


def end_sessions(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_full_connection_table(database_url: str, start_server: Callable[..., Server]) -> None:
    server = start_server(database_url, environment={"KALENDS_CACHE_MB": "0"}, timeout=90)
    url = f"{server.base_url}{API_PATH}/events"
    with ExitStack() as others:
        end_sessions(database_url)  # The server has opened some connections already.
        assert "too many clients" in take_all_connections(database_url, others)
        response = httpx.get(url, timeout=60)
        assert (response.status_code, response.json()["code"]) == (503, "rest_unavailable")
        assert response.headers["retry-after"] == "1"
        page = httpx.get(f"{server.base_url}/events/list/", headers={"Accept": "text/html"}, timeout=60)
        assert (page.status_code, page.headers["content-type"]) == (503, "text/html; charset=utf-8")
        lines = [json.loads(line) for line in server.read_log().splitlines()]
        (line,) = [line for line in lines if line.get("event") == "unavailable"]
        assert (line["cause"], line["sqlstate"]) == ("too_many_connections", "53300")
        assert line["detail"] == "sorry, too many clients already"
    assert httpx.get(url, timeout=60).status_code == 200


@pytest.mark.skipif(not shutil.which("faketime"), reason="needs faketime")
@pytest.mark.parametrize("offset", [HOUR, -HOUR])
def test_time_that_is_wrong_is_reported(database_url: str, offset: int) -> None:
    """`kalends check` names the difference and exits with 1."""
    command = ["faketime", "-f", f"{offset:+d}s", sys.executable, "-m", "kalends", "check", "--json"]
    done = subprocess.run(command, env=make_environment(database_url), capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    (finding,) = [finding for finding in json.loads(done.stdout) if finding["subject"] == "Time"]
    direction = "behind" if offset > 0 else "ahead of"
    assert finding["level"] == "error"
    assert finding["text"] in {f"The database is {HOUR + n} s {direction} this machine." for n in (-1, 0, 1)}


@pytest.mark.skipif(not shutil.which("faketime"), reason="needs faketime")
def test_server_with_a_wrong_time_works_and_warns(database_url: str, start_server: Callable[..., Server]) -> None:
    environment = {"FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    prefix = ["faketime", "-f", f"+{HOUR}s"]
    server = start_server(database_url, environment=environment, timeout=90, prefix=prefix)
    url, login = f"{server.base_url}{API_PATH}/events", add_editor(database_url)
    created = httpx.post(url, json={"title": "Concert", **DATES}, auth=login, timeout=60)
    assert created.status_code == 201, created.text
    event = created.json()["url"].removeprefix(server.base_url)
    for path in (f"{API_PATH}/events", event, "/events/list/"):
        response = httpx.get(f"{server.base_url}{path}", timeout=60)
        assert response.status_code == 200, path
        # A cache that holds the response believes the time of the server.
        again = httpx.get(f"{server.base_url}{path}", headers={"If-None-Match": response.headers["etag"]}, timeout=60)
        assert again.status_code == 304
    assert " s behind this machine. Synchronize both with NTP." in server.read_log()

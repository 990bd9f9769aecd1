"""Passwords and credentials are not in the log, however they are sent, right or wrong, in either format."""

import base64
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus

import psycopg
import pytest

from tests.api.running_app import User
from tests.security.instance import Instance, Report, start_instance
from tests.security.wire_client import (
    API_PATH,
    EXTENSION_PATH,
    WireRequest,
    WireResponse,
    basic_auth,
    form_request,
    get_request,
    json_request,
)
from tests.servers import Server
from tests.soak import scaled

EVENT_PASSWORD = "frobozz magic word"
WRONG_PASSWORD = "plugh-wrong-word"


@pytest.fixture(params=["json", "plain"])
def logging_instance(
    request: pytest.FixtureRequest,
    postgres_url: str,
    user_template: tuple[str, dict[str, User]],
    start_server: Callable[..., Server],
) -> Iterator[Instance]:
    with start_instance(postgres_url, user_template, start_server, KALENDS_LOG_FORMAT=request.param) as place:
        yield place


def iter_requests(place: Instance, event: dict[str, object]) -> Iterator[WireRequest]:
    """Secrets in every place that a request has for them, and in some that it has not."""
    one, page = f"{API_PATH}/events/{event['id']}", f"/event/{event['slug']}/"
    for word in (EVENT_PASSWORD, WRONG_PASSWORD):
        for path in (
            one,
            f"{API_PATH}/events",
            f"{API_PATH}/events/by-slug/{event['slug']}",
            page,
            f"/embed{page}",
            "/events.ics",
        ):
            yield get_request(path, password=word)
        yield form_request(page, password=word)
        yield json_request("PATCH", one, {"password": word, "excerpt": "x"})
        yield json_request("POST", one, {"password": word})
        yield get_request(f"{API_PATH}/events", **{"search": word, "password[]": word, "Password": word})
    for login, password in place.logins.values():
        for secret in (password, f"{password}{WRONG_PASSWORD}"):
            header = {"authorization": basic_auth(login, secret)}
            yield WireRequest("GET", f"{API_PATH}/tags", header)
            yield WireRequest("DELETE", f"{API_PATH}/tags/999999", header)
            yield WireRequest("GET", "/events/list/", header)
        yield WireRequest("GET", f"{API_PATH}/tags", {"authorization": f"Bearer {password.replace(' ', '')}"})
        yield WireRequest("GET", f"{API_PATH}/tags", {"authorization": f"Basic {login}:{password}"})
        yield WireRequest(
            "GET",
            f"{API_PATH}/tags",
            {"proxy-authorization": basic_auth(login, password), "cookie": f"a={WRONG_PASSWORD}"},
        )
        yield json_request(
            "POST",
            f"{EXTENSION_PATH}/batch",
            {"operations": [{"method": "POST", "path": "/tags", "body": {WRONG_PASSWORD: password}}]},
        )
    for path in (API_PATH, one, "/docs"):
        yield WireRequest("GET", f"http://editor:{WRONG_PASSWORD}@127.0.0.1{path}")


def encodings(secret: str) -> set[str]:
    coded = base64.b64encode(secret.encode()).decode().rstrip("=")
    return {secret, secret.replace(" ", ""), quote(secret), quote_plus(secret), coded}


def test_log_contains_no_secrets(logging_instance: Instance, report: Report) -> None:
    dates = {"start_date": "2031-05-01", "end_date": "2031-05-02"}
    event = logging_instance.create("events", title="Guarded", new_password=EVENT_PASSWORD, **dates)
    everything = [request for _ in range(scaled(1, 20)) for request in iter_requests(logging_instance, event)]
    responses: list[WireResponse] = logging_instance.request_all(everything)
    assert {response.status for response in responses} >= {200, 401, 403}
    # Faults of the database are logged at length: what a request held must not be among it.
    with psycopg.connect(logging_instance.database_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE events RENAME COLUMN excerpt TO gone")
        broken = [
            get_request(f"{API_PATH}/events/{event['id']}", password=EVENT_PASSWORD).with_login(
                logging_instance.logins["editor"]
            )
        ] * 2
        broken.append(
            json_request(
                "POST", f"{API_PATH}/events", {"title": "x", **dates, "new_password": WRONG_PASSWORD}
            ).with_login(logging_instance.logins["editor"])
        )
        errors = logging_instance.request_all(broken)
        connection.execute("ALTER TABLE events RENAME COLUMN gone TO excerpt")
    assert {got.status for got in errors} == {500}
    logged = logging_instance.server.read_log()
    credentials = {
        basic_auth(*login).removeprefix("Basic ").rstrip("=") for login in logging_instance.logins.values()
    }
    secrets = [EVENT_PASSWORD, WRONG_PASSWORD, *[password for _, password in logging_instance.logins.values()]]
    leaked = {word for secret in secrets for word in encodings(secret) if word in logged}
    assert leaked | {word for word in credentials if word in logged} == set()
    lines = logged.count("\n")
    assert lines >= len(everything)
    report(f"{len(secrets)} secrets in {len(everything)} requests, none in {lines:,} lines of the log")

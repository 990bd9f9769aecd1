"""Passwords and credentials are not in the log, however they are sent, right or wrong, in either format."""

import base64
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus

import psycopg
import pytest

from tests.api.running_app import Person
from tests.security.instance import Place, Tell, opened
from tests.security.wire_client import EX, NS, Ask, Got, basic, form, get, send
from tests.servers import Server
from tests.soak import scaled

EVENT_PASSWORD = "frobozz magic word"
WRONG = "plugh-wrong-word"


@pytest.fixture(params=["json", "plain"])
def logging(
    request: pytest.FixtureRequest,
    postgres_url: str,
    peopled: tuple[str, dict[str, Person]],
    start_server: Callable[..., Server],
) -> Iterator[Place]:
    with opened(postgres_url, peopled, start_server, KALENDS_LOG_FORMAT=request.param) as place:
        yield place


def asks(place: Place, event: dict[str, object]) -> Iterator[Ask]:
    """Secrets in every place that a request has for them, and in some that it has not."""
    one, page = f"{NS}/events/{event['id']}", f"/event/{event['slug']}/"
    for word in (EVENT_PASSWORD, WRONG):
        for path in (
            one,
            f"{NS}/events",
            f"{NS}/events/by-slug/{event['slug']}",
            page,
            f"/embed{page}",
            "/events.ics",
        ):
            yield get(path, password=word)
        yield form(page, password=word)
        yield send("PATCH", one, {"password": word, "excerpt": "x"})
        yield send("POST", one, {"password": word})
        yield get(f"{NS}/events", **{"search": word, "password[]": word, "Password": word})
    for login, password in place.logins.values():
        for secret in (password, f"{password}{WRONG}"):
            header = {"authorization": basic(login, secret)}
            yield Ask("GET", f"{NS}/tags", header)
            yield Ask("DELETE", f"{NS}/tags/999999", header)
            yield Ask("GET", "/events/list/", header)
        yield Ask("GET", f"{NS}/tags", {"authorization": f"Bearer {password.replace(' ', '')}"})
        yield Ask("GET", f"{NS}/tags", {"authorization": f"Basic {login}:{password}"})
        yield Ask("GET", f"{NS}/tags", {"proxy-authorization": basic(login, password), "cookie": f"a={WRONG}"})
        yield send(
            "POST", f"{EX}/batch", {"operations": [{"method": "POST", "path": "/tags", "body": {WRONG: password}}]}
        )
    for path in (NS, one, "/docs"):
        yield Ask("GET", f"http://editor:{WRONG}@127.0.0.1{path}")


def spellings(secret: str) -> set[str]:
    coded = base64.b64encode(secret.encode()).decode().rstrip("=")
    return {secret, secret.replace(" ", ""), quote(secret), quote_plus(secret), coded}


def test_log_contains_no_secrets(logging: Place, tell: Tell) -> None:
    dates = {"start_date": "2031-05-01", "end_date": "2031-05-02"}
    event = logging.create("events", title="Guarded", new_password=EVENT_PASSWORD, **dates)
    everything = [ask for _ in range(scaled(1, 20)) for ask in asks(logging, event)]
    answers: list[Got] = logging.ask_all(everything)
    assert {got.status for got in answers} >= {200, 401, 403}
    # Faults of the database are logged at length: what a request held must not be among it.
    with psycopg.connect(logging.url, autocommit=True) as connection:
        connection.execute("ALTER TABLE events RENAME COLUMN excerpt TO gone")
        broken = [get(f"{NS}/events/{event['id']}", password=EVENT_PASSWORD).by(logging.logins["editor"])] * 2
        broken.append(
            send("POST", f"{NS}/events", {"title": "x", **dates, "new_password": WRONG}).by(logging.logins["editor"])
        )
        faults = logging.ask_all(broken)
        connection.execute("ALTER TABLE events RENAME COLUMN gone TO excerpt")
    assert {got.status for got in faults} == {500}
    logged = logging.server.read_log()
    credentials = {basic(*login).removeprefix("Basic ").rstrip("=") for login in logging.logins.values()}
    secrets = [EVENT_PASSWORD, WRONG, *[password for _, password in logging.logins.values()]]
    told = {word for secret in secrets for word in spellings(secret) if word in logged}
    assert told | {word for word in credentials if word in logged} == set()
    lines = logged.count("\n")
    assert lines >= len(everything)
    tell(f"{len(secrets)} secrets in {len(everything)} requests, none in {lines:,} lines of the log")

"""Wrong passwords of events are counted on every path and over all processes together."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import httpx
import pytest

from kalends.calendar.kinds.event_list import PASSWORD_GUARDED_FILTERS
from tests.api.running_app import API_PATH, Caller, RunningApp, User, assert_error, expect_json
from tests.api.sample_records import DATES, unique
from tests.conftest import replace_database, temporary_database
from tests.security.wire_client import EXTENSION_PATH
from tests.servers import Server
from tests.soak import SOAK

FREE_ATTEMPTS = 20
PASSWORD = "open sesame"
WINDOW = {"start_date": DATES["start_date"][:10], "end_date": DATES["end_date"][:10]}


@dataclass
class ProtectedSite:
    """A server of two processes with one protected event. Every request opens a new connection."""

    server: Server
    event: dict

    def request(self, method: str, path: str, client: str, **options) -> httpx.Response:
        headers = {"X-Forwarded-For": client}
        return httpx.request(method, f"{self.server.base_url}{path}", headers=headers, timeout=30, **options)


@pytest.fixture(scope="module")
def stage(
    postgres_url: str, user_template: tuple[str, dict[str, User]], start_server: Callable[..., Server]
) -> Iterator[ProtectedSite]:
    template, users = user_template
    with temporary_database(postgres_url, template=template) as name:
        server = start_server(
            replace_database(postgres_url, name), workers=2, environment={"KALENDS_TRUSTED_PROXIES": "127.0.0.1"}
        )
        with server.client(login="editor", password=users["editor"].password) as editor:
            body = {
                "title": "Guessed",
                "description": "Told.",
                "featured": True,
                "new_password": PASSWORD,
                "venue": {"venue": "Hall", "geo_lat": 1, "geo_lng": 1},
                "organizer": {"organizer": "Host"},
                "categories": ["kept"],
                "tags": ["kept"],
                **DATES,
            }
            event = expect_json(editor.post(f"{API_PATH}/events", json=body), 201)
            rule = {"rule": "FREQ=WEEKLY;COUNT=1"}
            edit = expect_json(editor.post(f"{EXTENSION_PATH}/events/{event['id']}/series", json=rule))
            event["series"] = edit["series"]
        yield ProtectedSite(server, event)
        server.stop()


def filters_by_name(stage: ProtectedSite) -> dict[str, dict[str, object]]:
    event = stage.event
    return {
        "search": {"search": "told"},
        "categories": {"categories": "kept"},
        "tags": {"tags": "kept"},
        "venue": {"venue": event["venue"]["id"]},
        "organizer": {"organizer": event["organizer"][0]["id"]},
        "featured": {"featured": 1},
        "ticketed": {"ticketed": 0},
        "free": {"free": 0},
        "event_status": {"event_status": "scheduled"},
        "series": {"series": event["series"]["id"]},
        "geoloc": {"geoloc": 1},
        "geoloc_lat": {"geoloc_lat": 1, "geoloc_lng": 1},
        "geoloc_lng": {"geoloc_lng": 1, "geoloc_lat": 1},
    }


# Each filter takes 30 slow hashes; a soak tries them all.
@pytest.mark.parametrize("name", sorted(PASSWORD_GUARDED_FILTERS)[:: 1 if SOAK else 5])
def test_wrong_passwords_are_counted_for_filters(stage: ProtectedSite, name: str) -> None:
    """On the old paths all of 200 guesses were answered with 200."""
    query, client = (
        {**WINDOW, **filters_by_name(stage)[name]},
        f"10.1.0.{sorted(PASSWORD_GUARDED_FILTERS).index(name)}",
    )
    responses = [
        stage.request("GET", f"{API_PATH}/events", client, params={**query, "password": f"wrong {n}"})
        for n in range(200 if SOAK else FREE_ATTEMPTS + 10)
    ]
    statuses = [response.status_code for response in responses]
    assert statuses[:FREE_ATTEMPTS] == [200] * FREE_ATTEMPTS
    # One is forgiven every six seconds, so a few of the later ones may pass.
    response = next(response for response in responses[FREE_ATTEMPTS:] if response.status_code == 429)
    assert_error(response, 429, "rest_too_many_attempts")
    assert 0 < int(response.headers["retry-after"]) <= 6
    assert stage.request("GET", f"{API_PATH}/events", client, params=query).status_code == 200
    unlocked = stage.request(
        "GET", f"{API_PATH}/events", f"10.2.{client[5:]}", params={**query, "password": PASSWORD}
    )
    assert expect_json(unlocked)["events"][0]["description"] == "<p>Told.</p>"


def test_wrong_passwords_are_counted_across_routes(stage: ProtectedSite) -> None:
    event, client = stage.event, "10.3.0.1"
    page, item = f"/event/{event['slug']}/", f"{API_PATH}/events"
    paths: list[Callable[[str], httpx.Response]] = [
        lambda word: stage.request("GET", f"{item}/{event['id']}", client, params={"password": word}),
        lambda word: stage.request("HEAD", f"{item}/{event['id']}", client, params={"password": word}),
        lambda word: stage.request("GET", f"{item}/by-slug/{event['slug']}", client, params={"password": word}),
        lambda word: stage.request("GET", item, client, params={"password": word, "include": event["id"]}),
        lambda word: stage.request("GET", item, client, params={"password": word, "start_date": "1999-01-01"}),
        lambda word: stage.request("GET", page, client, params={"password": word}),
        lambda word: stage.request("POST", page, client, data={"password": word}),
    ]
    statuses = [paths[n % len(paths)](f"wrong {n}").status_code for n in range(FREE_ATTEMPTS + 10)]
    assert 429 not in statuses[:FREE_ATTEMPTS]
    assert 429 in statuses[FREE_ATTEMPTS:]
    for path in paths:
        assert any(_is_rejected_after_wrong_ones(paths[0], path) for _ in range(5))


def _is_rejected_after_wrong_ones(
    guess: Callable[[str], httpx.Response], path: Callable[[str], httpx.Response]
) -> bool:
    """Use up the attempts and send the right password, which gets through if one is forgiven in between."""
    while guess("wrong").status_code != 429:
        pass
    return path(PASSWORD).status_code == 429


def test_concurrent_guesses_are_counted(stage: ProtectedSite) -> None:
    def guess(n: int) -> int:
        query = {**WINDOW, "featured": 1, "password": f"wrong {n}"}
        return stage.request("GET", f"{API_PATH}/events", "10.4.0.1", params=query).status_code

    with ThreadPoolExecutor(16) as pool:
        statuses = list(pool.map(guess, range(60)))
    assert set(statuses) <= {200, 429, 503}
    # The run takes a few seconds, in which some are forgiven.
    assert statuses.count(200) <= FREE_ATTEMPTS + 5
    assert 429 in statuses


def test_addresses_of_one_network_are_one_client(stage: ProtectedSite) -> None:
    statuses = [
        stage.request(
            "GET", f"{API_PATH}/events", f"2001:db8:0:1::{n:x}", params={"password": f"wrong {n}"}
        ).status_code
        for n in range(FREE_ATTEMPTS + 10)
    ]
    assert 429 in statuses
    other = stage.request("GET", f"{API_PATH}/events", "2001:db8:0:2::1", params={"password": PASSWORD})
    assert other.status_code == 200


def test_correct_password_on_list_is_not_counted(start_app: Callable[..., RunningApp]) -> None:
    app = start_app()
    editor = app.caller("editor")
    for n in range(25):
        editor.create("events", title=f"Protected {n}", new_password=f"password {n % 5}", **DATES)
    reader = replace(app.caller(), client_ip="10.5.0.1")
    for _ in range(FREE_ATTEMPTS + 5):
        page = reader.page("events", password="password 3", per_page=50)
        assert len(page["events"]) == 25
    # Not even where this page, or this filter, shows none of the events that it opens.
    for query in ({"per_page": 1, "page": 2}, {"start_date": "1999-01-01", "end_date": "1999-01-02"}):
        for _ in range(FREE_ATTEMPTS + 5):
            expect_json(reader.get("/events", {**query, "password": "password 3"}))
    assert [row["count"] for row in app.sql("SELECT count FROM login_failures")] == [0]


def test_password_of_unreadable_event_counts_as_wrong(start_app: Callable[..., RunningApp]) -> None:
    """Otherwise the count would tell that an unpublished event has this password."""
    app = start_app()
    app.caller("editor").create("events", title="Draft", status="draft", new_password=PASSWORD, **DATES)
    expect_json(app.caller().get("/events", {"password": PASSWORD}))
    assert [row["count"] for row in app.sql("SELECT count FROM login_failures")] == [1]


@pytest.mark.parametrize(("length", "status"), [(1, 400), (5, 400), (6, 201), (255, 201), (256, 400)])
def test_new_password_has_minimum_length(start_app: Callable[..., RunningApp], length: int, status: int) -> None:
    editor = start_app().caller("editor")
    response = editor.post("/events", {"title": unique("New"), "new_password": "x" * length, **DATES})
    assert response.status_code == status, response.text
    if status == 400:
        assert_error(response, 400, "rest_invalid_param", "new_password")


def test_shorter_legacy_password_still_works(start_app: Callable[..., RunningApp]) -> None:
    from kalends.core.credentials import keyed_hash

    app = start_app()
    event = app.caller("editor").create("events", title="Old", new_password=PASSWORD, **DATES)
    (site,) = app.sql("SELECT secret FROM sites")
    app.sql("UPDATE events SET password_hash = $1", keyed_hash(site["secret"], "event-password", "old"))
    anonymous: Caller = app.caller()
    assert anonymous.read("events", event["id"], password="old")["id"] == event["id"]
    assert_error(anonymous.get(f"/events/{event['id']}", {"password": PASSWORD}), 403, "event-password-protected")

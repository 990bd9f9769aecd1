"""The requests of existing clients get the status, media type and redirect that the clients expect."""

import re
from base64 import b64encode
from datetime import UTC, datetime, timedelta

import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import HOST, RunningApp
from tests.old_site.client_requests import DECISIONS, REQUESTS, ClientRequest
from tools.differences import CHECKS, Check


@pytest.fixture(scope="module")
def app(start_app_for_module: StartApp) -> RunningApp:
    return start_app_for_module({"KALENDS_API_ALIASES": "/wp-json/tribe/events/v1"})


@pytest.fixture(scope="module")
def ids(app: RunningApp) -> dict[str, int]:
    editor = app.caller("editor")
    music = editor.create("categories", name="Music")
    loud = editor.create("categories", name="Loud", parent=music["id"])
    day = (datetime.now(UTC) + timedelta(days=60)).date()
    times = {"start_date": f"{day} 10:00", "end_date": f"{day} 12:00"}
    event = editor.create("events", title="Concert", **times, categories=[loud["id"]], tags=["winter"],
                          venue={"venue": "Hall"}, organizer=[{"organizer": "Club"}])  # fmt: skip
    for number in (2, 3):
        editor.create("events", title=f"Concert {number}", **times)
    return {"event": event["id"], "venue": event["venue"]["id"], "category": music["id"]}


def basic(login: str, password: str) -> str:
    return "Basic " + b64encode(f"{login}:{password}".encode()).decode()


def test_table_has_77_requests() -> None:
    assert len(REQUESTS) == 77
    assert len({(request.name, str(request.headers), str(request.body)) for request in REQUESTS}) == 77


@pytest.mark.quick("GET /wp-json/tribe/events/v1/events0", "GET /event/concert/embed/")
@pytest.mark.parametrize("request_", [*REQUESTS, *DECISIONS], ids=lambda request: request.name)
def test_response_is_the_one_that_clients_expect(
    app: RunningApp, ids: dict[str, int], request_: ClientRequest
) -> None:
    role, _, variant = request_.role.partition(" ")
    caller = app.caller(role)
    headers = dict(request_.headers)
    if variant:
        # WordPress shows application passwords in groups of four, and clients send them as shown.
        user = app.users[role]
        caller.auth = None
        headers["Authorization"] = basic(user.login, " ".join(re.findall("....", user.password.replace(" ", ""))))
    url = f"http://{HOST}{request_.path}".replace("{event}", str(ids["event"])).replace("{venue}", str(ids["venue"]))
    response = caller.request(request_.method, url, headers=headers, **request_.body)
    location = request_.location.replace("{category}", str(ids["category"]))
    assert response.status_code == request_.status, response.text[:300]
    if request_.status != 301:
        assert response.headers["content-type"].partition(";")[0] == request_.media_type
    assert response.status_code == 201 or response.headers.get("location", "") == location
    for name, text in request_.response_headers.items():
        assert text in response.headers.get(name, "")


@pytest.mark.quick("lists events", "links to a month")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.subject)
def test_request_of_the_checklist_gets_the_documented_response(
    app: RunningApp, ids: dict[str, int], check: Check
) -> None:
    caller = app.caller("anonymous")
    response = caller.request("GET", f"http://{HOST}{check.request}".replace("{event}", str(ids["event"])))
    assert response.status_code == check.status
    if response.status_code == 301:
        response = caller.request("GET", f"http://{HOST}{response.headers['location']}")
        assert response.status_code == 200
    assert response.headers["content-type"].partition(";")[0] == check.content

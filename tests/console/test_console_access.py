"""Who may use the console: every route by every role, and the same rules for records as in the API."""

import re
from itertools import product

import pytest

from kalends.console.console_request import ConsoleRoute
from kalends.core.credentials import ROLES
from kalends.routes import CONSOLE as ROUTES
from tests.api.running_app import ROLES as USER_ROLES, Caller, RunningApp
from tests.console.console_client import ConsoleClient
from tests.lifecycle.expected_permissions import STATUSES
from tests.soak import some

DATES = {"start_date": "2031-05-02 10:00:00", "end_date": "2031-05-02 12:00:00"}
SAMPLES = {
    "kind": "venues",
    "id": "999999",
    "key": "00000000-0000-4000-8000-000000000000",
    "token": "abc",
    "format": "csv",
    "webhook": "a00000000000",
}


@pytest.fixture(scope="module")
def clients(app: RunningApp) -> dict[str, ConsoleClient]:
    return {"anonymous": ConsoleClient(app), **{role: ConsoleClient.signed_in(app, role) for role in USER_ROLES}}


def make_path(route: ConsoleRoute) -> str:
    """Return a path that a pattern matches, of a record that does not exist."""

    def sample(match: re.Match[str]) -> str:
        name, pattern = match[1], match[2]
        samples = (SAMPLES[name], SAMPLES["id"], pattern.partition("|")[0])
        return next(text for text in samples if re.fullmatch(pattern, text))

    path = re.sub(r"\(\?P<(\w+)>([^)]*)\)", sample, route.pattern).replace("?", "").replace("\\", "")
    assert re.fullmatch(route.pattern, path), (route.pattern, path)
    return f"/console{path}"


CALLS = [
    (method, route)
    for route in ROUTES
    for method in ("GET", "POST")
    if (route.get if method == "GET" else route.post)
]


@pytest.mark.quick("GET /?", "GET /settings/contrast")
@pytest.mark.parametrize(("method", "route"), CALLS, ids=[f"{method} {route.pattern}" for method, route in CALLS])
def test_route_requires_its_role(clients: dict[str, ConsoleClient], method: str, route: ConsoleRoute) -> None:
    path, required = make_path(route), ROLES.index(route.min_role)
    for role, client in clients.items():
        if path in ("/console/sign-out", "/console/account/devices/sign-out-others") and role != "anonymous":
            continue  # These succeed, and end the session of the other tests.
        response = client.request(method, path)
        text = f"{role}: {response.status_code}"
        assert response.status_code < 500, text
        if role == "anonymous" and method == "POST" and route.has_frequent_post:
            assert response.status_code == 401, text
        elif role == "anonymous" and required > 0:
            assert (response.status_code, response.headers["location"][:16]) == (303, "/console/sign-in"), text
        elif ROLES.index(role) < required:
            assert response.status_code == 403, text
        else:
            # The page for images is open to contributors, but uploads need the role that the API requires.
            assert response.status_code != 403 or (role, path) == ("contributor", "/console/media"), text
        if method == "POST":
            forged = client.request(method, path, headers={"sec-fetch-site": "cross-site"})
            assert forged.status_code == 403, text


@pytest.mark.parametrize("kind", some(["events", "venues"]))
def test_records_follow_rules_of_api(app: RunningApp, clients: dict[str, ConsoleClient], kind: str) -> None:
    """Save and delete twins, one with the API and one with the console: both are permitted, or none."""
    editor, different = app.caller("editor"), []
    for role, is_own, status in product(USER_ROLES, (True, False), STATUSES):
        author = (
            app.users[role].id if is_own else app.users["administrator" if role != "administrator" else "editor"].id
        )
        twins = [create(editor, kind, status, author) for _ in range(2)]
        for change in ("save", "trash"):
            api = app.caller(role)
            path = f"/{kind}/{twins[0]}"
            by_api = api.delete(path) if change == "trash" else api.patch(path, {name_of(kind): "Changed"})
            by_console = send_form(clients[role], kind, twins[1], change)
            if by_api.is_success != (by_console in (200, 303)):
                different.append(
                    f"{role} {'own' if is_own else 'other'} {status} {change}: {by_api.status_code} {by_console}"
                )
    assert different == []


def name_of(kind: str) -> str:
    return "title" if kind == "events" else "venue"


def create(editor: Caller, kind: str, status: str, author: int) -> int:
    fields = {name_of(kind): f"Twin {status} {author}", "author": author, **(DATES if kind == "events" else {})}
    record = editor.create(kind, **fields, status="draft")
    if status == "future":
        editor.change(kind, record["id"], status="publish", date="2035-01-01 00:00:00")
    elif status == "trash":
        editor.trash(kind, record["id"])
    else:
        editor.change(kind, record["id"], status=status)
    record_id: int = record["id"]
    return record_id


def send_form(client: ConsoleClient, kind: str, record_id: int, change: str) -> int:
    """Send a form as a forged page would: with the fields that a permitted user sends."""
    path = f"/console/{kind}/{record_id}"
    revision = client.app.sql(f"SELECT revision FROM {kind} WHERE id = $1", record_id)[0]["revision"]
    fields = {"base_revision": str(revision), name_of(kind): "Changed"}
    if kind == "events":
        fields |= {"start_day": "2031-05-02", "start_time": "10:00", "end_day": "2031-05-02", "end_time": "12:00"}
        fields |= {"action": "trash" if change == "trash" else "save", "original_title": "Twin"}
    if kind != "events" and change == "trash":
        path += "/trash"
    return client.post(path, fields).status_code

"""People: invitations, roles, disabling and removing, without script."""

import re

import pytest

from kalends.accounts.operations import user_accounts
from kalends.accounts.operations.sign_in_methods import hash_token
from tests.api.conftest import StartApp
from tests.api.running_app import API_PATH, RunningApp
from tests.console.console_client import PASSWORD, ConsoleClient

PEOPLE = "/console/people"
URLS = [
    ("GET", "/console/people"),
    ("GET", "/console/people/new"),
    ("POST", "/console/people/new"),
    ("GET", "/console/people/1"),
    *[("POST", f"/console/people/1/{action}") for action in ("role", "disable", "enable", "link", "remove")],
    ("GET", "/console/settings"),
    ("POST", "/console/settings"),
    ("GET", "/console/settings/appearance"),
    ("POST", "/console/settings/appearance"),
    ("GET", "/console/settings/preview"),
    ("POST", "/console/settings/preview"),
    ("GET", "/console/settings/contrast"),
]


@pytest.fixture(scope="module")
def administrator(app: RunningApp) -> ConsoleClient:
    return ConsoleClient.signed_in(app, "administrator")


@pytest.mark.quick("subscriber", "editor")
@pytest.mark.parametrize("login", ["subscriber", "contributor", "author", "editor"])
def test_other_roles_are_refused(app: RunningApp, login: str) -> None:
    client = ConsoleClient.signed_in(app, login)
    assert {url: client.request(url[0], url[1]).status_code for url in URLS} == dict.fromkeys(URLS, 403)


def test_visitors_are_sent_to_sign_in(visitor: ConsoleClient) -> None:
    assert {visitor.request(method, path).headers["location"].partition("?")[0] for method, path in URLS} == {
        "/console/sign-in"
    }


def test_person_is_invited_and_managed(app: RunningApp, administrator: ConsoleClient) -> None:
    page = administrator.page(f"{PEOPLE}/new")
    shown = administrator.post(f"{PEOPLE}/new", page.form(login="Berta.Lang@example.org", role="author"))
    assert shown.status_code == 200
    assert shown.headers["cache-control"] == "private, no-store"
    link = re.search(rf"https://{re.escape(app.host)}/console/link/([\w-]{{40,}})", shown.text)
    assert link
    user_id = find_id(app, "Berta.Lang")
    assert "Berta.Lang@example.org Author Invited" in administrator.page(PEOPLE).text
    person = administrator.page(f"{PEOPLE}/{user_id}")
    assert "Invite again" in person.text
    assert administrator.post(f"{PEOPLE}/{user_id}/role", person.form(role="editor")).headers["location"] == (
        f"{PEOPLE}/{user_id}?notice=saved"
    )
    assert "Berta.Lang@example.org Editor Invited" in administrator.page(PEOPLE).text
    berta = ConsoleClient(app)
    accepted = berta.post(f"/console/link/{link[1]}", {"password": PASSWORD})
    assert (accepted.status_code, bool(berta.token)) == (303, True)
    assert "Berta.Lang@example.org Editor Active" in administrator.page(PEOPLE).text
    assert administrator.post(f"{PEOPLE}/{user_id}/disable").headers["location"].endswith("?notice=disabled")
    assert "Berta.Lang@example.org Editor Disabled" in administrator.page(PEOPLE).text
    assert berta.get("/console/").headers["location"].startswith("/console/sign-in")
    assert administrator.post(f"{PEOPLE}/{user_id}/link", {"purpose": "reset"}).status_code == 409
    assert administrator.post(f"{PEOPLE}/{user_id}/enable").headers["location"].endswith("?notice=enabled")
    for purpose in ("sign_in", "reset"):
        assert "/console/link/" in administrator.post(f"{PEOPLE}/{user_id}/link", {"purpose": purpose}).text
    assert administrator.post(f"{PEOPLE}/{user_id}/remove").headers["location"] == f"{PEOPLE}?notice=removed"
    assert administrator.get(f"{PEOPLE}/{user_id}").status_code == 404


def test_invitation_is_sent_if_the_server_can(start_app: StartApp) -> None:
    app = start_app({"KALENDS_SMTP_URL": "smtp://127.0.0.1:9"})
    app.run_operation(lambda tx: user_accounts.set_account_password(tx, "administrator", PASSWORD))
    client = ConsoleClient.signed_in(app, "administrator")
    sent = client.post(f"{PEOPLE}/new", {"login": "emil@example.org", "role": "author"})
    assert (sent.status_code, sent.headers["location"]) == (303, f"{PEOPLE}?notice=invited")
    assert "Invitation sent." in client.page(sent.headers["location"]).text
    assert [job["args"]["to"] for job in app.jobs() if "to" in job["args"]] == ["emil@example.org"]
    # A login has no address to which a link could be sent.
    shown = client.post(f"{PEOPLE}/new", {"login": "emil-2", "role": "author"})
    assert (shown.status_code, "/console/link/" in shown.text) == (200, True)


def test_login_is_derived_once(app: RunningApp, administrator: ConsoleClient) -> None:
    for host in ("one", "two"):
        administrator.post(f"{PEOPLE}/new", {"login": f"carla@{host}.example", "role": "author"})
    rows = app.sql("SELECT login, email FROM users WHERE email LIKE 'carla@%' ORDER BY id")
    assert [tuple(row) for row in rows] == [("carla", "carla@one.example"), ("carla-2", "carla@two.example")]


@pytest.mark.quick("editor@example.org-A user with", "  -This field is required.")
@pytest.mark.parametrize(
    ("login", "message"),
    [
        ("editor@example.org", "A user with the login or the email address editor@example.org already exists."),
        ("EDITOR", "A user with the login or the email address EDITOR already exists."),
        ("a@b@c", "must be an email address such as name@example.org."),
        ("with space", "must have 1 to 60 characters, without spaces and colons."),
        ("  ", "This field is required."),
    ],
)
def test_invalid_invitation_is_explained_at_its_field(
    app: RunningApp, administrator: ConsoleClient, login: str, message: str
) -> None:
    before = app.sql("SELECT count(*) FROM users")
    refused = administrator.post(f"{PEOPLE}/new", {"login": login, "role": "author"})
    assert refused.status_code == 400
    assert f'id="login-error">{message}' in refused.text
    assert app.sql("SELECT count(*) FROM users") == before


def test_invalid_role_is_refused(administrator: ConsoleClient) -> None:
    refused = administrator.post(f"{PEOPLE}/new", {"login": "dora", "role": "anonymous"})
    assert refused.status_code == 400
    assert 'id="role-error">must be one of subscriber, ' in refused.text


@pytest.mark.quick("role", "remove")
@pytest.mark.parametrize("action", ["role", "disable", "remove"])
def test_last_administrator_is_guarded(app: RunningApp, administrator: ConsoleClient, action: str) -> None:
    user_id = app.users["administrator"].id
    fields = {"role": "editor", "confirm": "true", "reassign_to": "editor"}
    refused = administrator.post(f"{PEOPLE}/{user_id}/{action}", fields)
    assert refused.status_code == 400
    assert "administrator is the last administrator of this site." in refused.text
    assert app.sql("SELECT role, disabled_at FROM users WHERE id = $1", user_id)[0][:] == ("administrator", None)


@pytest.mark.quick("role", "remove")
@pytest.mark.parametrize("action", ["role", "disable", "remove"])
def test_own_rights_are_given_up_with_confirmation_only(app: RunningApp, action: str) -> None:
    client = sign_in_second_administrator(app)
    path = f"{PEOPLE}/{find_id(app, 'second')}"
    assert "I’m giving up my rights" in client.page(path).text
    refused = client.post(f"{path}/{action}", {"role": "author"})
    assert refused.status_code == 400
    assert "This is your own account." in refused.text
    assert client.post(f"{path}/{action}", {"role": "author", "confirm": "true"}).status_code == 303
    assert client.get(PEOPLE).status_code in (303, 403)
    app.sql("DELETE FROM users WHERE login = 'second'")


def test_records_get_a_new_author(app: RunningApp, administrator: ConsoleClient) -> None:
    user_id = app.run_operation(lambda tx: user_accounts.add_user(tx, "leaver", "author", ""))
    app.run_operation(lambda tx: user_accounts.set_account_password(tx, "leaver", PASSWORD))
    body = {"title": "Fair", "start_date": "2030-05-01 10:00:00", "end_date": "2030-05-01 11:00:00"}
    client = ConsoleClient.signed_in(app, "leaver")
    created = client.request("POST", f"{API_PATH}/events", json=body, headers={"accept": "application/json"})
    assert created.status_code == 201
    path = f"{PEOPLE}/{user_id}"
    assert "Someone else must become the author of one record." in administrator.page(path).text
    refused = administrator.post(f"{path}/remove")
    assert (refused.status_code, "Choose a new author" in refused.text) == (400, True)
    assert administrator.post(f"{path}/remove", {"reassign_to": "editor"}).status_code == 303
    rows = app.sql("SELECT author_id FROM events WHERE id = $1", created.json()["id"])
    assert rows[0]["author_id"] == app.users["editor"].id


@pytest.mark.quick("role", "remove")
@pytest.mark.parametrize("action", ["role", "disable", "enable", "link", "remove"])
def test_changes_require_recent_confirmation(app: RunningApp, action: str) -> None:
    client = ConsoleClient.signed_in(app, "administrator")
    app.sql(
        "UPDATE sessions SET reauthenticated_at = reauthenticated_at - interval '20 minutes' WHERE token_hash = $1",
        hash_token(client.token),
    )
    user_id = app.users["author"].id
    fields = {"role": "editor", "purpose": "reset", "reassign_to": "editor"}
    response = client.post(f"{PEOPLE}/{user_id}/{action}", fields)
    assert (response.status_code, response.headers["location"]) == (
        303,
        f"/console/confirm?next=/console/people/{user_id}",
    )
    assert client.get(f"{PEOPLE}/new").headers["location"] == "/console/confirm?next=/console/people/new"
    assert (
        client.post(f"{PEOPLE}/new", {"login": "x", "role": "author"})
        .headers["location"]
        .startswith("/console/confirm")
    )
    assert client.get(PEOPLE).status_code == 200
    assert app.sql("SELECT role, disabled_at FROM users WHERE id = $1", user_id)[0][:] == ("author", None)


def sign_in_second_administrator(app: RunningApp) -> ConsoleClient:
    app.run_operation(lambda tx: user_accounts.add_user(tx, "second", "administrator", ""))
    app.run_operation(lambda tx: user_accounts.set_account_password(tx, "second", PASSWORD))
    return ConsoleClient.signed_in(app, "second")


def find_id(app: RunningApp, login: str) -> int:
    return app.sql("SELECT id FROM users WHERE login = $1", login)[0]["id"]

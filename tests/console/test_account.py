"""The page of the own account, and the proof of identity that changes of credentials require."""

import re

import httpx
import pytest

from tests.api.running_app import API_PATH, RunningApp
from tests.console.console_client import PASSWORD, ConsoleClient


def age_proof(app: RunningApp) -> None:
    """Let the proof of identity of all sessions be an hour old."""
    app.sql("UPDATE sessions SET reauthenticated_at = reauthenticated_at - interval '1 hour'")


def is_signed_in(client: ConsoleClient) -> bool:
    return client.get("/console/account").status_code == 200


def test_profile_is_saved_in_the_chosen_language(author: ConsoleClient) -> None:
    page = author.page("/console/account")
    saved = author.post("/console/account", {"display_name": "Ada <b>Lovelace</b>", "language": "de"})
    assert (saved.status_code, saved.headers["location"]) == (303, "/console/account?notice=saved#profile")
    page = author.page("/console/account")
    assert '<html lang="de">' in page.html
    assert page.fields["display_name"] == ["Ada Lovelace"]
    assert page.fields["email"] == ["author@example.org"]
    author.post("/console/account", {"display_name": "", "language": ""})
    assert author.page("/console/account").fields["display_name"] == ["author"]


def test_editors_can_turn_off_the_summary(editor: ConsoleClient, author: ConsoleClient) -> None:
    assert "queue_email" not in author.page("/console/account").fields
    path = "/console/account"
    assert editor.page(path).fields["queue_email"] == ["false", "true"]
    editor.post(path, editor.page(path).form(queue_email="false"))
    assert editor.page(path).fields["queue_email"] == ["false"]
    editor.post(path, editor.page(path).form(queue_email=["false", "true"]))
    assert editor.page(path).fields["queue_email"] == ["false", "true"]


@pytest.mark.parametrize(("email", "problem"), [("editor@example.org", "already exists"), ("nobody", "must be an")])
def test_email_address_must_be_valid_and_unused(author: ConsoleClient, email: str, problem: str) -> None:
    response = author.post("/console/account", {"display_name": "author", "language": "", "email": email})
    assert response.status_code == 400
    assert problem in response.text
    assert f'value="{email}"' in response.text
    assert 'aria-invalid="true"' in response.text


def test_email_address_requires_proof(app: RunningApp, author: ConsoleClient) -> None:
    age_proof(app)
    assert 'name="email"' not in author.page("/console/account").html
    fields = {"display_name": "author", "language": "", "email": "new@example.org"}
    refused = author.post("/console/account", fields)
    assert refused.headers["location"] == "/console/confirm?next=/console/account"
    assert app.sql("SELECT email FROM users WHERE login = 'author'")[0]["email"] == "author@example.org"
    author.post("/console/confirm", {"password": PASSWORD, "next": "/console/account"})
    assert author.post("/console/account", fields).headers["location"].endswith("notice=saved#profile")
    author.post("/console/account", {**fields, "email": "author@example.org"})


def test_confirmation_checks_the_password(app: RunningApp, author: ConsoleClient) -> None:
    age_proof(app)
    page = author.page("/console/confirm?next=/console/account")
    wrong = author.post("/console/confirm", page.form(password="wrong wrong"))
    assert (wrong.status_code, "Wrong password." in wrong.text) == (401, True)
    right = author.post("/console/confirm", page.form(password=PASSWORD))
    assert (right.status_code, right.headers["location"]) == (303, "/console/account")
    assert 'name="new_password"' in author.page("/console/account").html
    elsewhere = author.post("/console/confirm", {"password": PASSWORD, "next": "https://evil.example/"})
    assert elsewhere.headers["location"] == "/console/"


def test_user_without_credentials_is_sent_to_a_new_link(app: RunningApp) -> None:
    client = ConsoleClient.signed_in(app, "subscriber")
    stored = app.sql("SELECT password_hash FROM users WHERE login = 'subscriber'")[0]["password_hash"]
    app.sql("UPDATE users SET password_hash = '' WHERE login = 'subscriber'")
    assert "/console/reset?login=subscriber" in client.page("/console/confirm").html
    app.sql("UPDATE users SET password_hash = $1 WHERE login = 'subscriber'", stored)


@pytest.mark.quick("/console/account/password", "/console/account/passkeys/remove")
@pytest.mark.parametrize(
    "path",
    ["/console/account/password", "/console/account/application-passwords", "/console/account/passkeys/remove"],
)
def test_changes_of_credentials_require_proof(app: RunningApp, author: ConsoleClient, path: str) -> None:
    age_proof(app)
    refused = author.post(path, {"new_password": "a new password", "name": "script"})
    assert refused.headers["location"] == "/console/confirm?next=/console/account"
    assert ConsoleClient(app).sign_in("author").status_code == 303


def test_new_password_ends_other_sessions_and_replaces_the_token(app: RunningApp) -> None:
    here, there = ConsoleClient.signed_in(app, "contributor"), ConsoleClient.signed_in(app, "contributor")
    stolen = ConsoleClient(app, here.token)
    assert here.post("/console/account/password", {"new_password": "short"}).status_code == 400
    changed = here.post("/console/account/password", {"new_password": "a new password"})
    assert changed.headers["location"] == "/console/account?notice=password-changed"
    assert here.token != stolen.token
    assert [is_signed_in(client) for client in (here, there, stolen)] == [True, False, False]
    assert ConsoleClient(app).sign_in("contributor").status_code == 401
    assert ConsoleClient(app).sign_in("contributor", "a new password").status_code == 303
    here.post("/console/account/password", {"new_password": PASSWORD})


def test_devices_are_listed_and_signed_out(app: RunningApp) -> None:
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
    here = ConsoleClient.signed_in(app, "editor")
    there = ConsoleClient(app, headers={"user-agent": agent}, client_ip="198.51.100.7")
    there.sign_in("editor")
    third = ConsoleClient.signed_in(app, "editor")
    page = here.page("/console/account")
    assert "Firefox on Linux" in page.text
    assert "198.51.100.7" in page.text
    form = re.search(r'Firefox on Linux.*?name="id" value="([0-9a-f]+)"', page.html, re.DOTALL)
    assert form
    # The session of somebody else cannot be ended.
    ConsoleClient.signed_in(app, "author").post("/console/account/devices/sign-out", {"id": form[1]})
    assert is_signed_in(there)
    here.post("/console/account/devices/sign-out", {"id": form[1]})
    assert [is_signed_in(client) for client in (here, there, third)] == [True, False, True]
    here.post("/console/account/devices/sign-out-others")
    assert [is_signed_in(client) for client in (here, third)] == [True, False]


def read_events(app: RunningApp, password: str) -> httpx.Response:
    return app.caller().get(f"https://{app.host}{API_PATH}/events", auth=("editor", password))


def test_application_password_is_shown_once_and_revoked(app: RunningApp, editor: ConsoleClient) -> None:
    fields = {"name": "Sync", "access": "read"}
    created = editor.post("/console/account/application-passwords", fields)
    assert created.status_code == 200
    password = re.search(r'id="created-password"[^>]* value="([^"]+)"', created.text)
    assert password
    assert read_events(app, password[1]).status_code == 200
    again = editor.post("/console/account/application-passwords", fields)
    assert (again.status_code, password[1] in again.text) == (400, False)
    page = editor.page("/console/account")
    assert password[1] not in page.html
    assert "read-only" in page.text
    revoked = editor.post("/console/account/application-passwords/revoke", {"name": "Sync"})
    assert revoked.headers["location"].endswith("#application-passwords")
    assert read_events(app, password[1]).status_code == 401


@pytest.mark.parametrize(
    ("access", "rights"),
    [("propose", (True, True)), ("read", (True, False)), ("full", (False, False)), ("", (True, False))],
)
def test_application_password_has_the_chosen_rights(
    app: RunningApp, editor: ConsoleClient, access: str, rights: tuple[bool, bool]
) -> None:
    """A form without the choice, such as one of an earlier version, makes no password that can do everything."""
    name = f"Rights of {access or 'none'}"
    editor.post("/console/account/application-passwords", {"name": name, "access": access})
    rows = app.sql("SELECT read_only, may_propose FROM application_passwords WHERE name = $1", name)
    assert [tuple(row) for row in rows] == [rights]
    assert ("can propose" in editor.page("/console/account").text) == (access == "propose")
    editor.post("/console/account/application-passwords/revoke", {"name": name})


@pytest.mark.quick("role", "password")
@pytest.mark.parametrize("change", ["role", "disable", "password"])
def test_operator_ends_sessions(app: RunningApp, change: str) -> None:
    from kalends.accounts.operations import user_accounts

    client = ConsoleClient.signed_in(app, "subscriber")
    if change == "role":
        app.run_operation(lambda tx: user_accounts.set_role(tx, "subscriber", "subscriber"))
    elif change == "disable":
        app.run_operation(lambda tx: user_accounts.disable_user(tx, "subscriber"))
        app.run_operation(lambda tx: user_accounts.enable_user(tx, "subscriber"))
    else:
        app.run_operation(lambda tx: user_accounts.set_account_password(tx, "subscriber", PASSWORD))
    assert not is_signed_in(client)

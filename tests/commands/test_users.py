"""`kalends user`: accounts are disabled, renamed and removed; a site keeps an administrator."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace

from tests.api.running_app import API_PATH, HOST, RunningApp, assert_error
from tests.api.sample_records import SAMPLES
from tests.lifecycle.processes import run_command, wait_until

LAST = "administrator is the last administrator of this site. Give another account the role administrator first."


def stdout(app: RunningApp, *arguments: str) -> str:
    result = run_command(app.database_url, "user", *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


def stderr(app: RunningApp, *arguments: str) -> str:
    result = run_command(app.database_url, "user", *arguments)
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    return result.stderr.strip()


def test_last_administrator_is_kept(start_app: Callable[..., RunningApp]) -> None:
    app = start_app()
    for arguments in (
        ("set-role", "administrator", "editor"),
        ("disable", "administrator"),
        ("remove", "administrator", "--yes", "--reassign-to", "editor"),
    ):
        assert stderr(app, *arguments) == LAST
    assert stdout(app, "set-role", "editor", "administrator") == "editor has the role administrator."
    assert stdout(app, "disable", "editor") == "editor can no longer sign in."
    assert stderr(app, "set-role", "administrator", "author") == LAST  # A disabled one does not count.
    assert stdout(app, "enable", "editor") == "editor can sign in again."
    assert stdout(app, "disable", "administrator") == "administrator can no longer sign in."


def test_disabled_account_cannot_sign_in(start_app: Callable[..., RunningApp]) -> None:
    app = start_app()
    # A process records the use of a password by an IP address once an hour; other tests have the same passwords.
    editor = replace(app.caller("editor"), client_ip="198.51.100.77")
    event = editor.create("events", **SAMPLES["events"].body())["id"]
    app.run(asyncio.sleep(1))  # The use is recorded after the response.
    wait_until(lambda: editor.get("/tags").is_success and " never " not in find_line(app, "editor"), 10)
    assert re.fullmatch(
        r"\d+ editor active \d{4}-\d\d-\d\d \d\d:\d\d editor editor@example\.org", find_line(app, "editor")
    )
    assert " never " in find_line(app, "author")
    stdout(app, "disable", "editor")
    assert " disabled " in find_line(app, "editor")
    assert editor.get("/events").status_code == 401
    assert_error(editor.post("/events", SAMPLES["events"].body()), 401, "incorrect_password")
    assert app.caller().read("events", event)["id"] == event
    stdout(app, "enable", "editor")
    assert editor.get("/events").status_code == 200


def find_line(app: RunningApp, login: str) -> str:
    lines = [" ".join(line.split()) for line in stdout(app, "list").splitlines()]
    return next(line for line in lines if f" {login} " in f"{line} ".replace(f"{login}@", ""))


def test_removed_account_hands_its_records_over(start_app: Callable[..., RunningApp]) -> None:
    app = start_app()
    author, editor = app.caller("author"), app.caller("editor")
    event = author.create("events", **SAMPLES["events"].body(status="draft"))
    heir = app.users["editor"]
    assert stderr(app, "remove", "author", "--yes").endswith(
        "is the author of 1 records. Pass --reassign-to with their new author."
    )
    assert (
        stderr(app, "remove", "author", "--yes", "--reassign-to", "author")
        == "--reassign-to must be another account."
    )
    assert stderr(app, "remove", "author", "--yes", "--reassign-to", "nobody") == "There is no user nobody."
    aborted = run_command(app.database_url, "user", "remove", "author", "--reassign-to", "editor")
    assert (aborted.exit_code, "Remove the account author?" in aborted.stdout) == (1, True)
    revision = app.sql("SELECT revision FROM sites")[0]["revision"]
    removed = stdout(app, "remove", "author", "--yes", "--reassign-to", "editor")
    assert removed == "Removed author. editor is the author of its 1 records."
    assert editor.read("events", event["id"])["author"] == str(heir.id)
    assert app.sql("SELECT revision FROM sites")[0]["revision"] == revision + 1
    history = run_command(app.database_url, "history", "events", str(event["id"])).stdout
    assert re.search(rf"author: '?{app.users['author'].id}'? -> '?{heir.id}'?", history), history
    assert author.get("/events").status_code == 401
    assert stderr(app, "remove", "author", "--yes") == "There is no user author."
    assert stdout(app, "remove", "subscriber", "--yes") == "Removed subscriber."


def test_login_and_email_can_be_changed(start_app: Callable[..., RunningApp]) -> None:
    app = start_app()
    rule = "must have 1 to 60 characters, without spaces and colons."
    for login in ("bob smith", " bob", "bob:smith", "", "bob\tsmith"):
        assert stderr(app, "add", login, "--role", "editor") == f"LOGIN {rule}"
    assert stderr(app, "rename", "editor", "ed itor") == f"NEW_LOGIN {rule}"
    expected = "A user with the login or the email address author already exists."
    assert stderr(app, "rename", "editor", "author") == expected
    assert stdout(app, "rename", "editor", "Edith") == "editor is now Edith."
    assert stdout(app, "set-email", "edith", "edith@example.org") == "edith has the email address edith@example.org."
    assert stderr(app, "set-email", "edith", "AUTHOR@example.org").endswith("already exists.")
    assert stderr(app, "set-email", "edith", "nobody").startswith("EMAIL ")
    url = f"http://{HOST}{API_PATH}/events"
    password = app.users["editor"].password
    caller = app.caller()
    statuses = [
        caller.get(url, auth=(name, password)).status_code for name in ("edith", "edith@example.org", "editor")
    ]
    assert statuses == [200, 200, 401]
    assert stdout(app, "set-email", "edith", "") == "edith has no email address."
    hint = "ROLE must be one of subscriber, contributor, author, editor, administrator. Did you mean administrator?"
    assert stderr(app, "add", "carl", "--role", "admin") == hint


def test_invitation_and_link_are_printed(start_app: Callable[..., RunningApp]) -> None:
    app = start_app()
    added, explanation, url = stdout(app, "add", "grace", "--role", "editor", "--invite").splitlines()
    assert re.fullmatch(r"Added grace as editor \(ID \d+\)\.", added)
    assert explanation == "The invitation works once, within seven days:"
    assert re.fullmatch(r"http://localhost:8000/console/link/[\w-]{43}", url)
    settings = {"KALENDS_BASE_URL": "https://server.example"}
    result = run_command(app.database_url, "user", "link", "grace", settings=settings)
    assert re.fullmatch(r"https://server\.example/console/link/[\w-]{43}\n", result.stdout)
    app.set_site("base_url", "https://town.example")
    result = run_command(app.database_url, "user", "link", "grace", settings=settings)
    assert result.stdout.startswith("https://town.example/console/link/")
    purposes = app.sql("SELECT purpose FROM one_time_tokens ORDER BY purpose")
    assert [row["purpose"] for row in purposes] == ["invite", "sign_in"]  # A newer link replaces an older one.
    stdout(app, "disable", "grace")
    assert app.sql("SELECT FROM one_time_tokens") == []
    assert stderr(app, "link", "grace") == "There is no user grace who can sign in."
    assert stderr(app, "link", "nobody") == "There is no user nobody who can sign in."


def test_history_names_kinds_and_missing_records(start_app: Callable[..., RunningApp]) -> None:
    app = start_app()
    event = app.caller("editor").create("events", **SAMPLES["events"].body())["id"]
    for kind in ("event", "events", "Events"):
        assert " create" in run_command(app.database_url, "history", kind, str(event)).stdout
    missing = run_command(app.database_url, "history", "venue", "99")
    assert (missing.exit_code, missing.stderr) == (1, "There is no venue 99, or its history has expired.\n")
    unknown = run_command(app.database_url, "history", "tags", "1")
    assert (unknown.exit_code, unknown.stderr) == (1, "KIND must be one of event, venue, organizer.\n")

"""Webhooks in the console without script: from the form to the log, and the emails about failing endpoints."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from kalends.accounts.operations.sign_in_methods import hash_token
from kalends.core.times import utc_now
from kalends.push.mails import write_notice
from kalends.push.operations.webhook_delivery import Notice
from kalends.store.database import Transaction
from tests.api.running_app import RunningApp
from tests.console.conftest import administrator, app, editor, start_app_for_module
from tests.console.console_client import ConsoleClient, Page

__all__ = ["administrator", "app", "editor", "start_app_for_module"]

PATH = "/console/settings/webhooks"
URL = "https://receiver.example/hook"


@pytest.fixture(autouse=True)
def base_url(app: RunningApp) -> Iterator[None]:
    app.set_site("base_url", f"https://{app.host}")
    yield
    app.sql("DELETE FROM webhooks")
    app.sql("DELETE FROM log_consumers")


def create(client: ConsoleClient, **fields: str) -> Page:
    form = client.page(f"{PATH}/new").form(name="City website", url=URL, **fields)
    response = client.post(f"{PATH}/new", form)
    assert response.status_code == 200, Page.parse(response.text).text[:1000]
    return Page.parse(response.text)


def find_path(app: RunningApp) -> str:
    [row] = app.sql("SELECT id FROM webhooks")
    return f"{PATH}/{row['id']}"


def find_secret(page: Page) -> str:
    found = re.search(r'value="(whsec_[^"]+)"', page.html)
    assert found, page.text
    return found[1]


def follow(client: ConsoleClient, path: str, fields: dict[str, Any] | None = None) -> Page:
    response = client.post(path, fields)
    assert response.status_code == 303, Page.parse(response.text).text[:1000]
    return client.page(response.headers["location"])


def test_endpoint_is_created_and_its_secret_shown_once(app: RunningApp, administrator: ConsoleClient) -> None:
    assert "There are no webhooks yet." in administrator.page(PATH).text
    secret = find_secret(create(administrator))
    path = find_path(app)
    page = administrator.page(path)
    assert "whsec_" not in page.html
    assert f"{URL} Changes to send Everything" in page.text
    assert "City website https://receiver.example/hook Active" in administrator.page(PATH).text
    rotated = Page.parse(administrator.post(f"{path}/rotate").text)
    assert find_secret(rotated) != secret
    assert "The former secret remains valid for 24 hours." in rotated.text


def test_form_explains_what_is_wrong(app: RunningApp, administrator: ConsoleClient) -> None:
    form = administrator.page(f"{PATH}/new").form(name="City website", url="http://10.0.0.1/hook")
    response = administrator.post(f"{PATH}/new", form)
    assert response.status_code == 400
    page = Page.parse(response.text)
    assert "must be an https URL" in page.text
    assert page.form()["url"] == "http://10.0.0.1/hook"
    app.set_site("base_url", "")
    page = administrator.page(f"{PATH}/new")
    assert "a webhook needs the address of this calendar" in page.text
    assert "url" not in page.fields


def test_what_is_sent_can_be_chosen_and_changed(app: RunningApp, administrator: ConsoleClient) -> None:
    category = app.caller("editor").create("categories", name="Music")["id"]
    create(administrator, what=f"category:{category}", thin="true")
    path = find_path(app)
    assert "Only events in Music IDs and addresses only" in administrator.page(path).text
    form = administrator.page(f"{path}/settings").form()
    assert form["what"] == f"category:{category}"
    assert "Only events" in follow(administrator, f"{path}/settings", {**form, "what": "events"}).text
    # A filter that the form does not offer stays as it is.
    venue = app.caller("editor").create("venues", venue="Hall")["id"]
    webhook = path.rpartition("/")[2]
    app.caller("administrator").request("PATCH", f"//api/kalends/v1/webhooks/{webhook}", json={"venue": [venue]})
    form = administrator.page(f"{path}/settings").form(name="Renamed")
    assert form["what"] == "as-is"
    assert "Renamed" in follow(administrator, f"{path}/settings", form).text
    assert str(venue) in app.sql("SELECT filter::text FROM webhooks")[0]["filter"]


def test_messages_are_sent_again_by_delivery_record_and_date(app: RunningApp, administrator: ConsoleClient) -> None:
    event = app.caller("editor").create("events", title="Concert", start_date="2031-01-01", end_date="2031-01-01")
    create(administrator)
    path = find_path(app)
    webhook = path.rpartition("/")[2]
    page = follow(administrator, f"{path}/test")
    assert "The message is being sent." in page.text
    assert "Not delivered" in page.text
    app.sql("DELETE FROM webhook_pending")
    app.sql(
        "INSERT INTO webhook_deliveries SELECT site_id, id, 7, now(), 'msg_x_1', 'event.updated', 'events', $1, 1, "
        "2, 500, '', 31 FROM webhooks",
        event["id"],
    )
    page = administrator.page(path)
    assert f"Attempt 2 event.updated Event {event['id']} 500 31 ms" in page.text
    assert f'href="/console/events/{event["id"]}"' in page.html
    follow(administrator, f"{path}/resend", {"delivery": "7"})
    pending = "SELECT kind, record_id, attempts, next_attempt_at <= now() AS is_due FROM webhook_pending"
    assert [tuple(row) for row in app.sql(pending)] == [("events", event["id"], 0, True)]
    app.sql("UPDATE webhook_pending SET attempts = 10, next_attempt_at = NULL, last_status = 500")
    assert "Given up until its next change" in administrator.page(path).text
    follow(administrator, f"{path}/resend", {"kind": "events", "record": str(event["id"])})
    assert [tuple(row) for row in app.sql(pending)] == [("events", event["id"], 0, True)]
    yesterday = (utc_now() - timedelta(days=1)).date().isoformat()
    assert "is being sent again" in follow(administrator, f"{path}/replay", {"date": yesterday}).text
    response = administrator.post(f"{path}/replay", {"date": "2099-01-01"})
    assert response.status_code == 400
    assert "must be in the past." in response.text
    assert administrator.post(f"{path}/resend", {"delivery": "8"}).status_code == 404
    assert webhook in path


def test_states_are_shown_and_changed(app: RunningApp, administrator: ConsoleClient) -> None:
    create(administrator)
    path = find_path(app)
    page = follow(administrator, f"{path}/state", {"state": "paused"})
    assert "Paused since" in page.text
    assert "Send test message" not in page.text
    assert "Paused" in administrator.page(PATH).text
    assert "Pause" in follow(administrator, f"{path}/state", {"state": "active"}).text
    app.sql("UPDATE webhooks SET failing_since = now() - interval '2 hours'")
    assert "Messages have been failing since" in administrator.page(path).text
    assert "Failing" in administrator.page(PATH).text
    for reason, text in (("gone", "410 Gone"), ("failing", "no message has arrived for five days")):
        app.sql("UPDATE webhooks SET disabled_at = now(), disabled_reason = $1", reason)
        page = administrator.page(path)
        assert text in page.text
        assert "Resume" in page.text
    follow(administrator, f"{path}/state", {"state": "active"})
    assert administrator.page(f"{path}/delete").text.count("City website") == 1
    assert "There are no webhooks yet." in follow(administrator, f"{path}/delete").text


def test_rights_and_confirmation(app: RunningApp, administrator: ConsoleClient, editor: ConsoleClient) -> None:
    create(administrator)
    path = find_path(app)
    for page in (PATH, f"{PATH}/new", path, f"{path}/settings", f"{path}/delete"):
        assert editor.get(page).status_code == 403
    for action in ("test", "state", "replay", "resend", "rotate", "delete"):
        assert editor.post(f"{path}/{action}").status_code == 403
    assert administrator.get(f"{PATH}/unknown00000").status_code == 404
    app.sql(
        "UPDATE sessions SET reauthenticated_at = reauthenticated_at - interval '20 minutes' WHERE token_hash = $1",
        hash_token(administrator.token),
    )
    for response, target in (
        (administrator.get(f"{PATH}/new"), f"{PATH}/new"),
        (administrator.post(f"{PATH}/new", {"name": "x", "url": URL}), f"{PATH}/new"),
        (administrator.post(f"{path}/rotate"), path),
    ):
        assert response.headers["location"] == f"/console/confirm?next={target}"
    assert f'href="/console/confirm?next={path}"' in administrator.page(path).html


def write(app: RunningApp, notice: Notice) -> list[tuple[str, str, str]]:
    """Let the worker write an email, and return address, subject and text of each."""
    app.remove_jobs(app.jobs())
    webhook: str = app.sql("SELECT id FROM webhooks")[0]["id"]

    async def run(tx: Transaction) -> None:
        await write_notice(tx, webhook, notice, "")

    app.run_operation(run)
    mails = [job["args"] for job in app.jobs() if job["task_name"] == "send_email"]
    return [(mail["to"], mail["subject"], mail["text"]) for mail in mails]


def test_owner_is_told_what_fails(app: RunningApp, administrator: ConsoleClient) -> None:
    create(administrator)
    path = find_path(app)
    assert write(app, "failing") == []
    app.sql("UPDATE webhooks SET failing_since = '2031-03-12 11:00Z'")
    [(to, subject, text)] = write(app, "failing")
    assert to == "administrator@example.org"
    assert "has been failing since Mar 12, 2031" in subject
    assert f"Webhook: City website\nAddress: {URL}" in text
    assert "by Mar 17, 2031" in text
    assert text.endswith(f"https://{app.host}{path}\n")
    assert "so we’ve disabled it" in write(app, "disabled")[0][2]
    assert "410 Gone" in write(app, "gone")[0][2]
    # If the account no longer manages the site, all administrators get the email, each in their language.
    app.sql("UPDATE webhooks SET owner_id = $1", app.users["editor"].id)
    app.sql("UPDATE users SET language = 'de' WHERE login = 'administrator'")
    [(to, subject, _)] = write(app, "gone")
    assert to == "administrator@example.org"

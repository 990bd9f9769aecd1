"""Links that work once: signing in, invitations, and resets."""

import asyncio
import logging
import re

import pytest

from kalends.accounts.operations.sign_in_methods import Purpose, create_link_token
from kalends.bootstrap import JsonFormatter
from tests.api.running_app import RunningApp
from tests.console.console_client import PASSWORD, ConsoleClient


def make_link(app: RunningApp, purpose: Purpose, login: str = "subscriber") -> str:
    user_id = app.users[login].id
    return f"/console/link/{app.run_operation(lambda tx: create_link_token(tx, user_id, purpose))}"


def test_sign_in_link_works_once(app: RunningApp) -> None:
    path, first, second = make_link(app, Purpose.SIGN_IN), ConsoleClient(app), ConsoleClient(app)
    for _ in range(2):  # Opening it does not use it up.
        page = first.page(path)
        assert "You’ll be signed in as subscriber." in page.text
    response = first.post(path)
    assert (response.status_code, response.headers["location"]) == (303, "/console/")
    assert first.get("/console/account").status_code == 200
    assert second.post(path).status_code == 404
    assert second.token == ""
    assert "This link doesn’t work" in second.page(path, 404).text
    # The password stays as it was.
    assert ConsoleClient(app).sign_in("subscriber").status_code == 303


def test_address_of_link_stays_secret(app: RunningApp, visitor: ConsoleClient) -> None:
    path = make_link(app, Purpose.SIGN_IN)
    for response in (visitor.get(path), visitor.get(f"{path}x")):
        assert response.headers["referrer-policy"] == "no-referrer"
        assert response.headers["cache-control"] == "private, no-store"
        assert path.rpartition("/")[2] not in response.text


def test_log_does_not_contain_the_token(app: RunningApp, caplog: pytest.LogCaptureFixture) -> None:
    path = make_link(app, Purpose.SIGN_IN)
    app.flush_log()
    caplog.clear()  # The lines of earlier tests are captured if the level is low enough.
    with caplog.at_level(logging.INFO, "kalends"):
        ConsoleClient(app).get(path)
        ConsoleClient(app).post(path)
        app.flush_log()
    logged = [line for record in caplog.records for line in JsonFormatter().format(record).splitlines()]
    assert sum("/console/link/…" in line for line in logged) == 2
    assert not any(path.rpartition("/")[2] in line for line in logged)


def test_concurrent_requests_use_a_link_once(app: RunningApp) -> None:
    path = make_link(app, Purpose.SIGN_IN)
    clients = [ConsoleClient(app) for _ in range(5)]

    async def use_all() -> list[int]:
        responses = await asyncio.gather(*[client.request_async("POST", path) for client in clients])
        return sorted(response.status_code for response in responses)

    assert app.run(use_all()) == [303, 404, 404, 404, 404]


@pytest.mark.parametrize("purpose", [Purpose.INVITE, Purpose.RESET])
def test_link_sets_a_password(app: RunningApp, purpose: Purpose) -> None:
    path, client, other = make_link(app, purpose), ConsoleClient(app), ConsoleClient.signed_in(app, "subscriber")
    page = client.page(path)
    for password in ("", "too short"):
        refused = client.post(path, page.form(password=password))
        assert refused.status_code == 400
        assert "The password must have at least 10 characters." in refused.text
    assert client.post(path, page.form(password="a good password")).headers["location"] == "/console/"
    assert client.get("/console/account").status_code == 200
    assert other.get("/console/account").status_code == 303  # Other sessions have ended.
    assert ConsoleClient(app).sign_in("subscriber", "a good password").status_code == 303
    client.post("/console/account/password", {"new_password": PASSWORD})


def test_invitation_works_without_a_password(app: RunningApp) -> None:
    path, client = make_link(app, Purpose.INVITE), ConsoleClient(app)
    assert client.post(path, {"password": "", "skip": "true"}).status_code == 303
    reset = make_link(app, Purpose.RESET)
    assert client.post(reset, {"password": "", "skip": "true"}).status_code == 400


def test_link_replaces_the_session_of_another_user(app: RunningApp) -> None:
    client = ConsoleClient.signed_in(app, "editor")
    editor = ConsoleClient(app, client.token)
    client.post(make_link(app, Purpose.SIGN_IN))
    assert "subscriber" in client.page("/console/account").text
    assert editor.get("/console/account").status_code == 303


def test_expired_replaced_and_disabled_links_do_not_work(app: RunningApp, visitor: ConsoleClient) -> None:
    expired = make_link(app, Purpose.RESET)
    app.sql("UPDATE one_time_tokens SET expires_at = now() - interval '1 second'")
    assert visitor.post(expired, {"password": "a good password"}).status_code == 404
    replaced, newer = make_link(app, Purpose.INVITE), make_link(app, Purpose.INVITE)
    assert [visitor.get(path).status_code for path in (replaced, newer)] == [404, 200]
    app.sql("UPDATE users SET disabled_at = now() WHERE login = 'subscriber'")
    assert visitor.get(newer).status_code == 404
    app.sql("UPDATE users SET disabled_at = NULL WHERE login = 'subscriber'")


def test_new_password_makes_links_useless(app: RunningApp, visitor: ConsoleClient) -> None:
    sign_in, reset = make_link(app, Purpose.SIGN_IN), make_link(app, Purpose.RESET)
    assert visitor.post(reset, {"password": PASSWORD}).status_code == 303
    assert ConsoleClient(app).get(sign_in).status_code == 404


def test_challenge_is_no_link(app: RunningApp, visitor: ConsoleClient) -> None:
    for name in ("x", "A" * 64, "A" * 100, "A" * 101):
        assert visitor.get(f"/console/link/{name}").status_code == 404


def test_reset_without_smtp_server_names_the_administrator(app: RunningApp, visitor: ConsoleClient) -> None:
    assert "An administrator can create a link" in visitor.page("/console/reset").text
    known, unknown = (visitor.post("/console/reset", {"login": name}) for name in ("editor", "nobody"))
    assert (known.status_code, known.text) == (unknown.status_code, unknown.text)
    assert app.jobs("send_email") == []
    assert re.search(r'href="/console/reset"', visitor.page("/console/sign-in").html)

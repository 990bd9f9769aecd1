"""Signing in and out with a password, and the session in the API."""

import pytest

from tests.api.running_app import API_PATH, RunningApp
from tests.console.console_client import ConsoleClient


def test_sign_in_leads_to_requested_page(visitor: ConsoleClient) -> None:
    refused = visitor.get("/console/?search=x")
    assert (refused.status_code, refused.headers["location"]) == (
        303,
        "/console/sign-in?next=/console/%3Fsearch%3Dx",
    )
    page = visitor.page("/console/sign-in?next=/console/%3Fsearch%3Dx")
    response = visitor.post("/console/sign-in", page.form(login="editor", password="correct horse battery"))
    assert (response.status_code, response.headers["location"]) == (303, "/console/?search=x")
    cookie = response.headers["set-cookie"]
    assert cookie.startswith("__Host-kalends=")
    assert all(part in cookie for part in ("HttpOnly", "Secure", "Path=/", "SameSite=lax"))
    assert "domain" not in cookie.lower()
    assert response.headers["cache-control"] == "private, no-store"


@pytest.mark.parametrize("login", ["editor", "nobody"])
def test_wrong_password_gets_same_answer_for_unknown_login(visitor: ConsoleClient, login: str) -> None:
    response = visitor.sign_in(login, "wrong")
    assert response.status_code == 401
    assert "Wrong login or password." in response.text
    assert "set-cookie" not in response.headers


@pytest.mark.quick("https://evil.example/", "/console/\\n/x")
@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example/", "/\\evil.example", "/console/\\evil", "/console/\n/x"]
)
def test_sign_in_never_redirects_to_another_host(app: RunningApp, target: str) -> None:
    response = ConsoleClient(app).sign_in("author", next=target)
    assert response.headers["location"] == "/console/"


def test_token_is_replaced_when_signing_in_again(app: RunningApp) -> None:
    client = ConsoleClient.signed_in(app, "author")
    first = client.token
    client.sign_in("author")
    assert client.token != first
    assert ConsoleClient(app, first).get("/console/").headers["location"].startswith("/console/sign-in")


def test_signed_out_session_is_gone(editor: ConsoleClient) -> None:
    token = editor.token
    assert editor.post("/console/sign-out").status_code == 303
    assert editor.token == ""
    assert ConsoleClient(editor.app, token).get("/console/").headers["location"].startswith("/console/sign-in")


def test_api_accepts_session(editor: ConsoleClient) -> None:
    body = {"title": "From the console", "start_date": "2030-05-01 10:00:00", "end_date": "2030-05-01 11:00:00"}
    headers = {"accept": "application/json"}
    created = editor.request("POST", f"{API_PATH}/events", json={**body, "status": "draft"}, headers=headers)
    assert created.status_code == 201
    path = f"{API_PATH}/events/{created.json()['id']}"
    assert editor.get(path, headers=headers).headers["cache-control"] == "private, no-store"
    assert ConsoleClient(editor.app).get(path, headers=headers).status_code == 403
    assert editor.get(path, headers={**headers, "sec-fetch-site": "cross-site"}).status_code == 403


def test_pages_and_assets_are_compressed(visitor: ConsoleClient) -> None:
    page = visitor.get("/console/sign-in", headers={"accept-encoding": "gzip"})
    assert (page.headers["content-encoding"], page.headers["vary"]) == ("gzip", "Accept-Encoding")
    style = page.text.partition('href="/console/assets/')[2].partition('"')[0]
    asset = visitor.get(f"/console/assets/{style}", headers={"accept-encoding": "gzip"})
    assert (asset.status_code, asset.headers["content-encoding"]) == (200, "gzip")
    assert "content-encoding" not in visitor.get("/console/sign-in", headers={"accept-encoding": "identity"}).headers


def test_link_on_another_site_opens_the_console(editor: ConsoleClient) -> None:
    cross_site = {"sec-fetch-site": "cross-site"}
    opened = {**cross_site, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert editor.get("/console/events", headers=opened).status_code == 200
    framed = {**opened, "sec-fetch-dest": "iframe"}
    for headers in (framed, {**cross_site, "sec-fetch-mode": "cors"}, cross_site):
        assert editor.get("/console/events", headers=headers).status_code == 303
    assert editor.post("/console/sign-out", headers=opened).status_code == 403

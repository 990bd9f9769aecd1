"""Wrong sign-ins are counted by account and by network, however the login and the address are written."""

from collections.abc import Callable
from dataclasses import replace

import httpx

from tests.api.running_app import Caller, RunningApp

LOGIN_SPELLINGS = ("editor", "EDITOR", "ed\u0130tor", "ED\u0130TOR", "editor@example.org", "Editor@Example.ORG")


def login_status(app: RunningApp, login: str, password: str, address: str) -> int:
    return Caller(app, 0, httpx.BasicAuth(login, password), client_ip=address).get("/tags").status_code


def test_login_spellings_share_attempt_limit(start_app: Callable[..., RunningApp]) -> None:
    app = start_app()
    right, address = app.users["editor"].password, "10.0.0.1"
    assert [login_status(app, "editor", "wrong", address) for _ in range(10)] == [401] * 10
    assert {login: login_status(app, login, right, address) for login in LOGIN_SPELLINGS} == dict.fromkeys(
        LOGIN_SPELLINGS, 429
    )
    # The others of this address, and this account elsewhere, are not concerned.
    assert login_status(app, "author", app.users["author"].password, address) == 200
    assert login_status(app, "editor", right, "10.0.0.2") == 200
    assert login_status(app, "nobody", "wrong", address) == 401


def test_attempts_with_many_spellings_add_up(start_app: Callable[..., RunningApp]) -> None:
    app = start_app()
    statuses = [login_status(app, LOGIN_SPELLINGS[n % 6], "wrong", "10.0.0.1") for n in range(12)]
    assert statuses == [401] * 10 + [429] * 2


def test_addresses_of_one_network_share_attempt_limit(start_app: Callable[..., RunningApp]) -> None:
    app = start_app()
    statuses = [login_status(app, "editor", "wrong", f"2001:db8:0:1:{n:x}::{n:x}") for n in range(12)]
    assert statuses == [401] * 10 + [429] * 2
    right = app.users["editor"].password
    assert login_status(app, "editor", right, "2001:db8:0:1::") == 429
    assert login_status(app, "editor", right, "2001:db8:0:2::") == 200


def test_anonymous_requests_are_not_throttled(start_app: Callable[..., RunningApp]) -> None:
    app = start_app()
    for _ in range(11):
        login_status(app, "editor", "wrong", "10.0.0.1")
    assert replace(app.caller(), client_ip="10.0.0.1").get("/tags").status_code == 200

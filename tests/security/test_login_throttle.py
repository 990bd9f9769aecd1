"""Wrong sign-ins are counted by account and by network, however the login and the address are written."""

from collections.abc import Callable
from dataclasses import replace

import httpx

from tests.api.running_app import Caller, Interface

SPELLINGS = ("editor", "EDITOR", "ed\u0130tor", "ED\u0130TOR", "editor@example.org", "Editor@Example.ORG")


def attempt(interface: Interface, login: str, password: str, address: str) -> int:
    return Caller(interface, 0, httpx.BasicAuth(login, password), address=address).get("/tags").status_code


def test_login_spellings_share_attempt_limit(fresh: Callable[..., Interface]) -> None:
    interface = fresh()
    right, address = interface.people["editor"].password, "10.0.0.1"
    assert [attempt(interface, "editor", "wrong", address) for _ in range(10)] == [401] * 10
    assert {login: attempt(interface, login, right, address) for login in SPELLINGS} == dict.fromkeys(SPELLINGS, 429)
    # The others of this address, and this account elsewhere, are not concerned.
    assert attempt(interface, "author", interface.people["author"].password, address) == 200
    assert attempt(interface, "editor", right, "10.0.0.2") == 200
    assert attempt(interface, "nobody", "wrong", address) == 401


def test_attempts_with_many_spellings_add_up(fresh: Callable[..., Interface]) -> None:
    interface = fresh()
    statuses = [attempt(interface, SPELLINGS[n % 6], "wrong", "10.0.0.1") for n in range(12)]
    assert statuses == [401] * 10 + [429] * 2


def test_addresses_of_one_network_share_attempt_limit(fresh: Callable[..., Interface]) -> None:
    interface = fresh()
    statuses = [attempt(interface, "editor", "wrong", f"2001:db8:0:1:{n:x}::{n:x}") for n in range(12)]
    assert statuses == [401] * 10 + [429] * 2
    right = interface.people["editor"].password
    assert attempt(interface, "editor", right, "2001:db8:0:1::") == 429
    assert attempt(interface, "editor", right, "2001:db8:0:2::") == 200


def test_anonymous_requests_are_not_throttled(fresh: Callable[..., Interface]) -> None:
    interface = fresh()
    for _ in range(11):
        attempt(interface, "editor", "wrong", "10.0.0.1")
    assert replace(interface.caller(), address="10.0.0.1").get("/tags").status_code == 200

"""Behind two proxies wrong passwords count for the client, not for a proxy; made-up addresses do not help."""

from collections import Counter
from collections.abc import Callable
from itertools import count

import httpx
import pytest

from kalends.settings import InvalidSettings, read_settings
from tests.api.running_app import RunningApp

CACHE_PROXY, TLS_PROXY = "127.0.0.1", "10.1.2.3"
ATTACKER, VICTIM = "198.51.100.7", "203.0.113.5"
TWO_PROXIES = {"KALENDS_TRUSTED_PROXIES": f"{CACHE_PROXY}, 10.1.0.0/16"}

LoginRequest = Callable[[str, str, str], int]


@pytest.fixture
def request_login(start_app: Callable[..., RunningApp]) -> LoginRequest:
    """Log in from an IP address through the TLS proxy and Varnish."""
    app = start_app(TWO_PROXIES)

    def status(login: str, password: str, forwarded: str) -> int:
        caller = app.caller()
        caller.client_ip, caller.headers = CACHE_PROXY, {"X-Forwarded-For": f"{forwarded}, {TLS_PROXY}"}
        caller.auth = httpx.BasicAuth(login, password or app.users[login].password)
        return caller.get("/tags").status_code

    return status


def test_client_behind_proxies_does_not_lock_out_others(request_login: LoginRequest) -> None:
    statuses = Counter(request_login(f"user{n}", "wrong", ATTACKER) for n in range(75))
    # 60 are free for an address; some more are forgiven while the others are counted.
    assert set(statuses) == {401, 429}
    assert 60 <= statuses[401] <= 63
    assert request_login("editor", "", ATTACKER) == 429
    assert request_login("editor", "", VICTIM) == 200


def test_forged_forwarded_addresses_are_ignored(request_login: LoginRequest) -> None:
    forged_addresses = (f"192.0.2.{n}" for n in count(1))
    statuses = Counter(
        request_login("editor", "wrong", f"{next(forged_addresses)}, {TLS_PROXY}, {CACHE_PROXY}, {ATTACKER}")
        for _ in range(30)
    )
    assert set(statuses) == {401, 429}
    assert 10 <= statuses[401] <= 12
    assert request_login("editor", "", VICTIM) == 200


def test_untrusted_peer_cannot_choose_its_address(start_app: Callable[..., RunningApp]) -> None:
    caller = start_app(TWO_PROXIES).caller()
    caller.client_ip, caller.auth = ATTACKER, httpx.BasicAuth("editor", "wrong")
    spoofed = [{"X-Forwarded-For": f"192.0.2.{n}"} for n in range(15)]
    statuses = [caller.get("/tags", headers=headers).status_code for headers in spoofed]
    assert statuses[:10] + statuses[-2:] == [401] * 10 + [429] * 2


def test_invalid_proxy_setting_is_rejected_at_startup() -> None:
    with pytest.raises(InvalidSettings, match=r"KALENDS_TRUSTED_PROXIES=.*such as 127\.0\.0\.1"):
        read_settings(trusted_proxies="127.0.0.1, proxy.example")

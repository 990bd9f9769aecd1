"""Limits of sign-in: failed attempts, and simultaneous ones, whose hashes take memory."""

import asyncio
import threading
import time
from collections import Counter
from datetime import timedelta

import httpx
import pytest

from kalends.core.errors import ApiError
from kalends.core.limits import Limit, remaining_count, seconds_to_wait
from kalends.core.times import utc_now
from kalends.http.auth import LIMITS, PER_ACCOUNT, PER_ACCOUNT_AND_IP, PER_IP, AccountPasswords
from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient


def test_wrong_passwords_are_throttled(app: RunningApp) -> None:
    client, other = ConsoleClient(app, client_ip="203.0.113.1"), ConsoleClient(app, client_ip="203.0.113.2")
    statuses = [client.sign_in("author", "wrong").status_code for _ in range(PER_ACCOUNT_AND_IP.burst + 1)]
    assert statuses == [401] * PER_ACCOUNT_AND_IP.burst + [429]
    refused = client.sign_in("author")  # Even the right password: otherwise guessing would go on.
    assert refused.status_code == 429
    assert 0 < int(refused.headers["retry-after"]) <= PER_ACCOUNT_AND_IP.seconds
    assert "Too many failed attempts" in refused.text
    assert other.sign_in("author").status_code == 303


@pytest.mark.parametrize("limit", [PER_ACCOUNT_AND_IP, PER_IP, PER_ACCOUNT])
def test_ten_thousand_attempts_take_hours(limit: Limit) -> None:
    """Simulate an attacker who tries again as soon as it is allowed."""
    now, count, counted_at = utc_now(), 0.0, utc_now()
    started = now
    for _ in range(10_000):
        now += timedelta(seconds=seconds_to_wait(limit, count, counted_at, now))
        count, counted_at = 1 + remaining_count(limit, count, counted_at, now), now
    least = (10_000 - limit.burst) * limit.seconds
    assert least - 1 <= (now - started).total_seconds() <= least + 10_000
    assert least > 13 * 3600


def test_owner_can_sign_in_during_an_attack_from_elsewhere(app: RunningApp) -> None:
    home = ConsoleClient(app, client_ip="198.51.100.20")
    assert home.sign_in("contributor").status_code == 303
    subject = f"account user {app.users['contributor'].id}"
    site_id = app.sql("SELECT id FROM sites")[0]["id"]
    app.sql("INSERT INTO login_failures VALUES ($1, $2, 10000, now())", site_id, subject)
    elsewhere = ConsoleClient(app, client_ip="198.51.100.21").sign_in("contributor")
    assert elsewhere.status_code == 429
    assert int(elsewhere.headers["retry-after"]) > 13 * 3600
    # The address of a session is known.
    assert ConsoleClient(app, client_ip="198.51.100.20").sign_in("contributor").status_code == 303


def test_simultaneous_attempts_use_two_threads(app: RunningApp) -> None:
    clients = [ConsoleClient(app, client_ip=f"192.0.2.{number}") for number in range(100)]
    fields = {"login": "nobody", "password": "wrong"}

    async def attempt() -> list[httpx.Response]:
        requests = [client.request_async("POST", "/console/sign-in", data=fields) for client in clients]
        return list(await asyncio.gather(*requests))

    earlier = set(find_password_threads())
    responses = app.run(attempt())
    statuses = Counter(response.status_code for response in responses)
    assert set(statuses) <= {401, 429, 503}
    assert statuses[401] >= 1
    assert statuses[503] >= 100 - LIMITS.total - LIMITS.waiting - PER_ACCOUNT.burst
    assert all("retry-after" in row.headers for row in responses if row.status_code == 503)
    assert len(set(find_password_threads()) - earlier) <= LIMITS.total


def find_password_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("account-password")]


async def count_hashes(passwords: AccountPasswords, client_ips: list[str]) -> int:
    """Hash for each client at once; return how many hashes were made. The others are rejected."""
    attempts = [passwords.hash("a password", client_ip) for client_ip in client_ips]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    refused = [result for result in results if isinstance(result, ApiError)]
    assert {(error.status, error.headers["Retry-After"]) for error in refused} <= {(503, "1")}
    return len([result for result in results if isinstance(result, str)])


def test_queue_is_short() -> None:
    made = asyncio.run(count_hashes(AccountPasswords(), [f"192.0.2.{number}" for number in range(100)]))
    assert 0 < made <= LIMITS.total + LIMITS.waiting  # Fewer on a busy machine, because the wait is limited.


def test_one_client_leaves_room_for_others() -> None:
    async def attack() -> int:
        passwords = AccountPasswords()
        flood = asyncio.create_task(count_hashes(passwords, ["192.0.2.1"] * 100))
        await asyncio.sleep(0)
        started = time.monotonic()
        await passwords.hash("a password", "192.0.2.2")
        assert not flood.done()
        assert time.monotonic() - started < 5
        return await flood

    assert asyncio.run(attack()) <= LIMITS.per_owner + LIMITS.waiting_per_owner


def test_slot_is_kept_until_the_thread_has_finished() -> None:
    async def disconnect() -> None:
        passwords = AccountPasswords()
        tasks = [asyncio.create_task(passwords.hash("a password", f"192.0.2.{number}")) for number in range(2)]
        await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        started = time.monotonic()
        await passwords.hash("a password", "192.0.2.9")  # Waits for one of the two.
        assert time.monotonic() - started > 0.03

    asyncio.run(disconnect())

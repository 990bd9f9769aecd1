"""Event passwords are hashed slowly, outside the event loop, and earlier hashes still open their events."""

import asyncio
import time
from collections.abc import Callable

import httpx
import pytest

from kalends.calendar.kinds.events import MAX_WAITING, SLOW_PREFIX, PasswordHashes, hash_fast, hash_slowly
from kalends.core.errors import ApiError
from tests.api.running_app import RunningApp, assert_error, expect_json
from tests.api.sample_records import DATES

PASSWORD, SECRET = "open sesame", bytes(32)


def test_guess_costs_fifty_milliseconds_of_cpu() -> None:
    costs = []
    for n in range(3):
        started = time.thread_time()
        hash_slowly(SECRET, f"guess {n}")
        costs.append(time.thread_time() - started)
    assert min(costs) >= 0.05, costs


def test_stored_hashes_are_slow_and_comparable(start_app: Callable[..., RunningApp]) -> None:
    app = start_app()
    editor = app.caller("editor")
    ids = [editor.create("events", title=f"Event {n}", new_password=PASSWORD, **DATES)["id"] for n in range(2)]
    stored = {row["password_hash"] for row in app.sql("SELECT password_hash FROM events")}
    (site,) = app.sql("SELECT secret FROM sites")
    assert stored == {hash_slowly(site["secret"], PASSWORD)}
    assert {(len(entry), entry[:1]) for entry in stored} == {(33, SLOW_PREFIX)}
    logged = app.sql("SELECT after::text AS after FROM changes WHERE kind = 'events'")
    assert not any(hash_fast(site["secret"], PASSWORD).hex() in row["after"] for row in logged)
    # One event still has the hash of an earlier version; both are opened by one list.
    app.sql("UPDATE events SET password_hash = $1 WHERE id = $2", hash_fast(site["secret"], PASSWORD), ids[0])
    app.sql("UPDATE sites SET revision = revision + 1")
    assert sorted(app.caller().ids("events", password=PASSWORD, featured=0)) == sorted(ids)
    assert app.caller().ids("events", password="wrong one", featured=0) == []


def test_event_loop_is_not_blocked_by_hashing() -> None:
    async def measure() -> tuple[int, float]:
        hashes, ticks, longest = PasswordHashes(), 0, 0.0
        task = asyncio.create_task(hashes.compute(SECRET, PASSWORD))
        while not task.done():
            started = time.perf_counter()
            await asyncio.sleep(0.002)
            ticks, longest = ticks + 1, max(longest, time.perf_counter() - started)
        return ticks, longest

    ticks, _ = asyncio.run(measure())
    assert ticks >= 5


def test_only_passwords_in_use_are_cached() -> None:
    async def measure_cpu(hashes: PasswordHashes, word: str) -> float:
        started = time.process_time()
        await hashes.compute(SECRET, word)
        return time.process_time() - started

    async def run() -> None:
        hashes = PasswordHashes()
        # The same wrong guess again is no cheaper.
        assert min([await measure_cpu(hashes, "wrong") for _ in range(2)]) >= 0.04
        slow = await hashes.compute_and_add(SECRET, PASSWORD)
        assert slow == hash_slowly(SECRET, PASSWORD)
        assert await measure_cpu(hashes, PASSWORD) < 0.04
        # Another site has another secret.
        assert await hashes.compute(bytes(31) + b"1", PASSWORD) != slow

    asyncio.run(run())


def test_hashing_queue_is_limited() -> None:
    async def run() -> list[object]:
        hashes = PasswordHashes()
        tasks = [hashes.compute(SECRET, f"guess {n}") for n in range(MAX_WAITING + 3)]
        return await asyncio.gather(*tasks, return_exceptions=True)

    results = asyncio.run(run())
    rejected = [entry for entry in results if isinstance(entry, ApiError)]
    assert [entry.status for entry in rejected] == [503] * 3
    assert rejected[0].headers["Retry-After"] == "1"


def test_passwords_are_hashed_only_after_throttle_and_login(
    start_app: Callable[..., RunningApp], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kalends.calendar.kinds import events

    app = start_app()
    editor = app.caller("editor")
    event = editor.create("events", title="Guessed", new_password=PASSWORD, **DATES)
    hashed: list[str] = []
    monkeypatch.setattr(
        events,
        "hash_slowly",
        lambda secret, word: hashed.append(word) or SLOW_PREFIX + hash_fast(secret, word),
    )
    path = f"/events/{event['id']}"
    statuses = [app.caller().get(path, {"password": f"guess {n}"}).status_code for n in range(25)]
    assert statuses == [403] * 20 + [429] * 5
    assert hashed == [f"guess {n}" for n in range(20)]
    hashed.clear()
    for headers in ({}, {"Authorization": "Basic ZWRpdG9yOndyb25n"}):
        body = {"title": "x", "new_password": "another", **DATES}
        response = app.caller().post("/events", body, headers=headers)
        assert response.status_code == 401
    assert app.caller("subscriber").patch(path, {"new_password": "another"}).status_code == 403
    assert hashed == []


def test_batch_limits_distinct_passwords(start_app: Callable[..., RunningApp]) -> None:
    app = start_app()
    batch = "//api/kalends/v1/batch"

    def run(words: list[str]) -> httpx.Response:
        operations = [
            {"method": "POST", "path": "/events", "body": {"title": f"E{n}", "new_password": word, **DATES}}
            for n, word in enumerate(words)
        ]
        return app.caller("editor").post(batch, {"operations": operations})

    assert len(expect_json(run(["same password"] * 60))["results"]) == 60
    assert_error(run([f"password {n}" for n in range(21)]), 400, "rest_invalid_param", "operations")


def test_site_without_protected_events_hashes_nothing(
    start_app: Callable[..., RunningApp], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kalends.calendar.kinds import events

    app = start_app()
    monkeypatch.setattr(events, "hash_slowly", lambda *_: pytest.fail("hashed"))
    app.caller("editor").create("events", title="Open", **DATES)
    assert expect_json(app.caller().get("/events", {"password": PASSWORD}))["total"] == 1

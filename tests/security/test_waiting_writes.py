"""A user with many writes neither fills the queue for the site lock nor delays other people for long."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psycopg
import pytest

from kalends.core.limits import WriteTurns
from tests.api.running_app import Caller, RunningApp, assert_error
from tests.api.sample_records import DATES, unique
from tests.console.console_client import ConsoleClient, Page
from tests.robustness.site_fixtures import wait_until
from tests.series.series_client import EXTENSION

MAX_WAITING = 2


@pytest.fixture(scope="module")
def app(start_app_for_module: Callable[..., RunningApp]) -> RunningApp:
    return start_app_for_module()


@contextmanager
def lock_site(app: RunningApp) -> Iterator[Callable[[], None]]:
    """Lock the site as another process would; the yielded function ends that early."""
    with psycopg.connect(app.database_url) as connection:
        connection.execute("SELECT FROM sites WHERE id = %s FOR NO KEY UPDATE", [app.site_id])
        yield connection.rollback


async def wait_for_lock(app: RunningApp) -> None:
    """Wait until a request waits for the site lock in the database."""

    def is_waiting() -> bool:
        with psycopg.connect(app.database_url, autocommit=True) as connection:
            return bool(connection.execute("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'").rowcount)

    await wait_until(is_waiting)


def add_venue(caller: Caller, name: str = "") -> Any:
    return caller.request_async("POST", "/venues", json={"venue": name or unique("Venue")})


def test_only_two_writes_of_a_user_wait_for_the_lock(app: RunningApp) -> None:
    async def run() -> tuple[list[httpx.Response], list[httpx.Response], list[httpx.Response]]:
        with lock_site(app) as unlock:
            waiting = [asyncio.create_task(add_venue(app.caller("contributor"))) for _ in range(MAX_WAITING)]
            await wait_for_lock(app)
            await asyncio.sleep(0.3)
            refused = [await add_venue(app.caller("contributor")) for _ in range(3)]
            others = [asyncio.create_task(add_venue(app.caller(role))) for role in ("author", "editor")]
            done, _ = await asyncio.wait([*waiting, *others], timeout=0.5)
            assert not done, [task.result().text for task in done]
            unlock()
            return await asyncio.gather(*waiting), refused, await asyncio.gather(*others)

    waiting, refused, others = app.run(run())
    assert [response.status_code for response in [*waiting, *others]] == [201] * 4
    for response in refused:
        assert_error(response, 429, "rest_too_many_writes")
        assert response.headers["retry-after"] == "1"
    # Whoever was refused can write again afterwards.
    assert app.run(add_venue(app.caller("contributor"))).status_code == 201


def test_users_take_turns(app: RunningApp) -> None:
    """The first write of a user comes before the second one of another user who was earlier."""

    async def run() -> None:
        with lock_site(app) as unlock:
            first = asyncio.create_task(add_venue(app.caller("contributor"), "Turn 1"))
            await wait_for_lock(app)
            tasks = [first]
            for role, name in (("contributor", "Turn 3"), ("editor", "Turn 2"), ("editor", "Turn 4")):
                tasks.append(asyncio.create_task(add_venue(app.caller(role), name)))
                await asyncio.sleep(0.3)
            unlock()
            await asyncio.gather(*tasks)

    app.run(run())
    rows = app.sql("SELECT title FROM venues WHERE title LIKE 'Turn %' ORDER BY revision")
    assert [row["title"] for row in rows] == ["Turn 1", "Turn 2", "Turn 3", "Turn 4"]


def test_writes_that_end_early_no_longer_count(app: RunningApp) -> None:
    async def run() -> httpx.Response:
        with lock_site(app) as unlock:
            for _ in range(3):
                waiting = [asyncio.create_task(add_venue(app.caller("contributor"))) for _ in range(MAX_WAITING)]
                await wait_for_lock(app)
                for task in waiting:
                    task.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)
            last = asyncio.create_task(add_venue(app.caller("contributor")))
            await asyncio.sleep(0.5)
            unlock()
            return await last

    assert app.run(run()).status_code == 201


async def test_cancelled_write_may_end_after_the_last_one() -> None:
    turns = WriteTurns()
    await turns.take(1, 1)
    cancelled = asyncio.create_task(turns.take(1, 2))
    await asyncio.sleep(0)
    cancelled.cancel()
    turns.end(1, 1)
    with pytest.raises(asyncio.CancelledError):
        await cancelled


def test_console_explains_the_refusal(app: RunningApp) -> None:
    """A form stays filled in; other actions lead to a page."""
    client = ConsoleClient.signed_in(app, "editor")
    event = app.caller("editor").create("events", title="Waiting", **DATES)
    form = client.page(f"/console/events/{event['id']}").form(title="Not saved", action="save")

    async def run() -> tuple[httpx.Response, httpx.Response]:
        with lock_site(app) as unlock:
            waiting = [asyncio.create_task(add_venue(app.caller("editor"))) for _ in range(MAX_WAITING)]
            await wait_for_lock(app)
            await asyncio.sleep(0.3)
            saved = await client.request_async("POST", f"/console/events/{event['id']}", data=form)
            undone = await client.request_async(
                "POST", f"/console/events/{event['id']}/history", data={"revision": "1"}
            )
            unlock()
            await asyncio.gather(*waiting)
            return saved, undone

    for response in app.run(run()):
        assert response.status_code == 429, response.text
        assert response.headers["retry-after"] == "1"
        assert "Your earlier changes are still being saved." in Page.parse(response.text).text
    assert app.caller("editor").read("events", event["id"])["title"] == "Waiting"


def test_description_has_the_error(app: RunningApp) -> None:
    document = app.caller().get(f"{EXTENSION}/doc").json()
    responses = document["paths"]["/series"]["post"]["responses"]["429"]
    assert "rest_too_many_writes" in str(responses)


def test_wrong_password_does_not_wait_for_the_lock(app: RunningApp) -> None:
    with lock_site(app):
        stranger = Caller(app, 0, httpx.BasicAuth("editor", "wrong"))
        assert_error(stranger.post("/venues", {"venue": unique("Venue")}), 401, "incorrect_password")


def test_invalid_parameters_do_not_wait_for_the_lock(app: RunningApp) -> None:
    with lock_site(app):
        assert_error(app.caller("editor").post("/venues", {"venue": ""}), 400, "rest_invalid_param", "venue")
        assert_error(app.caller("subscriber").post("/venues", {"venue": unique("Venue")}), 403, "rest_forbidden")

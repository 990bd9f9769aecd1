"""An account below the role editor creates a limited number of records per day, however it sends them."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tests.api.running_app import Caller, RunningApp, assert_error, expect_json
from tests.api.sample_records import DATES, SAMPLES, unique
from tests.console.console_client import ConsoleClient
from tests.series.series_client import EXTENSION, WEEKLY

BATCH = f"{EXTENSION}/batch"
DAILY_LIMIT = 6


@pytest.fixture
def app(start_app: Callable[..., RunningApp]) -> RunningApp:
    return start_app({"KALENDS_MAX_RECORDS_PER_DAY": str(DAILY_LIMIT)})


def count_records(app: RunningApp, kinds: tuple[str, ...] = ("events", "venues", "organizers")) -> int:
    return sum(app.sql(f"SELECT count(*) FROM {kind}")[0][0] for kind in kinds)


def add_event(caller: Caller, **more: object):
    return caller.post("/events", {"title": unique("Event"), **DATES, **more})


@pytest.mark.parametrize("role", ["contributor", "author"])
def test_daily_quota_is_enforced(app: RunningApp, role: str) -> None:
    caller = app.caller(role)
    for _ in range(DAILY_LIMIT):
        expect_json(add_event(caller), 201)
    rejection = caller.post("/venues", SAMPLES["venues"].body())
    assert_error(rejection, 429, "rest_quota_exceeded")
    assert 0 < int(rejection.headers["retry-after"]) <= 86_400
    assert count_records(app) == DAILY_LIMIT
    # Changing what is there is no new record, and others have quotas of their own.
    (event,) = app.sql("SELECT max(id) AS id FROM events WHERE author_id = $1", caller.id)
    expect_json(caller.patch(f"/events/{event['id']}", {"title": "Changed"}))
    other = app.caller("author" if role == "contributor" else "contributor")
    expect_json(add_event(other), 201)
    # The next day begins at zero.
    app.sql("UPDATE daily_records SET day = day - 1")
    expect_json(add_event(caller), 201)
    assert [row["count"] for row in app.sql("SELECT count FROM daily_records")] == [1, 1]


def test_inline_and_batch_records_are_counted(app: RunningApp) -> None:
    caller = app.caller("contributor")
    venues = [{"venue": unique("Venue")} for _ in range(DAILY_LIMIT)]
    # A request that is rejected as a whole is not counted.
    assert_error(add_event(caller, venue=venues), 429, "rest_quota_exceeded")
    assert count_records(app) == 0
    operations = [
        {"method": "POST", "path": "/events", "body": {"title": f"E{n}", **DATES, "venue": [venues[n]]}}
        for n in range(4)
    ]
    atomic = caller.post(BATCH, {"operations": operations})
    assert_error(atomic, 429, "rest_batch_failed")
    assert count_records(app) == 0
    each = expect_json(caller.post(BATCH, {"operations": operations, "atomic": False}))["results"]
    assert [result["status"] for result in each] == [201, 201, 201, 429]
    assert count_records(app) == DAILY_LIMIT


@pytest.mark.parametrize("role", ["editor", "administrator"])
def test_editors_have_no_quota(app: RunningApp, role: str) -> None:
    for _ in range(DAILY_LIMIT + 2):
        expect_json(add_event(app.caller(role)), 201)
    assert app.sql("SELECT FROM daily_records") == []


def test_zero_disables_quota(start_app: Callable[..., RunningApp]) -> None:
    app = start_app({"KALENDS_MAX_RECORDS_PER_DAY": "0"})
    for _ in range(DAILY_LIMIT + 2):
        expect_json(add_event(app.caller("contributor")), 201)
    assert app.sql("SELECT FROM daily_records") == []


# Failed writes -------------------------------------------------------------------------------


@pytest.fixture
def slow_app(start_app: Callable[..., RunningApp]) -> RunningApp:
    """Return an application whose writes have a second."""
    return start_app({"KALENDS_MAX_RECORDS_PER_DAY": "50", "KALENDS_TRANSACTION_TIMEOUT": "1"})


@contextmanager
def lock_events(app: RunningApp) -> Iterator[None]:
    """Let every write of an event wait until this ends, while it has locked the site."""
    with psycopg.connect(app.database_url) as connection:
        connection.execute("LOCK TABLE events IN EXCLUSIVE MODE")
        yield


def read_count(app: RunningApp) -> int:
    return sum(row["count"] for row in app.sql("SELECT count FROM daily_records"))


def create_event(title: str) -> dict[str, object]:
    return {"method": "POST", "path": "/events", "body": {"title": title, **DATES}}


def test_a_write_that_fails_after_it_locked_the_site_is_counted(slow_app: RunningApp) -> None:
    caller = slow_app.caller("contributor")
    with lock_events(slow_app):
        assert_error(caller.post(f"{EXTENSION}/series", WEEKLY), 503, "rest_unavailable")
    assert read_count(slow_app) == 1
    # So is a batch of which a part was written before it failed.
    batch = {"operations": [create_event("One"), create_event("Two"), {"method": "DELETE", "path": "/events/999"}]}
    assert_error(caller.post(BATCH, batch), 404, "rest_batch_failed")
    assert read_count(slow_app) == 2
    assert_error(slow_app.caller("editor").post(BATCH, batch), 404, "rest_batch_failed")
    assert read_count(slow_app) == 2
    expect_json(add_event(caller), 201)
    assert read_count(slow_app) == 3


def test_a_write_of_a_client_that_disconnects_is_counted(slow_app: RunningApp) -> None:
    caller = slow_app.caller("contributor")

    async def disconnect() -> None:
        task = asyncio.create_task(caller.request_async("POST", "/events", json={"title": "Gone", **DATES}))
        await asyncio.sleep(0.5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with lock_events(slow_app):
        slow_app.run(disconnect())
    slow_app.run(asyncio.sleep(0.5))
    assert read_count(slow_app) == 1


def test_refused_input_and_dry_runs_are_not_counted(slow_app: RunningApp) -> None:
    caller, other = slow_app.caller("contributor"), slow_app.caller("author")
    series = expect_json(caller.post(f"{EXTENSION}/series", WEEKLY), 201)
    foreign = other.create("events", title="Foreign", **DATES)["id"]
    event = caller.create("events", title="Own", **DATES)["id"]
    before = read_count(slow_app)
    assert_error(add_event(caller, start_date="soon"), 400, "rest_invalid_param", "start_date")
    assert_error(add_event(caller, categories=[999]), 400, "rest_invalid_param", "categories")
    assert_error(caller.patch("/events/999", {"title": "X"}), 404, "rest-event-not-found")
    assert caller.patch(f"/events/{foreign}", {"title": "X"}).status_code == 403
    stale = caller.patch(f"/events/{event}", {"title": "X"}, headers={"If-Match": '"1"'})
    assert_error(stale, 412, "rest_precondition_failed")
    assert_error(caller.post(BATCH, {"operations": [{"method": "DELETE", "path": "/events/999"}]}), 404,
        "rest_batch_failed")  # fmt: skip
    path = f"{EXTENSION}/series/{series['id']}?scope=all&dry_run=true"
    expect_json(caller.patch(path, {"title": "Dry"}))
    with lock_events(slow_app):
        assert_error(caller.patch(path, {"title": "Dry"}), 503, "rest_unavailable")
    assert read_count(slow_app) == before


def test_previews_in_the_console_are_not_counted(slow_app: RunningApp) -> None:
    client = ConsoleClient.signed_in(slow_app, "contributor")
    form = client.page("/console/events/new").form(title="Preview", start_date="2090-01-01", action="preview")
    response = client.post("/console/events/new", {**form, "start_time": "10:00", "end_time": "11:00"})
    assert (response.status_code, "Preview" in response.text) == (200, True), response.text
    assert read_count(slow_app) == 0
    assert count_records(slow_app) == 0
    # The preview of a form in a database that does not respond in time is not counted either.
    with lock_events(slow_app):
        client.post("/console/events/new", {**form, "start_time": "10:00", "end_time": "11:00"})
    assert read_count(slow_app) == 0

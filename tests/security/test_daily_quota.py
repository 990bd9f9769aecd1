"""An account below the role editor creates a limited number of records per day, however it sends them."""

from collections.abc import Callable

import pytest

from tests.api.running_app import Caller, RunningApp, assert_error, expect_json
from tests.api.sample_records import DATES, SAMPLES, unique

BATCH = "http://calendar.test/api/kalends/v1/batch"
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

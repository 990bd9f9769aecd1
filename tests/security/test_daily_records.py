"""An account below the role editor creates a limited number of records per day, however it sends them."""

from collections.abc import Callable

import pytest

from tests.api.interface import Caller, Interface, assert_refused, done
from tests.api.samples import DATES, SAMPLES, unique

BATCH = "http://calendar.test/api/kalends/v1/batch"
LIMIT = 6


@pytest.fixture
def interface(fresh: Callable[..., Interface]) -> Interface:
    return fresh({"KALENDS_DAILY_RECORDS": str(LIMIT)})


def count(interface: Interface, kinds: tuple[str, ...] = ("events", "venues", "organizers")) -> int:
    return sum(interface.sql(f"SELECT count(*) FROM {kind}")[0][0] for kind in kinds)


def add_event(caller: Caller, **more: object):
    return caller.post("/events", {"title": unique("Event"), **DATES, **more})


@pytest.mark.parametrize("role", ["contributor", "author"])
def test_one_more_than_the_limit_is_refused(interface: Interface, role: str) -> None:
    caller = interface.caller(role)
    for _ in range(LIMIT):
        done(add_event(caller), 201)
    refused = caller.post("/venues", SAMPLES["venues"].body())
    assert_refused(refused, 429, "rest_quota_exceeded")
    assert 0 < int(refused.headers["retry-after"]) <= 86_400
    assert count(interface) == LIMIT
    # Changing what is there is no new record, and others have quotas of their own.
    (event,) = interface.sql("SELECT max(id) AS id FROM events WHERE author_id = $1", caller.id)
    done(caller.patch(f"/events/{event['id']}", {"title": "Changed"}))
    other = interface.caller("author" if role == "contributor" else "contributor")
    done(add_event(other), 201)
    # The next day begins at zero.
    interface.sql("UPDATE daily_records SET day = day - 1")
    done(add_event(caller), 201)
    assert [row["count"] for row in interface.sql("SELECT count FROM daily_records")] == [1, 1]


def test_inline_records_and_those_of_a_batch_count(interface: Interface) -> None:
    caller = interface.caller("contributor")
    venues = [{"venue": unique("Venue")} for _ in range(LIMIT)]
    # What is refused as a whole is not counted.
    assert_refused(add_event(caller, venue=venues), 429, "rest_quota_exceeded")
    assert count(interface) == 0
    operations = [
        {"method": "POST", "path": "/events", "body": {"title": f"E{n}", **DATES, "venue": [venues[n]]}}
        for n in range(4)
    ]
    whole = caller.post(BATCH, {"operations": operations})
    assert_refused(whole, 429, "rest_batch_failed")
    assert count(interface) == 0
    each = done(caller.post(BATCH, {"operations": operations, "atomic": False}))["results"]
    assert [result["status"] for result in each] == [201, 201, 201, 429]
    assert count(interface) == LIMIT


@pytest.mark.parametrize("role", ["editor", "administrator"])
def test_editors_have_no_quota(interface: Interface, role: str) -> None:
    for _ in range(LIMIT + 2):
        done(add_event(interface.caller(role)), 201)
    assert interface.sql("SELECT FROM daily_records") == []


def test_zero_is_no_limit(fresh: Callable[..., Interface]) -> None:
    interface = fresh({"KALENDS_DAILY_RECORDS": "0"})
    for _ in range(LIMIT + 2):
        done(add_event(interface.caller("contributor")), 201)
    assert interface.sql("SELECT FROM daily_records") == []

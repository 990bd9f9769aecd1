"""`hide_subsequent_recurrences`: of each series the first date of the list, whatever the window, order and filter."""

from datetime import timedelta
from random import Random
from typing import Any

import pytest

from kalends.calendar.kinds.event_shortcuts import GAP_LIMITS
from tests.api.running_app import Caller, RunningApp
from tests.series.random_dates import BEGIN, SERIES, add_events, add_series
from tests.soak import scaled

HIDE = "hide_subsequent_recurrences"
ORDERS = ("start_date", "end_date", "title", "date", "modified")
WINDOWS = ("start_date", "end_date", "starts_before", "starts_after", "ends_before", "ends_after", "overlaps_from",
           "overlaps_to")  # fmt: skip


@pytest.fixture(scope="module")
def site(app: RunningApp) -> RunningApp:
    add_series(app)
    add_events(app, Random(1), 1, 400)
    app.sql("UPDATE sites SET revision = revision + 1, last_post_id = 10000")
    return app


@pytest.mark.parametrize("role", ["anonymous", "editor"])
def test_list_is_the_first_of_each_series_of_the_whole_list(site: RunningApp, role: str) -> None:
    caller, random = site.caller(role), Random(role)
    groups = {row["id"]: row["group"] for row in site.sql(
        "SELECT id, CASE WHEN series_id IS NULL OR password_hash IS NOT NULL THEN -id ELSE series_id END AS group"
        " FROM events")}  # fmt: skip
    shortened = 0
    for _ in range(scaled(60, 600)):
        params = make_params(random, role)
        everything = list_all(caller, params)
        expected = keep_first(everything, groups)
        assert list_all(caller, {**params, HIDE: "true"}) == expected, params
        assert list_by_cursor(caller, {**params, HIDE: "true"}) == [event["id"] for event in expected], params
        shortened += len(expected) < len(everything)
    assert shortened > 20


def make_params(random: Random, role: str) -> dict[str, Any]:
    dates = {name: make_date(random) for name in random.sample(WINDOWS, random.choice((1, 2, 2, 3)))}
    others: list[dict[str, Any]] = [
        {"featured": "true"}, {"search": "event a"}, {"series": f"{SERIES[0]},{SERIES[3]}"},
        {"include": ",".join(map(str, random.sample(range(1, 400), 60)))}, {"status": "publish"},
    ]  # fmt: skip
    if role == "editor":
        others += [{"status": "draft,private"}]
    order = {"orderby": random.choice(ORDERS), "order": random.choice(("asc", "desc"))}
    strict = {"strict_dates": "true"} if random.random() < 0.5 else {}
    return dates | order | strict | (random.choice(others) if random.random() < 0.5 else {})


def make_date(random: Random) -> str:
    return f"{BEGIN + timedelta(hours=random.randrange(-100, 1700)):%Y-%m-%d %H:%M:%S}"


def list_all(caller: Caller, params: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the ID and start of all events of a list, and check its total on every page."""
    events: list[dict[str, Any]] = []
    page, pages = 1, 1
    while page <= pages:
        body = caller.get("/events", {**params, "per_page": 37, "page": page}).json()
        events += [{"id": event["id"], "start": event["utc_start_date"]} for event in body["events"]]
        page, pages, total = page + 1, body["total_pages"], body["total"]
    assert len(events) == total, params
    return events


def list_by_cursor(caller: Caller, params: dict[str, Any]) -> list[int]:
    body = caller.get("/events", {**params, "per_page": 11}).json()
    ids = [event["id"] for event in body["events"]]
    while body["next_cursor"]:
        body = caller.get("/events", {**params, "per_page": 11, "cursor": body["next_cursor"]}).json()
        ids += [event["id"] for event in body["events"]]
    return ids


def keep_first(events: list[dict[str, Any]], groups: dict[int, int]) -> list[dict[str, Any]]:
    first: dict[int, dict[str, Any]] = {}
    for event in sorted(events, key=lambda event: (event["start"], event["id"])):
        first.setdefault(groups[event["id"]], event)
    return [event for event in events if first[groups[event["id"]]] is event]


def test_classes_of_the_database_have_the_limits_of_the_query(site: RunningApp) -> None:
    rows = site.sql("SELECT gap_class, start_utc - previous_start AS gap FROM series_steps WHERE gap_class < 99")
    assert len({row["gap_class"] for row in rows}) > 4
    limits = [0, *GAP_LIMITS]
    assert all(limits[row["gap_class"]] <= row["gap"].total_seconds() < limits[row["gap_class"] + 1] for row in rows)

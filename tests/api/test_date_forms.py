"""Dates in other forms than ISO, in lists, writes, pages and feeds, and how long responses with them are cached."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import API_PATH, RunningApp, assert_error, expect_json
from tests.api.test_response_cache import count_transactions

LIST = f"{API_PATH}/events"
MIDNIGHT = datetime(2026, 11, 16, 5, tzinfo=UTC)  # the end of 15 November in New York
EVENING = MIDNIGHT - timedelta(hours=3)
SECOND = timedelta(seconds=1)


@contextmanager
def clock_at(now: datetime) -> Iterator[None]:
    with patch("kalends.asgi.utc_now", lambda: now):
        yield


@pytest.fixture(scope="module")
def site(start_app_for_module: StartApp) -> RunningApp:
    """Return a site in New York with an event on each of the days around 15 November 2026."""
    app = start_app_for_module()
    app.set_site("timezone", "America/New_York")
    with clock_at(EVENING - timedelta(days=30)):
        for day in ("2026-11-14", "2026-11-15", "2026-11-16", "2026-11-22"):
            app.caller("editor").create("events", title=day, start_date=f"{day} 19:00", end_date=f"{day} 20:00")
    return app


def list_days(app: RunningApp, **query: str) -> list[str]:
    events = expect_json(app.caller().get("/events", query))["events"]
    return [event["start_date"][8:10] for event in events]


@pytest.mark.quick("now", "@1794747600")
@pytest.mark.parametrize(
    "first",
    [
        *("now", "today", "TODAY", " today ", "today 23:00", "2026/11/15", "2026/11/15T11:30", "2026-11-15 9:30"),
        *("11/15/2026", "November 15, 2026", "Nov 15 2026", "15 November 2026", "2026-11-15 11:30:00 UTC"),
        *("2026-11-15 10:00 AM", "Sun, 15 Nov 2026 11:30:00 +0000", "+1 hour", "-2 hours", "-1439 minutes"),
        *("2026-11-15 11:30 Europe/Berlin", "2026-11-15 11:30 +02:00", "@1794747600"),
    ],
)  # fmt: skip
def test_list_from_day_in_any_form(site: RunningApp, first: str) -> None:
    expected = ["14"] if first == "-1439 minutes" else []
    with clock_at(EVENING):
        assert list_days(site, start_date=first) == [*expected, "15", "16", "22"]
        assert list_days(site, overlaps_from=first, overlaps_to="2026-12") == [*expected, "15", "16", "22"]


@pytest.mark.quick("query0-expected0", "query8-expected8")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"start_date": "yesterday", "end_date": "tomorrow"}, ["14", "15", "16"]),
        ({"start_date": "2026-11", "end_date": "+1 week"}, ["14", "15", "16", "22"]),
        ({"start_date": "2026-11", "end_date": "2026-11"}, []),  # The month stands for its first day.
        ({"starts_after": "today"}, ["16", "22"]),
        ({"ends_before": "now"}, ["14", "15"]),
        ({"start_date": "now", "strict_dates": "1"}, ["16", "22"]),  # The event of today began an hour ago.
        ({"start_date": "-61 minutes", "strict_dates": "1"}, ["15", "16", "22"]),
        ({"start_date": "today 7:00 PM", "strict_dates": "1"}, ["15", "16", "22"]),
        ({"start_date": "today 7:01 PM", "strict_dates": "1"}, ["16", "22"]),
    ],
)
def test_relative_dates_of_lists(site: RunningApp, query: dict[str, str], expected: list[str]) -> None:
    with clock_at(MIDNIGHT - timedelta(hours=4)):
        assert list_days(site, **query) == expected


@pytest.mark.quick("20261115", "10:00 CET")
@pytest.mark.parametrize("wrong", ["20261115", "15/11/2026", "15.11.2026", "11/15/26", "next friday", "10:00 CET"])
def test_other_forms_are_rejected(site: RunningApp, wrong: str) -> None:
    response = site.caller().get("/events", {"start_date": wrong})
    assert_error(response, 400, "rest_invalid_param", "start_date")
    message = response.json()["data"]["params"]["start_date"]
    assert message.startswith("`start_date`: must be YYYY-MM-DD or YYYY-MM-DD HH:MM:SS, optionally with Z")


def test_year_outside_of_range_names_parameter(site: RunningApp) -> None:
    response = site.caller().get("/events", {"start_date": "+9999 years"})
    assert_error(response, 400, "rest_invalid_param", "start_date")
    body = {"title": "Late", "start_date": "today", "end_date": "+9999 years"}
    response = site.caller("editor").post("/events", body)
    assert_error(response, 400, "rest_invalid_param", "end_date")
    response = site.caller("editor").post("/venues", {"venue": "Late", "date": "+9999 years"})
    assert_error(response, 400, "rest_invalid_param", "date")


@pytest.mark.quick("05/05/2027 10:00 AM-2027-05-05 10:00:00", "+36 hours-2026-11-17 15:00:00")
@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("05/05/2027 10:00 AM", "2027-05-05 10:00:00"),
        ("2027/5/5T10:00", "2027-05-05 10:00:00"),
        ("May 5, 2027 10:00 pm", "2027-05-05 22:00:00"),
        ("Wed, 05 May 2027 10:00:00 +0000", "2027-05-05 12:00:00"),
        ("2027-05-05 10:00 America/New_York", "2027-05-05 16:00:00"),
        # 02:00 of 16 November in UTC: words belong to the zone of the event.
        ("now", "2026-11-16 03:00:00"),
        ("tomorrow 10:00", "2026-11-17 10:00:00"),
        ("+1 week", "2026-11-23 03:00:00"),
        ("+36 hours", "2026-11-17 15:00:00"),
    ],
)
def test_dates_of_writes_belong_to_zone_of_event(site: RunningApp, text: str, local: str) -> None:
    with clock_at(EVENING):
        event = site.caller("editor").create(
            "events", title="Write", start_date=text, end_date=text, timezone="Europe/Berlin", status="draft"
        )
        assert (event["start_date"], event["end_date"]) == (local, local)
        changed = site.caller("editor").change("events", event["id"], end_date="12/31/2030 9:00")
    assert (changed["start_date"], changed["end_date"]) == (local, "2030-12-31 09:00:00")


def test_publication_dates_in_other_forms(site: RunningApp) -> None:
    editor = site.caller("editor")
    with clock_at(EVENING):
        venue = editor.create("venues", venue="Hall", date="yesterday 9:00 AM")
        assert (venue["date"], venue["status"]) == ("2026-11-14 09:00:00", "publish")
        venue = editor.create("venues", venue="Hall", date_utc="today")
        assert venue["date_utc"] == "2026-11-16 00:00:00"  # The day has already begun in UTC.
        venue = editor.create("venues", venue="Hall", date="+1 day")
        assert (venue["date"], venue["status"]) == ("2026-11-16 21:00:00", "future")


def test_links_repeat_dates_as_sent(site: RunningApp) -> None:
    with clock_at(EVENING):
        body = expect_json(
            site.caller().get("/events", {"start_date": "now", "end_date": "+1 month", "per_page": "2"})
        )
    assert "start_date=now&" in body["next_rest_url"]
    assert "end_date=%2B1+month" in body["next_rest_url"]


# Caching ------------------------------------------------------------------------------------


def count_days(app: RunningApp, path: str, query: str) -> int:
    """Return how many of the events of the site a list, page or feed shows."""
    status, _, body = app.raw("GET", path, query=query.encode())
    assert status == 200, body[:300]
    return sum(f"{title} 19:00".encode() in body or f"/event/{title}/".encode() in body
               for title in ("2026-11-14", "2026-11-15", "2026-11-16", "2026-11-22"))  # fmt: skip


@pytest.mark.quick("start_date=now-/api/calendar/", "start_date=today&end_date=%2B1+year&strict_dates=1-/events.rss")
@pytest.mark.parametrize("path", [LIST, "/events/list/", "/events/search/", "/events.ics", "/events.rss"])
@pytest.mark.parametrize(
    "query",
    ["start_date=now", "start_date=now&end_date=2027-11-15", "start_date=today&end_date=%2B1+year&strict_dates=1"],
)
def test_cached_response_is_right_after_midnight_of_site(site: RunningApp, path: str, query: str) -> None:
    with clock_at(MIDNIGHT - SECOND):
        assert count_days(site, path, query) == 3
        if "strict" not in query:  # The exact end of that list changes every second.
            assert count_transactions(site, query.encode(), path) == 0
    with clock_at(MIDNIGHT + SECOND):
        assert count_days(site, path, query) == 2


@pytest.mark.quick("start_date=now&strict_dates=1-/api/", "start_date=today+10:00+UTC-/events.ics")
@pytest.mark.parametrize("path", [LIST, "/events/list/", "/events.ics"])
@pytest.mark.parametrize(
    "query",
    [
        *("start_date=now&strict_dates=1", "start_date=-1+day&strict_dates=1", "start_date=%2B1+hour"),
        *("end_date=-30+minutes&start_date=2026-01-01", "start_date=today+10:00+UTC"),
    ],
)
def test_response_that_changes_within_day_is_not_stored(site: RunningApp, path: str, query: str) -> None:
    with clock_at(EVENING):
        for _ in range(2):
            assert count_transactions(site, query.encode(), path) == 1
        assert site.raw("GET", path, query=query.encode())[1]["cache-control"] == "private, no-store"


def test_page_shows_day_of_relative_date(site: RunningApp) -> None:
    with clock_at(EVENING):
        page = site.raw("GET", "/events/search/", query=b"overlaps_from=today&overlaps_to=11/22/2026")[2].decode()
    assert 'value="2026-11-15"' in page
    assert 'value="2026-11-22"' in page
    assert "From: 15 Nov" in page or "From: Nov 15" in page, page

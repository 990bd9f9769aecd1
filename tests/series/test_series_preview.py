"""The preview of a rule, and the dates of a series."""

from typing import Any

import pytest

from tests.api.running_app import Caller, RunningApp, assert_error
from tests.series.series_client import EXTENSION, SeriesClient

START = {"start_date": "2027-01-05 19:30", "end_date": "2027-01-05 21:00", "timezone": "Europe/Berlin"}


@pytest.fixture
def client(editor: Caller) -> SeriesClient:
    return SeriesClient(editor)


def preview(caller: Caller, **fields: object) -> Any:
    response = caller.post(f"{EXTENSION}/series/preview", {**START, **fields})
    assert response.status_code == 200, response.text
    return response.json()


def test_a_preview_computes_dates_and_writes_nothing(app: RunningApp, contributor: Caller) -> None:
    revision = app.sql("SELECT revision FROM sites")
    body = preview(
        contributor, rule="FREQ=WEEKLY;BYDAY=TU;UNTIL=20270503", remove_dates=["2027-02-09"], add_dates=["2027-01-07"]
    )
    assert body["rule"]["weekdays"] == ["tuesday"]
    assert body["dates"][:3] == [
        {"start_date": "2027-01-05 19:30:00", "end_date": "2027-01-05 21:00:00"},
        {"start_date": "2027-01-07 19:30:00", "end_date": "2027-01-07 21:00:00"},
        {"start_date": "2027-01-12 19:30:00", "end_date": "2027-01-12 21:00:00"},
    ]
    assert (body["last"], body["count"], len(body["dates"])) == ("2027-04-27 19:30:00", 17, 17)
    assert app.sql("SELECT revision FROM sites") == revision


@pytest.mark.quick("en-FREQ=WEEKLY;UNTIL=20270503-", "en-FREQ=WEEKLY;BYDAY=TU;BYMONTH=1,")
@pytest.mark.parametrize(
    ("language", "rule", "text"),
    [
        ("en", "FREQ=WEEKLY;UNTIL=20270503", "Every Tuesday, until May 3, 2027"),
        ("de", "FREQ=WEEKLY;UNTIL=20270503", "Jeden Dienstag, bis zum 3. Mai 2027"),
        ("ja", {"frequency": "daily", "count": 5}, "毎日、全5回"),
        ("en", "FREQ=WEEKLY;BYDAY=TU;BYMONTH=1,2", None),
    ],
)
def test_a_preview_describes_the_rule(contributor: Caller, language: str, rule: object, text: str | None) -> None:
    response = contributor.post(f"{EXTENSION}/series/preview?lang={language}", {**START, "rule": rule})
    assert response.json()["text"] == text


def test_an_endless_rule_has_no_last_date(contributor: Caller) -> None:
    body = preview(contributor, rule={"frequency": "daily"})
    assert (body["last"], body["count"], len(body["dates"])) == (None, None, 50)


def test_a_preview_warns_of_skipped_and_ignored_dates(contributor: Caller) -> None:
    fields = {"start_date": "2027-01-31 10:00", "end_date": "2027-01-31 11:00", "add_dates": ["2027-03-31"]}
    body = preview(contributor, rule="FREQ=MONTHLY;COUNT=4", **fields)
    assert [entry["start_date"][:10] for entry in body["dates"]] == [
        "2027-01-31",
        "2027-03-31",
        "2027-05-31",
        "2027-07-31",
    ]
    assert [warning[:11] for warning in body["warnings"]] == ["Five months", "2027-03-31 "]


def test_a_preview_needs_only_the_start(contributor: Caller) -> None:
    response = contributor.post(f"{EXTENSION}/series/preview", {"start_date": "2027-01-05", "rule": "FREQ=DAILY"})
    assert response.json()["dates"][1]["start_date"] == "2027-01-06 00:00:00"


@pytest.mark.quick("fields0-rule", "fields5-end_date")
@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"rule": "FREQ=HOURLY"}, "rule"),
        ({"rule": "FREQ=WEEKLY;BYDAY=WE"}, "rule"),
        ({"rule": 5}, "rule"),
        ({"rule": "FREQ=DAILY", "remove_dates": ["2026-01-01"]}, "remove_dates"),
        ({"rule": "FREQ=DAILY", "add_dates": {"a": 1}}, "add_dates"),
        ({"rule": "FREQ=DAILY", "end_date": "2027-01-04"}, "end_date"),
    ],
)
def test_invalid_previews_are_rejected(contributor: Caller, fields: dict[str, object], name: str) -> None:
    assert_error(
        contributor.post(f"{EXTENSION}/series/preview", {**START, **fields}), 400, "rest_invalid_param", name
    )


def test_a_preview_requires_a_contributor(anonymous: Caller, subscriber: Caller) -> None:
    body = {**START, "rule": "FREQ=DAILY"}
    assert_error(anonymous.post(f"{EXTENSION}/series/preview", body), 401, "rest_forbidden")
    assert_error(subscriber.post(f"{EXTENSION}/series/preview", body), 403, "rest_forbidden")


def test_occurrences_are_made_removed_and_planned(client: SeriesClient, editor: Caller) -> None:
    series = client.create(title="Yoga", rule="FREQ=WEEKLY", remove_dates=["2027-01-19"])
    event = client.events(series["id"])[1]
    client.edit(event["id"], "this", start_date="2027-01-12 20:00:00", end_date="2027-01-12 22:00:00")
    body = client.occurrences(series["id"])
    made = [entry for entry in body["occurrences"] if entry["state"] == "made"]
    assert made[1] == {
        "slot": "2027-01-12 19:30:00",
        "state": "made",
        "event": event["id"],
        "start_date": "2027-01-12 20:00:00",
        "end_date": "2027-01-12 22:00:00",
        "timezone": "Europe/Berlin",
        "status": "publish",
        "own": ["times"],
    }
    assert len(made) == series["total"]
    planned = [entry for entry in body["occurrences"] if entry["state"] == "planned"]
    assert (planned[0]["event"], planned[0]["start_date"] > made[-1]["start_date"]) == (None, True)
    assert (len(body["occurrences"]), body["more"]) == (1000, True)
    slots = [entry["slot"] for entry in body["occurrences"]]
    assert slots == sorted(set(slots))
    removed = client.occurrences(series["id"], state="removed")
    assert [(entry["slot"], entry["event"]) for entry in removed["occurrences"]] == [("2027-01-19 19:30:00", None)]


def test_occurrences_are_limited_to_a_period(client: SeriesClient) -> None:
    series = client.create(title="Judo", rule="FREQ=WEEKLY")
    query = {"from": "2027-02-02", "to": "2027-02-16", "state": "made,planned"}
    slots = [entry["slot"][:10] for entry in client.occurrences(series["id"], **query)["occurrences"]]
    assert slots == ["2027-02-02", "2027-02-09", "2027-02-16"]
    later = client.occurrences(series["id"], **{"from": "2040-01-01", "to": "2040-01-31"})
    assert [entry["state"] for entry in later["occurrences"]] == ["planned"] * 5


def test_occurrences_show_only_what_the_caller_may_read(client: SeriesClient, anonymous: Caller) -> None:
    series = client.create(title="Karate")
    event = client.events(series["id"])[2]
    client.caller.change("events", event["id"], status="private")
    assert event["id"] in [entry["event"] for entry in client.occurrences(series["id"])["occurrences"]]
    public = SeriesClient(anonymous).occurrences(series["id"])
    assert event["id"] not in [entry["event"] for entry in public["occurrences"]]
    hidden = client.create(title="Hidden", status="draft")
    response = anonymous.get(f"{EXTENSION}/series/{hidden['id']}/occurrences")
    assert_error(response, 403, "series-not-accessible")

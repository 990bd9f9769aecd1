"""Creating a series, and edits of one date, the following ones, or all."""

from typing import Any

import pytest

from tests.api.running_app import Caller, assert_error
from tests.series.series_client import EXTENSION, SeriesClient


@pytest.fixture
def client(editor: Caller) -> SeriesClient:
    return SeriesClient(editor)


def starts(events: list[Any]) -> list[str]:
    return [event["start_date"] for event in events]


def test_a_series_creates_its_dates(client: SeriesClient) -> None:
    series = client.create(remove_dates=["2027-02-09"])
    events = client.events(series["id"])
    assert (series["total"], series["first"], series["last"]) == (16, "2027-01-05 19:30:00", "2027-04-27 19:30:00")
    assert "2027-02-09 19:30:00" not in starts(events)
    # 19:30 stays 19:30 when summer time begins.
    assert {event["start_date"][11:] for event in events} == {"19:30:00"}
    assert {event["utc_start_date"][11:] for event in events} == {"18:30:00", "17:30:00"}
    assert events[0]["slug"] == f"{series['slug']}-2027-01-05"
    assert events[0]["series"]["id"] == series["id"]
    assert len({event["uid"] for event in events}) == 16


def test_an_edit_of_all_dates_keeps_own_fields(client: SeriesClient) -> None:
    series = client.create(title="Choir")
    events = client.events(series["id"])
    client.edit(events[3]["id"], "this", title="Choir with guests")
    summary = client.edit(events[0]["id"], "all", title="Large choir", cost="5")
    after = client.events(series["id"])
    assert summary["kept_own"] == [{"event": events[3]["id"], "slot": events[3]["start_date"], "fields": ["title"]}]
    assert [event["title"] for event in after[2:5]] == ["Large choir", "Choir with guests", "Large choir"]
    assert after[3]["series"]["own"] == ["title"]
    assert [event["id"] for event in after] == [event["id"] for event in events]


def test_a_field_that_equals_the_series_again_is_no_longer_own(client: SeriesClient) -> None:
    series = client.create(title="Chess")
    event = client.events(series["id"])[1]
    client.edit(event["id"], "this", title="Chess for beginners", start_date="2027-01-12 18:00:00")
    assert client.events(series["id"])[1]["series"]["own"] == ["times", "title"]
    client.edit(event["id"], "this", title="Chess", start_date="2027-01-12 19:30:00")
    assert client.events(series["id"])[1]["series"]["own"] == []


def test_following_dates_move_and_keep_their_identity(client: SeriesClient) -> None:
    series = client.create(title="Dance")
    before = client.events(series["id"])
    client.edit(before[9]["id"], "this", start_date="2027-03-09 12:00:00", end_date="2027-03-09 13:00:00")
    summary = client.edit(before[6]["id"], "following", start_date="20:00")
    after = client.events(series["id"])
    assert [event["id"] for event in after] == [event["id"] for event in before]
    assert {event["start_date"][11:] for event in after[:6]} == {"19:30:00"}
    assert {event["start_date"][11:] for event in [*after[6:9], *after[10:]]} == {"20:00:00"}
    # The own time stays; the slot moves along.
    assert (after[9]["start_date"], after[9]["series"]["slot"]) == ("2027-03-09 12:00:00", "2027-03-09 20:00:00")
    assert summary["changed"] == 11
    assert [part["from"] for part in client.read(series["id"])["parts"]] == ["2027-02-16 20:00:00"]


def test_a_new_rule_moves_events(client: SeriesClient) -> None:
    series = client.create(title="Pottery")
    before = client.events(series["id"])
    summary = client.edit(before[0]["id"], "all", rule="FREQ=WEEKLY;BYDAY=WE;UNTIL=20270503")
    after = client.events(series["id"])
    assert (summary["changed"], summary["created"], summary["trashed"]) == (17, 0, 0)
    assert [(event["id"], event["uid"], event["slug"]) for event in after] == [
        (event["id"], event["uid"], event["slug"]) for event in before
    ]
    assert starts(after)[0] == "2027-01-06 19:30:00"


def test_dates_with_own_fields_are_not_lost_silently(client: SeriesClient, editor: Caller) -> None:
    series = client.create(title="Painting")
    events = client.events(series["id"])
    client.edit(events[1]["id"], "this", title="Painting outdoors")
    rule = {"rule": "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU;UNTIL=20270503"}
    path = f"{EXTENSION}/events/{events[0]['id']}?scope=all"
    assert_error(editor.patch(path, rule), 409, "series_overrides_lost")
    summary = client.edit(events[0]["id"], "all", options="&overrides=replace", **rule)
    assert (summary["trashed"], [entry["event"] for entry in summary["lost_own"]]) == (8, [events[1]["id"]])


def test_a_dry_run_equals_the_write_and_changes_nothing(client: SeriesClient) -> None:
    series = client.create(title="Tai Chi")
    events = client.events(series["id"])
    revision = client.read(series["id"])
    dry = client.edit(events[4]["id"], "following", options="&dry_run=true", start_date="18:00", title="Early")
    assert client.events(series["id"]) == events
    assert client.read(series["id"]) == revision
    wet = client.edit(events[4]["id"], "following", start_date="18:00", title="Early")
    assert {**dry, "dry_run": False} == {key: value for key, value in wet.items() if key != "series"}


def test_a_trashed_date_is_left_out_and_comes_back(client: SeriesClient, editor: Caller) -> None:
    series = client.create(title="Running")
    event = client.events(series["id"])[2]
    editor.delete(f"/events/{event['id']}")
    assert client.read(series["id"])["removed"] == [event["start_date"]]
    editor.post(f"{EXTENSION}/events/{event['id']}/restore")
    assert client.read(series["id"])["removed"] == []


def test_the_following_dates_go_to_the_trash(client: SeriesClient, editor: Caller) -> None:
    series = client.create(title="Reading")
    events = client.events(series["id"])
    editor.delete(f"{EXTENSION}/events/{events[5]['id']}?scope=following")
    left = client.read(series["id"])
    assert (left["total"], left["rule"]["until"]) == (5, "2027-02-08")
    editor.delete(f"{EXTENSION}/series/{series['id']}")
    assert client.events(series["id"]) == []


def test_a_past_date_of_a_trashed_series_is_edited_alone(client: SeriesClient, editor: Caller) -> None:
    dates = {"start_date": "2020-01-07 19:30:00", "end_date": "2020-01-07 21:00:00"}
    series = client.create(title="Chess", **dates, rule="FREQ=WEEKLY;COUNT=3")
    event = client.events(series["id"])[0]
    editor.delete(f"{EXTENSION}/series/{series['id']}")
    assert client.edit(event["id"], "following", expected=410, title="Go")["code"] == "series-is-in-trash"
    client.edit(event["id"], "this", title="Go")

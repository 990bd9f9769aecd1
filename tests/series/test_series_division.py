"""Splitting, merging and dissolving series."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from kalends.core.recurrence import Rule, read_rule
from kalends.series.rules.series_division import join_definitions
from kalends.series.rules.series_slots import Definition, Part, list_dates
from tests.api.running_app import Caller, assert_error
from tests.series.series_client import EXTENSION, SeriesClient, strip_revisions


@pytest.fixture
def client(editor: Caller) -> SeriesClient:
    return SeriesClient(editor)


def identity(events: list[Any]) -> list[Any]:
    return [(event["id"], event["slug"], event["uid"], event["start_date"], event["title"]) for event in events]


def state(client: SeriesClient, series_id: int) -> Any:
    return strip_revisions(client.read(series_id)), [strip_revisions(event) for event in client.events(series_id)]


@pytest.mark.quick("FREQ=WEEKLY", "FREQ=MONTHLY;COUNT=9")
@pytest.mark.parametrize(
    "rule", ["FREQ=WEEKLY", "FREQ=WEEKLY;COUNT=17", "FREQ=WEEKLY;BYDAY=TU,TH;UNTIL=20270401", "FREQ=MONTHLY;COUNT=9"]
)
def test_a_split_series_is_merged_again(client: SeriesClient, rule: str) -> None:
    series = client.create(title="Split", rule=rule, add_dates=["2027-01-09", "2027-03-27"])
    events = client.events(series["id"])
    client.edit(events[5]["id"], "this", title="Own")
    client.post(f"/series/{series['id']}/dates", remove=[events[4]["start_date"]])
    before = state(client, series["id"])
    events = client.events(series["id"])
    result = client.post(f"/series/{series['id']}/split", **{"from": events[3]["start_date"]})
    new = result["new_series"]["id"]
    assert identity(client.events(series["id"])) == identity(events[:3])
    assert identity(client.events(new))[:20] == identity(events[3:])[:20]
    client.post(f"/series/{series['id']}/merge", series=new)
    assert state(client, series["id"]) == before
    assert client.read(new)["status"] == "trash"


@pytest.mark.quick("2027-01-16-FREQ=WEEKLY", "2027-01-02-FREQ=WEEKLY;COUNT=2")
@pytest.mark.parametrize(("added", "rule"), [
    ("2027-01-16", "FREQ=WEEKLY"),
    ("2027-01-16", "FREQ=WEEKLY;COUNT=2"),
    ("2027-01-02", "FREQ=WEEKLY"),
    ("2027-01-02", "FREQ=WEEKLY;COUNT=2"),
])  # fmt: skip
def test_a_series_split_at_an_added_date_is_merged_again(client: SeriesClient, added: str, rule: str) -> None:
    series = client.create(title="Added", rule=rule, add_dates=[added])
    before = state(client, series["id"])
    result = client.post(f"/series/{series['id']}/split", **{"from": max(added, "2027-01-05")})
    client.post(f"/series/{series['id']}/merge", series=result["new_series"]["id"])
    assert state(client, series["id"]) == before


def test_a_series_split_beyond_its_last_event_gets_further_dates(client: SeriesClient) -> None:
    series = client.create(title="Later", rule="FREQ=WEEKLY")
    result = client.post(f"/series/{series['id']}/split", **{"from": "2034-12-05"})
    assert client.read(series["id"])["created_until"] == series["created_until"]
    assert result["new_series"]["total"] == 0


def test_content_of_former_dates_does_not_reach_a_merged_series(client: SeriesClient) -> None:
    series = client.create(title="Class")
    client.edit(client.events(series["id"])[10]["id"], "following", title="Spring")
    client.edit(client.events(series["id"])[0]["id"], "all", rule="FREQ=WEEKLY;UNTIL=20270201")
    later = {"start_date": "2027-02-10 19:30", "end_date": "2027-02-10 21:00", "rule": "FREQ=WEEKLY;COUNT=8"}
    other = client.create(title="Class", **later)
    client.post(f"/series/{series['id']}/merge", series=other["id"])
    client.edit(client.events(series["id"])[0]["id"], "all", cost="5")
    assert {(event["title"], event["cost"]) for event in client.events(series["id"])} == {("Class", "$5")}


def test_a_merged_date_replaces_an_event_in_the_trash(client: SeriesClient) -> None:
    start = {"start_date": "2027-01-07 18:00", "end_date": "2027-01-07 19:00"}
    series = client.create(title="Weekly", add_dates=[start["start_date"]])
    client.post(f"/series/{series['id']}/dates", remove=[start["start_date"]])
    other = client.create(title="Extra", rule="FREQ=WEEKLY;COUNT=3", **start)
    extra = client.events(other["id"])
    revision = client.revision(series["id"])
    client.post(f"/series/{series['id']}/merge", series=other["id"])
    events = client.events(series["id"])
    assert identity(extra) == identity([event for event in events if event["title"] == "Extra"])
    client.restore(series["id"], revision=revision)
    assert (len(client.events(series["id"])), identity(client.events(other["id"]))) == (17, identity(extra))


def test_removed_dates_of_a_former_rule_are_not_removed_from_a_merged_series() -> None:
    rule = read_rule("FREQ=WEEKLY;COUNT=2", "UTC")
    first = Definition((make_part(rule, datetime(2027, 1, 5, 19)),), {})
    second = Definition((make_part(rule, datetime(2027, 2, 2, 19)),), {}, removed=(datetime(2027, 1, 5, 19),))
    joint = join_definitions(first, second)
    assert len(list_dates(joint, datetime(2028, 1, 1, tzinfo=UTC))) == 4


def make_part(rule: Rule, start: datetime) -> Part:
    return Part(str(uuid4()), rule, start, start + timedelta(hours=1), "UTC", all_day=False)


def test_split_and_merge_are_undone(client: SeriesClient) -> None:
    series = client.create(title="Undone")
    events = client.events(series["id"])
    first = client.revision(series["id"])
    before = state(client, series["id"])
    result = client.post(f"/series/{series['id']}/split", **{"from": events[3]["start_date"]})
    second, new = client.revision(series["id"]), result["new_series"]["id"]
    divided = state(client, series["id"]), state(client, new)
    client.restore(series["id"], revision=first)
    assert state(client, series["id"]) == before
    assert (client.events(new), client.read(new)["status"]) == ([], "trash")
    client.restore(series["id"], revision=second)
    assert (state(client, series["id"]), state(client, new)) == divided
    client.post(f"/series/{series['id']}/merge", series=new)
    client.restore(series["id"], revision=client.history(series["id"])[1])
    assert (state(client, series["id"]), state(client, new)) == divided


def test_a_series_between_the_dates_of_another_becomes_added_dates(client: SeriesClient, editor: Caller) -> None:
    series = client.create(title="Weekly")
    start = {"start_date": "2027-01-07 18:00", "end_date": "2027-01-07 19:00"}
    other = client.create(title="Extra", rule="FREQ=WEEKLY;COUNT=3", **start)
    extra = client.events(other["id"])
    client.post(f"/series/{series['id']}/merge", series=other["id"])
    events = client.events(series["id"])
    assert (len(events), client.read(series["id"])["added"]) == (20, [event["start_date"] for event in extra])
    assert identity(extra) == identity([event for event in events if event["title"] == "Extra"])
    assert events[1]["series"]["own"] == ["times", "title"]


def test_series_with_a_common_date_are_not_merged(client: SeriesClient, editor: Caller) -> None:
    first, second = client.create(title="First"), client.create(title="Second")
    endless = client.create(
        title="Endless", rule="FREQ=WEEKLY", start_date="2027-01-08 10:00", end_date="2027-01-08 11:00"
    )
    path = f"{EXTENSION}/series/{first['id']}/merge"
    assert_error(editor.post(path, {"series": second["id"]}), 409, "series_slot_taken")
    for other in (endless["id"], first["id"], 999_999):
        assert_error(editor.post(path, {"series": other}), 400, "rest_invalid_param", "series")


@pytest.mark.parametrize("date", ["2027-01-05", "2027-01-06"])
def test_a_series_is_split_at_one_of_its_dates(client: SeriesClient, editor: Caller, date: str) -> None:
    series = client.create(title="Wrong")
    response = editor.post(f"{EXTENSION}/series/{series['id']}/split", {"from": date})
    assert_error(response, 400, "rest_invalid_param", "from")


@pytest.mark.quick("all-17", "next-1")
@pytest.mark.parametrize(("keep", "kept"), [("all", 17), ("upcoming", 17), ("next", 1)])
def test_a_dissolved_series_leaves_its_events(client: SeriesClient, editor: Caller, keep: str, kept: int) -> None:
    series = client.create(title=f"Dissolved {keep}")
    before = state(client, series["id"])
    events = client.events(series["id"])
    summary = client.post(f"/series/{series['id']}/dissolve", keep=keep)
    assert (summary["changed"], summary["trashed"]) == (kept, 17 - kept)
    left = [editor.get(f"/events/{event['id']}") for event in events]
    assert [response.status_code for response in left] == [200] * kept + [403] * (17 - kept)
    assert {response.json()["series"] for response in left[:kept]} == {None}
    assert_error(editor.post(f"{EXTENSION}/series/{series['id']}/dissolve"), 410, "series-is-in-trash")
    client.restore(series["id"])
    assert state(client, series["id"]) == before

"""Slots after edits: each date has one event, whatever was moved, trashed or over before."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest

from kalends.series.jobs import extend_all
from kalends.store.database import Database, Options
from tests.api.conftest import StartApp
from tests.api.running_app import Caller, RunningApp
from tests.series.series_client import EXTENSION, SeriesClient

NOW = datetime(2027, 3, 10, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def app(start_single_site_for_module: StartApp) -> RunningApp:
    """Return an application on a separate database, because the jobs handle all sites."""
    return start_single_site_for_module()


@pytest.fixture
def client(editor: Caller) -> SeriesClient:
    return SeriesClient(editor)


def slots(app: RunningApp, series_id: int, status: str = "publish") -> list[str]:
    rows = app.sql("SELECT slot FROM events WHERE series_id = $1 AND status = $2 ORDER BY slot", series_id, status)
    return [f"{row['slot']:%Y-%m-%d %H:%M}" for row in rows]


def at(now: datetime) -> Any:
    return patch("kalends.asgi.utc_now", lambda: now)


def test_a_later_edit_of_content_does_not_hide_dates_from_the_job(app: RunningApp, client: SeriesClient) -> None:
    """Dates between the former and the current horizon do not exist yet."""
    with at(NOW):
        series = client.create(title="Hidden", start_date="2027-03-12 19:30", end_date="2027-03-12 21:00",
                               rule="FREQ=WEEKLY")  # fmt: skip
    with at(NOW + timedelta(days=30)):
        client.edit(client.events(series["id"])[0]["id"], "following", title="Seen")
    _extend(app, NOW + timedelta(days=30))
    days = [datetime.fromisoformat(slot) for slot in slots(app, series["id"])]
    assert {second - first for first, second in itertools.pairwise(days)} == {timedelta(days=7)}
    assert days[-1] > datetime(2029, 5, 1)


def test_dates_that_move_before_the_horizon_are_created(app: RunningApp, client: SeriesClient) -> None:
    with at(NOW):
        series = client.create(title="Border", start_date="2027-03-12 19:30", end_date="2027-03-12 21:00",
                               rule="FREQ=DAILY;INTERVAL=5")  # fmt: skip
        first = client.events(series["id"])[0]["id"]
        client.edit(first, "all", start_date="2027-03-10 00:10", end_date="2027-03-10 01:00")
    _extend(app, NOW + timedelta(days=20))
    days = [datetime.fromisoformat(slot) for slot in slots(app, series["id"])]
    assert {second - first for first, second in itertools.pairwise(days)} == {timedelta(days=5)}


def test_an_edit_of_the_zone_keeps_the_lengths_of_parts(client: SeriesClient) -> None:
    series = client.create(title="Lengths")
    events = client.events(series["id"])
    client.edit(events[8]["id"], "following", end_date="22:00")
    client.edit(events[0]["id"], "all", timezone="Europe/Lisbon")
    after = client.events(series["id"])
    assert {event["end_date"][11:16] for event in after[:8]} == {"21:00"}
    assert {event["end_date"][11:16] for event in after[8:]} == {"22:00"}
    assert {event["timezone"] for event in after} == {"Europe/Lisbon"}


def test_a_status_that_the_first_date_has_applies_to_later_dates(app: RunningApp, client: SeriesClient) -> None:
    series = client.create(title="Statuses")
    events = client.events(series["id"])
    client.edit(events[9]["id"], "following", status="private")
    assert (len(slots(app, series["id"])), len(slots(app, series["id"], "private"))) == (9, 8)
    client.edit(events[0]["id"], "all", status="publish")
    assert len(slots(app, series["id"])) == 17


def test_a_date_in_the_trash_moves_along_with_its_series(
    app: RunningApp, client: SeriesClient, editor: Caller
) -> None:
    series = client.create(title="Trashed")
    event = client.events(series["id"])[2]
    editor.delete(f"/events/{event['id']}")
    client.edit(client.events(series["id"])[0]["id"], "all", start_date="20:00", end_date="21:00")
    assert slots(app, series["id"], "trash") == ["2027-01-19 20:00"]
    editor.post(f"{EXTENSION}/events/{event['id']}/restore")
    read = client.read(series["id"])
    assert (read["added"], read["removed"], read["total"]) == ([], [], 17)
    # It comes back as it was, and can follow the series again.
    restored = client.events(series["id"])[2]
    assert (restored["start_date"], restored["series"]["own"]) == ("2027-01-19 19:30:00", ["times"])
    editor.post(f"{EXTENSION}/events/{event['id']}/follow")
    followed = client.events(series["id"])[2]
    assert (followed["start_date"], followed["series"]["own"]) == ("2027-01-19 20:00:00", [])


def test_an_event_may_get_the_slot_of_one_in_the_trash(app: RunningApp, client: SeriesClient) -> None:
    rule = "FREQ=WEEKLY;BYDAY={};UNTIL=20270201"
    series = client.create(title="Slots", rule=rule.format("TU,TH"))
    first = client.events(series["id"])[0]["id"]
    client.edit(first, "all", rule=rule.format("TU"))
    summary = client.edit(first, "all", rule=rule.format("TH"))
    assert (summary["changed"], summary["created"], summary["trashed"]) == (4, 0, 0)
    assert client.events(series["id"])[0]["id"] == first
    assert slots(app, series["id"])[0] == "2027-01-07 19:30"


def test_a_date_that_was_moved_to_later_is_no_date_of_a_new_rule(app: RunningApp, client: SeriesClient) -> None:
    """The date of 2 March was postponed to 5 April; the others until 9 March have taken place."""
    with at(NOW):
        series = client.create(title="Postponed", start_date="2027-02-16 19:30", end_date="2027-02-16 21:00",
                               rule="FREQ=WEEKLY;COUNT=8")  # fmt: skip
        events = client.events(series["id"])
        moved = events[2]["id"]
        client.edit(moved, "this", start_date="2027-04-05 10:00", end_date="2027-04-05 11:00")
        before = {event["id"]: event for event in client.events(series["id"])}
        client.edit(events[5]["id"], "all", rule="FREQ=WEEKLY;BYDAY=FR;COUNT=3")
        after = {event["id"]: event for event in client.events(series["id"])}
    assert after[moved] == before[moved]
    assert [after[event["id"]] for event in events[:2]] == [before[event["id"]] for event in events[:2]]
    assert after[events[3]["id"]] == before[events[3]["id"]]
    upcoming = sorted(event["start_date"][:10] for event in after.values() if event["start_date"] > "2027-03-10")
    assert upcoming == ["2027-03-19", "2027-03-26", "2027-04-02", "2027-04-05"]


def test_the_slot_of_a_date_that_was_moved_to_the_past_moves_along(app: RunningApp, client: SeriesClient) -> None:
    with at(NOW):
        series = client.create(title="Early", start_date="2027-02-16 19:30", end_date="2027-02-16 21:00",
                               rule="FREQ=WEEKLY;COUNT=8")  # fmt: skip
        events = client.events(series["id"])
        client.edit(events[6]["id"], "this", start_date="2027-03-01 10:00", end_date="2027-03-01 11:00")
        client.edit(events[5]["id"], "all", start_date="18:00", end_date="19:00")
        client.edit(events[5]["id"], "all", rule="FREQ=WEEKLY;COUNT=5")
    assert slots(app, series["id"])[4:] == [
        *("2027-03-16 18:00", "2027-03-23 18:00", "2027-03-30 18:00", "2027-04-06 18:00", "2027-04-13 18:00")
    ]


def _extend(app: RunningApp, now: datetime) -> None:
    async def run() -> None:
        database = await Database.open(Options(url=app.database_url))
        try:
            await extend_all(database, now)
        finally:
            await database.close()

    app.run(run())

"""Adding and removing dates; events that become a series, leave one or follow it again."""

import pytest

from tests.api.running_app import Caller, assert_error
from tests.series.series_client import EXTENSION, SeriesClient, strip_revisions


@pytest.fixture
def client(editor: Caller) -> SeriesClient:
    return SeriesClient(editor)


def test_dates_are_added_and_removed(client: SeriesClient) -> None:
    series = client.create(title="Dates")
    events = client.events(series["id"])
    summary = client.post(f"/series/{series['id']}/dates", add=["2027-01-07", "2027-01-12"], remove=["2027-01-19"])
    assert (summary["created"], summary["trashed"], summary["changed"]) == (1, 1, 0)
    assert [warning[:10] for warning in summary["warnings"]] == ["2027-01-12"]
    after = client.read(series["id"])
    assert (after["added"], after["removed"]) == (["2027-01-07 19:30:00"], ["2027-01-19 19:30:00"])
    assert [event["start_date"][:10] for event in client.events(series["id"])[:4]] == [
        "2027-01-05",
        "2027-01-07",
        "2027-01-12",
        "2027-01-26",
    ]
    client.post(f"/series/{series['id']}/dates", add=["2027-01-19 19:30"], remove=["2027-01-07"])
    restored = client.events(series["id"])
    assert [event["id"] for event in restored] == [event["id"] for event in events]
    assert strip_revisions(restored[2]) == strip_revisions(events[2])


def test_removed_dates_move_along_with_their_series(client: SeriesClient) -> None:
    series = client.create(title="Moving", rule="FREQ=WEEKLY;COUNT=5")
    events = client.events(series["id"])
    client.post(f"/series/{series['id']}/dates", remove=["2027-01-12"])
    client.edit(events[0]["id"], "all", start_date="2027-01-12 19:30", end_date="2027-01-12 21:00")
    assert client.read(series["id"])["removed"] == ["2027-01-19 19:30:00"]
    client.post(f"/series/{series['id']}/dates", add=["2027-01-19"])
    assert [event["id"] for event in client.events(series["id"])] == [event["id"] for event in events]


@pytest.mark.quick("fields0-remove", "fields4-remove")
@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"remove": ["2027-01-06"]}, "remove"),
        ({"add": ["2027-01-07"], "remove": ["2027-01-07"]}, "remove"),
        ({"add": "soon"}, "add"),
        ({"add": [["2027-01-07"]]}, "add"),
        ({"remove": 7}, "remove"),
    ],
)
def test_invalid_dates_are_rejected(
    client: SeriesClient, editor: Caller, fields: dict[str, object], name: str
) -> None:
    series = client.create(title="Invalid")
    path = f"{EXTENSION}/series/{series['id']}/dates"
    assert_error(editor.post(path, fields), 400, "rest_invalid_param", name)
    assert_error(editor.post(path, {}), 400, "rest_missing_callback_param", "add")


def test_an_event_becomes_the_first_date_of_a_series(client: SeriesClient, editor: Caller) -> None:
    fields = {"start_date": "2027-01-05 19:30", "end_date": "2027-01-05 21:00", "timezone": "Europe/Berlin"}
    event = editor.create("events", title="Book club", cost="3", **fields)
    dry = client.post(f"/events/{event['id']}/series", rule="FREQ=MONTHLY;COUNT=4", dry_run=True)
    summary = client.post(f"/events/{event['id']}/series", rule="FREQ=MONTHLY;COUNT=4")
    assert dry["created"] == summary["created"] == 3
    events = client.events(summary["series"]["id"])
    assert [(entry["title"], entry["cost"]) for entry in events] == [("Book club", event["cost"])] * 4
    assert [events[0][name] for name in ("id", "slug", "uid")] == [event[name] for name in ("id", "slug", "uid")]
    response = editor.post(f"{EXTENSION}/events/{event['id']}/series", {"rule": "FREQ=DAILY"})
    assert_error(response, 400, "rest_invalid_param", "rule")


def test_a_detached_event_stays_as_it_is(client: SeriesClient, editor: Caller) -> None:
    series = client.create(title="Detach")
    events = client.events(series["id"])
    revision = client.revision(series["id"])
    client.post(f"/events/{events[3]['id']}/detach")
    client.edit(events[0]["id"], "all", title="Others")
    detached = editor.read("events", events[3]["id"])
    assert (detached["title"], detached["series"]) == ("Detach", None)
    assert client.read(series["id"])["removed"] == [events[3]["start_date"]]
    client.restore(series["id"], revision=revision)
    assert [event["id"] for event in client.events(series["id"])] == [event["id"] for event in events]
    free = editor.create("events", title="Free", start_date="2027-01-05", end_date="2027-01-05")
    assert_error(editor.post(f"{EXTENSION}/events/{free['id']}/detach"), 400, "rest_invalid_param", "id")


def test_an_event_follows_its_series_again(client: SeriesClient, editor: Caller) -> None:
    series = client.create(title="Follow")
    event = client.events(series["id"])[2]
    client.edit(event["id"], "this", title="Own", cost="9", start_date="2027-01-19 10:00:00")
    client.post(f"/events/{event['id']}/follow", fields=["title", "times"])
    after = editor.read("events", event["id"])
    assert (after["title"], after["start_date"], after["series"]["own"]) == ("Follow", event["start_date"], ["cost"])
    client.post(f"/events/{event['id']}/follow")
    assert strip_revisions(client.events(series["id"])[2]) == strip_revisions(event)
    response = editor.post(f"{EXTENSION}/events/{event['id']}/follow", {"fields": ["colour"]})
    assert_error(response, 400, "rest_invalid_param", "fields")


def test_a_date_before_the_first_one_keeps_its_times_when_the_following_ones_change(
    client: SeriesClient, editor: Caller
) -> None:
    series = client.create(title="Earlier", rule="FREQ=WEEKLY;COUNT=3", add_dates=["2027-01-02"])
    earlier, first, *_ = client.events(series["id"])
    client.edit(first["id"], "following", timezone="America/New_York")
    kept = client.events(series["id"])[0]
    assert (kept["timezone"], kept["series"]["own"]) == ("Europe/Berlin", ["times"])
    # Bringing the series back from the trash updates all dates to what their series determines.
    editor.delete(f"{EXTENSION}/series/{series['id']}")
    client.restore(series["id"])
    assert [event["timezone"] for event in client.events(series["id"])] == [
        "Europe/Berlin",
        *["America/New_York"] * 3,
    ]
    edit = client.history(series["id"])[-2]
    client.restore(series["id"], revision=edit - 1)
    assert client.events(series["id"])[0]["series"]["own"] == earlier["series"]["own"] == []

"""The page of a series without script: its dates, own changes, undo, the trash, and a series from an event."""

import re
from typing import Any

import pytest

from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient, Page
from tests.series.series_client import EXTENSION, SeriesClient

TUESDAYS = {
    "start_date": "2031-01-07 19:30:00",
    "end_date": "2031-01-07 21:00:00",
    "rule": "FREQ=WEEKLY;BYDAY=TU;COUNT=6",
}


@pytest.fixture
def api(app: RunningApp) -> SeriesClient:
    return SeriesClient(app.caller("editor"))


def days_of(api: SeriesClient, series_id: int) -> list[str]:
    return [event["start_date"][5:10] for event in api.events(series_id)]


def send(client: ConsoleClient, series_id: int, name: str, **fields: Any) -> str:
    """Send a form of the page of a series; return where it continues."""
    path = f"/console/series/{series_id}"
    hidden = {key: values[0] for key, values in client.page(path).fields.items() if key in ("base_revision", "edit")}
    response = client.post(f"{path}/{name}", {**hidden, **fields})
    assert response.status_code == 303, Page.parse(response.text).text
    location: str = response.headers["location"]
    return location


def test_dates_are_added_left_out_and_restored(editor: ConsoleClient, api: SeriesClient) -> None:
    series = api.create(title="Pottery", **TUESDAYS)
    ids = [event["id"] for event in api.events(series["id"])]
    send(editor, series["id"], "dates", remove="2031-01-14 19:30:00")
    send(editor, series["id"], "dates", add="2031-01-16")
    send(editor, series["id"], "dates", add="2031-01-17", add_time="10:00")
    assert days_of(api, series["id"]) == ["01-07", "01-16", "01-17", "01-21", "01-28", "02-04", "02-11"]
    assert api.events(series["id"])[2]["start_date"] == "2031-01-17 10:00:00"
    page = editor.page(f"/console/series/{series['id']}")
    assert "Skipped" in page.text
    send(editor, series["id"], "dates", add="2031-01-14 19:30:00")
    assert api.events(series["id"])[1]["id"] == ids[1]


def test_rejected_date_is_explained_on_the_page(editor: ConsoleClient, api: SeriesClient) -> None:
    series = api.create(title="Sewing", **TUESDAYS)
    response = editor.post(f"/console/series/{series['id']}/dates", {"remove": "2031-01-08"})
    assert response.status_code == 400
    assert "2031-01-08 19:30:00 is not a date of this series." in Page.parse(response.text).text
    stale = editor.post(f"/console/series/{series['id']}/dates", {"add": "2031-01-09", "base_revision": "1"})
    assert stale.status_code == 412


def test_last_edit_is_undone(editor: ConsoleClient, api: SeriesClient) -> None:
    series = api.create(title="Judo", **TUESDAYS)
    before = api.events(series["id"])
    api.edit(before[2]["id"], "following", title="Judo for all", start_date="20:00")
    page = editor.page(f"/console/series/{series['id']}")
    assert "Rule or times, Title" in page.text
    assert "4 dates changed." in page.text
    assert send(editor, series["id"], "undo").endswith("?notice=undone")
    after = api.events(series["id"])
    assert [(event["title"], event["start_date"]) for event in after] == [
        (event["title"], event["start_date"]) for event in before
    ]


def test_undo_shows_dates_that_have_changed_since(editor: ConsoleClient, api: SeriesClient) -> None:
    series = api.create(title="Knitting", **TUESDAYS)
    events = api.events(series["id"])
    api.edit(events[0]["id"], "all", title="Knitting circle")
    api.edit(events[1]["id"], "this", title="Knitting with guest")
    path = f"/console/series/{series['id']}"
    fields = editor.page(path).fields
    form = {name: fields[name][0] for name in ("base_revision", "edit")}
    response = editor.post(f"{path}/undo", form)
    page = Page.parse(response.text)
    assert response.status_code == 409
    assert "These dates have changed since." in page.text
    assert editor.post(f"{path}/undo", page.form()).status_code == 303
    titles = [event["title"] for event in api.events(series["id"])]
    assert titles[:3] == ["Knitting", "Knitting with guest", "Knitting"]


def test_own_changes_are_shown_and_given_up(editor: ConsoleClient, api: SeriesClient) -> None:
    series = api.create(title="Painting", **TUESDAYS)
    event = api.events(series["id"])[1]
    api.edit(
        event["id"], "this", title="Painting outside", start_date="2031-01-15 18:00", end_date="2031-01-15 20:00"
    )
    page = editor.page(f"/console/series/{series['id']}")
    assert "Date and time, Title" in page.text
    assert re.search(r"moved from Tue, Jan 14, 2031, 7:30.PM", page.text)
    response = editor.post(f"/console/events/{event['id']}/follow")
    assert response.headers["location"] == f"/console/series/{series['id']}?notice=saved"
    assert api.events(series["id"])[1]["start_date"] == "2031-01-14 19:30:00"
    assert api.events(series["id"])[1]["title"] == "Painting"


def test_series_is_restored_from_the_trash(editor: ConsoleClient, api: SeriesClient) -> None:
    series = api.create(title="Boules", **TUESDAYS)
    path = f"/console/series/{series['id']}"
    page = Page.parse(editor.post(f"{path}/trash", editor.page(path).form()).text)
    editor.post(f"{path}/trash", page.form())
    assert api.events(series["id"]) == []
    assert "Boules" in editor.page("/console/series?status=trash").text
    assert send(editor, series["id"], "restore").endswith("?notice=restored")
    assert len(api.events(series["id"])) == 6


def test_event_becomes_the_first_date_of_a_series(editor: ConsoleClient, api: SeriesClient) -> None:
    times = {"start_date": "2031-03-20 19:30:00", "end_date": "2031-03-20 21:00:00"}
    event = api.caller.create("events", title="Concert", status="publish", **times)
    path = f"/console/events/{event['id']}"
    assert f"{path}/repeat" in editor.page(path).html
    form = editor.page(f"{path}/repeat").form()
    wrong = {**form, "repeat[frequency]": "weekly", "repeat[weekdays][]": ["friday"]}
    response = editor.post(f"{path}/repeat", wrong)
    assert response.status_code == 400
    assert "is not a date of this rule" in Page.parse(response.text).text
    right = {
        **form,
        "repeat[frequency]": "monthly",
        "repeat[day]": "weekday",
        "repeat[ends]": "count",
        "repeat[count]": "3",
    }
    response = editor.post(f"{path}/repeat", right)
    found = re.fullmatch(r"/console/series/(\d+)\?notice=series-created", response.headers["location"])
    assert found
    events = api.events(int(found[1]))
    assert (events[0]["id"], len(events)) == (event["id"], 3)
    assert "On the third Thursday of every month, 3 times" in editor.page(f"/console/series/{found[1]}").text
    assert editor.get(f"{path}/repeat").headers["location"] == f"/console/series/{found[1]}"


def test_event_table_links_to_the_series(editor: ConsoleClient, author: ConsoleClient, api: SeriesClient) -> None:
    series = api.create(title="Sketching", **TUESDAYS)
    link = f'href="/console/series/{series["id"]}"'
    assert editor.page("/console/events?search=Sketching&period=all").html.count(link) == 6
    assert link not in author.page("/console/events?of=others&search=Sketching&period=all").html


def test_long_series_has_pages_of_dates(editor: ConsoleClient, api: SeriesClient) -> None:
    series = api.create(title="Daily", **{**TUESDAYS, "rule": "FREQ=DAILY"})
    path = f"/console/series/{series['id']}"
    page = editor.page(path)
    assert page.html.count('class="is-made"') == 50
    assert "Page 1 of" in page.text
    last = -(-series["total"] // 50)
    assert "Planned" in editor.page(f"{path}?page={last}").text
    assert "There are no dates." in editor.page(f"{path}?show=past").text


def test_list_of_series_counts_series(editor: ConsoleClient, api: SeriesClient) -> None:
    """The total of a list is that of series, not that of their dates."""
    api.create(title="Rowing", **TUESDAYS)
    total = len(api.caller.get(f"{EXTENSION}/series?per_page=50").json()["series"])
    assert api.caller.get(f"{EXTENSION}/series?per_page=1").headers["x-wp-total"] == str(total)
    assert "There are no series yet." in editor.page("/console/series?status=private").text

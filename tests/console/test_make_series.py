"""Making a series of the events selected in the table, without script."""

from datetime import timedelta

from kalends.core.times import utc_now
from tests.api.running_app import Caller, RunningApp
from tests.console.console_client import ConsoleClient, Page
from tests.console.event_table_pages import CHECKBOX, TABLE, change
from tests.series.series_client import SeriesClient


def add_weekly(caller: Caller, title: str, count: int) -> list[int]:
    """Add weekly events without the third one; the fourth takes place a day later."""
    first = (utc_now() + timedelta(days=10)).date()
    days = [first + timedelta(days=7 * n + (n == 3)) for n in range(count) if n != 2]
    return [
        caller.create("events", title=title, start_date=f"{day} 19:00:00", end_date=f"{day} 21:00:00")["id"]
        for day in days
    ]


def select(editor: ConsoleClient, name: str) -> list[str]:
    return CHECKBOX.findall(editor.page(f"{TABLE}?search={name}&per_page=500").html)


def test_selected_events_become_a_series_and_single_events_again(app: RunningApp, editor: ConsoleClient) -> None:
    caller = app.caller("editor")
    ids = add_weekly(caller, "Bandprobe", 9)
    slugs = [caller.read("events", event_id)["slug"] for event_id in ids]
    page = Page.parse(change(editor, "make_series", select(editor, "Bandprobe")).text)
    assert "8 events become one series, “Bandprobe”." in page.text
    assert "until" in page.text
    assert "Skipped dates (1)" in page.text
    assert "moved from" in page.text
    assert {caller.read("events", event_id)["series"] for event_id in ids} == {None}
    location = editor.post("/console/events/bulk", page.form()).headers["location"]
    series_id = int(location.partition("?")[0].rpartition("/")[2])
    events = SeriesClient(caller).events(series_id)
    assert [event["id"] for event in events] == ids
    form = editor.page(location).form()
    restored = editor.post(f"/console/series/{series_id}/dissolve", {"base_revision": form["base_revision"][0]})
    assert "The dates are now single events." in editor.page(restored.headers["location"]).text
    records = [caller.read("events", event_id) for event_id in ids]
    assert [(record["series"], record["slug"]) for record in records] == [(None, slug) for slug in slugs]


def test_events_that_cannot_be_joined_are_refused(app: RunningApp, editor: ConsoleClient) -> None:
    caller = app.caller("editor")
    add_weekly(caller, "Kegeln", 4)
    boxes = select(editor, "Kegeln")
    refused = change(editor, "make_series", boxes[:1])
    assert (refused.status_code, "Select 2 to 200 events." in refused.text) == (400, True)
    page = Page.parse(change(editor, "make_series", boxes).text)
    caller.change("events", int(boxes[0].partition(":")[0]), title="Kegelabend")
    refused = editor.post("/console/events/bulk", page.form())
    assert (refused.status_code, "Nothing was changed" in refused.text) == (412, True)
    SeriesClient(caller).create(title="Kegeln bekannt", start_date="2031-01-07 19:30", end_date="2031-01-07 21:00",
                                rule="FREQ=WEEKLY;COUNT=2")  # fmt: skip
    assert "already belongs to a series" in change(editor, "make_series", select(editor, "Kegeln")).text

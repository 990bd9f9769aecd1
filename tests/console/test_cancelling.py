"""Cancelling a date or an event, and undoing it."""

from typing import Any

import pytest

from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient, Page
from tests.console.event_table_pages import make_event
from tests.series.series_client import SeriesClient

WEEKLY = {
    "start_date": "2031-01-07 19:30:00",
    "end_date": "2031-01-07 21:00:00",
    "rule": "FREQ=WEEKLY;COUNT=4",
}
CHANGING = ("modified", "modified_utc", "revision")


def read(app: RunningApp, event_id: int) -> dict[str, Any]:
    event = app.caller("editor").read("events", event_id)
    return {name: value for name, value in event.items() if name not in CHANGING}


def undo(client: ConsoleClient, location: str) -> Any:
    """Press the button of the notice."""
    page = client.page(location)
    event_id = location.partition("?undo=")[2].partition("-")[0]
    return client.post(f"/console/events/{event_id}/undo", {**page.form(), "back": "/console/"})


def test_one_date_of_a_series_is_cancelled_and_restored(app: RunningApp, editor: ConsoleClient) -> None:
    api = SeriesClient(app.caller("editor"))
    series = api.create(title="Choir", **WEEKLY)
    events = api.events(series["id"])
    before = [read(app, event["id"]) for event in events]
    path = f"/console/series/{series['id']}"
    assert editor.page(path).text.count("Reason (optional)") == 4
    response = editor.post(
        f"/console/events/{events[1]['id']}/cancel", {"back": path, "cancel_reason": "The hall is being painted."}
    )
    location = response.headers["location"]
    assert location.startswith(f"{path}?undo={events[1]['id']}-")
    cancelled = read(app, events[1]["id"])
    assert (cancelled["event_status"], cancelled["status_reason"]) == ("cancelled", "The hall is being painted.")
    assert [read(app, event["id"]) for event in events[2:]] == before[2:]
    page = editor.page(location)
    assert "This one date is cancelled." in page.text
    assert page.text.count("Reason (optional)") == 3
    assert undo(editor, location).headers["location"].startswith("/console/?notice=undone#")
    assert read(app, events[1]["id"]) == before[1]


def test_undo_changes_nothing_after_another_edit(app: RunningApp, editor: ConsoleClient) -> None:
    event = make_event(app.caller("editor"), "Reading")
    location = editor.post(f"/console/events/{event['id']}/cancel").headers["location"]
    assert location.startswith(f"/console/events/{event['id']}?undo=")
    app.caller("editor").change("events", event["id"], title="Reading by Ada")
    assert undo(editor, location).status_code == 412
    assert read(app, event["id"])["event_status"] == "cancelled"


def test_the_form_cancels_a_published_event(app: RunningApp, editor: ConsoleClient) -> None:
    event = make_event(app.caller("editor"), "Fair")
    path = f"/console/events/{event['id']}"
    page = editor.page(path)
    assert f'formaction="{path}/cancel"' in page.html
    location = editor.post(f"{path}/cancel", page.form(cancel_reason="Storm")).headers["location"]
    assert read(app, event["id"])["status_reason"] == "Storm"
    assert "formaction" not in Page.parse(editor.page(location).html).html.partition("form-side")[2]


def test_others_may_not_cancel(app: RunningApp) -> None:
    event = make_event(app.caller("editor"), "Concert")
    author = ConsoleClient.signed_in(app, "author")
    assert author.post(f"/console/events/{event['id']}/cancel").status_code == 403
    assert author.post("/console/events/999999999/cancel").status_code == 404
    assert read(app, event["id"])["event_status"] == "scheduled"


@pytest.mark.parametrize("query", ["1", "1-2", "a-b-c", "1-2-3-4", "-1--2--3"])
def test_an_invalid_notice_is_not_shown(editor: ConsoleClient, query: str) -> None:
    assert "/undo" not in editor.page(f"/console/?notice=cancelled&undo={query}").html

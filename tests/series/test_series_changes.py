"""A copy of the events that is kept by `changes` alone follows edits of whole series."""

from typing import Any

from tests.api.conftest import StartApp
from tests.api.running_app import Caller
from tests.series.changes_mirror import ChangesMirror
from tests.series.series_client import EXTENSION, SeriesClient

DATES = 500
DAILY = {"rule": f"FREQ=DAILY;COUNT={DATES}", "start_date": "2031-01-01 19:30", "end_date": "2031-01-01 21:00"}


def mirror(caller: Caller) -> ChangesMirror:
    return ChangesMirror(lambda path, query: caller.get(f"/{path}", query))


def test_edits_of_500_dates_reach_a_copy(start_app: StartApp) -> None:
    app = start_app()
    client = SeriesClient(app.caller("editor"))
    copies = [mirror(app.caller("editor")), mirror(app.caller())]
    series = client.create(title="Many", **DAILY)
    events = client.events(series["id"])
    edits: list[tuple[str, dict[str, Any]]] = [
        ("all", {"title": "Renamed"}),
        ("all", {"start_date": "20:00", "end_date": "21:30"}),
        ("following", {"rule": "FREQ=DAILY;INTERVAL=2;COUNT=200"}),
        ("following", {"status": "draft"}),
        ("all", {"status": "publish", "cost": "5"}),
    ]
    for scope, fields in edits:
        client.edit(events[10]["id"], scope, options="&overrides=replace", **fields)
        for copy in copies:
            copy.assert_equals_site()
    client.post(f"/series/{series['id']}/split", **{"from": client.events(series["id"])[20]["start_date"]})
    client.restore(series["id"], revision=client.history(series["id"])[1])
    client.caller.delete(f"{EXTENSION}/series/{series['id']}")
    for copy in copies:
        copy.assert_equals_site()
        assert copy.events == {}


def test_the_series_of_an_event_does_not_change_without_the_event(start_app: StartApp) -> None:
    app = start_app()
    client = SeriesClient(app.caller("editor"))
    copies = [mirror(app.caller("editor")), mirror(app.caller())]
    past = {"start_date": "2020-01-07 19:30", "end_date": "2020-01-07 21:00", "rule": "FREQ=WEEKLY;COUNT=3"}
    series = client.create(title="Past", **past)
    for copy in copies:
        copy.synchronize()
    # The dates have taken place, so they stay as they are.
    client.caller.patch(f"{EXTENSION}/series/{series['id']}", {"slug": "renamed", "status": "draft"})
    for copy in copies:
        assert [event["series"] for event in copy.events.values()] == [
            {"id": series["id"], "slot": event["start_date"], "own": []} for event in copy.events.values()
        ]
        copy.assert_equals_site()

"""The operations of series by role, and dates of other authors."""

from typing import Any

import pytest

from tests.api.running_app import Caller, RunningApp, assert_error
from tests.series.series_client import EXTENSION, WEEKLY, SeriesClient

ROLES = ("anonymous", "subscriber", "contributor", "author", "editor", "administrator")
# Operations on a series of an editor, by path: the body, and whether the path is that of a date.
OPERATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "edit": ("PATCH", {"title": "New"}),
    "dates": ("POST", {"remove": ["2027-01-12"]}),
    "split": ("POST", {"from": "2027-02-02"}),
    "merge": ("POST", {"series": 0}),
    "restore": ("POST", {"revision": 0}),
    "dissolve": ("POST", {}),
    "delete": ("DELETE", {}),
    "event": ("PATCH", {"scope": "all", "title": "New"}),
    "event/detach": ("POST", {}),
    "event/follow": ("POST", {}),
}


def make_path(name: str, series_id: int, event_id: int) -> str:
    if name.startswith("event"):
        return f"{EXTENSION}/events/{event_id}{name.removeprefix('event')}"
    return f"{EXTENSION}/series/{series_id}" + ("" if name in ("edit", "delete") else f"/{name}")


@pytest.mark.quick("edit", "event/follow")
@pytest.mark.parametrize("name", OPERATIONS)
def test_only_editors_change_the_series_of_others(app: RunningApp, editor: Caller, name: str) -> None:
    client = SeriesClient(editor)
    series = client.create(title="Foreign", rule="FREQ=WEEKLY;COUNT=6")
    start = {"start_date": "2029-01-04 10:00", "end_date": "2029-01-04 11:00"}
    other = client.create(title="Other", rule="FREQ=DAILY;COUNT=2", **start)
    event = client.events(series["id"])[1]
    method, body = OPERATIONS[name]
    sent = {**body, **({"series": other["id"]} if name == "merge" else {}), "dry_run": True}
    if name == "restore":
        sent["revision"] = client.revision(series["id"])
    path = make_path(name, series["id"], event["id"])
    statuses = [app.caller(role).request(method, path, json=sent).status_code for role in ROLES]
    assert statuses == [401, 403, 403, 403, 200, 200]


def test_contributors_create_drafts(contributor: Caller, anonymous: Caller, editor: Caller) -> None:
    client = SeriesClient(contributor)
    series = client.create(title="Draft", status="publish")
    assert series["status"] == "pending"
    assert {entry["status"] for entry in client.occurrences(series["id"])["occurrences"]} == {"pending"}
    event = client.occurrences(series["id"])["occurrences"][1]["event"]
    client.edit(event, "all", title="Still a draft")
    assert_error(anonymous.get(f"{EXTENSION}/series/{series['id']}"), 403, "series-not-accessible")
    revision = client.revision(series["id"])
    SeriesClient(editor).edit(event, "all", status="publish")
    SeriesClient(editor).edit(event, "all", status="draft")
    published = SeriesClient(editor).history(series["id"])[1]
    # An undo does not publish what its user may not publish.
    response = contributor.post(f"{EXTENSION}/series/{series['id']}/restore", {"revision": published})
    assert_error(response, 403, "rest_forbidden")
    assert client.restore(series["id"], revision=revision)["series"]["status"] == "pending"


@pytest.mark.quick("edit", "event")
@pytest.mark.parametrize("name", [name for name in OPERATIONS if not name.startswith("event/") and name != "restore"])
def test_a_date_of_another_author_prevents_edits(author: Caller, editor: Caller, name: str) -> None:
    client = SeriesClient(author)
    series = client.create(title="Shared", rule="FREQ=WEEKLY;COUNT=6")
    start = {"start_date": "2029-01-04 10:00", "end_date": "2029-01-04 11:00"}
    other = client.create(title="Other", rule="FREQ=DAILY;COUNT=2", **start)
    events = client.events(series["id"])
    foreign = events[1] if name == "dates" else events[5]
    editor.change("events", foreign["id"], author=editor.id)
    method, body = OPERATIONS[name]
    sent = {**body, **({"series": other["id"]} if name == "merge" else {})}
    response = author.request(method, make_path(name, series["id"], events[0]["id"]), json=sent)
    assert_error(response, 403, "rest_forbidden")
    assert f"event {foreign['id']}" in response.json()["message"]


def test_an_own_event_becomes_a_series(author: Caller, editor: Caller) -> None:
    event = author.create("events", **{name: value for name, value in WEEKLY.items() if name != "rule"})
    assert SeriesClient(author).post(f"/events/{event['id']}/series", rule="FREQ=DAILY;COUNT=2")["created"] == 1
    foreign = editor.create("events", **{name: value for name, value in WEEKLY.items() if name != "rule"})
    response = author.post(f"{EXTENSION}/events/{foreign['id']}/series", {"rule": "FREQ=DAILY;COUNT=2"})
    assert_error(response, 403, "rest_forbidden")

"""History pages with word diffs, restoring earlier versions, and the trash."""

from typing import Any

import pytest

from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient

EVENT = {
    "title": "Concert",
    "start_date": "2030-05-01 10:00:00",
    "end_date": "2030-05-01 11:00:00",
    "status": "draft",
}


def read_revision(app: RunningApp, record_id: int) -> int:
    revision: int = app.sql("SELECT revision FROM events WHERE id = $1", record_id)[0]["revision"]
    return revision


def create(app: RunningApp, role: str = "editor", **fields: Any) -> int:
    record_id: int = app.caller(role).create("events", **{**EVENT, **fields})["id"]
    return record_id


def test_history_shows_words_values_and_users(app: RunningApp, editor: ConsoleClient) -> None:
    hall = app.caller("editor").create("venues", venue="Old <em>hall</em>")["id"]
    record_id = create(app, description="<p>Doors open at eight.</p>")
    changed = {"description": "<p>Doors open at nine.</p>", "venue": hall, "featured": True, "status": "publish"}
    app.caller("administrator").change("events", record_id, **changed)
    app.caller("editor").change("events", record_id, description="<p>Doors <b>open</b> at nine.</p>", all_day=True)
    page = editor.page(f"/console/events/{record_id}/history")
    assert "<del>eight</del><ins>nine</ins>" in page.html
    for text in ("administrator", "Old ", "Featured", "No Yes", "Draft Published", "Only the formatting changed.",
                 "Created", "All day", "Current version"):  # fmt: skip
        assert text in page.text, text
    assert len(page.fields["revision"]) == 2


@pytest.mark.parametrize("kind", ["venues", "organizers"])
def test_history_of_venues_and_organizers(app: RunningApp, editor: ConsoleClient, kind: str) -> None:
    name = kind.removesuffix("s")
    record_id = app.caller("editor").create(kind, **{name: f"First {kind}"})["id"]
    app.caller("editor").change(kind, record_id, **{name: f"Second {kind}"}, phone="12")
    page = editor.page(f"/console/{kind}/{record_id}/history")
    assert "<del>First</del><ins>Second</ins>" in page.html
    assert "Name" in page.text


def test_earlier_version_is_restored(app: RunningApp, editor: ConsoleClient) -> None:
    record_id = create(app)
    first = read_revision(app, record_id)
    app.caller("administrator").change("events", record_id, title="Another", cost="5")
    response = editor.post(f"/console/events/{record_id}/history", {"revision": str(first)})
    assert response.headers["location"] == f"/console/events/{record_id}/history?notice=restored"
    assert app.caller("editor").get(f"/events/{record_id}").json()["title"] == "Concert"
    assert "Restored." in editor.page(response.headers["location"]).text


@pytest.mark.quick("x", "999999")
@pytest.mark.parametrize("revision", ["x", "9" * 30, "999999"])
def test_unknown_revision_is_rejected(app: RunningApp, editor: ConsoleClient, revision: str) -> None:
    response = editor.post(f"/console/events/{create(app)}/history", {"revision": revision})
    assert response.status_code == 400


def test_history_is_only_for_those_who_may_edit(
    app: RunningApp, author: ConsoleClient, visitor: ConsoleClient, editor: ConsoleClient
) -> None:
    record_id = create(app)
    path = f"/console/events/{record_id}/history"
    assert author.get(path).status_code == 403
    assert author.post(path, {"revision": "1"}).status_code == 403
    assert author.post(f"/console/events/{record_id}/restore").status_code == 403
    assert visitor.get(path).headers["location"].startswith("/console/sign-in")
    assert editor.get("/console/events/999999/history").status_code == 404
    assert editor.get(f"/console/events/{'9' * 19}/history").status_code == 404


def test_older_changes_are_on_further_pages(app: RunningApp, editor: ConsoleClient) -> None:
    record_id = create(app)
    for number in range(32):
        app.caller("editor").change("events", record_id, title=f"Title {number}")
    page = editor.page(f"/console/events/{record_id}/history")
    assert "Older changes" in page.text
    assert "Created" not in page.text
    before = page.html.partition("?before=")[2].partition('"')[0]
    assert "Created" in editor.page(f"/console/events/{record_id}/history?before={before}").text


def test_trash_lists_what_the_user_may_restore(
    app: RunningApp, editor: ConsoleClient, contributor: ConsoleClient
) -> None:
    caller = app.caller("editor")
    event_id, venue_id = create(app, title="Trashed event"), caller.create("venues", venue="Trashed venue")["id"]
    own_id = create(app, "contributor", title="Own event")
    for kind, record_id in (("events", event_id), ("venues", venue_id), ("events", own_id)):
        assert caller.delete(f"/{kind}/{record_id}").status_code == 200
    app.sql("UPDATE events SET trashed_at = trashed_at - interval '10 days 1 hour' WHERE id = $1", event_id)
    text = editor.page("/console/trash").text
    assert all(title in text for title in ("Trashed event", "Trashed venue", "Own event", "Days left: 19"))
    own = contributor.page("/console/trash").text
    assert "Own event" in own
    assert "Trashed" not in own
    assert "Restore from the trash" in editor.page(f"/console/events/{event_id}/history").text
    response = editor.post(f"/console/events/{event_id}/restore")
    assert response.headers["location"] == "/console/trash?notice=restored"
    assert "Trashed event" not in editor.page("/console/trash").text
    assert caller.get(f"/events/{event_id}").json()["status"] == "draft"
    assert contributor.post(f"/console/events/{own_id}/restore").status_code == 303


def test_texts_are_escaped(app: RunningApp, editor: ConsoleClient) -> None:
    record_id = create(app, title="A &lt;img src=x onerror=alert(1)&gt;", cost="<script>x</script>")
    app.caller("editor").change("events", record_id, title="B &lt;img src=x onerror=alert(1)&gt;", cost="<b>7</b>")
    app.caller("editor").delete(f"/events/{record_id}")
    for path in (f"/console/events/{record_id}/history", "/console/trash"):
        assert "<img" not in editor.page(path).html
        assert "<script" not in editor.page(path).html

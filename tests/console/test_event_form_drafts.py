"""Unsaved changes of the form, warnings, and the endpoints of its scripts."""

from typing import Any

import httpx
import orjson

from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient, Page
from tests.console.test_event_form import create_event, read_event, read_revision, save, saved_id

JSON = {"accept": "application/json"}


def keep(client: ConsoleClient, key: str, page: Page, **changes: Any) -> httpx.Response:
    """Store the fields of a page as the script does."""
    form = page.form(**changes)
    fields = [
        [name, text] for name, value in form.items() for text in (value if isinstance(value, list) else [value])
    ]
    body = {"base_revision": form["base_revision"], "fields": fields}
    return client.request("POST", f"/console/drafts/events/{key}", json=body, headers=JSON)


def test_unsaved_changes_raise_no_revision_and_are_restored(app: RunningApp, editor: ConsoleClient) -> None:
    event = create_event(app, title="Fair", cost="4")
    path = f"/console/events/{event['id']}"
    page = editor.page(path)
    before = read_revision(app)
    for n in range(3):
        kept = keep(editor, str(event["id"]), page, title=f"Fair {n}", new_password="sesame-1", cost="5")
        assert kept.status_code == 200, kept.text
    assert read_revision(app) == before
    assert read_event(app, event["id"])["title"] == "Fair"
    stored = app.sql("SELECT fields::text FROM drafts WHERE draft_key = $1", str(event["id"]))
    assert "sesame" not in stored[0]["fields"]
    assert "Unsaved changes from" in editor.page(path).text
    compared = editor.page(f"/console/drafts/events/{event['id']}").text
    assert "Title Fair Fair 2" in compared
    assert "Cost 4 5" in compared
    restored = editor.page(f"{path}?draft={event['id']}")
    assert restored.fields["title"] == ["Fair 2"]
    saved_id(save(editor, path, restored, action="save"))
    assert read_event(app, event["id"])["title"] == "Fair 2"
    assert "Unsaved changes" not in editor.page(path).text


def test_restored_changes_are_merged_with_later_ones(app: RunningApp, editor: ConsoleClient) -> None:
    event = create_event(app, title="Fair", cost="4")
    path = f"/console/events/{event['id']}"
    keep(editor, str(event["id"]), editor.page(path), title="Fair A")
    app.caller("administrator").change("events", event["id"], cost="9")
    restored = editor.page(f"{path}?draft={event['id']}")
    response = save(editor, path, restored, action="save")
    assert response.headers["location"] == f"{path}?merged=cost&notice=saved"
    assert read_event(app, event["id"])["cost"] == "$9"


def test_new_events_have_several_drafts(app: RunningApp, author: ConsoleClient) -> None:
    page = author.page("/console/events/new")
    for key in ("key-a", "key-b"):
        assert keep(author, key, page, title=f"Unsaved {key}", draft_key=key).status_code == 200
    shown = author.page("/console/events/new")
    assert shown.text.count("Unsaved changes from") == 2
    restored = author.page("/console/events/new?draft=key-a")
    assert (restored.fields["title"], restored.fields["draft_key"]) == (["Unsaved key-a"], ["key-a"])
    assert author.post("/console/drafts/events/key-b/discard").status_code == 303
    assert author.page("/console/events/new").text.count("Unsaved changes from") == 1
    other = ConsoleClient.signed_in(app, "contributor")
    assert other.get("/console/drafts/events/key-a").status_code == 404
    saved_id(save(author, "/console/events/new", restored, action="draft", start_day="2031-01-01"))
    assert "Unsaved changes from" not in author.page("/console/events/new").text


def test_malformed_draft_is_rejected(author: ConsoleClient) -> None:
    for fields in ("x", [["a"]], [[1, 2]], [["a", "b\0"]], [["a", "b" * 500_000]]):
        response = author.request("POST", "/console/drafts/events/k", content=orjson.dumps({"fields": fields}),
                                  headers={**JSON, "content-type": "application/json"})  # fmt: skip
        assert response.status_code in (400, 413), fields
    assert (
        author.request("POST", "/console/drafts/events/a%20b", json={"fields": []}, headers=JSON).status_code == 404
    )


def check(client: ConsoleClient, **fields: str) -> dict[str, Any]:
    response = client.post("/console/events/checks", fields, headers=JSON)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def test_warnings_while_typing(app: RunningApp, editor: ConsoleClient, author: ConsoleClient) -> None:
    venue = app.caller("editor").create("venues", venue="Assembly Room")
    event = create_event(app, title="Café Philosophique", start_date="2032-03-04 19:00:00",
                         end_date="2032-03-04 21:00:00", venue=venue["id"])  # fmt: skip
    hidden = create_event(app, title="Cafe philosophique!", status="draft", start_date="2032-03-05 19:00:00",
                          end_date="2032-03-05 21:00:00")  # fmt: skip
    form = {"title": "cafe philosophique", "start_day": "2032-03-05", "start_time": "10:00", "end_time": "11:00"}
    assert [row["title"] for row in check(author, **form)["duplicates"]] == [event["title"]]
    assert {row["url"].rpartition("/")[2] for row in check(editor, **form)["duplicates"]} == {
        str(event["id"]),
        str(hidden["id"]),
    }
    assert check(editor, **{**form, "start_day": "2032-03-12"})["duplicates"] == []
    assert check(editor, **form, record_id=str(hidden["id"]))["duplicates"][0]["title"] == event["title"]
    there = {"title": "Other", "start_day": "2032-03-04", "start_time": "20:00", "end_time": "23:00"}
    assert check(editor, **there, venue_name="Assembly Room")["conflicts"][0]["venue"] == "Assembly Room"
    assert check(editor, **{**there, "start_time": "21:00"}, venue_name="Assembly Room")["conflicts"] == []
    exhibition = {"start_date": "2032-03-04", "end_date": "2032-03-09", "all_day": True, "venue": venue["id"]}
    create_event(app, title="Prints and paper", **exhibition)
    create_event(app, title="Long night", start_date="2032-03-04 06:00:00", end_date="2032-03-04 23:00:00",
                 venue=venue["id"])  # fmt: skip
    assert [row["title"] for row in check(editor, **there, venue_name="Assembly Room")["conflicts"]] == [
        event["title"]
    ]
    for hours in ({"all_day": "true"}, {"start_time": "08:00"}):  # An exhibition stands beside other events.
        assert check(editor, **{**there, **hours}, venue_name="Assembly Room")["conflicts"] == []
    gap = check(editor, start_day="2031-03-30", start_time="02:30", timezone="Europe/Berlin")["times"]
    assert (gap["start_date"]["kind"], gap["start_date"]["becomes"]) == ("skipped", "03:30")
    missing = [row["name"] for row in check(editor, **there, cost="0")["missing"]]
    assert missing == ["image", "description", "venue", "organizer"]


def test_warnings_are_a_notice_without_script(app: RunningApp, editor: ConsoleClient) -> None:
    dates = {"start_date": "2033-03-04 19:00:00", "end_date": "2033-03-04 21:00:00"}
    create_event(app, title="Harvest festival", **dates)
    page = editor.page("/console/events/new")
    response = save(
        editor, "/console/events/new", page, action="publish", title="Harvest Festival", start_day="2033-03-05"
    )
    shown = editor.page(f"/console/events/{saved_id(response)}")
    assert "Is this event already in the calendar? Harvest festival" in shown.text


def test_revision_shows_changes_by_others(app: RunningApp, editor: ConsoleClient, author: ConsoleClient) -> None:
    event = create_event(app)
    path = f"/console/events/{event['id']}"
    opened = editor.page(path).fields["base_revision"][0]
    assert str(editor.get(f"{path}/revision", headers=JSON).json()["revision"]) == opened
    app.caller("administrator").change("events", event["id"], title="Changed")
    current = editor.get(f"{path}/revision", headers=JSON).json()
    assert current["revision"] > int(opened)
    assert current["login"] == "administrator"
    assert author.get(f"{path}/revision", headers=JSON).status_code == 403


def test_map_needs_tiles(editor: ConsoleClient) -> None:
    assert editor.get("/console/map?lat=48&lng=10").status_code in (200, 404)
    assert editor.get("/console/map?lat=x&lng=10").status_code in (400, 404)

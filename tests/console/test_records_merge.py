"""Merging two records of a kind: links, change log, addresses."""

import json
from typing import Any

import pytest

from kalends.calendar.operations import form_work
from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient

EVENT = {"title": "Concert", "start_date": "2035-05-01 19:00:00", "end_date": "2035-05-01 21:00:00"}
EXTENSION = "/api/kalends/v1"
# The parameter of the name, the one of the link, and the public path of each kind.
KINDS = {
    "venues": ("venue", "venue", "/venue"),
    "organizers": ("organizer", "organizer", "/organizer"),
    "categories": ("name", "categories", "/events/category"),
    "tags": ("name", "tags", "/tag"),
}


def add(app: RunningApp, kind: str, name: str, **fields: Any) -> int:
    record_id: int = app.caller("editor").create(kind, **{KINDS[kind][0]: name}, **fields)["id"]
    return record_id


def merge(client: ConsoleClient, kind: str, record_id: int, target_id: int) -> Any:
    page = client.page(f"/console/{kind}/{record_id}/merge?into={target_id}")
    return client.post(f"/console/{kind}/{record_id}/merge", page.form())


def linked_ids(app: RunningApp, kind: str, event_id: int) -> list[int]:
    column = {"venues": "venue_id", "organizers": "organizer_id", "categories": "category_id", "tags": "tag_id"}[kind]
    rows = app.sql(f"SELECT {column} FROM event_{kind} WHERE event_id = $1 ORDER BY position", event_id)
    return [row[0] for row in rows]


def read_redirect(app: RunningApp, path: str) -> tuple[int, str]:
    path, _, query = path.partition("?")
    status, headers, _ = app.raw("GET", path, query=query.encode(), headers=[("accept", "text/html")])
    return status, headers.get("location", "")


def list_titles(app: RunningApp, query: str) -> list[str]:
    """Return the titles of the events in the feed with a filter."""
    status, _, body = app.raw("GET", "/events.json", query=query.encode())
    assert status == 200
    return [item["title"] for item in json.loads(body)["items"]]


def test_address_follows_a_chain_of_merges(editor: ConsoleClient, app: RunningApp) -> None:
    first, second, third = (add(app, "venues", f"Chain {n}") for n in range(3))
    for old, target in ((first, second), (second, third)):
        assert merge(editor, "venues", old, target).status_code == 303
    assert [read_redirect(app, f"/?p={old}") for old in (first, second)] == [(301, "/venue/chain-2/")] * 2
    # A record that is restored from the trash has its own address again.
    app.caller("editor").change("venues", first, status="publish")
    assert read_redirect(app, f"/?p={first}")[1].startswith("/venue/chain-0")


@pytest.mark.quick("venues", "tags")
@pytest.mark.parametrize("kind", KINDS)
def test_events_and_addresses_move(editor: ConsoleClient, app: RunningApp, kind: str) -> None:
    _, param, path = KINDS[kind]
    caller = app.caller("editor")
    old, target, other = (add(app, kind, f"{name} {kind}") for name in ("Old", "Kept", "Other"))
    made = [
        caller.create("events", **{**EVENT, "title": f"{kind} {n}"}, **{param: ids}, status=status)
        for n, (ids, status) in enumerate(
            [([other, old], "publish"), ([old, other, target], "draft"), ([target, old], "pending"), ([old], "draft")]
        )
    ]
    caller.trash("events", made[3]["id"])
    untouched = caller.create("events", **EVENT, **{param: [other]})
    revision = app.sql("SELECT revision FROM sites")[0][0]
    page = editor.page(f"/console/{kind}/{old}/merge?into={target}")
    assert f"Old {kind}" in page.text
    assert f"Kept {kind}" in page.text
    assert f"4 events move to Kept {kind}, including drafts and trashed events." in page.text
    response = merge(editor, kind, old, target)
    assert response.headers["location"] == f"/console/{kind}/{target}?notice=merged"
    assert [linked_ids(app, kind, event["id"]) for event in made] == [
        [other, target],
        [target, other],
        [target],
        [target],
    ]
    # Each event has one entry in the log, with its revision.
    rows = app.sql("SELECT record_id, revision FROM changes WHERE kind = 'events' AND revision > $1", revision)
    stored = app.sql("SELECT id, revision FROM events WHERE revision > $1", revision)
    assert sorted(map(tuple, rows)) == sorted(map(tuple, stored))
    assert {row[0] for row in rows} == {event["id"] for event in made}
    assert untouched["id"] not in {row[0] for row in rows}
    assert read_redirect(app, f"{path}/old-{kind}/") == (301, f"{path}/kept-{kind}/")
    if kind in ("venues", "organizers"):
        assert read_redirect(app, f"/?p={old}") == (301, f"{path}/kept-{kind}/")
    # Subscriptions and bookmarks that name the ID show the events of the record that was kept.
    assert list_titles(app, f"{param}={old}") == list_titles(app, f"{param}={target}") == [f"{kind} 0"]
    history = app.sql("SELECT before, after FROM changes WHERE record_id = $1 ORDER BY revision DESC", made[0]["id"])
    assert f"{other}, {old}" in history[0][0]
    assert f"{other}, {target}" in history[0][1]


@pytest.mark.parametrize("kind", ["venues", "organizers"])
def test_old_post_is_in_trash_and_redirects_after_its_deletion(
    editor: ConsoleClient, app: RunningApp, kind: str
) -> None:
    path = KINDS[kind][2]
    first, second, third = (add(app, kind, f"{name} {kind}") for name in ("First", "Second", "Third"))
    merge(editor, kind, first, second)
    assert f"First {kind}" in editor.page(f"/console/{kind}?status=trash").text
    # A record that others were merged into can be merged itself.
    merge(editor, kind, second, third)
    app.sql(f"DELETE FROM {kind} WHERE id = ANY($1)", [first, second])
    assert read_redirect(app, f"{path}/first-{kind}/") == (301, f"{path}/third-{kind}/")
    assert read_redirect(app, f"{path}/second-{kind}/") == (301, f"{path}/third-{kind}/")


def test_restored_record_has_its_address_but_no_events(editor: ConsoleClient, app: RunningApp) -> None:
    old, target = add(app, "venues", "Back again"), add(app, "venues", "Front")
    event = app.caller("editor").create("events", **EVENT, venue=[old])
    assert "doesn’t move the events back" in editor.page(f"/console/venues/{old}/merge?into={target}").text
    merge(editor, "venues", old, target)
    editor.post(f"/console/venues/{old}/restore", editor.page(f"/console/venues/{old}").form())
    assert linked_ids(app, "venues", event["id"]) == [target]
    assert read_redirect(app, "/venue/back-again/")[0] == 200


def test_former_slugs_of_term_redirect(editor: ConsoleClient, app: RunningApp) -> None:
    old, target = add(app, "tags", "Oldest"), add(app, "tags", "Newest")
    app.caller("editor").change("tags", old, slug="renamed")
    merge(editor, "tags", old, target)
    assert app.caller("editor").get(f"/tags/{old}").status_code == 404
    for slug in ("oldest", "renamed"):
        assert read_redirect(app, f"/tag/{slug}/") == (301, "/tag/newest/")


def test_subcategories_move_below_target(editor: ConsoleClient, app: RunningApp) -> None:
    old, target = add(app, "categories", "Stem"), add(app, "categories", "Trunk")
    child = add(app, "categories", "Twig", parent=old)
    merge(editor, "categories", old, target)
    assert app.caller("editor").read("categories", child)["parent"] == target


def test_category_merges_into_its_own_child(editor: ConsoleClient, app: RunningApp) -> None:
    top = add(app, "categories", "Top")
    old = add(app, "categories", "Above", parent=top)
    target, sibling = add(app, "categories", "Below", parent=old), add(app, "categories", "Beside", parent=old)
    merge(editor, "categories", old, target)
    caller = app.caller("editor")
    assert [caller.read("categories", entry)["parent"] for entry in (target, sibling)] == [top, top]


def test_target_is_found_by_search(editor: ConsoleClient, app: RunningApp) -> None:
    old, target = add(app, "venues", "Kino Nord"), add(app, "venues", "Kino Süd")
    page = editor.page(f"/console/venues/{old}/merge")
    assert f"/console/venues/{old}/merge?into={target}" in page.html
    assert f"into={old}" not in page.html
    found = editor.page(f"/console/venues/{old}/merge?search=sud").html
    assert f"into={target}" in found
    assert "Nothing matches" in editor.page(f"/console/venues/{old}/merge?search=nothing-like-it").text


def test_impossible_merges_are_rejected(editor: ConsoleClient, app: RunningApp) -> None:
    caller = app.caller("editor")
    published = add(app, "venues", "Public place")
    draft, trashed = add(app, "venues", "Hidden place", status="draft"), add(app, "venues", "Gone place")
    caller.trash("venues", trashed)
    path = f"/console/venues/{published}/merge"
    for into in (published, draft, trashed, 999_999):
        assert editor.post(path, {"into": str(into)}).status_code == 400, into
    assert editor.post(path, {}).status_code == 400
    assert editor.post(f"/console/venues/{trashed}/merge", {"into": str(published)}).status_code == 410
    stale = {"into": str(published), "base_revision": "1"}
    assert editor.post(f"/console/venues/{draft}/merge", stale).status_code == 412
    assert caller.read("venues", published)["status"] == "publish"


@pytest.mark.parametrize("role", ["contributor", "author"])
def test_only_editors_merge(app: RunningApp, role: str) -> None:
    client = ConsoleClient.signed_in(app, role)
    old = app.caller(role).create("venues", venue=f"Own {role}")["id"]
    target = add(app, "venues", f"Other of {role}")
    assert client.get(f"/console/venues/{old}/merge").status_code == 403
    assert client.post(f"/console/venues/{old}/merge", {"into": str(target)}).status_code == 403


def test_many_events_move_in_batches(editor: ConsoleClient, app: RunningApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form_work, "BATCH_SIZE", 2)
    old, target = add(app, "organizers", "Busy"), add(app, "organizers", "Busier")
    made = [app.caller("editor").create("events", **EVENT, organizer=[old])["id"] for _ in range(5)]
    assert merge(editor, "organizers", old, target).status_code == 303
    assert [linked_ids(app, "organizers", event) for event in made] == [[target]] * 5
    monkeypatch.setattr(form_work, "MAX_MERGED_EVENTS", 4)
    other = add(app, "organizers", "Other")
    assert editor.post(f"/console/organizers/{target}/merge", {"into": str(other)}).status_code == 400

"""Links outlive a slug: in calendars of subscribers, in search engines, on paper."""

import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp, expect_json

# Venues and organizers keep the slug that they were made with.
PATHS = {"events": "event", "categories": "events/category", "tags": "tag"}
EVENT = {"title": "A", "start_date": "2031-01-01 10:00", "end_date": "2031-01-01 11:00"}


@pytest.fixture
def app(start_app: StartApp) -> RunningApp:
    return start_app()


def read_redirect(app: RunningApp, path: str, query: bytes = b"") -> tuple[int, str]:
    status, headers, _ = app.raw("GET", path, query=query, headers=[("accept", "text/html")])
    return status, headers.get("location", "")


@pytest.mark.quick("events", "tags")
@pytest.mark.parametrize("kind", PATHS)
def test_old_slug_redirects_to_current_slug(app: RunningApp, kind: str) -> None:
    editor = app.caller("editor")
    record = editor.create(kind, slug="first", **(EVENT if kind == "events" else {"name": "A"}))
    for slug in ("second", "東京"):
        editor.change(kind, record["id"], slug=slug)
    current_slug = editor.read(kind, record["id"])["slug"]
    for old in ("first", "second"):
        assert read_redirect(app, f"/{PATHS[kind]}/{old}/", b"lang=de") == (
            301,
            f"/{PATHS[kind]}/{current_slug}/?lang=de",
        )
    assert read_redirect(app, f"/{PATHS[kind]}/{current_slug}/")[0] == 200


def test_feed_and_embed_urls_redirect(app: RunningApp) -> None:
    editor = app.caller("editor")
    record = editor.create("events", slug="first", **EVENT)
    editor.change("events", record["id"], slug="second")
    assert read_redirect(app, "/event/first.ics") == (301, "/event/second.ics")
    assert read_redirect(app, "/embed/event/first/") == (301, "/embed/event/second/")


def test_reused_slug_belongs_to_new_record(app: RunningApp) -> None:
    editor = app.caller("editor")
    record = editor.create("tags", name="A", slug="first")
    editor.change("tags", record["id"], slug="second")
    editor.create("tags", name="B", slug="first")
    assert read_redirect(app, "/tag/first/") == (200, "")


def test_hidden_and_deleted_records_do_not_redirect(app: RunningApp) -> None:
    editor = app.caller("editor")
    hidden = editor.create("events", slug="never-shown", status="draft", **EVENT)
    editor.change("events", hidden["id"], slug="shown", status="publish")
    gone = editor.create("events", slug="first", **EVENT)
    editor.change("events", gone["id"], slug="second")
    editor.trash("events", gone["id"])
    removed = editor.create("tags", name="A", slug="first")
    editor.change("tags", removed["id"], slug="second")
    expect_json(editor.delete(f"/tags/{removed['id']}"))
    for path in ("/event/never-shown/", "/event/first/", "/event/second/", "/tag/first/"):
        assert read_redirect(app, path) == (404, ""), path

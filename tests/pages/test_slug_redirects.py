"""Links outlive a slug: in calendars of subscribers, in search engines, on paper."""

import pytest

from tests.api.conftest import Start
from tests.api.running_app import Interface, done

# Venues and organizers keep the slug that they were made with.
PATHS = {"events": "event", "categories": "events/category", "tags": "tag"}
EVENT = {"title": "A", "start_date": "2031-01-01 10:00", "end_date": "2031-01-01 11:00"}


@pytest.fixture
def interface(fresh: Start) -> Interface:
    return fresh()


def follow(interface: Interface, path: str, query: bytes = b"") -> tuple[int, str]:
    status, headers, _ = interface.raw("GET", path, query=query, headers=[("accept", "text/html")])
    return status, headers.get("location", "")


@pytest.mark.parametrize("kind", PATHS)
def test_old_slug_redirects_to_current_slug(interface: Interface, kind: str) -> None:
    editor = interface.caller("editor")
    made = editor.create(kind, slug="first", **(EVENT if kind == "events" else {"name": "A"}))
    for slug in ("second", "東京"):
        editor.change(kind, made["id"], slug=slug)
    shown = editor.read(kind, made["id"])["slug"]
    for old in ("first", "second"):
        assert follow(interface, f"/{PATHS[kind]}/{old}/", b"lang=de") == (301, f"/{PATHS[kind]}/{shown}/?lang=de")
    assert follow(interface, f"/{PATHS[kind]}/{shown}/")[0] == 200


def test_feed_and_embed_urls_redirect(interface: Interface) -> None:
    editor = interface.caller("editor")
    made = editor.create("events", slug="first", **EVENT)
    editor.change("events", made["id"], slug="second")
    assert follow(interface, "/event/first.ics") == (301, "/event/second.ics")
    assert follow(interface, "/embed/event/first/") == (301, "/embed/event/second/")


def test_reused_slug_belongs_to_new_record(interface: Interface) -> None:
    editor = interface.caller("editor")
    made = editor.create("tags", name="A", slug="first")
    editor.change("tags", made["id"], slug="second")
    editor.create("tags", name="B", slug="first")
    assert follow(interface, "/tag/first/") == (200, "")


def test_hidden_and_deleted_records_do_not_redirect(interface: Interface) -> None:
    editor = interface.caller("editor")
    hidden = editor.create("events", slug="never-shown", status="draft", **EVENT)
    editor.change("events", hidden["id"], slug="shown", status="publish")
    gone = editor.create("events", slug="first", **EVENT)
    editor.change("events", gone["id"], slug="second")
    editor.trash("events", gone["id"])
    removed = editor.create("tags", name="A", slug="first")
    editor.change("tags", removed["id"], slug="second")
    done(editor.delete(f"/tags/{removed['id']}"))
    for path in ("/event/never-shown/", "/event/first/", "/event/second/", "/tag/first/"):
        assert follow(interface, path) == (404, ""), path

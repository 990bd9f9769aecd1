"""RSS, Atom, JSON Feed, the sitemap and robots.txt."""

import json
from xml.etree import ElementTree

import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp

ATOM = "{http://www.w3.org/2005/Atom}"
MAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


@pytest.fixture
def app(start_app: StartApp) -> RunningApp:
    started = start_app()
    started.set_site("timezone", "Europe/Berlin")
    return started


def get(app: RunningApp, path: str, query: bytes = b"") -> bytes:
    status, _, body = app.raw("GET", path, query=query)
    assert status == 200, body
    return body


def test_rss_atom_and_json_contain_same_events(app: RunningApp) -> None:
    editor = app.caller("editor")
    music = editor.create("categories", name="Music & more")
    for number, category in enumerate(([music["id"]], [])):
        event = editor.create("events", title=f"News {number} <b>&amp;</b>", start_date="2031-03-05 19:30",
                              end_date="2031-03-05 21:00", categories=category, description="Words")  # fmt: skip
    editor.create("events", title="Over", start_date="2020-03-05", end_date="2020-03-05")
    rss = ElementTree.fromstring(get(app, "/events.rss"))
    atom = ElementTree.fromstring(get(app, "/events.atom"))
    feed = json.loads(get(app, "/events.json"))
    assert [item.findtext("title") for item in rss.iter("item")] == ["News 0 &", "News 1 &"]
    assert [entry.findtext(f"{ATOM}title") for entry in atom.iter(f"{ATOM}entry")] == ["News 0 &", "News 1 &"]
    assert [item["title"] for item in feed["items"]] == ["News 0 &", "News 1 &"]
    last = feed["items"][1]
    assert (last["id"], last["url"]) == (f"urn:uuid:{event['uid']}", event["url"])
    assert last["_event"]["utc_start_date"] == "2031-03-05 18:30:00"
    assert last["summary"] == "Wednesday, March 5, 2031, 7:30\u202fPM – 9:00\u202fPM CET".replace("\u202f", "\xa0")
    assert feed["version"] == "https://jsonfeed.org/version/1.1"
    filtered = json.loads(get(app, "/events.json", b"categories=music-more"))
    assert [item["title"] for item in filtered["items"]] == ["News 0 &"]


def test_sitemap_contains_only_public_records(app: RunningApp) -> None:
    editor = app.caller("editor")
    tag = editor.create("tags", name="Used")
    editor.create("tags", name="Unused")
    times = {"start_date": "2031-03-05 19:30", "end_date": "2031-03-05 21:00"}
    public = editor.create("events", title="Shown", **times, tags=[tag["id"]], venue={"venue": "Hall"})
    for number, more in enumerate(({"status": "draft"}, {"hide_from_listings": True}, {"new_password": "lilacs"})):
        editor.create("events", title=f"Not {number}", **times, **more)
    index = ElementTree.fromstring(get(app, "/sitemap.xml"))
    parts = [node.text for node in index.iter(f"{MAP}loc")]
    assert parts == [f"{app.base_url}/sitemap/0.xml", f"{app.base_url}/sitemap/terms.xml"]
    posts, terms = (
        [node.text for node in ElementTree.fromstring(get(app, path)).iter(f"{MAP}loc")]
        for path in ("/sitemap/0.xml", "/sitemap/terms.xml")
    )
    assert posts == [f"{app.base_url}/events/", public["url"], f"{app.base_url}/venue/hall/"]
    assert terms == [tag["url"]]
    assert app.raw("GET", "/sitemap/1.xml")[0] == 404


def test_robots_txt_excludes_unbounded_pages(app: RunningApp) -> None:
    lines = get(app, "/robots.txt").decode().split("\n")
    assert lines[0] == "User-agent: *"
    assert {"Disallow: /events/day/", "Disallow: /events/week/", "Disallow: /api/calendar/events/v1/"} <= set(lines)
    assert f"Sitemap: {app.base_url}/sitemap.xml" in lines

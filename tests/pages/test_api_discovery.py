"""The headers and links by which clients of The Events Calendar find the API of a page."""

import re

import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import Caller, RunningApp

API = "//wp-json/tribe/events/v1"
YEAR = {"start_date": "2031-01-01", "end_date": "2032-01-01"}
HEADERS = ("x-tec-api-root", "x-tec-api-version", "x-tec-api-origin", "link")


@pytest.fixture
def calendar(start_app: StartApp) -> RunningApp:
    app = start_app({"KALENDS_API_ALIASES": "/wp-json/tribe/events/v1"})
    editor = app.caller("editor")
    parent = editor.create("categories", name="Music")
    editor.create("categories", name="音楽", slug="音楽", parent=parent["id"])
    editor.create("tags", name="Late")
    times = {"start_date": "2031-05-05 18:00:00", "end_date": "2031-05-05 20:00:00"}
    editor.create("venues", venue="Hall")
    editor.create("events", title="Concert", categories=["音楽"], tags=["late"], **times)
    editor.create("events", title="Secret", new_password="open sesame", **times)
    return app


def find_links(body: str) -> list[str]:
    pattern = r'<link rel="https://api.w.org/" href="([^"]+)">\n<link rel="alternate" href="([^"]+)">'
    return [link.replace("&amp;", "&") for match in re.findall(pattern, body) for link in match]


def test_pages_and_rss_announce_the_api(calendar: RunningApp) -> None:
    anonymous = calendar.caller()
    root, api = f"{calendar.base_url}/wp-json/", calendar.make_url(API)
    root_link = f'<{root}>; rel="https://api.w.org/"'
    events = {event["title"]: event["id"] for event in anonymous.page("events", **YEAR)["events"]}
    concert, secret = events["Concert"], events["Secret"]
    expected = {
        "/": ("/", 0),
        "/events/month/2031-05/": ("/", 0),
        "/events/search/?search=concert": ("/", 0),
        "/venue/hall/": ("/", 0),
        "/nothing/at/all/": ("/", 0),
        "/event/concert/": (f"/events/{concert}", concert),
        "/embed/event/concert/": (f"/events/{concert}", concert),
        "/event/secret/": (f"/events/{secret}", secret),
        "/events/category/music/": ("/events/?categories=music", 0),
        "/events/category/music/音楽/": ("/events/?categories=%e9%9f%b3%e6%a5%bd", 0),
        "/tag/late/": ("/events/?tags=late", 0),
        "/events.rss": ("/", 0),
    }
    for path, (api_path, event_id) in expected.items():
        # The second response comes from the cache.
        for _ in range(2):
            response = anonymous.get(f"/{path}", headers={"Accept": "text/html"})
            shortlink = f"<{calendar.base_url}/?p={event_id}>; rel=shortlink"
            link = f"{root_link}, {shortlink}" if event_id else root_link
            found = [response.headers.get(name) for name in HEADERS]
            assert found == [f"{api}{api_path}", "v1", calendar.base_url, link], path
            if "html" in response.headers["content-type"]:
                assert find_links(response.text) == [root, f"{api}{api_path}"], path


def test_announced_addresses_exist(calendar: RunningApp) -> None:
    anonymous = calendar.caller()
    assert anonymous.get(f"{API}/").json()["namespace"] == "tribe/events/v1"
    for path in ("/event/concert/", "/events/category/music/音楽/", "/tag/late/"):
        address = anonymous.get(f"/{path}").headers["x-tec-api-root"]
        separator = "&" if "?" in address else "?"
        body = anonymous.get(f"{address}{separator}start_date=2031-01-01&end_date=2032-01-01").json()
        assert "Concert" in (body.get("title"), *[event["title"] for event in body.get("events", ())]), path
    exposed = anonymous.get("//", headers={"Origin": "https://other.example"}).headers[
        "access-control-expose-headers"
    ]
    assert {"X-TEC-API-ROOT", "X-TEC-API-VERSION", "X-TEC-API-ORIGIN"} <= set(exposed.split(", "))


def test_without_an_alias_nothing_is_announced(start_app: StartApp) -> None:
    anonymous: Caller = start_app().caller()
    for path in ("/", "/events.rss", "/events/list/"):
        response = anonymous.get(f"/{path}")
        assert not set(HEADERS) & set(response.headers)
        assert "api.w.org" not in response.text

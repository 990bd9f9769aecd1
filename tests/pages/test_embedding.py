"""Below `/embed` only the rows of the route table with `embeds` answer, because other sites may frame them."""

import re

import pytest

from kalends.routes import PAGES
from tests.api.running_app import RunningApp
from tests.pages.page_client import HTML_HEADERS, add_event
from tests.series.series_client import SeriesClient

EMBEDDED = ("/", "/events/", "/events/month/", "/events/month/2031-03/", "/events/week/2031-03-14/",
            "/events/weekend/", "/events/weekend/2031-03-14/", "/events/day/2031-03-14/", "/events/list/",
            "/events/map/", "/event/concert/", "/series/yoga/", "/venue/hall/", "/organizer/club/",
            "/events/category/music/", "/tag/winter/")  # fmt: skip
OTHERS = ("/events/search/", "/events/suggest.json", "/events.ics", "/events.rss", "/events.atom", "/events.json",
          "/event/concert.ics", "/series/yoga.ics", "/custom.0123456789ab.css", "/favicon.ico", "/robots.txt",
          "/sitemap.xml", "/sitemap/0.xml", "/sitemap/terms.xml")  # fmt: skip
NO_ROWS = ("/unknown/", "/console/", "/console/events", "/embed/events/", "/assets/site.css", "/events?ical=1",
           "/events/list/?ical=1", "/event/concert/?ical=1", "/event/concert/embed/")  # fmt: skip


@pytest.fixture
def filled(app: RunningApp) -> RunningApp:
    editor = app.caller("editor")
    music, winter = editor.create("categories", name="Music"), editor.create("tags", name="Winter")
    add_event(
        app, "Concert", "2031-03-14 19:30", "2031-03-14 22:00", venue={"venue": "Hall", "geo_lat": 1, "geo_lng": 1},
        organizer={"organizer": "Club"}, categories=[music["id"]], tags=[winter["id"]],
    )  # fmt: skip
    dates = {"start_date": "2050-01-04 19:30:00", "end_date": "2050-01-04 21:00:00"}
    SeriesClient(editor).create(rule="FREQ=WEEKLY;COUNT=3", **dates)
    return app


def get(app: RunningApp, address: str, method: str = "GET", accept: str = "text/html") -> tuple[int, str, bytes]:
    path, _, query = address.partition("?")
    headers = [("accept", accept)]
    status, found, body = app.raw(method, path, query=query.encode(), headers=headers)
    return status, found.get("content-security-policy", "").rpartition(";")[2].strip(), body


def test_examples_cover_the_route_table() -> None:
    for examples, embeds in ((EMBEDDED, True), (OTHERS, False)):
        rows = {row.pattern for row in PAGES.pages if row.embeds is embeds}
        matching = {row.pattern for row in PAGES.pages for path in examples if re.fullmatch(row.pattern, path)}
        assert rows == matching
    assert not any(row.embeds for row in PAGES.calendars)
    assert all(row.is_page and not row.is_feed for row in PAGES.pages if row.embeds)


def test_only_embeddable_pages_can_be_framed(filled: RunningApp) -> None:
    for path in EMBEDDED:
        assert get(filled, path)[:2] == (200, "frame-ancestors 'self'"), path
        assert get(filled, f"/embed{path}")[:2] == (200, "frame-ancestors *"), path
    for path in (*OTHERS, *NO_ROWS):
        for method in ("GET", "HEAD", "POST"):
            for accept in ("text/html", "*/*"):
                found = get(filled, f"/embed{path}", method, accept)
                assert found[:2] == (404, "frame-ancestors 'self'"), (method, path, accept)


def test_embedded_pages_link_to_embedded_pages(filled: RunningApp) -> None:
    followed: set[str] = set()
    for path in (
        *EMBEDDED,
        "/events/list/?search=concert&per_page=1",
        "/events/list/?past=1",
        "/events/day/2031-03-15/",
    ):
        body = get(filled, f"/embed{path}")[2].decode()
        assert "/embed/events/search/" not in body
        # A form leaves the frame.
        assert '<base target="_top">' in body
        followed |= {link.replace("&amp;", "&") for link in re.findall(r'(?:href|action)="(/embed/[^"]*)"', body)}
    assert len(followed) > 20
    for link in sorted(followed):
        assert get(filled, link)[:2] == (200, "frame-ancestors *"), link


def test_missing_slash_and_missing_record_below_embed(filled: RunningApp) -> None:
    status, headers, _ = filled.raw("GET", "/embed/events/list", headers=HTML_HEADERS)
    assert (status, headers["location"]) == (301, "/embed/events/list/")
    assert get(filled, "/embed/event/unknown/")[:2] == (404, "frame-ancestors *")

"""No request for a page or a feed causes a server error."""

import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp

PATHS = (
    "/",
    "/events/",
    "/events/month/",
    "/events/month/2031-03/",
    "/events/week/2031-03-12/",
    "/events/day/2031-03-12/",
    "/events/list/",
    "/events/map/",
    "/events/search/",
    "/event/concert/",
    "/venue/hall/",
    "/organizer/verein/",
    "/events/category/music/",
    "/tag/free/",
    "/events.ics",
    "/events.rss",
    "/events.atom",
    "/events.json",
    "/event/concert.ics",
    "/sitemap.xml",
    "/sitemap/0.xml",
    "/sitemap/terms.xml",
    "/robots.txt",
    "/embed/events/list/",
)
OLD_PATHS = ("/events/2031-03/", "/events/category/music/list/page/2/", "/events/feed/")
HOSTILE_QUERIES = (
    b"ical=1&overlaps_from=never",
    b"outlook-ical=%00&tribe_events_cat=%00",
    b"p=%00",
    b"p=" + b"9" * 15,
    b"tribe_events=%00",
    b"tribe-bar-date=0001-01-01",
    b"tribe-bar-date=%00&eventDisplay=day",
    b"tribe-bar-search=" + b"a" * 5000,
    b"\xff\xfe",
    b"%ff%fe",
    b"%00",
    b"search=%00",
    b"search=%ff",
    b"search=" + b"a" * 5000,
    b"search=%22",
    b"search=-",
    b"search[]=a&search[]=b",
    b"search[a][b][c][d][e]=1",
    b"page=0",
    b"page=-1",
    b"page=99999999999999999999",
    b"page=a",
    b"per_page=0",
    b"categories=0",
    b"categories=nothing",
    b"categories[]=1&categories[x]=2",
    b"venue=x",
    b"venue=1,2,3",
    b"organizer=99999999999",
    b"start_date=9999-12-31",
    b"start_date=0001-01-01",
    b"end_date=0001-01-01",
    b"near=%00",
    b"start_date=2031-03-12&end_date=2030-01-01",
    b"overlaps_from=9998-12-31&overlaps_to=9998-12-31",
    b"near=" + b"x" * 500,
    b"geoloc_lat=91&geoloc_lng=0",
    b"geoloc_lat=1",
    b"geoloc_lat=nan&geoloc_lng=inf",
    b"geoloc_radius=-1",
    b"past=maybe",
    b"past=1&page=2",
    b"past=1&start_date=2031-01-01",
    b"lang=xx",
    b"lang=" + b"a-" * 100,
    b"lang=%00",
    b"p=1",
    b"p=99999999999999999999",
    b"p=-1",
    b"p=%C2%B2",
    b"cursor=abc",
    b"orderby=title&order=desc",
    b"orderby=distance",
    b"include=1,2,3",
    b"status=draft",
    b"password=x",
    b"context=edit",
    b"post_parent=1",
    b"days=1",
    b"days[]=2",
    b"&".join(b"a%d=1" % n for n in range(1200)),
    b"strict_dates=true&start_date=2031-03-12%2010:00",
    b"ticketed=true",
    b"_fields=x&_envelope=1&_method=DELETE",
    b"featured=maybe",
    b"hide_empty=",
    b"=&==&&&",
)
HOSTILE_PATHS = (
    "/event//",
    "/event/\0/",
    "/event/" + "a" * 3000 + "/",
    "/event/%/",
    "/event/../",
    "/event/a b/",
    "/event/é/",
    "/event/\ud800/".encode(errors="surrogatepass").decode("latin-1"),
    "/event/.ics",
    "/event/a.ics/",
    "/events/category//",
    "/events/category/a//b/",
    "/events/category/" + "a/" * 500,
    "/tag/\n/",
    "/tag/%0d%0aX: y/",
    "/venue/{{7*7}}/",
    "/events/month/2031-3/",
    "/events/month/２０３１-03/",
    "/events/day/2031-03-12",
    "/sitemap/999999.xml",
    "/sitemap/-1.xml",
    "/assets/",
    "/assets/../../etc/passwd",
    "/assets/site.css",
    "/assets/\0",
    "/embed",
    "/embed/",
    "/embed/embed/events/",
    "/embed/assets/x",
    "//events/list/",
    "/EVENTS/LIST/",
    "/events.ICS",
    "/events.xml",
    "/favicon.ico",
)


@pytest.fixture(scope="module")
def app(start_app_for_module: StartApp) -> RunningApp:
    started = start_app_for_module({"KALENDS_CACHE_MB": "0"})
    editor = started.caller("editor")
    tag = editor.create("tags", name="Free")
    music = editor.create("categories", name="Music")
    editor.create("events", title="Concert", start_date="2031-03-12 10:00", end_date="2031-03-12 11:00",
                  venue={"venue": "Hall", "geo_lat": 1, "geo_lng": 1}, organizer={"organizer": "Verein"},
                  categories=[music["id"]], tags=[tag["id"]])  # fmt: skip
    return started


@pytest.mark.quick("/", "/events/feed/")
@pytest.mark.parametrize("path", [*PATHS, *OLD_PATHS])
def test_hostile_queries_cause_no_server_error(app: RunningApp, path: str) -> None:
    assert app.raw("GET", path)[0] == (301 if path in OLD_PATHS else 200)
    for query in HOSTILE_QUERIES:
        for accept in ("text/html", "*/*"):
            status, headers, _ = app.raw("GET", path, query=query, headers=[("accept", accept)])
            assert status < 500, (path, query)
            assert "content-type" in headers or status in (301, 302)


@pytest.mark.quick("'/event//'", "'/favicon.ico'")
@pytest.mark.parametrize("path", HOSTILE_PATHS, ids=ascii)
def test_hostile_paths_cause_no_server_error(app: RunningApp, path: str) -> None:
    for method in ("GET", "HEAD", "POST", "DELETE", "OPTIONS"):
        status, headers, body = app.raw(method, path, headers=[("accept", "text/html")])
        assert status < 500, (method, path)
        assert not any("\n" in value or "\r" in value for value in headers.values())
        assert method != "HEAD" or body == b""


@pytest.mark.quick("application/x-www-form-urlencoded-", "-{")
@pytest.mark.parametrize("body", [b"", b"password=", b"password[]=1", b"\xff", b"password=" + b"x" * 100_000, b"{"])
@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "application/json", "multipart/form-data", ""])
def test_hostile_forms_cause_no_server_error(app: RunningApp, body: bytes, kind: str) -> None:
    headers = [("content-type", kind), ("accept", "text/html")]
    assert app.raw("POST", "/event/concert/", headers=headers, body=[body])[0] < 500

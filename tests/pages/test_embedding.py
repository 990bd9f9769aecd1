"""Below `/embed` only the rows of the route table with `embeds` answer, because other sites may frame them."""

import re
from html import unescape
from io import BytesIO

import pytest
from PIL import Image
from playwright.sync_api import Browser

from kalends.routes import PAGES
from tests.api.running_app import RunningApp
from tests.pages.browser_page import find_violations, open_browser_page
from tests.pages.demo_calendar import DemoCalendar
from tests.pages.page_client import HTML_HEADERS, add_event, get_page
from tests.series.series_client import SeriesClient

EMBEDDED = ("/", "/events/", "/events/month/", "/events/month/2031-03/", "/events/week/2031-03-14/",
            "/events/weekend/", "/events/weekend/2031-03-14/", "/events/day/2031-03-14/", "/events/list/",
            "/events/map/", "/event/concert/", "/series/yoga/", "/venue/hall/", "/organizer/club/",
            "/events/category/music/", "/tag/winter/", "/display/")  # fmt: skip
OTHERS = ("/events/search/", "/events/embed/", "/events/suggest.json", "/events.ics", "/events.rss", "/events.atom",
          "/events.json", "/event/concert.ics", "/series/yoga.ics", "/custom.0123456789ab.css", "/favicon.ico",
          "/robots.txt", "/sitemap.xml", "/sitemap/0.xml", "/sitemap/terms.xml", "/events/add/", "/events/add/sent/",
          "/events/add/link/", "/events/add/similar.json", "/submission/a.b", "/submission/a.b/change",
          "/events/mine/", "/follow/", "/follow/a.b/", "/follow/end/a.b")  # fmt: skip
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


def test_frame_has_what_its_code_says(filled: RunningApp) -> None:
    for day in (20, 21, 22):
        add_event(filled, f"Concert {day}", f"2031-03-{day} 19:30", f"2031-03-{day} 22:00")
    whole, short = get_page(filled, "/embed/events/list/"), get_page(filled, "/embed/events/list/", "limit=2")
    assert (whole.count("<article"), short.count("<article")) == (7, 2)
    assert 'class="pill" href="/events/list/"' in short
    assert 'rel="next"' not in short
    assert get_page(filled, "/events/list/", "limit=2").count("<article") == 7
    for query, has_tabs in (("", False), ("tabs=0", False), ("tabs=1", True)):
        assert ('class="view-nav"' in get_page(filled, "/embed/events/month/", query)) is has_tabs
    month = get_page(filled, "/embed/events/month/2031-03/", "tabs=1&theme=dark")
    inside = re.findall(r'href="(/embed/[^"]+)"', month)
    assert inside
    assert all(link.endswith("?tabs=1&amp;theme=dark") for link in inside)
    assert 'href="/event/concert/"' in month


def test_theme_decides_the_style_sheet(filled: RunningApp) -> None:
    sheets: dict[str, str] = {}
    for theme in ("auto", "light", "dark"):
        page = get_page(filled, "/embed/events/list/", f"theme={theme}")
        scheme = "light dark" if theme == "auto" else theme
        assert f'<meta name="color-scheme" content="{scheme}">' in page
        name = re.search(r'href="(/assets/site\.[^"]+)"', page)
        assert name
        status, _, body = filled.raw("GET", name[1])
        assert status == 200
        sheets[theme] = body.decode()
    assert sheets["auto"].count("prefers-color-scheme") == 3
    assert "prefers-color-scheme" not in sheets["light"] + sheets["dark"]
    assert (sheets["light"].count("@media not all{"), sheets["dark"].count("@media all{")) == (3, 3)


@pytest.mark.parametrize("query", ["limit=0", "limit=25", "limit=x", "theme=pink", "tabs=maybe"])
def test_invalid_parameters_of_a_frame(filled: RunningApp, query: str) -> None:
    name = query.partition("=")[0]
    status, policy, body = get(filled, f"/embed/events/list/?{query}")
    assert (status, policy, f"`{name}`" in body.decode()) == (400, "frame-ancestors *", True)
    assert get(filled, f"/events/list/?{query}")[0] == 200
    assert get(filled, f"/events/embed/?{query}")[0] == 400


def find_music(app: RunningApp) -> int:
    [music] = app.caller("editor").page("categories", search="Music")["categories"]
    return int(music["id"])


def read_codes(page: str) -> list[str]:
    return [unescape(code) for code in re.findall(r"<textarea[^>]*>(.*?)</textarea>", page, re.DOTALL)]


def test_embed_page_writes_both_codes(filled: RunningApp) -> None:
    script, frame = read_codes(get_page(filled, "/events/embed/"))
    assert 'data-view="/events/month/" data-title="' in script
    assert '/embed/events/month/" title="' in frame
    query = "view=list&categories=music&limit=5&tabs=1&theme=dark&near=&find_venue=ha&lang=de"
    page = get_page(filled, "/events/embed/", query)
    music = find_music(filled)
    options = f"/events/list/?categories={music}&amp;lang=de&amp;limit=5&amp;tabs=1&amp;theme=dark"
    script, frame = read_codes(page)
    assert f'data-view="{options}"' in script
    assert f'/embed{options}"' in frame
    for address in re.findall(r'(?:/embed|data-view=")(/events[^"]+)', script + frame):
        assert get(filled, f"/embed{unescape(address)}")[0] == 200
    # Only lists have a number of events.
    assert "limit" not in read_codes(get_page(filled, "/events/embed/", "view=week&limit=5"))[0]


def test_embed_page_keeps_the_filters_of_the_page_it_was_opened_from(filled: RunningApp) -> None:
    music = find_music(filled)
    for path in ("/events/category/music/", "/events/list/?categories=music&start_date=2031-03-01"):
        link = re.search(r'href="(/events/embed/\?[^"]+)"', get(filled, path)[2].decode())
        assert link
        page = get(filled, unescape(link[1]))[2].decode()
        assert f"categories={music}" in read_codes(page)[0]
        assert ('name="start_date" value="2031-03-01"' in page) is ("start_date" in path)


def test_name_of_the_site_stays_in_its_attribute(filled: RunningApp) -> None:
    filled.set_site("name", """A "b' & c""")
    for code in read_codes(get_page(filled, "/events/embed/")):
        assert 'title="A &quot;b&#x27; &amp; c"' in code


def test_codes_follow_the_form_and_are_copied(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium) as browser:
        page, base_url = browser.page, demo_calendar.server.base_url
        page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=base_url)
        page.goto(f"{base_url}/events/embed/")
        page.locator("[name=view]").select_option("list")
        page.get_by_label("Events in a list").fill("3")
        frame = page.frame_locator("iframe")
        frame.locator("article").nth(2).wait_for()
        page.wait_for_function("document.querySelector('iframe').src.includes('limit=3')")
        assert frame.locator("article").count() == 3
        page.get_by_role("button", name="Copy").first.click()
        page.get_by_role("button", name="Copied").wait_for()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == page.locator("[data-copy]").first.input_value()
        assert 'data-view="/events/list/?limit=3"' in copied
        assert browser.errors == []
        assert find_violations(page) == []
    with open_browser_page(chromium, script=False) as browser:
        page = browser.page
        page.goto(f"{base_url}/events/embed/")
        page.locator("[name=view]").select_option("week")
        page.get_by_role("button", name="Update the code").click()
        assert 'data-view="/events/week/"' in page.locator("[data-copy]").first.input_value()
        page.get_by_role("button", name="Copy").first.wait_for(state="hidden")


@pytest.mark.parametrize(("scheme", "theme", "is_transparent"),
                         [("light", "auto", True), ("light", "light", True), ("light", "dark", False),
                          ("dark", "auto", True), ("dark", "dark", True), ("dark", "light", False)])  # fmt: skip
def test_frame_is_transparent_in_the_scheme_of_its_host(
    demo_calendar: DemoCalendar, chromium: Browser, scheme: str, theme: str, is_transparent: bool
) -> None:
    address = demo_calendar.server.base_url
    url = f"{address}/embed/events/list/?theme={theme}"
    host = (
        f"<!doctype html><title>x</title><meta name=color-scheme content={scheme}>"
        "<body style='margin:0;background:rgb(200,100,50)'>"
        f"<iframe style='border:0;width:400px;height:300px' src='{url}'></iframe>"
    )
    with open_browser_page(chromium, color_scheme=scheme) as browser:
        page = browser.page
        page.route("**/host.html", lambda route: route.fulfill(content_type="text/html", body=host))
        page.goto(f"{address}/host.html")
        page.frame_locator("iframe").locator("footer").wait_for()
        picture = Image.open(BytesIO(page.screenshot(clip={"x": 1, "y": 1, "width": 2, "height": 2})))
        assert (picture.convert("RGB").getpixel((0, 0)) == (200, 100, 50)) is is_transparent

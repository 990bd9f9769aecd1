"""Pages in a real browser: readable by everybody, at every width, in light and dark, with and without script."""

from collections.abc import Iterator
from itertools import product

import pytest
from playwright.sync_api import Browser, Page

from tests.pages.browser_page import embed, find_violations, open_browser_page
from tests.pages.demo_calendar import PASSWORD, DemoCalendar
from tests.soak import SOAK

WIDTHS = (390, 820, 1360)
SCHEMES = ("light", "dark")
LANGUAGES = ("en", "de", "ja")
PAGE_NAMES = ("home", "month", "holidays", "empty month", "week", "day", "list", "past", "filtered", "map", "search",
         "event", "protected", "venue", "organizer", "category", "tag", "missing", "embed")  # fmt: skip
ALL_VARIANTS = list(product(WIDTHS, SCHEMES, LANGUAGES))
# In the gate each page is seen in one way and each way by one page; all of all in the soak.
VARIANTS_BY_PAGE = {name: ALL_VARIANTS if SOAK else [ALL_VARIANTS[n * 7 % 18]] for n, name in enumerate(PAGE_NAMES)}
ERROR_PAGES = {"protected", "missing"}


def in_language(path: str, language: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}lang={language}"


@pytest.fixture(scope="module")
def without_script(chromium: Browser) -> Iterator[Page]:
    with open_browser_page(chromium, script=False, viewport={"width": 1360, "height": 900}) as browser:
        yield browser.page


@pytest.mark.parametrize("name", PAGE_NAMES)
def test_page_is_accessible_responsive_and_complete_without_script(
    demo_calendar: DemoCalendar, chromium: Browser, without_script: Page, name: str
) -> None:
    for width, scheme, language in VARIANTS_BY_PAGE[name]:
        where, path = (name, width, scheme, language), in_language(demo_calendar.pages[name], language)
        with open_browser_page(chromium, viewport={"width": width, "height": 900}, color_scheme=scheme) as browser:
            weighed = browser.measure_bytes()
            response = browser.page.goto(demo_calendar.server.base_url + path, wait_until="load")
            assert response is not None
            assert response.ok or name in ERROR_PAGES, where
            assert browser.page.evaluate("document.documentElement.lang") == language
            text = visible_lines(browser.page)
            assert browser.page.evaluate("document.documentElement.scrollWidth") <= width, where
            assert browser.page.evaluate("window.shifts") < 0.02, where
            assert sorted(weighed) == ["document", "script", "stylesheet"]
            assert sum(weighed.values()) < 60_000, weighed
            assert find_violations(browser.page) == [], where
            errors = [error for error in browser.errors if not (name in ERROR_PAGES and "status of 40" in error)]
            assert errors == [], where
            assert browser.hosts == {demo_calendar.server.base_url.split("/")[2]}, where
        without_script.set_viewport_size({"width": width, "height": 900})
        without_script.goto(demo_calendar.server.base_url + path)
        assert text <= visible_lines(without_script), where


def visible_lines(page: Page) -> set[str]:
    """The lines of a page, without what only script can say."""
    added = page.locator(".visitor-time, .map button, .star, [data-share]").all_inner_texts()
    lines = {line.strip() for line in page.locator("main").inner_text().split("\n")}
    return lines - {line.strip() for text in added for line in text.split("\n")} - {""}


def test_calendar_is_keyboard_accessible(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 1360, "height": 900}) as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + "/events/month/2031-03/")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip-link"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.rel") == "prev"
        reached: list[str] = []
        for _ in range(80):
            page.keyboard.press("Tab")
            reached.append(page.evaluate("document.activeElement.textContent.trim()"))
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none" or page.evaluate("document.activeElement === document.body")
        assert any("Spring concert" in text for text in reached)
        # In the order of the calendar: earlier days come first.
        assert next(n for n, text in enumerate(reached) if "Tokyo" in text) < next(
            n for n, text in enumerate(reached) if "Spring concert" in text
        )


def test_other_category_is_one_interaction_away(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 390, "height": 900}) as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + demo_calendar.category)
        current = page.locator(".category-nav [aria-current]").inner_text()
        other = page.locator(".category-nav a:not([aria-current])").first
        name = other.inner_text()
        other.click()
        assert page.locator("h1").inner_text() == name != current


def test_menu_opens_and_closes_by_keyboard(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium) as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + "/events/list/")
        page.locator("details.menu summary").focus()
        page.keyboard.press("Enter")
        assert page.locator("details.menu").get_attribute("open") is not None
        assert page.get_by_role("link", name="Google Calendar").is_visible()
        page.keyboard.press("Escape")
        assert page.locator("details.menu").get_attribute("open") is None
        assert page.evaluate("document.activeElement.tagName") == "SUMMARY"


@pytest.mark.parametrize(
    ("zone", "expected"),
    [("Europe/Berlin", ""), ("Europe/Paris", ""), ("America/New_York", "2:30 PM – 5:00 PM your time"),
     ("Asia/Tokyo", "Sat, Mar 15, 3:30 AM – 6:00 AM your time")],
)  # fmt: skip
def test_visitor_time_is_displayed_beside_event_time(
    demo_calendar: DemoCalendar, chromium: Browser, zone: str, expected: str
) -> None:
    with open_browser_page(chromium, timezone_id=zone) as browser:
        browser.page.goto(demo_calendar.server.base_url + demo_calendar.concert)
        when = browser.page.locator(".fact-block time")
        text = " ".join(when.inner_text().split()).replace("\u2009", " ")
        assert text.startswith("Friday, March 14, 2031 7:30 PM – 10:00 PM")
        yours = browser.page.locator(".event .visitor-time")
        visitor_time = " ".join(yours.inner_text().replace("\u2009", " ").split()) if yours.count() else ""
        assert visitor_time == expected


def test_map_loads_tiles_only_after_consent(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 1360, "height": 900}, reduced_motion="reduce") as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + "/events/map/", wait_until="networkidle")
        assert browser.hosts == {demo_calendar.server.base_url.split("/")[2]}
        page.get_by_role("button", name="Show the map").click()
        page.wait_for_selector(".map.is-loaded .map-marker")
        page.wait_for_timeout(200)
        assert "tile.openstreetmap.org" in browser.hosts
        assert not [error for error in browser.errors if "Content Security Policy" in error]
        page.locator(".map-marker").first.click()
        assert page.locator(".leaflet-popup a").first.is_visible()
        assert find_violations(page) == []


def test_protected_event_opens_only_with_password(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium) as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + demo_calendar.protected)
        assert "The secret place" not in page.content()
        for password, opens in (("wrong", False), (PASSWORD, True)):
            page.get_by_label("Password").fill(password)
            page.get_by_role("button", name="Show").click()
            page.wait_for_load_state()
            assert ("The secret place" in page.content()) is opens


def test_view_can_be_embedded_in_another_site(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 900, "height": 900}) as browser:
        page = browser.page
        embed(page, demo_calendar.server.base_url, "/events/list/?categories=music")
        frame = page.frame_locator("iframe")
        assert frame.get_by_role("link", name="Spring concert: Ewa Dąbek Ensemble").is_visible()
        assert frame.get_by_role("search").count() == 0
        page.wait_for_function("document.querySelector('iframe').height !== '600'")
        assert browser.errors == []
        # An event is read on its own page, not inside the frame.
        frame.get_by_role("link", name="Spring concert: Ewa Dąbek Ensemble").click()
        page.wait_for_url("**/event/**")

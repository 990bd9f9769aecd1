"""Pages in a real browser: readable by everybody, at every width, in light and dark, with and without script."""

from collections.abc import Iterator
from itertools import product

import pytest
from playwright.sync_api import Browser, Page

from tests.pages.looking import embed, find_violations, looking
from tests.pages.town import PASSWORD, Town
from tests.soak import SOAK

WIDTHS = (390, 820, 1360)
SCHEMES = ("light", "dark")
LANGUAGES = ("en", "de", "ja")
NAMES = ("home", "month", "holidays", "empty month", "week", "day", "list", "past", "filtered", "map", "search",
         "event", "protected", "venue", "organizer", "category", "tag", "missing", "embed")  # fmt: skip
EVERY_WAY = list(product(WIDTHS, SCHEMES, LANGUAGES))
# In the gate each page is seen in one way and each way by one page; all of all in the soak.
WAYS = {name: EVERY_WAY if SOAK else [EVERY_WAY[n * 7 % 18]] for n, name in enumerate(NAMES)}
REFUSED = {"protected", "missing"}


def in_language(path: str, language: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}lang={language}"


@pytest.fixture(scope="module")
def without_script(chromium: Browser) -> Iterator[Page]:
    with looking(chromium, script=False, viewport={"width": 1360, "height": 900}) as seen:
        yield seen.page


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_accessible_fits_and_is_whole_without_script(
    town: Town, chromium: Browser, without_script: Page, name: str
) -> None:
    for width, scheme, language in WAYS[name]:
        where, path = (name, width, scheme, language), in_language(town.pages[name], language)
        with looking(chromium, viewport={"width": width, "height": 900}, color_scheme=scheme) as seen:
            weighed = seen.weigh()
            answer = seen.page.goto(town.server.address + path, wait_until="load")
            assert answer is not None
            assert answer.ok or name in REFUSED, where
            assert seen.page.evaluate("document.documentElement.lang") == language
            text = said(seen.page)
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= width, where
            assert seen.page.evaluate("window.shifts") < 0.02, where
            assert sorted(weighed) == ["document", "script", "stylesheet"]
            assert sum(weighed.values()) < 60_000, weighed
            assert find_violations(seen.page) == [], where
            faults = [fault for fault in seen.faults if not (name in REFUSED and "status of 40" in fault)]
            assert faults == [], where
            assert seen.hosts == {town.server.address.split("/")[2]}, where
        without_script.set_viewport_size({"width": width, "height": 900})
        without_script.goto(town.server.address + path)
        assert text <= said(without_script), where


def said(page: Page) -> set[str]:
    """The lines of a page, without what only script can say."""
    added = page.locator(".visitor-time, .map button").all_inner_texts()
    lines = {line.strip() for line in page.locator("main").inner_text().split("\n")}
    return lines - {line.strip() for text in added for line in text.split("\n")} - {""}


def test_the_whole_calendar_is_reached_by_keyboard(town: Town, chromium: Browser) -> None:
    with looking(chromium, viewport={"width": 1360, "height": 900}) as seen:
        page = seen.page
        page.goto(town.server.address + "/events/month/2031-03/")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip-link"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.rel") == "prev"
        reached: list[str] = []
        for _ in range(80):
            page.keyboard.press("Tab")
            reached.append(page.evaluate("document.activeElement.textContent.trim()"))
            shown = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert shown != "none" or page.evaluate("document.activeElement === document.body")
        assert any("Spring concert" in text for text in reached)
        # In the order of the calendar: earlier days come first.
        assert next(n for n, text in enumerate(reached) if "Tokyo" in text) < next(
            n for n, text in enumerate(reached) if "Spring concert" in text
        )


def test_a_menu_opens_and_closes_by_keyboard(town: Town, chromium: Browser) -> None:
    with looking(chromium) as seen:
        page = seen.page
        page.goto(town.server.address + "/events/list/")
        page.locator("details.menu summary").focus()
        page.keyboard.press("Enter")
        assert page.locator("details.menu").get_attribute("open") is not None
        assert page.get_by_role("link", name="Google Calendar").is_visible()
        page.keyboard.press("Escape")
        assert page.locator("details.menu").get_attribute("open") is None
        assert page.evaluate("document.activeElement.tagName") == "SUMMARY"


@pytest.mark.parametrize(
    ("zone", "said"),
    [("Europe/Berlin", ""), ("Europe/Paris", ""), ("America/New_York", "2:30 PM – 5:00 PM your time"),
     ("Asia/Tokyo", "Sat, Mar 15, 3:30 AM – 6:00 AM your time")],
)  # fmt: skip
def test_the_clock_of_a_visitor_elsewhere_is_shown_beside_the_event_s(
    town: Town, chromium: Browser, zone: str, said: str
) -> None:
    with looking(chromium, timezone_id=zone) as seen:
        seen.page.goto(town.server.address + town.concert)
        when = seen.page.locator("article header time")
        shown = " ".join(when.inner_text().split()).replace("\u2009", " ")
        assert shown.startswith("Friday, March 14, 2031 · 7:30 PM – 10:00 PM CET")
        yours = seen.page.locator(".event .visitor-time")
        found = " ".join(yours.inner_text().replace("\u2009", " ").split()) if yours.count() else ""
        assert found == said


def test_a_map_asks_nobody_before_the_visitor_agrees(town: Town, chromium: Browser) -> None:
    with looking(chromium, viewport={"width": 1360, "height": 900}, reduced_motion="reduce") as seen:
        page = seen.page
        page.goto(town.server.address + "/events/map/", wait_until="networkidle")
        assert seen.hosts == {town.server.address.split("/")[2]}
        page.get_by_role("button", name="Show the map").click()
        page.wait_for_selector(".map.is-loaded .map-marker")
        page.wait_for_timeout(200)
        assert "tile.openstreetmap.org" in seen.hosts
        assert not [fault for fault in seen.faults if "Content Security Policy" in fault]
        page.locator(".map-marker").first.click()
        assert page.locator(".leaflet-popup a").first.is_visible()
        assert find_violations(page) == []


def test_a_protected_event_opens_by_its_password_and_only_by_it(town: Town, chromium: Browser) -> None:
    with looking(chromium) as seen:
        page = seen.page
        page.goto(town.server.address + town.protected)
        assert "The secret place" not in page.content()
        for password, opens in (("wrong", False), (PASSWORD, True)):
            page.get_by_label("Password").fill(password)
            page.get_by_role("button", name="Show").click()
            page.wait_for_load_state()
            assert ("The secret place" in page.content()) is opens


def test_a_view_stands_in_the_page_of_another_site(town: Town, chromium: Browser) -> None:
    with looking(chromium, viewport={"width": 900, "height": 900}) as seen:
        page = seen.page
        embed(page, town.server.address, "/events/list/?categories=music")
        frame = page.frame_locator("iframe")
        assert frame.get_by_role("link", name="Spring concert: Ewa Dąbek Ensemble").is_visible()
        assert frame.get_by_role("search").count() == 0
        page.wait_for_function("document.querySelector('iframe').height !== '600'")
        assert seen.faults == []
        # An event is read on its own page, not inside the frame.
        frame.get_by_role("link", name="Spring concert: Ewa Dąbek Ensemble").click()
        page.wait_for_url("**/event/**")

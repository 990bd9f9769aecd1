"""Event pages in a browser: one fact block, no empty column, titles that keep their punctuation."""

from playwright.sync_api import Browser

from tests.pages.browser_page import open_browser_page
from tests.pages.demo_calendar import DemoCalendar


def test_facts_occur_once_and_title_has_full_width(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 1280, "height": 900}) as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + demo_calendar.concert)
        for text in ("Friday, March 14, 2031", "Kulturhaus an der Linde"):
            assert page.locator("article").get_by_text(text, exact=True).count() == 1, text
        title, article = page.locator("h1").bounding_box(), page.locator("article").bounding_box()
        assert title
        assert article
        assert title["width"] == article["width"]
        assert page.locator(".badge").all_inner_texts() == ["Featured"]
        assert page.get_by_role("button", name="Share").is_visible()
        # The image and the facts are beside each other.
        image, facts = (page.locator(part).bounding_box() for part in (".hero", ".fact-block"))
        assert image
        assert facts
        assert facts["x"] >= image["x"] + image["width"]


def test_event_without_image_has_one_column(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 1280, "height": 900}) as browser:
        page = browser.page
        page.goto(f"{demo_calendar.server.base_url}/event/concert-of-long-ago/")
        boxes = [page.locator(part).bounding_box() for part in (".event > header", ".fact-block", ".event .body")]
        assert len({(box["x"], box["width"]) for box in boxes if box}) == 1
        assert page.locator(".badge").all_inner_texts() == ["This event has ended."]


def test_add_to_calendar_stays_in_reach_on_phone(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 390, "height": 844}) as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + demo_calendar.concert)
        button = page.locator(".actions summary")
        for _ in range(2):
            box = button.bounding_box()
            assert box
            assert box["height"] >= 44
            assert 844 - 80 <= box["y"] < 844
            page.evaluate("scrollTo(0, document.body.scrollHeight)")
        # Nothing lies behind the bar at the end of the page.
        footer, bar = page.locator("footer").bounding_box(), page.locator(".actions").bounding_box()
        assert footer
        assert bar
        assert footer["y"] + footer["height"] <= bar["y"] + 1


def test_title_keeps_spaced_punctuation_with_its_word(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 320, "height": 700}) as browser:
        browser.page.goto(f"{demo_calendar.server.base_url}/event/concert-du-soir-orchestre/")
        assert browser.page.locator("h1").text_content() == "Concert du soir\u00a0: Orchestre"


def test_protected_event_shows_title_and_time(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium) as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + demo_calendar.protected)
        assert page.locator("h1").inner_text() == "For friends"
        assert "March 30, 2031" in page.locator("main time").inner_text()
        assert page.locator("input:visible").count() == 1
        assert "The secret place" not in page.content()

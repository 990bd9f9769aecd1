"""The offer of the visitor's language, which script adds so that the cached page stays the same."""

import pytest
from playwright.sync_api import Browser

from tests.pages.browser_page import find_violations, open_browser_page
from tests.pages.demo_calendar import DemoCalendar


def test_preferred_language_is_offered_once(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, locale="de-AT", viewport={"width": 390, "height": 844}) as browser:
        page, base_url = browser.page, demo_calendar.server.base_url
        browser.measure_bytes()
        page.goto(f"{base_url}/events/list/")
        assert page.locator(".language-offer a").inner_text() == "Diese Seite auf Deutsch"
        assert page.evaluate("window.shifts") < 0.02
        assert find_violations(page) == []
        page.locator(".language-offer a").click()
        page.wait_for_url("**/events/list/?lang=de")
        assert page.evaluate("document.documentElement.lang") == "de"
        page.goto(f"{base_url}/events/list/")
        assert page.locator(".language-offer").count() == 0


@pytest.mark.parametrize("locale", ["en-GB", "pl-PL"])
def test_nothing_is_offered_without_a_better_language(
    demo_calendar: DemoCalendar, chromium: Browser, locale: str
) -> None:
    with open_browser_page(chromium, locale=locale) as browser:
        browser.page.goto(f"{demo_calendar.server.base_url}/events/list/")
        assert browser.page.locator(".language-offer").count() == 0

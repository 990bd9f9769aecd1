"""/docs in a browser: one section per kind, usable on a phone, without a script and in the dark."""

import pytest
from playwright.sync_api import Browser

from tests.pages.browser_page import find_violations, open_browser_page
from tests.pages.demo_calendar import DemoCalendar

# The same tags occur in both namespaces.
HEADINGS = [
    "Events",
    "Venues",
    "Organizers",
    "Event categories",
    "Event tags",
    "Series",
    "Images",
    "Imports",
    "Proposals",
    "Webhooks",
    "Batches",
    "Changes",
    "API",
]


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_page_fits_and_is_accessible(demo_calendar: DemoCalendar, chromium: Browser, width: int, scheme: str) -> None:
    options = {"viewport": {"width": width, "height": 844}, "color_scheme": scheme}
    with open_browser_page(chromium, **options) as browser:
        page = browser.page
        page.goto(f"{demo_calendar.server.base_url}/docs?lang=en")
        assert page.locator("nav h2").all_text_contents() == HEADINGS
        assert page.locator(".kind > h2").all_text_contents() == HEADINGS
        assert page.locator("#events .namespace").count() == 2
        assert page.locator("main").bounding_box()["height"] < 12_000
        assert find_violations(page) == []
        page.goto(f"{demo_calendar.server.base_url}/docs?lang=en#runBatch1")
        operation = page.locator(".operation[open]")
        assert operation.count() == 1
        assert "operations[].method" in operation.inner_text()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        operation.get_by_text("Request", exact=True).click()
        assert "curl" in operation.inner_text()
        assert f"{demo_calendar.server.base_url}/api/kalends/v1/batch" in operation.inner_text()
        page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert (browser.errors, len(browser.hosts)) == ([], 1)


def test_operations_open_without_a_script(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, script=False, viewport={"width": 390, "height": 844}) as browser:
        browser.page.goto(f"{demo_calendar.server.base_url}/docs?lang=en#readEvent")
        operation = browser.page.locator(".operation[open]")
        assert operation.count() == 1
        assert "/events/by-slug/{slug}" in operation.inner_text()


def test_search_leaves_the_matching_entries(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 1280, "height": 844}) as browser:
        browser.page.goto(f"{demo_calendar.server.base_url}/docs?lang=en")
        browser.page.fill("#find", "by-slug venue")
        assert browser.page.locator("nav li:visible").count() == 3
        assert browser.page.locator("nav h2:visible").all_text_contents() == ["Venues"]

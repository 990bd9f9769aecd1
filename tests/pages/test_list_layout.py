"""Lists in a browser: fixed columns, one heading per day, and toolbars in one place."""

import pytest
from playwright.sync_api import Browser, Page

from tests.pages.browser_page import find_violations, open_browser_page
from tests.pages.demo_calendar import FULL_DAY, DemoCalendar


def edges(page: Page, selector: str) -> set[float]:
    """Return the left edges of all elements."""
    return set(page.eval_on_selector_all(selector, "all => all.map(one => one.getBoundingClientRect().left)"))


def test_cards_have_fixed_columns_and_days_have_headings(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 1280, "height": 900}) as browser:
        page = browser.page
        page.goto(f"{demo_calendar.server.base_url}/events/list/?per_page=50")
        # Cards with and without an image, featured and not.
        assert page.locator(".card img").count() >= 1
        assert page.locator(".card.featured").count() >= 1
        for column in (".card .when", ".card-text", ".card > img, .card > .placeholder", ".excerpt"):
            assert len(edges(page, column)) == 1, column
        headings = page.locator(".cards > h2").all_inner_texts()
        assert len(headings) == len(set(headings)) > 3
        # A card does not repeat the day; the heading stays visible while its day is.
        day = page.locator(".cards", has=page.get_by_role("heading", name="Wednesday, March 12, 2031"))
        assert "12" not in day.locator(".card .when").nth(1).inner_text()
        page.evaluate("scrollBy(0, document.querySelectorAll('.cards')[3].getBoundingClientRect().top + 150)")
        assert page.evaluate("document.querySelectorAll('.cards > h2')[3].getBoundingClientRect().top") == 0


def test_toolbar_is_beside_the_title_in_every_view(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 1280, "height": 900}) as browser:
        page = browser.page
        for path in (f"/events/day/{FULL_DAY}/", "/events/month/2031-03/", "/events/list/", "/events/map/"):
            page.goto(demo_calendar.server.base_url + path)
            title, toolbar = (page.locator(f".view-header > {part}").bounding_box() for part in ("h1", "div"))
            assert title
            assert toolbar
            assert toolbar["x"] >= title["x"] + title["width"], path


@pytest.mark.parametrize("language", ["en", "de"])
def test_toolbar_stays_in_place_on_empty_pages(demo_calendar: DemoCalendar, chromium: Browser, language: str) -> None:
    pages = {
        "day": (FULL_DAY, "2035-01-10"),
        "week": (FULL_DAY, "2035-01-10"),
        "weekend": (FULL_DAY, "2035-01-10"),
        "month": ("2031-03", "2035-01"),
    }
    for width in (390, 1280):
        with open_browser_page(chromium, viewport={"width": width, "height": 900}) as browser:
            page = browser.page
            for view, dates in pages.items():
                places: list[list[dict[str, float]]] = []
                for date in dates:
                    page.goto(f"{demo_calendar.server.base_url}/events/{view}/{date}/?lang={language}")
                    buttons = page.locator(".view-toolbar > :not(nav), .period-nav > a").all()
                    places.append([box for button in buttons if (box := button.bounding_box())])
                assert page.locator(".empty-state").count() == 1, view
                # Earlier, today, later, filter, subscribe.
                assert len(places[0]) == 5, view
                assert places[0] == places[1], (view, width)
            disabled = page.locator(".period-nav [aria-disabled]")
            assert disabled.count() == 1
            assert disabled.get_attribute("href") is None
            assert find_violations(page) == []


@pytest.mark.parametrize("language", ["en", "de", "fr", "ja"])
def test_list_ends_with_one_row(demo_calendar: DemoCalendar, chromium: Browser, language: str) -> None:
    for width in (390, 1280):
        with open_browser_page(chromium, viewport={"width": width, "height": 900}) as browser:
            page = browser.page
            for path, has_pages in (("?page=2", True), ("?past=1", False)):
                page.goto(f"{demo_calendar.server.base_url}/events/list/{path}&lang={language}")
                row, link, card = (
                    box
                    for selector in (".list-end", ".list-end > a", ".card")
                    if (box := page.locator(selector).first.bounding_box())
                )
                # The link ends where the cards end.
                assert abs(link["x"] + link["width"] - card["x"] - card["width"]) < 1, (width, path)
                parts = page.locator(".pagination > *, .list-end > a").all()
                assert len(parts) == (4 if has_pages else 1)
                boxes = [box for part in parts if (box := part.bounding_box())]
                assert boxes[0]["x"] - card["x"] < 1 or not has_pages
                middles = [box["y"] + box["height"] / 2 for box in boxes]
                assert max(middles) - min(middles) < 2, (width, path)
                assert row["height"] < 60, (width, path)
                edges = [edge for box in boxes for edge in (box["x"], box["x"] + box["width"])]
                assert edges == sorted(edges), "they overlap"
            page.goto(f"{demo_calendar.server.base_url}/events/list/?page=2")
            # On phones, the names of the buttons remain available to screen readers.
            assert page.get_by_role("link", name="Previous page").count() == 1
            assert find_violations(page) == []

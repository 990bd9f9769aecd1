"""What a browser shows at every width: menus, tabs, frames and what waits for script."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from kalends.website.assets import asset_name
from tests.pages.browser_page import embed, open_browser_page
from tests.pages.demo_calendar import FULL_DAY, DemoCalendar
from tests.soak import SOAK

WIDTHS = range(320, 1361, 40) if SOAK else (320, 360, 480, 600, 768, 1024, 1360)
EVERY_WIDTH = (320, 390, 600, 768, 800, 1024, 1100, 1280, 1366, 1440)
# The number of cards in each row of a section that ends at its right edge.
LAY_OUT_CARDS = """(number) => {
  const card = '<article class="tile"><div class="placeholder"></div></article>';
  document.querySelector("main").innerHTML = `<div class="row"><div class="tiles">${card.repeat(number)}</div></div>`;
  const rows = new Map();
  for (const tile of document.querySelectorAll(".tile")) {
    const { top, right } = tile.getBoundingClientRect();
    rows.set(top, [...(rows.get(top) ?? []), right]);
  }
  const { right } = document.querySelector(".tiles").getBoundingClientRect();
  return [...rows.values()].filter((row) => Math.abs(row.at(-1) - right) < 1).map((row) => row.length);
}"""
PAGES_WITH_MENU = ("month", "list", "week", "day", "venue", "event", "search")


def test_no_page_scrolls_sideways(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium) as browser:
        page = browser.page
        too_wide: list[tuple[str, int, int]] = []
        for name, path in demo_calendar.pages.items():
            page.goto(demo_calendar.server.base_url + path)
            for width in EVERY_WIDTH:
                page.set_viewport_size({"width": width, "height": 900})
                scroll_width = page.evaluate("document.documentElement.scrollWidth")
                too_wide += [(name, width, scroll_width)] if scroll_width > width else []
        assert too_wide == []


@pytest.mark.parametrize("width", [768, 1280])
def test_cards_of_the_front_page_fill_their_rows(demo_calendar: DemoCalendar, chromium: Browser, width: int) -> None:
    with open_browser_page(chromium, viewport={"width": width, "height": 900}) as browser:
        page, base = browser.page, demo_calendar.server.base_url
        page.goto(f"{base}/events/list/")
        page.add_style_tag(url=f"{base}/assets/{asset_name('home.css')}")
        rows = {number: page.evaluate(LAY_OUT_CARDS, number) for number in range(2, 7)}
        assert rows == {2: [2], 3: [3], 4: [2, 2], 5: [2, 3], 6: [3, 3]}


@pytest.mark.parametrize("name", PAGES_WITH_MENU)
def test_open_menu_fits_viewport(demo_calendar: DemoCalendar, chromium: Browser, name: str) -> None:
    with open_browser_page(chromium) as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + demo_calendar.pages[name])
        page.locator("details.menu summary").click()
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            box = page.locator("details.menu > div").bounding_box()
            assert box is not None
            assert box["x"] >= 0, width
            assert box["x"] + box["width"] <= width, width
            assert box["width"] >= 200, width
            assert page.evaluate("document.documentElement.scrollWidth") <= width, width


def test_map_button_is_hidden_without_script(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    for script, visible in ((True, True), (False, False)):
        with open_browser_page(chromium, script=script) as browser:
            browser.page.goto(demo_calendar.server.base_url + "/events/map/")
            assert browser.page.locator(".map button").is_visible() is visible


def test_embed_height_fits_content(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 900, "height": 900}) as browser:
        page = browser.page
        embed(page, demo_calendar.server.base_url, f"/events/day/{FULL_DAY}/")
        height = "Number(document.querySelector('iframe').height)"
        page.wait_for_function(f"{height} !== 600")
        full = page.evaluate(height)
        assert full > 900
        frame = page.frame_locator("iframe")
        frame.get_by_role("navigation", name="Period").locator("[rel=prev]").click()
        frame.get_by_role("heading", name="March 11").wait_for()
        page.wait_for_function(f"{height} < {full - 200}")
        inside = page.frames[1]
        bottom = inside.evaluate("document.querySelector('footer').getBoundingClientRect().bottom")
        assert abs(page.evaluate(height) - bottom) < 2
        assert inside.evaluate("document.documentElement.scrollHeight <= innerHeight")


@pytest.fixture(scope="module")
def phone(demo_calendar: DemoCalendar, chromium: Browser) -> Iterator[Page]:
    with open_browser_page(chromium, viewport={"width": 320, "height": 700}) as browser:
        yield browser.page


@pytest.mark.parametrize("language", ["en", "de", "fr", "it", "es", "pt-BR", "nl", "ja"])
def test_all_tabs_fit_on_small_phone(demo_calendar: DemoCalendar, phone: Page, language: str) -> None:
    phone.goto(f"{demo_calendar.server.base_url}/events/month/2031-03/?lang={language}")
    assert phone.locator(".view-nav li").count() == 5
    assert phone.evaluate(
        "(() => { const row = document.querySelector('.view-nav ul'); return row.scrollWidth <= row.clientWidth })()"
    )


def test_navigation_and_menu_share_one_row_on_phone(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 360, "height": 800}) as browser:
        browser.page.goto(f"{demo_calendar.server.base_url}/events/month/2031-03/")
        boxes = [
            browser.page.locator(f".view-header {part}").first.bounding_box()
            for part in ("h1", ".period-nav a", "summary")
        ]
        title, step, menu = (box["y"] for box in boxes if box)
        assert title + 20 < step
        assert abs(step - menu) < 10
        # Hidden texts remain available to screen readers.
        assert browser.page.get_by_role("link", name="Feb 2031").count() == 1


def test_time_with_zone_is_fully_visible_in_narrow_month(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 768, "height": 900}) as browser:
        browser.page.goto(f"{demo_calendar.server.base_url}/events/month/2031-03/")
        time_element = browser.page.locator(".month i", has_text="JST")
        link = time_element.locator("..")
        inner, outer = time_element.bounding_box(), link.bounding_box()
        assert inner
        assert outer
        assert inner["x"] + inner["width"] <= outer["x"] + outer["width"]


def test_states_are_fully_visible_in_month_cells(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium) as browser:
        page = browser.page
        page.goto(f"{demo_calendar.server.base_url}/events/month/2031-03/?lang=de")
        for width in (768, 900, 1100, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            clipped = page.evaluate(
                "[...document.querySelectorAll('.month .badge')].filter((badge) => {"
                "const [inner, outer] = [badge, badge.closest('a')].map((one) => one.getBoundingClientRect());"
                "return inner.right > outer.right + 1 || inner.bottom > outer.bottom + 1 }).length"
            )
            assert (width, clipped) == (width, 0)
            # Screen readers have the label at every width.
            assert page.get_by_role("link", name="Ausverkauft Long night").count() == 1


def test_visitor_sees_multi_day_times_in_both_zones(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, timezone_id="America/New_York") as browser:
        browser.page.goto(f"{demo_calendar.server.base_url}/events/day/2031-03-22/")
        times = browser.page.locator("time", has_text="Mar 21").first.inner_text()
        text = " ".join(times.split())
        assert text == "Mar 21, 10:00 AM – Mar 24, 6:00 PM Mar 21, 5:00 AM – Mar 24, 1:00 PM your time"

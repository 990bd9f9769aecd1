"""The month in a browser: no wasted space, and the rest of a full day one interaction away."""

from playwright.sync_api import Browser, Page

from tests.pages.browser_page import find_violations, open_browser_page
from tests.pages.demo_calendar import FAIR_DAY, DemoCalendar

AUGUST = "/events/month/2031-08/"
FAIR_LINK = f".month .more-link[href='/events/day/{FAIR_DAY}/']"
# The unused height in pixels between the date and the first entry or bar of each cell that has any.
_UNUSED_HEIGHTS = """() => {
  const bars = [...document.querySelectorAll('.bar')].map((bar) => bar.getBoundingClientRect());
  return [...document.querySelectorAll('.month td')].map((cell) => {
    const box = cell.getBoundingClientRect(), middle = (box.left + box.right) / 2;
    const date = cell.querySelector('.date').getBoundingClientRect();
    const own = [...cell.querySelectorAll('li a')].map((link) => link.getBoundingClientRect());
    const across = bars.filter((bar) => bar.left < middle && middle < bar.right && bar.top >= box.top
      && bar.bottom <= box.bottom);
    return Math.min(...[...own, ...across].map((entry) => entry.top)) - date.bottom;
  }).filter(Number.isFinite);
}"""


def test_month_with_exhibitions_and_full_day_wastes_no_space(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 1280, "height": 900}) as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + AUGUST)
        unused = page.evaluate(_UNUSED_HEIGHTS)
        assert len(unused) >= 31
        assert max(unused) <= 40
        assert page.locator(FAIR_LINK).inner_text().startswith("29 more")
        # The numbers of one and of two digits begin at one edge, that of the weekday.
        edges = {round(page.evaluate(_LEFT_EDGE, day), 1) for day in ("2031-07-28", "2031-08-04", "2031-08-11")}
        assert len(edges) == 1


_LEFT_EDGE = """(day) => {
  const range = document.createRange();
  range.selectNodeContents(document.querySelector(`.date[href="/events/day/${day}/"]`));
  return range.getBoundingClientRect().left;
}"""


def test_more_link_opens_whole_day_above_month(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 1280, "height": 900}) as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + AUGUST)
        page.locator(FAIR_LINK).click()
        popover = page.get_by_role("dialog", name="Wednesday, August 13, 2031")
        popover.wait_for()
        titles = popover.locator("li").all_inner_texts()
        assert len(titles) == 36
        assert titles[-1].split() == ["6:10", "PM", "–", "7:10", "PM", "Stand", "31"]
        assert find_violations(page) == []
        assert is_inside(page, ".day-popover")
        page.keyboard.press("Escape")
        assert not popover.is_visible()
        assert page.url.endswith(AUGUST)
        assert browser.errors == []


def test_more_link_works_without_script(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, script=False, viewport={"width": 1280, "height": 900}) as browser:
        browser.page.goto(demo_calendar.server.base_url + AUGUST)
        browser.page.locator(FAIR_LINK).click()
        assert browser.page.url.endswith(f"/events/day/{FAIR_DAY}/")


def test_agenda_on_phone_has_large_targets(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 390, "height": 844}) as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + AUGUST)
        heights = page.eval_on_selector_all(
            ".agenda li a, .agenda .more-link, .month .date", "links => links.map(a => a.offsetHeight)"
        )
        assert min(heights) >= 44
        cards = page.eval_on_selector_all(".agenda li", "items => items.map(li => li.offsetWidth)")
        links = page.eval_on_selector_all(".agenda li a", "items => items.map(a => a.offsetWidth)")
        assert cards == links
        # Other elements do not look like events.
        assert page.locator(".agenda li .more-link").count() == 0
        page.goto(demo_calendar.server.base_url + "/events/month/2031-03/")
        assert page.get_by_role("link", name="All events as a list").is_visible()


def is_inside(page: Page, selector: str) -> bool:
    box = page.locator(selector).bounding_box()
    assert box
    size = page.viewport_size
    assert size
    return (
        box["x"] >= 0
        and box["y"] >= 0
        and box["x"] + box["width"] <= size["width"]
        and (box["y"] + box["height"] <= size["height"])
    )

"""The week in a browser: an hour grid on wide screens, a list of days on phones, and the line at the current time."""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from kalends.website.assets import contrast
from tests.pages.browser_page import find_violations, open_browser_page
from tests.pages.demo_calendar import DemoCalendar


def box(page: Page, text: str) -> dict[str, float]:
    found: Any = page.locator(".week a", has_text=text).first.bounding_box()
    assert found is not None, text
    return found


# The widths of the seven days; blocks whose text is cut within a line; and words that break although they would fit
# on a line of their block.
_MEASURES = """() => {
  const visible = [...document.querySelectorAll('.blocks li[class*=" r"] > a')];
  const broken = visible.flatMap((link) => {
    const found = [], box = link.firstElementChild;
    const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode;
      if (node.parentElement.closest('.badge, .repeats')) continue;
      for (const word of node.data.matchAll(/[^\\s\\-–]+/g)) {
        const range = document.createRange();
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        const lines = [...range.getClientRects()].filter((line) => line.width);
        const width = lines.reduce((sum, line) => sum + line.width, 0);
        if (new Set(lines.map((line) => line.top)).size > 1 && width <= box.clientWidth) found.push(word[0]);
      }
    }
    return found;
  });
  return {
    columns: [...document.querySelectorAll('.week-days .blocks')].map((day) => day.getBoundingClientRect().width),
    cut: visible.filter((link) => link.scrollHeight > link.clientHeight || link.scrollWidth > link.clientWidth
      || (link.firstElementChild.clientHeight + 0.5) % 16 > 1).map((link) => link.innerText),
    count: visible.length,
    broken,
  };
}"""


@pytest.mark.parametrize("width", [1024, 1280, 1600])
def test_week_has_equal_columns_and_whole_lines_and_words(
    demo_calendar: DemoCalendar, chromium: Browser, width: int
) -> None:
    with open_browser_page(chromium, script=False, viewport={"width": width, "height": 900}) as browser:
        for day, language in (("2031-03-12", "en"), ("2031-03-17", "ja"), ("2031-08-13", "de")):
            browser.page.goto(f"{demo_calendar.server.base_url}/events/week/{day}/?lang={language}")
            found = browser.page.evaluate(_MEASURES)
            assert max(found["columns"]) - min(found["columns"]) <= 1
            assert (found["cut"], found["broken"]) == ([], []), day
            assert found["count"] >= 2
        # Of 32 events on a day, each that is shown has room for its time and its title.
        assert found["count"] >= 20
        widths = browser.page.evaluate(
            "[...document.querySelectorAll('.blocks li[class*=\" r\"] > a > span')].map((text) => text.clientWidth)"
        )
        assert min(widths) >= 38


def test_overlapping_events_lie_on_top_of_each_other_or_side_by_side(
    demo_calendar: DemoCalendar, chromium: Browser
) -> None:
    with open_browser_page(chromium, script=False, viewport={"width": 1280, "height": 900}) as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + "/events/week/2031-03-12/")
        # From 9 and from 10 o'clock, each for an hour and a half.
        prayer, market, story = (box(page, text) for text in ("Morning prayer", "Market on", "Story hour"))
        column = page.locator(".week-days > li:has-text('Morning prayer') .blocks").bounding_box()
        assert column is not None
        assert abs(prayer["width"] - 0.85 * column["width"]) < 5
        assert abs(market["x"] - column["x"] - 0.4 * column["width"]) < 5
        assert market["y"] < prayer["y"] + prayer["height"]
        assert abs(story["x"] - prayer["x"]) < 1
        assert story["y"] >= prayer["y"] + prayer["height"]
        hour = market["y"] - prayer["y"]
        assert abs(prayer["height"] - 1.5 * hour) < 3
        labels = page.locator(".week-hours li")
        nine = labels.filter(has_text="9:00 AM").bounding_box()
        assert nine is not None
        assert abs(nine["y"] - prayer["y"]) < 3
        # The exhibition is a bar over all seven days, above the hours.
        bar = box(page, "Exhibition: paper boats")
        assert bar["width"] > 900
        assert bar["y"] + bar["height"] < prayer["y"]
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        # Twelve events at the same time: two columns, and the others behind a link to the day.
        page.goto(demo_calendar.server.base_url + "/events/week/2031-03-17/")
        first, second = box(page, "Club night 0"), box(page, "Club night 1")
        assert second["x"] >= first["x"] + first["width"]
        rest = page.locator(".rest a")
        assert rest.inner_text().split() == ["+10", "10", "more"]
        assert rest.get_attribute("href") == "/events/day/2031-03-17/"
        # Ten hours without events are one hatched row on each day.
        assert [label[:2] for label in labels.all_inner_texts()] == ["10", "8:", "9:", "10"]
        assert page.locator(".gap").count() == 7


def test_popover_shows_details_on_hover_and_focus(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 1280, "height": 900}) as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + "/events/week/2031-03-14/")
        concert = page.locator(".blocks a", has_text="Spring concert")
        popover = page.get_by_role("dialog", name="Spring concert: Ewa Dąbek Ensemble")
        concert.hover()
        popover.wait_for()
        text = " ".join(popover.inner_text().split()).replace("\u2009", " ")
        assert "Friday, March 14, 2031 7:30 PM – 10:00 PM" in text
        assert "Kulturhaus an der Linde" in text
        assert "€12" in text
        assert popover.locator("img").get_attribute("src").endswith("/assets/picture.svg")
        calendar = popover.get_by_role("link", name="Add to calendar")
        assert calendar.get_attribute("href").endswith(".ics")
        shown = popover.bounding_box()
        assert shown is not None
        assert shown["x"] >= 0
        assert shown["x"] + shown["width"] <= 1280
        assert find_violations(page) == []
        # The pointer may move into it; elsewhere, it closes.
        popover.hover()
        page.wait_for_timeout(400)
        assert popover.is_visible()
        page.mouse.move(5, 5)
        popover.wait_for(state="hidden")
        concert.focus()
        popover.wait_for()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Add to calendar"
        page.keyboard.press("Escape")
        popover.wait_for(state="hidden")
        assert browser.errors == []


def test_week_on_phone_is_a_list_that_starts_today(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, script=False, viewport={"width": 390, "height": 844}) as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + "/events/week/2031-03-12/")
        assert page.locator(".week-hours").is_hidden()
        links = page.locator(".week-days .blocks a, .week-bars a, .week h2 a").all()
        boxes = [link.bounding_box() for link in links if link.is_visible()]
        assert len(boxes) > 8
        assert all(found is not None and found["height"] >= 44 for found in boxes)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.goto(demo_calendar.server.base_url + "/events/week/")
        today = page.locator(".week-days > li.is-today")
        shown = [day for day in page.locator(".week-days > li").all() if day.is_visible()]
        assert shown[0].inner_text() == today.inner_text()
        earlier = page.get_by_role("link", name="Show earlier days")
        if earlier.count():  # not on the first day of a week
            earlier.click()
            assert page.locator(".week-days > li").first.is_visible()
            assert earlier.is_hidden()


def test_phone_lists_long_events_before_the_days_or_at_their_first_day(
    demo_calendar: DemoCalendar, chromium: Browser
) -> None:
    with open_browser_page(chromium, script=False, viewport={"width": 390, "height": 844}) as browser:
        page = browser.page
        # The exhibition runs since February; the festivals begin on Friday.
        page.goto(demo_calendar.server.base_url + "/events/week/2031-03-18/")
        lines = page.locator(".week").inner_text().split("\n")
        assert lines[:2] == ["All week", "Exhibition: paper boats"]
        assert lines.index("Festival 5") > lines.index("21")
        assert lines.count("Festival 5") == 1
        # Without an event that runs all week, there is no heading.
        page.goto(demo_calendar.server.base_url + "/events/week/2031-04-02/")
        assert "Holidays 0" in page.locator(".week").inner_text()
        assert "All week" not in page.locator(".week").inner_text()


def test_dark_bars_are_readable_in_all_colours(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, color_scheme="dark", viewport={"width": 1280, "height": 900}) as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + "/events/month/2031-03/")
        page.evaluate(
            "document.querySelector('.month ul').innerHTML = [...Array(13).keys()].map((hue) => "
            "`<li><a class='bar h${hue}' href='#'>${hue}</a></li>`).join('')"
        )
        colours = page.evaluate(
            "[...document.querySelectorAll('.bar')].slice(0, 13).map((bar) => {"
            "const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });"
            "return ['backgroundColor', 'color'].map((name) => {"
            "canvas.fillStyle = getComputedStyle(bar)[name]; canvas.fillRect(0, 0, 1, 1);"
            "return '#' + [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3)"
            ".map((part) => part.toString(16).padStart(2, '0')).join('') }) })"
        )
        assert len({background for background, _ in colours}) >= 12
        for background, text in colours:
            assert contrast(background, text) >= 4.5
            # Near the surface, so that a full month is not a wall of colours.
            assert contrast(background, "#1f2125") < 1.6


# The navigation descriptor of the view transition rule that applies.
_TRANSITION = """() => [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])
  .filter((rule) => rule instanceof CSSMediaRule && matchMedia(rule.conditionText).matches)
  .flatMap((rule) => [...rule.cssRules])
  .find((rule) => rule instanceof CSSViewTransitionRule)?.navigation ?? 'none'"""


def test_pages_fade_below_a_header_that_stays_unless_motion_is_reduced(
    demo_calendar: DemoCalendar, chromium: Browser
) -> None:
    for motion, expected in (("no-preference", ["auto", "site-header"]), ("reduce", ["none", "none"])):
        with open_browser_page(chromium, reduced_motion=motion) as browser:
            browser.page.goto(demo_calendar.server.base_url + "/events/week/2031-03-12/")
            name = "getComputedStyle(document.querySelector('header.site')).viewTransitionName"
            assert [browser.page.evaluate(_TRANSITION), browser.page.evaluate(name)] == expected


def test_line_marks_the_current_time(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    address = demo_calendar.server.base_url + "/events/week/"
    with open_browser_page(chromium, viewport={"width": 1280, "height": 900}) as browser:
        page = browser.page
        page.goto(address)
        begin, end = map(int, (page.locator(".blocks[data-slots]").get_attribute("data-slots") or "").split(",")[:2])
        # The week has no events, so a row has several hours.
        assert end - begin == 10 * 3600
        page.clock.set_fixed_time((begin + end) / 2)
        page.goto(address)
        line, labels = page.locator(".now"), page.locator(".week-hours li")
        line_box, row = line.bounding_box(), labels.first.bounding_box()
        column = page.locator(".is-today .blocks").bounding_box()
        assert line_box is not None
        assert row is not None
        assert column is not None
        assert abs(line_box["y"] - (row["y"] + row["height"] / 2)) < 3
        assert abs(line_box["x"] - column["x"]) < 3
        assert find_violations(page) == []
        page.clock.set_fixed_time(begin - 5 * 3600)
        page.goto(address)
        assert line.is_hidden()
        assert browser.errors == []

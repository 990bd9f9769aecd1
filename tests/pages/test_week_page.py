"""The week in a browser: an hour grid on wide screens, a list of days on phones, and the line at the current time."""

from typing import Any

from playwright.sync_api import Browser, Page

from tests.pages.browser_page import find_violations, open_browser_page
from tests.pages.demo_calendar import DemoCalendar


def box(page: Page, text: str) -> dict[str, float]:
    found: Any = page.locator(".week a", has_text=text).first.bounding_box()
    assert found is not None, text
    return found


def test_overlapping_events_share_their_hours_side_by_side(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, script=False, viewport={"width": 1280, "height": 900}) as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + "/events/week/2031-03-12/")
        # From 9 and from 10 o'clock, each for an hour and a half.
        prayer, market, story = (box(page, text) for text in ("Morning prayer", "Market on", "Story hour"))
        assert market["x"] >= prayer["x"] + prayer["width"]
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
        earlier = page.get_by_role("link", name="Earlier this week")
        if earlier.count():  # not on the first day of a week
            earlier.click()
            assert page.locator(".week-days > li").first.is_visible()
            assert earlier.is_hidden()


def test_line_marks_the_current_time(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    address = demo_calendar.server.base_url + "/events/week/"
    with open_browser_page(chromium, viewport={"width": 1280, "height": 900}) as browser:
        page = browser.page
        page.goto(address)
        begin = int((page.locator(".blocks[data-slots]").get_attribute("data-slots") or "").split(",")[2])
        page.clock.set_fixed_time(begin + 1800)
        page.goto(address)
        line, labels = page.locator(".now"), page.locator(".week-hours li")
        line_box, row = line.bounding_box(), labels.nth(2).bounding_box()
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

"""The calendar of the console in Chromium: events are moved by mouse, by touch and by keys."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Browser, Locator, Page

from tests.api.conftest import StartApp
from tests.console.console_client import set_passwords
from tests.console.form_browser import add_session
from tests.console.test_event_table_browser import Effort, Town
from tests.pages.browser_page import find_violations, open_browser_page
from tests.servers import Server

MONTH = "/console/calendar?date=2031-05-01"
WEEK = "/console/calendar?view=week&date=2031-05-07"


@pytest.fixture(scope="module")
def town(start_single_site_for_module: StartApp, start_server: Callable[..., Server]) -> Iterator[Town]:
    app = start_single_site_for_module()
    set_passwords(app)
    editor = app.caller("editor")
    hall = editor.create("venues", venue="Town Hall")["id"]
    for title, day, hour in (("Concert", 7, 19), ("Quiz", 8, 20), ("Reading", 9, 18)):
        start, end = (f"2031-05-{day:02} {hour + n}:00:00" for n in (0, 2))
        editor.create("events", title=title, start_date=start, end_date=end, venue=[hall])
    editor.create("events", title="Plan", start_date="2031-05-12 10:00", end_date="2031-05-12 11:00", status="draft")
    server = start_server(app.database_url)
    yield Town(server, app.database_url)
    server.stop()


@contextmanager
def open_calendar(chromium: Browser, town: Town, path: str = MONTH, **options: Any) -> Iterator[Page]:
    size = {"width": 1280, "height": 1000}
    with open_browser_page(chromium, **{"viewport": size, **options}) as browser:
        add_session(browser.page.context, town.server, "editor")
        browser.page.goto(f"{town.server.base_url}{path}")
        yield browser.page
        assert browser.errors == []


def find(page: Page, title: str) -> Locator:
    return page.locator(f'.calendar [data-event]:has-text("{title}")')


def read_start(town: Town, title: str) -> str:
    with psycopg.connect(town.database_url) as connection:
        row = connection.execute("SELECT start_local FROM events WHERE title = %s", [title]).fetchone()
    assert row is not None
    return f"{row[0]:%m-%d %H:%M}"


def drag(page: Page, entry: Locator, day: str) -> None:
    """Drag an entry to a day, without releasing it."""
    box, target = entry.bounding_box(), page.locator(f'[data-day="{day}"]').bounding_box()
    assert box is not None
    assert target is not None
    page.mouse.move(box["x"] + 20, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(target["x"] + 40, target["y"] + 60, steps=8)


def undo(page: Page) -> None:
    page.get_by_role("button", name="Undo").click()
    page.wait_for_url("**notice=undone*")


@pytest.mark.parametrize("path", [MONTH, WEEK])
def test_an_event_is_dragged_to_another_day_and_back(town: Town, chromium: Browser, path: str) -> None:
    with open_calendar(chromium, town, path) as page:
        drag(page, find(page, "Concert"), "2031-05-06")
        page.locator("[data-live]", has_text="Concert").wait_for(state="attached")
        page.mouse.up()
        page.wait_for_url("**notice=moved*")
        assert read_start(town, "Concert") == "05-06 19:00"
        assert path.rpartition("=")[2] in page.url
        undo(page)
        assert read_start(town, "Concert") == "05-07 19:00"
        # A click still opens the event.
        find(page, "Concert").locator("a").first.click()
        page.wait_for_url("**/console/events/*")


def test_escape_and_the_same_day_change_nothing(town: Town, chromium: Browser) -> None:
    with open_calendar(chromium, town) as page:
        drag(page, find(page, "Quiz"), "2031-05-08")
        page.mouse.up()
        assert page.url.endswith(MONTH)
        find(page, "Quiz").locator("a").first.focus()
        for key in ("m", "ArrowRight", "Escape"):
            page.keyboard.press(key)
        assert page.locator(".is-target").count() == 0
        assert read_start(town, "Quiz") == "05-08 20:00"


def test_an_event_is_moved_with_four_keys(town: Town, chromium: Browser) -> None:
    with open_calendar(chromium, town) as page:
        effort = Effort(page)
        find(page, "Quiz").locator("a").first.focus()
        for key in ("m", "ArrowDown", "ArrowRight", "Enter"):
            effort.press(key)
        page.wait_for_url("**notice=moved*")
        assert effort.interactions == 4
        assert read_start(town, "Quiz") == "05-16 20:00"
        undo(page)


def test_the_time_is_moved_by_a_quarter_of_an_hour_in_weeks(town: Town, chromium: Browser) -> None:
    with open_calendar(chromium, town, WEEK) as page:
        find(page, "Reading").locator("a").first.focus()
        for key in ("m", "ArrowUp", "ArrowUp", "ArrowUp", "Enter"):
            page.keyboard.press(key)
        page.wait_for_url("**notice=moved*")
        assert read_start(town, "Reading") == "05-09 17:15"
        undo(page)


def test_a_double_booking_shows_before_dropping(town: Town, chromium: Browser) -> None:
    with open_calendar(chromium, town) as page:
        drag(page, find(page, "Concert"), "2031-05-08")
        page.locator(".is-dragged .is-conflict", has_text="Quiz (Town Hall").wait_for()
        page.keyboard.press("Escape")
        page.mouse.up()
        assert read_start(town, "Concert") == "05-07 19:00"


def test_touch_needs_a_long_press(town: Town, chromium: Browser) -> None:
    with open_calendar(chromium, town, viewport={"width": 390, "height": 844}, has_touch=True) as page:
        touch = page.context.new_cdp_session(page)

        def send(kind: str, x: float, y: float) -> None:
            points = [] if kind == "touchEnd" else [{"x": x, "y": y}]
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        entry = find(page, "Reading")
        entry.scroll_into_view_if_needed()
        box = entry.bounding_box()
        assert box is not None
        x, y = box["x"] + 40, box["y"] + 15
        # A short touch that moves scrolls the page.
        send("touchStart", x, y)
        send("touchMove", x, y - 60)
        send("touchEnd", 0, 0)
        assert page.locator(".is-dragged").count() == 0
        page.wait_for_timeout(500)
        entry.evaluate("(entry) => entry.scrollIntoView({ block: 'center' })")
        box = entry.bounding_box()
        assert box is not None
        x, y = box["x"] + 40, box["y"] + 15
        send("touchStart", x, y)
        page.locator(".is-dragged").wait_for()
        target = page.locator('[data-day="2031-05-10"]').bounding_box()
        assert target is not None
        send("touchMove", target["x"] + 60, target["y"] + 20)
        page.locator('.is-target[data-day="2031-05-10"]').wait_for()
        send("touchEnd", 0, 0)
        page.wait_for_url("**notice=moved*")
        assert read_start(town, "Reading") == "05-10 18:00"
        undo(page)


def test_without_script_a_form_moves_the_event(town: Town, chromium: Browser) -> None:
    with open_calendar(chromium, town, script=False) as page:
        find(page, "Concert").locator(".move-link").click()
        page.fill("#day", "2031-05-20")
        page.fill("#time", "18:30")
        page.get_by_role("button", name="Move", exact=True).click()
        page.wait_for_url("**notice=moved*")
        assert read_start(town, "Concert") == "05-20 18:30"
        undo(page)


def test_a_click_on_a_day_begins_a_line(town: Town, chromium: Browser) -> None:
    with open_calendar(chromium, town) as page:
        page.locator('[data-day="2031-05-22"]').click(position={"x": 60, "y": 60})
        page.keyboard.type("Jam session 8pm")
        page.locator(".quick-summary", has_text="May 22, 2031").wait_for()
        page.keyboard.press("Enter")
        page.wait_for_url("**added=*")
        assert read_start(town, "Jam session") == "05-22 20:00"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_calendar_is_accessible_and_fits(town: Town, chromium: Browser, width: int, scheme: str) -> None:
    with open_calendar(chromium, town, viewport={"width": width, "height": 900}, color_scheme=scheme) as page:
        assert find_violations(page) == []
        page.locator(".calendar-entry a").first.focus()
        page.keyboard.press("m")
        assert find_violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width

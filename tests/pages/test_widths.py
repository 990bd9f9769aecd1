"""What a browser shows at every width: menus, tabs, frames and what waits for script."""

import pytest
from playwright.sync_api import Browser

from tests.pages.looking import embed, looking
from tests.pages.town import FULL_DAY, Town
from tests.soak import SOAK

WIDTHS = range(320, 1361, 40) if SOAK else (320, 360, 480, 600, 768, 1024, 1360)
WITH_MENU = ("month", "list", "week", "day", "venue", "event", "search")


@pytest.mark.parametrize("name", WITH_MENU)
def test_an_open_menu_lies_within_the_screen(town: Town, chromium: Browser, name: str) -> None:
    with looking(chromium) as seen:
        page = seen.page
        page.goto(town.server.address + town.pages[name])
        page.locator("details.menu summary").click()
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            box = page.locator("details.menu > div").bounding_box()
            assert box is not None
            assert box["x"] >= 0, width
            assert box["x"] + box["width"] <= width, width
            assert box["width"] >= 200, width
            assert page.evaluate("document.documentElement.scrollWidth") <= width, width


def test_without_script_no_button_promises_a_map(town: Town, chromium: Browser) -> None:
    for script, shown in ((True, True), (False, False)):
        with looking(chromium, script=script) as seen:
            seen.page.goto(town.server.address + "/events/map/")
            assert seen.page.locator(".map button").is_visible() is shown


def test_a_frame_is_as_high_as_what_it_shows_and_no_higher(town: Town, chromium: Browser) -> None:
    with looking(chromium, viewport={"width": 900, "height": 900}) as seen:
        page = seen.page
        embed(page, town.server.address, f"/events/day/{FULL_DAY}/")
        height = "Number(document.querySelector('iframe').height)"
        page.wait_for_function(f"{height} !== 600")
        full = page.evaluate(height)
        assert full > 900
        frame = page.frame_locator("iframe")
        frame.get_by_role("navigation", name="Period").locator("[rel=prev]").click()
        frame.get_by_role("heading", name="March 11").wait_for()
        page.wait_for_function(f"{height} < {full - 200}")
        inside = page.frames[1]
        shown = inside.evaluate("document.querySelector('footer').getBoundingClientRect().bottom")
        assert abs(page.evaluate(height) - shown) < 2
        assert inside.evaluate("document.documentElement.scrollHeight <= innerHeight")


@pytest.mark.parametrize("language", ["en", "de", "fr", "it", "es", "pt-BR", "nl", "ja"])
def test_all_tabs_fit_on_a_small_phone(town: Town, chromium: Browser, language: str) -> None:
    with looking(chromium, viewport={"width": 320, "height": 700}) as seen:
        seen.page.goto(f"{town.server.address}/events/month/2031-03/?lang={language}")
        assert seen.page.locator(".view-nav li").count() == 5
        assert seen.page.evaluate(
            "(() => { const row = document.querySelector('.view-nav ul'); "
            "return row.scrollWidth <= row.clientWidth })()"
        )


def test_a_phone_has_the_steps_and_the_menu_in_one_row(town: Town, chromium: Browser) -> None:
    with looking(chromium, viewport={"width": 360, "height": 800}) as seen:
        seen.page.goto(f"{town.server.address}/events/month/2031-03/")
        parts = [seen.page.locator(f".view-header {part}").first for part in ("h1", ".period-nav a", "summary")]
        boxes = [part.bounding_box() for part in parts]
        title, step, menu = (box["y"] for box in boxes if box)
        assert title + 20 < step
        assert abs(step - menu) < 10
        # What is not seen is still said.
        assert seen.page.get_by_role("link", name="Feb 2031").count() == 1


def test_a_time_with_a_zone_is_seen_whole_in_a_narrow_month(town: Town, chromium: Browser) -> None:
    with looking(chromium, viewport={"width": 768, "height": 900}) as seen:
        seen.page.goto(f"{town.server.address}/events/month/2031-03/")
        clock = seen.page.locator(".cells i", has_text="JST")
        link = clock.locator("..")
        inner, outer = clock.bounding_box(), link.bounding_box()
        assert inner
        assert outer
        assert inner["x"] + inner["width"] <= outer["x"] + outer["width"]


def test_a_visitor_elsewhere_sees_several_days_as_the_event_says_them(town: Town, chromium: Browser) -> None:
    with looking(chromium, timezone_id="America/New_York") as seen:
        seen.page.goto(f"{town.server.address}/events/day/2031-03-22/")
        times = seen.page.locator("time", has_text="Mar 21").first.inner_text()
        said = " ".join(times.split())
        assert said == "Mar 21, 10:00 AM – Mar 24, 6:00 PM Mar 21, 5:00 AM – Mar 24, 1:00 PM your time"

"""Event pages in a browser: one fact block, no empty column, titles that keep their punctuation."""

from typing import Any

import pytest
from playwright.sync_api import Browser

from kalends.media.adapters.image_worker_main import HUE_STEPS
from tests.pages.browser_page import open_browser_page
from tests.pages.demo_calendar import DemoCalendar


def test_facts_occur_once_and_header_has_full_width(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 1280, "height": 900}) as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + demo_calendar.concert)
        for text in ("Friday, March 14, 2031", "Kulturhaus an der Linde"):
            assert page.locator(".event > header, .facts").get_by_text(text, exact=True).count() == 1, text
        title, article = page.locator(".event > header").bounding_box(), page.locator("article").bounding_box()
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
        boxes = [page.locator(part).bounding_box() for part in (".event > header", ".fact-block", ".event .prose")]
        assert len({box["x"] for box in boxes if box}) == 1
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


# The contrast of each text in the header with the background behind it, which may be half transparent.
MEASURE_CONTRASTS = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d');
  const luminance = (...colours) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3)
      .map(part => part / 255).map(part => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const texts = [...document.querySelectorAll('.event > header *')].filter(node => [...node.childNodes]
    .some(child => child.nodeType === 3 && child.textContent.trim()));
  return texts.map(node => {
    const backgrounds = [];
    for (let one = node; one; one = one.parentElement) backgrounds.unshift(getComputedStyle(one).backgroundColor);
    const [high, low] = [luminance(...backgrounds), luminance(...backgrounds, getComputedStyle(node).color)]
      .sort((one, other) => other - one);
    return [(high + .05) / (low + .05), node.outerHTML];
  });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_header_is_readable_on_the_hue_of_every_picture(
    demo_calendar: DemoCalendar, chromium: Browser, scheme: Any
) -> None:
    with open_browser_page(chromium, color_scheme=scheme) as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + demo_calendar.concert)
        washes = set()
        for name in ("w", *[f"w{step}" for step in range(HUE_STEPS)]):
            wash = page.evaluate(
                "name => { const header = document.querySelector('.event > header'); header.className = name; "
                "return getComputedStyle(header).backgroundColor }", name)  # fmt: skip
            washes.add(wash)
            contrasts = page.evaluate(MEASURE_CONTRASTS)
            assert len(contrasts) >= 5
            assert [row for row in contrasts if row[0] < 4.5] == [], name
        assert len(washes) == HUE_STEPS + 1


def test_actions_begin_with_the_one_most_visitors_want(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium) as browser:
        page = browser.page

        def list_actions(path: str) -> list[str]:
            page.goto(demo_calendar.server.base_url + path)
            return [
                text.partition("\n")[0]
                for text in page.locator(".buttons :is(a, summary, button):visible").all_inner_texts()
            ]

        assert list_actions(demo_calendar.concert) == ["Tickets", "Add to calendar", "Directions", "Share"]
        first, second = page.locator(".actions .button"), page.locator(".actions summary")
        fill = "node => getComputedStyle(node).backgroundColor"
        assert (first.evaluate(fill), second.evaluate(fill)) == ("rgb(179, 52, 30)", "rgb(255, 255, 255)")
        assert list_actions("/event/choir-rehearsal/") == ["Share"]

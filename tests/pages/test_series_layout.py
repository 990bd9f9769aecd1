"""The page of a series and the links between its dates, in Chromium."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import psycopg
import pytest
from playwright.sync_api import Browser, Page

from tests.api.running_app import API_PATH, User
from tests.conftest import replace_database, temporary_database
from tests.pages.browser_page import BrowserPage, find_violations, open_browser_page
from tests.pages.demo_calendar import IMAGE_PATH
from tests.servers import Server
from tests.soak import some

DESCRIPTION = "<p>Stretching, breathing and a long rest at the end. Bring a mat.</p><p>Beginners are welcome.</p>"
COURSE: dict[str, Any] = {
    "start_date": "2031-01-07 19:30",
    "end_date": "2031-01-07 21:00",
    "timezone": "Europe/Berlin",
    "rule": "FREQ=WEEKLY;BYDAY=TU;UNTIL=20311125",
    "title": "Yoga for the whole neighbourhood",
    "slug": "yoga",
    "description": DESCRIPTION,
    "cost": "8",
}


LINK_AT_CENTER = """(part) => {
  part.scrollIntoView({ block: "center" });
  const box = part.getBoundingClientRect();
  const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  return hit.closest("a").getAttribute("href");
}"""


@dataclass
class Course:
    address: str
    slugs: list[str]

    def open(self, browser: BrowserPage, path: str = "/series/yoga/") -> Page:
        browser.page.goto(self.address + path)
        return browser.page


@pytest.fixture(scope="module")
def course(
    postgres_url: str, user_template: tuple[str, dict[str, User]], start_server: Callable[..., Server]
) -> Iterator[Course]:
    """Return a server with a weekly course: its second date is moved, the third cancelled, the fourth renamed."""
    template, users = user_template
    with temporary_database(postgres_url, template=template) as name:
        url = replace_database(postgres_url, name)
        server = start_server(url)
        auth = (users["editor"].login, users["editor"].password)
        with httpx.Client(base_url=server.base_url, auth=auth, timeout=30) as client:
            yield Course(server.base_url, _create_course(client, url))
        server.stop()


def _create_course(client: httpx.Client, database_url: str) -> list[str]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE sites SET timezone = 'Europe/Berlin', name = 'Lindenstadt', currency_symbol = '€'")
        connection.execute(
            "INSERT INTO media (site_id, id, revision, url, extension, width, height, filesize, alt_text) "
            "SELECT id, 1000000, 0, %s, 'svg', 1200, 700, 100, 'People on mats' FROM sites",
            (client.base_url.join(IMAGE_PATH).__str__(),),
        )

    def send(method: str, path: str, body: dict[str, Any]) -> Any:
        response = client.request(method, path, json=body)
        assert response.is_success, response.text
        return response.json()

    venue = send("POST", f"{API_PATH}/venues", {"venue": "Gym of the old school", "city": "Lindenstadt"})
    category = send("POST", f"{API_PATH}/categories", {"name": "Sport"})
    series = send(
        "POST",
        "/api/kalends/v1/series",
        {**COURSE, "venue": venue["id"], "categories": [category["id"]], "image": 1000000},
    )
    query = f"?series={series['id']}&per_page=50&start_date=2031-01-01&end_date=2032-01-01"
    events = client.get(f"{API_PATH}/events/{query}").json()["events"]
    changes = (
        {"start_date": "2031-01-15 18:00", "end_date": "2031-01-15 19:30"},
        {"event_status": "cancelled", "status_reason": "The teacher is ill."},
        {"title": "Yoga with guests from Brno"},
    )
    for event, change in zip(events[1:], changes, strict=False):
        send("PATCH", f"{API_PATH}/events/{event['id']}", change)
    return [event["slug"] for event in events]


@pytest.mark.parametrize(
    ("width", "scheme"),
    some([(320, "dark"), (1280, "light"), (820, "light"), (820, "dark"), (320, "light"), (1280, "dark")], 2),
)
@pytest.mark.parametrize("path", ["/series/yoga/", "/event/yoga-2031-01-14/"])
def test_page_fits_and_is_accessible(course: Course, chromium: Browser, path: str, width: int, scheme: str) -> None:
    with open_browser_page(chromium, viewport={"width": width, "height": 800}, color_scheme=scheme) as browser:
        page = course.open(browser, path)
        assert page.locator("h1").inner_text() == COURSE["title"]
        assert find_violations(page) == []
        assert browser.errors == []
        for each in (320, 820, 1280):
            page.set_viewport_size({"width": each, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= each


@pytest.fixture(scope="module")
def phone(course: Course, chromium: Browser) -> Iterator[BrowserPage]:
    with open_browser_page(chromium, viewport={"width": 320, "height": 700}) as browser:
        yield browser


@pytest.mark.parametrize("language", ["en", "de", "es", "fr", "it", "ja", "nl", "pt-BR"])
def test_actions_fit_on_small_phone(course: Course, phone: BrowserPage, language: str) -> None:
    page = course.open(phone, f"/series/yoga/?lang={language}")
    boxes = [box for part in page.locator(".actions > *").all() if (box := part.bounding_box())]
    assert len(boxes) == 2
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 320 for box in boxes)
    bar = page.locator(".actions").bounding_box()
    assert bar
    assert bar["height"] <= 68  # as much as the page leaves free below its end


def test_page_names_rule_and_exceptions(course: Course, chromium: Browser) -> None:
    with open_browser_page(chromium) as browser:
        page = course.open(browser)
        assert "Every Tuesday, until November 25, 2031" in page.locator(".facts").inner_text()
        dates = page.locator(".dates li").all_inner_texts()
        assert len(dates) == 24
        assert "Moved from Tuesday, January 14, 2031" in dates[1]
        assert "Cancelled" in dates[2]
        assert "Yoga with guests from Brno" in dates[3]


def test_dates_can_be_paged(course: Course, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 820, "height": 800}) as browser:
        page = course.open(browser)
        seen = page.locator(".dates li a").evaluate_all("links => links.map(link => link.pathname)")
        while (after := page.locator(".pagination [rel=next]")).count():
            after.click()
            assert page.locator(".dates h2").is_visible()
            seen += page.locator(".dates li a").evaluate_all("links => links.map(link => link.pathname)")
        assert seen == [f"/event/{slug}/" for slug in course.slugs]
        page.get_by_role("link", name="First page").click()
        assert page.url == f"{course.address}/series/yoga/#dates"


def test_previous_and_next_lead_through_the_series(course: Course, chromium: Browser) -> None:
    with open_browser_page(chromium) as browser:
        page = course.open(browser)
        page.locator(".dates li a").nth(1).click()
        note = [line for line in page.locator(".series-note").inner_text().splitlines() if line]
        assert note[:4] == [
            "Series",
            "Moved from Tuesday, January 14, 2031, 7:30\u202fPM".replace("\u202f", "\u00a0"),
            "Every Tuesday, until November 25, 2031",
            "One of 47 dates",
        ]
        page.get_by_role("link", name="Next date: Tuesday, January 21, 2031").click()
        assert page.url.endswith("/event/yoga-2031-01-21/")
        for expected in ("yoga-2031-01-14", "yoga-2031-01-07"):
            page.locator(".date-nav [rel=prev]").click()
            assert page.url.endswith(f"/event/{expected}/")
        assert page.locator(".date-nav [rel=prev]").count() == 0
        page.get_by_role("link", name="All dates").click()
        page.wait_for_url("**/series/yoga/")


def test_page_works_by_keyboard(course: Course, chromium: Browser) -> None:
    with open_browser_page(chromium) as browser:
        page = course.open(browser, "/event/yoga-2031-01-14/")
        page.locator(".date-nav a").nth(1).focus()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_url("**/event/yoga-2031-01-21/")


def test_calendar_and_subscription(course: Course, chromium: Browser) -> None:
    with open_browser_page(chromium) as browser:
        page = course.open(browser)
        with page.expect_download() as download:
            page.get_by_role("link", name="Add to calendar").click()
        assert "RRULE:FREQ=WEEKLY;BYDAY=TU;UNTIL=20311125T225959Z" in download.value.path().read_text()
        page.get_by_text("Subscribe", exact=True).click()
        url = page.get_by_label("Calendar URL").input_value()
        assert httpx.get(url).text.count("BEGIN:VEVENT") == 47


@pytest.mark.parametrize("path", ["/series/yoga/", "/event/yoga-2031-01-14/"])
def test_page_is_light(course: Course, chromium: Browser, path: str) -> None:
    with open_browser_page(chromium) as browser:
        sizes = browser.measure_bytes()
        course.open(browser, path)
        assert sum(sizes.values()) <= 60_000, sizes


@pytest.mark.parametrize(("width", "scheme"), [(320, "light"), (390, "dark"), (1280, "light"), (1600, "dark")])
def test_card_leads_to_its_event_and_to_the_further_dates(
    course: Course, chromium: Browser, width: int, scheme: Any
) -> None:
    with open_browser_page(
        chromium, script=False, viewport={"width": width, "height": 900}, color_scheme=scheme
    ) as browser:
        page = course.open(browser, "/events/category/sport/")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator(".card").count() == 1
        link = page.locator(".dates-note a")
        assert link.inner_text().startswith("Every Tuesday · ")
        # The link of the title covers the card, except for this one.
        targets = [page.locator(part).evaluate(LINK_AT_CENTER) for part in (".dates-note a", ".card .where")]
        assert targets == ["/series/yoga/", "/event/yoga-2031-01-07/"]
        page.get_by_role("link", name="Show every date").click()
        assert page.locator(".card").count() > 5
        page.get_by_role("link", name="Hide repeats").click()
        assert page.locator(".card").count() == 1
    with open_browser_page(chromium, viewport={"width": width, "height": 900}, color_scheme=scheme) as browser:
        assert find_violations(course.open(browser, "/events/category/sport/")) == []

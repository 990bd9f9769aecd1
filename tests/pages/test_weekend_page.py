"""The weekend from Friday evening to Sunday, and the week and the weekend on paper."""

import html
import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser

from kalends.core.search_words import find_weekend
from tests.api.running_app import API_PATH, RunningApp, User
from tests.conftest import replace_database, temporary_database
from tests.pages.browser_page import find_violations, open_browser_page
from tests.pages.demo_calendar import TITLES, DemoCalendar
from tests.pages.page_client import add_event, get_page
from tests.servers import Server

# A Saturday.
WEEKEND = "/events/weekend/2031-03-15/"


def groups(page: str) -> dict[str, list[str]]:
    sections = re.findall(r"<section>\s*<h2>(.*?)</h2>(.*?)</section>", page, flags=re.DOTALL)
    return {html.unescape(name): re.findall(r"<h3><a [^>]*>([^<]*)</a>", body) for name, body in sections}


def test_weekend_begins_on_friday_evening(app: RunningApp) -> None:
    for title, start, end in (
        ("Friday lunch", "2031-03-14 12:00", "2031-03-14 13:00"),
        ("Late workshop", "2031-03-14 16:59", "2031-03-14 18:00"),
        ("Concert", "2031-03-14 17:00", "2031-03-14 22:00"),
        ("Night of Sunday", "2031-03-16 23:00", "2031-03-17 02:00"),
        ("Monday", "2031-03-17 00:00", "2031-03-17 02:00"),
        ("Night before", "2031-03-13 20:00", "2031-03-15 03:00"),
    ):
        add_event(app, title, start, end)
    add_event(app, "Fair", "2031-03-15", "2031-03-16", all_day=True)
    add_event(app, "Exhibition", "2031-02-01", "2031-04-01", all_day=True)
    # A day is the day where the event takes place.
    add_event(app, "Far away", "2031-03-16 23:30", "2031-03-16 23:45", timezone="America/Lima")
    add_event(app, "Protected", "2031-03-15 10:00", "2031-03-15 11:00", new_password="open sesame")
    add_event(app, "Draft", "2031-03-15 10:00", "2031-03-15 11:00", status="draft")
    add_event(app, "Hidden", "2031-03-15 10:00", "2031-03-15 11:00", hide_from_listings=True)
    expected = {
        "Friday evening": ["Concert"],
        "Saturday, March 15, 2031": ["Fair", "Protected"],
        "Sunday, March 16, 2031": ["Night of Sunday", "Far away"],
        "Ongoing": ["Exhibition"],
    }
    # Any day from Monday to Sunday names the weekend at its end.
    for day in ("2031-03-10", "2031-03-15", "2031-03-16"):
        page = get_page(app, f"/events/weekend/{day}/")
        assert groups(page) == expected
        assert f'<link rel="canonical" href="{app.base_url}{WEEKEND}">' in page
        assert '<meta name="robots" content="noindex">' in page
    assert 'content="noindex, nofollow"' in get_page(app, "/events/weekend/2032-03-13/")
    get_page(app, "/events/weekend/2031-02-30/", status=404)


def test_current_weekend_shows_what_is_left_of_it(app: RunningApp) -> None:
    today = date.fromisoformat(app.sql("SELECT (now() AT TIME ZONE 'Europe/Berlin')::date::text AS day")[0]["day"])
    first, sunday = find_weekend(today)
    for number in range(-1, 8):
        day = sunday + timedelta(days=number - 7)
        add_event(app, f"Day {day}", f"{day} 20:00", f"{day} 21:00")
    page = get_page(app, "/events/weekend/")
    days = [sunday - timedelta(days=2)] if today < first else []
    days += [first + timedelta(days=n) for n in range((sunday - first).days + 1)]
    assert [title for titles in groups(page).values() for title in titles] == [f"Day {day}" for day in days]
    assert "<h1>This weekend</h1>" in page
    assert 'name="robots"' not in page


def test_full_weekend_links_to_the_others_and_shows_the_featured_picture(app: RunningApp) -> None:
    editor = app.caller("editor")
    app.sql(
        "INSERT INTO media (site_id, id, revision, url, extension, width, height, filesize) "
        "SELECT id, 1000000, 0, 'https://media.example/1.jpg', 'jpg', 1200, 700, 100 FROM sites"
    )
    for n in range(62):
        editor.create(
            "events", title=f"Event {n}", start_date=f"2031-03-15 {10 + n // 10}:00", end_date="2031-03-15 20:00",
            image=1000000 if n > 10 else None, featured=n > 20,
        )  # fmt: skip
    page = get_page(app, WEEKEND)
    assert len(groups(page)["Saturday, March 15, 2031"]) == 50
    assert re.search(r'href="/events/list/\?overlaps_from=2031-03-14&amp;overlaps_to=2031-03-16">12 more<', page)
    assert '<meta property="og:image" content="https://media.example/1.jpg">' in page


@pytest.fixture(scope="module")
def forty(
    postgres_url: str, user_template: tuple[str, dict[str, User]], start_server: Callable[..., Server]
) -> Iterator[str]:
    """Return the address of a site with forty events on a weekend: on Friday evening 10, then 15 a day."""
    template, users = user_template
    with temporary_database(postgres_url, template=template) as name:
        server = start_server(replace_database(postgres_url, name))
        editor = (users["editor"].login, users["editor"].password)
        with httpx.Client(base_url=server.base_url, auth=editor, timeout=30) as client:
            for day, hour, count in ((14, 17, 10), (15, 9, 15), (16, 9, 15)):
                for n in range(count):
                    start = datetime(2031, 3, day, hour) + n * timedelta(minutes=30)
                    venue = {"venue": f"Old Mill Arts Centre {n}", "city": "Lindenstadt"}
                    fields = {"title": f"{TITLES[n % len(TITLES)]} {day} {n}", "venue": venue, "cost": "12"}
                    times = {"start_date": f"{start}", "end_date": f"{start + timedelta(minutes=30)}"}
                    client.post(f"{API_PATH}/events", json=fields | times).raise_for_status()
        yield server.base_url
        server.stop()


def count_sheets(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


@pytest.mark.parametrize("path", ["/events/weekend/2031-03-15/", "/events/week/2031-03-10/"])
def test_forty_events_fit_one_sheet(forty: str, chromium: Browser, path: str) -> None:
    with open_browser_page(chromium) as browser:
        page = browser.page
        page.goto(forty + path)
        assert count_sheets(page.pdf(prefer_css_page_size=True)) == 1
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 718, "height": 1046})
        titles = page.locator(".weekend h3 a, .week .blocks a")
        boxes = [title.bounding_box() for title in titles.all() if title.is_visible()]
        assert len(boxes) == 40
        # Three columns, one below the other in each.
        assert len({round(box["x"] / 100) for box in boxes if box}) == 3
        assert page.evaluate("document.documentElement.scrollWidth") == 718


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_weekend_is_accessible(demo_calendar: DemoCalendar, chromium: Browser, width: int, scheme: Any) -> None:
    with open_browser_page(chromium, viewport={"width": width, "height": 900}, color_scheme=scheme) as browser:
        browser.page.goto(f"{demo_calendar.server.base_url}/events/weekend/2031-03-15/")
        assert find_violations(browser.page) == []
        assert browser.page.evaluate("document.documentElement.scrollWidth") == width
        assert browser.errors == []

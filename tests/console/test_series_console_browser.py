"""Series in Chromium: a weekly course from its creation to undo, by mouse and by keyboard."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.api.running_app import API_PATH, User
from tests.conftest import replace_database, temporary_database
from tests.console.form_browser import Person, open_console, prepare_site
from tests.console.test_event_form_browser import collect_files, measure, measure_languages
from tests.pages.browser_page import find_violations
from tests.servers import Server
from tests.soak import SOAK


@pytest.fixture(scope="module")
def server(
    postgres_url: str, user_template: tuple[str, dict[str, User]], start_server: Callable[..., Server]
) -> Iterator[Server]:
    template, _ = user_template
    with temporary_database(postgres_url, template=template) as name:
        url = replace_database(postgres_url, name)
        prepare_site(url, timezone="Europe/Berlin", name="Lindenstadt")
        started = start_server(url)
        yield started
        started.stop()


@pytest.fixture(scope="module")
def api(server: Server, user_template: tuple[str, dict[str, User]]) -> Iterator[httpx.Client]:
    editor = user_template[1]["editor"]
    with httpx.Client(base_url=server.base_url, auth=(editor.login, editor.password), timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def browser(server: Server, api: httpx.Client, chromium: Browser) -> Browser:
    """Return Chromium, started after everything that runs an event loop."""
    return chromium


def read_events(api: httpx.Client, page: Page) -> list[dict[str, Any]]:
    """Return the events of the series whose page is open."""
    series_id = page.url.partition("?")[0].rpartition("/")[2]
    query = {"series": series_id, "start_date": "2031-01-01", "end_date": "2032-01-01", "per_page": "50"}
    events: list[dict[str, Any]] = api.get(f"{API_PATH}/events", params=query).json()["events"]
    return events


class Mouse:
    """Somebody who clicks."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, selector: str) -> None:
        self.page.click(selector)

    def choose(self, selector: str, value: str) -> None:
        self.page.select_option(selector, value)


class Keyboard(Mouse):
    """Somebody who uses keys only, once a control has the focus."""

    def press(self, selector: str) -> None:
        control = self.page.locator(selector).first
        expect(control).to_be_visible()  # A control that a script has yet to show takes no focus.
        control.focus()
        is_link = control.evaluate("node => node.tagName === 'A'")
        self.page.keyboard.press("Enter" if is_link else "Space")

    def choose(self, selector: str, value: str) -> None:
        select = self.page.locator(selector)
        select.focus()
        self.page.keyboard.press("Home")
        for _ in range(20):
            if select.input_value() == value:
                return
            self.page.keyboard.press("ArrowDown")
        raise AssertionError(f"{selector} has no {value}")


def create_course(person: Mouse, title: str) -> None:
    """Create six Tuesdays, and watch the preview."""
    page = person.page
    page.goto("/console/events/new")
    page.fill("#title", title)
    page.fill("[name=start_day]", "2031-01-07")
    person.press("[value=repeat]")
    expect(page.locator("#repeat-frequency")).to_be_focused()
    assert page.input_value("#title") == title
    preview = page.locator("[data-result]")
    person.choose("#repeat-frequency", "")
    expect(page.locator("[name='repeat[interval]']")).to_be_hidden()
    person.choose("#repeat-frequency", "weekly")
    expect(preview.locator("li")).to_have_count(5)
    expect(preview.locator("[data-text]")).to_have_text("Every Tuesday")
    person.choose("#repeat-ends", "count")
    page.fill("#repeat-count", "6")
    expect(preview).to_contain_text("6 dates, the last one on Tue, Feb 11, 2031")
    person.press(".form-actions [value=publish]")
    page.wait_for_url("**/console/series/*?notice=series-created")


def change_date(person: Mouse, day: str, change: Callable[[Page], object], scope: str, action: str = "save") -> None:
    """Open a date of the series, change it and choose a scope."""
    page = person.page
    series = page.url.partition("?")[0]
    person.press(f".series-dates a:has-text('{day}')")
    page.wait_for_url("**/console/events/*")
    change(page)
    person.press(f".form-actions [value={action}]")
    expect(page.locator("h1")).to_contain_text("Which dates")
    person.press(f"[name=scope][value={scope}]")
    person.press("main form .buttons button")
    page.wait_for_url("**notice=*")
    page.goto(series)


def cancel(page: Page) -> None:
    page.click("summary:has-text('Cancelled, postponed')")
    page.select_option("#event_status", "cancelled")


@pytest.mark.parametrize("kind", [Mouse, Keyboard])
def test_course_is_created_changed_and_undone(
    server: Server, browser: Browser, api: httpx.Client, kind: type[Mouse]
) -> None:
    with open_console(browser, server) as opened:
        page, person = opened.page, kind(opened.page)
        create_course(person, f"Course by {kind.__name__}")
        expect(page.locator("main")).to_contain_text("Every Tuesday, 6 times")
        change_date(person, "Jan 14", lambda page: page.fill("[name=start_day]", "2031-01-15"), "this")
        expect(page.locator(".series-dates")).to_contain_text("moved from Tue, Jan 14, 2031")
        change_date(person, "Jan 21", cancel, "this")
        change_date(person, "Jan 28", lambda page: page.fill("#title", "Advanced course"), "following")
        titles = [event["title"] for event in read_events(api, page)]
        assert titles[3:] == ["Advanced course"] * 3
        assert titles[0] != "Advanced course"
        person.press(".edits button")
        page.wait_for_url("**?notice=undone*")
        events = read_events(api, page)
        assert {event["title"] for event in events} == {titles[0]}
        assert [event["start_date"][:10] for event in events[:3]] == ["2031-01-07", "2031-01-15", "2031-01-21"]
        assert [event["event_status"] for event in events[:4]] == [
            "scheduled",
            "scheduled",
            "cancelled",
            "scheduled",
        ]


def test_preview_warns_and_explains_at_once(server: Server, browser: Browser) -> None:
    with open_console(browser, server) as opened:
        page = opened.page
        page.goto("/console/events/new")
        page.fill("[name=start_day]", "2031-01-31")
        page.click("[value=repeat]")
        page.select_option("#repeat-frequency", "monthly")
        expect(page.locator("[data-warnings]")).to_contain_text("Months without this day are skipped.")
        options = page.locator("#repeat-day option:not([disabled])")
        expect(options).to_have_text(
            [
                "On day 31 of every month",
                "On the last Friday of every month",
                "On the last day of every month",
            ]
        )
        page.select_option("#repeat-frequency", "weekly")
        page.check("[name='repeat[weekdays][]'][value=monday]")
        expect(page.locator("[data-error]")).to_contain_text("2031-01-31 is not a date of this rule.")
        page.click("summary:text-is('Extra dates')")
        dates = page.locator("[name='repeat[add][]']")
        dates.nth(1).fill("2031-02-05")
        dates.nth(1).dispatch_event("change")
        expect(dates).to_have_count(3)


VARIANTS: list[tuple[int, Literal["light", "dark"]]] = [(320, "dark"), (1280, "light")]


@dataclass
class Inspector:
    """Somebody who looks at each page on a phone in the dark, and on a large screen in light colours."""

    page: Page
    pages: int = 0

    def inspect(self, name: str) -> None:
        """Look for a page that scrolls sideways, and run axe in one variant, in turn; in a soak in both."""
        self.pages += 1
        for number, (width, scheme) in enumerate(VARIANTS):
            self.page.set_viewport_size({"width": width, "height": 900})
            self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            self.save_shot(f"{name}-{width}")
            assert self.page.evaluate("document.documentElement.scrollWidth") <= width, name
            if SOAK or (self.pages + number) % 2 == 0:
                assert find_violations(self.page) == [], name

    def save_shot(self, name: str) -> None:
        if folder := os.environ.get("SERIES_SHOTS"):
            self.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def test_pages_are_accessible_and_small(server: Server, browser: Browser, api: httpx.Client) -> None:
    fields = {"title": "Choir", "start_date": "2031-01-07 19:30", "end_date": "2031-01-07 21:00"}
    rule = {"rule": "FREQ=WEEKLY;BYDAY=TU;COUNT=9", "remove_dates": ["2031-01-21"], "timezone": "Europe/Berlin"}
    series = api.post("/api/kalends/v1/series", json={**fields, **rule, "status": "publish"}).json()
    first, second = (entry["event"] for entry in series["occurrences"][:2])
    own = {"title": "Choir with guests", "start_date": "2031-01-15 18:00", "end_date": "2031-01-15 20:00"}
    assert api.patch(f"/api/kalends/v1/events/{second}", json=own).status_code == 200
    with open_console(browser, server) as opened:
        page, files, inspector = opened.page, collect_files(opened.page), Inspector(opened.page)
        page.goto("/console/events/new")
        page.locator(".rich-text-content").wait_for()
        sizes = measure(files)
        page_sizes = measure_languages(page)
        assert sum(sizes.values()) - sizes["new"] + max(page_sizes.values()) < 60_000, (sizes, page_sizes)
        page.fill("[name=start_day]", "2031-01-31")
        page.click("[value=repeat]")
        page.select_option("#repeat-frequency", "monthly")
        expect(page.locator("[data-dates] li")).to_have_count(5)
        inspector.inspect("editor-monthly")
        page.select_option("#repeat-frequency", "weekly")
        page.click("summary:text-is('Extra dates')")
        expect(page.locator("[data-result] [data-text]")).to_have_text("Every Friday")
        inspector.inspect("editor-weekly")
        page.goto(f"/console/series/{series['id']}")
        inspector.inspect("series")
        page.click("summary:text-is('Change the rule')")
        page.select_option("#from", index=2)
        page.fill("[name='repeat[interval]']", "2")
        expect(page.locator("[data-result] [data-text]")).to_have_text("Every second week on Tuesday, 9 times")
        inspector.inspect("series-rule")
        page.click("text=Preview changes")
        expect(page.locator("h1")).to_have_text("Change the rule")
        page.click("summary:text-is('Show the dates')")
        inspector.inspect("series-confirm")
        page.goto(f"/console/events/{first}")
        page.fill("#title", "Large choir")
        page.fill("[name=start_time]", "20:00")
        page.click(".form-actions [value=save]")
        expect(page.locator("h1")).to_have_text("Which dates change?")
        inspector.inspect("scope")
        page.goto("/console/series")
        inspector.inspect("series-list")
        page.goto("/console/events?period=all")
        inspector.inspect("events")


def test_one_date_is_cancelled_in_two_interactions(server: Server, browser: Browser, api: httpx.Client) -> None:
    series = create_weekly(api, "Evening class")
    with open_console(browser, server) as opened:
        page, person = opened.page, Person(opened.page)
        page.goto(f"/console/series/{series}")
        person.click(".cancel-date summary >> nth=1")
        assert find_violations(page) == []
        person.click(".cancel-date[open] button")
        page.wait_for_url("**?undo=*")
        assert person.interactions == 2
        assert page.locator(".cancel-date").count() == 3
        page.get_by_role("button", name="Undo").first.click()
        page.wait_for_url("**?notice=undone*")
        assert page.locator(".cancel-date").count() == 4


def create_weekly(api: httpx.Client, title: str) -> int:
    times = {"start_date": "2031-03-04 19:00:00", "end_date": "2031-03-04 21:00:00"}
    response = api.post("/api/kalends/v1/series", json={"title": title, **times, "rule": "FREQ=WEEKLY;COUNT=4"})
    assert response.status_code == 201, response.text
    series_id: int = response.json()["id"]
    return series_id

"""The public form and the pages behind links in Chromium: with and without script, in all widths and schemes."""

import time
from collections.abc import Callable
from itertools import product

import pytest
from playwright.sync_api import Browser, Page

from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.pages.browser_page import find_violations, open_browser_page
from tests.pages.conftest import chromium
from tests.proposals.submission_client import ADD, SENT, SETTINGS, Submitter, find_proposals, open_form
from tests.servers import Server
from tests.soak import some

__all__ = ["chromium"]

VARIANTS = list(product((320, 1280), ("light", "dark"), ("en", "de", "ja")))
MAX_PAGE_BYTES = 60_000


@pytest.fixture(scope="module")
def app(start_single_site_for_module: StartApp) -> RunningApp:
    return open_form(start_single_site_for_module(SETTINGS))


@pytest.fixture(scope="module")
def server(app: RunningApp, start_server: Callable[..., Server]) -> Server:
    return start_server(app.database_url, environment=SETTINGS)


@pytest.fixture(scope="module")
def paths(app: RunningApp) -> list[str]:
    """Every page that a sender can see."""
    submitter = Submitter(app)
    app.caller("editor").create("venues", venue="Town hall", city="Larkford")
    for name in ("Music", "Theatre and dance"):
        app.caller("editor").create("categories", name=name)
    waiting = submitter.submit()
    assert submitter.send(title="Other").status_code == 303
    unconfirmed = submitter.receive()[0].links[0]
    returned = submitter.submit(title="Third")
    app.sql("UPDATE proposals SET state = 'returned', comment = 'Which hall?', decided_at = now() "
            "WHERE values ->> 'title' = 'Third'")  # fmt: skip
    return [ADD, SENT, "/events/add/link/", unconfirmed, waiting, returned, f"{returned}/change", "/submission/x.y"]


def fill_in(page: Page, email: str) -> None:
    for name, value in {"title": "Fair", "start_day": "2031-05-05", "start_time": "19:00", "email": email}.items():
        page.fill(f"[name={name}]", value)
    page.check("text=Music")


def test_pages_are_accessible_and_light(app: RunningApp, server: Server, paths: list[str], chromium: Browser) -> None:
    for number, path in enumerate(paths):
        for width, scheme, language in some(VARIANTS[number % 3 :: 3] + VARIANTS, 2):
            where = (path, width, scheme, language)
            with open_browser_page(
                chromium, viewport={"width": width, "height": 900}, color_scheme=scheme
            ) as browser:
                weighed = browser.measure_bytes()
                browser.page.goto(f"{server.base_url}{path}?lang={language}", wait_until="load")
                assert browser.page.evaluate("document.documentElement.lang") == language, where
                assert browser.page.evaluate("document.documentElement.scrollWidth") <= width, where
                assert sum(weighed.values()) < MAX_PAGE_BYTES, (where, weighed)
                assert find_violations(browser.page) == [], where
                assert [error for error in browser.errors if "status of 404" not in error] == [], where


@pytest.mark.parametrize("has_script", [True, False])
def test_event_is_sent_and_confirmed(
    app: RunningApp, server: Server, paths: list[str], chromium: Browser, has_script: bool
) -> None:
    app.sql("DELETE FROM login_failures")
    submitter = Submitter(app)
    with open_browser_page(chromium, script=has_script) as browser:
        page = browser.page
        page.goto(f"{server.base_url}/events/")
        page.click("footer >> text=Add an event")
        time.sleep(3.5)  # Forms that are sent at once are refused.
        fill_in(page, "petra@example.org")
        page.click("button:has-text('Send')")
        page.wait_for_url(f"**{SENT}")
        page.goto(server.base_url + submitter.receive()[-1].links[0])
        page.click("button:has-text('Confirm')")
        page.wait_for_selector("text=The editors haven’t decided yet")
        page.click("text=Change")
        assert page.input_value("[name=title]") == "Fair"
        page.fill("[name=title]", "Book fair")
        page.click("button:has-text('Send')")
        assert page.locator("h1").inner_text() == "Book fair"
        page.click("summary:has-text('Delete my data')")
        page.click("form button:has-text('Delete my data')")
        page.wait_for_selector("text=We’ve deleted your email address")
    assert "petra@example.org" not in {row["email"] for row in find_proposals(app)}


def test_hints_appear_while_typing(app: RunningApp, server: Server, paths: list[str], chromium: Browser) -> None:
    app.caller("editor").create(
        "events", title="Kite festival", start_date="2031-05-05 19:00", end_date="2031-05-05 21:00"
    )
    with open_browser_page(chromium) as browser:
        page = browser.page
        page.goto(server.base_url + ADD)
        page.fill("[name=title]", "Kite festival")
        page.fill("[name=start_day]", "2031-05-05")
        page.fill("[name=start_time]", "19:00")
        link = page.locator("#similar a")
        link.wait_for()
        assert (link.inner_text(), link.get_attribute("href")) == ("Kite festival", "/event/kite-festival/")
        assert (
            "5 May 2031" in page.locator("#similar").inner_text()
            or "May 5, 2031" in page.locator("#similar").inner_text()
        )
        page.fill("[name=title]", "Something else")
        page.locator("#similar").wait_for(state="hidden")
        page.check("[name=all_day]")
        assert page.is_disabled("[name=start_time]")
        assert browser.errors == []

"""The form, the pages behind links and the email itself in Chromium: all widths, schemes and languages."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
from playwright.sync_api import Browser

from kalends.core.messages import LANGUAGES
from kalends.follow.mails.digest_formats import to_html
from kalends.follow.mails.digest_model import Reader as DigestReader, make_digest
from kalends.follow.rules.slots import Slot
from kalends.store.database import Transaction
from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.console.console_browser import open_console
from tests.console.console_client import set_passwords
from tests.follow.follow_client import (
    BASE_URL,
    FOLLOW,
    NOW,
    SETTINGS,
    Reader,
    add_event,
    find_follows,
    in_days,
    open_following,
    read_content,
)
from tests.follow.test_follow_links import make_end_link
from tests.pages.browser_page import find_violations, open_browser_page
from tests.pages.conftest import chromium
from tests.servers import Server
from tests.soak import some

__all__ = ["chromium"]

VARIANTS = list(product((320, 1280), ("light", "dark"), LANGUAGES))
SCHEMES = list(product((360, 800), ("light", "dark")))
MAX_PAGE_BYTES = 60_000


@pytest.fixture(scope="module")
def app(start_single_site_for_module: StartApp) -> RunningApp:
    site = open_following(start_single_site_for_module(SETTINGS))
    for number in range(12):
        add_event(site, f"A concert with a title that is quite long {number}", 1 + number % 6)
    return site


@pytest.fixture(scope="module")
def server(app: RunningApp, start_server: Callable[..., Server]) -> Server:
    return start_server(app.database_url, environment=SETTINGS)


@pytest.fixture(scope="module")
def paths(app: RunningApp) -> list[str]:
    reader = Reader(app)
    link = reader.confirm(f"{FOLLOW}?search=concert")
    end = make_end_link(app)
    reader.follow(f"{FOLLOW}?search=other")
    return [FOLLOW, f"{FOLLOW}?search=opera", link, end, "/follow/x/", "/follow/end/x"]


def outside[T](work: Callable[[], T]) -> T:
    """Run the application in another thread, because Playwright has an event loop in this one."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(work).result()


def test_pages_are_accessible_and_light(app: RunningApp, server: Server, paths: list[str], chromium: Browser) -> None:
    for number, path in enumerate(paths):
        for width, scheme, language in some(VARIANTS[number * 5 % 32 :] + VARIANTS, 2):
            where = (path, width, scheme, language)
            with open_browser_page(
                chromium, viewport={"width": width, "height": 900}, color_scheme=scheme
            ) as browser:
                weighed = browser.measure_bytes()
                sign = "&" if "?" in path else "?"
                browser.page.goto(f"{server.base_url}{path}{sign}lang={language}", wait_until="load")
                assert browser.page.evaluate("document.documentElement.lang") == language, where
                assert browser.page.evaluate("document.documentElement.scrollWidth") <= width, where
                assert sum(weighed.values()) < MAX_PAGE_BYTES, (where, weighed)
                assert find_violations(browser.page) == [], where
                assert [error for error in browser.errors if "status of 404" not in error] == [], where


def test_following_works_without_script(app: RunningApp, server: Server, chromium: Browser) -> None:
    reader = Reader(app)
    with open_browser_page(chromium, script=False) as browser:
        page = browser.page
        page.goto(f"{server.base_url}/events/list/?search=concert")
        page.click("summary:has-text('Subscribe')")
        page.click("text=Follow by email")
        page.fill("[name=email]", "petra@example.org")
        page.select_option("[name=rhythm]", "daily")
        page.click("main button:has-text('Follow')")
        page.wait_for_selector("text=Check your email")
        page.goto(server.base_url + outside(reader.receive)[-1].link)
        page.click("button:has-text('Confirm')")
        page.wait_for_selector("text=Next email")
        page.click("button:has-text('Pause')")
        page.wait_for_selector("text=Paused.")
        page.click("main button:has-text('Unsubscribe')")
        page.wait_for_selector("text=We’ve deleted your email address")
    assert "petra@example.org" not in {row["email"] for row in outside(lambda: find_follows(app))}


def make_html(app: RunningApp, language: str) -> str:
    content = read_content(app)

    async def make(tx: Transaction) -> str:
        reader = DigestReader.make(tx.site, language, BASE_URL)
        return to_html(make_digest(content, "", Slot(NOW, in_days(7)), reader))

    return app.run_operation(make)


def test_emails_are_readable_in_both_schemes(app: RunningApp, chromium: Browser) -> None:
    for language in some(list(LANGUAGES), 2):
        html = outside(lambda language=language: make_html(app, language))  # type: ignore[misc]
        assert len(html.encode()) < 60_000
        for width, scheme in SCHEMES:
            with open_browser_page(
                chromium, viewport={"width": width, "height": 900}, color_scheme=scheme
            ) as browser:
                browser.page.set_content(html)
                assert browser.page.evaluate("document.documentElement.scrollWidth") <= width
                assert find_violations(browser.page) == [], (language, width, scheme)
                background = browser.page.evaluate("getComputedStyle(document.body).backgroundColor")
                assert (background == "rgb(255, 255, 255)") is (scheme == "light")


def test_console_shows_the_preview(app: RunningApp, start_server: Callable[..., Server], chromium: Browser) -> None:
    set_passwords(app)
    own = start_server(app.database_url)  # without a base URL, to which the console would redirect
    with open_console(chromium, own) as console:
        console.sign_in("administrator")
        page = console.page
        console.open("/console/followers")
        assert console.find_faults() == []
        page.click("main a:has-text('Preview')")
        page.wait_for_selector("iframe.digest")
        assert console.find_faults() == []
        assert page.locator("main textarea").count() == 3
        assert "A concert" in page.frame_locator("iframe.digest").locator("body").inner_text()

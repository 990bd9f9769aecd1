"""The table of events in Chromium: selection by keyboard, effort, layout, accessibility, and without script."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
import pytest
from playwright.sync_api import Browser, Page

from tests.api.conftest import StartApp
from tests.console.console_client import set_passwords
from tests.console.event_table_pages import make_event
from tests.console.form_browser import add_session
from tests.pages.browser_page import find_violations, open_browser_page
from tests.servers import Server
from tests.soak import some


@dataclass(frozen=True)
class Town:
    """A server with events, and its database."""

    server: Server
    database_url: str

    def count(self, status: str, name: str) -> int:
        with psycopg.connect(self.database_url) as connection:
            row = connection.execute(
                "SELECT count(*) FROM events WHERE status = %s AND title LIKE %s", [status, f"{name}%"]
            ).fetchone()
        assert row is not None
        return row[0]


@pytest.fixture(scope="module")
def town(start_single_site_for_module: StartApp, start_server: Callable[..., Server]) -> Iterator[Town]:
    app = start_single_site_for_module()
    set_passwords(app)
    app.set_site("timezone", "Europe/Berlin")
    editor, contributor = app.caller("editor"), app.caller("contributor")
    venue = editor.create("venues", venue="Town Hall")["id"]
    category = editor.create("categories", name="Concerts")["id"]
    for n in range(50):
        make_event(editor, f"Draft {n:02}", 20, status="draft", venue=[venue], categories=[category])
    for n in range(8):
        make_event(editor, f"Concert {n}", 5 + n, venue=[venue], categories=[category], featured=n == 2)
    make_event(editor, "A cancelled reading in Tokyo with a rather long title for a small screen", 4,
               event_status="cancelled", timezone="Asia/Tokyo")  # fmt: skip
    make_event(contributor, "Submission", 6, status="pending")
    server = start_server(app.database_url)
    yield Town(server, app.database_url)
    server.stop()


@contextmanager
def open_table(chromium: Browser, town: Town, query: str = "", *, script: bool = True, width: int = 1280,
               scheme: str = "light") -> Iterator[Page]:  # fmt: skip
    """Open the table as the editor; fail on any message of the console of the browser."""
    size = {"width": width, "height": 800}
    with open_browser_page(chromium, script=script, viewport=size, color_scheme=scheme) as browser:
        add_session(browser.page.context, town.server, "editor")
        browser.page.goto(f"{town.server.base_url}/console/events?{query}")
        yield browser.page
        assert browser.errors == []


class Effort:
    """Counts the clicks and keys that a user needs."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.interactions = 0

    def click(self, selector: str) -> None:
        self.interactions += 1
        self.page.click(selector)

    def fill(self, selector: str, text: str) -> None:
        self.interactions += 1
        self.page.fill(selector, text)

    def press(self, key: str) -> None:
        self.interactions += 1
        self.page.keyboard.press(key)


def test_fifty_drafts_are_published_in_six_interactions(
    town: Town, chromium: Browser, report: Callable[[object], None]
) -> None:
    with open_table(chromium, town) as page:
        effort = Effort(page)
        effort.click(".statuses [data-status=draft]")
        effort.click("[data-all]")
        assert page.inner_text("[data-count]") == "50 events selected"
        effort.click(".bulk-bar > button")
        effort.click(".confirm button")
        page.wait_for_selector(".undo")
        assert town.count("publish", "Draft") == 50
        report(f"50 drafts published in {effort.interactions} interactions")
        assert effort.interactions <= 6
        page.click(".undo button")
        page.wait_for_selector("p.notice")
        assert town.count("draft", "Draft") == 50


def test_rows_are_selected_by_keyboard(town: Town, chromium: Browser) -> None:
    with open_table(chromium, town, "search=Concert") as page:
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("x")
        assert page.inner_text("[data-count]") == "One event selected"
        for key in ("ArrowDown", "j", "Shift+Space"):
            page.keyboard.press(key)
        assert page.inner_text("[data-count]") == "3 events selected"
        page.keyboard.press("k")
        page.keyboard.press("Space")
        assert page.inner_text("[data-count]") == "2 events selected"
        selected = page.eval_on_selector_all("tr:has(:checked) th", "all => all.map((cell) => cell.textContent)")
        assert selected == ["Concert 1", "Concert 3"]
        page.keyboard.press("/")
        page.keyboard.type("jx?")
        assert page.input_value("#search") == "jx?"
        assert page.inner_text("[data-count]") == "2 events selected"


def test_shortcuts_open_pages_and_can_be_switched_off(town: Town, chromium: Browser) -> None:
    with open_table(chromium, town, "search=Concert") as page:
        opened: list[str] = []
        page.route("**/console/events/*", lambda route: (opened.append(route.request.url), route.fulfill(body="x")))
        page.keyboard.press("?")
        assert page.is_visible("[data-help]")
        page.keyboard.press("j")
        page.uncheck("[data-shortcuts]")
        page.keyboard.press("Escape")
        assert not page.is_visible("[data-help]")
        page.keyboard.press("c")
        page.keyboard.press("?")
        assert (opened, page.is_visible("[data-help]")) == ([], False)
        page.click("[data-help-button]")
        page.check("[data-shortcuts]")
        page.click("[data-help] button")
        page.keyboard.press("j")
        page.keyboard.press("e")
        page.wait_for_url("**/console/events/*")
        page.go_back()
        page.wait_for_selector(".bulk")
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("c")
        page.wait_for_url("**/console/events/new")
        assert len(opened) == 2


def test_table_works_without_script(town: Town, chromium: Browser) -> None:
    with open_table(chromium, town, "search=Concert", script=False) as page:
        page.check("tr:has-text('Concert 5') input")
        page.click("tr:has-text('Concert 6') .menu summary")
        assert page.is_visible("tr:has-text('Concert 6') .menu a")
        page.click("tr:has-text('Concert 6') .menu summary")
        page.click(".bulk-bar summary:has-text('Status')")
        page.click(".bulk-bar button[value=private]")
        page.wait_for_selector(".undo")
        assert town.count("private", "Concert") == 1
        page.click(".undo button")
        page.wait_for_selector("p.notice")
        assert town.count("private", "Concert") == 0
        # Enter in a checkbox must not run the first action.
        page.check("tr:has-text('Concert 5') input")
        page.press("tr:has-text('Concert 5') input", "Enter")
        page.wait_for_url("**/console/events?search=Concert")
        assert town.count("publish", "Concert") == 8
        page.fill("#search", "cancelled")
        page.click(".filter-form .buttons button")
        page.wait_for_url("**search=cancelled**")
        assert page.locator("[data-row]").count() == 1


@pytest.mark.parametrize(("width", "scheme"), some([(320, "light"), (1280, "dark"), (320, "dark"), (1280, "light")]))
def test_table_is_accessible_and_fits(town: Town, chromium: Browser, width: int, scheme: str) -> None:
    with open_table(chromium, town, width=width, scheme=scheme) as page:
        page.click("[data-all]")
        if width == 320:
            page.click(".filter-button")
        page.click(".more-filters summary")
        if width == 320:
            assert find_violations(page) == []
            page.keyboard.press("Escape")
        page.click("[data-row] .menu summary >> nth=-1")
        assert find_violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        display = page.eval_on_selector("[data-row]", "(row) => getComputedStyle(row).display")
        assert display == ("grid" if width == 320 else "table-row")
        if width == 320:
            heights = page.eval_on_selector_all(
                "main a, main button, main summary, main select, main input:not([type=checkbox], [type=hidden])",
                "all => all.filter((one) => one.checkVisibility()).map((one) => [one.getBoundingClientRect().height,"
                " one.outerHTML.slice(0, 120)]).filter(([height]) => height && height < 43.5)",
            )
            assert heights == []
        if scheme == "light":
            page.click(".bulk-bar > button")
            page.wait_for_selector(".confirm")
            assert find_violations(page) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_primary_action_changes_an_event_of_the_selection(town: Town, chromium: Browser) -> None:
    with open_table(chromium, town, "search=Concert") as page:  # All of them are published.
        page.click("[data-all]")
        assert page.locator(".bulk-bar > button").count() == 0
    with open_table(chromium, town) as page:
        primary = page.locator(".bulk-bar > [value=publish]")
        page.click("tr:has-text('Concert 1') input")
        assert not primary.is_visible()
        page.click("tr:has-text('Submission') input")
        assert primary.is_visible()


# The first page, and the navigation.


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_today_is_accessible_with_open_menus(town: Town, chromium: Browser, width: int, scheme: str) -> None:
    with open_table(chromium, town, width=width, scheme=scheme) as page:
        page.goto(f"{town.server.base_url}/console/")
        assert find_violations(page) == []
        if width == 390:
            page.click("[popovertarget=console-menu]")
        page.click(".console-account summary")
        assert page.get_by_role("button", name="Sign out").is_visible()
        assert find_violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_heights_of_header_and_first_event(town: Town, chromium: Browser) -> None:
    with open_table(chromium, town, width=1280) as page:
        assert page.locator(".console-header").bounding_box()["height"] <= 64  # type: ignore[index]
    with open_table(chromium, town, width=390) as page:
        assert page.locator("[data-row]").first.bounding_box()["y"] <= 320  # type: ignore[index]
        assert not page.locator("#search").is_visible()
        page.get_by_role("button", name="Filter").first.click()
        page.fill("#search", "Concert 3")
        page.keyboard.press("Enter")
        page.wait_for_url("**search=Concert+3**")
        assert page.locator("[data-row]").count() == 1


def test_phones_have_a_filter_without_script(town: Town, chromium: Browser) -> None:
    with open_table(chromium, town, width=390, script=False) as page:
        page.get_by_role("button", name="Filter").first.click()
        assert page.locator("#search").is_visible()


# One line to add an event.


def test_an_event_is_added_in_two_interactions(town: Town, chromium: Browser) -> None:
    with open_table(chromium, town) as page:
        page.goto(f"{town.server.base_url}/console/")
        effort = Effort(page)
        effort.fill("#quick-line", "Quiz of the year 24 Nov 2031 8pm Town Hall free #concerts")
        parts = page.locator(".quick-parts button")
        parts.nth(4).wait_for()
        assert parts.all_inner_texts() == ["24 Nov 2031 ×", "8pm ×", "Town Hall ×", "Free ×", "#Concerts ×"]
        assert find_violations(page) == []
        effort.press("Enter")
        page.wait_for_url("**/console/?added=*")
        assert effort.interactions == 2
        assert town.count("draft", "Quiz of the year") == 1
        page.get_by_role("link", name="Open the event").click()
        assert page.input_value("#venue") == "Town Hall"


def test_a_part_is_removed_and_the_event_published_by_keyboard(town: Town, chromium: Browser) -> None:
    with open_table(chromium, town) as page:
        page.fill("#quick-line", "Night of the museums 25 Nov 2031 8pm Town Hall")
        page.get_by_role("button", name="Remove Town Hall").click()
        page.get_by_role("button", name="Remove Town Hall").wait_for(state="detached")
        assert page.input_value("#quick-line") == "Night of the museums 25 Nov 2031 8pm"
        page.keyboard.press("Control+Enter")
        page.wait_for_url("**/console/events?added=*")
        assert town.count("publish", "Night of the museums") == 1

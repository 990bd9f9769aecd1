"""The queue in Chromium: effort by keyboard and without script, the selection, layout and accessibility."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Browser, Page

from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.console.console_client import set_passwords
from tests.console.form_browser import add_session
from tests.pages.browser_page import find_violations, open_browser_page
from tests.pages.conftest import chromium
from tests.proposals.proposals_client import ProposalsClient, add_picture, send_draft, set_columns
from tests.proposals.queue_client import make_mixed_entries, make_values
from tests.servers import Server
from tests.soak import some

__all__ = ["chromium"]
TEXT = "<p>The choir sings songs from four centuries.</p><p>Doors open at half past six.</p>"
# A picture of one pixel.
WEBP = bytes.fromhex("524946461a000000574542505650384c0d0000002f00000010071011118888fe0700")


@dataclass
class Desk:
    """A server with a queue."""

    database_url: str
    server: Server
    keys: list[str]

    def states(self, *numbers: int) -> list[str]:
        """Return the states of entries, read without the application, whose event loop cannot run now."""
        found: list[str] = []
        with psycopg.connect(self.database_url) as connection:
            for key in (self.keys[number] for number in numbers):
                query = """SELECT status FROM events WHERE id::text = %s
                    UNION SELECT state FROM proposals WHERE id::text = %s"""
                found += [row[0] for row in connection.execute(query, [key, key])]
        return found


Prepare = Callable[[RunningApp], list[str]]


@contextmanager
def start_desk(start_site: StartApp, start_server: Callable[..., Server], prepare: Prepare) -> Iterator[Desk]:
    """Start a server with the entries that a function makes, before Playwright runs."""
    app = start_site()
    set_passwords(app)
    app.set_site("timezone", "Europe/Berlin")
    keys = prepare(app)
    server = start_server(app.database_url)
    yield Desk(app.database_url, server, keys)
    server.stop()


@contextmanager
def open_queue(
    chromium: Browser, desk: Desk, path: str = "", *, login: str = "editor", script: bool = True, width: int = 1280,
    scheme: str = "light",
) -> Iterator[Page]:  # fmt: skip
    """Open the queue; fail on any message of the console of the browser."""
    options: dict[str, Any] = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    with open_browser_page(chromium, script=script, base_url=desk.server.base_url, **options) as browser:
        add_session(browser.page.context, desk.server, login)
        browser.page.goto(f"/console/queue{path}")
        yield browser.page
        assert browser.errors == []


class Effort:
    """Counts the keys and clicks of an editor, without the text of comments."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.interactions = 0

    def press(self, key: str, *, leads_on: bool = False) -> None:
        """Press a key; wait for the next page if the key leads there."""
        self.interactions += 1
        if leads_on:
            with self.page.expect_navigation():
                self.page.keyboard.press(key)
        else:
            self.page.keyboard.press(key)

    def click(self, selector: str, *, leads_on: bool = False) -> None:
        self.interactions += 1
        if leads_on:
            with self.page.expect_navigation():
                self.page.click(selector)
        else:
            self.page.click(selector)

    def take(self) -> int:
        taken, self.interactions = self.interactions, 0
        return taken


@dataclass(frozen=True)
class Desks:
    """Servers with a queue each, because decisions change it."""

    long: Desk
    plain: Desk
    full: Desk


@pytest.fixture(scope="module")
def desks(start_single_site_for_module: StartApp, start_server: Callable[..., Server]) -> Iterator[Desks]:
    def start(prepare: Prepare) -> Desk:
        return stack.enter_context(start_desk(start_single_site_for_module, start_server, prepare))

    with ExitStack() as stack:
        yield Desks(
            long=start(lambda app: make_mixed_entries(app, 50)),
            plain=start(lambda app: make_mixed_entries(app, 15)),
            full=start(make_full_entries),
        )


def make_full_entries(app: RunningApp) -> list[str]:
    """Make entries with all that an entry can show: an agent's, one of the public form, a change, a returned one."""
    editor, contributor = app.caller("editor"), app.caller("contributor")
    hall = editor.create("venues", venue="Town Hall", city="Ghent")["id"]
    editor.create("events", **make_values("Spring concert of the choir", venue=[hall]))
    values = make_values("Spring concert by the choir of Saint Bavo", venue=hall, cost="12", description=TEXT)
    facts = {"source": "https://choir.example/poster", "note": "The poster doesn’t say when it ends."}
    agent = send_draft(app, "agent", values=values, program="Posters", guessed=["cost", "end_date"], **facts)
    values = make_values("Spring concerts of the choir", 2, venue={"venue": "Old Barn"})
    public = send_draft(app, "public", values=values, submitter_name="Rosa Peeters", note="See the picture")
    add_picture(app, public, WEBP, "A poster")
    author = app.users["contributor"].id
    values = make_values("Summer night at the museum", 3, venue=[hall], description=TEXT, cost="5", author=author)
    event = editor.create("events", **values)
    change = ProposalsClient(contributor).propose_change(
        event, title="Summer night at the town museum", description=TEXT.replace("half past six", "seven"), cost="7"
    )["id"]
    other = editor.create("events", **make_values("Reading", 4, author=author))
    returned = ProposalsClient(contributor).propose_change(other, title="Reading at the library")["id"]
    set_columns(app, returned, state="returned", comment="Which library?", decided_by=app.users["editor"].id)
    app.sql("UPDATE proposals SET decided_at = now() WHERE id = $1", returned)
    series = make_values("Dancing", 5, rule="FREQ=WEEKLY;COUNT=4", status="pending")
    assert contributor.post("//api/kalends/v1/series", series).status_code == 201
    pending = contributor.create("events", **make_values("Pub quiz", 6), status="pending")
    return [agent, public, change, returned, str(pending["id"]), str(event["id"])]


# Effort ---------------------------------------------------------------------------------------------


def test_fifty_mixed_entries_are_decided_by_keyboard(
    desks: Desks, chromium: Browser, report: Callable[[object], None]
) -> None:
    with open_queue(chromium, desks.long) as page:
        effort, counts = Effort(page), {"accept": set[int](), "reject": set[int](), "return": set[int]()}
        for number in range(50):
            assert page.locator("[data-row]").count() == 50 - number
            action = ("accept", "accept", "reject", "accept", "return")[number % 5]
            if action == "accept":
                effort.press("a", leads_on=True)
            elif action == "reject":
                effort.press("r")
                effort.press(str(1 + number % 6), leads_on=True)
            else:
                effort.press("b")
                page.keyboard.type("Which hall?")
                effort.press("Control+Enter", leads_on=True)
            counts[action].add(effort.take())
        assert page.inner_text(".empty-state").strip() == "All done. Nothing is waiting for you."
    report(f"queue of 50 entries: keys {counts}")
    assert counts == {"accept": {1}, "reject": {2}, "return": {2}}
    words = {"publish": "accept", "accepted": "accept", "trash": "reject", "rejected": "reject"}
    decided = Counter(words.get(state, "return") for state in desks.long.states(*range(50)))
    assert decided == {"accept": 30, "reject": 10, "return": 10}


def test_entries_are_decided_without_script(
    desks: Desks, chromium: Browser, report: Callable[[object], None]
) -> None:
    with open_queue(chromium, desks.plain, script=False) as page:
        effort, counts = Effort(page), {"accept": set[int](), "reject": set[int](), "return": set[int]()}
        for number in range(9):
            action = ("accept", "reject", "return")[number % 3]
            if action == "accept":
                effort.click("[data-accept]", leads_on=True)
            elif action == "reject":
                effort.click("[data-reject] summary")
                effort.click("[data-reason='3']", leads_on=True)
            else:
                effort.click("[data-return] summary")
                page.fill("#comment", "Which hall?")
                effort.click("[data-return] button", leads_on=True)
            counts[action].add(effort.take())
            assert page.locator("[data-row]").count() == 14 - number
        page.click("[data-undo]")
        page.wait_for_selector(".saved-notice")
        assert page.locator("[data-row]").count() == 7
        for box in page.locator("[data-row] input").all():
            box.check()
        # Enter in a checkbox must not decide.
        page.locator("[data-row] input").first.press("Enter")
        assert page.locator("[data-row]").count() == 7
        for box in page.locator("[data-row] input").all():
            box.check()
        page.click("[data-selected]")
        page.wait_for_selector(".empty-state")
        page.click("[data-undo]")
        page.wait_for_selector(".saved-notice")
        assert page.locator("[data-row]").count() == 7
    report(f"queue without script: clicks {counts}")
    assert counts == {"accept": {1}, "reject": {2}, "return": {2}}


# Keys -----------------------------------------------------------------------------------------------


def test_keys_move_select_and_undo(desks: Desks, chromium: Browser) -> None:
    with open_queue(chromium, desks.plain) as page:
        titles = page.locator(".queue-title").all_inner_texts()

        def press(key: str, heading: str = "") -> None:
            if heading:
                with page.expect_navigation():
                    page.keyboard.press(key)
                assert page.inner_text("#entry-title") == heading
            else:
                page.keyboard.press(key)

        press("j", titles[1])
        press("x")
        press("j", titles[2])
        press("x")
        press("k", titles[1])
        assert page.inner_text("[data-count]") == "2 entries selected"
        press("a", titles[0])
        assert page.inner_text(".undo p") == "2 entries decided."
        assert page.locator("[data-row] input:checked").count() == 0
        assert page.locator("[data-row]").count() == len(titles) - 2
        press("u", titles[1])
        assert page.locator("[data-row]").count() == len(titles)
        # Keys that are pressed in a comment are text.
        press("b")
        page.keyboard.type("aj5?")
        assert page.input_value("#comment") == "aj5?"
        page.keyboard.press("Escape")
        assert not page.is_visible("#comment")
        press("5")
        assert page.inner_text("#entry-title") == titles[1]
        page.keyboard.press("?")
        assert page.is_visible("[data-help]")
        assert find_violations(page) == []
        page.keyboard.press("Escape")
        press("e")
        page.wait_for_url("**/console/*/*")
        assert page.input_value("#title") == titles[1]


def test_two_quick_presses_decide_once(desks: Desks, chromium: Browser) -> None:
    with open_queue(chromium, desks.plain) as page:
        number = page.locator("[data-row]").count()
        with page.expect_navigation():
            page.evaluate(
                "for (const key of ['a', 'a', 'x', 'a'])"
                " document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}))"
            )
        assert page.locator("[data-row]").count() == number - 1
        page.keyboard.press("u")
        page.wait_for_selector(".saved-notice")
        assert page.locator("[data-row]").count() == number


def test_outdated_entry_is_shown_with_a_message(desks: Desks, chromium: Browser) -> None:
    path = f"/{desks.full.keys[0]}"
    with open_browser_page(chromium, base_url=desks.full.server.base_url) as browser:
        add_session(browser.page.context, desks.full.server, "editor")
        browser.page.goto(f"/console/queue{path}")
        with psycopg.connect(desks.full.database_url) as connection:
            connection.execute("UPDATE proposals SET version = version + 1 WHERE id = %s", [desks.full.keys[0]])
        browser.page.keyboard.press("a")
        browser.page.wait_for_selector("[role=alert]")
        assert browser.page.inner_text("[role=alert] p").startswith("The record has been modified")
        assert browser.page.inner_text("#entry-title") == "Spring concert by the choir of Saint Bavo"
        assert find_violations(browser.page) == []
        # Chromium reports the status 412.
        assert len(browser.errors) == 1
    assert desks.full.states(0) == ["waiting"]


def test_preview_opens_in_a_frame(desks: Desks, chromium: Browser) -> None:
    with open_queue(chromium, desks.full, f"/{desks.full.keys[0]}") as page:
        page.click("[data-preview]")
        frame = page.frame_locator("#preview-dialog iframe")
        assert frame.locator("h1").inner_text() == "Spring concert by the choir of Saint Bavo"
        page.click("#preview-dialog button")
        page.keyboard.press("j")
        page.wait_for_url(f"**/{desks.full.keys[1]}")


# Layout ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "scheme"), some([(390, "light"), (1280, "dark"), (320, "dark"), (1280, "light")]))
def test_pages_of_editors_are_accessible_and_fit(desks: Desks, chromium: Browser, width: int, scheme: str) -> None:
    agent, public, change, returned, pending, _ = desks.full.keys
    paths = ("", "?state=decided", f"/{agent}", f"/{public}", f"/{change}", f"/{returned}", f"/{pending}")
    with open_queue(chromium, desks.full, width=width, scheme=scheme) as page:
        for path in (*paths, f"/{agent}/edit"):
            page.goto(f"/console/queue{path}")
            check_page(page, path, width)
        page.goto(f"/console/queue/{agent}")
        for key in "rb":
            page.keyboard.press(key)
            check_page(page, key, width)
        if width == 1280:
            page.keyboard.press("Escape")
            page.locator("h1").click()
            page.keyboard.press("x")
            assert page.locator("[data-selected]").is_visible()
            check_page(page, "x", width)
        else:
            assert not page.locator("[data-row]").first.is_visible()
            page.get_by_role("link", name="All proposals").click()
            assert page.locator("[data-row]").first.is_visible()
            assert not page.locator("#entry-title").is_visible()


@pytest.mark.parametrize(("width", "scheme"), some([(390, "dark"), (1280, "light"), (320, "light")]))
def test_pages_of_senders_are_accessible_and_fit(desks: Desks, chromium: Browser, width: int, scheme: str) -> None:
    _, _, change, returned, pending, event = desks.full.keys
    with open_queue(chromium, desks.full, login="contributor", width=width, scheme=scheme) as page:
        for path in ("", f"/{change}", f"/{returned}", f"/{pending}", f"/{returned}/edit"):
            page.goto(f"/console/queue{path}")
            check_page(page, path, width)
        page.goto(f"/console/events/{event}")
        page.wait_for_url("**/propose")
        assert page.input_value("#title") == "Summer night at the town museum"
        check_page(page, "propose", width)


def check_page(page: Page, name: str, width: int) -> None:
    assert find_violations(page) == [], name
    assert page.evaluate("document.documentElement.scrollWidth") <= width, name


def test_sender_proposes_and_answers_without_script(desks: Desks, chromium: Browser) -> None:
    with open_queue(chromium, desks.full, login="contributor", script=False) as page:
        assert "Which library?" in page.inner_text(".queue-list")
        page.click(".queue-list a:has-text('Reading at the library')")
        page.click("[data-edit]")
        page.fill("#title", "Reading at the town library")
        page.fill("#note", "I added the town")
        page.click(".form-actions button")
        page.wait_for_selector(".saved-notice")
        assert "Waiting for review" in page.inner_text(".entry-head")
    assert desks.full.states(3) == ["waiting"]

"""People and settings in Chromium: interactions, layout, accessibility, and the live preview."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from playwright.sync_api import Browser, expect

from kalends.accounts.operations.sign_in_methods import Purpose, create_link_token
from kalends.core.times import utc_now
from kalends.store.database import Database, Options
from tests.api.running_app import User
from tests.conftest import replace_database, temporary_database
from tests.console.console_browser import open_console, set_passwords
from tests.console.console_client import PASSWORD
from tests.servers import Server
from tests.soak import some

MAX_INVITE_INTERACTIONS = 5


@pytest.fixture(scope="module")
def database(postgres_url: str, user_template: tuple[str, dict[str, User]]) -> Iterator[str]:
    with temporary_database(postgres_url, template=user_template[0]) as name:
        url = replace_database(postgres_url, name)
        set_passwords(url)
        yield url


@pytest.fixture(scope="module")
def server(database: str, start_server: Callable[..., Server]) -> Iterator[Server]:
    with start_server(database) as server:
        yield server


def read_site(database: str) -> tuple[object, ...]:
    with psycopg.connect(database) as connection:
        row = connection.execute(
            "SELECT revision, accent, second_accent, fonts, custom_css_hash FROM sites"
        ).fetchone()
    assert row
    return row


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_person_is_invited_with_few_interactions(server: Server, chromium: Browser, *, script: bool) -> None:
    with open_console(chromium, server, script=script) as console:
        console.sign_in("administrator")
        console.open("/console/people")
        console.click("text=Invite someone")
        console.fill("#login", f"new-{script}@example.org")
        console.click("input[value=contributor]")
        console.click("text=Create the invitation")
        link = console.page.input_value("#link")
        assert link.startswith(f"{server.base_url}/console/link/")
        assert console.interactions <= MAX_INVITE_INTERACTIONS
        accept(chromium, server, link, script=script)
        console.click("text=Back to the people")
        console.click(f"text=new-{script} >> nth=0")
        console.click("input[value=editor]")
        console.click("text=Save the role")
        expect(console.page.locator(".notice")).to_have_text("Saved.")
        console.click("button:text-is('Disable')")
        expect(console.page.locator(".badge").first).to_have_text("Disabled")
        console.click("button:text-is('Enable')")
        expect(console.page.locator(".badge").first).to_have_text("Active")


def accept(chromium: Browser, server: Server, link: str, *, script: bool) -> None:
    """Open an invitation in another browser, and choose a password."""
    with open_console(chromium, server, script=script) as invited:
        invited.page.goto(link)
        invited.page.fill("#password", PASSWORD)
        invited.page.click("text=Set password and sign in")
        expect(invited.page.locator(".console-account")).to_contain_text("Sign out")
        invited.ignore_statuses()  # The list of events, which comes first, may not exist.


SETTINGS_PAGES = ("/console/settings", "/console/settings/appearance")
PEOPLE_PAGES = ("/console/people", "/console/people/new", "/console/people/1", "/console/people/5")


@pytest.mark.parametrize(
    ("width", "scheme", "paths"),
    some(
        [
            pytest.param(320, "light", (*PEOPLE_PAGES, *SETTINGS_PAGES), id="320-light"),
            pytest.param(1280, "dark", (*PEOPLE_PAGES, *SETTINGS_PAGES), id="1280-dark"),
            pytest.param(320, "dark", SETTINGS_PAGES, id="320-dark"),
            pytest.param(1280, "light", SETTINGS_PAGES, id="1280-light"),
        ]
    ),
)
def test_pages_are_accessible(
    server: Server, chromium: Browser, width: int, scheme: str, paths: tuple[str, ...]
) -> None:
    faults: dict[str, list[str]] = {}
    options = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, "bypass_csp": True}
    with open_console(chromium, server, **options) as console:
        console.sign_in("administrator")
        for path in paths:
            console.open(path)
            for details in console.page.locator("main details:not([open]) summary").all():
                details.click()
            faults[path] = console.find_faults()
        console.open("/console/people/new")
        console.page.fill("#login", "editor@example.org")
        console.page.click("main form button")
        faults["errors"] = console.find_faults()
        console.ignore_statuses()  # The page with the error has the status 400.
    assert not any(faults.values()), faults


def test_preview_follows_the_form_and_saves_nothing(server: Server, chromium: Browser, database: str) -> None:
    before = read_site(database)
    with open_console(chromium, server, viewport={"width": 1280, "height": 900}) as console:
        console.sign_in("administrator")
        console.open("/console/settings/appearance")
        entries = console.page.evaluate("history.length")
        frame = console.page.frame_locator("#preview")
        expect(frame.locator("header.site")).to_be_visible()
        console.page.fill("#accent", "#ffff00")
        expect(console.page.locator("[data-notes=accent] li").first).to_contain_text("links will use #707000")
        expect(frame.locator("link[href*='.ffff00.css']")).to_be_attached()
        console.page.select_option("#fonts", "rounded")
        expect(frame.locator("link[href*='.ffff00.rounded.css']")).to_be_attached()
        console.page.click("summary:text-is('Custom CSS')")
        console.page.fill("#custom_css", "header.site { display: none }")
        expect(frame.locator("header.site")).to_be_hidden()
        console.page.fill("#second_accent", "#aa0000")
        expect(frame.locator("link[href*='.ffff00-aa0000.rounded.css']")).to_be_attached()
        expect(frame.locator("header.site")).to_be_hidden()
        assert console.page.evaluate("history.length") == entries
        assert read_site(database) == before
        console.page.click("#save")
        expect(console.page.locator(".notice")).to_have_text("Saved.")
    after = read_site(database)
    assert after[1:4] == ("#ffff00", "#aa0000", "rounded")
    assert after[0] == before[0] + 1  # type: ignore[operator]


def test_settings_work_without_script(server: Server, chromium: Browser, database: str) -> None:
    with open_console(chromium, server, script=False, viewport={"width": 1280, "height": 900}) as console:
        console.sign_in("administrator")
        console.open("/console/settings/appearance")
        before = read_site(database)
        console.page.fill("#accent", "#0000ff")
        console.page.click("#preview-button")
        frame = console.page.frame_locator("#preview")
        expect(frame.locator("link[href*='.0000ff']")).to_be_attached()
        assert read_site(database) == before
        console.page.click("#save")
        expect(console.page.locator(".notice")).to_have_text("Saved.")
        assert read_site(database)[1] == "#0000ff"
        console.open("/console/settings")
        console.page.fill("#name", "Harrow")
        console.page.click("text=Save >> nth=-1")
        expect(console.page.locator(".console-name")).to_have_text("Harrow")


def make_sign_in_link(database: str, user_id: int) -> str:
    """Return the path of a link, made in a thread because Playwright has an event loop of its own."""

    async def make() -> str:
        opened = await Database.open(Options(url=database))
        try:
            async with opened.transaction("127.0.0.1", utc_now(), writing=True) as tx:
                return await create_link_token(tx, user_id, Purpose.SIGN_IN)
        finally:
            await opened.close()

    with ThreadPoolExecutor(1) as threads:
        return f"/console/link/{threads.submit(asyncio.run, make()).result()}"


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_sign_in_link_says_what_its_button_does(
    server: Server, chromium: Browser, database: str, *, script: bool
) -> None:
    login, password = ("author", "a good password") if script else ("contributor", "")
    with psycopg.connect(database) as connection:
        row = connection.execute("SELECT id FROM users WHERE login = %s", [login]).fetchone()
    assert row
    link = make_sign_in_link(database, row[0])
    with open_console(chromium, server, script=script, viewport={"width": 390, "height": 844}) as console:
        console.open(link)
        page = console.page
        button = page.locator("main form button")
        expect(button).to_have_text("Sign in", use_inner_text=True)
        page.focus("#password")
        page.keyboard.type(password)
        page.keyboard.press("Tab")
        expect(button).to_be_focused()
        expect(button).to_have_text("Set password and sign in" if password else "Sign in", use_inner_text=True)
        assert page.get_by_role("button", name="Set password and sign in").count() == bool(password)
        page.keyboard.press("Enter")
        page.wait_for_url("**/console/")


BOXES = """() => [...document.querySelectorAll('input[type=checkbox], input[type=radio]')]
    .filter((box) => box.checkVisibility() && box.getClientRects().length)
    .map((box) => [getComputedStyle(box).accentColor, box.offsetWidth, box.offsetHeight])"""


def test_all_boxes_have_the_accent_and_one_size(server: Server, chromium: Browser) -> None:
    paths = (
        "/console/events/new",
        "/console/people/new",
        "/console/settings",
        "/console/venues/new",
        "/events/search/",
    )
    with open_console(chromium, server, viewport={"width": 1280, "height": 900}) as console:
        console.sign_in("administrator")
        for path in paths:
            console.open(path)
            console.page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
            boxes = console.page.evaluate(BOXES)
            assert boxes, path
            accent = console.page.evaluate("getComputedStyle(document.documentElement).accentColor")
            assert accent.startswith("rgb")
            assert {tuple(box) for box in boxes} == {(accent, 19, 19)}, path

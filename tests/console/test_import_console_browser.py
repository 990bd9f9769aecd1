"""Imports in Chromium with a worker process: a file becomes events, by mouse, by keyboard, without script."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.api.running_app import API_PATH, User
from tests.conftest import replace_database, temporary_database
from tests.console.form_browser import open_console, prepare_site
from tests.console.test_import_console import make_calendar
from tests.console.test_series_console_browser import Keyboard, Mouse
from tests.lifecycle.processes import Worker
from tests.pages.browser_page import find_violations
from tests.servers import Server

# A worker takes a second to begin, and much longer on a busy machine.
TIMEOUT = 60_000


@pytest.fixture(scope="module")
def database(postgres_url: str, user_template: tuple[str, dict[str, User]]) -> Iterator[str]:
    template, _ = user_template
    with temporary_database(postgres_url, template=template) as name:
        url = replace_database(postgres_url, name)
        prepare_site(url, timezone="Europe/Berlin", name="Lindenstadt")
        yield url


@pytest.fixture(scope="module")
def server(
    database: str, start_server: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Start a server and a worker."""
    started = start_server(database)
    with Worker.start(database, tmp_path_factory.mktemp("worker") / "log"):
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


@pytest.fixture
def calendar(tmp_path: Path) -> Path:
    path = tmp_path / "events.ics"
    path.write_bytes(
        make_calendar(
            *[(f"{number}@x", f"203101{number:02}", f"Talk {number}") for number in range(10, 15)],
            ("bad@x", "20310199", "Broken day"),
        )
    )
    return path


def count_events(api: httpx.Client) -> int:
    query = {"start_date": "2031-01-01", "end_date": "2032-01-01", "status": "draft", "search": "Talk"}
    total: int = api.get(f"{API_PATH}/events", params=query).json()["total"]
    return total


def expect_state(page: Page, state: str) -> None:
    expect(page.locator(".page-head .badge").first).to_have_text(state, timeout=TIMEOUT)


def find_faults(page: Page) -> list[str]:
    """Return what axe finds at two widths, and whether the page scrolls sideways."""
    faults: list[str] = []
    for width in (320, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        faults += find_violations(page)
        if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            faults.append(f"scrolls sideways at {width}")
    return faults


@pytest.mark.parametrize("kind", [Mouse, Keyboard])
def test_file_is_imported_in_part_and_undone(
    server: Server, browser: Browser, api: httpx.Client, calendar: Path, kind: type[Mouse]
) -> None:
    with open_console(browser, server) as opened:
        page, person = opened.page, kind(opened.page)
        page.goto("/console/events")
        person.press("nav a:has-text('Imports')")
        person.press(".page-head a.button")
        page.fill("#name", f"Talks by {kind.__name__}")
        page.set_input_files("#file", calendar)
        assert find_faults(page) == []
        person.press(".save-bar button")
        expect_state(page, "Waiting for you")
        opened.errors.clear()  # The styles that axe tries are against the policy.
        expect(page.locator(".plan tbody tr")).to_have_count(6)
        expect(page.locator("tr.is-rejected .line")).to_be_visible()
        assert count_events(api) == 0
        person.press("tbody [name=rows] >> nth=1")
        expect(page.locator("[data-selected]")).to_have_text(" (1)")
        assert find_faults(page) == []
        person.press(".save-bar [value=selected]")
        expect(page.locator("tr:has-text('Talk 11') .badge")).to_have_text(["New", "Applied"], timeout=TIMEOUT)
        assert count_events(api) == 1
        opened.errors.clear()
        person.press(".save-bar [value=all]")
        expect_state(page, "Applied")
        assert count_events(api) == 5
        person.press(".plan-filters a:has-text('Rejected')")
        expect(page.locator(".plan tbody tr")).to_have_count(1)
        person.press(".undo-run button")
        expect_state(page, "Waiting for you")
        expect(page.locator("h1")).to_have_text("Undo of an import")
        person.press("[data-all]")
        expect(page.locator("[data-selected]")).to_have_text(" (5)")
        person.press(".save-bar [value=all]")
        expect_state(page, "Applied")
        assert count_events(api) == 0
        assert find_faults(page) == []
        opened.errors.clear()


def test_page_refreshes_itself_without_script(server: Server, browser: Browser, calendar: Path) -> None:
    with open_console(browser, server, script=False) as opened:
        page = opened.page
        page.goto("/console/imports/new")
        page.fill("#name", "Without script")
        page.set_input_files("#file", calendar)
        page.click(".save-bar button")
        expect_state(page, "Waiting for you")
        page.click("tbody [name=rows] >> nth=0")
        page.click(".save-bar [value=selected]")
        expect(page.locator("tbody .badge:has-text('Applied')")).to_have_count(1, timeout=TIMEOUT)
        page.click(".more-actions button")
        expect_state(page, "Applied")


def test_progress_is_shown_without_reloading(server: Server, browser: Browser, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO import_sources (site_id, id, kind, name, created_at) VALUES (1, 900, 'ical', 'Slow', now())"
        )
        connection.execute(
            "INSERT INTO import_runs (site_id, id, source_id, state, started_at) "
            "VALUES (1, 900, 900, 'applying', now())"
        )
        with open_console(browser, server) as opened:
            page = opened.page
            page.goto("/console/imports/runs/900")
            page.evaluate("window.isSame = true")
            for done in (1, 4):
                progress = f'{{"done": {done}, "total": 5}}'
                connection.execute("UPDATE import_runs SET progress = %s WHERE id = 900", [progress])
                expect(page.locator(".run-progress [role=status]")).to_have_text(f"{done} of 5 rows")
                assert page.evaluate("document.querySelector('progress').value") == done
            assert page.evaluate("window.isSame")
            connection.execute("UPDATE import_runs SET state = 'applied' WHERE id = 900")
            expect_state(page, "Applied")

"""A server with the calendar of a small town, and Chromium."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.api.conftest import start_app, start_app_for_module
from tests.api.running_app import RunningApp, User
from tests.conftest import replace_database, temporary_database
from tests.feeds.conftest import ical_js
from tests.pages.demo_calendar import DemoCalendar, build_demo_calendar
from tests.servers import Server

__all__ = ["ical_js", "start_app", "start_app_for_module"]

CHROMIUM = os.environ.get("KALENDS_CHROMIUM", "/usr/bin/chromium")


@pytest.fixture
def app(shared_app_with_purges: RunningApp) -> RunningApp:
    started = shared_app_with_purges.add_site()
    started.set_site("timezone", "Europe/Berlin")
    return started


@pytest.fixture(scope="session")
def demo_calendar(
    postgres_url: str, user_template: tuple[str, dict[str, User]], start_server: Callable[..., Server]
) -> Iterator[DemoCalendar]:
    """Return a calendar that all tests read and none changes."""
    template, users = user_template
    with temporary_database(postgres_url, template=template) as name:
        url = replace_database(postgres_url, name)
        server = start_server(url)
        town = build_demo_calendar(server, url, users["editor"])
        yield town
        town.editor.close()
        server.stop()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Start Chromium per module: while Playwright runs, no other test of the process can run an event loop."""
    assert Path(CHROMIUM).exists(), f"{CHROMIUM} is missing: apt-get install chromium, or set KALENDS_CHROMIUM"
    # On a busy machine, an upload or a request of a page can take longer than the default of five seconds.
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()

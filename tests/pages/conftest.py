"""A real server with a small town's calendar, and a real Chromium that looks at it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.api.conftest import Start, fresh, fresh_for_module, peopled
from tests.api.running_app import Interface, Person
from tests.conftest import address, temporary_database
from tests.pages.demo_calendar import Town, build_town
from tests.servers import Server

__all__ = ["fresh", "fresh_for_module", "peopled"]

CHROMIUM = os.environ.get("KALENDS_CHROMIUM", "/usr/bin/chromium")


@pytest.fixture
def interface(fresh: Start) -> Interface:
    started = fresh({"KALENDS_PURGE_URLS": "http://127.0.0.1:9/"})
    started.set_site("timezone", "Europe/Berlin")
    return started


@pytest.fixture(scope="session")
def town(
    postgres_url: str, peopled: tuple[str, dict[str, Person]], start_server: Callable[..., Server]
) -> Iterator[Town]:
    """Read by all tests, changed by none."""
    template, people = peopled
    with temporary_database(postgres_url, template=template) as name:
        url = address(postgres_url, name)
        server = start_server(url)
        town = build_town(server, url, people["editor"])
        yield town
        town.editor.close()
        server.stop()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Not for the session: while Playwright runs, no other test of the process can run a loop of its own."""
    assert Path(CHROMIUM).exists(), f"{CHROMIUM} is missing: apt-get install chromium, or set KALENDS_CHROMIUM"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()

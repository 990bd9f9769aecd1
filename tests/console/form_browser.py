"""A browser that is signed in to the console of a server process, and counts the interactions of a person."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from kalends.core.clock import utc_now
from kalends.operations import accounts, sites
from kalends.store.database import Database, Options
from tests.api.running_app import HOST, ROLES
from tests.console.console_client import PASSWORD
from tests.pages.browser_page import BrowserPage, open_browser_page
from tests.servers import Server


def prepare_site(database_url: str, **settings: str) -> None:
    """Give every account a password and change settings of the site. Call this before Playwright starts."""

    async def prepare() -> None:
        database = await Database.open(Options(url=database_url))
        try:
            async with database.transaction(HOST, utc_now(), writing=True) as tx:
                for role in ROLES:
                    await accounts.set_account_password(tx, role, PASSWORD)
                for key, value in settings.items():
                    await sites.set_site(tx, key, value)
        finally:
            await database.close()

    asyncio.run(prepare())


@contextmanager
def open_console(
    chromium: Browser, server: Server, login: str = "editor", *, script: bool = True, **options: Any
) -> Iterator[BrowserPage]:
    """Yield a page that is signed in. The test fails if the browser reports any error."""
    with open_browser_page(chromium, script=script, base_url=server.base_url, **options) as browser:
        page = browser.page
        page.set_default_timeout(30_000)
        page.goto("/console/sign-in?next=/console/account")
        page.fill("#login", login)
        page.fill("#password", PASSWORD)
        page.click("main button")
        page.goto("about:blank")
        browser.errors.clear()
        yield browser
        assert browser.errors == []


@dataclass
class Person:
    """Somebody who uses a page: each click, each field filled and each file chosen is one interaction."""

    page: Page
    interactions: int = 0

    def click(self, selector: str) -> None:
        self.interactions += 1
        self.page.click(selector)

    def fill(self, selector: str, text: str) -> None:
        self.interactions += 1
        self.page.fill(selector, text)

    def choose_file(self, selector: str, path: Path) -> None:
        self.interactions += 1
        self.page.set_input_files(selector, path)

"""A browser that uses the console of a server process. Every console error, CSP or Trusted Types report is kept."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, Page

from kalends.core.times import utc_now
from kalends.store.database import Database, Options
from tests.console.console_client import PASSWORD, set_all_passwords
from tests.pages.browser_page import find_violations, record_errors
from tests.servers import Server


@dataclass
class ConsoleBrowser:
    page: Page
    base_url: str
    problems: list[str] = field(default_factory=list[str])
    interactions: int = 0

    def open(self, path: str) -> None:
        self.page.goto(self.base_url + path)

    def sign_in(self, login: str, password: str = PASSWORD) -> None:
        self.open("/console/sign-in?next=/console/people")
        self.page.fill("#login", login)
        self.page.fill("#password", password)
        self.page.click("main form button")

    def click(self, selector: str) -> None:
        self.interactions += 1
        self.page.click(selector)

    def fill(self, selector: str, text: str) -> None:
        self.interactions += 1
        self.page.fill(selector, text)

    def ignore_statuses(self) -> None:
        """Ignore the reports of Chromium on error statuses of pages, and no others."""
        self.problems = [text for text in self.problems if not text.startswith("Failed to load resource")]

    def find_faults(self) -> list[str]:
        """Return the violations that axe finds, and whether the page scrolls sideways."""
        wide = self.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        return [*find_violations(self.page), *(["scrolls sideways"] if wide else [])]


@contextmanager
def open_console(
    chromium: Browser, server: Server, *, script: bool = True, **options: Any
) -> Iterator[ConsoleBrowser]:
    """Open a browser of its own, and fail at the end if it has reported a problem."""
    context = chromium.new_context(java_script_enabled=script, **options)
    page = context.new_page()
    browser = ConsoleBrowser(page, server.base_url)
    record_errors(page, browser.problems)
    try:
        yield browser
        assert browser.problems == [], browser.problems
    finally:
        context.close()


def set_passwords(database_url: str, logins: tuple[str, ...] = ("administrator", "editor")) -> None:
    """Give accounts the password of the tests. Playwright must not run yet, because it has an event loop."""

    async def set_all() -> None:
        database = await Database.open(Options(url=database_url))
        try:
            async with database.transaction("127.0.0.1", utc_now(), writing=True) as tx:
                await set_all_passwords(tx, logins)
        finally:
            await database.close()

    asyncio.run(set_all())

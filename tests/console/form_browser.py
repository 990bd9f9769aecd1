"""A browser that is signed in to the console of a server process, and counts the interactions of a person."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, BrowserContext, Page

from kalends.calendar.operations import site_options
from kalends.core.times import utc_now
from kalends.http.auth import COOKIE
from kalends.store.database import Database, Options
from tests.api.running_app import HOST
from tests.console.console_client import PASSWORD, set_all_passwords
from tests.pages.browser_page import BrowserPage, open_browser_page
from tests.servers import Server


def prepare_site(database_url: str, **settings: str) -> None:
    """Give every account a password and change settings of the site. Call this before Playwright starts."""

    async def prepare() -> None:
        database = await Database.open(Options(url=database_url))
        try:
            async with database.transaction(HOST, utc_now(), writing=True) as tx:
                await set_all_passwords(tx)
                for key, value in settings.items():
                    await site_options.set_site(tx, key, value)
        finally:
            await database.close()

    asyncio.run(prepare())


@cache
def sign_in(server: Server, login: str) -> str:
    """Sign in once per server and account, and return the token of the session."""
    fields = {"login": login, "password": PASSWORD}
    headers = {"sec-fetch-site": "same-origin"}
    response = httpx.post(f"{server.base_url}/console/sign-in", data=fields, headers=headers, timeout=30)
    return response.cookies[COOKIE]


def add_session(context: BrowserContext, server: Server, login: str) -> None:
    """Give a browser the cookie of a session. Signing in by its form has tests of its own."""
    cookie = {"name": COOKIE, "value": sign_in(server, login), "domain": "127.0.0.1", "path": "/", "secure": True}
    context.add_cookies([{**cookie, "httpOnly": True, "sameSite": "Lax"}])  # type: ignore[list-item]


@contextmanager
def open_console(
    chromium: Browser, server: Server, login: str = "editor", *, script: bool = True, **options: Any
) -> Iterator[BrowserPage]:
    """Yield a page that is signed in. The test fails if the browser reports any error."""
    with open_browser_page(chromium, script=script, base_url=server.base_url, **options) as browser:
        browser.page.set_default_timeout(30_000)
        add_session(browser.page.context, server, login)
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


def show_picture(page: Page) -> None:
    """Scroll to the picture, and wait for its script."""
    page.locator("#picture").scroll_into_view_if_needed()
    page.locator(".focus-point:not([hidden])").wait_for(state="attached")

"""A server with records, and a browser that is signed in to its console."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from playwright.sync_api import Browser, BrowserContext, Page

from kalends.accounts.operations import sign_in_methods
from kalends.core.times import utc_now
from kalends.http.auth import COOKIE
from kalends.store.database import Database, Options
from tests.api.running_app import HOST, User
from tests.servers import Server

API = "/api/calendar/events/v1"


@dataclass(frozen=True)
class Site:
    server: Server
    tokens: Mapping[str, str]

    def post(self, path: str, fields: Any = None, role: str = "editor", **options: Any) -> httpx.Response:
        """Send a form as a page of the console would."""
        headers = {"cookie": f"{COOKIE}={self.tokens[role]}", "sec-fetch-site": "same-origin", "accept": "text/html"}
        return httpx.post(f"{self.server.base_url}{path}", data=fields, headers=headers, timeout=30, **options)

    def create(self, kind: str, **fields: Any) -> int:
        """Create a record through the API."""
        headers = {"cookie": f"{COOKIE}={self.tokens['editor']}", "sec-fetch-site": "same-origin"}
        response = httpx.post(f"{self.server.base_url}{API}/{kind}", json=fields, headers=headers, timeout=30)
        assert response.status_code == 201, response.text
        record_id: int = response.json()["id"]
        return record_id


def start_sessions(database_url: str, users: Mapping[str, User]) -> dict[str, str]:
    """Start a session for each account. Call this before Playwright starts."""

    async def start() -> dict[str, str]:
        database = await Database.open(Options(url=database_url))
        try:
            async with database.transaction(HOST, utc_now(), writing=True) as tx:
                return {
                    role: await sign_in_methods.start_session(tx, user.id, "", "") for role, user in users.items()
                }
        finally:
            await database.close()

    return asyncio.run(start())


@dataclass
class ConsolePage:
    """A page; `reports` are all errors of its console, also those of the policies."""

    page: Page
    context: BrowserContext
    reports: list[str]


@contextmanager
def open_console(
    chromium: Browser, site: Site, role: str = "editor", *, script: bool = True, **options: Any
) -> Iterator[ConsolePage]:
    """Open a page that is signed in. Any report in its console is an error."""
    context = chromium.new_context(java_script_enabled=script, base_url=site.server.base_url, **options)
    cookie = {"name": COOKIE, "value": site.tokens[role], "domain": "127.0.0.1", "path": "/", "secure": True}
    context.add_cookies([{**cookie, "httpOnly": True, "sameSite": "Lax"}])  # type: ignore[list-item]
    context.add_init_script("window.pwned = () => { console.error('script of a record ran') }")
    page = context.new_page()
    page.set_default_timeout(30_000)
    opened = ConsolePage(page, context, [])
    page.on("pageerror", lambda error: opened.reports.append(str(error)))
    page.on("console", lambda entry: opened.reports.append(entry.text) if entry.type == "error" else None)
    try:
        yield opened
        assert opened.reports == []
    finally:
        context.close()

"""The queue in Chromium: effort by keyboard and without script, the selection, layout and accessibility."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from playwright.sync_api import Browser, Page

from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.console.console_client import set_passwords
from tests.console.form_browser import add_session
from tests.pages.browser_page import open_browser_page
from tests.pages.conftest import chromium
from tests.servers import Server
from tests.soak import some

__all__ = ["chromium"]
SIZES = some([(390, "light"), (1280, "light"), (390, "dark"), (1280, "dark"), (320, "dark")])


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
                events = "SELECT status FROM events WHERE id::text = %s"
                query = f"{events} UNION SELECT state FROM proposals WHERE id::text = %s"
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
    with open_browser_page(chromium, script=script, **options) as browser:
        add_session(browser.page.context, desk.server, login)
        browser.page.goto(f"{desk.server.base_url}/console/queue{path}")
        yield browser.page
        assert [e for e in browser.errors if "409" not in e] == []

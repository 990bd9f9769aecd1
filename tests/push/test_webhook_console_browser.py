"""Webhooks in the console in Chromium: every page and state is accessible and fits a phone, in light and dark."""

from collections.abc import Callable, Iterator

import httpx
import psycopg
import pytest
from playwright.sync_api import Browser, expect

from tests.api.running_app import User
from tests.conftest import replace_database, temporary_database
from tests.console.form_browser import open_console, prepare_site
from tests.pages.browser_page import find_violations
from tests.pages.conftest import chromium
from tests.servers import Server

__all__ = ["chromium"]

PATH = "/console/settings/webhooks"
ADD_DELIVERIES = """
    INSERT INTO webhook_deliveries
    SELECT site_id, id, n, now() - n * interval '7 minutes', 'msg_x',
        (ARRAY['event.updated', 'venue.created'])[1 + n % 2],
        (ARRAY['events', 'venues'])[1 + n % 2], 17 + n, n, 1 + n % 3, (ARRAY[200, 500, NULL])[1 + n % 3],
        (ARRAY['', '', 'timeout'])[1 + n % 3], 40 * n
    FROM webhooks, generate_series(1, 50) n WHERE name = 'City website'
"""
ADD_PENDING = """
    INSERT INTO webhook_pending
    SELECT site_id, id, 'events', 17 + n, 0, n, CASE WHEN n < 9 THEN now() + n * interval '1 hour' END, 500, ''
    FROM webhooks, generate_series(7, 9) n WHERE name = 'City website'
"""


@pytest.fixture(scope="module")
def server(
    postgres_url: str, user_template: tuple[str, dict[str, User]], start_server: Callable[..., Server]
) -> Iterator[Server]:
    """Start a server with an endpoint in each state."""
    template, users = user_template
    with temporary_database(postgres_url, template=template) as name:
        url = replace_database(postgres_url, name)
        started = start_server(url)
        prepare_site(url, timezone="Europe/Berlin", name="Lindenstadt", base_url=started.base_url)
        account = users["administrator"]
        with httpx.Client(base_url=started.base_url, auth=(account.login, account.password), timeout=30) as client:
            for title in ("City website", "App", "Ticket shop", "Archive of the library"):
                sent = {"name": title, "url": f"https://receiver.example/{'hooks/' * 12}"}
                assert client.post("/api/kalends/v1/webhooks", json=sent).status_code == 201
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(ADD_DELIVERIES)
            connection.execute(ADD_PENDING)
            connection.execute("UPDATE webhooks SET failing_since = now() - interval '1 day' WHERE name <> 'App'")
            change = "UPDATE webhooks SET disabled_at = now(), disabled_reason = %s WHERE name = %s"
            connection.execute(change, ["paused", "Ticket shop"])
            connection.execute(change, ["gone", "Archive of the library"])
        yield started
        started.stop()


@pytest.mark.npm
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")])
def test_pages_are_accessible_and_fit(server: Server, chromium: Browser, width: int, scheme: str) -> None:
    with open_console(
        chromium, server, "administrator", viewport={"width": width, "height": 900}, color_scheme=scheme
    ) as browser:
        page = browser.page
        page.goto(PATH)
        paths = [PATH, f"{PATH}/new", *page.locator("tbody th a").evaluate_all("links => links.map(l => l.pathname)")]
        for path in (*paths, f"{paths[2]}/settings", f"{paths[2]}/delete"):
            page.goto(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            assert find_violations(page) == [], path


@pytest.mark.parametrize("has_script", [True, False])
def test_endpoint_is_created_tested_and_deleted(server: Server, chromium: Browser, has_script: bool) -> None:
    with open_console(chromium, server, "administrator", script=has_script) as browser:
        page = browser.page
        page.goto(PATH)
        page.get_by_role("link", name="New webhook").click()
        page.get_by_label("Name").fill("Newsletter")
        page.get_by_label("Address (URL)").fill("https://receiver.example/new")
        page.get_by_role("button", name="Create the webhook").click()
        assert page.locator("#secret").input_value().startswith("whsec_")
        page.get_by_role("button", name="Send test message").click()
        expect(page.get_by_role("status")).to_contain_text("The message is being sent.")
        page.get_by_role("button", name="Pause").click()
        expect(page.locator("main")).to_contain_text("Paused since")
        page.get_by_role("link", name="Delete…").click()
        page.get_by_role("button", name="Delete").click()
        expect(page.locator("main")).not_to_contain_text("Newsletter")

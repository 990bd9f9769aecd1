"""The policy of the pages blocks custom CSS that loads something from other hosts, even if it was not checked."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import psycopg
import pytest
from playwright.sync_api import Browser

from tests.servers import Server
from tests.unit.core.test_custom_css import write_attacks

HOST = "127.0.0.1"
EMBEDDED = (
    "#embedded { background-image: url(data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=) }"
)


class Outside:
    """Another server, which notes the paths that are requested from it."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        paths = self.paths

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                paths.add(self.path)
                self.send_error(404)

            def log_message(self, *_: object) -> None: ...

        self.server = HTTPServer((HOST, 0), Handler)
        self.address = f"{HOST}:{self.server.server_port}"


@pytest.fixture
def outside() -> Iterator[Outside]:
    other = Outside()
    thread = threading.Thread(target=other.server.serve_forever)
    thread.start()
    yield other
    other.server.shutdown()
    thread.join()
    other.server.server_close()


def open_page(chromium: Browser, url: str, *, bypasses_policy: bool) -> list[str]:
    """Open a page, wait for everything that it loads, and return the messages of the browser."""
    messages: list[str] = []
    context = chromium.new_context(bypass_csp=bypasses_policy)
    page = context.new_page()
    page.on("console", lambda message: messages.append(message.text))
    page.goto(url)
    page.evaluate("document.body.append(Object.assign(document.createElement('p'), {id: 'embedded'}))")
    page.wait_for_load_state("networkidle")
    context.close()
    return messages


def test_policy_of_pages_blocks_css_of_other_hosts(
    chromium: Browser, database_url: str, start_server: Callable[..., Server], outside: Outside
) -> None:
    """The CSS is stored without the check. Without the policy it would reach the other server."""
    attacks = [f"@import 'http://{outside.address}/import';", *write_attacks(outside.address).values(), EMBEDDED]
    with psycopg.connect(database_url) as connection:
        connection.execute("INSERT INTO site_styles (site_id, css) VALUES (1, %s)", ["\n".join(attacks)])
        connection.execute("UPDATE sites SET custom_css_hash = 'abcdefabcdef', revision = revision + 1")
    url = f"{start_server(database_url).base_url}/events/list/"
    messages = open_page(chromium, url, bypasses_policy=False)
    assert any(f"{outside.address}/url" in message for message in messages), messages
    assert not any("data:image" in message for message in messages), messages
    assert not outside.paths
    open_page(chromium, url, bypasses_policy=True)
    assert {"/import", "/url", "/no-host", "/escape", "/backslashes", "/image-set", "/property"} <= outside.paths

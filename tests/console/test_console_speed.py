"""How soon the form of an event can be used on a slow connection: the time from the navigation to the first input."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.api.running_app import User
from tests.conftest import replace_database, temporary_database
from tests.console.form_browser import open_console, prepare_site
from tests.servers import Server
from tests.soak import SOAK, scaled

# The profile "slow 4G" of Lighthouse: bytes per second, and milliseconds for a round trip.
SLOW_4G = {"offline": False, "latency": 150, "downloadThroughput": 1_600_000 / 8, "uploadThroughput": 750_000 / 8}
# In the gate, other tests take CPU time from the browser.
MAX_MS = scaled(2000, 1000)
# The module has run when the field of the venue is a combobox. A field can be focused once the styles are loaded.
WATCH_SCRIPT = """
const watch = () => {
  const title = document.getElementById('title');
  if (title && window.focusableAt === undefined && title.checkVisibility() && document.styleSheets.length > 2) {
    title.focus();
    if (document.activeElement === title) window.focusableAt = performance.now();
  }
  if (title && document.getElementById('venue')?.role === 'combobox') window.moduleAt = performance.now();
  if (window.focusableAt && window.moduleAt) document.documentElement.dataset.isReady = '';
  else setTimeout(watch, 5);
};
if (location.pathname.startsWith('/console/events')) watch();
"""


@pytest.fixture(scope="module")
def server(
    postgres_url: str, user_template: tuple[str, dict[str, User]], start_server: Callable[..., Server]
) -> Iterator[Server]:
    template, _ = user_template
    with temporary_database(postgres_url, template=template) as name:
        url = replace_database(postgres_url, name)
        prepare_site(url)
        started = start_server(url)
        yield started
        started.stop()


@pytest.mark.parametrize("is_cached", [False, True], ids=["first visit", "next visit"])
def test_first_input_is_usable_within_a_second(
    server: Server, chromium: Browser, report: Callable[[object], None], is_cached: bool
) -> None:
    times: list[tuple[float, float]] = []
    # One quick visit shows that it is possible; others may be disturbed.
    while not times or (len(times) < scaled(3, 7) and (SOAK or max(times[-1]) >= MAX_MS)):
        times.append(measure(server, chromium, is_cached))
    focusable, ready = min(times, key=max)
    report(f"title focusable after {focusable:.0f} ms, modules have run after {ready:.0f} ms")
    assert max(focusable, ready) < MAX_MS


def measure(server: Server, chromium: Browser, is_cached: bool) -> tuple[float, float]:
    """Return the milliseconds until the title can be focused, and until the module has run."""
    with open_console(chromium, server) as opened:
        page = opened.page
        if is_cached:
            page.goto("/console/events/new")
            page.wait_for_load_state("networkidle")
        page.context.unroute_all()  # Playwright disables the cache while it intercepts requests.
        slow_down(page, is_cached)
        page.add_init_script(WATCH_SCRIPT)
        page.goto("/console/events/new", wait_until="commit")
        page.wait_for_selector("html[data-is-ready]", state="attached")
        focusable, ready = page.evaluate("[window.focusableAt, window.moduleAt]")
        return float(focusable), float(ready)


def slow_down(page: Page, is_cached: bool) -> None:
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": not is_cached})
    session.send("Network.emulateNetworkConditions", SLOW_4G)

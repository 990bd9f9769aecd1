"""How fast pages feel on a phone, what they weigh, how soon suggestions appear, and what the front page costs.

`just bench-pages` opens pages of the made-up town in Chromium with a slow line and a slow processor, and builds a
site of 20,000 events for suggestions and cost. The exit code is 1 if a limit is exceeded.
"""

import argparse
import re
import sys
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import psycopg
from playwright.sync_api import Browser, Page, Response, sync_playwright
from psycopg import sql
from rich.console import Console
from rich.table import Table

from bench.measurement import WARM_UP_REQUESTS, RunningServer
from bench.seeded_sites import find_cluster
from bench.sized_sites import SizedSite, make_site
from tests.servers import Server
from tools.screenshots import CHROMIUM, find_url, run_town

PAGES: Final = {"front": "/", "event": "event:Harrow Lane", "week": "/events/week/", "list": "/events/list/"}
PHONE: Final = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True}
LINE: Final = {"offline": False, "latency": 150, "downloadThroughput": 1.6e6 / 8, "uploadThroughput": 750e3 / 8}
SLOWDOWN: Final = 4  # of the processor
KINDS: Final = {"image": "pictures", "font": "fonts", "document": "text", "stylesheet": "text", "script": "text"}
SETTLED_MS: Final = 1000  # Late shifts and tasks count, too.
MAX_SUGGESTION_MS: Final = 150.0
MAX_COST_RATIO: Final = 1.5
HIGHLIGHTS: Final = '<div class="highlights">'

_OBSERVE: Final = """
window.felt = { lcp: 0, cls: 0, blocked: 0 };
const observe = (type, note) =>
  new PerformanceObserver((list) => list.getEntries().forEach(note)).observe({ type, buffered: true });
observe("largest-contentful-paint", (entry) => { felt.lcp = entry.startTime });
observe("layout-shift", (entry) => { if (!entry.hadRecentInput) felt.cls += entry.value });
observe("longtask", (entry) => { felt.blocked += entry.duration - 50 });
"""
# From the last key to the suggestions on the page, with the pause after which the script asks the server.
_TIME_SUGGESTIONS: Final = """(text) => new Promise((resolve, reject) => {
  const input = document.getElementById("q"), list = document.getElementById("suggestions");
  const timer = setTimeout(() => reject(new Error(`no suggestions for ${text}`)), 5000);
  let started;
  new MutationObserver((_, observer) => {
    if (!list.querySelector("a")) return;
    observer.disconnect();
    clearTimeout(timer);
    requestAnimationFrame(() => resolve(performance.now() - started));
  }).observe(list, { childList: true });
  input.value = text;
  started = performance.now();
  input.dispatchEvent(new InputEvent("input", { bubbles: true }));
})"""

_IS_ICON: Final = """(url) => document.querySelector("link[rel=icon]").href === url &&
  ![...document.images].some((image) => image.currentSrc === url)"""


class Figure(NamedTuple):
    """A measured value, and the limit that it must not exceed."""

    subject: str
    name: str
    value: float
    limit: float
    unit: str
    note: str = ""

    @property
    def is_missed(self) -> bool:
        return self.value > self.limit


class Visit(NamedTuple):
    felt: dict[str, float]
    kilobytes: dict[str, float]


def main() -> int:
    arguments = _read_arguments()
    figures: list[Figure] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with run_town() as town, town.server.client() as client:
            for name, path in PAGES.items():
                url = find_url(client, path)
                client.get(url).raise_for_status()  # The cache that is cold is the browser's.
                figures += _summarize(name, [_visit(browser, url) for _ in range(arguments.rounds)])
        with ExitStack() as stack:
            cluster = find_cluster(arguments.directory, stack)
            site = make_site(cluster.url, arguments.events, arguments.events // 2)
            # The copy comes first, because a database with sessions cannot be copied.
            copy = _copy_as_calendar(cluster.url, site)
            front, calendar = (_start(one, arguments.directory, stack) for one in (site, copy))
            figures += _time_suggestions(browser, front, arguments.queries)
            figures.append(_compare_cost(front, calendar, arguments))
        browser.close()
    Console(width=120).print(_make_table(figures))
    return 1 if any(figure.is_missed for figure in figures) else 0


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="visits of each page")
    parser.add_argument("--events", type=int, default=20_000, help="of the site for suggestions and cost")
    parser.add_argument("--queries", type=int, default=60, help="different texts in the search field")
    parser.add_argument("--cost-rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=30, help="of each page in a round")
    parser.add_argument("--directory", type=Path, default=Path(".local/speed"), help="where the databases are kept")
    return parser.parse_args()


def _visit(browser: Browser, url: str) -> Visit:
    """Open a page as a new visitor on a slow phone, without scrolling."""
    context = browser.new_context(**PHONE, locale="en-GB", timezone_id="Europe/London")
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", LINE)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})
    page.add_init_script(_OBSERVE)
    responses: list[Response] = []

    def note(response: Response) -> None:
        responses.append(response)

    page.on("response", note)
    page.goto(url)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(SETTLED_MS)
    felt = page.evaluate("felt")
    kilobytes: dict[str, float] = defaultdict(float)
    for response in responses:
        # Texts are weighed uncompressed. The icon is an image that no visitor waits for.
        if (kind := KINDS.get(response.request.resource_type)) and not _is_icon(page, response):
            kilobytes[kind] += len(response.body()) / 1000
    context.close()
    return Visit(felt, kilobytes)


def _is_icon(page: Page, response: Response) -> bool:
    return bool(page.evaluate(_IS_ICON, response.url))


def _summarize(page: str, visits: list[Visit]) -> list[Figure]:
    def figure(name: str, values: list[float], limit: float, unit: str) -> Figure:
        return Figure(page, name, median(values), limit, unit, f"{min(values):.4g} to {max(values):.4g}")

    felt, kilobytes = [visit.felt for visit in visits], [visit.kilobytes for visit in visits]
    return [
        figure("largest contentful paint", [one["lcp"] / 1000 for one in felt], 2.5, "s"),
        figure("layout shift", [one["cls"] for one in felt], 0.02, ""),
        figure("blocking time", [one["blocked"] for one in felt], 200, "ms"),
        figure("pictures before scrolling", [one.get("pictures", 0) for one in kilobytes], 350, "kB"),
        figure("fonts", [one.get("fonts", 0) for one in kilobytes], 60, "kB"),
        figure("HTML, CSS and JS, uncompressed", [one["text"] for one in kilobytes], 60, "kB"),
    ]


def _start(site: SizedSite, directory: Path, stack: ExitStack) -> RunningServer:
    """Start a server without a cache."""
    environment = {"KALENDS_POOL_SIZE": "2", "KALENDS_CACHE_MB": "0"}
    server = Server.start(site.url, log=directory / f"pages-{site.name}.log", environment=environment)
    return stack.enter_context(RunningServer(stack.enter_context(server), site))


def _time_suggestions(browser: Browser, running: RunningServer, count: int) -> list[Figure]:
    """Time suggestions for words of upcoming events, half of them unfinished."""
    with psycopg.connect(running.site.url) as connection:
        titles = connection.execute(
            "SELECT title FROM events WHERE listed AND start_utc > now() ORDER BY md5(id::text) LIMIT 2000"
        ).fetchall()
    words = dict.fromkeys(word.lower() for (title,) in titles for word in re.findall(r"\w{4,}", title))
    texts = list(dict.fromkeys(word[: 3 + n // 2 % 3] if n % 2 else word for n, word in enumerate(words)))[:count]
    page = browser.new_page()
    page.goto(f"{running.server.base_url}/events/list/")
    page.focus("#q")
    page.wait_for_selector("#suggestions", state="attached")
    times: dict[str, float] = {}
    for text in texts:
        times[text] = page.evaluate(_TIME_SUGGESTIONS, text)
        page.evaluate("document.getElementById('suggestions').replaceChildren()")
    page.close()
    subject = f"suggestions, {running.site.events:,} events"
    slowest = sorted(times, key=lambda text: times[text])[-3:]
    return [
        Figure(
            subject, "last key to list, median", median(times.values()), MAX_SUGGESTION_MS, "ms", f"{count} texts"
        ),
        Figure(
            subject, "last key to list, slowest", max(times.values()), MAX_SUGGESTION_MS, "ms", ", ".join(slowest)
        ),
    ]


def _compare_cost(front: RunningServer, calendar: RunningServer, arguments: argparse.Namespace) -> Figure:
    """Compare the CPU time of the front page with the former home page: the calendar below its highlights."""
    targets = [(front, f"{front.server.base_url}/"), (calendar, f"{calendar.server.base_url}/events/")]
    if "front-page" not in front.get(targets[0][1]).text or HIGHLIGHTS not in calendar.get(targets[1][1]).text:
        raise AssertionError("one of the sites has another start page")
    times: list[list[float]] = [[], []]
    for running, url in targets:
        running.measure([url], WARM_UP_REQUESTS)
    for _ in range(arguments.cost_rounds):
        for (running, url), found in zip(targets, times, strict=True):
            found.append(sum(running.measure([url], arguments.requests)))
    ratio = median(one / other for one, other in zip(*times, strict=True))
    note = f"{median(times[0]):.1f} : {median(times[1]):.1f} ms of CPU"
    return Figure("front : old home, cold", "CPU, median of the ratios", ratio, MAX_COST_RATIO, "", note)


def _copy_as_calendar(cluster_url: str, site: SizedSite) -> SizedSite:
    """Return a copy of the site that starts with the calendar."""
    name = f"{site.name}_calendar"
    url = urlsplit(cluster_url)._replace(path=f"/{name}").geturl()
    with psycopg.connect(cluster_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        connection.execute(copy.format(sql.Identifier(name), sql.Identifier(site.name)))
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE sites SET start_page = 'calendar'")
    return replace(site, name=name, url=url)


def _make_table(figures: list[Figure]) -> Table:
    table = Table(title="pages: felt speed, weight and cost")
    for heading in ("", "", "measured", "limit", "", "range"):
        table.add_column(heading, justify="right" if heading in ("measured", "limit") else "left")
    for figure in figures:
        subject, name, value, limit, unit, note = figure
        verdict = "missed" if figure.is_missed else ""
        cells = (subject, name, f"{value:.4g} {unit}", f"{limit:g} {unit}", verdict, note)
        table.add_row(*cells, style="red" if verdict else "")
    return table


if __name__ == "__main__":
    sys.exit(main())

"""Whatever stands in a record: no page and no feed lets it run, break out, or spoil the layout.

The browser ignores the Content-Security-Policy, so that only the escaping of the pages is tested.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import httpx
import psycopg
import pytest
from playwright.sync_api import Browser, Page

from tests.api.running_app import API_PATH, User
from tests.conftest import replace_database, temporary_database
from tests.feeds.ical_readers import IcalJs, read_with_icalendar
from tests.pages.browser_page import BrowserPage, open_browser_page
from tests.pages.payloads import PAYLOADS
from tests.servers import Server
from tests.soak import SOAK

DAY_PREFIX = "2031-05-0"
EVENTS_PER_DAY = 20
# Of pages of one record every one in the soak; in the gate one in fifteen.
SAMPLE_STEP = 1 if SOAK else 15
FIELDS = {
    "venues": ("venue", "description", "address", "city", "country", "province", "state", "zip", "phone",
               "stateprovince", "website"),
    "organizers": ("organizer", "description", "phone", "email", "website"),
    "categories": ("name", "description"),
    "tags": ("name", "description"),
    "events": ("title", "description", "excerpt", "cost", "website", "ticket_url"),
}  # fmt: skip
# The elements inside the main part of a page, and those of them that the text of a record may contain.
CHECK_SCRIPT = """() => {
  const bad = [];
  for (const node of document.querySelectorAll('*')) {
    for (const {name, value} of node.attributes) {
      if (name.startsWith('on') || name === 'style' && !node.closest('.map')) bad.push(node.outerHTML.slice(0, 200));
      if (['href', 'src', 'action', 'formaction', 'data', 'srcdoc'].includes(name)
          && /^[\\s\\x00-\\x20]*(javascript|data|vbscript):/i.test(value)) bad.push(node.outerHTML.slice(0, 200));
    }
  }
  const scripts = [...document.scripts].filter(s => s.type !== 'application/ld+json');
  const own = /^\\/assets\\/(site|month|week|filters|mine)\\.[0-9a-f]{12}\\.js$/;
  const foreign = scripts.filter(s => !own.test(s.getAttribute('src')));
  if (!scripts.length || foreign.length) bad.push(`${foreign.length} scripts`);
  for (const s of document.querySelectorAll('script[type="application/ld+json"]')) JSON.parse(s.textContent);
  const never = 'iframe,object,embed,svg,math,style,meta[http-equiv],base[href],template,textarea,video,audio,'
    + 'plaintext,xmp';
  for (const node of document.querySelectorAll(never)) bad.push(node.outerHTML.slice(0, 200));
  if (document.querySelectorAll('main').length !== 1) bad.push('main');
  if (document.querySelectorAll('h1').length !== 1) bad.push('h1');
  const footer = document.body.lastElementChild;
  if (footer.tagName !== 'FOOTER') bad.push('after the footer: ' + footer.outerHTML.slice(0, 200));
  if (getComputedStyle(document.querySelector('h1')).display === 'none') bad.push('hidden');
  return bad;
}"""


@dataclass(frozen=True)
class HostileSite:
    server: Server
    paths: dict[str, list[str]]
    accepted: int
    titles: list[str]


@pytest.fixture(scope="module")
def hostile(
    postgres_url: str, user_template: tuple[str, dict[str, User]], start_server: Callable[..., Server]
) -> Iterator[HostileSite]:
    """A site where each payload stands in every text of an event, its venue, organizer, category and tag."""
    template, users = user_template
    with temporary_database(postgres_url, template=template) as name:
        url = replace_database(postgres_url, name)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("UPDATE sites SET name = %s", ["</title><script>pwned()</script>\"'><img src=x>"])
        server = start_server(url)
        editor = users["editor"]
        with httpx.Client(base_url=server.base_url, auth=(editor.login, editor.password), timeout=30) as client:
            yield fill_site(server, client)
        server.stop()


def fill_site(server: Server, client: httpx.Client, payloads: Sequence[str] = PAYLOADS) -> HostileSite:
    paths: dict[str, list[str]] = {kind: [] for kind in FIELDS}
    accepted, titles = 0, []
    for number, payload in enumerate(payloads):
        ids: dict[str, int] = {}
        for kind, fields in FIELDS.items():
            body: dict[str, Any] = {name: payload_for(name, payload, number) for name in fields}
            if kind == "venues":
                body |= {"geo_lat": number / 10, "geo_lng": number / 10}
            if kind == "events":
                day = f"{DAY_PREFIX}{1 + number // EVENTS_PER_DAY}"
                body |= {"start_date": f"{day} 10:00", "end_date": f"{day} 12:00", "venue": ids.get("venues", []),
                         "show_map": True, "show_map_link": True, "slug": f"hostile-{number}",
                         **{link: [ids[kinds]] for link, kinds in
                            (("organizer", "organizers"), ("categories", "categories"), ("tags", "tags"))
                            if kinds in ids}}  # fmt: skip
            response = client.post(f"{API_PATH}/{kind}", json=body)
            while response.status_code == 400 and response.json()["code"] == "rest_invalid_param":
                # A rejected text is on no page; the required name is replaced.
                wrong = set(response.json()["data"]["params"])
                body = {name: f"Plain {number}" if name == fields[0] and name in wrong else value
                        for name, value in body.items() if name not in wrong or name == fields[0]}  # fmt: skip
                response = client.post(f"{API_PATH}/{kind}", json=body)
            if response.status_code == 400 and response.json()["code"] == "term_exists":
                continue
            # If nothing is left of a payload, the record equals an earlier one.
            assert response.status_code in (200, 201), (kind, payload, response.text)
            record = response.json()
            accepted += len(body)
            ids[kind] = record["id"]
            paths[kind].append(record["url"].removeprefix(server.base_url))
            if kind == "events":
                titles.append(record["title"])
    return HostileSite(server, paths, accepted, titles)


def payload_for(name: str, payload: str, number: int) -> str:
    """An address has to look like one; the payload hides in it."""
    if name in ("website", "ticket_url"):
        return f"https://example.org/{quote(payload)}" if number % 2 else f"https://example.org/?q={payload}"
    return f"{payload}@example.org" if name == "email" else payload


@pytest.fixture(scope="module")
def browser(chromium: Browser) -> Iterator[BrowserPage]:
    with open_browser_page(chromium, bypass_csp=True, viewport={"width": 1360, "height": 900}) as browser:
        browser.page.add_init_script("window.pwned = () => { window.isPwned = true }; window.alert = window.pwned")
        yield browser


def assert_harmless(page: Page, url: str, width: int = 1360) -> None:
    page.goto(url, wait_until="load")
    assert page.evaluate("window.isPwned") is None, url
    assert page.evaluate(CHECK_SCRIPT) == [], url
    assert page.evaluate("document.documentElement.scrollWidth") <= width, url


def test_payloads_are_numerous_and_stored(hostile: HostileSite) -> None:
    assert len(set(PAYLOADS)) == len(PAYLOADS) > 100
    assert len(hostile.paths["events"]) == len(PAYLOADS)
    assert hostile.accepted > 20 * len(PAYLOADS)


def test_overview_pages_neutralize_payloads(hostile: HostileSite, browser: BrowserPage) -> None:
    days = range(1, 2 + (len(PAYLOADS) - 1) // EVENTS_PER_DAY)
    paths = ["/", "/events/month/2031-05/", "/events/week/2031-05-01/", "/events/map/", "/events/search/",
             *[f"/events/day/{DAY_PREFIX}{n}/" for n in days], "/embed/events/list/?per_page=50"]  # fmt: skip
    for width, some in ((1360, paths), (390, paths if SOAK else paths[5:8])):
        browser.page.set_viewport_size({"width": width, "height": 900})
        for path in some:
            assert_harmless(browser.page, hostile.server.base_url + path, width)
    browser.page.set_viewport_size({"width": 1360, "height": 900})


def test_list_contains_all_hostile_records(hostile: HostileSite, browser: BrowserPage) -> None:
    path, count = "/events/list/?per_page=24", 0
    while path:
        assert_harmless(browser.page, hostile.server.base_url + path)
        count += browser.page.locator("article.card").count()
        following = browser.page.locator(".pagination a[rel=next]")
        path = following.get_attribute("href") if following.count() else ""
    assert count == len(PAYLOADS)


@pytest.mark.parametrize("kind", FIELDS)
def test_record_pages_neutralize_payloads(hostile: HostileSite, browser: BrowserPage, kind: str) -> None:
    for path in hostile.paths[kind][::SAMPLE_STEP]:
        assert_harmless(browser.page, hostile.server.base_url + path)


def test_request_parameters_are_neutralized(hostile: HostileSite, browser: BrowserPage) -> None:
    for payload in PAYLOADS[::SAMPLE_STEP]:
        value = quote(payload[:200])
        assert_harmless(browser.page, f"{hostile.server.base_url}/events/search/?search={value}&near={value[:90]}")
        assert_harmless(browser.page, f"{hostile.server.base_url}/events/list/?categories={value}")
        assert_harmless(browser.page, f"{hostile.server.base_url}/event/{value}/")


def test_feeds_neutralize_payloads(hostile: HostileSite, ical_js: IcalJs) -> None:
    with httpx.Client(base_url=hostile.server.base_url) as client:
        text = client.get("/events.ics").text
        for read in (read_with_icalendar, ical_js.read):
            entries = read(text)
            assert len(entries) == len(PAYLOADS)
            assert not [entry for entry in entries if entry.summary == "forged" or not entry.start.startswith("2031")]
        for line in text.split("\r\n"):
            assert len(line.encode()) <= 75
            assert "\n" not in line
        for form, item in (("rss", "channel/item"), ("atom", "{http://www.w3.org/2005/Atom}entry")):
            root = ElementTree.fromstring(client.get(f"/events.{form}").content)
            assert len(root.findall(item)) == 50
        feed = json.loads(client.get("/events.json").content)
        assert len(feed["items"]) == 50
        ElementTree.fromstring(client.get("/sitemap/0.xml").content)
        ElementTree.fromstring(client.get("/sitemap/terms.xml").content)

"""Every page of the console in Chromium: hostile texts run nothing, with and without the Content-Security-Policy, and
axe finds nothing in any language."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import httpx
import psycopg
import pytest
from playwright.sync_api import Browser, Page
from psycopg.types.json import Json

from kalends.accounts.operations.sign_in_methods import hash_token
from kalends.core.messages import LANGUAGES
from kalends.http.auth import COOKIE
from tests.api.running_app import API_PATH, User
from tests.conftest import replace_database, temporary_database
from tests.console.import_rows import fill_imports
from tests.console.submitted_pages import PageRequest, add_link, make_submitted_pages
from tests.old_site.client_requests import PNG
from tests.pages.browser_page import find_violations
from tests.pages.payloads import PAYLOADS
from tests.pages.test_hostile_texts import fill_site
from tests.servers import Server
from tests.soak import SOAK, scaled

TOKEN = "token-of-the-tests"
# Escaping is the same code for every text, and the public pages are tested with all payloads.
SITE_PAYLOADS = PAYLOADS[:: scaled(4, 1)]
HOSTILE = "\"'><img src=x onerror=pwned()><script>pwned()</script>"
RECORD_PAGES = {
    "events": ("", "/history", "/preview", "/repeat"),
    "series": ("",),
    "venues": ("", "/history", "/merge"),
    "organizers": ("", "/history", "/merge"),
    "categories": ("", "/delete", "/merge"),
    "tags": ("", "/delete", "/merge"),
}
# A new event, a change that an editor has returned, and the form of the first.
NEW, RETURNED = (f"00000000-0000-4000-8000-00000000000{number}" for number in range(2))
PROPOSALS = (NEW, RETURNED, f"{NEW}/edit")
ALL_EVENTS = "/console/events?per_page=500&period=all"
TABLES = (
    *("/console/", "/console/calendar", "/console/events", ALL_EVENTS, "/console/events/new", "/console/venues"),
    *(
        "/console/series",
        "/console/organizers",
        "/console/categories",
        "/console/tags",
        "/console/media",
        "/console/trash",
    ),
    *("/console/imports", "/console/imports/new", "/console/imports/runs", "/console/imports/1"),
    *(
        "/console/imports/1/settings",
        "/console/imports/1/delete",
        "/console/imports/runs/1",
        "/console/imports/runs/2",
    ),
    *("/console/imports/runs/1/columns", "/console/imports/runs/3"),
    *("/console/people", "/console/people/new", "/console/people/1", "/console/settings"),
    *("/console/settings/webhooks", "/console/settings/webhooks/new"),
    *("/console/queue", "/console/queue?state=decided", *[f"/console/queue/{entry}" for entry in PROPOSALS]),
    *("/console/settings/appearance", "/console/account", "/console/confirm", "/console/sign-in", "/console/reset"),
)
# Attributes that run script, links that do, and scripts that are not files of this server.
CHECK_SCRIPT = """() => {
  const bad = [];
  for (const node of document.querySelectorAll('*')) {
    for (const {name, value} of node.attributes) {
      if (name.startsWith('on')) bad.push(node.outerHTML.slice(0, 200));
      if (['href', 'src', 'action', 'formaction', 'data', 'srcdoc'].includes(name)
          && /^[\\s\\x00-\\x20]*(javascript|data|vbscript):/i.test(value)) bad.push(node.outerHTML.slice(0, 200));
    }
  }
  for (const script of document.scripts) {
    if (script.type === 'application/ld+json' || script.type === 'application/json') JSON.parse(script.textContent);
    else if (!/^\\/(console\\/)?assets\\//.test(script.getAttribute('src'))) bad.push(script.outerHTML.slice(0, 200));
  }
  if (document.querySelectorAll('main').length !== 1) bad.push('main');
  return bad;
}"""


@dataclass(frozen=True)
class Console:
    server: Server
    ids: dict[str, list[int]]
    submitted: list[PageRequest]

    @property
    def pages(self) -> list[PageRequest]:
        """Return the tables, the pages of the first record of each kind, and those after forms."""
        records = [
            f"/console/{kind}/{self.ids[kind][0]}{page}" for kind, pages in RECORD_PAGES.items() for page in pages
        ]
        paths = [*TABLES, *records, f"/console/media/{self.ids['media'][0]}"]
        return [*map(PageRequest, paths), *self.submitted]


@pytest.fixture(scope="module")
def console(
    postgres_url: str, user_template: tuple[str, dict[str, User]], start_server: Callable[..., Server]
) -> Iterator[Console]:
    """Start a server whose records, accounts, devices and names all contain hostile texts."""
    template, users = user_template
    with temporary_database(postgres_url, template=template) as name:
        url = replace_database(postgres_url, name)
        server = start_server(url, environment={"KALENDS_MAX_RECORDS_PER_DAY": "0"})
        editor = users["editor"]
        with httpx.Client(base_url=server.base_url, auth=(editor.login, editor.password), timeout=30) as client:
            fill_site(server, client, SITE_PAYLOADS)
            upload = {"file": ("x.png", PNG, "image/png")}
            texts = {"title": HOSTILE, "alt_text": HOSTILE, "caption": HOSTILE}
            assert client.post("/api/kalends/v1/media", files=upload, data=texts).status_code == 201
            dates = {"start_date": "2031-01-07 19:30", "end_date": "2031-01-07 21:00", "rule": "FREQ=WEEKLY;COUNT=3"}
            series = {"title": HOSTILE, **dates, "timezone": "Europe/Berlin", "status": "publish"}
            assert client.post("/api/kalends/v1/series", json=series).status_code == 201
            client.patch(f"{API_PATH}/events/{find_ids(url, 'events')[0]}", json={"title": f"Changed {HOSTILE}"})
        with psycopg.connect(url, autocommit=True) as connection:
            fill_accounts(connection, users["administrator"].id)
            fill_imports(connection, users["administrator"].id, HOSTILE)
            fill_proposals(connection, users["administrator"].id, find_ids(url, "events")[0])
        ids = {kind: find_ids(url, kind) for kind in [*RECORD_PAGES, "media"]}
        submitted = make_submitted_pages(server.base_url, TOKEN, ids, users["contributor"].id, HOSTILE)
        yield Console(server, ids, submitted)
        server.stop()


def find_ids(url: str, table: str) -> list[int]:
    with psycopg.connect(url) as connection:
        rows = connection.execute(f"SELECT id FROM {table} ORDER BY id").fetchall()
    return [row[0] for row in rows]


def fill_accounts(connection: psycopg.Connection[tuple[object, ...]], user_id: int) -> None:
    """Put hostile texts where the API has no parameters, and start a session of the administrator."""
    connection.execute("UPDATE sites SET name = %s", [HOSTILE])
    connection.execute("UPDATE users SET display_name = left(%s || id, 200), email = id || '@example.org'", [HOSTILE])
    connection.execute("UPDATE application_passwords SET name = left(%s || id, 100)", [HOSTILE])
    # The proof of identity outlasts a soak.
    connection.execute(
        "INSERT INTO sessions VALUES (1, %s, %s, now(), now(), now() + interval '1 day', '127.0.0.1', %s)",
        [hash_token(TOKEN), user_id, HOSTILE],
    )
    add_link(connection, user_id)
    connection.execute("INSERT INTO saved_filters VALUES (1, %s, left(%s, 100), 'search=x')", [user_id, HOSTILE])
    connection.execute(
        "INSERT INTO passkeys VALUES (1, %s, %s, %s, 0, %s, now(), NULL)", [b"a", user_id, b"b", HOSTILE]
    )


def fill_proposals(connection: psycopg.Connection[tuple[object, ...]], user_id: int, event_id: int) -> None:
    dates = {"start_date": "2031-01-07 19:30", "end_date": "2031-01-07 21:00"}
    new = {"title": HOSTILE, **dates, "description": HOSTILE, "venue": {"venue": HOSTILE, "city": HOSTILE}}
    change = {"title": HOSTILE, "cost": HOSTILE}
    for key, values, record_id, state in ((NEW, new, None, "waiting"), (RETURNED, change, event_id, "returned")):
        connection.execute(
            """INSERT INTO proposals (site_id, id, record_id, base_revision, values, origin, user_id, submitter_name,
                    note, guessed, source, program, state, starts_at, created_at, expires_at, decided_by, decided_at,
                    comment)
                VALUES (1, %(key)s, %(record)s, %(record)s, %(values)s, 'agent', %(user)s, %(text)s, %(text)s,
                    '{title}', %(text)s, %(text)s, %(state)s, '2031-01-07', now(), '2031-01-07', %(user)s,
                    CASE WHEN %(state)s = 'returned' THEN now() END, %(text)s)""",
            {
                "key": key,
                "record": record_id,
                "values": Json(values),
                "user": user_id,
                "text": HOSTILE,
                "state": state,
            },
        )


def open_page(chromium: Browser, console: Console, **options: object) -> Page:
    context = chromium.new_context(**options)  # type: ignore[arg-type]
    context.add_cookies([{"name": COOKIE, "value": TOKEN, "domain": "127.0.0.1", "path": "/", "secure": True}])
    return context.new_page()


def collect_problems(page: Page) -> list[str]:
    """Collect errors and reports of the policy from here on, and watch for scripts of texts."""
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if "Policy" in message.text else None)
    page.add_init_script("window.pwned = () => { window.isPwned = true }; window.alert = window.pwned")
    return problems


def test_hostile_texts_run_nothing(chromium: Browser, console: Console) -> None:
    """Without the Content-Security-Policy, escaping alone has to suffice."""
    page = open_page(chromium, console, bypass_csp=True, viewport={"width": 1280, "height": 900})
    problems = collect_problems(page)
    numbers = [(kind, number) for kind in RECORD_PAGES for number in console.ids[kind][1 :: scaled(8, 1)]]
    more = [PageRequest(f"/console/{kind}/{number}") for kind, number in numbers]
    for request in [*console.pages, *more]:
        response = request.open(page, console.server.base_url)
        assert response.status in (request.status, 401), (request, response.status)
        assert page.evaluate("window.isPwned") is None, request
        if not request.path.endswith("/preview"):
            assert page.evaluate(CHECK_SCRIPT) == [], request
        assert problems == [], request
    assert len(console.ids["events"]) == len(SITE_PAYLOADS) + 3
    page.context.close()


def find_faults(page: Page, request: PageRequest) -> list[str]:
    """Return the violations that axe finds, and whether the page scrolls sideways."""
    # The preview is a public page, and the table of all events is the one of /console/events, only longer.
    if request.path.endswith("/preview") or (request.path == ALL_EVENTS and not SOAK):
        return []
    wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    return [*find_violations(page), *(["scrolls sideways"] if wide else [])]


@pytest.mark.parametrize(
    "languages", [[language] for language in LANGUAGES] if SOAK else [list(LANGUAGES)], ids=",".join
)
def test_pages_are_accessible_and_keep_the_policy(chromium: Browser, console: Console, languages: list[str]) -> None:
    """Check each page in one language, colour scheme and width, in turn; a soak checks all combinations."""
    combinations = list(product(languages, ("light", "dark"), (320, 1280)))
    pages = {
        (scheme, width): open_page(chromium, console, color_scheme=scheme, viewport={"width": width, "height": 900})
        for scheme, width in product(("light", "dark"), (320, 1280))
    }
    problems = {variant: collect_problems(page) for variant, page in pages.items()}
    faults: list[str] = []
    for page in pages.values():
        page.goto(f"{console.server.base_url}/console/account")  # Forms are sent from a page of the server.
    for number, request in enumerate(console.pages):
        # 7 is prime to the number of combinations.
        for language, scheme, width in combinations if SOAK else [combinations[7 * number % len(combinations)]]:
            page = pages[scheme, width]
            response = request.open(page, console.server.base_url, f"lang={language}")
            assert response.status in (request.status, 401), request
            assert page.evaluate("window.isPwned") is None, request
            assert problems[scheme, width] == [], request
            faults += [f"{request} {language} {scheme} {width}: {fault}" for fault in find_faults(page, request)]
            problems[scheme, width].clear()  # The styles that axe tries are against the policy.
    for page in pages.values():
        page.context.close()
    assert faults == []

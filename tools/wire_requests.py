"""The requests that tools/wire.py records: the conformance kit, lists, writes and pages of the made-up town."""

import asyncio
import json
import os
import re
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from html import unescape
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest.mock import patch
from urllib.parse import unquote, urljoin, urlsplit

import httpx
import psycopg
from psycopg import sql

from kalends.bootstrap import open_library
from kalends.demo.town.load import seed_town
from kalends.settings import read_settings
from kalends.store.migrations import migrate
from tests.api.running_app import HOST, RunningApp, add_users
from tests.conftest import replace_database, temporary_database
from tests.console.console_client import ConsoleClient, Page
from tests.console.import_jobs import run_import_jobs
from tests.plans import list_requests
from tests.servers import make_environment
from tools.conformance import find_kit
from tools.examples import NOW, draw_image, make_examples
from tools.postgres import throwaway

BASE = f"http://{HOST}"
REQUESTS = Path(__file__).with_name("wire_requests.txt")
REQUEST = re.compile(r"(?:(\w+) = )?(\w+) ([A-Z]+) (\S+)(?: from (\S+))?(?: (\S.*))?")
PLACEHOLDER = re.compile(r'"<(\w+)>"|<(\w+)>')
APIS = {"calendar/": "/api/calendar/events/v1/", "kalends/": "/api/kalends/v1/"}
SETTINGS = {"KALENDS_API_ALIASES": "/wp-json/tribe/events/v1"}
LANGUAGES = ("en", "de", "ja")
PAGES = (
    "/", *[f"/events/{view}/" for view in ("month", "week", "day", "list", "map", "search", "month/2027-04")],
    *[f"{prefix}/{path}/" for prefix in ("", "/embed") for path in ("series/yoga", "event/bread", "events/month")],
    "/embed/events/search/", "/events/search/?search=music&near=Larkford", "/events/list/?past=1",
)  # fmt: skip
CONSOLE = ("/console/", "/console/events", "/console/events/new", "/console/series", "/console/trash", "/console/map")
LINK = re.compile(r'(?:href|src)="([^"#]+)')
# What does not distinguish pages from each other: slugs and numbers.
VARIABLE = re.compile(r"(?<=/)(event|series|venue|organizer|category|tag)/[^/]+|(?<=/media/)\d+/\w\w/.+|\d+")
PER_SHAPE = 2  # Linked pages to open of each shape.


def play_all() -> Iterator[str]:
    """Send all requests, and yield the name of each part before it begins."""
    yield "examples"
    make_examples()
    with throwaway() as postgres, temporary_database(postgres.url) as template:
        migrate(replace_database(postgres.url, template))
        freeze_defaults(replace_database(postgres.url, template))
        users = asyncio.run(add_users(replace_database(postgres.url, template)))
        for plays in PLAYS:
            with temporary_database(postgres.url, template=template) as name, TemporaryDirectory() as media:
                url, settings = replace_database(postgres.url, name), {**SETTINGS, "KALENDS_MEDIA_DIR": media}
                if plays is PLAYS[-1]:
                    add_town(url, settings)
                with RunningApp(url, users, settings) as app:
                    for play, argument in plays:
                        yield f"{play.__name__.removeprefix('play_')} {argument}"
                        play(app, argument)


def freeze_defaults(database_url: str) -> None:
    """Replace the time of the server in the defaults of columns."""
    with psycopg.connect(database_url) as connection:
        for row in connection.execute("""
            SELECT table_name, column_name FROM information_schema.columns
            WHERE table_schema = 'public' AND column_default ~ 'now\\(\\)|CURRENT_TIMESTAMP'
        """).fetchall():
            change = sql.SQL("ALTER TABLE {} ALTER {} SET DEFAULT {}")
            connection.execute(change.format(*map(sql.Identifier, row), sql.Literal(NOW)))


def add_town(database_url: str, settings: Mapping[str, str]) -> None:
    with patch.dict(os.environ, make_environment(database_url, settings), clear=True):
        library = open_library(read_settings(), image_workers=2)
    seeding = seed_town(database_url, "", library, media_url="", today=NOW.date(), on_progress=lambda *_: None)
    asyncio.run(seeding)
    for path in Path(settings["KALENDS_MEDIA_DIR"]).rglob("*"):
        os.utime(path, (NOW.timestamp(), NOW.timestamp()))  # For Last-Modified.


def play_kit(app: RunningApp, phase: str) -> None:
    """Send the steps of a phase of the conformance kit."""
    kit = find_kit(None)
    if not kit.exists():
        print(f"{kit} does not exist, so the conformance kit is left out.")
        return
    sys.path.insert(0, str(kit))
    client_module, scenario = import_module("checker.client"), import_module("scenario")
    app.set_site("timezone", "America/New_York")
    administrator, url = app.caller("administrator"), f"{BASE}{APIS['kalends/']}media"
    image = {"file": ("image.gif", draw_image())}
    ids = [administrator.request("POST", url, files=image).json()["id"] for _ in range(2)]

    def exchange(_: Any, method: str, target: str, body: bytes | None, headers: dict[str, str]) -> Any:
        path, _, query = target.partition("?")
        sent = list(headers.items())
        return app.raw(method, unquote(path), query=query.encode(), headers=sent, body=[body or b""])

    users = {role: vars(user) for role, user in app.users.items()}
    client = client_module.Client(BASE + APIS["calendar/"], users, {"media": ids[0], "media2": ids[1]})
    with patch.object(client_module.Client, "_exchange", exchange):
        for step in [step for _, steps in scenario.load(phase) for step in steps]:
            try:
                client.send(step)
            except client_module.Missing as missing:
                print(f"{step['name']}: {missing}")


def play_writes(app: RunningApp, _: str) -> None:
    """Send the requests of wire_requests.txt."""
    console, ids = ConsoleClient.signed_in(app, "administrator"), dict[str, str]()
    for template in REQUESTS.read_text().splitlines():
        line = PLACEHOLDER.sub(lambda match: ids.get(match[1] or match[2], match[0]), template)
        if line == "jobs":
            run_import_jobs(app)
        elif match := REQUEST.fullmatch(line):
            name, role, method, path, page, text = match.groups()
            path = next((path.replace(key, root, 1) for key, root in APIS.items() if path.startswith(key)), path)
            body = json.loads(text) if text else None
            options = {"headers": body.pop("@headers", {})} if isinstance(body, dict) else {}
            if role == "console":
                fields = Page.parse(console.get(page).text).form(**(body or {})) if page else body
                response = console.request(method, path, data=fields, **options)
            else:
                response = app.caller(role).request(method, BASE + path, **_encode(body), **options)
            if name:
                ids[name] = _find_id(response)
        elif line and not line.startswith("#"):
            raise SystemExit(f"{REQUESTS.name}: {line}")


def _encode(body: Any) -> dict[str, Any]:
    """Return the body of a request as options of httpx."""
    if isinstance(body, dict) and "file" in body:
        name, content = body.pop("file")
        return {"files": {"file": (name, draw_image() if content == "GIF" else content)}, "data": body}
    if isinstance(body, dict) and body.pop("@form", False):
        return {"data": body}
    return {"json": body} if body else {}


def _find_id(response: httpx.Response) -> str:
    """Return the ID of the record that a response has or redirects to, or the first ID or revision in a list."""
    if found := re.findall(r"\d+", urlsplit(response.headers.get("location", "")).path):
        return str(found[-1])
    body = response.json() if response.is_success else {}
    records = [body, *[row for value in body.values() if isinstance(value, list) for row in value]]
    return next((str(row[key]) for row in records for key in ("id", "revision") if key in row), "0")


def play_lists(app: RunningApp, _: str) -> None:
    """Send the lists whose plans are tested."""
    reader = app.caller()
    ids = {
        kind: reader.page(kind)[kind][0]["id"] for kind in ("venues", "organizers", "categories", "tags", "events")
    }
    linked = {
        "venue": ids["venues"],
        "organizer": ids["organizers"],
        "category": ids["categories"],
        "tag": ids["tags"],
    }
    site = replace(list_requests.EXAMPLE_SITE, now=NOW, sample_ids=[ids["events"]], **linked)
    for make in (list_requests.single_filters, list_requests.filter_pairs, list_requests.unlimited_filters):
        for query in make(site).values():
            reader.get("/events", query)


def play_pages(app: RunningApp, language: str) -> None:
    reader = app.caller()
    headers = {"accept": "text/html", "accept-language": language}
    crawl(lambda path: reader.get(BASE + path, headers=headers), PAGES, r"/(?!console|api|wp-json|docs)")


def play_console(app: RunningApp, language: str) -> None:
    console = ConsoleClient.signed_in(app, "administrator")
    console.headers["accept-language"] = language
    crawl(console.get, CONSOLE, r"/console(?!.*\.xlsx)")


def crawl(get: Callable[[str], httpx.Response], start: tuple[str, ...], followed: str) -> None:
    """Open pages and the pages that they link to, each twice: the second response may come from a cache.

    Links of pages with a query string are not followed: the filters of lists can be combined in many ways.
    """
    waiting, seen, shapes = deque(start), set(start), Counter[str]()
    while waiting:
        path = waiting.popleft()
        get(path)
        response = get(path)
        is_page = "?" not in path and "html" in response.headers.get("content-type", "")
        links = LINK.findall(response.text) if is_page else []
        for url in [urlsplit(urljoin(BASE + path, unescape(link))) for link in links]:
            target = url._replace(scheme="", netloc="").geturl()
            shape = f"{VARIABLE.sub(r'\1', url.path)}?{url.query.partition('=')[0]}"
            if url.netloc == HOST and target not in seen and re.match(followed, target) and shapes[shape] < PER_SHAPE:
                shapes[shape] += 1
                seen.add(target)
                waiting.append(target)


# The requests of each row run in one application, those of the last in the made-up town.
PLAYS: Final[tuple[tuple[tuple[Callable[[RunningApp, str], None], str], ...], ...]] = (
    ((play_kit, "records"),),
    ((play_kit, "lists"),),
    (
        (play_writes, "town"),
        (play_lists, "town"),
        *[(play, language) for language in LANGUAGES for play in (play_pages, play_console)],
    ),
)

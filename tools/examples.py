"""Generates kalends/api/description/examples.json from a server with a frozen time; `--check` only compares."""

import asyncio
import io
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any, LiteralString
from unittest.mock import patch
from uuid import UUID

import httpx
from PIL import Image

from kalends.accounts.operations import user_accounts
from kalends.api.description.document import EXAMPLE_API, EXAMPLE_BASE, EXAMPLE_EXTENSION, EXAMPLES
from kalends.asgi import create_application
from kalends.calendar.operations import site_options
from kalends.core import credentials
from kalends.core.messages import LANGUAGES, Message
from kalends.core.times import utc_now
from kalends.imports.storage import import_tables
from kalends.push import rules
from kalends.store.database import Database, Options
from kalends.store.migrations import migrate
from tools.postgres import throwaway

HOST = EXAMPLE_BASE.partition("://")[2]
NOW = datetime(2027, 3, 1, 9, 30, tzinfo=UTC)
LOGIN = "anna"
PASSWORD = "abcd efgh ijkl mnop qrst uvwx"  # noqa: S105 - of a database that is thrown away

VENUE = {
    "venue": "Botanical Garden",
    "address": "Königin-Luise-Straße 6",
    "city": "Berlin",
    "country": "Germany",
    "zip": "14195",
    "website": "https://garden.example.org/",
    "geo_lat": 52.4579,
    "geo_lng": 13.3052,
}
ORGANIZER = {
    "organizer": "Friends of the Garden",
    "phone": "+49 30 1234567",
    "website": "https://friends.example.org/",
    "email": "office@friends.example.org",
}
CATEGORY = {"name": "Guided tours", "description": "With somebody who knows the way."}
TAG = {"name": "Families", "slug": "families"}
EVENT = {
    "title": "Orchids by night",
    "start_date": "2027-04-10 19:30:00",
    "end_date": "2027-04-10 21:00:00",
    "timezone": "Europe/Berlin",
    "description": "A walk through the glass houses after dark.",
    "cost": "€12",
    "website": "https://garden.example.org/orchids",
    "categories": [1],
    "tags": ["families"],
    "venue": [1],
    "organizer": [2],
}
IMAGE = {"alt_text": "A path between orchids, lit by lanterns"}
RESTORE = {"revision": 3}
TUESDAYS = {
    "start_date": "2027-04-06 19:30:00",
    "end_date": "2027-04-06 21:00:00",
    "timezone": "Europe/Berlin",
    "rule": {"frequency": "weekly", "weekdays": ["tuesday"], "count": 4},
}
SERIES = {"title": "Drawing plants", "cost": "€8", **TUESDAYS, "remove_dates": ["2027-04-20"]}
DATES = {"add": ["2027-05-11"]}
BATCH = {
    "operations": [
        {"method": "POST", "path": "/venues", "body": {"venue": "Library", "city": "Berlin"}},
        {"method": "PATCH", "path": "/events/3", "body": {"cost": "€14"}},
    ],
    "atomic": True,
}
PROPOSED = {"title": "Seed swap", "start_date": "2027-04-18 10:00:00", "end_date": "2027-04-18 12:00:00"}
IMPORT_SOURCE = {
    "kind": "ical",
    "name": "Town hall",
    "url": "https://town.example.org/events.ics",
    "interval": 240,
    "default_status": "pending",
}
IMPORT_ROWS = (
    {"action": "new", "title": "Council meeting", "identity": "17@town.example.org", "line": 8},
    {
        "action": "rejected",
        "title": "Summer fair",
        "identity": "18@town.example.org",
        "line": 21,
        "reasons": [import_tables.encode_message(Message("The end is before the start."))],
        "state": "skipped",
    },
    {"action": "duplicate", "title": "Flea market", "identity": "19@town.example.org", "state": "waiting"},
)
WEBHOOK = {"name": "Website", "url": "https://hooks.example.org/kalends", "kinds": ["events", "venues"]}
# By kind, for new records, or by operation.
REQUESTS = {
    "events": EVENT,
    "venues": VENUE,
    "organizers": ORGANIZER,
    "categories": CATEGORY,
    "tags": TAG,
    "media": IMAGE,
    "series": SERIES,
    "updateSeries": {"start_date": "20:00"},
    "editEvent": {"start_date": "20:00", "scope": "following"},
    "previewSeries": TUESDAYS,
    "restoreSeries": RESTORE,
    "changeDates": DATES,
    "convertEvent": {"rule": "FREQ=MONTHLY;BYDAY=-1FR"},
    "detachEvent": {"dry_run": True},
    "followSeries": {"fields": ["title"]},
    "splitSeries": {"from": "2027-04-27"},
    "mergeSeries": {"series": 20},
    "dissolveSeries": {"keep": "upcoming"},
    "createImportSource": IMPORT_SOURCE,
    "updateImportSource": {"interval": 60},
    "startImport": {"apply": False},
    "applyImport": {"rows": [1]},
    "decideImportRow": {"row": 3, "same": False},
    "undoImport": {},
    "discardImport": {},
    "createProposal": {"values": PROPOSED, "guessed": ["end_date"], "source": "Poster at the station"},
    "updateProposal": {"values": {**PROPOSED, "cost": "€4"}},
    "returnProposal": {"comment": "Where does it take place?"},
    "rejectProposal": {"reason": "duplicate"},
    "acceptProposal": {},
    "undoProposal": {},
    "withdrawProposal": {},
    "createWebhook": WEBHOOK,
    "updateWebhook": {"state": "paused"},
    "replayWebhook": {"date": "2027-03-01"},
    "testWebhook": {},
    "rotateSecret": {},
    "runBatch": BATCH,
    "restoreEvent": RESTORE,
    "restoreVenue": RESTORE,
    "restoreOrganizer": RESTORE,
}
# Instead of the secrets of the database, which are random.
SECRET = "whsec_C2FsZW5kcyBleGFtcGxlIHNlY3JldCwgMzIgYnl0ZXM="  # noqa: S105
SINGULARS = {"venues": "Venue", "organizers": "Organizer", "categories": "Category", "tags": "Tag", "events": "Event"}
FUTURE = {"start_date": "2027-05-01", "end_date": "2027-05-01"}


def make_examples() -> dict[str, Any]:
    with throwaway() as postgres:
        migrate(postgres.url)
        return asyncio.run(_record_examples(postgres.url))


async def _record_examples(database_url: str) -> dict[str, Any]:
    await _add_users(database_url)
    with _frozen_server(database_url):
        async with _client() as client:
            auth = httpx.BasicAuth(LOGIN, PASSWORD)
            responses = await _record_responses(client, auth)
            await _record_import_responses(client, auth, responses, database_url)
            await _record_proposal_responses(client, auth, responses)
            await _record_webhook_responses(client, auth, responses)
            # Create the deleted tag again for the errors that need one.
            created = await client.post(f"{EXAMPLE_API}/tags", json={"name": TAG["name"]}, auth=auth)
            tag_id = created.json()["id"]
            errors = {language: await _record_errors(client, auth, language, tag_id) for language in LANGUAGES}
    return {"requests": REQUESTS, "answers": responses, "refusals": errors}


async def _record_responses(client: httpx.AsyncClient, admin: httpx.BasicAuth) -> dict[str, Any]:
    """Record successful responses by operation. The order matters, because later requests read earlier records."""
    responses: dict[str, Any] = {}

    async def send(name: str, method: str, url: str, body: Any = None, auth: httpx.BasicAuth | None = admin) -> None:
        response = await client.request(method, url, json=body, auth=auth)
        if not response.is_success:
            raise SystemExit(f"{method} {url}: {response.status_code} {response.text}")
        responses[name] = response.json()

    for kind, singular in SINGULARS.items():
        await send(f"create{singular}", "POST", f"{EXAMPLE_API}/{kind}", REQUESTS[kind])
    for kind, singular in SINGULARS.items():
        record_id = responses[f"create{singular}"]["id"]
        await send(f"list{kind.capitalize()}", "GET", f"{EXAMPLE_API}/{kind}", auth=None)
        await send(f"read{singular}", "GET", f"{EXAMPLE_API}/{kind}/{record_id}", auth=None)
        change = {"phone": "+49 30 7654321"} if kind in ("venues", "organizers") else {"description": "Changed."}
        await send(f"update{singular}", "PATCH", f"{EXAMPLE_API}/{kind}/{record_id}", change)
        if kind in ("events", "venues", "organizers"):
            await send(f"read{singular}History", "GET", f"{EXAMPLE_EXTENSION}/{kind}/{record_id}/history")
    await _record_image_responses(client, admin, responses)
    await send("listChanges", "GET", f"{EXAMPLE_EXTENSION}/changes?since=4", auth=None)
    for kind, singular in reversed(SINGULARS.items()):
        record_id = responses[f"create{singular}"]["id"]
        await send(f"delete{singular}", "DELETE", f"{EXAMPLE_API}/{kind}/{record_id}")
        if kind in ("events", "venues", "organizers"):
            await send(f"restore{singular}", "POST", f"{EXAMPLE_EXTENSION}/{kind}/{record_id}/restore")
    await send("runBatch", "POST", f"{EXAMPLE_EXTENSION}/batch", BATCH)
    series = f"{EXAMPLE_EXTENSION}/series"
    await send("previewSeries", "POST", f"{series}/preview", TUESDAYS)
    await send("createSeries", "POST", series, SERIES)
    one = f"{series}/{responses['createSeries']['id']}"
    await send("listSeries", "GET", series, auth=None)
    await send("readSeries", "GET", one, auth=None)
    await send("listOccurrences", "GET", f"{one}/occurrences", auth=None)
    await send("updateSeries", "PATCH", one, REQUESTS["updateSeries"])
    await send("changeDates", "POST", f"{one}/dates", DATES)
    await send("readSeriesHistory", "GET", f"{one}/history")
    await send("deleteSeries", "DELETE", one)
    return responses


async def _record_image_responses(
    client: httpx.AsyncClient, auth: httpx.BasicAuth, responses: dict[str, Any]
) -> None:
    """Record the responses about images."""
    upload = {"files": {"file": ("orchids.gif", draw_image())}, "data": IMAGE}
    requests: list[tuple[str, str, str, dict[str, Any]]] = [
        ("createMedia", "POST", "", upload),
        ("listMedia", "GET", "", {}),
        ("readMedia", "GET", "/{id}", {}),
        ("updateMedia", "PATCH", "/{id}", {"json": {"focus_x": 0.25}}),
        ("deleteMedia", "DELETE", "/{id}", {}),
    ]
    for name, method, path, options in requests:
        url = f"{EXAMPLE_EXTENSION}/media" + path.format(id=responses.get("createMedia", {}).get("id"))
        response = await client.request(method, url, auth=auth, **options)
        if not response.is_success:
            raise SystemExit(f"{method} {url}: {response.status_code} {response.text}")
        responses[name] = response.json()


def draw_image() -> bytes:
    """Return a GIF, whose bytes do not depend on library versions."""
    content = io.BytesIO()
    Image.new("P", (40, 30)).save(content, "GIF")
    return content.getvalue()


async def _record_import_responses(
    client: httpx.AsyncClient, auth: httpx.BasicAuth, responses: dict[str, Any], database_url: str
) -> None:
    """Record the responses about imports. No worker is running, so the plan is added here."""

    async def send(name: str, method: str, path: str) -> Any:
        url = f"{EXAMPLE_EXTENSION}/imports{path}"
        response = await client.request(method, url, json=REQUESTS.get(name), auth=auth)
        if not response.is_success:
            raise SystemExit(f"{method} {url}: {response.status_code} {response.text}")
        responses[name] = response.json()
        return responses[name].get("id")

    source = f"/sources/{await send('createImportSource', 'POST', '/sources')}"
    await send("listImportSources", "GET", "/sources")
    await send("readImportSource", "GET", source)
    await send("updateImportSource", "PATCH", source)
    run_id = await send("startImport", "POST", f"{source}/runs")
    await _change_run(database_url, run_id, {"state": "planned", "planned_at": NOW}, IMPORT_ROWS)
    run = f"/runs/{run_id}"
    await send("listImportRuns", "GET", "/runs")
    await send("readImportRun", "GET", run)
    await send("listImportRows", "GET", f"{run}/rows")
    await send("decideImportRow", "POST", f"{run}/decide")
    await send("applyImport", "POST", f"{run}/apply")
    await _change_run(database_url, run_id, {"state": "applied", "first_revision": 1, "last_revision": 1})
    undo = await send("undoImport", "POST", f"{run}/undo")
    await send("discardImport", "POST", f"/runs/{undo}/discard")
    await send("deleteImportSource", "DELETE", source)


async def _record_proposal_responses(
    client: httpx.AsyncClient, auth: httpx.BasicAuth, responses: dict[str, Any]
) -> None:
    """Record the responses about proposals, in the order of one that is accepted after a question."""
    root, path, etag = f"{EXAMPLE_EXTENSION}/proposals", "", ""
    for method, name, action in (
        ("POST", "createProposal", ""),
        ("POST", "returnProposal", "/return"),
        ("PATCH", "updateProposal", ""),
        ("POST", "rejectProposal", "/reject"),
        ("POST", "undoProposal", "/undo"),
        ("POST", "acceptProposal", "/accept"),
        ("GET", "readProposal", ""),
        ("GET", "listProposals", None),
    ):
        url = root if action is None else f"{root}{path}{action}"
        headers = {"If-Match": etag} if etag and method != "GET" else {}
        response = await client.request(method, url, json=REQUESTS.get(name), auth=auth, headers=headers)
        if not response.is_success:
            raise SystemExit(f"{method} {url}: {response.status_code} {response.text}")
        responses[name] = response.json()
        path, etag = path or f"/{responses[name]['id']}", response.headers.get("etag", etag)


async def _record_webhook_responses(
    client: httpx.AsyncClient, auth: httpx.BasicAuth, responses: dict[str, Any]
) -> None:
    """Record the responses about webhooks. No worker is running, so nothing is delivered."""
    path = ""
    for method, name, action in (
        ("POST", "createWebhook", ""),
        ("GET", "listWebhooks", None),
        ("GET", "readWebhook", ""),
        ("GET", "listDeliveries", "/deliveries"),
        ("POST", "testWebhook", "/test"),
        ("POST", "rotateSecret", "/rotate"),
        ("POST", "replayWebhook", "/replay"),
        ("PATCH", "updateWebhook", ""),
        ("DELETE", "deleteWebhook", ""),
    ):
        url = f"{EXAMPLE_EXTENSION}/webhooks" + ("" if action is None else f"{path}{action}")
        response = await client.request(method, url, json=REQUESTS.get(name), auth=auth)
        if not response.is_success:
            raise SystemExit(f"{method} {url}: {response.status_code} {response.text}")
        responses[name] = response.json()
        path = path or f"/{responses[name]['id']}"
        if "secret" in responses[name]:
            responses[name]["secret"] = SECRET


async def _change_run(
    database_url: str, run_id: int, values: Mapping[LiteralString, Any], rows: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Do the work of a worker."""
    database = await Database.open(Options(url=database_url))
    try:
        async with database.transaction(HOST, NOW, writing=True) as tx:
            numbered = [{"number": number, "kind": "events", **row} for number, row in enumerate(rows, 1)]
            await import_tables.add_rows(tx, run_id, numbered)
            counts = import_tables.encode(await import_tables.count_rows(tx, run_id))
            await import_tables.change_run(tx, run_id, {**values, "counts": counts})
    finally:
        await database.close()


async def _record_errors(
    client: httpx.AsyncClient, admin: httpx.BasicAuth, language: str, tag_id: int
) -> dict[str, Any]:
    """Record error responses by status and code in one language. None of the requests affects later ones."""
    errors: dict[str, Any] = {}

    async def send(method: str, url: str, auth: httpx.BasicAuth | None = None, **options: Any) -> None:
        options["headers"] = {"Accept-Language": language, **options.get("headers", {})}
        target = url if url.startswith("http") else f"{EXAMPLE_API}{url}"
        response = await client.request(method, target, auth=auth, **options)
        body = response.json()
        if response.is_success:
            raise SystemExit(f"{method} {url} was not refused")
        errors[f"{response.status_code}.{body['code']}"] = body

    headers = {"content-type": "application/json"}
    await send("POST", "/events", admin, json={"title": "Orchids by night"})
    await send("GET", "/events", params={"per_page": "many", "start_date": "next friday"})
    await send("POST", "/events", admin, content=b'{"title":', headers=headers)
    await send("PATCH", f"/tags/{tag_id}", admin, content=b"Other", headers={"content-type": "text/plain"})
    await send("GET", "/events?search=%FF")
    await send("POST", "/tags", admin, json={"name": TAG["name"]})
    await send("GET", "/events", httpx.BasicAuth("nobody", "wrong"))
    await send("POST", "/events", json={"title": "Orchids by night", **FUTURE})
    await send("POST", "/tags", httpx.BasicAuth("berta", PASSWORD), json={"name": "New"})
    await send("POST", "/events", httpx.BasicAuth("reader", PASSWORD), json={"title": "New", **FUTURE})
    for kind in SINGULARS:
        await send("GET", f"/{kind}/999")
        if kind in ("events", "venues", "organizers"):
            await send("GET", f"/{kind}", params={"page": 9})
    await send("GET", f"{EXAMPLE_EXTENSION}/media/999", admin)
    await send("GET", f"{EXAMPLE_EXTENSION}/imports/sources/999", admin)
    await send("GET", f"{EXAMPLE_EXTENSION}/proposals/019d0000-0000-7000-8000-000000000999", admin)
    await send("GET", f"{EXAMPLE_EXTENSION}/webhooks/zzzzzzzzzzzz", admin)
    await send("GET", "/nothing")
    await send("GET", "/", params={"namespace": "wp/v2"})
    await send("PUT", "/events")
    await send("PATCH", f"/tags/{tag_id}", admin, json={"name": "Other"}, headers={"If-Match": '"1-0"'})
    await send("GET", f"{EXAMPLE_EXTENSION}/changes", params={"since": 9999})
    return errors


async def _add_users(database_url: str) -> None:
    """Add an administrator, a contributor and a user with a read-only password, all with the same password."""
    database = await Database.open(Options(url=database_url))
    try:
        async with database.transaction(HOST, NOW, writing=True) as tx:
            await site_options.set_site(tx, "timezone", "Europe/Berlin")
            with patch.object(credentials, "new_application_password", return_value=PASSWORD):
                for login, role in ((LOGIN, "administrator"), ("berta", "contributor"), ("reader", "editor")):
                    await user_accounts.add_user(tx, login, role, f"{login}@example.org")
                    await user_accounts.add_application_password(tx, login, "examples", read_only=login == "reader")
    finally:
        await database.close()


@contextmanager
def freeze() -> Iterator[None]:
    """Freeze the time and number the UIDs."""
    numbers = count(1)

    def make_uid() -> str:
        return str(UUID(int=(0x019D << 112) + (7 << 76) + next(numbers)))

    def get_now(now: datetime = NOW) -> datetime:
        return now

    # Other modules have imported the function, and some use it as a default, so its code is replaced.
    original = utc_now.__code__, utc_now.__defaults__
    utc_now.__code__, utc_now.__defaults__ = get_now.__code__, get_now.__defaults__
    try:
        with (
            patch.object(credentials, "new_uid", make_uid),
            patch.object(rules, "new_webhook_id", return_value="a1b2c3d4e5f6"),
        ):
            yield
    finally:
        utc_now.__code__, utc_now.__defaults__ = original


@contextmanager
def _frozen_server(database_url: str) -> Iterator[None]:
    """Freeze the time, and set the environment of a server."""
    environment = {
        **os.environ,
        "KALENDS_DATABASE_URL": database_url,
        "KALENDS_CACHE_MB": "0",
        "KALENDS_BASE_URL": EXAMPLE_BASE,
    }
    with (
        TemporaryDirectory() as directory,
        patch.dict(os.environ, {**environment, "KALENDS_MEDIA_DIR": f"{directory}/media"}),
        freeze(),
    ):
        yield


@asynccontextmanager
async def _client() -> AsyncIterator[httpx.AsyncClient]:
    """Run the application in this process and yield a client for it."""
    app = create_application()
    inbox: asyncio.Queue[Any] = asyncio.Queue()
    outbox: asyncio.Queue[Any] = asyncio.Queue()
    lifespan = asyncio.create_task(app({"type": "lifespan", "asgi": {"version": "3.0"}}, inbox.get, outbox.put))
    await inbox.put({"type": "lifespan.startup"})
    await outbox.get()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app)) as client:
        yield client
    await inbox.put({"type": "lifespan.shutdown"})
    await lifespan


def render() -> str:
    return json.dumps(make_examples(), ensure_ascii=False, indent=1) + "\n"


def main() -> int:
    text = render()
    if "--check" in sys.argv:
        return 0 if EXAMPLES.exists() and EXAMPLES.read_text() == text else 1
    EXAMPLES.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

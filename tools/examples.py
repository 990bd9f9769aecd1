"""Write kalends/api/description/examples.json from a server whose clock stands still; `--check` compares."""

import asyncio
import io
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch
from uuid import UUID

import httpx
from PIL import Image

from kalends.api.description.document import EXAMPLE_BASE, EXAMPLE_HOME, EXAMPLE_OURS, EXAMPLES
from kalends.asgi import create_application
from kalends.http.language import LANGUAGES
from kalends.operations import accounts
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
REQUESTS = {"events": EVENT, "venues": VENUE, "organizers": ORGANIZER, "categories": CATEGORY, "tags": TAG}
CREATED = {"venues": "Venue", "organizers": "Organizer", "categories": "Category", "tags": "Tag", "events": "Event"}
FUTURE = {"start_date": "2027-05-01", "end_date": "2027-05-01"}


def make() -> dict[str, Any]:
    with throwaway() as postgres:
        migrate(postgres.url)
        return asyncio.run(_record(postgres.url))


async def _record(database_url: str) -> dict[str, Any]:
    await _add_people(database_url)
    with _standing_still(database_url):
        async with _client() as client:
            signed = httpx.BasicAuth(LOGIN, PASSWORD)
            answers = await _answers(client, signed)
            # The one that was deleted comes back, for refusals that need one.
            again = await client.post(f"{EXAMPLE_HOME}/tags", json={"name": TAG["name"]}, auth=signed)
            tag_id = again.json()["id"]
            refusals = {language: await _refusals(client, signed, language, tag_id) for language in LANGUAGES}
    return {"requests": REQUESTS, "answers": answers, "refusals": refusals}


async def _answers(client: httpx.AsyncClient, signed: httpx.BasicAuth) -> dict[str, Any]:
    """Successes by operation. The order matters: what one creates, the next one reads."""
    answers: dict[str, Any] = {}

    async def ask(name: str, method: str, url: str, body: Any = None, auth: httpx.BasicAuth | None = signed) -> None:
        answer = await client.request(method, url, json=body, auth=auth)
        if not answer.is_success:
            raise SystemExit(f"{method} {url}: {answer.status_code} {answer.text}")
        answers[name] = answer.json()

    for kind, singular in CREATED.items():
        await ask(f"create{singular}", "POST", f"{EXAMPLE_HOME}/{kind}", REQUESTS[kind])
    for kind, singular in CREATED.items():
        record_id = answers[f"create{singular}"]["id"]
        await ask(f"list{kind.capitalize()}", "GET", f"{EXAMPLE_HOME}/{kind}", auth=None)
        await ask(f"read{singular}", "GET", f"{EXAMPLE_HOME}/{kind}/{record_id}", auth=None)
        change = {"phone": "+49 30 7654321"} if kind in ("venues", "organizers") else {"description": "Changed."}
        await ask(f"update{singular}", "PATCH", f"{EXAMPLE_HOME}/{kind}/{record_id}", change)
        if kind in ("events", "venues", "organizers"):
            await ask(f"read{singular}History", "GET", f"{EXAMPLE_OURS}/{kind}/{record_id}/history")
    await _ask_about_images(client, signed, answers)
    await ask("listChanges", "GET", f"{EXAMPLE_OURS}/changes?since=4", auth=None)
    for kind, singular in reversed(CREATED.items()):
        record_id = answers[f"create{singular}"]["id"]
        await ask(f"delete{singular}", "DELETE", f"{EXAMPLE_HOME}/{kind}/{record_id}")
        if kind in ("events", "venues", "organizers"):
            await ask(f"restore{singular}", "POST", f"{EXAMPLE_OURS}/{kind}/{record_id}/restore")
    return answers


async def _ask_about_images(client: httpx.AsyncClient, signed: httpx.BasicAuth, answers: dict[str, Any]) -> None:
    """A GIF, because its bytes do not depend on the version of any library."""
    content = io.BytesIO()
    Image.new("P", (40, 30)).save(content, "GIF")
    form = {"alt_text": "A path between orchids, lit by lanterns"}
    sent = {"files": {"file": ("orchids.gif", content.getvalue())}, "data": form}
    requests: list[tuple[str, str, str, dict[str, Any]]] = [
        ("createMedia", "POST", "", sent),
        ("listMedia", "GET", "", {}),
        ("readMedia", "GET", "/{id}", {}),
        ("updateMedia", "PATCH", "/{id}", {"json": {"focus_x": 0.25}}),
        ("deleteMedia", "DELETE", "/{id}", {}),
    ]
    for name, method, path, options in requests:
        address = f"{EXAMPLE_OURS}/media" + path.format(id=answers.get("createMedia", {}).get("id"))
        answer = await client.request(method, address, auth=signed, **options)
        if not answer.is_success:
            raise SystemExit(f"{method} {address}: {answer.status_code} {answer.text}")
        answers[name] = answer.json()


async def _refusals(client: httpx.AsyncClient, signed: httpx.BasicAuth, language: str, tag_id: int) -> dict[str, Any]:
    """Refusals by status and code, said in one language. None of these requests changes anything for the next."""
    found: dict[str, Any] = {}

    async def ask(method: str, url: str, auth: httpx.BasicAuth | None = None, **options: Any) -> None:
        options["headers"] = {"Accept-Language": language, **options.get("headers", {})}
        address = url if url.startswith("http") else f"{EXAMPLE_HOME}{url}"
        answer = await client.request(method, address, auth=auth, **options)
        body = answer.json()
        if answer.is_success:
            raise SystemExit(f"{method} {url} was not refused")
        found[f"{answer.status_code}.{body['code']}"] = body

    text = {"content-type": "application/json"}
    await ask("POST", "/events", json={"title": "Orchids by night"})
    await ask("GET", "/events", params={"per_page": "many", "start_date": "tomorrow"})
    await ask("POST", "/events", content=b'{"title":', headers=text)
    await ask("GET", "/events?search=%FF")
    await ask("POST", "/tags", signed, json={"name": TAG["name"]})
    await ask("GET", "/events", httpx.BasicAuth("nobody", "wrong"))
    await ask("POST", "/events", json={"title": "Orchids by night", **FUTURE})
    await ask("POST", "/tags", httpx.BasicAuth("berta", PASSWORD), json={"name": "New"})
    await ask("POST", "/events", httpx.BasicAuth("reader", PASSWORD), json={"title": "New", **FUTURE})
    for kind in CREATED:
        await ask("GET", f"/{kind}/999")
        if kind in ("events", "venues", "organizers"):
            await ask("GET", f"/{kind}", params={"page": 9})
    await ask("GET", f"{EXAMPLE_OURS}/media/999", signed)
    await ask("GET", "/nothing")
    await ask("GET", "/", params={"namespace": "wp/v2"})
    await ask("PUT", "/events")
    await ask("PATCH", f"/tags/{tag_id}", signed, json={"name": "Other"}, headers={"If-Match": '"1-0"'})
    await ask("GET", f"{EXAMPLE_OURS}/changes", params={"since": 9999})
    return found


async def _add_people(database_url: str) -> None:
    """Anna, who may do everything; Berta, a contributor; a password that only reads. All have the same one."""
    database = await Database.open(Options(url=database_url))
    try:
        async with database.transaction(HOST, NOW, writing=True) as tx:
            await accounts.set_site(tx, "timezone", "Europe/Berlin")
            with patch("kalends.core.credentials.new_application_password", return_value=PASSWORD):
                for login, role in ((LOGIN, "administrator"), ("berta", "contributor"), ("reader", "editor")):
                    await accounts.add_user(tx, login, role, f"{login}@example.org")
                    await accounts.add_application_password(tx, login, "examples", read_only=login == "reader")
    finally:
        await database.close()


@contextmanager
def _standing_still(database_url: str) -> Iterator[None]:
    """The clock does not move and names are not random."""
    numbers = count(1)
    environment = {**os.environ, "KALENDS_DATABASE_URL": database_url, "KALENDS_CACHE_MB": "0"}
    with (
        TemporaryDirectory() as directory,
        patch.dict(os.environ, {**environment, "KALENDS_MEDIA_DIR": f"{directory}/media"}),
        patch("kalends.asgi.utc_now", return_value=NOW),
        patch(
            "kalends.core.credentials.new_uid",
            side_effect=lambda: UUID(int=(0x019D << 112) + (7 << 76) + next(numbers)),
        ),
    ):
        yield


@asynccontextmanager
async def _client() -> AsyncIterator[httpx.AsyncClient]:
    """The application in this process, started and stopped."""
    app = create_application()
    inbox: asyncio.Queue[Any] = asyncio.Queue()
    outbox: asyncio.Queue[Any] = asyncio.Queue()
    living = asyncio.create_task(app({"type": "lifespan", "asgi": {"version": "3.0"}}, inbox.get, outbox.put))
    await inbox.put({"type": "lifespan.startup"})
    await outbox.get()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app)) as client:
        yield client
    await inbox.put({"type": "lifespan.shutdown"})
    await living


def render() -> str:
    return json.dumps(make(), ensure_ascii=False, indent=1) + "\n"


def main() -> int:
    made = render()
    if "--check" in sys.argv:
        return 0 if EXAMPLES.exists() and EXAMPLES.read_text() == made else 1
    EXAMPLES.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())

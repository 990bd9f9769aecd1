"""A site in this process: the real application on a real database, with a clock that a test sets.

Records are written by the operations of the application, in one transaction; lists are requested over HTTP.
"""

import asyncio
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from datetime import UTC, datetime
from itertools import count
from typing import Any

import asyncpg
import httpx
import pytest

from kalends.asgi import create_application
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.kind import Actor, Kind
from kalends.calendar.operations.event_links import resolve_links
from kalends.calendar.operations.writes import add_record, change_record
from kalends.core import credentials
from kalends.core.params import read_params
from kalends.store.database import Database, Options, Transaction
from kalends.store.sql import Sql
from tests.lists.dataset import EPOCH, USERS, Dataset, Event, Place, Post, Term
from tests.servers import make_cell_settings

HOST = "lists.example"
BASE = f"http://{HOST}/api/calendar/events/v1"
EDITOR = Actor(USERS["editor"], "editor", "editor")
# In this order everything that a record refers to is there before it.
KINDS = ("categories", "tags", "venues", "organizers", "events")
# A change that no operation makes is a change all the same: caches look at the revision.
INCREMENT_REVISION = "UPDATE sites SET revision = revision + 1"


class ListSite:
    """Opened by `open_site`. `asked` counts the requests for lists."""

    def __init__(self, loop: asyncio.Runner, app: Any, database: Database, owner: Any) -> None:
        self._loop = loop
        self._app = app
        self._database = database
        self._connection = owner
        self._passwords: dict[str, str] = {}
        self._addresses = count()
        self.now = EPOCH
        self.requests = 0

    def get_list(self, target_url: str, role: str, params: Sequence[tuple[str, str]] = ()) -> httpx.Response:
        """GET a list: a path below the namespace, or a whole address such as a link to the next page."""
        self.requests += 1
        # None leaves the query of an address as it is; an empty list would remove it.
        return self.send("GET", target_url, role, params=list(params) or None)

    def send(self, method: str, address: str, role: str, **more: Any) -> httpx.Response:
        return self._loop.run(self._send(method, address, role, **more))

    async def _send(self, method: str, url: str, role: str, **more: Any) -> httpx.Response:
        # Requests with a password have a new address each time, so that the limit of guesses does not apply.
        guesses = any(name == "password" for name, _ in more.get("params") or ()) or "password=" in url
        client = f"guest-{next(self._addresses)}" if guesses else "127.0.0.1"
        auth = (role, self._passwords[role]) if role in self._passwords else None
        transport = httpx.ASGITransport(self._app, client=(client, 1))
        async with httpx.AsyncClient(transport=transport, base_url=BASE, auth=auth, trust_env=False) as sender:
            return await sender.request(method, url, **more)

    def load(self, world: Dataset) -> None:
        """Replace all records with those of the data set, and keep their IDs."""
        self.now = world.now
        self._loop.run(self._load(world))

    async def _load(self, dataset: Dataset) -> None:
        await self._connection.execute(
            "TRUNCATE events, venues, organizers, categories, tags, event_venues, event_organizers, "
            "event_categories, event_tags, event_days, link_days, changes CASCADE; "
            f"UPDATE sites SET last_post_id = 0, last_term_id = 0; {INCREMENT_REVISION}"
        )
        await self._connection.execute(
            "UPDATE sites SET timezone = $1, per_page = $2", dataset.zone, dataset.per_page
        )
        async with self._database.transaction(HOST, dataset.now, writing=True) as tx:
            await tx.lock_site(EDITOR.user_id)
            for kind in KINDS:
                for record in getattr(dataset, kind):
                    await _add(tx, BY_NAME[kind], record)
            # Last, because nothing can be linked to what is in the trash.
            for kind in KINDS[2:]:
                for post in getattr(dataset, kind):
                    if post.status == "trash":
                        await _move_to_trash(tx, BY_NAME[kind], post)
        await self._connection.execute(INCREMENT_REVISION)

    def delete_permanently(self, event_id: int) -> None:
        """Delete an event permanently, which the API never does."""
        self._loop.run(self._connection.execute(f"DELETE FROM events WHERE id = {event_id}; {INCREMENT_REVISION}"))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._loop.run(self._connection.fetch(sql))]

    async def add_users(self) -> None:
        secret = await self._connection.fetchval("SELECT secret FROM sites")
        for role, user_id in USERS.items():
            self._passwords[role] = credentials.new_application_password()
            await self._connection.execute(
                "INSERT INTO users (site_id, id, login, role) VALUES (1, $1, $2::text, $2::text)", user_id, role
            )
            # Used in the far future, so that no use is worth a note.
            await self._connection.execute(
                "INSERT INTO application_passwords (site_id, user_id, name, hash, last_used_at) "
                "VALUES (1, $1, 'tests', $2, $3)",
                user_id,
                credentials.hash_application_password(secret, self._passwords[role]),
                datetime(9999, 1, 1, tzinfo=UTC),
            )


@contextmanager
def open_site(database_url: str) -> Iterator[ListSite]:
    """Start and stop the application as a server does, with the time of the site as the current time."""
    with asyncio.Runner() as loop, pytest.MonkeyPatch.context() as patch:
        for name, value in {"KALENDS_DATABASE_URL": database_url, **make_cell_settings(database_url)}.items():
            patch.setenv(name, value)
        with redirect_stderr(ErrorLog()):
            app = create_application()
        owner = loop.run(_connect(database_url))
        database = loop.run(Database.open(Options(database_url, size=1, transaction_timeout=600)))
        site = ListSite(loop, app, database, owner)
        patch.setattr("kalends.asgi.utc_now", lambda: site.now)
        loop.run(site.add_users())
        lifespan = loop.run(_start(app))
        try:
            yield site
        finally:
            loop.run(_stop(lifespan))
            loop.run(database.close())
            loop.run(owner.close())


class ErrorLog(io.TextIOBase):
    """The log of the application, of which only faults are shown: a request a line would be too much."""

    def write(self, text: str) -> int:
        return sys.__stderr__.write(text) if "fault" in text and sys.__stderr__ else len(text)


type Lifespan = tuple[asyncio.Task[None], asyncio.Queue[Any]]


async def _connect(database_url: str) -> Any:
    return await asyncpg.connect(database_url)


async def _start(app: Any) -> Lifespan:
    to_app: asyncio.Queue[Any] = asyncio.Queue()
    from_app: asyncio.Queue[Any] = asyncio.Queue()
    task = asyncio.create_task(app({"type": "lifespan"}, to_app.get, from_app.put))
    await to_app.put({"type": "lifespan.startup"})
    assert await from_app.get() == {"type": "lifespan.startup.complete"}
    return task, to_app


async def _stop(lifespan: Lifespan) -> None:
    task, to_app = lifespan
    await to_app.put({"type": "lifespan.shutdown"})
    await task


# Request bodies ------------------------------------------------------------------------------


async def _add(tx: Transaction, kind: Kind, record: Post | Term) -> None:
    if isinstance(record, Post):
        tx.now = record.modified
    values = read_params(kind.fields, build_params(kind.singular, record))
    call = _operation_context(tx, values)
    added = await add_record(kind, call, values, (await resolve_links(kind, call, values)).ids)
    assert added == record.id, f"{kind.singular} {record.id} got the ID {added}"


async def _move_to_trash(tx: Transaction, kind: Kind, post: Post) -> None:
    tx.now = post.modified
    row = await tx.fetch_one(kind.select(Sql("r.site_id = ? AND r.id = ?", tx.site.id, post.id)))
    assert row is not None
    await change_record(kind, _operation_context(tx, {}), row, {"status": "trash"})


def _operation_context(tx: Transaction, values: Mapping[str, Any]) -> OperationContext:
    return OperationContext(transaction=tx, actor=EDITOR, base_url=f"http://{HOST}", api_url=BASE, values=values)


def build_params(name_param: str, record: Post | Term) -> dict[str, object]:
    """What a client would send to create this record."""
    if isinstance(record, Term):
        parent = {"parent": record.parent} if record.parent else {}
        return {"name": record.name, "slug": record.slug, "description": record.description, **parent}
    post: dict[str, object] = {
        "author": record.author,
        "status": record.status_before_trash if record.status == "trash" else record.status,
        "date_utc": format_datetime(record.published),
    }
    if isinstance(record, Place):
        point = {"geo_lat": record.point[0], "geo_lng": record.point[1]} if record.point else {}
        return {name_param: record.title, **post, **dict(record.texts), **point}
    assert isinstance(record, Event)
    return {"title": record.title, "excerpt": record.excerpt, **post, **_event_parameters(record)}


def _event_parameters(event: Event) -> Mapping[str, object]:
    words = event.description.split(" ")
    return {
        "description": " ".join(event.markup.format(word) for word in words) if event.markup else event.description,
        "timezone": event.zone,
        "all_day": event.all_day,
        "start_date": format_datetime(event.start_local),
        "end_date": format_datetime(event.end_local),
        "hide_from_listings": event.hidden,
        "featured": event.featured,
        "new_password": event.password,
        "ticket_url": event.ticket_url,
        "venue": list(event.venues),
        "organizer": list(event.organizers),
        "categories": list(event.categories),
        "tags": list(event.tags),
    }


def format_datetime(value: datetime) -> str:
    return value.isoformat(" ", "seconds")[:19]

"""The application in this process, its sites and their callers.

Requests go through the whole ASGI application; only the network is left out. Tests that need a
process, a log or bytes on a socket start a server (test_server_process.py).
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any, Self
from unittest.mock import patch

import asyncpg
import httpx
import orjson

from kalends.accounts.operations import user_accounts
from kalends.adapters.tracing import Tracer
from kalends.asgi import Application, create_application
from kalends.calendar.operations import site_options
from kalends.core.times import utc_now
from kalends.fleet.storage import directory
from kalends.store.database import Database, Options, Transaction
from kalends.store.sites import add_site
from tests.servers import EMPTY_CELLS, make_cell_settings, make_environment

# The host of the first site of a database.
HOST = "calendar.test"
API_PATH = "/api/calendar/events/v1"
ROLES = ("subscriber", "contributor", "author", "editor", "administrator")

Message = MutableMapping[str, Any]


@dataclass(frozen=True)
class User:
    id: int
    login: str
    password: str


async def add_users(database_url: str) -> dict[str, User]:
    """Add users to the first site of a database."""
    database = await Database.open(Options(url=database_url))
    try:
        async with database.transaction(1, utc_now(), writing=True) as tx:
            return await create_users(tx)
    finally:
        await database.close()


async def create_users(tx: Transaction) -> dict[str, User]:
    """One user for each role, each with an application password."""
    users: dict[str, User] = {}
    for role in ROLES:
        user_id = await user_accounts.add_user(tx, role, role, f"{role}@example.org")
        password = await user_accounts.add_application_password(tx, role, "tests")
        users[role] = User(user_id, role, password)
    return users


class RunningApp:
    """A running application, as seen from one of its sites: the first, or one of `add_site`."""

    host = HOST
    site_id = 1

    def __init__(
        self,
        database_url: str,
        users: Mapping[str, User],
        settings: Mapping[str, str] | None = None,
        *,
        tracer: Tracer | None = None,
    ) -> None:
        self.database_url = database_url
        self.users = users
        self._runner = asyncio.Runner()
        self._directory = TemporaryDirectory(prefix="kalends-test-")
        defaults = {
            "KALENDS_MEDIA_DIR": f"{self._directory.name}/media",
            "KALENDS_POOL_TIMEOUT": "10",  # On a busy machine, a new connection can take more than a second.
            **make_cell_settings(database_url),
        }
        environment = make_environment(database_url, {**defaults, **(settings or {})})
        with patch.dict(os.environ, environment, clear=True):
            self.asgi: Application = create_application(tracer)
        self._to_app: asyncio.Queue[Message] = asyncio.Queue()
        self._from_app: asyncio.Queue[Message] = asyncio.Queue()
        self._lifespan: asyncio.Task[None] | None = None
        self._database = self.run(Database.open(Options(url=database_url, pool_timeout=10)))
        self._is_confined = False
        self._connections: list[asyncpg.Connection] = []  # at most one, of the owner; shared by all sites

    def __enter__(self) -> Self:
        self.run(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections:
            self.run(connection.close())
        self.run(self._database.close())
        self.run(self._stop())
        self._runner.close()
        self._directory.cleanup()

    @property
    def base_url(self) -> str:
        return f"http://{self.host}"

    @property
    def api_url(self) -> str:
        return f"{self.base_url}{API_PATH}"

    def make_url(self, path: str) -> str:
        """Return the URL of a path below the namespace, or below the host if it begins with //."""
        return f"{self.base_url}{path[1:]}" if path.startswith("//") else f"{self.api_url}{path}"

    def add_site(self) -> "RunningApp":
        """Add a site with users to the database, and return this application as seen from it."""
        site = copy(self)
        site.host = f"{token_hex(4)}.test"
        site.site_id = self.run(self._add_site(site.host))
        site.users = site.run_operation(create_users)
        site._is_confined = True
        return site

    def twin(self, settings: Mapping[str, str] | None = None) -> "RunningApp":
        """Return another application on the same site, as a second process has."""
        twin = RunningApp(self.database_url, self.users, settings)
        twin.host, twin.site_id, twin._is_confined = self.host, self.site_id, self._is_confined
        return twin

    def run[T](self, work: Coroutine[Any, Any, T]) -> T:
        """Run work in the application's event loop, in another thread while Playwright's loop runs in this one."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._runner.run(work)
        with ThreadPoolExecutor(1) as executor:
            return executor.submit(self._runner.run, work).result()

    def flush_log(self) -> None:
        """Write the lines of the access log that are being collected."""
        self.asgi._telemetry.flush()

    def caller(self, role: str = "anonymous") -> "Caller":
        user = self.users.get(role)
        return Caller(self, user.id if user else 0, make_auth(user))

    def sql(self, text: str, *values: object) -> list[asyncpg.Record]:
        """Run a statement: on a database with one site as its owner, else in this site, with row-level security."""
        return self._fetch(text, values, is_confined=self._is_confined)

    def jobs(self, task_name: str = "%") -> list[dict[str, Any]]:
        """Return the jobs of the site, in the order of their creation."""
        text = "SELECT * FROM procrastinate_jobs WHERE args ->> 'site_id' = $1 AND task_name LIKE $2 ORDER BY id"
        rows = self._fetch(text, (str(self.site_id), task_name), is_confined=False)
        return [{**row, "args": orjson.loads(row["args"])} for row in rows]

    def remove_jobs(self, jobs: Sequence[Mapping[str, Any]]) -> None:
        ids = [job["id"] for job in jobs]
        self._fetch("DELETE FROM procrastinate_jobs WHERE id = ANY($1)", (ids,), is_confined=False)

    def _fetch(self, text: str, values: Sequence[object], *, is_confined: bool) -> list[asyncpg.Record]:
        async def fetch() -> list[asyncpg.Record]:
            if not self._connections or self._connections[0].is_closed():
                # A cached statement would fail after a test has changed the table.
                self._connections[:] = [await asyncpg.connect(self.database_url, statement_cache_size=0)]
            (connection,) = self._connections
            async with connection.transaction():
                if is_confined:
                    await connection.execute("SET LOCAL ROLE kalends_app")
                    await connection.execute("SELECT enter_site_number($1)", self.site_id)
                return await connection.fetch(text, *values)

        return self.run(fetch())

    def run_with_database[T](self, work: Callable[[Database], Awaitable[T]]) -> T:
        """Run a function with a database that stays open until the application ends."""

        async def run() -> T:
            return await work(self._database)

        return self.run(run())

    def run_operation[T](self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run an operation in a writing transaction, as a command would."""

        async def run() -> T:
            async with self._database.transaction(self.site_id, utc_now(), writing=True) as tx:
                return await work(tx)

        return self.run(run())

    def set_site(self, key: str, value: str) -> None:
        self.run_operation(lambda tx: site_options.set_site(tx, key, value))

    def raw(self, method: str, path: str, *, query: bytes = b"", headers: Sequence[tuple[str, str]] = (),
            body: Sequence[bytes] = (b"",)) -> tuple[int, dict[str, str], bytes]:  # fmt: skip
        """A request that no HTTP library would send: any bytes in query, headers and pieces of the body."""
        return self.run(self._raw(method, path, query, headers, body))

    async def _raw(
        self, method: str, path: str, query: bytes, headers: Sequence[tuple[str, str]], body: Sequence[bytes]
    ) -> tuple[int, dict[str, str], bytes]:
        pieces = [{"type": "http.request", "body": piece, "more_body": True} for piece in body]
        pieces[-1]["more_body"] = False
        messages: list[Message] = []

        async def receive() -> Message:
            return pieces.pop(0) if pieces else await asyncio.Event().wait()  # the client stays

        async def send(message: Message) -> None:
            messages.append(message)

        present = {name.lower() for name, _ in headers}
        names = [*headers, *([] if "host" in present else [("host", self.host)])]
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": path, "raw_path": path.encode(errors="surrogateescape"), "query_string": query, "root_path": "",
            "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in names],
            "client": ("127.0.0.1", 1), "server": (self.host, 80),
        }  # fmt: skip
        await self.asgi(scope, receive, send)
        response_headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in messages[0]["headers"]}
        return messages[0]["status"], response_headers, b"".join(message.get("body", b"") for message in messages[1:])

    async def _add_site(self, host: str) -> int:
        if not EMPTY_CELLS:
            return await add_site(self.database_url, host, "Kalends")
        cells = {"b": self.database_url, **EMPTY_CELLS}
        return (await directory.add_site(self.database_url, cells, host, "Kalends", "b")).site_id

    async def _start(self) -> None:
        self._lifespan = asyncio.create_task(
            self.asgi({"type": "lifespan", "asgi": {"version": "3.0"}}, self._to_app.get, self._from_app.put)
        )
        await self._to_app.put({"type": "lifespan.startup"})
        started = await self._from_app.get()
        assert started["type"] == "lifespan.startup.complete", started

    async def _stop(self) -> None:
        await self._to_app.put({"type": "lifespan.shutdown"})
        assert self._lifespan is not None
        await self._lifespan


def make_auth(user: User | None) -> httpx.BasicAuth | None:
    return httpx.BasicAuth(user.login, user.password) if user else None


@dataclass
class Caller:
    """Somebody who asks; `id` is their user's, 0 for nobody."""

    app: RunningApp
    id: int
    auth: httpx.BasicAuth | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    client_ip: str = "127.0.0.1"  # from which they ask

    async def request_async(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Paths are below the namespace, or below the host if they begin with //; a URL is taken as it is."""
        url = path if path.startswith("http") else self.app.make_url(path)
        options["headers"] = {**self.headers, **(options.get("headers") or {})}
        transport = httpx.ASGITransport(app=self.app.asgi, client=(self.client_ip, 1))
        async with httpx.AsyncClient(transport=transport, auth=self.auth) as client:
            return await client.request(method, url, **options)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.app.run(self.request_async(method, path, **options))

    def get(self, path: str, query: Any = None, **options: Any) -> httpx.Response:
        return self.request("GET", path, params=query, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        return self.request("POST", path, json=body, **options)

    def patch(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        return self.request("PATCH", path, json=body, **options)

    def delete(self, path: str, **options: Any) -> httpx.Response:
        return self.request("DELETE", path, **options)

    def create(self, kind: str, **fields: Any) -> dict[str, Any]:
        return expect_json(self.post(f"/{kind}", fields), 201)

    def change(self, kind: str, record_id: int, **fields: Any) -> dict[str, Any]:
        return expect_json(self.patch(f"/{kind}/{record_id}", fields))

    def trash(self, kind: str, record_id: int) -> dict[str, Any]:
        return expect_json(self.delete(f"/{kind}/{record_id}"))

    def read(self, kind: str, record_id: int, **query: Any) -> dict[str, Any]:
        return expect_json(self.get(f"/{kind}/{record_id}", query))

    def page(self, kind: str, **query: Any) -> dict[str, Any]:
        return expect_json(self.get(f"/{kind}", query))

    def ids(self, kind: str, **query: Any) -> list[int]:
        """The IDs of a list, which must fit on one page and say so."""
        page = self.page(kind, **{"per_page": 50, **query})
        assert page["total"] == len(page[kind]), page["total"]
        return [record["id"] for record in page[kind]]


def expect_json(response: httpx.Response, status: int = 200) -> dict[str, Any]:
    assert response.status_code == status, f"{response.status_code} instead of {status}: {response.text[:1000]}"
    body: dict[str, Any] = response.json()
    return body


def assert_error(response: httpx.Response, status: int, code: str, *names: str) -> dict[str, Any]:
    """The one error shape, with this status and code; for wrong parameters also exactly these names."""
    assert (response.status_code, response.headers["content-type"]) == (status, "application/json; charset=UTF-8"), (
        response.text[:1000]
    )
    body: dict[str, Any] = response.json()
    assert set(body) == {"code", "message", "data"}, body
    assert (body["code"], body["data"]["status"]) == (code, status), body
    assert isinstance(body["message"], str)
    assert body["message"]
    if code == "rest_invalid_param":
        assert set(body["data"]) == {"status", "params", "details"}
        assert set(body["data"]["details"]) == set(body["data"]["params"])
    if names:
        assert set(body["data"]["params"]) == set(names), body
    data: dict[str, Any] = body["data"]
    return data

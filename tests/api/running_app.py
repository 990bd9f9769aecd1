"""The application in this process, on a separate database, and its callers.

Requests go through the whole ASGI application; only the network is left out. Tests that need a
process, a log or bytes on a socket start a server (test_server_process.py).
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import Any, Self
from unittest.mock import patch

import asyncpg
import httpx

from kalends.adapters.tracing import Tracer
from kalends.asgi import Application, create_application
from kalends.core.clock import utc_now
from kalends.operations import accounts, sites
from kalends.store.database import Database, Options, Transaction
from tests.servers import make_cell_settings, make_environment

HOST = "calendar.test"
API_PATH = "/api/calendar/events/v1"
API_URL = f"http://{HOST}{API_PATH}"
ROLES = ("subscriber", "contributor", "author", "editor", "administrator")

Message = MutableMapping[str, Any]


@dataclass(frozen=True)
class User:
    id: int
    login: str
    password: str


async def add_users(database_url: str) -> dict[str, User]:
    """One user for each role, each with an application password."""
    users: dict[str, User] = {}
    database = await Database.open(Options(url=database_url))
    try:
        async with database.transaction(HOST, utc_now(), writing=True) as tx:
            for role in ROLES:
                user_id = await accounts.add_user(tx, role, role, f"{role}@example.org")
                password = await accounts.add_application_password(tx, role, "tests")
                users[role] = User(user_id, role, password)
    finally:
        await database.close()
    return users


class RunningApp:
    """A running application. `people` are the users of its database, by role."""

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
        self._database: Database | None = None

    def __enter__(self) -> Self:
        self.run(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        if self._database is not None:
            self.run(self._database.close())
        self.run(self._stop())
        self._runner.close()
        self._directory.cleanup()

    def run[T](self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def caller(self, role: str = "anonymous") -> "Caller":
        user = self.users.get(role)
        return Caller(self, user.id if user else 0, make_auth(user))

    def sql(self, text: str, *values: object) -> list[asyncpg.Record]:
        """Run a statement as the owner of the database, without row-level security."""

        async def fetch() -> list[asyncpg.Record]:
            connection = await asyncpg.connect(self.database_url)
            try:
                return await connection.fetch(text, *values)
            finally:
                await connection.close()

        return self.run(fetch())

    def run_with_database[T](self, work: Callable[[Database], Awaitable[T]]) -> T:
        """Run a function with a database that stays open until the application ends."""

        async def run() -> T:
            if self._database is None:
                self._database = await Database.open(Options(url=self.database_url, pool_timeout=10))
            return await work(self._database)

        return self.run(run())

    def run_operation[T](self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run an operation in a writing transaction, as a command would."""

        async def run() -> T:
            database = await Database.open(Options(url=self.database_url))
            try:
                async with database.transaction(HOST, utc_now(), writing=True) as tx:
                    return await work(tx)
            finally:
                await database.close()

        return self.run(run())

    def set_site(self, key: str, value: str) -> None:
        self.run_operation(lambda tx: sites.set_site(tx, key, value))

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
        names = [*headers, *([] if "host" in present else [("host", HOST)])]
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": path, "raw_path": path.encode(errors="surrogateescape"), "query_string": query, "root_path": "",
            "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in names],
            "client": ("127.0.0.1", 1), "server": (HOST, 80),
        }  # fmt: skip
        await self.asgi(scope, receive, send)
        response_headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in messages[0]["headers"]}
        return messages[0]["status"], response_headers, b"".join(message.get("body", b"") for message in messages[1:])

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
        """Paths are those below the namespace; one that begins with http is taken as it is."""
        url = path if path.startswith("http") else f"{API_URL}{path}"
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

"""The least that a Python server can do for a request: run the recorded statements and send the recorded bytes.

It uses Granian and asyncpg as Kalends does, with the same transaction and the same round trips, so the ratio of both
is the work of Kalends. Paths below `/bare` send the bytes without a database. It imports neither Kalends nor tests.
"""

import os
import pickle
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

RECORDING, DATABASE = "BENCH_RECORDING", "BENCH_DATABASE"
BARE = "/bare"
HEADERS = [(b"content-type", b"application/json; charset=UTF-8")]
SETTINGS = "SET LOCAL statement_timeout = 30000; SET LOCAL jit = off; SET LOCAL ROLE kalends_app"
BEGIN_READ = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {SETTINGS}"
BEGIN_WRITE = f"BEGIN; {SETTINGS}"


@dataclass(frozen=True)
class Exchange:
    """A request's statements and its response. A write is rolled back, because its IDs can be used only once."""

    host: str
    statements: Sequence[tuple[str, Sequence[object]]]
    body: bytes
    is_write: bool = False


def write_recording(path: Path, exchanges: Mapping[str, Exchange]) -> None:
    """Write the exchanges by request path, for a server process."""
    rows = {name: (row.host, list(row.statements), row.body, row.is_write) for name, row in exchanges.items()}
    path.write_bytes(pickle.dumps(rows))


class MinimalServer:
    """The ASGI application."""

    def __init__(self) -> None:
        rows = pickle.loads(Path(os.environ[RECORDING]).read_bytes())  # noqa: S301  Our own file.
        self._exchanges = {name: Exchange(*row) for name, row in rows.items()}
        self._pool: Any = None

    async def __call__(
        self,
        scope: Mapping[str, Any],
        receive: Callable[[], Awaitable[Mapping[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        if scope["type"] == "lifespan":
            await receive()
            self._pool = await asyncpg.create_pool(os.environ[DATABASE], min_size=1, max_size=10)
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await self._pool.close()
            await send({"type": "lifespan.shutdown.complete"})
            return
        path = scope["path"] + (f"?{scope['query_string'].decode()}" if scope["query_string"] else "")
        exchange = self._exchanges[path.removeprefix(BARE)]
        if not path.startswith(BARE):
            await self._run(exchange)
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await send({"type": "http.response.body", "body": exchange.body})

    async def _run(self, exchange: Exchange) -> None:
        async with self._pool.acquire() as connection:
            await connection.execute(BEGIN_WRITE if exchange.is_write else BEGIN_READ)
            await connection.fetchrow("SELECT * FROM enter_site($1)", exchange.host)
            for text, values in exchange.statements:
                await connection.fetch(text, *values)
            await connection.execute("ROLLBACK" if exchange.is_write else "COMMIT")


def create_application() -> MinimalServer:
    return MinimalServer()

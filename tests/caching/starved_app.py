"""An application whose connections for public reads are all in use."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

import asyncpg

from tests.api.running_app import Caller, RunningApp

# Two of the connections are for public reads.
SETTINGS: Final = {
    "KALENDS_POOL_SIZE": "5",
    "KALENDS_POOL_TIMEOUT": "1",
    "KALENDS_PUBLIC_STATEMENT_TIMEOUT": "60",
    "KALENDS_STATEMENT_TIMEOUT": "60",
    "KALENDS_PURGE_URLS": "http://127.0.0.1:9/",
    "KALENDS_API_ALIASES": "/wp-json/tribe/events/v1",
}
PUBLIC_CONNECTIONS: Final = 2


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str

    @property
    def is_outdated(self) -> bool:
        return self.status == 200 and "age" in self.headers


def read(app: RunningApp, path: str, headers: dict[str, str] | None = None) -> Reply:
    return read_all(app, [path], headers)[0]


def read_all(app: RunningApp, paths: Sequence[str], headers: dict[str, str] | None = None) -> list[Reply]:
    """Read several addresses at the same time, each as another client."""

    async def run() -> list[Reply]:
        callers = [Caller(app, 0, client_ip=f"198.51.100.{number % 250}") for number in range(len(paths))]
        requests = [
            caller.request_async("GET", f"/{path}", headers=headers)
            for caller, path in zip(callers, paths, strict=True)
        ]
        return [Reply(one.status_code, dict(one.headers), one.text) for one in await asyncio.gather(*requests)]

    return app.run(run())


@contextmanager
def starved(app: RunningApp) -> Iterator[None]:
    """Let other clients occupy all connections for public reads with requests that wait for a lock."""

    async def begin() -> tuple[asyncpg.Connection, list[asyncio.Task[object]]]:
        holder = await asyncpg.connect(app.database_url)
        await holder.execute("BEGIN; LOCK TABLE site_styles IN ACCESS EXCLUSIVE MODE")
        strangers = [Caller(app, 0, client_ip=f"192.0.2.{number}") for number in range(PUBLIC_CONNECTIONS)]
        tasks: list[asyncio.Task[object]] = [
            asyncio.create_task(stranger.request_async("GET", f"//custom.{number:012}.css"))
            for number, stranger in enumerate(strangers)
        ]
        blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'site_styles'::regclass"
        while await holder.fetchval(blocked) < PUBLIC_CONNECTIONS:
            assert not any(task.done() for task in tasks), [task.result() for task in tasks if task.done()]
            await asyncio.sleep(0.02)
        return holder, tasks

    async def end(holder: asyncpg.Connection, tasks: list[asyncio.Task[object]]) -> None:
        await holder.close()
        await asyncio.gather(*tasks)

    holder, tasks = app.run(begin())
    try:
        yield
    finally:
        app.run(end(holder, tasks))

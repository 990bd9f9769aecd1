"""Three cells as PostgreSQL servers of their own, with servers and workers as processes, and a load for one site."""

import asyncio
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from kalends.fleet.storage import directory as directory_changes
from kalends.store.migrations import migrate
from tests.cells.cell_set import NAMES, CellSet, CellSite
from tests.cells.move_fixtures import LOGICAL
from tests.conftest import replace_database, temporary_database
from tests.lifecycle.processes import Worker
from tests.media.image_fixtures import EXTENSION_PATH, make_image
from tests.robustness.site_fixtures import API_PATH, DATES, PatientAuth
from tests.servers import KALENDS, Server, make_environment
from tools.postgres import THROWAWAY, throwaway

# Seconds between two requests of a client, so that the load does not keep the processors from the move.
PAUSE = 0.1


@dataclass(frozen=True)
class LiveCells:
    cells: CellSet
    environment: dict[str, str]
    servers: Sequence[Server]
    workers: Sequence[Worker]

    async def move(self, site: CellSite, target: str) -> str:
        """Run `kalends site move` as an operator does; return its output."""
        process = await asyncio.create_subprocess_exec(
            *KALENDS, "site", "move", site.host, "--to", target,
            env=make_environment("postgresql:///unused", self.environment),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await process.communicate()
        assert process.returncode == 0, output.decode()
        return output.decode()


@contextmanager
def open_live_cells(directory: Path, settings: Mapping[str, str] | None = None) -> Iterator[LiveCells]:
    """Start three clusters, two servers, and a worker for each cell."""
    with ExitStack() as stack:
        clusters = {name: stack.enter_context(throwaway({**THROWAWAY, **LOGICAL})) for name in NAMES}
        directory_name = stack.enter_context(temporary_database(clusters["a"].url))
        directory_url = replace_database(clusters["a"].url, directory_name)
        cells = CellSet(directory_url, {name: cluster.url for name, cluster in clusters.items()})
        asyncio.run(directory_changes.apply_schema(directory_url))
        for name, url in cells.urls.items():
            migrate(url)
            asyncio.run(directory_changes.add_cell(directory_url, url, name))
        environment = {
            **cells.environment,
            "KALENDS_MEDIA_DIR": str(directory / "media"),
            "KALENDS_MAX_CONNECTIONS_PER_CLIENT": "0",
            **(settings or {}),
        }
        servers = [
            stack.enter_context(
                Server.start("postgresql:///unused", log=directory / f"server-{number}.log", environment=environment)
            )
            for number in range(2)
        ]
        workers = [
            stack.enter_context(
                Worker.start(
                    "postgresql:///unused", directory / f"worker-{name}.log", environment, options=["--cell", name]
                )
            )
            for name in NAMES
        ]
        yield LiveCells(cells, environment, servers, workers)


class Load:
    """Writers and readers of one site. They accept no error, and remember what was acknowledged."""

    def __init__(self, live: LiveCells, site: CellSite, *, adds_accounts: bool = True) -> None:
        self._live = live
        self._adds_accounts = adds_accounts
        self._site = site
        self._clients: list[httpx.AsyncClient] = []
        self._numbers = itertools.count(1)
        self.titles: dict[int, str] = {}
        self.scheduled: list[int] = []
        self.images: dict[int, str] = {}
        self.accounts: list[str] = []
        self.reads = 0
        self.durations: list[float] = []
        self.is_ending = False

    @property
    def writes(self) -> int:
        return len(self.durations)

    async def run(self, writers: int, readers: int, work: asyncio.Task[None]) -> None:
        """Read and write until the work has ended."""
        async with asyncio.TaskGroup() as group:
            for number in range(writers):
                group.create_task(self._write(number))
            for number in range(readers):
                group.create_task(self._read(number))
            group.create_task(self._upload())
            if self._adds_accounts:
                group.create_task(self._add_accounts())
            try:
                await work
            finally:
                self.is_ending = True
        for client in self._clients:
            await client.aclose()

    def open_client(self, number: int) -> httpx.AsyncClient:
        """Open a client of one of the servers, with connections of its own."""
        client = httpx.AsyncClient(
            base_url=self._live.servers[number % len(self._live.servers)].base_url,
            headers={"Host": self._site.host}, auth=PatientAuth(*self._site.login), timeout=30, trust_env=False,
            verify=False,
        )  # fmt: skip
        self._clients.append(client)
        return client

    async def _write(self, number: int) -> None:
        client = self.open_client(number)
        actions = (self._create, self._change, self._create_batch, self._schedule)
        await self._fail_to_sign_in(client)
        for count in itertools.count(number):
            if self.is_ending:
                return
            started = time.monotonic()
            await actions[count % len(actions)](client)
            self.durations.append(time.monotonic() - started)
            await asyncio.sleep(PAUSE)

    async def _post(self, client: httpx.AsyncClient, path: str, status: int = 201, **options: Any) -> Any:
        reply = await client.post(path, **options)
        assert reply.status_code == status, reply.text
        return reply.json()

    async def _create(self, client: httpx.AsyncClient) -> None:
        number = next(self._numbers)
        title = f"Event {number}"
        key = {"Idempotency-Key": str(number)} if number % 2 else {}
        options: dict[str, Any] = {"json": {"title": title, "tags": [f"tag {number % 9}"], **DATES}, "headers": key}
        record = await self._post(client, f"{API_PATH}/events", **options)
        self.titles[record["id"]] = title
        if key and number % 5 == 0:
            # A client that did not get the response repeats the request.
            assert (await self._post(client, f"{API_PATH}/events", **options))["id"] == record["id"]

    async def _change(self, client: httpx.AsyncClient) -> None:
        number = next(self._numbers)
        if not self.titles:
            return
        record_id, title = next(iter(self.titles)), f"Changed {number}"
        # Taken out for the time of the request, because nobody can say which title it has.
        del self.titles[record_id]
        await self._post(client, f"{API_PATH}/events/{record_id}", 200, json={"title": title})
        self.titles[record_id] = title

    async def _create_batch(self, client: httpx.AsyncClient) -> None:
        titles = [f"Event {next(self._numbers)}" for _ in range(3)]
        operations = [{"method": "POST", "path": "/events", "body": {"title": title, **DATES}} for title in titles]
        reply = await self._post(client, f"{EXTENSION_PATH}/batch", 200, json={"operations": operations})
        for result, title in zip(reply["results"], titles, strict=True):
            assert result["status"] == 201
            self.titles[result["body"]["id"]] = title

    async def _schedule(self, client: httpx.AsyncClient) -> None:
        """Create an event that a worker publishes two seconds later."""
        at = datetime.now(UTC) + timedelta(seconds=2)
        body = {"title": f"Event {next(self._numbers)}", "date_utc": at.strftime("%Y-%m-%d %H:%M:%S"), **DATES}
        self.scheduled.append((await self._post(client, f"{API_PATH}/events", json=body))["id"])

    async def _upload(self) -> None:
        """Upload images, whose smaller sizes a worker makes. Reading one takes longer than any other write."""
        client = self.open_client(0)
        while not self.is_ending:
            image = make_image(seed=next(self._numbers), width=400, height=300)
            record = await self._post(client, f"{EXTENSION_PATH}/media", files={"file": ("picture.jpg", image)})
            self.images[record["id"]] = httpx.URL(record["url"]).path
            await asyncio.sleep(1)

    async def _fail_to_sign_in(self, client: httpx.AsyncClient) -> None:
        login = (f"nobody{next(self._numbers)}", "x")
        await self._post(client, f"{API_PATH}/events", 401, json={}, auth=login)

    async def _add_accounts(self) -> None:
        while not self.is_ending:
            login = f"person{next(self._numbers)}"
            options = ("--role", "author", "--site", self._site.host)
            result = await asyncio.to_thread(self._live.cells.run, "user", "add", login, *options)
            assert result.exit_code == 0, result.output
            self.accounts.append(login)
            await asyncio.sleep(2)

    async def _read(self, number: int) -> None:
        client = self.open_client(number)
        # A process renders few feeds at once and rejects the others.
        feeds = ("/events.ics",) if number == 0 else ()
        paths = (f"{API_PATH}/events?per_page=5", "/events/list/", f"{EXTENSION_PATH}/changes?since=0", *feeds)
        for path in itertools.cycle(paths):
            if self.is_ending:
                return
            await asyncio.sleep(PAUSE)
            reply = await client.get(path)
            assert reply.status_code == 200, f"{path}: {reply.text}"
            self.reads += 1
            if self.titles:
                record_id, title = next(reversed(self.titles.items()))
                reply = await client.get(f"{API_PATH}/events/{record_id}")
                assert reply.status_code == 200, f"an acknowledged write is not visible: {reply.text}"
                if self.titles.get(record_id) == title:  # Nobody changes it at the moment.
                    assert reply.json()["title"] == title

"""Live lists against new evaluations: after each random write, every client has what the API returns."""

import asyncio
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import orjson
import pytest

from kalends.calendar.access.caching import read_touched, select_changes
from kalends.core.errors import ApiError
from kalends.core.times import utc_now
from kalends.http.cache import CachedResponse
from kalends.http.request import AppState
from kalends.push.api import stream_messages
from kalends.push.api.followed_lists import Followed
from kalends.push.api.live_lists import LiveLists
from kalends.push.api.stream_messages import ListState
from tests.api.conftest import start_single_site as start_app
from tests.api.running_app import RunningApp
from tests.caching.random_site import BusyWriter, Clock, RandomSite
from tests.caching.test_cached_responses import MUTANTS, SETTINGS
from tests.imports.site import Subscription, event
from tests.lifecycle.lifecycle_fixtures import EXTENSION_PATH
from tests.push.stream_client import Copy, StreamParser
from tests.soak import SOAK, scaled, some

__all__ = ["start_app"]

LISTS, WRITES, SEEDS = scaled(40, 300), scaled(150, 1000), scaled(1, 3)
# Writes after which a broken rule must have been found.
MUTANT_WRITES = scaled(300, 1000)
PROJECT = Path(__file__).parents[2]
COMMIT = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=PROJECT, text=True).strip()


class SteppedLists(LiveLists):
    """Live lists that look for changes when the test says so."""

    async def run(self, state: AppState) -> None:
        self._state = state

    async def settle(self) -> None:
        """Look for changes, and return when all messages are sent."""
        await self.check()
        while tasks := [followed.task for followed in self._by_key.values() if followed.task is not None]:
            await asyncio.wait(tasks)
        for _ in range(5):
            await asyncio.sleep(0)


class ImportingWriter(BusyWriter):
    """Also imports events and undoes imports and edits of series."""

    def __init__(self, app: RunningApp, clock: Clock, seed: int, site: RandomSite) -> None:
        super().__init__(app, clock, site.known, seed)
        self._feed = Subscription.add(app)
        self._applied: list[int] = []
        more: dict[Callable[[], None], int] = {self.import_events: 3, self.undo_import: 1, self.undo_series: 2}
        self._actions += list(more)
        self._weights += list(more.values())

    def import_events(self) -> None:
        day = self.clock.now.date() + timedelta(days=self.rng.randint(0, 40))
        records = [event(f"{name}@x", self._random_name(), f"{day}") for name in self.rng.sample("abcdefgh", 5)]
        run_id = self._feed.plan(*records)
        if self._feed.state(run_id) != "unchanged":
            self._feed.apply(run_id)
            self._applied.append(run_id)

    def undo_import(self) -> None:
        if self._applied:
            with suppress(ApiError):
                self._feed.undo(self._applied.pop())

    def undo_series(self) -> None:
        rows = self.app.sql("SELECT record_id, revision FROM changes WHERE kind = 'series' ORDER BY random() LIMIT 1")
        for row in rows:
            path = f"{EXTENSION_PATH}/series/{row['record_id']}/restore"
            self.client.request("POST", path, json={"revision": row["revision"], "force": True})

    def pass_time(self) -> None:
        """Lists that are never cached are evaluated once per minute."""
        super().pass_time()
        self.clock.now += timedelta(seconds=60)


@dataclass
class Client:
    """A client in this process; only the network is left out."""

    path: str
    copy: Copy
    address: str
    parser: StreamParser = field(default_factory=StreamParser)
    status: int = 0
    started: asyncio.Event = field(default_factory=asyncio.Event)
    ended: int = 0  # the status with which the server ended the stream
    task: "asyncio.Task[None] | None" = None
    changes: int = 0

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.started.set()
            return
        if self.status != 200:
            return
        for found in self.parser.feed(message["body"]):
            if found.event == "end":
                self.ended = found.data["data"]["status"]
            else:
                self.copy.apply(found)
                self.changes += found.event == "change"


@dataclass
class Watch:
    """A site that is written at random, clients that follow its lists, and a server without a cache."""

    site: RandomSite
    streams: RunningApp
    lists: SteppedLists
    uncached: RunningApp
    clients: dict[str, Client] = field(default_factory=dict)
    opened: int = 0

    def choose_lists(self, count: int) -> None:
        """Follow lists that answer with 200; most are lists of events."""
        rng = self.site.rng
        while len(self.clients) < count:
            path = self.site._event_list(rng) if rng.random() < 0.75 else self.site._list(rng)
            if path not in self.clients and self._read(path)[0] == 200:
                self._open(path)
                assert self.clients[path].status == 200, path

    def find_difference(self, writes: int) -> str | None:
        """Write, and compare all lists after each write; return the first path that differs."""
        for number in range(writes):
            self.site.writer.write_randomly()
            try:
                self.streams.run(self.lists.settle())
            except Exception as error:
                return f"write {number}: {error!r}"
            for client in list(self.clients.values()):
                if difference := self._compare(client):
                    return f"write {number}: {client.path}: {difference}"
        return None

    def close(self) -> None:
        async def close() -> None:
            self.lists.close()
            await asyncio.gather(*[client.task for client in self.clients.values() if client.task is not None])

        self.streams.run(close())

    def _compare(self, client: Client) -> str:
        if client.task is not None and client.task.done():
            if error := client.task.exception():
                return f"the client failed: {error!r}"
            client.task = None
        status, page = self._read(client.path)
        if client.ended or client.status != 200:
            if status != 200:
                return ""
            self._open(client.path)
            client = self.clients[client.path]
        if status != 200:
            return f"{status}, but the stream goes on"
        copy = client.copy
        found = (copy.total, copy.total_pages, copy.records)
        return "" if found == (page["total"], page["total_pages"], page[copy.kind]) else f"{found} is not {page}"

    def _open(self, path: str) -> None:
        kind = path.partition("?")[0].rpartition("/")[2]
        client = self.clients[path] = Client(path, Copy(kind), f"10.0.{self.opened // 40}.1")
        self.opened += 1

        async def open_stream() -> None:
            client.task = asyncio.create_task(self._request(client))
            await self.lists.settle()
            await client.started.wait()
            await self.lists.settle()

        self.streams.run(open_stream())

    async def _request(self, client: Client) -> None:
        plain, _, query = client.path.partition("?")
        headers = [(b"host", self.streams.host.encode()), (b"accept", b"text/event-stream")]
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
            "path": plain, "raw_path": plain.encode(), "query_string": query.encode(), "root_path": "",
            "headers": headers, "client": (client.address, 1), "server": (self.streams.host, 80),
        }  # fmt: skip

        async def receive() -> Any:
            await asyncio.Event().wait()

        await self.streams.asgi(scope, receive, client.send)

    def _read(self, path: str) -> tuple[int, Any]:
        plain, _, query = path.partition("?")
        status, _, body = self.uncached.raw("GET", plain, query=query.encode())
        return status, orjson.loads(body)


@pytest.fixture
def make_watch(start_app: Callable[..., RunningApp]) -> Iterator[Callable[[int], Watch]]:
    clock = Clock(utc_now())
    servers: list[RunningApp] = []
    watches: list[Watch] = []
    with patch("kalends.asgi.utc_now", clock), patch("kalends.push.api.live_lists.utc_now", clock):

        def make(seed: int) -> Watch:
            app = start_app(SETTINGS)
            uncached, streams = app.twin({**SETTINGS, "KALENDS_CACHE_MB": "0"}), app.twin(SETTINGS)
            lists = SteppedLists(streams.asgi.render)
            streams.asgi.serve_streams(lists)
            servers.extend(server.__enter__() for server in (uncached, streams))
            site = RandomSite(app, clock, seed)
            site.writer = ImportingWriter(app, clock, seed, site)
            site.fill()
            watches.append(Watch(site, streams, lists, uncached))
            return watches[-1]

        yield make
        for watch in watches:
            watch.close()
        for server in servers:
            server.__exit__()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_followed_lists_equal_new_evaluations(
    make_watch: Callable[[int], Watch], report: Callable[[object], None], seed: int
) -> None:
    finished = PROJECT / ".local" / "soak" / f"live-lists-{COMMIT}-{seed}"
    if SOAK and finished.exists():
        pytest.skip("finished in an earlier run")
    watch = make_watch(seed)
    watch.choose_lists(LISTS)
    assert watch.find_difference(WRITES) is None
    changes = sum(client.changes for client in watch.clients.values())
    assert changes > WRITES / 4
    report(f"{LISTS} lists, {WRITES} writes: {changes} changes, 0 missed, 0 wrong")
    if SOAK:
        finished.parent.mkdir(parents=True, exist_ok=True)
        finished.touch()


def test_the_handler_runs_once_per_touched_list_and_for_no_other(
    make_watch: Callable[[int], Watch], report: Callable[[object], None]
) -> None:
    watch = make_watch(7)
    watch.choose_lists(scaled(40, 200))
    runs: Counter[object] = Counter()
    run = watch.lists._run

    async def count(followed: Followed) -> None:
        runs[followed.key] += 1
        await run(followed)

    found = 0
    with patch.object(watch.lists, "_run", count):
        for _ in range(scaled(40, 300)):
            before = dict(watch.lists._by_key)
            revision = watch.site.app.sql("SELECT revision FROM sites")[0]["revision"]
            for _ in range(watch.site.rng.randint(1, 5)):
                watch.site.writer.write_randomly()
            expected = {key for key, followed in before.items() if is_concerned(watch, followed, revision)}
            runs.clear()
            watch.streams.run(watch.lists.settle())
            assert dict(runs) == dict.fromkeys(expected, 1)
            found += len(expected)
    report(f"{found} evaluations")


def is_concerned(watch: Watch, followed: Followed, revision: int) -> bool:
    """Return whether the changes after a revision touch a list, or it has expired; without `CachedResponse`."""
    app, now = watch.site.app, watch.site.clock.now
    rows = app.run_operation(lambda tx: tx.fetch_all(select_changes(app.site_id, revision)))
    current = rows[0]["last_revision"]
    if followed.cached is None:
        return current > revision or followed.run_at is None or now >= followed.run_at
    if followed.cached.expires_at is not None and now >= followed.cached.expires_at:
        return True
    touched = read_touched(rows, revision)
    return touched is None or any(not entry.tags.isdisjoint(followed.cached.tags) for entry in touched)


def _leave_out_a_record() -> object:
    make_change = ListState.make_change

    def make(state: ListState, earlier: ListState, records: dict[int, bytes]) -> bytes:
        last = next(reversed(state.hashes), 0)
        return make_change(
            state, replace(earlier, hashes={**earlier.hashes, last: state.hashes.get(last, b"")}), records
        )

    return patch.object(ListState, "make_change", make)


def _send_previous_order() -> object:
    make_change = ListState.make_change

    def make(state: ListState, earlier: ListState, records: dict[int, bytes]) -> bytes:
        names = {**dict.fromkeys(earlier.hashes, b""), **state.hashes}
        kept = {key: names[key] for key in earlier.hashes if key in records}
        return make_change(replace(state, hashes=kept), earlier, records)

    return patch.object(ListState, "make_change", make)


def _hash_revision(content: bytes) -> bytes:
    """Return what an event's revision stands for: when it was modified itself."""
    record = orjson.loads(content) if content.startswith(b"{") else {}
    return f"{record['id']} {record['modified_utc']}".encode() if "modified_utc" in record else HASH(content)


HASH = stream_messages.hash_content
STREAM_MUTANTS: dict[str, Callable[[], object]] = {
    "a changed record is left out": _leave_out_a_record,
    "order is the previous one": _send_previous_order,
    "only revisions are compared": lambda: patch.object(stream_messages, "hash_content", _hash_revision),
    "expires_at is ignored": lambda: patch.object(
        CachedResponse, "is_usable", lambda response, current, now: response.site_id == current.site_id
    ),
}


@pytest.mark.parametrize("name", some([*STREAM_MUTANTS, *MUTANTS], 2))
def test_the_comparison_finds_broken_rules(
    make_watch: Callable[[int], Watch], report: Callable[[object], None], name: str
) -> None:
    watch = make_watch(100)
    watch.choose_lists(scaled(40, 150))
    with {**STREAM_MUTANTS, **MUTANTS}[name]():  # type: ignore[attr-defined]
        found = watch.find_difference(MUTANT_WRITES)
    assert found is not None
    report(f"{name}: {found[:100]}")

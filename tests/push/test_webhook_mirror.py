"""A copy from webhooks alone equals a full sync, although deliveries fail and workers are killed."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import httpx

from kalends.store.database import Database, Options
from kalends.worker import empty_old_trash
from tests.api.running_app import API_PATH, expect_json
from tests.api.sample_records import DATES
from tests.lifecycle.lifecycle_fixtures import EXTENSION_PATH
from tests.lifecycle.processes import run_command, wait_until
from tests.lifecycle.random_writers import KnownRecords, Writer
from tests.lifecycle.sync_client import SyncClient, assert_equal_copies
from tests.push.delivery_stand import DeliveryStand, Endpoint
from tests.push.webhook_mirror import CANARY, Mirror
from tests.soak import scaled

WRITES = scaled(1_200, 20_000)
WRITERS = 4
KILLS = scaled(2, 20)


def test_mirror_equals_full_sync(idle_stand: DeliveryStand, report: Any) -> None:
    stand, mirror = idle_stand, Mirror()
    endpoint = stand.add_endpoint(mirror.respond)
    endpoint.mailbox.is_recording = False
    mirror.secret = endpoint.secret
    stand.start_worker()
    started = time.monotonic()
    kills = _write_and_kill(stand, endpoint)
    changes = stand.read_revision()
    mirror.is_failing = False
    _settle(stand, endpoint)
    with stand.server.client() as anonymous:
        full = SyncClient(anonymous, 1, page_sizes=(500, 500))
        full.catch_up()
    report(
        f"{changes:,} changes, {mirror.received:,} messages, {mirror.failed:,} failed, {kills} kills, "
        f"{len(full.copy):,} records, {time.monotonic() - started:.0f} s"
    )
    assert_equal_copies(full, mirror.copy)
    assert (mirror.canaries, mirror.unsigned, mirror.regressions) == (0, 0, [])
    assert mirror.failed > 0
    assert "Traceback" not in stand.log.read_text()


def _write_and_kill(stand: DeliveryStand, endpoint: Endpoint) -> int:
    """Write with several threads, and kill the worker again and again; return the number of kills."""
    known, is_done, rng = KnownRecords(), threading.Event(), Random(3)
    kills = 0
    auth = stand.client.auth
    with ThreadPoolExecutor(WRITERS + 2) as threads:
        clients = [httpx.Client(base_url=stand.server.base_url, auth=auth, timeout=30) for _ in range(WRITERS)]
        writers = [SeriesWriter(client, known, seed) for seed, client in enumerate(clients)]
        futures = [threads.submit(_write, writer, WRITES // WRITERS) for writer in writers]
        others = [threads.submit(act, stand, is_done) for act in (_write_canaries, _import)]
        while not all(future.done() for future in futures) or kills < KILLS:
            time.sleep(rng.uniform(0.5, 3))
            if kills < KILLS:
                stand.workers[-1].kill()
                stand.start_worker()
                kills += 1
                # Let the next worker take over before it is killed.
                _wait_for_progress(stand, endpoint)
        is_done.set()
        for future in (*futures, *others):
            future.result()
        for client in clients:
            client.close()
    return kills


class SeriesWriter(Writer):
    """Also edits series, and undoes changes of events and series."""

    def __init__(self, client: httpx.Client, known: KnownRecords, seed: int) -> None:
        super().__init__(client, known, seed)
        more = {self.create_series: 1, self.edit_series: 4, self.undo: 4}
        self._actions += list(more)
        self._weights += list(more.values())

    def create_series(self) -> None:
        body = {"title": self._random_name(), **DATES, "rule": f"FREQ=WEEKLY;COUNT={self.rng.randint(2, 9)}"}
        response = self._request("POST", f"{EXTENSION_PATH}/series", body)
        if response.status_code == 201:
            series_id = response.json()["id"]
            query = {"series": series_id, "start_date": "2000-01-01", "end_date": "2100-01-01", "per_page": 50}
            dates = expect_json(self.client.get(f"{API_PATH}/events", params=query))["events"]
            with self.known.lock:
                self.known.ids["series"].append(series_id)
                self.known.ids["events"] += [date["id"] for date in dates]

    def edit_series(self) -> None:
        event_id, scope = self._random_id("events"), self.rng.choice(("this", "following", "all"))
        values = self.rng.choice([{"title": self._random_name()}, {"status": self._random_status()}])
        self._request("PATCH", f"{EXTENSION_PATH}/events/{event_id}?scope={scope}", values)

    def undo(self) -> None:
        kind = self.rng.choice(("events", "series"))
        path = f"{EXTENSION_PATH}/{kind}/{self._random_id(kind)}"
        history = self.client.get(f"{path}/history")
        if history.status_code == 200 and (entries := history.json()["history"]):
            force = {"force": True} if kind == "series" else {}
            body = {"revision": self.rng.choice(entries)["revision"], **force}
            self._request("POST", f"{path}/restore", body)


def _import(stand: DeliveryStand, is_done: threading.Event) -> None:
    """Import a file again and again, each time with other titles and other events, and empty the trash."""
    path, rng = stand.log.with_name("events.csv"), Random(7)
    while not is_done.is_set():
        rows = [
            f"row{number},Imported {rng.getrandbits(30)},2031-05-{1 + number % 28:02} 19:00"
            for number in rng.sample(range(60), 40)
        ]
        path.write_text("\n".join(("uid,title,start_date", *rows)))
        options = ("--apply", "--confirm", "--status", "publish")
        result = run_command(stand.database_url, "import", "run", str(path), *options)
        assert result.exit_code == 0, result.output
        asyncio.run(_empty_trash(stand.database_url))
        is_done.wait(3)


async def _empty_trash(url: str) -> None:
    database = await Database.open(Options(url=url))
    try:
        await empty_old_trash(database, 0)
    finally:
        await database.close()


def _write(writer: Writer, count: int) -> None:
    for _ in range(count):
        writer.write_randomly()


def _write_canaries(stand: DeliveryStand, is_done: threading.Event) -> None:
    """Write records that nobody may see: drafts, private, pending, hidden and protected ones."""
    states: list[dict[str, Any]] = [
        {"status": "draft", "title": CANARY},
        {"status": "private", "title": CANARY},
        {"status": "pending", "title": CANARY},
        {"hide_from_listings": True, "title": CANARY},
        {"new_password": "opensesame", "title": "Protected", "description": CANARY},
    ]
    # Another account, because the writes of one account wait for each other.
    editor = stand.users["editor"]
    with stand.server.client(login=editor.login, password=editor.password) as client:
        paths = [
            f"{API_PATH}/events/{expect_json(client.post(f'{API_PATH}/events', json={**DATES, **state}), 201)['id']}"
            for state in states
        ]
        number = 0
        while not is_done.wait(0.2):
            number += 1
            path, state = paths[number % len(paths)], states[number % len(paths)]
            changed = "description" if "new_password" in state else "title"
            expect_json(client.patch(path, json={changed: f"{CANARY} {number}"}))


def _wait_for_progress(stand: DeliveryStand, endpoint: Endpoint) -> None:
    """A killed worker's lease lasts for at most 30 s."""
    before = stand.read_consumer(endpoint)["cursor"]
    deadline = time.monotonic() + 45
    while stand.read_consumer(endpoint)["cursor"] == before and not stand.is_settled(endpoint):
        assert time.monotonic() < deadline, "no worker took over"
        stand.hasten(endpoint)
        time.sleep(0.5)


def _settle(stand: DeliveryStand, endpoint: Endpoint) -> None:
    scheduled = "SELECT 1 FROM events WHERE status = 'future' UNION ALL SELECT 1 FROM venues WHERE status = 'future' "
    scheduled += "UNION ALL SELECT 1 FROM organizers WHERE status = 'future'"
    wait_until(lambda: not stand.sql(scheduled), 60)
    deadline = time.monotonic() + scaled(120, 900)
    while not stand.is_settled(endpoint):
        assert time.monotonic() < deadline, stand.read_consumer(endpoint)
        stand.hasten(endpoint)
        time.sleep(1)

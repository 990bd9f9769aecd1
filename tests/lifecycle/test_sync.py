"""A client that follows `changes` has a copy that equals the site, whatever happens to both meanwhile."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import psycopg

from kalends.store.database import Database, Options
from kalends.worker import empty_old_trash
from tests.api.running_app import API_PATH, User, expect_json
from tests.lifecycle.conftest import UserDatabase
from tests.lifecycle.lifecycle_fixtures import report
from tests.lifecycle.processes import Worker, run_command, wait_until
from tests.lifecycle.random_writers import KnownRecords, Writer
from tests.lifecycle.sync_client import PAGE_SIZES, SyncClient, assert_equal_copies, read_site
from tests.servers import Server
from tests.soak import scaled

WRITERS = 8
WRITES_PER_WRITER = scaled(60, 10**9)  # of each writer; a soak is ended by its seconds
SECONDS = scaled(120, 180)
RECORDS = scaled(0, 20_000)


def test_synced_copies_equal_site_after_concurrent_writes(
    user_database: UserDatabase, start_server: Callable[..., Server], tmp_path: Path
) -> None:
    if RECORDS:
        seeded = run_command(user_database.url, "seed", "--events", str(RECORDS))
        assert seeded.exit_code == 0, seeded.output
    server = start_server(user_database.url)
    with ExitStack() as clients, Worker.start(user_database.url, tmp_path / "worker.log"):

        def client(user: User | None = None) -> httpx.Client:
            login = {"login": user.login, "password": user.password} if user else {}
            return clients.enter_context(server.client(**login))

        users = user_database.users
        known = _create_stable_records(client(users["editor"]), user_database.url)
        stable_ids = {kind: next(iter(ids)) for kind, ids in known.stable_ids.items()}
        full_clients = {"anonymous": SyncClient(client(), 1), "editor": SyncClient(client(users["editor"]), 2)}
        # It falls behind the writers, so that records change between its pages.
        slow = SyncClient(client(), 10, page_sizes=(1, 4))
        filtered_clients = [
            SyncClient(client(), seed, query)
            for seed, query in enumerate(
                (
                    {"categories": stable_ids["categories"]},
                    {"tags": stable_ids["tags"]},
                    {"venue": stable_ids["venues"]},
                    {"organizer": stable_ids["organizers"]},
                ),
                3,
            )
        ]
        venues = SyncClient(client(), 9, {"kind": "venues"})
        writers = [Writer(client(users["editor"]), known, seed) for seed in range(WRITERS)]
        sync_clients = [*full_clients.values(), *filtered_clients, venues, slow]
        changes = _write_and_sync(writers, sync_clients, user_database.url)
        wait_until(lambda: _count_scheduled(user_database.url) == 0, 60)

        slow.page_sizes = PAGE_SIZES
        for follower in sync_clients:
            follower.catch_up()
        expected_by_role = {
            role: read_site(full_clients[role].client, user_database.url, is_editor=role == "editor")
            for role in full_clients
        }
        report(
            f"{changes:,} changes, responses {dict(known.status_counts)}; "
            f"copies of {', '.join(f'{len(view):,} for {role}' for role, view in expected_by_role.items())}; "
            f"{sum(f.restarts for f in sync_clients)} restarts in {sum(f.requests for f in sync_clients):,} requests"
        )
        for role, follower in full_clients.items():
            assert_equal_copies(follower, expected_by_role[role])
        assert_equal_copies(slow, expected_by_role["anonymous"])
        for follower in filtered_clients:
            assert_equal_copies(follower, read_site(follower.client, user_database.url, query=follower.query))
        assert_equal_copies(
            venues,
            {key: record for key, record in expected_by_role["anonymous"].items() if key.startswith("venues/")},
        )


def _create_stable_records(client: httpx.Client, database_url: str) -> KnownRecords:
    """A few records that stay for the filters: a category with one below, a tag, a venue, an organizer."""
    known = KnownRecords()

    def create_stable(kind: str, **body: object) -> int:
        record_id: int = expect_json(client.post(f"{API_PATH}/{kind}", json=body), 201)["id"]
        known.stable_ids[kind].add(record_id)
        return record_id

    above = create_stable("categories", name="Above")
    below = expect_json(client.post(f"{API_PATH}/categories", json={"name": "Below", "parent": above}), 201)["id"]
    create_stable("tags", name="Stays")
    create_stable("venues", venue="Stays")
    create_stable("organizers", organizer="Stays")
    with psycopg.connect(database_url) as connection:
        for kind in ("events", "venues", "organizers", "categories", "tags"):
            rows = connection.execute(f"SELECT id FROM {kind} ORDER BY id")
            known.ids[kind] = [row[0] for row in rows]
    assert below in known.ids["categories"]
    return known


def _write_and_sync(writers: list[Writer], sync_clients: list[SyncClient], database_url: str) -> int:
    """Everybody at once, until the writers are done; the number of changes."""
    deadline = time.monotonic() + SECONDS
    before = _read_revision(database_url)
    is_done = False

    def write(writer: Writer) -> None:
        for _ in range(WRITES_PER_WRITER):
            if time.monotonic() > deadline:
                return
            writer.write_randomly()

    def sync(client: SyncClient) -> None:
        while not is_done:
            client.run_step()
            time.sleep(client.rng.random() * 0.4)

    with ThreadPoolExecutor(len(writers) + len(sync_clients)) as threads:
        write_futures: list[Future[None]] = [threads.submit(write, writer) for writer in writers]
        sync_futures = [threads.submit(sync, follower) for follower in sync_clients]
        try:
            while not all(future.done() for future in write_futures):
                asyncio.run(_empty_trash(database_url))
                time.sleep(scaled(1, 5))
        finally:
            is_done = True
        for future in (*write_futures, *sync_futures):
            future.result()
    return _read_revision(database_url) - before


async def _empty_trash(database_url: str) -> None:
    """Delete the trash permanently, as if thirty days had passed."""
    database = await Database.open(Options(url=database_url))
    try:
        await empty_old_trash(database, 0)
    finally:
        await database.close()


def _read_revision(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT revision FROM sites").fetchone()
        assert row is not None
        revision: int = row[0]
        return revision


def _count_scheduled(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute(
            "SELECT (SELECT count(*) FROM events WHERE status = 'future') "
            "+ (SELECT count(*) FROM venues WHERE status = 'future') "
            "+ (SELECT count(*) FROM organizers WHERE status = 'future')"
        ).fetchone()
        assert row is not None
        count: int = row[0]
        return count

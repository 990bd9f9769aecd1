"""A client that follows `changes` has a copy that equals the site, whatever happens to both meanwhile."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import psycopg
import pytest

from kalends.store.database import Database, Options
from kalends.worker import empty_old_trash
from tests.api.running_app import NAMESPACE, Person, done
from tests.lifecycle.conftest import Place
from tests.lifecycle.lifecycle_fixtures import tell
from tests.lifecycle.processes import Worker, run_command, wait_until
from tests.lifecycle.random_writers import Known, Writer
from tests.lifecycle.sync_client import PAGES, Follower, assert_same, view_of
from tests.servers import Server
from tests.soak import scaled

WRITERS = 8
ACTS = scaled(100, 10**9)  # of each writer; a soak is ended by its seconds
SECONDS = scaled(120, 180)
RECORDS = scaled(0, 20_000)


@pytest.mark.slow
def test_synced_copies_equal_site_after_concurrent_writes(
    place: Place, start_server: Callable[..., Server], tmp_path: Path
) -> None:
    if RECORDS:
        seeded = run_command(place.url, "seed", "--events", str(RECORDS))
        assert seeded.exit_code == 0, seeded.output
    server = start_server(place.url)
    with ExitStack() as clients, Worker.start(place.url, tmp_path / "worker.log"):

        def client(person: Person | None = None) -> httpx.Client:
            login = {"login": person.login, "password": person.password} if person else {}
            return clients.enter_context(server.client(**login))

        people = place.people
        known = _begin(client(people["editor"]), place.url)
        kept = {kind: next(iter(ids)) for kind, ids in known.kept.items()}
        everything = {"anonymous": Follower(client(), 1), "editor": Follower(client(people["editor"]), 2)}
        # It falls behind the writers, so that records change between its pages.
        slow = Follower(client(), 10, pages=(1, 4))
        filtered = [
            Follower(client(), seed, query)
            for seed, query in enumerate(
                (
                    {"categories": kept["categories"]},
                    {"tags": kept["tags"]},
                    {"venue": kept["venues"]},
                    {"organizer": kept["organizers"]},
                ),
                3,
            )
        ]
        venues = Follower(client(), 9, {"kind": "venues"})
        writers = [Writer(client(people["editor"]), known, seed) for seed in range(WRITERS)]
        followers = [*everything.values(), *filtered, venues, slow]
        changes = _write_and_follow(writers, followers, place.url)
        wait_until(lambda: _scheduled(place.url) == 0, 60)

        slow.pages = PAGES
        for follower in followers:
            follower.catch_up()
        views = {role: view_of(everything[role].client, place.url, edits=role == "editor") for role in everything}
        tell(
            f"{changes:,} changes, answers {dict(known.answers)}; "
            f"copies of {', '.join(f'{len(view):,} for {role}' for role, view in views.items())}; "
            f"{sum(f.restarts for f in followers)} restarts in {sum(f.requests for f in followers):,} requests"
        )
        for role, follower in everything.items():
            assert_same(follower, views[role])
        assert_same(slow, views["anonymous"])
        for follower in filtered:
            assert_same(follower, view_of(follower.client, place.url, query=follower.query))
        assert_same(venues, {key: record for key, record in views["anonymous"].items() if key.startswith("venues/")})


def _begin(client: httpx.Client, database_url: str) -> Known:
    """A few records that stay for the filters: a category with one below, a tag, a venue, an organizer."""
    known = Known()

    def keep(kind: str, **body: object) -> int:
        record_id: int = done(client.post(f"{NAMESPACE}/{kind}", json=body), 201)["id"]
        known.kept[kind].add(record_id)
        return record_id

    above = keep("categories", name="Above")
    below = done(client.post(f"{NAMESPACE}/categories", json={"name": "Below", "parent": above}), 201)["id"]
    keep("tags", name="Stays")
    keep("venues", venue="Stays")
    keep("organizers", organizer="Stays")
    with psycopg.connect(database_url) as connection:
        for kind in ("events", "venues", "organizers", "categories", "tags"):
            rows = connection.execute(f"SELECT id FROM {kind} ORDER BY id")
            known.ids[kind] = [row[0] for row in rows]
    assert below in known.ids["categories"]
    return known


def _write_and_follow(writers: list[Writer], followers: list[Follower], database_url: str) -> int:
    """Everybody at once, until the writers are done; the number of changes."""
    ending = time.monotonic() + SECONDS
    before = _revision(database_url)
    done_writing = False

    def write(writer: Writer) -> None:
        for _ in range(ACTS):
            if time.monotonic() > ending:
                return
            writer.act()

    def follow(follower: Follower) -> None:
        while not done_writing:
            follower.live()
            time.sleep(follower.chance.random() * 0.4)

    with ThreadPoolExecutor(len(writers) + len(followers)) as threads:
        writing: list[Future[None]] = [threads.submit(write, writer) for writer in writers]
        following = [threads.submit(follow, follower) for follower in followers]
        try:
            while not all(future.done() for future in writing):
                asyncio.run(_empty_trash(database_url))
                time.sleep(scaled(1, 5))
        finally:
            done_writing = True
        for future in (*writing, *following):
            future.result()
    return _revision(database_url) - before


async def _empty_trash(database_url: str) -> None:
    """As if thirty days were over: what is in the trash is removed for good."""
    database = await Database.open(Options(url=database_url))
    try:
        await empty_old_trash(database, 0)
    finally:
        await database.close()


def _revision(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT revision FROM sites").fetchone()
        assert row is not None
        revision: int = row[0]
        return revision


def _scheduled(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute(
            "SELECT (SELECT count(*) FROM events WHERE status = 'future') "
            "+ (SELECT count(*) FROM venues WHERE status = 'future') "
            "+ (SELECT count(*) FROM organizers WHERE status = 'future')"
        ).fetchone()
        assert row is not None
        count: int = row[0]
        return count

"""A site moves to another cell with everything that it has, while it is being used."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import httpx
import psycopg
import pytest
from psycopg import sql

from kalends.fleet.operations import site_move
from kalends.fleet.storage.move_steps import MoveError, list_moves
from tests.cells.move_fixtures import FAST, LOCAL_TABLES, Stage, open_stage
from tests.robustness.consistency import assert_consistent, read_revision
from tests.robustness.site_fixtures import API_PATH, DATES, run_application, wait_until
from tests.robustness.two_sites import SitePair, fill_two_sites, site_tables
from tests.soak import scaled
from tools.postgres import Server


class Interruption(Exception):
    """Ends a mover between two steps, as if it had been killed."""


SITE, HOST = 1, "a.example"
SECONDS_UNDER_LOAD = scaled(2, 10)
WRITERS = scaled(4, 8)


@pytest.fixture
def stage(cluster: tuple[Server, str]) -> Iterator[Stage]:
    with open_stage(*cluster) as opened:
        yield opened


@pytest.fixture
async def pair(stage: Stage) -> SitePair:
    """Two sites in cell `a` with the same IDs, of which the first one moves. It has rows in every table."""
    stage.fetch("a", "DELETE FROM cell")  # A cell gets sites from its directory only.
    filled = await fill_two_sites(stage.cells["a"])
    stage.fetch("a", "INSERT INTO cell (name) VALUES ('a')")
    stage.add_to_directory(SITE, "a", [HOST])
    stage.add_to_directory(filled.b.id, "a", ["b.example"])
    async with run_application(stage.cells["a"]) as transport:
        scheduled = {"title": "Later", **DATES, "status": "publish", "date": "2099-01-01 10:00:00"}
        response = await post_event(transport, filled, scheduled)
        assert response.json()["status"] == "future"
    events = [row[0] for row in stage.fetch("a", "SELECT id FROM events WHERE site_id = 1 ORDER BY id LIMIT 2")]
    with psycopg.connect(stage.cells["a"]) as connection:
        connection.execute("INSERT INTO not_duplicates VALUES (1, %s, %s)", events)
        connection.execute("INSERT INTO legacy_files VALUES (1, '/old.png', 77, 100)")
        connection.execute("INSERT INTO prefix_redirects VALUES (1, '/veranstaltung/', '/event/')")
        connection.execute("INSERT INTO login_failures VALUES (1, 'ed', 1, now())")
        connection.execute("INSERT INTO daily_records VALUES (1, 1, current_date, 3)")
        for status, task in (("doing", "make_sizes"), ("failed", "send_email")):
            connection.execute(
                "INSERT INTO procrastinate_jobs (queue_name, task_name, args, status) "
                "VALUES ('default', %s, '{\"site_id\": 1, \"media_id\": 7}', %s)",
                [task, status],
            )
    return filled


async def post_event(transport: httpx.ASGITransport, pair: SitePair, body: dict[str, Any]) -> httpx.Response:
    async with httpx.AsyncClient(transport=transport, base_url="http://server", trust_env=False) as client:
        response = await client.post(f"{API_PATH}/events", json=body, auth=pair.a.users["ed"], headers={"Host": HOST})
    assert response.status_code == 201, response.text
    return response


async def test_site_moves_with_all_rows(stage: Stage, pair: SitePair) -> None:
    with psycopg.connect(stage.cells["a"]) as connection:
        filled = stage.find_leftovers("a", SITE)
        empty = set(site_tables(connection)) - LOCAL_TABLES - filled.keys()
    assert not empty, "the test does not see whether rows of these tables move"
    before, other = stage.hash_site("a", SITE), stage.hash_site("a", pair.b.id)
    jobs = stage.read_jobs("a", SITE)
    revision = read_revision(stage.cells["a"])

    move = await site_move.move_site(stage.make_setup(), HOST, "b")

    assert (move.outcome, move.step) == ("moved", "clean")
    assert move.ended_at is not None
    assert move.pause_ms is not None
    assert stage.hash_site("b", SITE) == before
    assert stage.hash_site("a", pair.b.id) == other, "the other site has changed"
    assert stage.find_leftovers("a", SITE) == {}
    assert_consistent(stage.cells["b"])
    assert read_revision(stage.cells["b"]) == revision
    # The running job is done again; the failed one waits for the operator.
    assert stage.read_jobs("b", SITE) == [
        (task, arguments, "todo" if status == "doing" else status, at) for task, arguments, status, at in jobs
    ]
    assert stage.find_owners(SITE) == ["b"]
    assert stage.fetch("directory", "SELECT cell, target FROM kalends_directory.sites WHERE id = 1") == [("b", None)]
    assert stage.list_objects() == []


async def test_accounts_and_ids_are_valid_after_a_move(stage: Stage, pair: SitePair) -> None:
    last = stage.fetch("a", "SELECT last_post_id FROM sites WHERE id = 1")[0][0]
    await site_move.move_site(stage.make_setup(), SITE, "b")
    async with run_application(stage.cells["b"]) as transport:
        response = await post_event(transport, pair, {"title": "First at the target", **DATES})
    assert response.json()["id"] == last + 1
    assert_consistent(stage.cells["b"])
    async with (
        run_application(stage.cells["a"]) as transport,
        httpx.AsyncClient(transport=transport, base_url="http://server", trust_env=False) as client,
    ):
        replies = [await client.get(f"{API_PATH}/events", headers={"Host": host}) for host in (HOST, "b.example")]
    assert [reply.status_code for reply in replies] == [404, 200]
    assert replies[0].json()["code"] == "rest_unknown_site"


async def test_site_moves_there_and_back(stage: Stage, pair: SitePair) -> None:
    setup = stage.make_setup()
    before = stage.hash_site("a", SITE)
    for target in ("b", "a", "b"):
        await site_move.move_site(setup, SITE, target)
        assert stage.find_owners(SITE) == [target]
        assert stage.hash_site(target, SITE) == before
    assert len(await list_moves(stage.directory_url)) == 3


class Router:
    """Leads requests to the cell that serves the site, as servers do: another cell, then again after a moment."""

    def __init__(self, transports: dict[str, httpx.ASGITransport], pair: SitePair) -> None:
        self._clients = [
            httpx.AsyncClient(
                transport=transport, base_url="http://server", auth=pair.a.users["ed"], headers={"Host": HOST},
                trust_env=False, timeout=30,
            )
            for transport in transports.values()
        ]  # fmt: skip
        self.longest = 0.0

    async def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        started = time.monotonic()
        while True:
            for client in list(self._clients):
                reply = await client.request(method, API_PATH + path, **options)
                if reply.status_code == 429:
                    break  # Earlier writes of the user wait for the lock of the site.
                if reply.status_code != 404 or reply.json()["code"] != "rest_unknown_site":
                    if method != "GET":
                        self.longest = max(self.longest, time.monotonic() - started)
                    return reply
            assert time.monotonic() - started < 5, "the site was away for 5 s"
            await asyncio.sleep(0.02)


async def test_nothing_is_lost_while_a_site_moves_under_load(stage: Stage, pair: SitePair, report: Any) -> None:
    acknowledged: list[int] = []
    moved = asyncio.Event()
    reads = 0

    async def write(router: Router, number: int) -> None:
        count = 0
        while not moved.is_set() or count < 5:
            count += 1
            body = {"title": f"Event {number}.{count}", **DATES, "tags": [f"tag {number}"]}
            key = {"Idempotency-Key": f"{number} {count}"} if number % 2 else {}
            reply = await router.request("POST", "/events", json=body, headers=key)
            assert reply.status_code == 201, reply.text
            acknowledged.append(reply.json()["id"])
            if count % 3 == 0:
                change = await router.request("POST", f"/events/{reply.json()['id']}", json={"title": "Changed"})
                assert change.status_code == 200, change.text
            if count % 5 == 0:
                failure = await router.request("POST", "/events", json=body, auth=(f"nobody{number}", "x"))
                assert failure.status_code == 401, failure.text

    async def read(router: Router) -> None:
        nonlocal reads
        while not moved.is_set():
            assert (await router.request("GET", "/events?per_page=3")).status_code == 200
            reads += 1

    async with (
        run_application(stage.cells["a"], pool_size=8) as at_a,
        run_application(stage.cells["b"], pool_size=8) as at_b,
    ):
        router = Router({"a": at_a, "b": at_b}, pair)
        async with asyncio.TaskGroup() as group:
            for number in range(WRITERS):
                group.create_task(write(router, number))
            group.create_task(read(router))
            await asyncio.sleep(SECONDS_UNDER_LOAD / 2)
            before = len(acknowledged)
            move = await site_move.move_site(stage.make_setup(), SITE, "b")
            during = len(acknowledged) - before
            await asyncio.sleep(SECONDS_UNDER_LOAD / 2)
            moved.set()
    stored = {row[0] for row in stage.fetch("b", "SELECT id FROM events WHERE site_id = 1")}
    assert set(acknowledged) <= stored
    assert len(set(acknowledged)) == len(acknowledged)
    assert during > 0
    assert_consistent(stage.cells["b"])
    assert stage.find_owners(SITE) == ["b"]
    assert move.pause_ms is not None
    report(
        f"{len(acknowledged)} writes, {during} of them during the move, {reads} reads, pause {move.pause_ms} ms, "
        f"longest write {router.longest * 1000:.0f} ms"
    )


async def test_switch_does_not_wait_long_for_a_running_write(stage: Stage, pair: SitePair, report: Any) -> None:
    """A long write makes the switch fail, and it is tried again; other writers wait for a moment only."""
    events: list[str] = []
    longest = 0.0

    async def write_briefly() -> None:
        nonlocal longest
        while "departed" not in events:
            started = time.monotonic()
            async with await psycopg.AsyncConnection.connect(stage.cells["a"]) as connection:
                await connection.execute("SELECT FROM enter_site_number(1)")
            longest = max(longest, time.monotonic() - started)
            await asyncio.sleep(0.01)

    async with await psycopg.AsyncConnection.connect(stage.cells["a"]) as long_write:
        await long_write.execute("SELECT FROM enter_site_number(1)")
        # A transaction that has written before would delay the copy, too.
        moving = asyncio.create_task(site_move.move_site(stage.make_setup(watch=events.append), SITE, "b"))
        brief = asyncio.create_task(write_briefly())
        await wait_until(lambda: events.count("fence expired") >= 2 or moving.done(), 60)
    move = await moving
    await brief
    assert move.outcome == "moved"
    assert events.count("fence expired") >= 2
    assert longest < FAST.lock_timeout + FAST.fence_timeout + 1
    report(f"longest write {longest * 1000:.0f} ms in {events.count('fence expired') + 1} attempts")


async def test_write_that_waited_finds_the_site_departed(stage: Stage, pair: SitePair) -> None:
    with psycopg.connect(stage.cells["a"]) as fence, psycopg.connect(stage.cells["a"]) as writer:
        fence.execute("SELECT pg_advisory_xact_lock(hashtextextended('kalends.site', 1))")
        found = asyncio.create_task(asyncio.to_thread(_enter, writer))
        await asyncio.sleep(0.3)
        assert not found.done()
        fence.execute("INSERT INTO unserved_sites VALUES (1, 'departed', gen_random_uuid())")
        fence.commit()
        assert await found == []


def _enter(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT id FROM enter_site_number(1)").fetchall()


async def test_abort_leaves_no_trace(stage: Stage, pair: SitePair) -> None:
    before = stage.hash_site("a", SITE)

    def stop(event: str) -> None:
        if event == "after copy":
            raise Interruption

    with pytest.raises(Interruption):
        await site_move.move_site(stage.make_setup(watch=stop), SITE, "b")
    (unfinished,) = await list_moves(stage.directory_url, unfinished=True)
    assert unfinished.step == "copy"
    assert stage.fetch("directory", "SELECT target FROM kalends_directory.sites WHERE id = 1") == [("b",)]
    assert stage.find_leftovers("b", SITE)

    move = await site_move.abort_move(stage.make_setup(), unfinished)
    assert (move.outcome, stage.find_owners(SITE)) == ("aborted", ["a"])
    assert stage.find_leftovers("b", SITE) == {}
    assert stage.list_objects() == []
    assert stage.hash_site("a", SITE) == before
    assert stage.fetch("directory", "SELECT cell, target FROM kalends_directory.sites WHERE id = 1") == [("a", None)]
    await site_move.move_site(stage.make_setup(), SITE, "b")
    assert stage.hash_site("b", SITE) == before


async def test_abort_after_the_switch_is_refused(stage: Stage, pair: SitePair) -> None:
    def stop(event: str) -> None:
        if event == "departed":
            raise Interruption

    with pytest.raises(Interruption):
        await site_move.move_site(stage.make_setup(watch=stop), SITE, "b")
    (unfinished,) = await list_moves(stage.directory_url, unfinished=True)
    assert stage.find_owners(SITE) == []
    with pytest.raises(MoveError, match="was switched to the cell"):
        await site_move.abort_move(stage.make_setup(), unfinished)
    move = await site_move.resume_move(stage.make_setup(), unfinished)
    assert (move.outcome, stage.find_owners(SITE)) == ("moved", ["b"])


def drop_slots(stage: Stage) -> None:
    """Drop all slots between two connections of the target, which connects again at once."""
    while slots := stage.fetch("a", "SELECT slot_name, active_pid FROM pg_replication_slots"):
        for name, pid in slots:
            with suppress(psycopg.errors.ObjectInUse):
                stage.fetch("a", "SELECT pg_terminate_backend(%s, 5000)", pid)
                stage.fetch("a", "SELECT pg_drop_replication_slot(%s)", name)


async def test_lost_slot_starts_a_new_copy(stage: Stage, pair: SitePair) -> None:
    """As after a failover of the source: PostgreSQL 15 does not have logical slots on standbys."""
    lost = False
    before = stage.hash_site("a", SITE)

    def lose_slot(event: str) -> None:
        nonlocal lost
        if event == "before switch" and not lost:
            lost = True
            drop_slots(stage)

    move = await site_move.move_site(stage.make_setup(watch=lose_slot), SITE, "b")
    assert move.outcome == "moved"
    assert [entry.outcome for entry in await list_moves(stage.directory_url)] == ["moved", "aborted"]
    assert stage.hash_site("b", SITE) == before
    assert stage.list_objects() == []


async def test_new_table_starts_a_new_copy(stage: Stage, pair: SitePair) -> None:
    """A table of a migration during the move is in no publication that was created before."""

    def migrate_cells(event: str) -> None:
        if event == "before switch":
            for cell in stage.cells:
                stage.fetch(
                    cell, "CREATE TABLE IF NOT EXISTS notes (site_id bigint, id bigint, PRIMARY KEY (site_id, id))"
                )
            stage.fetch("a", "INSERT INTO notes VALUES (1, 1) ON CONFLICT DO NOTHING")

    await site_move.move_site(stage.make_setup(watch=migrate_cells), SITE, "b")
    assert stage.fetch("b", "SELECT * FROM notes") == [(1, 1)]
    assert [entry.outcome for entry in await list_moves(stage.directory_url)] == ["moved", "aborted"]


async def test_only_one_move_per_source_at_a_time(stage: Stage, pair: SitePair) -> None:
    refusals: list[str] = []
    setup = stage.make_setup()

    async def try_other() -> None:
        try:
            await site_move.move_site(setup, "b.example", "b")
        except MoveError as error:
            refusals.append(error.text)

    tasks: list[asyncio.Task[None]] = []

    def watch(event: str) -> None:
        if event == "before copy":
            tasks.append(asyncio.create_task(try_other()))

    await site_move.move_site(stage.make_setup(watch=watch), SITE, "b")
    await asyncio.gather(*tasks)
    assert refusals == ["Another process is moving a site of the cell a."]
    assert (await site_move.move_site(setup, "b.example", "b")).outcome == "moved"


async def test_hosts_of_the_directory_are_added(stage: Stage, pair: SitePair) -> None:
    def add_host(event: str) -> None:
        if event == "departed":
            stage.fetch("directory", "INSERT INTO kalends_directory.hosts VALUES ('new.example', 1)")

    await site_move.move_site(stage.make_setup(watch=add_host), SITE, "b")
    hosts = stage.fetch("b", "SELECT host FROM site_hosts WHERE site_id = 1 ORDER BY 1")
    assert hosts == [(HOST,), ("new.example",)]


async def test_garbage_of_dead_movers_is_removed(stage: Stage, pair: SitePair) -> None:
    """A publication and a slot of a move that the directory does not know, and a mark of an aborted one."""
    name = "kalends_move_1_0123456789ab"
    stage.fetch("a", f"CREATE PUBLICATION {name}")
    stage.fetch("a", f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')")
    stage.fetch("b", "INSERT INTO unserved_sites VALUES (1, 'arriving', gen_random_uuid())")
    stage.fetch("b", "INSERT INTO sites (id) VALUES (1)")
    move = await site_move.move_site(stage.make_setup(), SITE, "b")
    assert move.outcome == "moved"
    assert stage.list_objects() == []


@pytest.mark.parametrize(
    "loss",
    [
        "UPDATE sites SET revision = revision - 1 WHERE id = 1",
        "DELETE FROM unserved_sites; SET session_replication_role = replica; DELETE FROM sites WHERE id = 1; "
        "DELETE FROM events WHERE site_id = 1",
    ],
)
async def test_copy_that_the_target_loses_after_the_switch_is_made_again(
    stage: Stage, pair: SitePair, loss: str
) -> None:
    """As after a failover of the target to a standby that was behind: the source has all rows, and serves again."""
    before, jobs = stage.hash_site("a", SITE), stage.read_jobs("a", SITE)
    owners: list[list[str]] = []

    def lose_copy(event: str) -> None:
        if event == "departed" and not owners:
            stage.fetch("b", loss)
            if "DELETE FROM events" in loss:
                empty_tables(stage.cells["b"])
            owners.append(stage.find_owners(SITE))
        if event == "after begin" and owners:
            owners.append(stage.find_owners(SITE))

    move = await site_move.move_site(stage.make_setup(watch=lose_copy), SITE, "b")
    assert owners == [[], ["a"]]
    assert move.outcome == "moved"
    assert [entry.outcome for entry in await list_moves(stage.directory_url)] == ["moved", "aborted"]
    assert stage.hash_site("b", SITE) == before
    assert sorted(row[0] for row in stage.read_jobs("b", SITE)) == sorted(row[0] for row in jobs)
    assert stage.find_leftovers("a", SITE) == {}
    assert stage.list_objects() == []


def empty_tables(url: str) -> None:
    """Delete all rows of the site, as if they had never arrived."""
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")
        for table in site_tables(connection):
            key = "id" if table == "sites" else "site_id"
            connection.execute(
                sql.SQL("DELETE FROM {} WHERE {} = 1").format(sql.Identifier(table), sql.Identifier(key))
            )


async def test_copy_that_fails_is_reported(stage: Stage, pair: SitePair) -> None:
    """A row at the target that nobody expects makes the copy of its table fail again and again."""

    def add_row(event: str) -> None:
        if event == "slot created":
            stage.fetch("b", "SET session_replication_role = replica; INSERT INTO site_styles VALUES (1, 'x')")

    setup = stage.make_setup(watch=add_row, limits=replace(FAST, patience=5.0))
    with pytest.raises(MoveError, match=r"makes no progress, after [0-9]+ errors"):
        await site_move.move_site(setup, SITE, "b")
    (unfinished,) = await list_moves(stage.directory_url, unfinished=True)
    assert (await site_move.abort_move(stage.make_setup(), unfinished)).outcome == "aborted"
    assert stage.find_owners(SITE) == ["a"]
    assert stage.find_leftovers("b", SITE) == {}
    assert stage.list_objects() == []

"""Requests reach the cell of their site, whatever the process remembers."""

import asyncio
import itertools
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from unittest.mock import patch

import httpx
import psycopg
import pytest

from kalends.core.errors import ApiError
from kalends.core.times import utc_now
from kalends.fleet.storage import cell_router
from kalends.fleet.storage.cell_router import KnownSites
from kalends.fleet.storage.directory import Location
from kalends.store.sql import Sql
from tests.cells.cell_set import CellSet, CellSite, copy_rows
from tests.robustness.site_fixtures import API_PATH, DATES
from tests.soak import SOAK, scaled

# Requests to sites that move at the same time.
REQUESTS = scaled(300, 10_000)


async def read_name(client: httpx.AsyncClient, host: str) -> str:
    """Return the name of the site as a page shows it."""
    response = await client.get("/events/list/", headers={"Host": host})
    assert response.status_code == 200, response.text
    return response.text


async def create_event(client: httpx.AsyncClient, site: CellSite, title: str) -> httpx.Response:
    return await client.post(
        f"{API_PATH}/events", json={"title": title, **DATES}, auth=site.login, headers={"Host": site.host}
    )


async def list_titles(client: httpx.AsyncClient, host: str) -> set[str]:
    response = await client.get(f"{API_PATH}/events", params={"per_page": 50}, headers={"Host": host})
    assert response.status_code == 200, response.text
    return {event["title"] for event in response.json()["events"]}


async def test_each_host_is_answered_by_its_cell(cells: CellSet) -> None:
    sites = [await asyncio.to_thread(cells.add_site, f"{cell}.example", cell) for cell in "abc"]
    async with cells.open_client() as client:
        for site in sites:
            assert site.name in await read_name(client, site.host)
            assert (await create_event(client, site, f"Event of {site.name}")).status_code == 201
            assert await list_titles(client, site.host) == {f"Event of {site.name}"}
            assert cells.sql(site.cell, "SELECT site_id FROM events") == [(site.id,)]
    assert len({site.id for site in sites}) == 3


async def test_cell_with_a_single_site_does_not_answer_other_hosts(cells: CellSet) -> None:
    site = await asyncio.to_thread(cells.add_site, "one.example", "a")
    with psycopg.connect(cells.urls["a"]) as connection:
        assert connection.execute("SELECT id FROM enter_site('foreign.example')").fetchall() == []
        assert connection.execute("SELECT * FROM site_revisions('{foreign.example}')").fetchall() == []
        assert connection.execute("SELECT id FROM enter_site('one.example')").fetchall() == [(site.id,)]
    async with cells.open_client() as client:
        for host in ("foreign.example", "one.example.evil.example", "127.0.0.1", "1"):
            assert (await client.get("/events/list/", headers={"Host": host})).status_code == 404


async def test_unknown_hosts_do_not_flood_the_directory(cells: CellSet) -> None:
    await asyncio.to_thread(cells.add_site, "one.example", "a")
    async with cells.open_cells() as opened:
        for _ in range(200):
            assert await opened.router.find("unknown.example") is None
        assert opened.read_counts()["lookup"] == 1
        # However many there are, one query at a time asks for all that wait.
        found = await asyncio.gather(*[opened.router.find(f"{number}.example") for number in range(5_000)])
        assert set(found) == {None}
        assert opened.read_counts()["lookup"] <= 3
        for _ in range(200):
            assert await opened.router.find("one.example") is not None
        assert opened.read_counts()["lookup"] <= 4


async def test_unknown_host_is_found_soon_after_it_was_added(cells: CellSet, monkeypatch: pytest.MonkeyPatch) -> None:
    # Long enough to add a site on a busy machine.
    monkeypatch.setattr(cell_router, "UNKNOWN_SECONDS", 3)
    async with cells.open_cells() as opened:
        assert await opened.router.find("late.example") is None
        site = await asyncio.to_thread(cells.add_site, "late.example", "c")
        assert await opened.router.find("late.example") is None
        await asyncio.sleep(3.1)
        assert await opened.router.find("late.example") == Location(site.id, "c")


async def test_old_location_is_used_at_once_and_refreshed(cells: CellSet, monkeypatch: pytest.MonkeyPatch) -> None:
    site = await asyncio.to_thread(cells.add_site, "one.example", "a")
    async with cells.open_cells() as opened:
        assert await opened.router.find(site.host) == Location(site.id, "a")
        cells.sql("", "UPDATE kalends_directory.sites SET cell = 'b'")
        assert await opened.router.find(site.host) == Location(site.id, "a")
        monkeypatch.setattr(cell_router, "MAX_AGE", 0)
        assert await opened.router.find(site.host) == Location(site.id, "a")
        await asyncio.sleep(0.2)
        assert await opened.router.find(site.host) == Location(site.id, "b")


async def test_moved_site_is_found_with_an_old_location(cells: CellSet) -> None:
    """Reads, writes, cached responses and image paths, each by a process that knows the former cell only."""
    site = await asyncio.to_thread(cells.add_site, "one.example", "a")
    async with cells.open_client() as client:
        assert (await create_event(client, site, "Before")).status_code == 201
        assert await list_titles(client, site.host) == {"Before"}
        await asyncio.to_thread(cells.move, site.id, "a", "b")
        assert await list_titles(client, site.host) == {"Before"}
        assert (await create_event(client, site, "After")).status_code == 201
        assert await list_titles(client, site.host) == {"Before", "After"}
    assert cells.sql("b", "SELECT count(*) FROM events") == [(2,)]
    assert cells.sql("a", "SELECT count(*) FROM events") == [(0,)]


async def test_caches_stay_right_when_a_site_moves_and_its_rows_are_left(cells: CellSet) -> None:
    """Revisions move with the site. The former cell still has the rows, and must not tell an old revision."""
    site = await asyncio.to_thread(cells.add_site, "one.example", "a")
    async with cells.open_client() as client, cells.open_client() as other:
        assert (await create_event(client, site, "Before")).status_code == 201
        before = await client.get(f"{API_PATH}/events", headers={"Host": site.host})
        await asyncio.to_thread(cells.move, site.id, "a", "b", cleans_up=False)
        # Nothing has changed, so the response of the first process stays valid.
        assert (await client.get(f"{API_PATH}/events", headers={"Host": site.host})).text == before.text
        # The write goes through another process: the first one hears of it from the target only.
        assert (await create_event(other, site, "After")).status_code == 201
        assert await list_titles(client, site.host) == {"Before", "After"}
        # A response that the change does not touch outlives it, which needs the changes since its revision.
        path, headers = f"{API_PATH}/venues", {"Host": site.host}
        first = await client.get(path, headers=headers)
        assert (await create_event(other, site, "Third")).status_code == 201
        assert (await client.get(path, headers=headers)).text == first.text
        assert await list_titles(client, site.host) == {"Before", "After", "Third"}
    assert cells.sql("a", "SELECT count(*) FROM events") == [(1,)]


async def test_former_cell_does_not_answer_for_a_site(cells: CellSet) -> None:
    site = await asyncio.to_thread(cells.add_site, "one.example", "a")
    await asyncio.to_thread(cells.move, site.id, "a", "b", cleans_up=False)
    # Its rows are left, and not even a host that somebody adds by hand makes the cell show them.
    cells.sql("a", "INSERT INTO site_hosts VALUES ('stray.example', %s)", [site.id])
    async with cells.open_cells() as opened:
        former = opened.by_cell["a"]
        assert await former.fetch_revisions([site.host]) == []
        sql = Sql("SELECT * FROM site_changes(?, 0, NULL, 10)", site.id)
        assert await former.fetch_for_site(site.id, sql) == []
        assert len(await opened.fetch_for_site(site.id, sql)) == 1
        keys: list[str | int] = [site.host, "stray.example", site.id]
        for key in keys:
            for writing in (False, True):
                with pytest.raises(ApiError, match="No site is configured"):
                    async with former.transaction(key, utc_now(), writing=writing):
                        pass


async def test_writer_that_waits_for_the_switch_is_answered_by_the_target(cells: CellSet) -> None:
    site = await asyncio.to_thread(cells.add_site, "one.example", "a")
    async with cells.open_client() as client:
        assert (await create_event(client, site, "Before")).status_code == 201
        cells.begin_move(site.id, "b")
        with psycopg.connect(cells.urls["a"]) as fence:
            fence.execute("SELECT pg_advisory_xact_lock(hashtextextended('kalends.site', %s))", [site.id])
            writer = asyncio.create_task(create_event(client, site, "Waiting"))
            await asyncio.sleep(0.3)
            assert not writer.done()
            # Readers do not wait.
            assert await list_titles(client, site.host) == {"Before"}
        # The fence was given up; the switch below takes it again, before or after the writer.
        hosts = await asyncio.to_thread(cells.leave, site.id, "a", "b")
        late = asyncio.create_task(create_event(client, site, "Late"))
        await asyncio.sleep(0.2)
        assert not late.done()  # No cell serves the site at this moment.
        await asyncio.to_thread(cells.arrive, site.id, "b", hosts)
        await asyncio.to_thread(cells.end_move, site.id, "b")
        assert [(await task).status_code for task in (writer, late)] == [201, 201]
        assert await list_titles(client, site.host) == {"Before", "Waiting", "Late"}
    assert cells.sql("b", "SELECT count(*) FROM events") == [(3,)]


async def test_writer_inside_the_fence_is_answered_by_the_target(cells: CellSet) -> None:
    """The lock is granted after the commit of the switch: the writer has entered nothing and starts over."""
    site = await asyncio.to_thread(cells.add_site, "one.example", "a")
    cells.begin_move(site.id, "b")
    async with cells.open_client() as client:
        with psycopg.connect(cells.urls["a"]) as fence:
            fence.execute("SELECT pg_advisory_xact_lock(hashtextextended('kalends.site', %s))", [site.id])
            writer = asyncio.create_task(create_event(client, site, "Waiting"))
            await asyncio.sleep(0.3)
            assert not writer.done()
            with psycopg.connect(cells.urls["b"]) as arriving:
                copy_rows(fence, arriving, site.id)
            fence.execute("DELETE FROM site_hosts WHERE site_id = %s", [site.id])
            fence.execute(
                "INSERT INTO unserved_sites VALUES (%s, 'departed', gen_random_uuid())",
                [site.id],
            )
        await asyncio.to_thread(cells.arrive, site.id, "b", [site.host])
        assert (await writer).status_code == 201
    assert cells.sql("a", "SELECT count(*) FROM events") == [(0,)]
    assert cells.sql("b", "SELECT title FROM events") == [("Waiting",)]


async def test_request_gives_up_when_no_cell_serves_the_site(cells: CellSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_router, "MAX_WAIT", 0.5)
    site = await asyncio.to_thread(cells.add_site, "one.example", "a")
    cells.begin_move(site.id, "b")
    await asyncio.to_thread(cells.leave, site.id, "a", "b")
    async with cells.open_client() as client:
        started = time.monotonic()
        response = await create_event(client, site, "Never")
        took = time.monotonic() - started
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
    assert 0.5 <= took < 3


async def test_error_inside_a_transaction_is_not_retried(cells: CellSet) -> None:
    """Not even one that says that the site is unknown: work has been done by then."""
    site = await asyncio.to_thread(cells.add_site, "one.example", "a")
    async with cells.open_cells() as opened:
        for error in (ApiError(404, "rest_unknown_site", "inside"), ApiError(503, "rest_unavailable", "inside")):
            attempts = 0
            with pytest.raises(ApiError, match="inside"):  # noqa: PT012
                async with opened.transaction(site.host, utc_now(), writing=True) as tx:
                    attempts += 1
                    await tx.execute(Sql("UPDATE sites SET name = 'changed' WHERE id = ?", site.id))
                    raise error
            assert attempts == 1
        assert opened.read_counts()["retry"] == 0
    assert cells.sql("a", "SELECT name FROM sites") == [(site.name,)]


async def test_host_that_moves_to_another_site_never_shows_the_former_one(cells: CellSet) -> None:
    first = await asyncio.to_thread(cells.add_site, "first.example", "a")
    same_cell = await asyncio.to_thread(cells.add_site, "second.example", "a")
    other_cell = await asyncio.to_thread(cells.add_site, "third.example", "b")
    async with cells.open_client(cache_mb=0) as client:
        for site in (first, same_cell, other_cell, first):
            arguments = ("moving.example", "--site", site.host, "--move")
            result = await asyncio.to_thread(cells.run, "site", "add-host", *arguments)
            assert result.exit_code == 0, result.output
            assert site.name in await read_name(client, "moving.example")


async def test_cell_that_gives_a_host_to_another_site_is_not_believed(cells: CellSet) -> None:
    """The directory decides which site a host has; a cell that differs does not answer for it."""
    first = await asyncio.to_thread(cells.add_site, "first.example", "a")
    second = await asyncio.to_thread(cells.add_site, "second.example", "a")
    cells.sql("a", "UPDATE site_hosts SET site_id = %s WHERE host = %s", [second.id, first.host])
    async with cells.open_client() as client:
        assert (await client.get("/events/list/", headers={"Host": first.host})).status_code == 404
        assert second.name in await read_name(client, second.host)


async def test_no_request_is_answered_from_the_wrong_cell_while_sites_move(
    cells: CellSet,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    report: Callable[[object], None],
) -> None:
    """Processes with outdated locations read and write all the time; each response has the name of its site.

    On a busy machine a database may not respond in time. That is the only reason for an error, and a rare one.
    """
    if not SOAK:  # Other tests share the machine, and a switch by SQL may take longer than a real one.
        monkeypatch.setattr(cell_router, "MAX_WAIT", 60.0)
    hosts = [(cell, number) for cell in "abc" for number in range(2)]
    sites = [await asyncio.to_thread(cells.add_site, f"{cell}{number}.example", cell) for cell, number in hosts]
    places = {site.id: site.cell for site in sites}
    writes: dict[int, int] = dict.fromkeys(places, 0)
    statuses: Counter[int] = Counter()
    moves = 0

    async def request(client: httpx.AsyncClient, number: int) -> None:
        site = sites[number % len(sites)]
        if number % 7 == 0:
            response = await create_event(client, site, f"Event of {site.name}")
            if response.status_code == 429:
                # The user of a site writes over several connections, so some writes have to be repeated.
                await asyncio.sleep(0.05)
                await request(client, number)
                return
            writes[site.id] += response.status_code == 201
        else:
            is_page = bool(number % 2)
            path = "/events/list/" if is_page else f"{API_PATH}/events?per_page=50"
            response = await client.get(path, headers={"Host": site.host})
            if response.status_code == 200:
                names = set(re.findall(r"Calendar of \w+\.example", response.text))
                assert names == {site.name} if is_page else names <= {site.name}, response.text
        assert response.status_code in (200, 201, 503), response.text
        statuses[response.status_code] += 1

    async def request_all(client: httpx.AsyncClient, offset: int) -> None:
        for number in itertools.count(offset):
            if statuses.total() >= REQUESTS:
                return
            await request(client, number)

    async def move_around() -> None:
        nonlocal moves
        while statuses.total() < REQUESTS:
            site = sites[moves % len(sites)]
            source = places[site.id]
            target = "abc"[("abc".index(source) + 1 + moves % 2) % 3]
            await asyncio.to_thread(cells.move, site.id, source, target)
            places[site.id] = target
            moves += 1

    async with cells.open_client() as first, cells.open_client() as second:
        await asyncio.gather(move_around(), *[request_all(client, n) for n in range(3) for client in (first, second)])
    report(f"{statuses.total()} requests by status {dict(statuses)}, {moves} moves, 0 from a wrong cell")
    causes = {record.__dict__["fields"]["cause"] for record in caplog.records if record.getMessage() == "unavailable"}
    assert causes <= {"database", "database_timeout", "statement_timeout", "pool_exhausted"}
    assert statuses[503] <= statuses.total() // 100
    for site in sites:
        for cell in "abc":
            expected = writes[site.id] if cell == places[site.id] else 0
            assert cells.sql(cell, "SELECT count(*) FROM events WHERE site_id = %s", [site.id]) == [(expected,)]


def test_known_sites_take_little_memory_and_are_bounded() -> None:
    known, hosts = KnownSites(), [f"calendar-{number}.example.org" for number in range(100_000)]
    for number, host in enumerate(hosts):
        known.put(host, Location(number + 1, "abc"[number % 3]), 1_000)
    entries = [entry for generation in (known._new, known._old) for entry in generation.values()]
    size = sum(map(sys.getsizeof, (known._new, known._old, *entries, *hosts)))
    assert size / len(hosts) <= 200
    assert len(known) == 100_000
    assert known.get(hosts[0]) == (Location(1, "a"), 1_000)
    assert known.get(hosts[-1]) == (Location(100_000, "a"), 1_000)
    with patch.object(cell_router, "GENERATION_SIZE", 10):
        small = KnownSites()
        for number in range(1_000):
            small.put(number, Location(number, "a"), number)
            assert small.get(0) is not None or number == 0  # One that is used stays.
        assert len(small) <= 20
    small.discard(0)
    assert small.get(0) is None

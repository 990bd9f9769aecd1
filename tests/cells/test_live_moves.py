"""A site moves around three cells while servers, workers and commands use it."""

import asyncio
from typing import Any

import pytest

from kalends.fleet.storage.move_steps import list_moves
from tests.cells.live_cells import LiveCells, Load
from tests.cells.move_fixtures import Stage
from tests.robustness.consistency import assert_consistent
from tests.robustness.site_fixtures import API_PATH, wait_until
from tests.soak import scaled

pytestmark = pytest.mark.process

HOST = "town.example"
MOVES = scaled(2, 20)
WRITERS, READERS = scaled(3, 8), scaled(2, 8)
MAX_PAUSE_MS = 1_000


async def test_site_moves_around_three_cells_without_a_lost_write_or_an_error(live: LiveCells, report: Any) -> None:
    cells = live.cells
    site = await asyncio.to_thread(cells.add_site, HOST, "a")
    load = Load(live, site)
    targets = ["bca"[number % 3] for number in range(MOVES)]

    async def move_around() -> None:
        await asyncio.sleep(2)
        for target in targets:
            await live.move(site, target)
            await asyncio.sleep(0.5)

    await load.run(WRITERS, READERS, asyncio.create_task(move_around()))

    owner = targets[-1]

    def count_open_jobs() -> int:
        open_jobs = "SELECT count(*) FROM procrastinate_jobs WHERE status NOT IN ('succeeded', 'cancelled')"
        return sum(cells.sql(cell, open_jobs)[0][0] for cell in cells.urls)

    # The jobs of the last seconds: publications and sizes of images.
    await wait_until(lambda: count_open_jobs() == 0, 60)
    states = dict(cells.sql(owner, "SELECT id, (title, status)::text FROM events"))
    titles = dict(cells.sql(owner, "SELECT id, title FROM events"))
    assert titles.items() >= load.titles.items()
    assert len(titles) == len(load.titles) + len(load.scheduled), "more events than were acknowledged"
    assert not [states[record_id] for record_id in load.scheduled if not states[record_id].endswith(",publish)")]
    assert cells.sql(owner, "SELECT count(*) FROM media WHERE sizes = '{}'") == [(0,)]
    logins = {login for (login,) in cells.sql(owner, "SELECT login FROM users")}
    assert logins == {*load.accounts, "ed"}
    assert_consistent(cells.urls[owner], site.id)
    checked = await asyncio.to_thread(cells.run, "cell", "check")
    assert checked.exit_code == 0, checked.output

    client = load.open_client(0)
    async with client:
        for path in load.images.values():
            assert (await client.get(path)).status_code == 200, path
        # A last move of a site at rest: each row, response and feed is the same afterwards.
        paths = (f"{API_PATH}/events?per_page=50", "/events.ics", "/events/list/")
        before = [(await client.get(path)).content for path in paths]
        stage = Stage(cells.directory_url, dict(cells.urls))
        rows = stage.hash_site(owner, site.id)
        last = "bca"["abc".index(owner)]
        await live.move(site, last)
        assert [(await client.get(path)).content for path in paths] == before
    assert stage.hash_site(last, site.id) == rows
    for server in live.servers:
        assert '"status": 5' not in server.read_log()
    pauses = sorted(move.pause_ms or 0 for move in await list_moves(cells.directory_url))
    assert pauses[-1] <= MAX_PAUSE_MS * scaled(5, 1), pauses  # Other tests share the machine with a small run.
    report(
        f"{len(pauses)} moves, {load.writes} writes, {load.reads} reads, 0 errors; pauses {pauses} ms, "
        f"longest write {max(load.durations) * 1000:.0f} ms, {len(load.scheduled)} publications, "
        f"{len(load.images)} images, {len(load.accounts)} accounts"
    )

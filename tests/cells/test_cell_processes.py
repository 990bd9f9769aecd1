"""Servers and workers of cells as processes."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import httpx
import orjson

from kalends.bootstrap import open_library
from kalends.core.times import utc_now
from kalends.media.jobs import collect_orphans
from kalends.settings import Settings
from kalends.store.database import Database, Options
from tests.cells.cell_set import CellSet, CellSite
from tests.lifecycle.processes import Worker, wait_until
from tests.robustness.site_fixtures import API_PATH, DATES
from tests.servers import Server, find_free_port

UNUSED = "postgresql://postgres@127.0.0.1:1/unused"


def create_event(server: Server, site: CellSite, **fields: str) -> httpx.Response:
    return httpx.post(
        f"{server.base_url}{API_PATH}/events",
        json={"title": f"Event of {site.name}", **DATES, **fields},
        auth=site.login,
        headers={"Host": site.host},
    )


def test_server_with_several_processes_serves_all_cells(cells: CellSet, start_server: Callable[..., Server]) -> None:
    sites = [cells.add_site(f"{cell}.example", cell) for cell in "abc"]
    port = find_free_port()
    environment = {**cells.environment, "KALENDS_METRICS_PORT": str(port)}
    server = start_server(UNUSED, workers=2, environment=environment)
    ready = httpx.get(f"{server.base_url}/readyz")
    assert ready.text.splitlines() == ["ready", *[f"cell {cell}: ready" for cell in "abc"]]
    for site in sites:
        assert create_event(server, site).status_code == 201
        for _ in range(5):
            response = httpx.get(f"{server.base_url}{API_PATH}/events", headers={"Host": site.host})
            assert [event["title"] for event in response.json()["events"]] == [f"Event of {site.name}"]
    cells.move(sites[0].id, "a", "b")
    assert create_event(server, sites[0]).status_code == 201

    def scrape() -> str:
        return httpx.get(f"http://127.0.0.1:{port}/metrics").text

    wait_until(lambda: 'kalends_routing_total{event="retry"} 0.0' not in scrape(), 10, 0.5)
    shown = scrape()
    for cell in "abc":
        assert f'kalends_pool_size{{cell="{cell}"}} 20.0' in shown
        assert f'kalends_database_up{{cell="{cell}"}} 1.0' in shown
    for event in ("miss", "lookup", "retry", "wait"):
        assert f'kalends_routing_total{{event="{event}"}}' in shown
    assert server.stop() == 0


def test_worker_publishes_in_its_cell_only(cells: CellSet, tmp_path: Path) -> None:
    sites = [cells.add_site(f"{cell}.example", cell) for cell in "ab"]
    for site in sites:
        cells.sql(
            site.cell,
            "INSERT INTO venues (site_id, id, revision, author_id, title, slug, status, published_at, "
            "modified_utc) VALUES (%s, 1, 1, 1, 'Hall', 'hall', 'future', now(), now())",
            [site.id],
        )
    with Worker.start(UNUSED, tmp_path / "worker.log", cells.environment, options=("--cell", "a")):
        wait_until(lambda: cells.sql("a", "SELECT status FROM venues") == [("publish",)], 60)
    assert cells.sql("b", "SELECT status FROM venues") == [("future",)]
    assert cells.sql("b", "SELECT count(*) FROM procrastinate_workers") == [(0,)]


def test_job_of_a_site_that_has_moved_ends_without_a_retry(cells: CellSet, tmp_path: Path) -> None:
    site = cells.add_site("one.example", "a")
    cells.move(site.id, "a", "b", cleans_up=False)
    arguments = {"kind": "events", "record_id": 1, "site_id": site.id}
    for task, more in (("publish", arguments), ("make_sizes", {"media_id": 1, "site_id": site.id}),
                       ("purge", {"first": 1, "last": 1, "site_id": site.id})):  # fmt: skip
        cells.sql(
            "a",
            "INSERT INTO procrastinate_jobs (queue_name, task_name, args) VALUES ('default', %s, %s)",
            [task, orjson.dumps(more).decode()],
        )
    log = tmp_path / "worker.log"
    with Worker.start(UNUSED, log, cells.environment, options=("--cell", "a")):
        tasks = "SELECT count(*) FROM procrastinate_jobs WHERE task_name IN ('publish', 'make_sizes', 'purge')"
        wait_until(lambda: cells.sql("a", tasks) == [(0,)], 60)
    assert "Traceback" not in log.read_text()


def test_orphans_are_collected_in_served_sites_only(cells: CellSet, tmp_path: Path) -> None:
    """The cells share one media storage."""
    served, moved, foreign = (
        cells.add_site(f"{name}.example", cell) for name, cell in zip("123", "aab", strict=True)
    )
    cells.move(moved.id, "a", "c", cleans_up=False)
    paths = {}
    for site in (served, moved, foreign):
        name = f"{site.id:064x}.png"
        paths[site.id] = tmp_path / str(site.id) / name[:2] / name
        paths[site.id].parent.mkdir(parents=True)
        paths[site.id].write_bytes(b"x")

    async def collect(cell: str) -> int:
        database = await Database.open(Options(url=cells.urls[cell]))
        library = open_library(Settings(media_dir=str(tmp_path)))
        try:
            return await collect_orphans(database, library, utc_now() + timedelta(days=2))
        finally:
            await database.close()

    assert asyncio.run(collect("a")) == 1
    assert {site_id for site_id, path in paths.items() if path.exists()} == {moved.id, foreign.id}
    assert [asyncio.run(collect(cell)) for cell in "bc"] == [1, 1]

"""Webhooks of a site that moves to another cell while a page is on its way."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from kalends.push.rules import derive_secret
from tests.cells.cell_set import CellSet, CellSite
from tests.cells.live_cells import LiveCells, Load, open_live_cells
from tests.lifecycle.processes import Worker
from tests.lifecycle.sync_client import SyncClient, assert_equal_copies
from tests.push.webhook_mirror import Mirror
from tests.push.webhook_receiver import OK, Answer, Mailbox, Receiver
from tests.robustness.site_fixtures import API_PATH, DATES, wait_until
from tests.soak import scaled

WEBHOOK = "moving000001"
MAX_SECONDS = 35  # a lease of 30 seconds moves with the site
MOVES = "bca"[: scaled(1, 3)]


async def test_delivery_resumes_in_the_other_cell(cells: CellSet, tmp_path: Path) -> None:
    site = await asyncio.to_thread(cells.add_site, "moving.example", "a")
    with Receiver() as receiver:
        mailbox = receiver.add_mailbox()
        settings = {
            **cells.environment,
            "KALENDS_BASE_URL": "https://moving.example",
            "KALENDS_FETCH_ALLOWED_NETWORKS": f"127.0.0.1:{receiver.port}",
        }
        _add_endpoint(cells, site, mailbox.url)
        unused = "postgresql:///unused"
        with (
            Worker.start(unused, tmp_path / "a.log", settings, options=("--cell", "a")),
            Worker.start(unused, tmp_path / "b.log", settings, options=("--cell", "b")),
        ):
            async with cells.open_client() as client:
                await _create(client, site, "Before the move")
                await asyncio.to_thread(mailbox.wait_for, 1, 30)
                mailbox.respond = lambda _: Answer(delay=4)
                await _create(client, site, "During the move")
                await asyncio.to_thread(_wait_for_lease, cells)
                await asyncio.to_thread(cells.move, site.id, "a", "b")
                moved_at = time.monotonic()
                mailbox.respond = lambda _: OK
                await _create(client, site, "After the move")
                titles: set[str] = set()
                while "After the move" not in titles:
                    assert time.monotonic() - moved_at < MAX_SECONDS
                    await asyncio.sleep(0.2)
                    titles = {message.json["data"]["record"]["title"] for message in mailbox.received}
    assert titles == {"Before the move", "During the move", "After the move"}
    ((secret,),) = cells.sql("b", "SELECT secret FROM sites WHERE id = %s", [site.id])
    assert all(message.is_signed_with(derive_secret(secret, site.id, WEBHOOK, 1)) for message in mailbox.received)
    assert all("Traceback" not in (tmp_path / f"{cell}.log").read_text() for cell in "ab")


@pytest.fixture
def mirror() -> Mirror:
    return Mirror()


@pytest.fixture
def mailbox(mirror: Mirror) -> Iterator[Mailbox]:
    with Receiver() as receiver:
        opened = receiver.add_mailbox(mirror.respond)
        opened.is_recording = False
        yield opened


@pytest.fixture
def sending_cells(mailbox: Mailbox, tmp_path: Path) -> Iterator[LiveCells]:
    target = httpx.URL(mailbox.url)
    settings = {
        "KALENDS_BASE_URL": "https://moving.example",
        "KALENDS_FETCH_ALLOWED_NETWORKS": f"{target.host}:{target.port}",
    }
    with open_live_cells(tmp_path, settings) as live:
        yield live


@pytest.mark.process
async def test_mirror_is_complete_after_moves_under_load(
    sending_cells: LiveCells, mailbox: Mailbox, mirror: Mirror, report: Any
) -> None:
    live, cells = sending_cells, sending_cells.cells
    site = await asyncio.to_thread(cells.add_site, "moving.example", "a")
    ((key,),) = cells.sql("a", "SELECT secret FROM sites WHERE id = %s", [site.id])
    mirror.secret = derive_secret(key, site.id, WEBHOOK, 1)
    _add_endpoint(cells, site, mailbox.url)
    load = Load(live, site, adds_accounts=False)

    async def move_around() -> None:
        for target in MOVES:
            await asyncio.sleep(2)
            await live.move(site, target)
        await asyncio.sleep(2)

    await load.run(3, 1, asyncio.create_task(move_around()))
    ended_at, mirror.is_failing = time.monotonic(), False
    await wait_until(lambda: _is_settled(cells, MOVES[-1]), 120)
    settled_at = time.monotonic()
    with httpx.Client(base_url=live.servers[0].base_url, headers={"Host": site.host}) as client:
        full = SyncClient(client, 1, page_sizes=(500, 500))
        await asyncio.to_thread(full.catch_up)
    report(
        f"{len(MOVES)} moves, {load.writes} writes, {mirror.received} messages, {mirror.failed} failed, "
        f"{len(full.copy)} records, settled after {settled_at - ended_at:.0f} s"
    )
    assert_equal_copies(full, mirror.copy)
    assert (mirror.unsigned, mirror.regressions) == (0, [])


def _is_settled(cells: CellSet, cell: str) -> bool:
    """Return whether everything was delivered; let the times of all retries and publications come."""
    cells.sql(cell, "UPDATE webhook_pending SET next_attempt_at = now() WHERE next_attempt_at > now()")
    cells.sql(cell, "UPDATE log_consumers SET not_before = '-infinity', due_at = now() WHERE not_before > now()")
    ((is_settled,),) = cells.sql(
        cell,
        "SELECT c.cursor = s.revision AND c.lease IS NULL AND NOT EXISTS (SELECT FROM webhook_pending) "
        "AND NOT EXISTS (SELECT FROM events WHERE status = 'future') AND NOT EXISTS (SELECT FROM procrastinate_jobs "
        "WHERE status IN ('todo', 'doing')) FROM log_consumers c JOIN sites s ON s.id = c.site_id",
    )
    return bool(is_settled)


def _add_endpoint(cells: CellSet, site: CellSite, url: str) -> None:
    cells.sql(
        site.cell,
        "INSERT INTO webhooks (site_id, id, name, url) VALUES (%s, %s, 'Receiver', %s)",
        [site.id, WEBHOOK, url],
    )
    cells.sql(
        site.cell,
        "INSERT INTO log_consumers (site_id, consumer, cursor) SELECT id, %s, revision FROM sites WHERE id = %s",
        [f"webhook:{WEBHOOK}", site.id],
    )


async def _create(client: httpx.AsyncClient, site: CellSite, title: str) -> None:
    body = {"title": title, **DATES}
    headers = {"Host": site.host}
    response = await client.post(f"{API_PATH}/events", json=body, headers=headers, auth=site.login)
    assert response.status_code == 201, response.text


def _wait_for_lease(cells: CellSet) -> None:
    deadline = time.monotonic() + 10
    while not cells.sql("a", "SELECT 1 FROM log_consumers WHERE lease IS NOT NULL"):
        assert time.monotonic() < deadline
        time.sleep(0.05)

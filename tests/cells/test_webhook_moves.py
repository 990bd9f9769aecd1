"""Webhooks of a site that moves to another cell while a page is on its way."""

import asyncio
import time
from pathlib import Path

import httpx

from kalends.push.rules import derive_secret
from tests.cells.cell_set import CellSet, CellSite
from tests.lifecycle.processes import Worker
from tests.push.webhook_receiver import OK, Answer, Receiver
from tests.robustness.site_fixtures import API_PATH, DATES

WEBHOOK = "moving000001"
MAX_SECONDS = 35  # a lease of 30 seconds moves with the site


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

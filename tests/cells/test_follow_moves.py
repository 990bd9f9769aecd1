"""Digests of a site that moves to another cell while they are sent."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cells.live_cells import LiveCells, open_live_cells
from tests.console.smtp_server import SmtpServer, run_smtp_server
from tests.robustness.site_fixtures import API_PATH, wait_until
from tests.soak import scaled

PEOPLE = scaled(300, 3_000)
ADD_PEOPLE = """
    WITH p AS (INSERT INTO followers (site_id, id, email, key)
        SELECT %s, gen_random_uuid(), 'p' || n || '@example.org', uuid_send(gen_random_uuid())
        FROM generate_series(1, %s) n RETURNING site_id, id)
    INSERT INTO follows (site_id, id, follower_id, query, rhythm, hour, confirmed_at, next_at, created_at)
    SELECT site_id, gen_random_uuid(), id, '', 'daily', extract(hour FROM now() AT TIME ZONE 'UTC'), now(),
        date_trunc('hour', now()), now() FROM p
"""


@pytest.fixture
def smtp() -> Iterator[SmtpServer]:
    with run_smtp_server() as server:
        server.answer = _answer_slowly
        yield server


def _answer_slowly(step: str, address: str) -> str:
    time.sleep(0.01 if step == "RCPT" else 0)
    return ""


@pytest.fixture
def mailing_cells(smtp: SmtpServer, tmp_path: Path) -> Iterator[LiveCells]:
    with open_live_cells(
        tmp_path, {"KALENDS_BASE_URL": "https://moving.example", "KALENDS_SMTP_URL": smtp.url}
    ) as live:
        yield live


@pytest.mark.process
async def test_a_move_loses_no_digest(mailing_cells: LiveCells, smtp: SmtpServer, report: Any) -> None:
    live, cells = mailing_cells, mailing_cells.cells
    site = await asyncio.to_thread(cells.add_site, "moving.example", "a")
    async with httpx.AsyncClient(
        base_url=live.servers[0].base_url, headers={"Host": site.host}, auth=site.login
    ) as client:
        start = datetime.now(UTC) + timedelta(hours=2)
        dates = {"start_date": f"{start:%F %H:%M}", "end_date": f"{start:%F %H:%M}", "timezone": "UTC"}
        response = await client.post(f"{API_PATH}/events", json={"title": "Concert", **dates})
        assert response.status_code == 201, response.text
    cells.sql("a", "UPDATE sites SET follow_by_email = true, timezone = 'UTC' WHERE id = %s", [site.id])
    cells.sql("a", ADD_PEOPLE, [site.id, PEOPLE])
    await wait_until(lambda: len(smtp.messages) > PEOPLE // 10, 60)
    before = len(smtp.messages)
    await live.move(site, "b")
    at_switch = len(smtp.messages)
    await wait_until(lambda: not cells.sql("b", "SELECT 1 FROM follows WHERE next_at <= now() LIMIT 1"), 180)
    sent = Counter(to for (to,) in smtp.recipients)
    report(f"{PEOPLE} people, {before} emails before the move, {at_switch} at its end, {sent.total()} in all")
    assert set(sent) == {f"p{number}@example.org" for number in range(1, PEOPLE + 1)}
    assert sent.total() - PEOPLE <= 4
    assert at_switch < PEOPLE

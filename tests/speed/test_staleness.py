"""The small form of `just bench-staleness`: no outdated response while another process writes."""

import asyncio
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from bench.seeded_sites import NS, SeededSite
from bench.staleness import check_staleness
from tests.api.running_app import add_users
from tests.servers import Server

pytestmark = [
    pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed (Debian: wrk)"),
]

TOMORROW = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%d}"
DATES = {"start_date": f"{TOMORROW} 10:00:00", "end_date": f"{TOMORROW} 12:00:00"}


def test_no_stale_response(database_url: str, start_server: Callable[..., Server]) -> None:
    editor = asyncio.run(add_users(database_url))["editor"]
    servers = [start_server(database_url) for _ in range(2)]
    try:
        with servers[0].client(login=editor.login, password=editor.password) as client:
            events = [client.post(f"{NS}/events", json={"title": f"{n}", **DATES}).json()["id"] for n in range(12)]
        world = SeededSite(database_url, len(events), events[0], "", 0, 0, editor.password, editor.login)
        addresses = [server.base_url for server in servers]
        outcome = check_staleness(addresses, world, 3)
        assert [(seen.stale, seen.others) for seen in outcome.results] == [(0, 0)] * 2
        assert min(seen.checked for seen in outcome.results) > 100
        # Both were read up to the end, and what was read had changed meanwhile.
        assert min(seen.last_number for seen in outcome.results) > outcome.first_number
        # The checker sees what it is there to see.
        wrong = check_staleness(addresses, world, 1, ahead=1_000_000)
        assert all(seen.stale == seen.checked > 0 for seen in wrong.results)
    finally:
        for server in servers:
            server.stop()

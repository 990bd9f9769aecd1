"""While the database is away, what was right a moment ago is still shown to the public (R2)."""

import asyncio
import base64
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from kalends.store.migrations import migrate
from kalends.store.site_revisions import SiteRevision, SiteRevisions
from tests.lifecycle.processes import suspend_postgres
from tests.robustness.site_fixtures import DATES, Login, add_editor
from tests.security.raw_requests import API_PATH, Reply, send_request
from tests.servers import Server
from tools import postgres

PUBLIC_PATHS = (f"{API_PATH}/events", "/", "/events.ics")
STALE_SECONDS = 6


@dataclass
class OutageSetup:
    cluster: postgres.Server
    server: Server
    login: Login

    @property
    def authorization(self) -> dict[str, str]:
        return {"Authorization": f"Basic {base64.b64encode(':'.join(self.login).encode()).decode()}"}

    def write(self, title: str) -> Reply:
        body = json.dumps({"title": title, "status": "publish", **DATES}).encode()
        headers = {"Content-Type": "application/json", **self.authorization}
        return send_request(self.server, f"{API_PATH}/events", method="POST", headers=headers, body=body)

    def read_all(self) -> list[Reply]:
        return [send_request(self.server, path) for path in PUBLIC_PATHS]


def restart_cluster(cluster: postgres.Server) -> postgres.Server:
    return postgres.start(cluster.directory, port=cluster.port, settings=postgres.THROWAWAY)


@pytest.fixture(scope="module")
def site() -> Iterator[tuple[postgres.Server, Login]]:
    """Start a separate PostgreSQL, which the tests stop."""
    with postgres.throwaway() as cluster:
        migrate(cluster.url)
        yield cluster, add_editor(cluster.url)
        if postgres.find_running(cluster.directory) is None:
            restart_cluster(cluster)  # It is stopped once more at the end.


@pytest.fixture
def stage(
    request: pytest.FixtureRequest, site: tuple[postgres.Server, Login], tmp_path: Path
) -> Iterator[OutageSetup]:
    """Start a server that serves stale responses without its database."""
    first, login = site
    cluster = postgres.find_running(first.directory) or restart_cluster(first)
    environment = {"KALENDS_STALE_IF_ERROR_SECONDS": str(getattr(request, "param", STALE_SECONDS))}
    with Server.start(cluster.url, log=tmp_path / "log", environment=environment) as server:
        stage = OutageSetup(cluster, server, login)
        assert stage.write("First").status == 201
        yield stage


def test_public_responses_survive_database_outage(stage: OutageSetup) -> None:
    before = stage.read_all()
    assert [reply.status for reply in before] == [200] * 3
    confirmed = time.monotonic()
    stage.cluster.stop()
    while time.monotonic() - confirmed < STALE_SECONDS - 2:
        replies = stage.read_all()
        assert [reply.status for reply in replies] == [200] * 3
        assert [reply.body for reply in replies] == [reply.body for reply in before]
        assert all(0 <= int(reply.headers["age"]) <= STALE_SECONDS for reply in replies)
        time.sleep(0.5)
    time.sleep(max(0.0, confirmed + STALE_SECONDS + 1.5 - time.monotonic()))
    for reply in stage.read_all():
        assert (reply.status, "retry-after" in reply.headers) == (503, True)
    restart_cluster(stage.cluster)
    deadline = time.monotonic() + 20
    while any(reply.status != 200 for reply in stage.read_all()) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert all("age" not in reply.headers for reply in stage.read_all())


@pytest.mark.parametrize("stage", [30], indirect=True)
def test_hanging_database_counts_as_unavailable(stage: OutageSetup) -> None:
    assert [reply.status for reply in stage.read_all()] == [200] * 3
    with suspend_postgres(stage.cluster):
        started = time.monotonic()
        replies = stage.read_all()
        took = time.monotonic() - started
    assert [(reply.status, "age" in reply.headers) for reply in replies] == [(200, True)] * 3
    assert took < 9  # It was 11 s for each.


def test_host_without_site_has_no_stale_responses() -> None:
    async def run() -> None:
        responses = [[{"host": "a.test", "site_id": 1, "revision": 1}], []]
        database = AsyncMock()
        database.fetch_revisions.side_effect = lambda *_, **__: responses.pop(0)
        revisions = SiteRevisions(database)
        assert await revisions.current("a.test") == SiteRevision(1, 1)
        assert revisions.last_known("a.test", 60) is not None
        assert await revisions.current("a.test") is None
        assert revisions.last_known("a.test", 60) is None

    asyncio.run(run())


def test_shared_caches_may_serve_stale(stage: OutageSetup) -> None:
    for reply in (*stage.read_all(), *stage.read_all()):
        assert "stale-if-error=" in reply.headers["cache-control"]


def test_stale_responses_end_when_database_recovers(stage: OutageSetup) -> None:
    stage.read_all()
    stage.cluster.stop()
    assert [reply.status for reply in stage.read_all()] == [200] * 3
    restart_cluster(stage.cluster)
    deadline = time.monotonic() + 20
    while stage.write("Second").status != 201 and time.monotonic() < deadline:
        time.sleep(0.2)
    for path, reply in zip(PUBLIC_PATHS, stage.read_all(), strict=True):
        assert (reply.status, "age" in reply.headers) == (200, False), path
        assert b"Second" in reply.body or path == "/", path  # The front page shows this month.


def test_private_responses_are_not_served_stale(stage: OutageSetup) -> None:
    assert [reply.status for reply in stage.read_all()] == [200] * 3
    assert send_request(stage.server, PUBLIC_PATHS[0], headers=stage.authorization).status == 200
    assert send_request(stage.server, f"{PUBLIC_PATHS[0]}?password=secret").status in (200, 403)
    stage.cluster.stop()
    assert send_request(stage.server, PUBLIC_PATHS[0]).status == 200  # The control.
    for reply in (
        send_request(stage.server, PUBLIC_PATHS[0], headers=stage.authorization),
        send_request(stage.server, f"{PUBLIC_PATHS[0]}?password=secret"),
        send_request(stage.server, f"{PUBLIC_PATHS[0]}?per_page=3"),  # Never shown before.
        stage.write("Third"),
    ):
        assert (reply.status, "retry-after" in reply.headers) == (503, True)


@pytest.mark.parametrize("stage", [0], indirect=True)
def test_setting_disables_stale_responses(stage: OutageSetup) -> None:
    assert all("stale-if-error" not in reply.headers["cache-control"] for reply in stage.read_all())
    assert [reply.status for reply in stage.read_all()] == [200] * 3
    stage.cluster.stop()
    assert [reply.status for reply in stage.read_all()] == [503] * 3

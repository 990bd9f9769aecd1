"""A shared cache does not keep what it fetched from a lagging replica after a purge."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from tests.lifecycle.processes import Worker
from tests.replicas.standby import TIMEOUT, Pair, run_on, start_pair, wait_for
from tests.robustness.site_fixtures import API_PATH, DATES
from tests.servers import Server, find_free_port
from tests.soak import SOAK
from tools.varnish import PROGRAM, Varnish

APPLY_DELAY = 3  # seconds for which the standby holds back each change
# The replica must not count as lagging, however busy the machine is.
MAX_LAG = 60


@dataclass
class CachedSite:
    pair: Pair
    public: httpx.Client
    editor: httpx.Client
    path: str  # of an event

    def read(self, **headers: str) -> tuple[str, str]:
        """Return how Varnish responded, and the title in the response."""
        response = self.public.get(
            self.path, headers={name.replace("_", "-"): text for name, text in headers.items()}
        )
        assert response.status_code == 200, response.text
        return response.headers["x-cache"], response.json()["title"]

    def warm_cache(self) -> None:
        wait_for(lambda: self.read()[0] == "hit")

    def write(self, title: str) -> int:
        """Change the title and return the site revision of the write."""
        response = self.editor.patch(self.path, json={"title": title})
        assert response.status_code == 200, response.text
        return int(response.headers["x-kalends-revision"])

    def count_jobs(self) -> int:
        query = "SELECT count(*) FROM procrastinate_jobs WHERE task_name = 'purge' AND status IN ('todo', 'doing')"
        count: int = run_on(self.pair.primary, query)
        return count


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CachedSite]:
    if PROGRAM is None:
        pytest.skip("varnishd is not installed (Debian: varnish, varnish-modules)")
    directory, port = tmp_path_factory.mktemp("replica"), find_free_port()
    with start_pair() as pair:
        settings = {
            "KALENDS_REPLICA_URL": pair.standby.url,
            "KALENDS_REPLICA_MAX_LAG": str(MAX_LAG),
            "KALENDS_SHARED_CACHE_SECONDS": "3600",
            "KALENDS_PURGE_URLS": f"http://127.0.0.1:{port}/",
        }
        log = directory / "server.log"
        with (
            Server.start(pair.primary.url, log=log, environment=settings, timeout=120) as server,
            Varnish.start(directory, server.base_url, port=port) as varnish,
            httpx.Client(base_url=varnish.address, timeout=30, trust_env=False) as public,
            httpx.Client(base_url=server.base_url, auth=pair.login, timeout=30, trust_env=False) as editor,
        ):
            created = editor.post(f"{API_PATH}/events", json={"title": "Old", **DATES}).json()
            # The purges of this write would hide whether those of the next one suffice.
            run_on(pair.primary, "DELETE FROM procrastinate_jobs")
            with Worker.start(pair.primary.url, directory / "worker.log", settings):
                yield CachedSite(pair, public, editor, f"{API_PATH}/events/{created['id']}")


def test_purge_is_repeated_until_replica_shows_write(stage: CachedSite) -> None:
    stage.pair.catch_up()
    stage.warm_cache()
    with stage.pair.paused_replay():
        revision = stage.write("New")
        # A purge makes the cache fetch the response again, and the replica still has the old one.
        wait_for(lambda: stage.read() == ("miss", "Old"))
        assert stage.read(x_kalends_revision=str(revision)) == ("miss", "New")
    wait_for(lambda: stage.read() == ("hit", "New"))


@pytest.mark.skipif(not SOAK, reason="runs with `just soak` only")
def test_no_old_response_survives_delayed_replay(stage: CachedSite) -> None:
    stage.pair.delay_replay(APPLY_DELAY)
    for number in range(3):
        stage.warm_cache()
        title = f"Delayed {number}"
        stage.write(title)
        seen: set[str] = set()
        deadline = time.monotonic() + 2 * MAX_LAG + TIMEOUT
        while stage.count_jobs():
            assert time.monotonic() < deadline
            seen.add(stage.read()[1])
            time.sleep(0.02)
        assert len(seen) == 2, "first the old title, then the new one"
        # The cache may have been purged a last time since the last read.
        assert [stage.read()[1], stage.read()] == [title, ("hit", title)]

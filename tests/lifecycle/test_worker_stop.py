"""SIGTERM ends the worker within ten seconds, whatever it is doing and whatever has become of PostgreSQL."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from bench.cpu_time import list_process_tree
from kalends.store.migrations import migrate
from tests.api.running_app import RunningApp
from tests.conftest import replace_database
from tests.lifecycle.processes import Worker, kill_postgres, suspend_postgres, wait_until
from tests.lifecycle.test_job_queues import add_pictures, site
from tests.media.media_client import media_root
from tools import postgres

__all__ = ["site"]

MAX_SECONDS = 10.0
WORKER_TIMEOUT = 60


class OwnCluster:
    """A PostgreSQL with a site, which tests suspend or kill."""

    def __init__(self, server: postgres.Server) -> None:
        self.server = server
        self.url = replace_database(server.url, "kalends")
        migrate(self.url)

    def has_worker(self) -> bool:
        with psycopg.connect(self.url) as connection:
            return connection.execute("SELECT FROM procrastinate_workers").fetchone() is not None


@pytest.fixture
def cluster() -> Iterator[OwnCluster]:
    with postgres.throwaway() as server:
        yield OwnCluster(server)


def stop_timed(worker: Worker) -> float:
    started = time.monotonic()
    assert worker.stop() == 0
    return time.monotonic() - started


@pytest.mark.parametrize("seconds", [0, 4])
def test_worker_ends_while_postgres_is_suspended(cluster: OwnCluster, tmp_path: Path, seconds: int) -> None:
    with Worker.start(cluster.url, tmp_path / "worker.log") as worker:
        wait_until(cluster.has_worker, WORKER_TIMEOUT)
        with suspend_postgres(cluster.server):
            time.sleep(seconds)
            assert stop_timed(worker) < MAX_SECONDS


@pytest.mark.parametrize("seconds", [0, 4])
def test_worker_ends_after_postgres_was_killed(cluster: OwnCluster, tmp_path: Path, seconds: int) -> None:
    with Worker.start(cluster.url, tmp_path / "worker.log") as worker:
        wait_until(cluster.has_worker, WORKER_TIMEOUT)
        kill_postgres(cluster.server)
        try:
            time.sleep(seconds)
            assert stop_timed(worker) < MAX_SECONDS
        finally:
            postgres.start(cluster.server.directory, port=cluster.server.port, settings=postgres.THROWAWAY)


def test_worker_interrupts_long_job_and_leaves_no_process(site: RunningApp, tmp_path: Path) -> None:
    add_pictures(site, 1)
    settings = {"KALENDS_MEDIA_DIR": str(media_root(site))}
    with Worker.start(site.database_url, tmp_path / "worker.log", settings) as worker:
        wait_until(lambda: bool(find_decoders(worker)), WORKER_TIMEOUT, 0.01)
        (decoder,) = find_decoders(worker)
        os.kill(decoder, signal.SIGSTOP)
        try:
            assert stop_timed(worker) < MAX_SECONDS
            wait_until(lambda: not is_alive(decoder), 2)
        finally:
            with suppress(ProcessLookupError):
                os.kill(decoder, signal.SIGKILL)
    assert site.sql("SELECT status::text, attempts FROM procrastinate_jobs WHERE task_name = 'make_sizes'") == [
        ("todo", 1)
    ]


def find_decoders(worker: Worker) -> list[int]:
    pids = list_process_tree(worker.process.pid)
    return [pid for pid in pids if b"image_worker_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def is_alive(pid: int) -> bool:
    """Return whether a process exists that is not only waiting to be collected by its parent."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_worker_logs_start_and_stop(cluster: OwnCluster, tmp_path: Path) -> None:
    with Worker.start(cluster.url, tmp_path / "worker.log") as worker:
        wait_until(cluster.has_worker, WORKER_TIMEOUT)
        assert worker.stop() == 0
    lines = [json.loads(line) for line in worker.log.read_text().splitlines()]
    assert [(line["level"], line["message"].split()[:2]) for line in lines] == [
        ("info", ["worker", "started:"]),
        ("info", ["worker", "stopped"]),
    ]

"""The small form of `just bench-busy`: reads of a site that is being written, and the limits of the benchmark."""

import asyncio
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from bench.busy import Load, Samples, find_failures, list_paths, measure
from bench.load import Processes, Sample
from bench.seeded_sites import NS, SeededSite
from tests.api.running_app import add_users
from tests.servers import Server

QUIET, WRITTEN = Sample(1000, 4, 10, 0.2, 0.1), Load("text", 5)


@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed (Debian: wrk)")
def test_reads_during_writes(database_url: str, start_server: Callable[..., Server]) -> None:
    editor = asyncio.run(add_users(database_url))["editor"]
    server = start_server(database_url)
    start = datetime.now(UTC) + timedelta(days=1)
    dates = {"start_date": f"{start:%Y-%m-%d} 10:00:00", "end_date": f"{start:%Y-%m-%d} 12:00:00"}
    with server.client(login=editor.login, password=editor.password) as client:
        for number in range(12):
            body = {"title": f"{number}", **dates, "venue": {"venue": f"Venue {number}"}}
            assert client.post(f"{NS}/events", json=body).status_code == 201
    site = SeededSite(database_url, 12, 0, "", 0, 0, editor.password, editor.login)
    assert len(list_paths(site)) == 12 + 1 + 12 + 12 + 58
    processes = Processes(os.getpid(), server.process.pid)  # The CPU time of the database does not matter here.
    samples = measure(
        server.base_url, site, processes, loads=[Load("text", 5), Load("mixed", 5)], rounds=1, seconds=2
    )
    assert all(run.rate > 1 for runs in samples.values() for run in runs)
    server.stop()


@pytest.mark.parametrize(
    ("written", "failures"),
    [
        (Sample(700, 4, 29, 0.2, 0.1), 0),
        (Sample(690, 4, 29, 0.2, 0.1), 1),  # too few requests
        (Sample(700, 4, 31, 0.2, 0.1), 1),  # too slow
    ],
)
def test_limits_of_benchmark(written: Sample, failures: int) -> None:
    samples: Samples = {None: [QUIET], WRITTEN: [written]}
    assert len(find_failures(samples)) == failures

"""Hostile files end in an answer, within limits, and nobody else notices."""

import multiprocessing
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from tests.media.conftest import UserDatabase
from tests.media.hostile_files import SLOW_FILES, iter_hostile_files
from tests.media.image_fixtures import EXTENSION_PATH, report
from tests.servers import Server
from tests.soak import SOAK, scaled

EVENTS = "/api/calendar/events/v1/events"


class LatencyProbe:
    """Asks for events all the time, past the cache, and notes how long each answer takes.

    It runs in a separate process, so that the work of this process does not distort the measurement.
    """

    def __init__(self, server: Server) -> None:
        self._address = f"{server.base_url}{EVENTS}"
        self.durations: list[float] = []
        self.error_statuses: list[int] = []

    @contextmanager
    def measure(self) -> Iterator[None]:
        context = multiprocessing.get_context("spawn")
        parent_end, child_end = context.Pipe()
        process = context.Process(target=measure_latency, args=(self._address, child_end))
        process.start()
        assert parent_end.recv() == "ready"
        try:
            yield
        finally:
            parent_end.send("stop")
            self.durations, self.error_statuses = parent_end.recv()
            process.join()

    @property
    def p99(self) -> float:
        return statistics.quantiles(self.durations, n=100)[98]


def measure_latency(address: str, pipe: Any) -> None:
    durations: list[float] = []
    error_statuses: list[int] = []
    number = 0
    with httpx.Client(timeout=30) as client:
        while not pipe.poll():
            number += 1
            started = time.perf_counter()
            response = client.get(address, params={"search": f"x{number}"})
            if number > 50:  # The first ones open connections and the like.
                durations.append(time.perf_counter() - started)
            elif number == 50:
                pipe.send("ready")
            if response.status_code != 200:
                error_statuses.append(response.status_code)
            time.sleep(0.005)
    pipe.recv()
    pipe.send((durations, error_statuses))


def peak_memory(server: Server) -> int:
    """Megabytes that the processes of the server took at most, together with those that they started."""
    pids = [server.process.pid, *_children(server.process.pid)]
    maximum = 0
    for pid in pids:
        status = Path(f"/proc/{pid}/status").read_text()
        maximum = max(maximum, int(status.partition("VmHWM:")[2].split()[0]) // 1024)
    return maximum


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_hostile_files_are_handled_within_limits(user_database: UserDatabase, start_server, tmp_path: Path) -> None:
    directory = tmp_path / "media"
    servers: list[Server] = [
        start_server(user_database.url, environment={"KALENDS_MEDIA_DIR": str(directory)}) for _ in range(2)
    ]
    server, other = servers
    # The same work for a second server tells what the machine makes of it, from what the server does.
    quiet, other_busy, busy = LatencyProbe(server), LatencyProbe(server), LatencyProbe(server)
    before = peak_memory(server)
    # Made before anything is measured: that is this test's own work, not the server's.
    contents = [
        (name, make()) for name, make in iter_hostile_files() if SOAK or not any(word in name for word in SLOW_FILES)
    ]
    contents = contents * 3 if SOAK else contents[::2]
    outcomes: Counter[int] = Counter()
    slowest = (0.0, "")
    with quiet.measure():
        time.sleep(scaled(2, 20))
    # The other server is there for comparison only, so that a part of the files is enough for it.
    compared = contents[:: scaled(3, 1)]
    for target, reader, sent in ((other, other_busy, compared), (server, busy, contents)):
        user = user_database.users["author"]
        with (
            target.client(login=user.login, password=user.password) as client,
            reader.measure(),
            ThreadPoolExecutor(scaled(2, 4)) as senders,
        ):
            for name, took, response in senders.map(partial(upload, client), sent):
                slowest = max(slowest, (took, name))
                outcomes[response.status_code] += 1
                assert response.status_code in (201, 400), (name, response.text)
                if response.status_code == 201:
                    check_stored_image(client, response.json(), name)
    assert [reader.error_statuses for reader in (quiet, other_busy, busy)] == [[], [], []]
    after = peak_memory(server)
    figures = [
        f"{reader.p99 * 1000:.1f} ms ({len(reader.durations)} requests)" for reader in (quiet, other_busy, busy)
    ]
    report(
        f"{outcomes.total()} files: {dict(outcomes)}; slowest {slowest[0]:.1f} s ({slowest[1]}). "
        f"p99 of other requests: {figures[0]} idle, {figures[1]} while another server receives them, "
        f"{figures[2]} while this server does. "
        f"Server: {before} MB before, {after} MB at most."
    )
    assert outcomes.total() >= 40
    assert outcomes[201] >= 5
    assert after < before + 60
    # In the gate other tests run beside this one, now more and now less.
    assert busy.p99 < 1.5 * max(quiet.p99, other_busy.p99) + (0.005 if SOAK else 0.5)
    assert not list((directory / "incoming").iterdir())
    assert not any('"event":"fault"' in each.read_log() for each in servers)


def upload(client: httpx.Client, row: tuple[str, bytes]) -> tuple[str, float, httpx.Response]:
    name, content = row
    assert len(content) < 20 * 1024 * 1024, name
    started = time.perf_counter()
    response = client.post(f"{EXTENSION_PATH}/media", files={"file": (name, content)}, timeout=100)
    return name, time.perf_counter() - started, response


def check_stored_image(client: httpx.Client, image: dict[str, object], name: str) -> None:
    """What was taken is a plain image, no larger than what is kept."""
    assert isinstance(image["width"], int)
    assert isinstance(image["height"], int)
    assert 0 < image["width"] <= 2560, name
    assert 0 < image["height"] <= 2560, name
    response = client.get(str(image["url"]))
    assert response.headers["content-type"] == image["mime_type"]
    for word in (b"<script", b"<?php", b"PK\x03\x04", b"alert("):
        assert word not in response.content, name

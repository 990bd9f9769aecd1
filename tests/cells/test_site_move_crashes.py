"""Crashes at each point of a move: of the mover, of the source, of the target, of the directory.

Afterwards the move is resumed or aborted without any manual work. At no time do two cells serve the site, at the end
exactly one does, and no acknowledged write is lost.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest

from kalends.fleet.operations import site_move
from kalends.fleet.operations.site_move import MoveSetup
from kalends.fleet.storage.move_steps import Move, MoveError, list_moves
from kalends.store.migrations import migrate
from tests.cells.move_fixtures import CELLS, FAST, LOGICAL, Stage, make_cell, make_directory
from tests.cells.mover_process import SESSION_TIMEOUT, Order
from tests.robustness.process_control import kill_cluster
from tests.robustness.two_sites import fill_two_sites
from tests.soak import SOAK, some
from tools import postgres

SITE, HOST = 1, "a.example"
# The points of a move, in their order. Those up to SWITCHED can be aborted.
POINTS = [
    "before publish", "before begin", "after begin", "after reserve", "slot created", "subscribed", "copying",
    "after copy", "locked", "confirmed", "departing", "departed", "after activate", "after route", "removing",
    "after clean",
]  # fmt: skip
SWITCHED = POINTS.index("departed")
ABORT_POINTS = ["before retract", "after retract", "removing", "after empty"]
DATABASES = ("source", "target", "directory")
CRASHES = [(database, point) for point in POINTS[:-1] for database in DATABASES]
# In CI, those around the decision; in a soak, all of them.
MOVER_CASES = POINTS if SOAK else ["departing", "departed"]
DATABASE_CASES = CRASHES if SOAK else [("source", "departing"), ("target", "departed")]
SMALL: dict[str, str] = {**LOGICAL, "shared_buffers": "16MB", "max_connections": "60", "autovacuum": "off"}


@dataclass
class Clusters:
    """Three clusters that can crash. The site is in one of the two cells, and moves to the other one in each test."""

    servers: dict[str, postgres.Server]
    stage: Stage
    hashes: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> tuple[str, str]:
        """Return the cell that has the site and the other one."""
        ((cell,),) = self.stage.fetch("directory", "SELECT cell FROM kalends_directory.sites WHERE id = 1")
        return cell, CELLS[1 - CELLS.index(cell)]

    def make_order(self, **options: Any) -> Order:
        return Order(self.stage.directory_url, self.stage.cells, SITE, **options)

    def crash(self, database: str, source: str, target: str) -> None:
        """Kill all processes of a cluster and start it again."""
        name = {"source": source, "target": target}.get(database, database)
        kill_cluster(self.servers[name])
        self.restart(name)

    def restart(self, name: str) -> None:
        """Start a killed cluster; its shared memory is free only when the last of its processes is gone."""
        server = self.servers[name]
        deadline = time.monotonic() + 60
        while True:
            try:
                self.servers[name] = postgres.start(server.directory, port=server.port, settings=SMALL)
                return
            except postgres.PostgresError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)


@pytest.fixture(scope="module")
def clusters() -> Iterator[Clusters]:
    with tempfile.TemporaryDirectory(prefix="kalends-cells-", dir="/dev/shm") as parent:
        Path(parent).chmod(0o755)
        servers: dict[str, postgres.Server] = {}
        opened = Clusters(servers, Stage("", {}))
        try:
            for name in (*CELLS, "directory"):
                servers[name] = postgres.start(Path(parent) / name, settings=SMALL)
            opened.stage = Stage(servers["directory"].url, {name: servers[name].url for name in CELLS})
            make_directory(opened.stage.directory_url)
            for name in CELLS:
                migrate(servers[name].url)
            asyncio.run(fill_two_sites(servers["a"].url))
            make_cell(servers["a"].url, "a", is_empty=False)
            make_cell(servers["b"].url, "b", is_empty=True)
            opened.stage.add_to_directory(SITE, "a", [HOST])
            opened.hashes = opened.stage.hash_site("a", SITE)
            yield opened
        finally:
            for server in servers.values():
                try:
                    server.stop()
                except postgres.PostgresError:
                    kill_cluster(server)  # A failed test may leave a copy without an end.


@dataclass
class Writer(threading.Thread):
    """Writes to the site through whichever cell serves it."""

    stage: Stage
    acknowledged: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.join()

    def run(self) -> None:
        while not self.stopping.is_set():
            for cell in CELLS:
                # A cell may be away, or restart during the commit, which leaves the outcome unknown.
                with suppress(psycopg.OperationalError, psycopg.InterfaceError):
                    if self.write(cell, f"write {time.time_ns()}"):
                        break
            time.sleep(0.05)

    def write(self, cell: str, subject: str) -> bool:
        with psycopg.connect(self.stage.cells[cell], connect_timeout=5) as connection:
            if not connection.execute("SELECT id FROM enter_site(%s)", [HOST]).fetchall():
                return False
            connection.execute("INSERT INTO login_failures VALUES (%s, %s, 1, now())", [SITE, subject])
        self.acknowledged.append(subject)
        return True

    def __hash__(self) -> int:
        return id(self)


@contextmanager
def watch_owners(stage: Stage, source: str, target: str) -> Iterator[list[list[str]]]:
    """Look for two owners all the time. The target is asked first, because the source must not serve after it."""
    stopping = threading.Event()
    found: list[list[str]] = []
    ordered = Stage(stage.directory_url, {target: stage.cells[target], source: stage.cells[source]})

    def look() -> None:
        while not stopping.is_set():
            with suppress(psycopg.OperationalError):
                owners = ordered.find_owners(SITE)
                if len(owners) > 1:
                    found.append(owners)
            time.sleep(0.05)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        stopping.set()
        thread.join()


@contextmanager
def guard(clusters: Clusters) -> Iterator[tuple[str, str]]:
    """Check the site after a test: one owner, all rows, all acknowledged writes, no leftovers."""
    stage = clusters.stage
    complete(clusters)  # what an earlier test has left
    source, target = clusters.place
    with Writer(stage) as writer, watch_owners(stage, source, target) as second_owners:
        yield source, target
        time.sleep(0.2)
    assert second_owners == []
    assert asyncio.run(list_moves(stage.directory_url, unfinished=True)) == []
    owner, other = clusters.place
    assert stage.find_owners(SITE) == [owner]
    assert stage.find_leftovers(other, SITE) == {}
    assert stage.list_objects() == []
    written = {
        row[0] for row in stage.fetch(owner, "SELECT subject FROM login_failures WHERE subject LIKE 'write %'")
    }
    assert writer.acknowledged
    assert set(writer.acknowledged) <= written
    stage.fetch(owner, "DELETE FROM login_failures WHERE subject LIKE 'write %'")
    assert stage.hash_site(owner, SITE) == clusters.hashes


def start_mover(order: Order, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.cells.mover_process", order.to_json()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def finish(process: subprocess.Popen[str], seconds: float = 90) -> tuple[int, str]:
    """Wait for the end of a process; return its status and its errors."""
    _, stderr = process.communicate(timeout=seconds)
    return process.returncode, stderr


def wait_for_event(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline(), finish(process)


def complete(clusters: Clusters) -> None:
    """Resume the unfinished move until there is none."""
    end_move(clusters, site_move.resume_move)


def abort(clusters: Clusters) -> None:
    """Abort the unfinished move."""
    end_move(clusters, site_move.abort_move)


def end_move(clusters: Clusters, act: Callable[[MoveSetup, Move], Awaitable[Move]]) -> None:
    """Complete or abort the unfinished move. A mover that has just died may still hold its lock."""
    stage, deadline, last = clusters.stage, time.monotonic() + 60, ""

    async def try_once(move: Move) -> str:
        try:
            await act(stage.make_setup(), move)
        except MoveError as error:
            return error.text
        return ""

    while moves := asyncio.run(list_moves(stage.directory_url, unfinished=True, site_id=SITE)):
        assert time.monotonic() < deadline, last
        if last := asyncio.run(try_once(moves[0])):
            time.sleep(0.2)


def sweep(clusters: Clusters) -> None:
    """Move the site once more, which removes what a mover has left that died before it had stored its move."""
    _, target = clusters.place
    asyncio.run(site_move.move_site(clusters.stage.make_setup(), SITE, target))


@pytest.mark.parametrize("point", MOVER_CASES)
def test_killed_mover_is_resumed(clusters: Clusters, point: str) -> None:
    with guard(clusters) as (_, target):
        status, errors = finish(start_mover(clusters.make_order(target=target, event=point, action="kill")))
        assert status == -signal.SIGKILL, errors
        complete(clusters)
        if point in POINTS[:2]:
            sweep(clusters)
        assert clusters.place[0] == target


@pytest.mark.parametrize("point", [point for point in MOVER_CASES if point in POINTS[2:SWITCHED]])
def test_killed_mover_is_aborted(clusters: Clusters, point: str) -> None:
    with guard(clusters) as (source, target):
        status, errors = finish(start_mover(clusters.make_order(target=target, event=point, action="kill")))
        assert status == -signal.SIGKILL, errors
        abort(clusters)
        assert clusters.place[0] == source


@pytest.mark.parametrize("point", some(ABORT_POINTS, 1))
@pytest.mark.parametrize("is_resumed", some([True, False], 1))
def test_killed_abort_is_completed(clusters: Clusters, point: str, is_resumed: bool) -> None:
    with guard(clusters) as (source, target):
        finish(start_mover(clusters.make_order(target=target, event="after copy", action="kill")))
        abort_order = clusters.make_order(command="abort", event=point, action="kill")
        while (result := finish(start_mover(abort_order)))[0] != -signal.SIGKILL:
            assert "Another process" in result[1], result[1]  # The first mover has died just now.
        (complete if is_resumed else abort)(clusters)
        assert clusters.place[0] == source


@pytest.mark.parametrize(("database", "point"), DATABASE_CASES)
def test_crash_of_a_database(clusters: Clusters, database: str, point: str) -> None:
    """The mover goes on by itself or stops with a message; then the move is completed."""
    with guard(clusters) as (source, target):
        mover = start_mover(clusters.make_order(target=target, event=point, action="wait"))
        wait_for_event(mover)
        clusters.crash(database, source, target)
        assert mover.stdin is not None
        status, errors = finish(mover)
        assert status == 0 or "Error" in errors
        complete(clusters)
        if clusters.place[0] == source:
            sweep(clusters)
        assert clusters.place[0] == target


@pytest.mark.parametrize("database", some(["source", "target"], 1))
@pytest.mark.parametrize("point", some(["subscribed", "after copy", "locked"], 1))
def test_abort_after_a_crash_of_a_database(clusters: Clusters, database: str, point: str) -> None:
    with guard(clusters) as (source, target):
        mover = start_mover(clusters.make_order(target=target, event=point, action="wait"))
        wait_for_event(mover)
        mover.kill()
        finish(mover)
        clusters.crash(database, source, target)
        abort(clusters)
        assert clusters.place[0] == source


STOPPED_CASES = [
    (point, rescue)
    for rescue in ("abort", "resume")
    for point in (
        "after begin",
        "slot created",
        "after copy",
        "locked",
        "confirmed",
        "departing",
        "departed",
        "removing",
    )
    if rescue == "resume" or point not in ("departed", "removing")
]


@pytest.mark.parametrize(("point", "rescue"), STOPPED_CASES if SOAK else [("departed", "resume")])
def test_suspended_mover_does_no_harm(clusters: Clusters, point: str, rescue: str) -> None:
    """Another process ends the move, and then the first one wakes up."""
    with guard(clusters) as (source, target):
        mover = start_mover(clusters.make_order(target=target, event=point, action="stop"))
        wait_for_event(mover)
        time.sleep(SESSION_TIMEOUT)  # The directory ends the session of the mover.
        (abort if rescue == "abort" else complete)(clusters)
        expected = source if rescue == "abort" else target
        assert clusters.place[0] == expected
        os.kill(mover.pid, signal.SIGCONT)
        finish(mover)
        complete(clusters)
        assert clusters.place[0] == expected
        assert clusters.stage.find_owners(SITE) == [expected]
        sweep(clusters)


def test_suspended_mover_does_not_hold_up_writers(clusters: Clusters, report: Any) -> None:
    """The source ends the transaction of a mover that does not respond during the switch."""
    with guard(clusters) as (source, target):
        mover = start_mover(clusters.make_order(target=target, event="locked", action="stop"))
        wait_for_event(mover)
        started = time.monotonic()
        with psycopg.connect(clusters.stage.cells[source]) as connection:
            connection.execute("SELECT FROM enter_site_number(1)")
        waited = time.monotonic() - started
        assert waited < FAST.idle_timeout + 0.5
        os.kill(mover.pid, signal.SIGCONT)
        finish(mover)
        complete(clusters)
        assert clusters.place[0] == target
    report(f"a writer waited {waited * 1000:.0f} ms for a suspended mover")


def test_directory_that_is_away_does_not_delay_the_switch(clusters: Clusters) -> None:
    """The target serves the site although the directory cannot be told; it is told later."""
    with guard(clusters) as (_, target):
        mover = start_mover(clusters.make_order(target=target, event="departing", action="wait"))
        wait_for_event(mover)
        kill_cluster(clusters.servers["directory"])
        assert mover.stdin is not None
        mover.stdin.write("\n")
        mover.stdin.flush()
        deadline = time.monotonic() + 20
        while clusters.stage.find_owners(SITE) != [target]:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        clusters.restart("directory")
        finish(mover)
        complete(clusters)
        assert clusters.place[0] == target

"""The source of a move fails over to its standby, or its standby lags: never two owners, and no row is lost."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from kalends.fleet.operations import site_move
from kalends.fleet.storage.move_steps import list_moves
from kalends.store.migrations import migrate
from tests.cells.move_fixtures import CELLS, LOGICAL, Stage, make_cell, make_directory
from tests.conftest import replace_database, temporary_database
from tests.lifecycle.processes import run_command
from tests.robustness.process_control import kill_cluster, list_children, restart_cluster
from tests.robustness.test_failover import start_standby
from tests.robustness.test_sync_replication import set_required_standby
from tests.soak import some
from tools import postgres

pytestmark = pytest.mark.process

HOST = "a.example"
SETTINGS: Mapping[str, str] = {"fsync": "off", "full_page_writes": "off", **LOGICAL}
LAG_SECONDS = 1.0


@dataclass
class Source:
    """The cluster of cell `a` with a synchronous standby, which takes over its address."""

    primary: postgres.Server
    standby: postgres.Server
    has_failed_over: bool = False

    def fail_over(self) -> None:
        """Kill the primary, and start the standby as the primary."""
        kill_cluster(self.primary)
        with psycopg.connect(self.standby.url, autocommit=True) as connection:
            assert connection.execute("SELECT pg_promote(true, 30)").fetchone() == (True,)
        self.standby.stop()
        postgres.start(self.standby.directory, port=self.primary.port, settings=SETTINGS)
        self.has_failed_over = True

    @property
    def receiver(self) -> int:
        """The process of the standby that stores what the primary sends."""
        (pid,) = [
            pid
            for pid in list_children(self.standby.pid)
            if "walreceiver" in Path(f"/proc/{pid}/cmdline").read_text()
        ]
        return pid


@contextmanager
def open_source() -> Iterator[Source]:
    """Start a cluster with a site of 40 events, and a synchronous standby."""
    with postgres.throwaway(SETTINGS) as primary:
        migrate(primary.url)
        assert run_command(primary.url, "seed", "--events", "40").exit_code == 0
        with psycopg.connect(primary.url) as connection:
            connection.execute("INSERT INTO site_hosts VALUES (%s, 1)", [HOST])
        make_cell(primary.url, "a", is_empty=False)
        with start_standby(primary, SETTINGS) as standby:
            set_required_standby(primary, "standby")
            source = Source(primary, standby)
            yield source
        if source.has_failed_over:
            restart_cluster(primary, settings=SETTINGS)  # It is stopped once more at the end.


@pytest.fixture
def source() -> Iterator[Source]:
    with open_source() as opened:
        yield opened


@pytest.fixture
def stage(source: Source, cluster: tuple[postgres.Server, str]) -> Iterator[Stage]:
    server, template = cluster
    with temporary_database(server.url) as directory, temporary_database(server.url, template=template) as target:
        urls = dict(zip(CELLS, (source.primary.url, replace_database(server.url, target)), strict=True))
        opened = Stage(replace_database(server.url, directory), urls)
        make_directory(opened.directory_url)
        make_cell(urls["b"], "b", is_empty=True)
        opened.add_to_directory(1, "a", [HOST])
        yield opened


@pytest.mark.parametrize(
    ("moment", "outcomes"),
    some(
        [
            # PostgreSQL 15 has no logical slots on standbys, so the copy is lost and made again.
            ("before switch", ["moved", "aborted"]),
            # The standby has stored the switch.
            ("departed", ["moved"]),
            ("subscribed", ["moved", "aborted"]),
            ("after activate", ["moved"]),
        ],
        2,
    ),
)
async def test_move_survives_failover_of_source(
    source: Source, stage: Stage, moment: str, outcomes: list[str]
) -> None:
    before = stage.hash_site("a", 1)
    owners: list[list[str]] = []

    def fail_over(event: str) -> None:
        if event == moment and not source.has_failed_over:
            source.fail_over()
            owners.append(stage.find_owners(1))

    move = await site_move.move_site(stage.make_setup(watch=fail_over), HOST, "b")

    assert source.has_failed_over
    assert len(owners[0]) <= 1, "two owners"
    assert move.outcome == "moved"
    assert [entry.outcome for entry in await list_moves(stage.directory_url)] == outcomes
    assert stage.find_owners(1) == ["b"]
    assert stage.hash_site("b", 1) == before
    assert stage.find_leftovers("a", 1) == {}
    assert stage.list_objects() == []


async def test_target_waits_until_the_standby_of_the_source_has_stored_the_switch(
    source: Source, stage: Stage
) -> None:
    """Promoted without the switch, the standby would be a second owner. Here it is asynchronous, and suspended."""
    set_required_standby(source.primary, "")
    receiver = source.receiver
    times: dict[str, float] = {}

    def suspend(event: str) -> None:
        times.setdefault(event, time.monotonic())
        if event == "before switch":
            os.kill(receiver, signal.SIGSTOP)
        if event == "before activate":
            asyncio.get_running_loop().call_later(LAG_SECONDS, os.kill, receiver, signal.SIGCONT)

    try:
        move = await site_move.move_site(stage.make_setup(watch=suspend), HOST, "b")
    finally:
        os.kill(receiver, signal.SIGCONT)

    assert move.outcome == "moved"
    assert times["after activate"] - times["before activate"] >= LAG_SECONDS
    assert stage.find_owners(1) == ["b"]

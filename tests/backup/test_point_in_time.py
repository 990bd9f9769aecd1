"""pgBackRest restores any moment since a backup: all records have the hash that was noted then.

`kalends status` shows the backups.
"""

import asyncio
import json
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psycopg
import pytest

from kalends.store.migrations import migrate
from tests.api.running_app import RunningApp, add_users, expect_json
from tests.backup.records import hash_records
from tests.backup.repository import Repository, temporary_repository
from tests.lifecycle.processes import run_command
from tests.soak import SOAK, scaled

MOMENTS = scaled(6, 30)
RESTORES = scaled(1, 10)
DATES = {"start_date": "2030-05-01 10:00:00", "end_date": "2030-05-01 12:00:00"}


@dataclass(frozen=True)
class Archive:
    """A repository, and the hashes of all records at several moments."""

    repository: Repository
    hashes: dict[str, dict[str, str]]
    first_status: str  # of the repository before the first backup


@pytest.fixture(scope="module")
def archive() -> Iterator[Archive]:
    with temporary_repository() as repository:
        with repository.run_cluster() as server:
            migrate(server.url)
            users = asyncio.run(add_users(server.url))
            first_status = read_backup_status(server.url, repository)
            repository.run("backup", "--type=full")
            time.sleep(2)  # The end of a backup is known to the second, and only later moments can be restored.
            with RunningApp(server.url, users) as app:
                hashes = dict(note_moments(app, repository))
            with psycopg.connect(server.url, autocommit=True) as connection:
                # Recovery ends before the first transaction after its target, so the last moment needs one as well.
                connection.execute("SELECT pg_current_xact_id()")
                connection.execute("SELECT pg_switch_wal()")
        yield Archive(repository, hashes, first_status)


def read_backup_status(database_url: str, repository: Repository) -> str:
    """Return the last line of `kalends status`, which is about backups."""
    shown = run_command(database_url, "status", settings={"PGBACKREST_CONFIG": str(repository.configuration)})
    assert shown.exit_code == 0, shown.output
    return shown.stdout.splitlines()[-1]


def note_moments(app: RunningApp, repository: Repository) -> Iterator[tuple[str, dict[str, str]]]:
    """Write, and yield several moments with the hash of the records in each of them."""
    for number in range(MOMENTS):
        write(app, number)
        hashes = hash_records(app.database_url)
        with psycopg.connect(app.database_url) as connection:
            row = connection.execute("SELECT clock_timestamp()::text").fetchone()
        assert row is not None
        yield row[0], hashes
        time.sleep(0.01)  # The next write is later than the moment.
        if number == MOMENTS // 2:
            repository.run("backup", "--type=incr")


def write(app: RunningApp, number: int) -> None:
    """Create, change and delete records."""
    editor = app.caller("editor")
    venue = expect_json(editor.post("/venues", {"venue": f"Hall {number}"}), 201)
    event = expect_json(editor.post("/events", {"title": f"Concert {number}", "venue": [venue["id"]], **DATES}), 201)
    editor.patch(f"/events/{event['id']}", {"title": f"Recital {number}"})
    if number % 3 == 2:
        editor.delete(f"/events/{event['id']}")


def test_moments_differ(archive: Archive) -> None:
    distinct = {tuple(hashes.values()) for hashes in archive.hashes.values()}
    assert len(distinct) == MOMENTS


def test_random_moments_are_restored(archive: Archive, report: Callable[[object], None]) -> None:
    first, *others, last = sorted(archive.hashes)
    # A soak restores the first and the last one as well.
    chosen = [first, last, *random.sample(others, RESTORES - 2)] if SOAK else [random.choice([first, *others, last])]
    seconds = []
    for moment in chosen:
        started_at = time.monotonic()
        with archive.repository.restore(moment) as server:
            wait_for_promotion(server.url)
            seconds.append(time.monotonic() - started_at)
            assert hash_records(server.url) == archive.hashes[moment], moment
            # Unlike a dump, a physical backup has everything.
            state = run_command(server.url, "check").stdout
            assert "All functions are marked LEAKPROOF." in state
    figures = ", ".join(f"{value:.1f}" for value in seconds)
    report(f"{len(chosen)} of {MOMENTS} moments restored, all hashes equal; seconds: {figures}")


def test_newest_backup_is_shown(archive: Archive, database_url: str) -> None:
    assert archive.first_status == "Backups   kalends: none (no valid backups)"
    full, incremental = json.loads(archive.repository.run("info", "--output=json"))[0]["backup"]
    assert (full["type"], incremental["type"]) == ("full", "incr")
    shown = read_backup_status(database_url, archive.repository)
    pattern = rf"Backups   kalends: {incremental['label']} \(incr\), finished \d+ (s|min) ago, ok"
    assert re.fullmatch(pattern, shown), shown


def wait_for_promotion(url: str) -> None:
    deadline = time.monotonic() + 120
    with psycopg.connect(url, autocommit=True) as connection:
        while connection.execute("SELECT pg_is_in_recovery()").fetchone() != (False,):
            assert time.monotonic() < deadline, "the cluster is still in recovery"
            time.sleep(0.1)

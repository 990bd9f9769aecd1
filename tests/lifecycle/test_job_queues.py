"""Urgent jobs never wait for images or imports, also if an earlier version has enqueued them."""

import random
import statistics
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from PIL import Image

from kalends.core.times import utc_now
from kalends.media.images import add_image
from kalends.settings import Settings
from kalends.store.database import Database, Options
from kalends.store.job_queue import Task, find_oldest
from kalends.worker import create_queue, register_tasks
from tests.api.running_app import RunningApp
from tests.api.sample_records import DATES
from tests.lifecycle.conftest import UserDatabase
from tests.lifecycle.processes import Worker, wait_until
from tests.media.media_client import media_root, open_media_library
from tests.soak import scaled

PICTURES = scaled(40, 500)
EVENTS = scaled(4, 50)
PICTURE_SIZE = (2400, 1600)
MAX_DELAY = 5.0
WORKER_TIMEOUT = 60
# Queue and priority of the tasks that transactions enqueue.
QUEUES = {
    "publish": ("default", 1),
    "purge": ("default", 0),
    "make_sizes": ("images", 0),
    "send_email": ("email", 0),
    "send_proposal_email": ("email", 0),
    "send_webhook_notice": ("email", 0),
    "send_follow_email": ("email", 0),
    "plan_import": ("background", 0),
    "apply_import": ("background", 0),
}


@pytest.fixture
def site(user_database: UserDatabase) -> Iterator[RunningApp]:
    with RunningApp(user_database.url, user_database.users) as app:
        yield app


def add_pictures(app: RunningApp, number: int) -> None:
    """Add different pictures of a usual size, with a job for each."""
    library = open_media_library(app)

    async def add() -> None:
        database = await Database.open(Options(url=app.database_url))
        async with library.open_work_directory() as directory:
            for seed in range(number):
                path = directory / "picture.jpg"
                noise = Image.frombytes("RGB", (240, 160), random.Random(seed).randbytes(240 * 160 * 3))
                noise.resize(PICTURE_SIZE).save(path)
                stored = await library.store_own_image(1, path, PICTURE_SIZE)
                async with database.transaction(1, utc_now(), writing=True) as tx:
                    await tx.lock_site(None)
                    await add_image(tx, library, stored, user_id=None)
        await database.close()

    app.run(add())


def count_waiting(app: RunningApp, task: Task) -> int:
    count: int = app.sql("SELECT count(*) FROM procrastinate_jobs WHERE task_name = $1 AND status = 'todo'", task)[0][
        0
    ]
    return count


def test_events_are_published_on_time_while_images_wait(
    site: RunningApp, tmp_path: Path, report: Callable[[object], None]
) -> None:
    add_pictures(site, PICTURES)
    editor = site.caller("editor")
    delays: list[float] = []
    settings = {"KALENDS_MEDIA_DIR": str(media_root(site))}
    with Worker.start(site.database_url, tmp_path / "worker.log", settings) as worker:
        wait_until(lambda: count_waiting(site, Task.MAKE_SIZES) < PICTURES, WORKER_TIMEOUT)
        for number in range(EVENTS):
            due = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
            event = editor.create("events", title=f"Due {number}", date_utc=f"{due:%Y-%m-%d %H:%M:%S}", **DATES)
            assert event["status"] == "future"
            wait_until(lambda: read_status(site, event["id"]) == "publish", 120, 0.02)  # noqa: B023
            delays.append((datetime.now(UTC) - due).total_seconds())
        waiting = count_waiting(site, Task.MAKE_SIZES)
        assert worker.stop() == 0
    p99 = statistics.quantiles(delays, n=100, method="inclusive")[98]
    report(
        f"{EVENTS} events while {PICTURES} pictures waited ({waiting} at the end): p99 {p99:.1f} s, "
        f"median {statistics.median(delays):.1f} s, longest {max(delays):.1f} s"
    )
    assert p99 <= MAX_DELAY, delays
    assert waiting > 0, "without waiting images, this proves nothing"


def read_status(app: RunningApp, event_id: int) -> str:
    status: str = app.sql("SELECT status FROM events WHERE id = $1", event_id)[0][0]
    return status


def enqueue_all(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SELECT set_config('kalends.site_id', '1', false)")
    for task in Task:
        connection.execute("SELECT enqueue_job(%s, '{}', NULL)", [task.value])


def list_jobs(connection: psycopg.Connection[Any]) -> dict[str, tuple[str, int]]:
    rows = connection.execute("SELECT task_name, queue_name, priority FROM procrastinate_jobs").fetchall()
    return {task: (queue, priority) for task, queue, priority in rows}


def test_enqueued_job_gets_queue_and_priority_of_its_task(site: RunningApp) -> None:
    settings = Settings(database_url="postgresql:///")
    queue, _ = create_queue(settings)
    register_tasks(queue, Database(None, None, Options("")), settings)
    with psycopg.connect(site.database_url) as connection:
        enqueue_all(connection)
        assert list_jobs(connection) == QUEUES
    assert {task.value: (queue.tasks[task].queue, queue.tasks[task].priority) for task in Task} == QUEUES


def test_jobs_of_an_earlier_version_run_in_any_queue(site: RunningApp, tmp_path: Path) -> None:
    """A server of an earlier version may enqueue everything in one queue while it is being replaced."""
    add_pictures(site, 2)
    site.caller("editor").create("venues", venue="Due", date_utc="2098-01-01 00:00:00")
    site.sql("UPDATE venues SET published_at = now() - interval '1 minute'")
    site.sql("UPDATE procrastinate_jobs SET queue_name = 'default', priority = 0, scheduled_at = NULL")
    settings = {"KALENDS_MEDIA_DIR": str(media_root(site))}
    with Worker.start(site.database_url, tmp_path / "worker.log", settings) as worker:
        done = "SELECT count(*) FROM procrastinate_jobs WHERE args ? 'site_id' AND task_name <> 'purge'"
        wait_until(lambda: site.sql(done)[0][0] == 0, WORKER_TIMEOUT)
        assert worker.stop() == 0
    assert site.sql("SELECT status FROM venues")[0][0] == "publish"
    assert site.sql("SELECT count(*) FROM media WHERE sizes <> '{}'")[0][0] == 2


def test_age_of_the_oldest_due_job_is_known_for_each_queue(site: RunningApp) -> None:
    site.sql(
        """INSERT INTO procrastinate_jobs (queue_name, task_name, scheduled_at) VALUES
            ('images', 'make_sizes', now() - interval '9 minutes'), ('images', 'make_sizes', now()),
            ('email', 'send_email', NULL), ('default', 'publish', now() + interval '1 hour')"""
    )
    ages = site.run(find_oldest(site.database_url))
    assert {queue: int(age // 60) for queue, age in ages.items()} == {"images": 9, "email": 0}

"""Periodic jobs run as often as the recovery of lost work needs."""

from itertools import pairwise

import pytest

from kalends.settings import Settings
from kalends.store.database import Database, Options
from kalends.worker import create_queue, register_tasks


@pytest.mark.parametrize(
    ("name", "seconds"), [("publish_overdue", 5), ("retry_stalled_jobs", 10), ("update_event_locations", 10)]
)
def test_periodic_jobs_run_every_few_seconds(name: str, seconds: int) -> None:
    settings = Settings()
    queue, _ = create_queue(settings)
    register_tasks(queue, Database(None, None, Options("")), settings)
    [periodic] = [entry for entry in queue.periodic_registry.periodic_tasks.values() if entry.task.name == name]
    schedule = periodic.croniter
    schedule.set_current(start_time=61.0)
    ticks = [schedule.get_next(ret_type=float) for _ in range(4)]
    assert [later - earlier for earlier, later in pairwise(ticks)] == [seconds] * 3


def test_jobs_that_wait_under_a_former_name_still_run() -> None:
    settings = Settings()
    queue, _ = create_queue(settings)
    register_tasks(queue, Database(None, None, Options("")), settings)
    former = ("forget_changes", "settle_places", "take_over")
    current = [queue.tasks[name].name for name in former]
    assert current == ["trim_change_logs", "update_event_locations", "retry_stalled_jobs"]

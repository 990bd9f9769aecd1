"""The metrics that are states of the database, read at each scrape."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from math import inf
from typing import Final

from kalends import __version__
from kalends.adapters import metrics
from kalends.adapters.metrics import Sample
from kalends.store import checks, job_queue, problems
from kalends.store.jobs import Task
from kalends.store.migrations import newest_revision

# Seconds for all reads of a scrape; Prometheus gives up after ten by default.
SCRAPE_TIMEOUT: Final = 5.0


def make_server_reader(database_url: str) -> Callable[[], list[Sample]]:
    """Return a function that reads the states that the server exports, with the login of the server."""
    expected = newest_revision()

    async def read() -> list[Sample]:
        state = await checks.read_state(database_url)
        age = state.heartbeat_age
        return [
            Sample(metrics.SCHEMA, 1, (state.schema.number, expected)),
            Sample(metrics.SCHEMA_USABLE, float(problems.compare_schema(state.schema, expected) is None)),
            Sample(metrics.MARKS_MISSING, len(state.missing_marks)),
            Sample(metrics.HEARTBEAT_AGE, inf if age is None else age),
        ]

    return lambda: asyncio.run(_read_bounded(read))


def make_queue_reader(queue_url: str) -> Callable[[], list[Sample]]:
    """Return a function that reads the states that the worker exports, with the login of the queue."""

    async def read() -> list[Sample]:
        counts, summary = await job_queue.count_jobs(queue_url)
        # Tasks without jobs have the value 0, so that alerts can compare with it.
        totals = Counter({(task.value, status): 0 for task in Task for status in job_queue.SHOWN_STATUSES})
        totals.update(counts)
        queued = [Sample(metrics.QUEUE_JOBS, number, labels) for labels, number in sorted(totals.items())]
        return [*queued, Sample(metrics.OLDEST_JOB, summary.oldest_seconds or 0.0)]

    return lambda: asyncio.run(_read_bounded(read))


async def _read_bounded(read: Callable[[], Awaitable[list[Sample]]]) -> list[Sample]:
    """Read the states; if the database does not respond in time, only that is exported."""
    samples = [Sample(metrics.INFO, 1, (__version__,))]
    try:
        async with asyncio.timeout(SCRAPE_TIMEOUT):
            state = await read()
    except (problems.DatabaseUnavailable, *problems.DRIVER_ERRORS):
        return [*samples, Sample(metrics.DATABASE_UP, 0)]
    return [*samples, Sample(metrics.DATABASE_UP, 1), *state]

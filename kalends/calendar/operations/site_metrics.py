"""Metrics that each scrape reads from the database, and the age of the newest backups."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from itertools import chain
from math import inf
from typing import Final

from kalends import __version__
from kalends.adapters import metrics
from kalends.adapters.backup_tool import Backup, BackupToolFailed, list_newest_backups
from kalends.adapters.metrics import Sample
from kalends.core.times import utc_now
from kalends.fleet.storage import move_steps
from kalends.store import checks, job_queue, problems
from kalends.store.job_queue import Queue, Task
from kalends.store.migrations import newest_revision

log = logging.getLogger(__name__)

# Minimum number of seconds between two pgBackRest calls.
BACKUP_INTERVAL: Final = 300.0
# Timeout in seconds for all reads in a scrape; the Prometheus default is ten.
SCRAPE_TIMEOUT: Final = 5.0
INFO: Final = Sample(metrics.INFO, 1, (__version__,))


def make_server_reader(urls: Mapping[str, str], directory_url: str = "") -> Callable[[], list[Sample]]:
    """Return a function that reads the server's metrics. `urls` maps cell names, or an empty name, to databases."""
    expected = newest_revision()

    async def read(cell: str, url: str) -> list[Sample]:
        state = await checks.read_state(url)
        age = state.heartbeat_age
        return [
            Sample(metrics.SCHEMA, 1, (cell, state.schema.number, expected)),
            Sample(metrics.SCHEMA_USABLE, float(problems.compare_schema(state.schema, expected) is None), (cell,)),
            Sample(metrics.MARKS_MISSING, len(state.missing_marks), (cell,)),
            Sample(metrics.HEARTBEAT_AGE, inf if age is None else age, (cell,)),
            *_sample_webhooks(cell, state.webhooks),
        ]

    async def read_all() -> list[Sample]:
        reads = [_read_bounded(cell, partial(read, cell, url)) for cell, url in urls.items()]
        reads += [_read_directory(directory_url)] if directory_url else []
        return [INFO, *chain.from_iterable(await asyncio.gather(*reads))]

    return lambda: asyncio.run(read_all())


def _sample_webhooks(cell: str, state: checks.WebhookState | None) -> list[Sample]:
    if state is None:
        return []
    numbers = {"active": state.active, "paused": state.paused, "disabled": state.disabled}
    return [
        *[Sample(metrics.WEBHOOKS, number, (cell, name)) for name, number in numbers.items()],
        Sample(metrics.OLDEST_UNDELIVERED, state.oldest_seconds or 0.0, (cell,)),
    ]


def make_queue_reader(queue_url: str, cell: str = "") -> Callable[[], list[Sample]]:
    """Return a function that reads the worker's metrics, using the queue's database login."""

    async def read() -> list[Sample]:
        counts, _ = await job_queue.count_jobs(queue_url)
        oldest = await job_queue.find_oldest(queue_url)
        # Report 0 for tasks without jobs, because alerts need a value to compare.
        totals = Counter({(task.value, status): 0 for task in Task for status in job_queue.SHOWN_STATUSES})
        totals.update(counts)
        queued = [Sample(metrics.QUEUE_JOBS, number, labels) for labels, number in sorted(totals.items())]
        waits = [Sample(metrics.OLDEST_JOB, oldest.get(queue, 0.0), (queue.value,)) for queue in Queue]
        return [*queued, *waits]

    read_backups = make_backup_reader()
    return lambda: [INFO, *asyncio.run(_read_bounded(cell, read)), *read_backups()]


def make_backup_reader() -> Callable[[], list[Sample]]:
    """Return a function that reads the age of the newest backups. It runs pgBackRest at most every five minutes."""
    known: list[Backup] = []
    read_at = -inf

    def read() -> list[Sample]:
        nonlocal known, read_at
        if time.monotonic() - read_at > BACKUP_INTERVAL:
            read_at = time.monotonic()
            try:
                known = list_newest_backups(timeout=SCRAPE_TIMEOUT) or []
            except BackupToolFailed as error:
                log.warning("pgBackRest cannot list its backups: %s", str(error).strip())
        now = utc_now()
        ages = {one.stanza: (now - one.finished).total_seconds() if one.finished else inf for one in known}
        return [Sample(metrics.BACKUP_AGE, age, (stanza,)) for stanza, age in ages.items()]

    return read


async def _read_directory(directory_url: str) -> list[Sample]:
    """Read the unfinished site moves. If the directory does not respond in time, report only that."""
    try:
        async with asyncio.timeout(SCRAPE_TIMEOUT):
            moves = await move_steps.list_moves(directory_url, unfinished=True)
    except (problems.DatabaseUnavailable, *problems.DRIVER_ERRORS):
        return [Sample(metrics.DIRECTORY_UP, 0)]
    now = utc_now()
    ages = {"running": 0.0, "interrupted": 0.0}
    for move in moves:
        state = "running" if move.has_mover else "interrupted"
        ages[state] = max(ages[state], (now - move.started_at).total_seconds())
    return [
        Sample(metrics.DIRECTORY_UP, 1),
        *[Sample(metrics.MOVE_AGE, age, (state,)) for state, age in ages.items()],
    ]


async def _read_bounded(cell: str, read: Callable[[], Awaitable[list[Sample]]]) -> list[Sample]:
    """Read the metrics. If the database does not respond in time, report only that."""
    try:
        async with asyncio.timeout(SCRAPE_TIMEOUT):
            state = await read()
    except (problems.DatabaseUnavailable, *problems.DRIVER_ERRORS):
        return [Sample(metrics.DATABASE_UP, 0, (cell,))]
    return [Sample(metrics.DATABASE_UP, 1, (cell,)), *state]

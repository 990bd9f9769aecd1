"""Metrics of jobs, counted around each job that the worker runs."""

import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from kalends.adapters import metrics


def announce_tasks(names: Iterable[str]) -> None:
    """Export zeros for tasks that have not run yet: an increase from nothing to one would not be seen."""
    for name in names:
        for outcome in ("succeeded", "failed"):
            metrics.find_series(metrics.JOBS, name, outcome)


async def observe_job(call_next: Callable[[], Awaitable[Any]], context: Any, _worker: Any) -> Any:
    """Run a job and count it; a middleware of the queue."""
    task: str = context.job.task_name
    started = time.perf_counter()
    try:
        result = await call_next()
    except Exception:
        metrics.find_series(metrics.JOBS, task, "failed").inc()
        raise
    metrics.find_series(metrics.JOBS, task, "succeeded").inc()
    metrics.find_series(metrics.JOB_SECONDS, task).observe(time.perf_counter() - started)
    return result

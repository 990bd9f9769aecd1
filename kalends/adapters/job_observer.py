"""Metrics and traces of jobs, recorded around each job that the worker runs."""

import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext
from typing import Any

from kalends.adapters import metrics
from kalends.adapters.tracing import TRACEPARENT, Tracer


def announce_tasks(names: Iterable[str]) -> None:
    """Export zeros for tasks that have not run yet: an increase from nothing to one would not be seen."""
    for name in names:
        for outcome in ("succeeded", "failed"):
            metrics.find_series(metrics.JOBS, name, outcome)


class JobObserver:
    """A middleware of the queue that counts each job and, with a tracer, runs it in a span."""

    def __init__(self, tracer: Tracer | None) -> None:
        self._tracer = tracer

    async def __call__(self, call_next: Callable[[], Awaitable[Any]], context: Any, _worker: Any) -> Any:
        job = context.job
        # Not an argument of the task: the server adds it to the arguments if it traces the request.
        traceparent: str = job.task_kwargs.pop(TRACEPARENT, "")
        started = time.perf_counter()
        try:
            with self._tracer.job_span(job.task_name, job.id, traceparent) if self._tracer else nullcontext():
                result = await call_next()
        except Exception:
            metrics.find_series(metrics.JOBS, job.task_name, "failed").inc()
            raise
        metrics.find_series(metrics.JOBS, job.task_name, "succeeded").inc()
        metrics.find_series(metrics.JOB_SECONDS, job.task_name).observe(time.perf_counter() - started)
        return result

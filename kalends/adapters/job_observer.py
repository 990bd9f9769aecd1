"""Metrics, traces and log lines of jobs, recorded around each job that the worker runs."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext
from typing import Any, Final

from kalends.adapters import metrics
from kalends.adapters.tracing import TRACEPARENT, Tracer

log = logging.getLogger(__name__)

MAX_REASON_LENGTH: Final = 300


def announce_tasks(names: Iterable[str]) -> None:
    """Export zeros for tasks that have not run yet: an increase from nothing to one would not be seen."""
    for name in names:
        for outcome in ("succeeded", "failed"):
            metrics.find_series(metrics.JOBS, name, outcome)


class JobObserver:
    """A middleware of the queue that counts each job, logs those that fail, and with a tracer runs it in a span."""

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
        except asyncio.CancelledError as error:
            log_failure(context, error, "interrupted, because the worker stops or reconnects")
            raise
        except Exception as error:
            metrics.find_series(metrics.JOBS, job.task_name, "failed").inc()
            log_failure(context, error, " ".join(f"{type(error).__name__}: {error}".split()))
            raise
        metrics.find_series(metrics.JOBS, job.task_name, "succeeded").inc()
        metrics.find_series(metrics.JOB_SECONDS, job.task_name).observe(time.perf_counter() - started)
        return result


def log_failure(context: Any, error: BaseException, reason: str) -> None:
    """Write one line about a failed attempt: job, attempt, reason and time of the next one."""
    job, task = context.job, context.task
    retry = task.get_retry_exception(exception=error, job=job)
    next_try: str | None = None
    if retry is not None:
        next_try = retry.retry_decision.retry_at.isoformat(timespec="milliseconds")
    elif task.retry_strategy is None:
        next_try = "on schedule"  # Only periodic tasks are not retried.
    fields = {
        "job": job.id,
        "task": job.task_name,
        "site": job.task_kwargs.get("site_id"),
        "attempt": job.attempts + 1,
        "reason": reason[:MAX_REASON_LENGTH],
        "next_try": next_try,
    }
    is_unexpected = retry is None and isinstance(error, Exception)
    log.warning("job_failed", extra={"fields": fields}, exc_info=error if is_unexpected else None)


def is_news(record: logging.LogRecord) -> bool:
    """Filter the log of the queue: `log_failure` has logged a failed job, unless its task does not exist."""
    if getattr(record, "action", "") != "job_error" or not record.exc_info or record.exc_info[0] is None:
        return True
    return record.exc_info[0].__name__ == "TaskNotFound"

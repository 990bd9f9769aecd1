"""Trace requests, SQL statements and jobs with OpenTelemetry (`kalends[otel]`); count jobs and log their failures.

Without `KALENDS_TRACES_URL`, there is no tracer, and OpenTelemetry is not imported. Spans contain neither query
strings nor statement parameters.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, Final

from kalends import __version__
from kalends.adapters import metrics

MAX_STATEMENT_LENGTH: Final = 2000
TRACEPARENT: Final = "traceparent"


def is_installed() -> bool:
    try:
        import opentelemetry.exporter.otlp.proto.http
        import opentelemetry.sdk.trace  # noqa: F401
    except ImportError:
        return False
    return True


def open_tracer(url: str, ratio: float) -> "Tracer":
    """Return a tracer that sends spans to an OTLP collector in the background; `ratio` is the share to send."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

    resource = Resource.create({"service.name": "kalends", "service.version": __version__})
    provider = TracerProvider(resource=resource, sampler=ParentBased(TraceIdRatioBased(ratio)))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=url)))
    return Tracer(provider)


class Tracer:
    """Creates a process's spans. The current span is stored in the task's context."""

    def __init__(self, provider: Any) -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = provider
        self._tracer = provider.get_tracer("kalends", __version__)
        self._api = trace
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def request_span(self, method: str, path: str, traceparent: str) -> Iterator[None]:
        """Run a request in a span; `traceparent` is a trusted proxy's span, or empty."""
        attributes = {"http.request.method": method, "url.path": path}
        with self._start(method, self._api.SpanKind.SERVER, traceparent, attributes):
            yield

    def describe_request(self, method: str, route: str, status: int, request_id: str) -> str:
        """Add the route, status and request ID to the request's span; return the trace ID."""
        span = self._api.get_current_span()
        span.update_name(f"{method} {route}")
        span.set_attributes(
            {"http.route": route, "http.response.status_code": status, "kalends.request_id": request_id}
        )
        if status >= 500:
            span.set_status(self._api.StatusCode.ERROR)
        return self._api.format_trace_id(span.get_span_context().trace_id)

    @contextmanager
    def job_span(self, task: str, job_id: int, traceparent: str) -> Iterator[None]:
        """Run a job in a span, as a child of the request that enqueued it."""
        attributes = {"messaging.system": "procrastinate", "messaging.message.id": str(job_id)}
        with self._start(f"job {task}", self._api.SpanKind.CONSUMER, traceparent, attributes):
            yield

    def record_statement(self, record: Any) -> None:
        """Add a span for a finished statement; the driver calls this in the statement's context."""
        # The request's span may have ended and stopped recording.
        if not self._api.get_current_span().get_span_context().trace_flags.sampled:
            return
        end = time.time_ns()
        statement: str = record.query.strip()
        span = self._tracer.start_span(
            statement.split(None, 1)[0].rstrip(";") if statement else "statement",
            kind=self._api.SpanKind.CLIENT,
            start_time=end - int(record.elapsed * 1e9),
            attributes={"db.system.name": "postgresql", "db.query.text": statement[:MAX_STATEMENT_LENGTH]},
        )
        if record.exception is not None:
            span.set_attribute("error.type", getattr(record.exception, "sqlstate", type(record.exception).__name__))
            span.set_status(self._api.StatusCode.ERROR)
        span.end(end)

    def make_traceparent(self) -> str:
        """Return the current span's `traceparent` to pass to a job; empty if the span is not recorded."""
        carrier: dict[str, str] = {}
        if self._api.get_current_span().is_recording():
            self._propagator.inject(carrier)
        return carrier.get(TRACEPARENT, "")

    def close(self) -> None:
        """Send the remaining spans."""
        self._provider.shutdown()

    @contextmanager
    def _start(self, name: str, kind: Any, traceparent: str, attributes: Mapping[str, str]) -> Iterator[None]:
        parent = self._propagator.extract({TRACEPARENT: traceparent}) if traceparent else None
        with self._tracer.start_as_current_span(name, context=parent, kind=kind, attributes=attributes):
            yield


log = logging.getLogger(__name__)

MAX_REASON_LENGTH: Final = 300


def announce_tasks(names: Iterable[str]) -> None:
    """Export zeros for tasks that have not run yet; otherwise Prometheus would miss the first increase."""
    for name in names:
        for outcome in ("succeeded", "failed"):
            metrics.find_series(metrics.JOBS, name, outcome)


class JobObserver:
    """Counts each job, logs failures and, if tracing, runs each job in a span."""

    def __init__(self, tracer: Tracer | None) -> None:
        self._tracer = tracer

    async def __call__(self, call_next: Callable[[], Awaitable[Any]], context: Any, _worker: Any) -> Any:
        job = context.job
        # This is not a task argument; the server adds it when it traces the request.
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
    """Log a failed attempt on one line, with the job, the attempt, the reason and the next attempt's time."""
    job, task = context.job, context.task
    retry = task.get_retry_exception(exception=error, job=job)
    next_try: str | None = None
    if retry is not None:
        next_try = retry.retry_decision.retry_at.isoformat(timespec="milliseconds")
    elif task.retry_strategy is None:
        next_try = "on schedule"  # Only periodic tasks have no retry strategy.
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
    """Filter out job errors that `log_failure` has already logged, but keep errors about unknown tasks."""
    if getattr(record, "action", "") != "job_error" or not record.exc_info or record.exc_info[0] is None:
        return True
    return record.exc_info[0].__name__ == "TaskNotFound"

"""Traces of requests, SQL statements and jobs by OpenTelemetry, which the extra `kalends[otel]` installs.

There is no tracer unless `KALENDS_TRACES_URL` is set; then nothing of this is imported or called. Neither query
strings nor values of statements become part of a span.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from kalends import __version__

MAX_STATEMENT_LENGTH: Final = 2000
TRACEPARENT: Final = "traceparent"


def is_installed() -> bool:
    """Return whether the extra is installed."""
    try:
        import opentelemetry.exporter.otlp.proto.http
        import opentelemetry.sdk.trace  # noqa: F401
    except ImportError:
        return False
    return True


def open_tracer(url: str, ratio: float) -> "Tracer":
    """Return a tracer that sends spans to an OTLP collector in the background; `ratio` is the share of traces."""
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
    """Makes the spans of one process. The current span is part of the context of a task."""

    def __init__(self, provider: Any) -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = provider
        self._tracer = provider.get_tracer("kalends", __version__)
        self._api = trace
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def request_span(self, method: str, path: str, traceparent: str) -> Iterator[None]:
        """Run a request in a span; `traceparent` names the span of a trusted proxy, or is empty."""
        attributes = {"http.request.method": method, "url.path": path}
        with self._start(method, self._api.SpanKind.SERVER, traceparent, attributes):
            yield

    def describe_request(self, method: str, route: str, status: int, request_id: str) -> str:
        """Add what is known after a request to its span; return the ID of the trace."""
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
        """Run a job in a span, as a child of the request that has enqueued it."""
        attributes = {"messaging.system": "procrastinate", "messaging.message.id": str(job_id)}
        with self._start(f"job {task}", self._api.SpanKind.CONSUMER, traceparent, attributes):
            yield

    def record_statement(self, record: Any) -> None:
        """Add a span for a statement that has ended; the driver calls this in the context of the statement."""
        # The span of the request may have ended already, so it need not be recording any more.
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
        """Return the current span for a job, or an empty string if it is not recorded."""
        carrier: dict[str, str] = {}
        if self._api.get_current_span().is_recording():
            self._propagator.inject(carrier)
        return carrier.get(TRACEPARENT, "")

    def close(self) -> None:
        """Send the last spans."""
        self._provider.shutdown()

    @contextmanager
    def _start(self, name: str, kind: Any, traceparent: str, attributes: Mapping[str, str]) -> Iterator[None]:
        parent = self._propagator.extract({TRACEPARENT: traceparent}) if traceparent else None
        with self._tracer.start_as_current_span(name, context=parent, kind=kind, attributes=attributes):
            yield

"""Access log and metrics. The query string is never logged, because it may contain an event password."""

import sys
from datetime import UTC, datetime
from functools import cache
from typing import Any, TextIO

import orjson

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Telemetry:
    """Writes the access log, and counts requests."""

    def __init__(self, log_format: str, out: TextIO | None = None) -> None:
        self._is_plain = log_format == "plain"
        self._out = out or sys.stderr
        # Looking a metric up by its labels costs more than counting.
        self._metrics: dict[tuple[str, str, int, str], tuple[Any, Any]] = {}

    def record(
        self, method: str, route: str, status: int, seconds: float, *, cache: str = "", **more: object
    ) -> None:
        """Count a request and write its log line; `more` are additional fields of the line."""
        method = method if method in METHODS else "other"
        key = (method, route, status, cache)
        counters = self._metrics.get(key)
        if counters is None:
            requests, durations = _metrics()
            counters = (requests.labels(method, route, str(status), cache), durations.labels(method, route))
            self._metrics[key] = counters
        counters[0].inc()
        counters[1].observe(seconds)
        self._write({"event": "request", "method": method, "status": status, "ms": round(seconds * 1000, 1), **more})

    def exception(self, error: BaseException, **more: object) -> None:
        """Log an unexpected exception with its traceback."""
        import traceback

        text = "".join(traceback.format_exception(error))
        self._write({"event": "fault", "level": "error", **more, "exception": text})

    def _write(self, line: dict[str, object]) -> None:
        timestamp = datetime.now(UTC).isoformat(timespec="milliseconds")
        if self._is_plain:
            text = " ".join(f"{name}={_escape(value)}" for name, value in line.items())
            self._out.write(f"{timestamp} {text}\n")
        else:
            self._out.write(orjson.dumps({"timestamp": timestamp, **line}).decode() + "\n")
        self._out.flush()


@cache
def _metrics() -> tuple[Any, Any]:
    """Return the request counter and the histogram of response times.

    Imported late: prometheus_client chooses multi-process mode at import time, from the directory that
    `kalends serve` sets for its workers.
    """
    from prometheus_client import Counter, Histogram

    return (
        Counter("kalends_requests_total", "Requests answered", ["method", "route", "status", "cache"]),
        Histogram("kalends_request_seconds", "Time to answer", ["method", "route"]),
    )


def _escape(value: object) -> str:
    """Escape control characters, which could forge a log line or control a terminal."""
    text = str(value)
    return text if text.isprintable() else repr(text)

"""One line per request in the log, and the metrics. The query string is never logged: it may hold the
password of an event."""

import sys
from datetime import UTC, datetime
from functools import cache
from typing import Any, TextIO

import orjson

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Telemetry:
    def __init__(self, log_format: str, out: TextIO | None = None) -> None:
        self._is_plain = log_format == "plain"
        self._out = out or sys.stderr
        # Looking a metric up by its labels costs more than counting.
        self._metrics: dict[tuple[str, str, int, str], tuple[Any, Any]] = {}

    def record(
        self, method: str, route: str, status: int, seconds: float, *, cache: str = "", **more: object
    ) -> None:
        """`more` goes into the log line only."""
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
        """A fault of ours, with all that helps to find it."""
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
    """Returns the counter of requests and the histogram of their times.

    The library decides when it is imported whether processes count together, so it is imported by those that
    count, after `kalends serve` has named the directory that they share.
    """
    from prometheus_client import Counter, Histogram

    return (
        Counter("kalends_requests_total", "Requests answered", ["method", "route", "status", "cache"]),
        Histogram("kalends_request_seconds", "Time to answer", ["method", "route"]),
    )


def _escape(value: object) -> str:
    """Writes a value on one line: control characters, which could forge a line or steer a terminal, are escaped."""
    text = str(value)
    return text if text.isprintable() else repr(text)

"""Access log and metrics. The query string is never logged: it may contain the password of an event."""

import logging
import time
from functools import cache
from typing import Any

# Seconds before the same problem is logged again.
PROBLEM_INTERVAL = 60.0
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

log = logging.getLogger(__name__)


class Telemetry:
    """Records the requests of one process."""

    def __init__(self) -> None:
        # Looking a metric up by its labels costs more than counting.
        self._metrics: dict[tuple[str, str, int, str], tuple[Any, Any]] = {}
        self._problems: dict[str, float] = {}

    def record(
        self, method: str, route: str, status: int, seconds: float, *, cache: str = "", **more: object
    ) -> None:
        """Count a request and log it; `more` goes into the log line only."""
        method = method if method in METHODS else "other"
        key = (method, route, status, cache)
        counters = self._metrics.get(key)
        if counters is None:
            requests, durations = _metrics()
            counters = (requests.labels(method, route, str(status), cache), durations.labels(method, route))
            self._metrics[key] = counters
        counters[0].inc()
        counters[1].observe(seconds)
        fields = {"method": method, "status": status, "ms": round(seconds * 1000, 1), **more}
        log.info("request", extra={"fields": fields})

    def exception(self, error: BaseException, **more: object) -> None:
        """Log an unexpected exception with its traceback."""
        log.error("fault", exc_info=error, extra={"fields": {"level": "error", **more}})

    def problem(self, detail: str) -> None:
        """Log why requests get 503, once per minute and cause."""
        now = time.monotonic()
        if now - self._problems.get(detail, -PROBLEM_INTERVAL) >= PROBLEM_INTERVAL:
            self._problems[detail] = now
            log.warning("%s", detail)


@cache
def _metrics() -> tuple[Any, Any]:
    """Return the counter of requests and the histogram of their durations.

    The library decides at its import whether several processes count together. It is therefore imported late, after
    `kalends serve` has set the directory that the processes share.
    """
    from prometheus_client import Counter, Histogram

    return (
        Counter("kalends_requests_total", "Requests answered", ["method", "route", "status", "cache"]),
        Histogram("kalends_request_seconds", "Time to answer", ["method", "route"]),
    )

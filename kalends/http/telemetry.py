"""Access log and request metrics. The query string is never logged, because it may contain an event password."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from math import inf
from typing import Any, Final

from kalends.adapters import metrics
from kalends.adapters.tracing import Tracer
from kalends.core.errors import ApiError
from kalends.core.limits import IpNetwork, is_trusted
from kalends.fleet.storage.replica import Replica
from kalends.http.bodies import hide_token
from kalends.http.cache import OUTCOMES
from kalends.store.problems import CAUSES, OTHER_CAUSES, find_cause
from kalends.store.site_database import SiteDatabase

# Seconds before the same problem is logged again.
PROBLEM_INTERVAL: Final = 60.0
# Seconds between writes of the access log. Collected lines are lost if the process is killed.
LOG_INTERVAL: Final = 0.1
# Seconds between connection pool samples.
SAMPLE_INTERVAL: Final = 2.0
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

log = logging.getLogger(__name__)


class Telemetry:
    """Records one process's requests: metrics, the access log and, with a tracer, traces."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        self.tracer = tracer
        # Cached, because looking up a metric by its labels costs more than counting.
        self._metrics: dict[tuple[str, str, int, str], tuple[Any, Any]] = {}
        self._problems: dict[tuple[str, str], tuple[float, int]] = {}
        self._requests: list[tuple[float, dict[str, object]]] = []  # not logged yet, each with the time it ended

    def record(
        self, method: str, route: str, status: int, seconds: float, *, cache: str = "", **more: object
    ) -> None:
        """Count a request, and log it soon together with other requests. The values in `more` are only logged."""
        method = method if method in METHODS else "other"
        key = (method, route, status, cache)
        counters = self._metrics.get(key)
        if counters is None:
            requests = metrics.get_instrument(metrics.REQUESTS).labels(method, route, str(status), cache)
            counters = (requests, metrics.get_instrument(metrics.REQUEST_SECONDS).labels(method, route))
            self._metrics[key] = counters
        counters[0].inc()
        if cache == "stale":
            metrics.find_series(metrics.STALE).inc()
        counters[1].observe(seconds)
        fields = {"method": method, "status": status, "ms": round(seconds * 1000, 1), **more}
        if self.tracer is not None:
            fields["trace_id"] = self.tracer.describe_request(method, route, status, str(more.get("request_id", "")))
        if not self._requests:
            asyncio.get_running_loop().call_later(LOG_INTERVAL, self.flush)
        self._requests.append((time.time(), fields))

    def flush(self) -> None:
        """Log the requests that ended since the last call, with a single write."""
        requests, self._requests = self._requests, []
        if requests:
            log.info("request", extra={"events": requests})

    def close(self) -> None:
        self.flush()
        if self.tracer is not None:
            self.tracer.close()

    def exception(self, error: BaseException, **more: object) -> None:
        log.error("fault", exc_info=error, extra={"fields": {"level": "error", **more}})

    def starved(self, outcome: str) -> None:
        """Count a public read that got no database connection. `outcome` says whether an old response was used."""
        metrics.find_series(metrics.STARVED, outcome).inc()

    def problem(self, error: ApiError) -> None:
        """Count a response with status 503 or 507, and log its cause once per minute."""
        cause = find_cause(error)
        metrics.find_series(metrics.UNAVAILABLE, cause.name).inc()
        now = time.monotonic()
        # PostgreSQL messages may contain values, so causes with the same name are distinguished by the SQLSTATE.
        key = (cause.name, cause.detail if cause.name == "database" else cause.sqlstate)
        logged_at, others = self._problems.get(key, (-PROBLEM_INTERVAL, 0))
        if now - logged_at < PROBLEM_INTERVAL:
            self._problems[key] = (logged_at, others + 1)
            return
        self._problems[key] = (now, 0)
        fields: dict[str, object] = {"level": "warning", "status": error.status, "cause": cause.name}
        fields |= {"sqlstate": cause.sqlstate} if cause.sqlstate else {}
        fields |= {"detail": cause.detail[:500]}
        fields |= {"since_last_line": others} if others else {}
        log.warning("unavailable", extra={"fields": fields})


def request_span(
    tracer: Tracer, scope: Mapping[str, Any], trusted: Sequence[IpNetwork]
) -> AbstractContextManager[None]:
    """Return a tracing context for a request. Only `trusted` proxies can continue an existing trace."""
    peer = (scope.get("client") or ("",))[0]
    offered = dict(scope["headers"]).get(b"traceparent", b"").decode("latin-1")
    return tracer.request_span(
        scope["method"], hide_token(scope["path"]), offered if is_trusted(peer, trusted) else ""
    )


def announce_counters() -> None:
    """Export unused counters as zero, because monitoring would miss an increase from missing to one."""
    metrics.find_series(metrics.STALE)
    for outcome in OUTCOMES:
        metrics.find_series(metrics.STARVED, outcome)
    for cause in (*CAUSES.values(), *OTHER_CAUSES):
        metrics.find_series(metrics.UNAVAILABLE, cause)


async def sample_pool(database: SiteDatabase, replica: Replica | None) -> None:
    """Export connection pool, directory and replica metrics until the task is cancelled."""
    announce_counters()
    counted: Counter[str] = Counter()
    while True:
        for cell, member in database.by_cell.items():
            usage = member.read_usage()
            metrics.find_series(metrics.POOL_SIZE, cell).set(usage.size)
            metrics.find_series(metrics.POOL_USED, cell).set(usage.used)
            metrics.find_series(metrics.POOL_WAITING, cell).set(usage.waiting)
        if replica is not None:
            metrics.find_series(metrics.REPLICA_LAG).set(replica.age if replica.is_available else inf)
        counts = Counter(database.read_counts())
        for event, number in counts.items():
            metrics.find_series(metrics.ROUTING, event).inc(number - counted[event])
        counted = counts
        await asyncio.sleep(SAMPLE_INTERVAL)

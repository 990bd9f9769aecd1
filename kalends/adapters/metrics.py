"""Prometheus metrics of the server and worker, and the port that exposes them.

The client library checks for multiprocess mode on import. Import it only after `kalends serve` has set the directory
that the server processes share.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

DIRECTORY_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric and the process that exports it."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    process: Literal["server", "worker", "both"]
    description: str
    labels: tuple[str, ...] = ()
    # How to combine a gauge's values from all server processes.
    merge: Literal["livesum", "livemax"] = "livesum"


@dataclass(frozen=True, slots=True)
class Sample:
    """A metric value read at scrape time."""

    metric: Metric
    value: float
    labels: tuple[str, ...] = ()


INFO = Metric("kalends_info", "gauge", "both", "Version of Kalends, as a label", ("version",))

REQUESTS = Metric(
    "kalends_requests_total", "counter", "server", "Requests; `cache` is hit, stale, outdated or empty",
    ("method", "route", "status", "cache"),
)  # fmt: skip
REQUEST_SECONDS = Metric(
    "kalends_request_seconds", "histogram", "server", "Time to respond, in seconds", ("method", "route")
)
STALE = Metric(
    "kalends_stale_responses_total", "counter", "server", "Cached responses served while the database was unavailable"
)
STARVED = Metric(
    "kalends_starved_reads_total", "counter", "server",
    "Public reads without a free database connection, by outcome for the last known response", ("outcome",),
)  # fmt: skip
UNAVAILABLE = Metric(
    "kalends_unavailable_total", "counter", "server", "Responses with status 503 or 507, by cause", ("cause",)
)

# Labeled by cell; the label is empty if there is no cell directory.
POOL_SIZE = Metric(
    "kalends_pool_size", "gauge", "server", "Maximum number of database connections of all processes", ("cell",)
)
POOL_USED = Metric("kalends_pool_used", "gauge", "server", "Database connections in use", ("cell",))
POOL_WAITING = Metric(
    "kalends_pool_waiting", "gauge", "server", "Requests that wait for a database connection", ("cell",)
)
ROUTING = Metric(
    "kalends_routing_total",
    "counter",
    "server",
    "Routing to cells, by `event`: miss (the site was not in memory), lookup (a query of the directory), retry (a "
    "cell did not serve the site), wait (for the end of a move)",
    ("event",),
)
DIRECTORY_UP = Metric("kalends_directory_up", "gauge", "server", "1 if the directory of cells responds, else 0")
MOVE_AGE = Metric(
    "kalends_site_move_age_seconds", "gauge", "server",
    "Age of the oldest unfinished move of a site, in seconds, by `state`: running or interrupted; 0 if there is none",
    ("state",),
)  # fmt: skip

REPLICA_READS = Metric(
    "kalends_replica_reads_total", "counter", "server",
    "Reads that a replica could answer, by `outcome`: answered by the replica, or why the primary answers",
    ("outcome",),
)  # fmt: skip
REPLICA_LAG = Metric(
    "kalends_replica_lag_seconds", "gauge", "server", "Age of the data of the replica; +Inf if it does not respond",
    merge="livemax",
)  # fmt: skip

STREAMS = Metric("kalends_streams", "gauge", "server", "Clients that follow a list")
STREAM_RUNS = Metric(
    "kalends_stream_runs_total", "counter", "server", "Evaluations of followed lists, by `outcome`: changed or same",
    ("outcome",),
)  # fmt: skip

BACKUP_AGE = Metric(
    "kalends_backup_age_seconds", "gauge", "worker",
    "Seconds since the end of the newest backup of pgBackRest; +Inf if there is none", ("stanza",),
)  # fmt: skip

DATABASE_UP = Metric("kalends_database_up", "gauge", "both", "1 if the database responds, else 0", ("cell",))
SCHEMA = Metric(
    "kalends_schema_info", "gauge", "server",
    "Schema version of the database and the one that the server expects, as labels", ("cell", "found", "expected"),
)  # fmt: skip
SCHEMA_USABLE = Metric(
    "kalends_schema_usable", "gauge", "server", "1 if the server can use the schema of the database, else 0",
    ("cell",),
)  # fmt: skip
MARKS_MISSING = Metric(
    "kalends_leakproof_marks_missing", "gauge", "server", "Functions that lack the mark LEAKPROOF", ("cell",)
)
HEARTBEAT_AGE = Metric(
    "kalends_worker_heartbeat_age_seconds", "gauge", "server",
    "Seconds since the last heartbeat of any worker; +Inf if there is none", ("cell",),
)  # fmt: skip

JOBS = Metric(
    "kalends_jobs_total", "counter", "worker", "Attempts to run a job, by `outcome`: succeeded or failed",
    ("task", "outcome"),
)  # fmt: skip
JOB_SECONDS = Metric("kalends_job_seconds", "histogram", "worker", "Duration of a job, in seconds", ("task",))
QUEUE_JOBS = Metric(
    "kalends_queue_jobs", "gauge", "worker",
    "Jobs in the queue, by `status`: waiting (due), scheduled (due later), running or failed", ("task", "status"),
)  # fmt: skip
OLDEST_JOB = Metric(
    "kalends_oldest_due_job_seconds", "gauge", "worker",
    "Seconds since the oldest waiting job of a `queue` was due; 0 if none waits", ("queue",),
)  # fmt: skip

WEBHOOK_MESSAGES = Metric(
    "kalends_webhook_messages_total", "counter", "worker",
    "Attempts to deliver a message, by `outcome`: delivered, failed (tried again), waits (the endpoint is down or "
    "overloaded) or gone (it was disabled)",
    ("outcome",),
)  # fmt: skip
WEBHOOKS = Metric(
    "kalends_webhooks", "gauge", "server", "Endpoints, by `state`: active, paused or disabled", ("cell", "state")
)
OLDEST_UNDELIVERED = Metric(
    "kalends_oldest_undelivered_change_seconds", "gauge", "server",
    "Age of the oldest change that an active endpoint has yet to receive; 0 if there is none", ("cell",),
)  # fmt: skip

# Metrics that every server and worker exports.
METRICS: Final = (
    INFO, REQUESTS, REQUEST_SECONDS, STALE, STARVED, UNAVAILABLE, POOL_SIZE, POOL_USED, POOL_WAITING, DATABASE_UP,
    SCHEMA, SCHEMA_USABLE, MARKS_MISSING, HEARTBEAT_AGE, JOBS, JOB_SECONDS, QUEUE_JOBS, OLDEST_JOB,
    WEBHOOK_MESSAGES, WEBHOOKS, OLDEST_UNDELIVERED,
)  # fmt: skip
# Metrics exported only by servers with cells or a replica, by workers on machines with pgBackRest, and by
# `kalends stream`.
OPTIONAL_METRICS: Final = (
    ROUTING, DIRECTORY_UP, MOVE_AGE, REPLICA_READS, REPLICA_LAG, BACKUP_AGE, STREAMS, STREAM_RUNS,
)  # fmt: skip


@cache
def get_instrument(metric: Metric) -> Any:
    from prometheus_client import Counter, Gauge, Histogram

    if metric.kind == "gauge":
        return Gauge(metric.name, metric.description, metric.labels, multiprocess_mode=metric.merge)
    return (Counter if metric.kind == "counter" else Histogram)(metric.name, metric.description, metric.labels)


@cache
def find_series(metric: Metric, *labels: str) -> Any:
    """Return one of a metric's time series, cached because the lookup costs more than counting."""
    instrument = get_instrument(metric)
    return instrument.labels(*labels) if labels else instrument


class StateCollector:
    """Reads state metrics at each scrape."""

    def __init__(self, read: Callable[[], Iterable[Sample]]) -> None:
        self._read = read

    def describe(self) -> list[Any]:
        """Return nothing; otherwise the library would call `collect` to get the metric names."""
        return []

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        families: dict[str, Any] = {}
        for sample in self._read():
            metric = sample.metric
            family = families.setdefault(
                metric.name, GaugeMetricFamily(metric.name, metric.description, labels=metric.labels)
            )
            family.add_metric(sample.labels, sample.value)
        yield from families.values()


class ProcessCollector:
    """Adds up the metrics that all server processes write to files in one directory."""

    def __init__(self, directory: Path) -> None:
        from prometheus_client.multiprocess import MultiProcessCollector

        self._directory = directory
        self._collector = MultiProcessCollector(None, str(directory))  # type: ignore[no-untyped-call]

    def collect(self) -> Iterable[Any]:
        from prometheus_client.multiprocess import mark_process_dead

        # Otherwise, the sums would include gauges of killed processes forever.
        for path in self._directory.glob("gauge_live*.db"):
            pid = int(path.stem.rpartition("_")[2])
            if not _is_running(pid):
                mark_process_dead(pid, str(self._directory))  # type: ignore[no-untyped-call]
        metrics: Iterable[Any] = self._collector.collect()  # type: ignore[no-untyped-call]
        return metrics


class UsageCollector:
    """Sums process metrics such as `process_cpu_seconds_total` over all server processes."""

    # For these, the sum is meaningless, so use the lowest value: the smallest limit and the earliest start.
    LOWEST = ("process_max_fds", "process_start_time_seconds")

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        # The last counter values by name and process. They are kept because the sum must not drop when a process
        # ends.
        self._counted: dict[str, dict[int, float]] = {}

    def collect(self) -> Iterator[Any]:
        from prometheus_client import ProcessCollector
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        pids = {int(path.stem.rpartition("_")[2]) for path in self._directory.glob("*.db")}
        families: dict[str, Any] = {}
        values: dict[str, dict[int, float]] = dict(self._counted)
        for pid in {os.getpid(), *filter(_is_running, pids)}:
            for family in ProcessCollector(pid=lambda pid=pid: pid, registry=None).collect():  # type: ignore[misc]
                for sample in family.samples:
                    families[sample.name] = family
                    values.setdefault(sample.name, {})[pid] = sample.value
        self._counted = {name: values[name] for name, family in families.items() if family.type == "counter"}
        for name, family in families.items():
            make = CounterMetricFamily if family.type == "counter" else GaugeMetricFamily
            found = values[name].values()
            yield make(name, family.documentation, value=min(found) if name in self.LOWEST else sum(found))


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def serve_metrics(host: str, port: int, read_state: Callable[[], Iterable[Sample]]) -> None:
    from prometheus_client import REGISTRY, CollectorRegistry, start_http_server

    registry = REGISTRY
    if directory := os.environ.get(DIRECTORY_VARIABLE):
        registry = CollectorRegistry()
        registry.register(ProcessCollector(Path(directory)))
        registry.register(UsageCollector(Path(directory)))
    registry.register(StateCollector(read_state))
    start_http_server(port, host, registry)


def without_directory(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the shared metrics directory, for a process that counts separately."""
    return {name: value for name, value in environment.items() if name != DIRECTORY_VARIABLE}

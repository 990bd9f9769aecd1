"""Metrics of a running server and worker: all that are documented exist, and they follow what happens."""

import json
import re
import threading
import time
from collections.abc import Iterator
from math import inf
from pathlib import Path

import httpx
import psycopg
import pytest

from bench.cpu_time import list_process_tree
from kalends.adapters import metrics
from kalends.adapters.metrics import METRICS, OPTIONAL_METRICS, Metric, ProcessCollector, Sample
from kalends.calendar.operations.site_metrics import make_backup_reader, make_queue_reader, make_server_reader
from kalends.store.migrations import newest_revision
from tests.api.running_app import API_PATH, HOST, User
from tests.conftest import replace_database, temporary_database
from tests.monitoring.scraped_site import ScrapedSite, check_with_promtool, run_site, wait_for
from tests.monitoring.trace_collector import Collector, run_collector
from tests.servers import find_free_port

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/how-to/monitoring.md"
DASHBOARD = ROOT / "deploy/grafana/kalends.json"
PROCESS_METRICS = (
    "process_cpu_seconds_total",
    "process_max_fds",
    "process_open_fds",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_virtual_memory_bytes",
)
SUFFIXES = {"counter": ("",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with run_collector() as running:
        yield running


@pytest.fixture(scope="module")
def site(
    postgres_url: str,
    user_template: tuple[str, dict[str, User]],
    collector: Collector,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ScrapedSite]:
    """Return a site whose shared cache does not respond, and which has written one event."""
    template, users = user_template
    environment = {
        "KALENDS_POOL_SIZE": "1",
        "KALENDS_POOL_TIMEOUT": "30",
        "KALENDS_PUBLIC_STATEMENT_TIMEOUT": "1",
        "KALENDS_STATEMENT_TIMEOUT": "60",
        "KALENDS_PURGE_URLS": f"http://127.0.0.1:{find_free_port()}/",
        "KALENDS_TRACES_URL": collector.url,
    }
    with temporary_database(postgres_url, template=template) as name:
        url = replace_database(postgres_url, name)
        with run_site(url, tmp_path_factory.mktemp("site"), environment) as running:
            author = users["administrator"]
            event = {"title": "Concert", "start_date": "2030-05-01 20:00:00", "end_date": "2030-05-01 22:00:00"}
            with running.server.client(login=author.login, password=author.password) as client:
                response = client.post(f"{API_PATH}/events", json=event, headers={"Host": HOST})
                assert response.status_code == 201, response.text
            yield running


def list_samples(metric: Metric) -> set[str]:
    return {metric.name + suffix for suffix in SUFFIXES[metric.kind]}


def test_every_metric_exists_and_is_well_formed(site: ScrapedSite) -> None:
    failed = {"task": "purge", "outcome": "failed"}
    worker = wait_for(
        site.scrape_worker,
        # The failed purge has no duration; other jobs do.
        lambda scrape: bool(scrape.find("kalends_jobs_total", **failed) and scrape.find("kalends_job_seconds_count")),
    )
    server = wait_for(site.scrape_server, lambda scrape: "kalends_pool_used" in scrape.names)
    found = {"server": server, "worker": worker}
    expected: dict[str, set[str]] = {process: set() for process in found}
    for metric in METRICS:
        for process in ("server", "worker") if metric.process == "both" else (metric.process,):
            expected[process] |= list_samples(metric)
    for process, scrape in found.items():
        own = {name for name in scrape.names if name.startswith("kalends_") and not name.endswith("_created")}
        assert own == expected[process]
    check_with_promtool("check", "metrics", text=server.text)
    for scrape in (server, worker):
        assert set(PROCESS_METRICS) <= scrape.names
        assert scrape.total("process_cpu_seconds_total") > 0
        assert scrape.total("process_resident_memory_bytes") > 10_000_000
    # The sum of the process that `kalends serve` starts and of its own.
    pids = list_process_tree(site.server.process.pid)
    assert len(pids) == 2
    assert server.total("process_open_fds") > max(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids)
    assert server.total("kalends_pool_size") == 1
    assert server.total("kalends_database_up") == worker.total("kalends_database_up") == 1
    assert server.total("kalends_schema_usable") == 1
    assert server.total("kalends_schema_info", found=newest_revision(), expected=newest_revision()) == 1
    assert server.total("kalends_leakproof_marks_missing") == 0
    assert server.total("kalends_worker_heartbeat_age_seconds") < 60
    assert worker.total("kalends_queue_jobs", task="make_sizes", status="waiting") == 0
    # The purge is tried again later.
    assert worker.total("kalends_queue_jobs", task="purge") == 1


def test_waiting_and_refused_requests_are_counted_and_explained(site: ScrapedSite) -> None:
    """One connection is blocked by a lock: one request holds it until its timeout, the others wait."""
    path = f"{site.server.base_url}{API_PATH}/venues"
    with psycopg.connect(site.database_url) as holder, httpx.Client(timeout=60) as client:
        holder.execute("LOCK TABLE venues IN ACCESS EXCLUSIVE MODE")
        for number in range(2):
            assert client.get(f"{path}?page={number + 1}", headers={"Host": HOST}).status_code == 503
    cause = {"cause": "statement_timeout"}
    wait_for(site.scrape_server, lambda scrape: scrape.find("kalends_unavailable_total", **cause) == [2])
    lines = [json.loads(line) for line in site.server.read_log().splitlines() if line.startswith("{")]
    (line,) = [line for line in lines if line.get("event") == "unavailable"]
    del line["timestamp"]
    assert line == {
        "event": "unavailable",
        "level": "warning",
        "status": 503,
        "cause": "statement_timeout",
        "sqlstate": "57014",
        "detail": "canceling statement due to statement timeout",
    }


def test_used_connections_and_waiting_requests_are_counted(site: ScrapedSite) -> None:
    """A write waits for the lock of its site; a second one waits for the only connection."""
    user = {"auth": ("editor", "wrong"), "headers": {"Host": HOST}, "timeout": 60}
    with psycopg.connect(site.database_url) as holder:
        holder.execute("LOCK TABLE users IN ACCESS EXCLUSIVE MODE")
        url = f"{site.server.base_url}{API_PATH}/venues"
        requests = [threading.Thread(target=httpx.get, args=[url], kwargs=user) for _ in range(2)]
        for request in requests:
            request.start()
        busy = wait_for(site.scrape_server, lambda scrape: scrape.total("kalends_pool_waiting") == 1, 50)
        assert busy.total("kalends_pool_used") == 1
        holder.rollback()
    for request in requests:
        request.join(60)
    wait_for(site.scrape_server, lambda scrape: scrape.total("kalends_pool_waiting") == 0)


def test_traces_reach_a_collector(site: ScrapedSite, collector: Collector) -> None:
    """A trace has the request, its statements, and the job that the worker has run because of it."""
    deadline = time.monotonic() + 60
    names: set[str] = set()
    while not {"POST /events", "SELECT", "COMMIT", "job purge"} <= names and time.monotonic() < deadline:
        time.sleep(0.2)
        spans = collector.list_spans()
        traces = {span.trace_id for span in spans if span.name == "POST /events"}
        names = {span.name for span in spans if span.trace_id in traces}
    assert {"POST /events", "SELECT", "COMMIT", "job purge"} <= names


def test_documentation_has_every_metric() -> None:
    rows = [
        f"| `{m.name}` | {m.kind} | {m.process} | {', '.join(f'`{label}`' for label in m.labels) or '–'} "
        f"| {m.description} |"
        for m in (*METRICS, *OPTIONAL_METRICS)
    ]
    found = [line for line in PAGE.read_text().splitlines() if line.startswith("| `kalends_")]
    assert found == rows


def test_metrics_of_the_dashboard_exist() -> None:
    """The test above shows that each metric of the list is exported."""
    dashboard = json.loads(DASHBOARD.read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    named = {name for text in expressions for name in re.findall(r"\bkalends_[a-z_]+", text)}
    assert named
    every = (*METRICS, *OPTIONAL_METRICS)
    assert named <= {name for metric in every for name in list_samples(metric)}
    # Each panel explains itself, and each metric of the server's and the worker's state is shown somewhere.
    assert all(panel["title"] and panel["description"] for panel in dashboard["panels"])
    shown = {metric.name for metric in every if named & list_samples(metric)}
    assert {metric.name for metric in every} - shown == {"kalends_info"}


def test_unusable_databases_are_exported(empty_database_url: str) -> None:
    unreachable = f"postgresql://kalends@127.0.0.1:{find_free_port()}/kalends"
    for reader in (make_server_reader({"": unreachable}), make_queue_reader(unreachable)):
        assert reader()[1:] == [Sample(metrics.DATABASE_UP, 0, ("",))]
    # Of two cells, one that cannot be reached does not hide the other.
    assert make_server_reader({"a": unreachable, "b": empty_database_url})()[1:] == [
        Sample(metrics.DATABASE_UP, 0, ("a",)),
        Sample(metrics.DATABASE_UP, 1, ("b",)),
        Sample(metrics.SCHEMA, 1, ("b", "", newest_revision())),
        Sample(metrics.SCHEMA_USABLE, 0, ("b",)),
        Sample(metrics.MARKS_MISSING, 0, ("b",)),
        Sample(metrics.HEARTBEAT_AGE, inf, ("b",)),
    ]


def test_ages_of_backups_are_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pgBackRest runs once in a while; here, a program of that name prints what it would."""
    finished = int(time.time()) - 7200
    stanzas = [
        {"name": "a", "backup": [{"label": "1", "type": "full", "timestamp": {"start": 1, "stop": finished}}]},
        {"name": "b", "backup": []},
    ]
    program = tmp_path / "pgbackrest"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(stanzas)}\nEND\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    read = make_backup_reader()
    first, second = read()
    assert (first.metric, first.labels) == (metrics.BACKUP_AGE, ("a",))
    assert first.value == pytest.approx(7200, abs=60)
    assert second == Sample(metrics.BACKUP_AGE, inf, ("b",))
    program.write_text("#!/bin/sh\nexit 1\n")
    assert [sample.labels for sample in read()] == [("a",), ("b",)]
    assert make_backup_reader()() == []


def test_gauges_of_killed_processes_are_dropped(tmp_path: Path) -> None:
    pid = int(Path("/proc/sys/kernel/pid_max").read_text())
    (tmp_path / f"gauge_livesum_{pid}.db").touch()
    assert list(ProcessCollector(tmp_path).collect()) == []
    assert list(tmp_path.iterdir()) == []

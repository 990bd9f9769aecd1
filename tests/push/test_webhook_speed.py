"""What webhooks cost while nothing happens, and how soon messages arrive."""

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.api.running_app import expect_json
from tests.lifecycle.lifecycle_fixtures import EXTENSION_PATH
from tests.media.image_fixtures import make_image
from tests.push.delivery_stand import DeliveryStand, Endpoint
from tests.push.webhook_receiver import Answer
from tests.soak import scaled, slowdown

IDLE_SITES = scaled(5_000, 100_000)  # without endpoints
SITES = scaled(500, 1_000)
ENDPOINTS_PER_SITE = scaled(4, 10)
MAX_BUFFERS = 6  # per idle endpoint
RATE = 20  # writes per second
SECONDS = scaled(10, 60)
ENDPOINTS = 10
IMAGE_JOBS = 500
BACKLOG = scaled(20_000, 1_000_000)  # changes
CHANGES_PER_RECORD = scaled(20, 50)
MAX_GROWTH = 20  # MB


def test_idle_endpoints_cost_one_cheap_statement(database_url: str, report: Callable[[object], None]) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("INSERT INTO sites (id) SELECT 10 + n FROM generate_series(1, %s) n", [SITES])
        connection.execute("UPDATE sites SET revision = 7")
        connection.execute(
            "INSERT INTO log_consumers (site_id, consumer, cursor) SELECT 10 + s, 'webhook:' || e, 7 "
            "FROM generate_series(1, %s) s, generate_series(1, %s) e",
            [SITES, ENDPOINTS_PER_SITE],
        )
        connection.execute("VACUUM ANALYZE sites, log_consumers")
        before = _measure_take(connection)
        connection.execute("INSERT INTO sites (id) SELECT 1000000 + n FROM generate_series(1, %s) n", [IDLE_SITES])
        connection.execute("VACUUM ANALYZE sites")
        after = _measure_take(connection)
    endpoints = SITES * ENDPOINTS_PER_SITE
    report(
        f"{endpoints:,} idle endpoints: {before['buffers'] / endpoints:.1f} buffers each, {before['ms']:.0f} ms; "
        f"with {IDLE_SITES:,} more sites: {after['buffers'] / endpoints:.1f}, {after['ms']:.0f} ms"
    )
    assert before["buffers"] <= MAX_BUFFERS * endpoints
    # The index of a table with many rows can be one level higher.
    assert after["buffers"] <= before["buffers"] + endpoints + 100


def _measure_take(connection: psycopg.Connection[Any]) -> dict[str, float]:
    """Return the buffers that a look for work reads, and its time, once the session is warm."""
    plan: Any = None
    for _ in range(3):
        row = connection.execute(
            "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM take_log_consumers(gen_random_uuid(), 30, 64)"
        ).fetchone()
        assert row is not None
        plan = row[0][0]
    root = plan["Plan"]
    assert root["Actual Rows"] == 0
    return {"buffers": root["Shared Hit Blocks"] + root["Shared Read Blocks"], "ms": plan["Execution Time"]}


@pytest.mark.parametrize("trouble", ["", "image jobs wait", "one endpoint hangs"])
def test_messages_arrive_within_seconds(
    idle_stand: DeliveryStand, report: Callable[[object], None], trouble: str
) -> None:
    stand = idle_stand
    endpoints = [stand.add_endpoint() for _ in range(ENDPOINTS)]
    if trouble == "one endpoint hangs":
        endpoints.pop().mailbox.respond = lambda _: Answer(delay=20)
    if trouble == "image jobs wait":
        _add_image_jobs(stand)
    worker = stand.start_worker()
    stand.create("tags", name="Warm")
    for endpoint in endpoints:
        endpoint.mailbox.wait_for(1)
    cpu_before = _read_cpu_seconds(worker.process.pid)
    written = _write(stand, RATE * SECONDS)
    for endpoint in endpoints:
        endpoint.mailbox.wait_for(len(written) + 1, 60)
    delays = sorted(delay for endpoint in endpoints for delay in _read_delays(endpoint, written))
    p50, p99 = statistics.median(delays), delays[int(len(delays) * 0.99)]
    cpu = _read_cpu_seconds(worker.process.pid) - cpu_before
    if trouble == "image jobs wait":
        assert stand.sql("SELECT count(*) FROM procrastinate_jobs WHERE task_name = 'make_sizes'")[0]["count"] > 100
    report(
        f"{len(written)} writes in {SECONDS} s, {len(endpoints)} endpoints, {trouble or 'no trouble'}: "
        f"p50 {p50:.2f} s, p99 {p99:.2f} s from commit to receipt; worker {cpu:.1f} s CPU"
    )
    # In a normal run, other tests use the same processors.
    factor = slowdown() * scaled(4, 1)
    assert p50 < 1 * factor
    assert p99 < 5 * factor


def test_backlog_needs_no_memory(idle_stand: DeliveryStand, report: Callable[[object], None]) -> None:
    """Half of the endpoint's messages are delivered before the measurement, half after it."""
    stand, records = idle_stand, BACKLOG // CHANGES_PER_RECORD
    endpoint = stand.add_endpoint()
    stand.sql(
        "INSERT INTO tags (site_id, id, revision, name, name_folded, slug) "
        "SELECT 1, n, %s + n, 'tag ' || n, 'tag ' || n, 'tag-' || n FROM generate_series(1, %s) n",
        BACKLOG - records,
        records,
    )
    stand.sql(
        "INSERT INTO changes (site_id, revision, kind, record_id, action, before, after, was_public) "
        "SELECT 1, n, 'tags', 1 + (n - 1) %% %s, CASE WHEN n <= %s THEN 'create' ELSE 'update' END, "
        """jsonb_build_object('name', 'tag ' || n), '{"name": "new"}', n > %s FROM generate_series(1, %s) n""",
        *(records, records, records, BACKLOG),
    )
    stand.sql("UPDATE sites SET revision = %s, last_term_id = %s WHERE id = 1", BACKLOG, records)
    worker, started = stand.start_worker(), time.monotonic()
    endpoint.mailbox.wait_for(records // 2, 1200)
    before = _read_memory(worker.process.pid)
    endpoint.mailbox.wait_for(records, 1200)
    growth, seconds = _read_memory(worker.process.pid) - before, time.monotonic() - started
    report(f"{BACKLOG:,} changes of {records:,} records behind: {growth:+.1f} MB, {records / seconds:.0f} messages/s")
    assert growth <= MAX_GROWTH
    keys = [message.key for message in endpoint.mailbox.received]
    assert sorted(set(keys)) == sorted(keys)


def _read_memory(pid: int) -> float:
    """Return the resident memory of a process in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _add_image_jobs(stand: DeliveryStand) -> None:
    """Fill the queue of images: each job decodes the same large photo for another record."""
    photo = {"file": ("photo.jpg", make_image(width=2400, height=1600))}
    expect_json(stand.client.post(f"{EXTENSION_PATH}/media", files=photo), 201)
    stand.sql(
        "INSERT INTO media (site_id, id, revision, url, extension, width, height, filesize) "
        "SELECT m.site_id, 1000000 + n, 0, m.url, m.extension, m.width, m.height, m.filesize "
        "FROM media m, generate_series(1, %s) n",
        IMAGE_JOBS,
    )
    stand.sql(
        "INSERT INTO procrastinate_jobs (queue_name, task_name, args, status) "
        "SELECT 'images', 'make_sizes', jsonb_build_object('media_id', 1000000 + n, 'site_id', 1), 'todo' "
        "FROM generate_series(1, %s) n",
        IMAGE_JOBS,
    )


def _read_cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _write(stand: DeliveryStand, count: int) -> dict[str, float]:
    """Write at a steady rate; return the time of each commit by the record."""
    written: dict[str, float] = {}
    started = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, started + number / RATE - time.monotonic()))
        event = stand.create(title=f"Event {number}")
        written[f"event/{event['id']}"] = time.time()
    return written


def _read_delays(endpoint: Endpoint, written: dict[str, float]) -> list[float]:
    first: dict[str, float] = {}
    for message in endpoint.mailbox.received:
        first.setdefault(message.key, message.at)
    return [first[key] - at for key, at in written.items()]

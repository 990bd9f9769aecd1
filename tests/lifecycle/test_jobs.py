"""Background jobs are seen, fail with growing delay, and can be run again."""

import json
import re
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.api.running_app import RunningApp
from tests.api.sample_records import SAMPLES
from tests.lifecycle.conftest import UserDatabase
from tests.lifecycle.processes import Worker, run_command, wait_until

WORKER_TIMEOUT = 60  # A worker takes a second to begin, and much longer on a busy machine.
# A record that cannot be published, whatever the reason in real life.
ADD_FAILING_TRIGGER = """
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.title = 'Broken' AND NEW.status = 'publish' THEN RAISE 'broken'; END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER refuse BEFORE UPDATE ON venues FOR EACH ROW EXECUTE FUNCTION refuse();
"""
DROP_FAILING_TRIGGER = "DROP TRIGGER refuse ON venues"


class JobQueue:
    """The queue of a site, and an editor who schedules."""

    def __init__(self, place: UserDatabase) -> None:
        self.url = place.url
        self.app = RunningApp(place.url, place.users)

    def rows(self, text: str, *values: object) -> list[dict[str, Any]]:
        with psycopg.connect(self.url, row_factory=dict_row) as connection:
            cursor = connection.execute(text, values)
            return cursor.fetchall() if cursor.description else []

    def schedule(self, title: str) -> int:
        """A venue that is due at once, and its job."""
        editor = self.app.caller("editor")
        record: int = editor.create("venues", venue=title, date_utc="2098-01-01 00:00:00")["id"]
        self.rows("UPDATE venues SET published_at = now() - interval '1 minute' WHERE id = %s", record)
        return record

    def job(self, record_id: int) -> dict[str, Any]:
        matches = self.rows(
            "SELECT id, status::text, attempts, scheduled_at, extract(epoch FROM scheduled_at - now()) AS wait "
            "FROM procrastinate_jobs WHERE task_name = 'publish' AND (args ->> 'record_id')::bigint = %s",
            record_id,
        )
        return matches[0] if matches else {"status": "done"}

    def status(self, record_id: int) -> str:
        status: str = self.rows("SELECT status FROM venues WHERE id = %s", record_id)[0]["status"]
        return status

    def run_now(self, record_id: int) -> None:
        """The job of a record may begin now."""
        self.rows("UPDATE procrastinate_jobs SET scheduled_at = now() WHERE id = %s", self.job(record_id)["id"])


@pytest.fixture
def jobs(user_database: UserDatabase) -> Iterator[JobQueue]:
    queue = JobQueue(user_database)
    with queue.app:
        yield queue


def test_job_is_enqueued_in_transaction_of_its_change(jobs: JobQueue) -> None:
    editor = jobs.app.caller("editor")
    venue = editor.create("venues", venue="Later", date_utc="2098-01-01 00:00:00")["id"]
    jobs_enqueued = jobs.rows("SELECT task_name, args, scheduled_at::text FROM procrastinate_jobs")
    arguments = {"kind": "venues", "record_id": venue, "site_id": 1}
    assert jobs_enqueued == [{"task_name": "publish", "args": arguments, "scheduled_at": "2098-01-01 00:00:00+00"}]
    rejection = editor.post("/events", {**SAMPLES["events"].body(date_utc="2098-01-01"), "venue": [10**9]})
    assert rejection.status_code == 400
    editor.change("venues", venue, phone="1")
    assert len(jobs.rows("SELECT id FROM procrastinate_jobs")) == 1


def test_failing_job_is_retried_with_backoff_and_can_be_rerun(jobs: JobQueue, tmp_path: Path) -> None:
    broken, waiting = jobs.schedule("Broken"), jobs.schedule("Later")
    jobs.rows(ADD_FAILING_TRIGGER)
    jobs.run_now(broken)
    delays = []
    with Worker.start(jobs.url, tmp_path / "worker.log") as worker:
        for attempts in range(1, 5):
            wait_until(lambda tries=attempts: jobs.job(broken)["attempts"] == tries, WORKER_TIMEOUT)  # type: ignore[misc]
            delays.append(float(jobs.job(broken)["wait"]))
            jobs.run_now(broken)
        assert delays == sorted(delays)
        assert delays[-1] > 4 * delays[0] > 0, delays
        jobs.rows("UPDATE procrastinate_jobs SET attempts = 100 WHERE id = %s", jobs.job(broken)["id"])
        jobs.run_now(broken)
        wait_until(lambda: jobs.job(broken)["status"] == "failed", WORKER_TIMEOUT)

        job_id = str(jobs.job(broken)["id"])
        lines = {line.split()[0]: line for line in run_command(jobs.url, "job", "list").stdout.splitlines()}
        assert re.search(rf"failed +publish .*'record_id': {broken}", lines[job_id]), lines
        failed = run_command(jobs.url, "job", "list", "--status", "failed").stdout.splitlines()
        assert [line.split()[0] for line in failed] == [job_id]
        assert jobs.status(broken) == "future"

        jobs.rows(DROP_FAILING_TRIGGER)
        again = run_command(jobs.url, "job", "retry", job_id)
        assert (again.exit_code, again.output) == (0, f"Job {job_id} runs again.\n")
        wait_until(lambda: jobs.job(broken)["status"] == "done", WORKER_TIMEOUT)
        assert jobs.status(broken) == "publish"
        wait_until(lambda: jobs.status(waiting) == "publish", WORKER_TIMEOUT)
        assert worker.stop() == 0

    lines = [json.loads(line) for line in worker.log.read_text().splitlines()]
    attempts = [line for line in lines if line.get("job") == int(job_id)]
    assert [(line["event"], line["task"], line["attempt"]) for line in attempts] == [
        ("job_failed", "publish", attempt) for attempt in (1, 2, 3, 4, 101)
    ]
    assert all("broken" in line["reason"] and "\n" not in line["reason"] for line in attempts), attempts
    next_tries = [line["next_try"] for line in attempts]
    assert next_tries[-1] is None
    waits = [
        (datetime.fromisoformat(line["next_try"]) - datetime.fromisoformat(line["timestamp"])).total_seconds()
        for line in attempts[:-1]
    ]
    assert [round(wait) for wait in waits] == [2, 4, 8, 16]
    # A record that cannot be published is also found by the search for what is overdue, which logs it on its own.
    assert not [line for line in lines if line.get("level") == "error" and "overdue" not in line["message"]], lines


def test_unknown_job_is_reported_without_traceback(jobs: JobQueue) -> None:
    response = run_command(jobs.url, "job", "retry", "999999")
    assert (response.exit_code, type(response.exception)) == (1, SystemExit), response.exception
    assert "999999" in response.stderr


def test_failing_record_does_not_block_other_publications(jobs: JobQueue, tmp_path: Path) -> None:
    """Their jobs are lost; what finds them is the search for what is overdue."""
    broken = jobs.schedule("Broken")
    jobs.rows("UPDATE venues SET published_at = published_at - interval '1 hour'")
    valid = jobs.schedule("Sound")
    jobs.rows(ADD_FAILING_TRIGGER)
    jobs.rows("DELETE FROM procrastinate_jobs")
    with Worker.start(jobs.url, tmp_path / "worker.log"):
        wait_until(lambda: jobs.status(valid) == "publish", WORKER_TIMEOUT)
    assert jobs.status(broken) == "future"


def test_worker_finishes_current_job_on_sigterm(jobs: JobQueue, tmp_path: Path) -> None:
    venue = jobs.schedule("In hand")
    with Worker.start(jobs.url, tmp_path / "worker.log") as worker, psycopg.connect(jobs.url) as holder:
        # The job waits for the site, which somebody else is writing to.
        holder.execute("SELECT FROM sites WHERE id = 1 FOR UPDATE")
        jobs.run_now(venue)
        wait_until(lambda: jobs.job(venue)["status"] == "doing", WORKER_TIMEOUT)
        worker.process.terminate()
        time.sleep(0.5)
        assert worker.is_running()
        holder.rollback()
        assert worker.stop() == 0
    assert jobs.status(venue) == "publish"
    assert jobs.job(venue)["status"] == "done"
    assert "Traceback" not in worker.log.read_text(), json.dumps(worker.log.read_text()[-2000:])

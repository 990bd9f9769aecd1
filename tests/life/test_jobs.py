"""Background jobs are seen, fail with growing delay, and can be run again."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.api.interface import Interface
from tests.api.samples import SAMPLES
from tests.life.conftest import Place
from tests.life.processes import Worker, run_command, wait_until

PATIENCE = 60  # A worker takes a second to begin, and much longer on a busy machine.
# A record that cannot be published, whatever the reason in real life.
BREAK = """
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.title = 'Broken' AND NEW.status = 'publish' THEN RAISE 'broken'; END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER refuse BEFORE UPDATE ON venues FOR EACH ROW EXECUTE FUNCTION refuse();
"""
REPAIR = "DROP TRIGGER refuse ON venues"


class Jobs:
    """The queue of a site, and an editor who schedules."""

    def __init__(self, place: Place) -> None:
        self.url = place.url
        self.interface = Interface(place.url, place.people)

    def rows(self, text: str, *values: object) -> list[dict[str, Any]]:
        with psycopg.connect(self.url, row_factory=dict_row) as connection:
            cursor = connection.execute(text, values)
            return cursor.fetchall() if cursor.description else []

    def schedule(self, title: str) -> int:
        """A venue that is due at once, and its job."""
        editor = self.interface.caller("editor")
        made: int = editor.create("venues", venue=title, date_utc="2098-01-01 00:00:00")["id"]
        self.rows("UPDATE venues SET published_at = now() - interval '1 minute' WHERE id = %s", made)
        return made

    def job(self, record_id: int) -> dict[str, Any]:
        found = self.rows(
            "SELECT id, status::text, attempts, scheduled_at, extract(epoch FROM scheduled_at - now()) AS wait "
            "FROM procrastinate_jobs WHERE task_name = 'publish' AND (args ->> 'record_id')::bigint = %s",
            record_id,
        )
        return found[0] if found else {"status": "done"}

    def status(self, record_id: int) -> str:
        status: str = self.rows("SELECT status FROM venues WHERE id = %s", record_id)[0]["status"]
        return status

    def hurry(self, record_id: int) -> None:
        """The job of a record may begin now."""
        self.rows("UPDATE procrastinate_jobs SET scheduled_at = now() WHERE id = %s", self.job(record_id)["id"])


@pytest.fixture
def jobs(place: Place) -> Iterator[Jobs]:
    queue = Jobs(place)
    with queue.interface:
        yield queue


def test_a_job_is_made_with_the_change_that_needs_it_and_only_with_it(jobs: Jobs) -> None:
    editor = jobs.interface.caller("editor")
    venue = editor.create("venues", venue="Later", date_utc="2098-01-01 00:00:00")["id"]
    told = jobs.rows("SELECT task_name, args, scheduled_at::text FROM procrastinate_jobs")
    arguments = {"kind": "venues", "record_id": venue, "site_id": 1}
    assert told == [{"task_name": "publish", "args": arguments, "scheduled_at": "2098-01-01 00:00:00+00"}]
    refused = editor.post("/events", {**SAMPLES["events"].body(date_utc="2098-01-01"), "venue": [10**9]})
    assert refused.status_code == 400
    editor.change("venues", venue, phone="1")
    assert len(jobs.rows("SELECT id FROM procrastinate_jobs")) == 1


@pytest.mark.slow
def test_a_failing_job_is_retried_ever_later_then_shown_as_failed_and_run_again(jobs: Jobs, tmp_path: Path) -> None:
    broken, waiting = jobs.schedule("Broken"), jobs.schedule("Later")
    jobs.rows(BREAK)
    jobs.hurry(broken)
    delays = []
    with Worker.start(jobs.url, tmp_path / "worker.log") as worker:
        for tries in range(1, 5):
            wait_until(lambda tries=tries: jobs.job(broken)["attempts"] == tries, PATIENCE)  # type: ignore[misc]
            delays.append(float(jobs.job(broken)["wait"]))
            jobs.hurry(broken)
        assert delays == sorted(delays)
        assert delays[-1] > 4 * delays[0] > 0, delays
        jobs.rows("UPDATE procrastinate_jobs SET attempts = 100 WHERE id = %s", jobs.job(broken)["id"])
        jobs.hurry(broken)
        wait_until(lambda: jobs.job(broken)["status"] == "failed", PATIENCE)

        job_id = str(jobs.job(broken)["id"])
        lines = {line.split()[0]: line for line in run_command(jobs.url, "jobs").stdout.splitlines()}
        assert re.search(rf"failed +publish .*'record_id': {broken}", lines[job_id]), lines
        failed = run_command(jobs.url, "jobs", "--status", "failed").stdout.splitlines()
        assert [line.split()[0] for line in failed] == [job_id]
        assert jobs.status(broken) == "future"

        jobs.rows(REPAIR)
        again = run_command(jobs.url, "jobs", "retry", job_id)
        assert (again.exit_code, again.output) == (0, "")
        wait_until(lambda: jobs.job(broken)["status"] == "done", PATIENCE)
        assert jobs.status(broken) == "publish"
        wait_until(lambda: jobs.status(waiting) == "publish", PATIENCE)
        assert worker.stop() == 0


def test_a_job_that_is_not_there_is_a_sentence_not_a_traceback(jobs: Jobs) -> None:
    answer = run_command(jobs.url, "jobs", "retry", "999999")
    assert (answer.exit_code, type(answer.exception)) == (1, SystemExit), answer.exception
    assert "999999" in answer.stderr


@pytest.mark.slow
def test_a_record_that_cannot_be_published_does_not_keep_others_waiting(jobs: Jobs, tmp_path: Path) -> None:
    """Their jobs are lost; what finds them is the search for what is overdue."""
    broken = jobs.schedule("Broken")
    jobs.rows("UPDATE venues SET published_at = published_at - interval '1 hour'")
    sound = jobs.schedule("Sound")
    jobs.rows(BREAK)
    jobs.rows("DELETE FROM procrastinate_jobs")
    with Worker.start(jobs.url, tmp_path / "worker.log"):
        wait_until(lambda: jobs.status(sound) == "publish", PATIENCE)
    assert jobs.status(broken) == "future"


@pytest.mark.slow
def test_a_worker_finishes_the_job_in_hand_when_it_is_told_to_stop(jobs: Jobs, tmp_path: Path) -> None:
    venue = jobs.schedule("In hand")
    with Worker.start(jobs.url, tmp_path / "worker.log") as worker, psycopg.connect(jobs.url) as holder:
        # The job waits for the site, which somebody else is writing to.
        holder.execute("SELECT FROM sites WHERE id = 1 FOR UPDATE")
        jobs.hurry(venue)
        wait_until(lambda: jobs.job(venue)["status"] == "doing", PATIENCE)
        worker.process.terminate()
        time.sleep(0.5)
        assert worker.is_running()
        holder.rollback()
        assert worker.stop() == 0
    assert jobs.status(venue) == "publish"
    assert jobs.job(venue)["status"] == "done"
    assert "Traceback" not in worker.log.read_text(), json.dumps(worker.log.read_text()[-2000:])

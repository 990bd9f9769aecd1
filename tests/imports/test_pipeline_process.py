"""Commands of imports, and a process that is killed while it applies a plan."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.imports.feed_server import make_calendar, serve_feed
from tests.imports.site import Subscription, event
from tests.lifecycle.processes import Worker, run_command, wait_until
from tests.servers import make_environment

EVENTS = 300


def count(app: RunningApp, text: str) -> int:
    return int(app.sql(text)[0][0])


def test_a_killed_process_is_continued(start_single_site: StartApp):
    app = start_single_site()
    feed = Subscription.add(app)
    run_id = feed.plan(*[event(f"k{number}@x", f"Killed {number}") for number in range(EVENTS)])
    process = subprocess.Popen(
        [sys.executable, "-m", "kalends", "import", "apply", str(run_id)],
        env=make_environment(app.database_url),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    applied = "SELECT count(*) FROM import_rows WHERE state = 'applied'"
    deadline = time.monotonic() + 60
    while count(app, applied) == 0 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = count(app, applied)
    assert 0 < done < EVENTS
    assert count(app, "SELECT count(*) FROM events WHERE title LIKE 'Killed %'") == done
    assert feed.state(run_id) == "applying"
    result = run_command(app.database_url, "import", "apply", str(run_id))
    assert f"Run {run_id}: 300 rows applied, 0 failed, 0 waiting." in result.output
    assert count(app, "SELECT count(*) FROM events WHERE title LIKE 'Killed %'") == EVENTS
    assert count(app, "SELECT count(DISTINCT record_id) FROM import_items") == EVENTS
    assert count(app, "SELECT count(*) FROM changes WHERE kind = 'events'") == EVENTS


def test_commands(start_single_site: StartApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_COLOR", "1")
    app = start_single_site()
    url = app.database_url
    path = tmp_path / "programme.ics"
    path.write_bytes(make_calendar(["First", "Second"]))
    result = run_command(url, "import", str(path), "--status", "publish")
    assert "Run 1: planned. 2 new" in result.output
    assert "Apply this plan with `kalends import apply 1`." in result.output
    assert count(app, "SELECT count(*) FROM events") == 0
    result = run_command(url, "import", "--apply", str(path))
    assert "Run 2: 2 rows applied, 0 failed, 0 waiting." in result.output
    assert count(app, "SELECT count(*) FROM events WHERE status = 'publish'") == 2
    assert "Nothing to do." in run_command(url, "import", str(path)).output
    path.write_bytes(make_calendar(["First", "Other"]))
    assert "title: Second → Other" in run_command(url, "import", str(path), "--apply").output
    listed = run_command(url, "import", "list").output
    assert "programme.ics" in listed
    assert "discarded" in listed
    assert "title: Second → Other" in run_command(url, "import", "show", "4").output
    refused = run_command(url, "import", "undo", "4", answers="n\n")
    assert refused.exit_code == 1
    result = run_command(url, "import", "undo", "4", "--yes")
    assert "1 rows applied" in result.output
    assert count(app, "SELECT count(*) FROM events WHERE title = 'Second'") == 1


def test_the_worker_fetches_what_is_due(start_single_site: StartApp, tmp_path: Path):
    app = start_single_site()
    with serve_feed(make_calendar(["Fetched by the worker"])) as feed:
        subscription = Subscription.add(app, url=feed.url, interval_minutes=60)
        app.sql("UPDATE import_sources SET next_run_at = now()")
        settings = {"KALENDS_FETCH_ALLOWED_NETWORKS": feed.network, "KALENDS_MEDIA_DIR": str(tmp_path / "media")}
        with Worker.start(app.database_url, tmp_path / "worker.log", settings) as worker:
            published = "SELECT count(*) FROM events WHERE title = 'Fetched by the worker' AND status = 'publish'"
            wait_until(lambda: count(app, published) == 1, 120)
            wait_until(lambda: subscription.state(1) == "applied", 30)
            assert worker.is_running()


def test_an_address_becomes_a_subscription(start_single_site: StartApp):
    app = start_single_site()
    with serve_feed(make_calendar(["Remote"])) as feed:
        settings = {"KALENDS_FETCH_ALLOWED_NETWORKS": feed.network}
        result = run_command(
            app.database_url, "import", feed.url, "--apply", "--every", "60", "--owner", "editor", settings=settings
        )
        assert "1 rows applied" in result.output, result.output
    row = app.sql("SELECT interval_minutes, next_run_at IS NOT NULL AS is_scheduled, owner_id FROM import_sources")[0]
    assert tuple(row) == (60, True, app.users["editor"].id)
    refused = run_command(app.database_url, "import", "https://me:secret@feed.example/x.ics")
    assert refused.exit_code == 1
    assert "user name or a password" in refused.output
    assert "secret" not in refused.output

"""`kalends serve`: a port belongs to one server unless both share it; a missing worker is named."""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from kalends.http import health
from kalends.store.database import Database, Options
from tests.api.running_app import RunningApp
from tests.lifecycle.processes import Worker, run_command, wait_until
from tests.servers import Server, find_free_port, make_environment


def test_second_server_on_a_port_is_refused(database_url: str, start_server: Callable[..., Server]) -> None:
    server = start_server(database_url)
    port = server.base_url.rpartition(":")[2]
    refused = run_command(database_url, "serve", "--port", port)
    assert (refused.exit_code, refused.stderr) == (1, f"Port {port} is already in use.\n")
    metrics = run_command(database_url, "serve", "--port", "1", settings={"KALENDS_METRICS_PORT": port})
    assert metrics.exit_code == 1
    elsewhere = run_command(database_url, "serve", "--host", "192.0.2.1")
    assert (elsewhere.exit_code, elsewhere.stderr) == (1, "192.0.2.1 is not an address of this machine.\n")
    # With the option, two servers share the port, as before.
    command = [sys.executable, "-m", "kalends", "serve", "--port", port, "--reuse-port"]
    environment = make_environment(database_url)
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as second:
        try:
            assert second.stderr is not None
            lines = iter(second.stderr.readline, "")
            # A worker that is still starting would ignore the signal, and the server would wait 30 seconds for it.
            assert any("Started worker" in line for line in lines)
            time.sleep(0.5)
        finally:
            second.terminate()


def test_port_is_free_again_after_connections_were_closed(database_url: str) -> None:
    """Connections in TIME_WAIT must not delay a restart."""
    from kalends.commands.serve_commands import check_port

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = listener.accept()
        accepted.close()  # This side closes first, so it waits.
        client.close()
    check_port("127.0.0.1", port)


# Worker ---------------------------------------------------------------------------------------


def set_heartbeat(url: str, seconds: int) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("DELETE FROM procrastinate_workers")
        connection.execute(
            "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - make_interval(secs => %s))", [seconds]
        )


def test_missing_worker_is_logged_once(database_url: str, caplog: pytest.LogCaptureFixture) -> None:
    async def watch() -> list[str]:
        database = await Database.open(Options(url=database_url))
        watching = health.WorkerWatch(database, max_age=0.3)
        assert await watching.find_warning() == ""  # It may be about to start.
        task = asyncio.create_task(watching.run(interval=0.05))
        try:
            await asyncio.sleep(1)
            await asyncio.to_thread(set_heartbeat, database_url, -3600)
            await asyncio.sleep(0.5)
        finally:
            task.cancel()
            await database.close()
        return [record.getMessage() for record in caplog.records if record.name == "kalends.http.health"]

    missing, back = asyncio.run(watch())
    assert missing.startswith("no worker is running: nothing is published on schedule")
    assert back == "a worker is running again"


def test_readiness_names_a_missing_worker(
    start_app: Callable[..., RunningApp], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health.WorkerWatch.__init__, "__kwdefaults__", {"max_age": 0.0})
    app = start_app()
    url = "http://calendar.test/readyz"
    response = app.caller().get(url)
    assert response.status_code == 200
    assert response.text.startswith("ready\nWarning: no worker is running: nothing is published on schedule")
    set_heartbeat(app.database_url, 90)
    assert "Warning: no worker has been seen for 9" in app.caller().get(url).text


def test_job_list_summarizes_and_names_the_worker(database_url: str, tmp_path: Path) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(
            """INSERT INTO procrastinate_jobs (queue_name, task_name, args, scheduled_at)
                SELECT 'elsewhere', 'make_sizes', '{}', now() - interval '31 minutes' FROM generate_series(1, 11)"""
        )
        connection.execute(
            """INSERT INTO procrastinate_jobs (queue_name, task_name, args, scheduled_at, status) VALUES
                ('elsewhere', 'publish', '{}', NULL, 'todo'),
                ('elsewhere', 'publish', '{}', now() + interval '1 day', 'todo'),
                ('elsewhere', 'publish', '{}', NULL, 'failed')"""
        )
    listed = run_command(database_url, "job", "list").stdout.splitlines()
    assert len(listed) == 15
    assert listed[-1] == "12 waiting, oldest 31 min; 1 scheduled; 1 failed; no worker seen"
    assert len(run_command(database_url, "job", "list", "--status", "failed").stdout.splitlines()) == 1
    wrong = run_command(database_url, "job", "list", "--status", "foo")
    assert (wrong.exit_code, wrong.stderr) == (1, "--status must be todo, doing or failed.\n")

    def summary() -> str:
        return run_command(database_url, "job", "list").stdout.splitlines()[-1]

    with Worker.start(database_url, tmp_path / "worker.log") as worker:
        wait_until(lambda: "; worker seen " in summary(), 60, step=0.5)
        assert worker.stop() == 0
    assert summary().endswith("; no worker seen")


def test_worker_explains_an_unreachable_database(tmp_path: Path) -> None:
    port = find_free_port()
    with Worker.start(f"postgresql://x:s3cret@127.0.0.1:{port}/x", tmp_path / "worker.log") as worker:
        wait_until(lambda: "Cannot reach PostgreSQL at" in worker.log.read_text(), 60, step=0.2)
        assert worker.stop() == 0
    assert "s3cret" not in worker.log.read_text()

"""Processes that are killed: workers of a server, a whole PostgreSQL."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.servers import Server, find_free_port, make_environment
from tools import postgres


def list_children(pid: int) -> list[int]:
    """Oldest first."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def kill_oldest_worker(server: Server) -> None:
    os.kill(list_children(server.process.pid)[0], signal.SIGKILL)


def count_started_workers(server: Server) -> int:
    """Count the log lines of this event since the start of the server."""
    return server.read_log().count("Started worker-")


def kill_cluster(cluster: postgres.Server) -> None:
    """All processes of PostgreSQL at once, as if the machine had stopped."""
    for pid in (cluster.pid, *list_children(cluster.pid)):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def restart_cluster(
    cluster: postgres.Server, timeout: float = 30, settings: Mapping[str, str] = postgres.PERSISTENT
) -> postgres.Server:
    """Its shared memory is free only when the last of the killed processes is gone."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return postgres.start(cluster.directory, port=cluster.port, settings=settings)
        except postgres.PostgresError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


@contextmanager
def launch_server(database_url: str, log: Path, environment: Mapping[str, str]) -> Iterator[Server]:
    """A server that is not waited for, because its database is away."""
    port = find_free_port()
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "kalends", "serve", "--port", str(port)],
            env=make_environment(database_url, environment),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    with Server(process, f"http://127.0.0.1:{port}", log) as server:
        yield server

"""The server and the worker."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Annotated

import typer

from kalends.cli.runtime import load_settings
from kalends.core.http_limits import MAX_HEAD_BYTES
from kalends.settings import Settings
from kalends.store import login_failures

# Connections that one process holds; beyond them clients wait in the backlog of the kernel.
CONNECTIONS = 8192
# Milliseconds for a request head; also the time for which an idle connection is kept open.
HEAD_TIMEOUT = 5000


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8000,
    workers: Annotated[int, typer.Option(help="Number of processes.", min=1)] = 1,
    with_worker: Annotated[bool, typer.Option("--with-worker", help="Do background work too.")] = False,
) -> None:
    """Answer requests until told to stop; running requests are finished first."""
    settings = load_settings()
    directory = tempfile.mkdtemp(prefix="kalends-metrics-") if settings.metrics_port else ""
    if directory:
        # Read by the metrics library when it is first imported, here and in each worker.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = directory
        _serve_metrics(settings)
    if rights := asyncio.run(login_failures.find_excess_rights(settings.database_url)):
        why = f"Warning: the login of KALENDS_DATABASE_URL {rights}; see docs/decisions/0011-login-role.md."
        typer.echo(why, err=True)
    if not settings.base_url:
        why = "links contain the host that each request names, unless the site has its own base_url."
        typer.echo(f"Warning: KALENDS_BASE_URL is not set; {why}", err=True)
    helper = subprocess.Popen([sys.executable, "-m", "kalends", "worker"]) if with_worker else None
    try:
        _run_server(host, port, workers)
    finally:
        if helper is not None:
            helper.terminate()
            helper.wait(30)
        if directory:
            shutil.rmtree(directory, ignore_errors=True)


def worker() -> None:
    """Do background work until told to stop: scheduled publication, emptying the trash."""
    from kalends.worker import work

    asyncio.run(work(load_settings()))


def _run_server(host: str, port: int, workers: int) -> None:
    import resource

    from granian import Granian
    from granian.constants import HTTPModes, Interfaces
    from granian.http import HTTP1Settings

    # Each connection is an open file; the usual soft limit of 1,024 would stop the server before its own limit does.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    Granian(
        target="kalends.asgi:create_application",
        factory=True,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        workers=workers,
        log_access=False,
        # HTTP/2 without TLS has no user, and the detection of the version waits for the first byte without limit.
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=HEAD_TIMEOUT, max_buffer_size=MAX_HEAD_BYTES),
        websockets=False,
        backlog=2048,
        backpressure=CONNECTIONS,
        workers_kill_timeout=30,
        respawn_failed_workers=True,
    ).serve()


def _serve_metrics(settings: Settings) -> None:
    from prometheus_client import CollectorRegistry, start_http_server
    from prometheus_client.multiprocess import MultiProcessCollector

    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    start_http_server(settings.metrics_port, settings.metrics_host, registry)

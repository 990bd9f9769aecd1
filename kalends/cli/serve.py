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
from kalends.store import login_rights

# Connections that one process holds; beyond them clients wait in the backlog of the kernel.
MAX_CONNECTIONS = 8192
# Milliseconds for a request head; also the time for which an idle connection is kept open.
HEAD_TIMEOUT_MS = 5000


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8000,
    workers: Annotated[int, typer.Option(help="Number of processes.", min=1)] = 1,
    with_worker: Annotated[bool, typer.Option("--with-worker", help="Do background work too.")] = False,
) -> None:
    """Answer requests until told to stop; running requests are finished first."""
    settings = load_settings()
    metrics_directory = tempfile.mkdtemp(prefix="kalends-metrics-") if settings.metrics_port else ""
    if metrics_directory:
        # Read by the metrics library when it is first imported, here and in each worker.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = metrics_directory
        _serve_metrics(settings)
    if rights := asyncio.run(login_rights.find_excess_rights(settings.database_url)):
        warning = f"Warning: the login of KALENDS_DATABASE_URL {rights}; see docs/decisions/0011-login-role.md."
        typer.echo(warning, err=True)
    if not settings.base_url:
        warning = "links contain the host that each request names, unless the site has its own base_url."
        typer.echo(f"Warning: KALENDS_BASE_URL is not set; {warning}", err=True)
    worker_process = subprocess.Popen([sys.executable, "-m", "kalends", "worker"]) if with_worker else None
    try:
        _run_server(host, port, workers)
    finally:
        if worker_process is not None:
            worker_process.terminate()
            worker_process.wait(30)
        if metrics_directory:
            shutil.rmtree(metrics_directory, ignore_errors=True)


def worker() -> None:
    """Do background work until told to stop: scheduled publication, emptying the trash."""
    from kalends.worker import run_worker

    asyncio.run(run_worker(load_settings()))


def _run_server(host: str, port: int, workers: int) -> None:
    import resource

    from granian import Granian
    from granian.constants import HTTPModes, Interfaces
    from granian.http import HTTP1Settings

    # Each connection is an open file; the usual soft limit of 1,024 would stop the server before its own limit does.
    hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
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
        http1_settings=HTTP1Settings(header_read_timeout=HEAD_TIMEOUT_MS, max_buffer_size=MAX_HEAD_BYTES),
        websockets=False,
        backlog=2048,
        backpressure=MAX_CONNECTIONS,
        workers_kill_timeout=30,
        respawn_failed_workers=True,
    ).serve()


def _serve_metrics(settings: Settings) -> None:
    from prometheus_client import CollectorRegistry, start_http_server
    from prometheus_client.multiprocess import MultiProcessCollector

    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    start_http_server(settings.metrics_port, settings.metrics_host, registry)

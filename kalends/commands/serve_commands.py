"""Commands for the server, the worker and migrations."""

import asyncio
import errno
import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from kalends.cli.command_errors import describe, fail
from kalends.cli.runtime import CellOption, check_extras, load_cell, load_settings
from kalends.core.limits import MAX_HEAD_BYTES

if TYPE_CHECKING:
    from kalends.settings import Settings

log = logging.getLogger(__name__)

# Maximum connections per process; additional clients wait in the kernel's backlog.
MAX_CONNECTIONS = 8192
# Milliseconds to wait for a request head, and before closing an idle connection.
HEAD_TIMEOUT_MS = 5000


def serve(
    host: Annotated[str, typer.Option(help="IP address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8000,
    workers: Annotated[int, typer.Option(help="Number of server processes.", min=1)] = 1,
    with_worker: Annotated[bool, typer.Option("--with-worker", help="Also run background jobs.")] = False,
    reuse_port: Annotated[
        bool, typer.Option("--reuse-port", help="Share the port with other servers that use this option.")
    ] = False,
) -> None:
    """Run the HTTP server. On SIGTERM, it finishes running requests before it stops."""
    settings = load_settings()
    check_extras(settings)
    if with_worker and settings.directory_url:
        fail("--with-worker is for one database. Run `kalends worker --cell NAME` for each cell.")
    if not reuse_port:
        check_port(host, port)
    with _metrics_directory(settings):
        for warning in asyncio.run(_find_warnings(settings)):
            log.warning("%s", warning)
        worker_process = _start_worker() if with_worker else None
        try:
            _run_server(settings, host, port, workers)
        finally:
            if worker_process is not None:
                worker_process.terminate()
                worker_process.wait(30)


@contextmanager
def _metrics_directory(settings: "Settings") -> Iterator[None]:
    """Serve metrics during the block, if they have a port."""
    if not settings.metrics_port:
        yield
        return
    check_port(settings.metrics_host, settings.metrics_port)
    directory = tempfile.mkdtemp(prefix="kalends-metrics-")
    _serve_metrics(settings, directory)
    try:
        yield
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def stream(
    host: Annotated[str, typer.Option(help="IP address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8001,
    reuse_port: Annotated[
        bool, typer.Option("--reuse-port", help="Share the port with other servers that use this option.")
    ] = False,
) -> None:
    """Serve live lists: streams of changes to lists of events, venues, organizers, categories and tags."""
    settings = load_settings()
    check_extras(settings)
    if not reuse_port:
        check_port(host, port)
    settings = settings.model_copy(update={"metrics_port": settings.stream_metrics_port})
    with _metrics_directory(settings):
        _run_server(settings, host, port, 1, target="kalends.stream:create_stream_application", stop_seconds=5)


def worker(cell: CellOption = "") -> None:
    """Run background jobs."""
    from kalends.worker import run_worker

    settings = load_cell(cell)
    check_extras(settings)
    if settings.worker_metrics_port:
        from kalends.adapters.metrics import serve_metrics
        from kalends.calendar.operations.site_metrics import make_queue_reader

        check_port(settings.metrics_host, settings.worker_metrics_port)
        read_state = make_queue_reader(settings.queue_url or settings.database_url, cell)
        serve_metrics(settings.metrics_host, settings.worker_metrics_port, read_state)
    asyncio.run(run_worker(settings))


def _start_worker() -> subprocess.Popen[bytes]:
    from kalends.adapters.metrics import without_directory

    return subprocess.Popen([sys.executable, "-m", "kalends", "worker"], env=without_directory(os.environ))


async def _find_warnings(settings: "Settings") -> list[str]:
    """Return configuration warnings. The server starts anyway, even without a database."""
    warnings: list[str] = []
    for cell, member in settings.members.items():
        where = f"cell {cell}: " if cell else ""
        warnings += [where + warning for warning in await _find_database_warnings(member)]
    if not settings.base_url:
        consequence = "links use the Host header of each request unless the site has its own base_url."
        warnings.append(f"KALENDS_BASE_URL is not set; {consequence}")
    return warnings


async def _find_database_warnings(settings: "Settings") -> list[str]:
    from kalends.commands.check_commands import judge_time
    from kalends.store import checks, problems
    from kalends.store.migrations import newest_revision

    warnings: list[str] = []
    try:
        found = await problems.read_schema_version(settings.database_url)
    except problems.DatabaseUnavailable as error:
        warnings.append(error.detail)
    else:
        if problem := problems.compare_schema(found, newest_revision()):
            warnings.append(problem.detail)
        with suppress(problems.DatabaseUnavailable, *problems.DRIVER_ERRORS):
            facts = await checks.read_facts(settings.database_url)
            warnings += [f"{finding.text} {finding.cure}" for finding in judge_time(facts) if finding.cure]
        if rights := await checks.find_excess_rights(settings.database_url):
            warnings.append(f"the login of KALENDS_DATABASE_URL {rights}; see docs/decisions/0011-login-role.md.")
    return warnings


def check_port(host: str, port: int) -> None:
    """Exit with a message if the server cannot listen on the address.

    Server processes share a port (SO_REUSEPORT), so a second server would start without an error and receive some of
    the requests.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # ignore closed connections
        try:
            probe.bind((host, port))
        except OSError as error:
            reasons = {
                errno.EADDRINUSE: f"Port {port} is already in use.",
                errno.EACCES: f"Port {port} needs more rights than this user has.",
                errno.EADDRNOTAVAIL: f"{host} is not an address of this machine.",
            }
            fail(reasons.get(error.errno or 0, f"Cannot listen on {host}, port {port}: {error.strerror}."))


def _run_server(
    settings: "Settings",
    host: str,
    port: int,
    workers: int,
    *,
    target: str = "kalends.asgi:create_server_application",
    stop_seconds: int = 30,
) -> None:
    import resource

    from granian import Granian
    from granian.constants import HTTPModes, Interfaces
    from granian.http import HTTP1Settings

    from kalends.bootstrap import logging_config

    # Each connection is an open file, and the usual soft limit of 1,024 is far below MAX_CONNECTIONS.
    hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    Granian(
        target=target,
        factory=True,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        workers=workers,
        log_access=False,
        log_dictconfig=logging_config(settings.log_format),
        # Without TLS, clients do not use HTTP/2, and the server would wait for the first byte indefinitely to detect
        # the version.
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=HEAD_TIMEOUT_MS, max_buffer_size=MAX_HEAD_BYTES),
        websockets=False,
        backlog=2048,
        backpressure=MAX_CONNECTIONS,
        workers_kill_timeout=stop_seconds,
        respawn_failed_workers=True,
    ).serve()


def _serve_metrics(settings: "Settings", directory: str) -> None:
    """Serve metrics for the database and for all server processes, which share a directory."""
    from kalends.adapters.metrics import DIRECTORY_VARIABLE, serve_metrics
    from kalends.calendar.operations.site_metrics import make_server_reader

    urls = {cell: member.database_url for cell, member in settings.members.items()}
    # The metrics library reads this variable when it is imported, here and in each server process.
    os.environ[DIRECTORY_VARIABLE] = directory
    read_state = make_server_reader(urls, settings.directory_url)
    serve_metrics(settings.metrics_host, settings.metrics_port, read_state)


def migrate(
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; exit with status 1 if the schema is not up to date.")
    ] = False,
    cell: CellOption = "",
) -> None:
    """Upgrade the database schema. Safe to run concurrently."""
    settings = load_settings()
    if not settings.directory_url or cell:
        _migrate_database(load_cell(cell), check=check)
        return
    from kalends.fleet.storage import directory

    if not check:
        asyncio.run(directory.apply_schema(settings.directory_url))
        typer.echo("The directory is up to date.")
    # If the migration fails in one cell, the remaining cells keep their schema.
    for name, member in settings.members.items():
        started = time.monotonic()
        try:
            _migrate_database(member, check=check, prefix=f"{name}: ")
        except Exception as error:
            fail(f"{name}: {describe(error)}")
        if not check:
            typer.echo(f"{name}: done in {time.monotonic() - started:.1f} s.")


def _migrate_database(settings: "Settings", *, check: bool, prefix: str = "") -> None:
    from kalends.store import problems
    from kalends.store.migrations import list_revisions, migrate as run_migrations, newest_revision

    # Read the version first: if this fails, the error explains why the database cannot be reached.
    found = asyncio.run(problems.read_schema_version(settings.owner_url))
    if check:
        pending = len([revision for revision in list_revisions() if revision > found.number])
        if problem := problems.compare_schema(found, newest_revision()):
            typer.echo(f"{prefix}{problem.detail} Pending migrations: {pending}.")
            raise typer.Exit(1)
        state = problems.describe_newer(found, newest_revision()) or f"up to date ({found.number})"
        typer.echo(f"{prefix}The schema is {state}.")
        return
    try:
        run_migrations(
            settings.owner_url,
            server_url=settings.database_url,
            queue_url=settings.queue_url,
            report=lambda line: typer.echo(prefix + line),
        )
    except Exception as error:
        if problem := problems.explain_migration(error):
            raise problems.DatabaseUnavailable(problem) from error
        raise

"""The commands: migrate, serve, user, password, site, media, seed."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from kalends.app import database_options, open_library
from kalends.core import times
from kalends.core.errors import Invalid, Refusal
from kalends.operations import administration, timezones
from kalends.operations.library import Library
from kalends.settings import Settings, WrongSettings, read_settings
from kalends.store import logins, sites
from kalends.store.database import Database, Transaction
from kalends.store.migrations import migrate as run_migrations
from kalends.web.exchange import utc_now

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Kalends, a calendar-events server.",
)
user = typer.Typer(no_args_is_help=True, help="Accounts.")
password = typer.Typer(no_args_is_help=True, help="Application passwords, with which clients sign in.")
site = typer.Typer(no_args_is_help=True, help="Settings of the site.")
job = typer.Typer(help="Background jobs.")
media = typer.Typer(no_args_is_help=True, help="Images.")
zones = typer.Typer(no_args_is_help=True, help="The zone database.")
app.add_typer(user, name="user")
app.add_typer(password, name="password")
app.add_typer(site, name="site")
app.add_typer(job, name="jobs")
app.add_typer(zones, name="timezones")
app.add_typer(media, name="media")

Host = Annotated[str, typer.Option("--host-name", help="Host of the site; needed where there are several.")]


def main() -> None:
    app()


@app.command()
def migrate() -> None:
    """Bring the database to the current schema. Safe to run twice at once."""
    settings = _settings()
    run_migrations(settings.owner_url, server_url=settings.database_url, queue_url=settings.queue_url)


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8000,
    workers: Annotated[int, typer.Option(help="Number of processes.", min=1)] = 1,
    with_worker: Annotated[bool, typer.Option("--with-worker", help="Do background work too.")] = False,
) -> None:
    """Answer requests until told to stop; running requests are finished first."""
    settings = _settings()
    directory = tempfile.mkdtemp(prefix="kalends-metrics-") if settings.metrics_port else ""
    if directory:
        # Read by the metrics library when it is first imported, here and in each worker.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = directory
        _serve_metrics(settings)
    if rights := asyncio.run(logins.find_excess_rights(settings.database_url)):
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


@user.command("add")
def add_user(
    login: str,
    role: Annotated[str, typer.Option(help="subscriber, contributor, author, editor or administrator.")],
    email: Annotated[str, typer.Option(help="E-mail address; can be used to sign in too.")] = "",
    host_name: Host = "",
) -> None:
    """Add an account and print its ID."""
    typer.echo(_run(host_name, lambda tx: administration.add_user(tx, login, role, email)))


@user.command("list")
def list_users(host_name: Host = "") -> None:
    """Show all accounts."""
    for row in _run(host_name, administration.list_users):
        typer.echo(f"{row['id']:>6}  {row['role']:<14} {row['login']}  {row['email']}")


@user.command("role")
def set_role(login: str, role: str, host_name: Host = "") -> None:
    """Give an account another role."""
    _run(host_name, lambda tx: administration.set_role(tx, login, role))


@user.command("password")
def set_password(login: str, host_name: Host = "") -> None:
    """Set the password of an account; it is asked for, or read from standard input."""
    secret = typer.prompt("Password", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    _run(host_name, lambda tx: administration.set_account_password(tx, login, secret))


@password.command("add")
def add_password(
    login: str,
    name: str,
    read_only: Annotated[bool, typer.Option("--read-only", help="It may read, and nothing else.")] = False,
    host_name: Host = "",
) -> None:
    """Make an application password and print it. It is shown only now."""
    typer.echo(
        _run(host_name, lambda tx: administration.add_application_password(tx, login, name, read_only=read_only))
    )


@password.command("list")
def list_passwords(login: str, host_name: Host = "") -> None:
    """Show the application passwords of an account: name, made, last used."""
    for row in _run(host_name, lambda tx: administration.list_application_passwords(tx, login)):
        used = f"{row['last_used_at']:%Y-%m-%d %H:%M}" if row["last_used_at"] else "never"
        typer.echo(f"{row['name']:<30} made {row['created_at']:%Y-%m-%d}  last used {used}")


@password.command("log")
def show_uses(login: str, host_name: Host = "") -> None:
    """Show when and from where the application passwords of an account were used, by the hour."""
    for row in _run(host_name, lambda tx: administration.list_uses(tx, login)):
        typer.echo(f"{row['at']:%Y-%m-%d %H}h  {row['name']:<30} {row['address']:<40} {row['agent']}")


@password.command("revoke")
def revoke_password(login: str, name: str, host_name: Host = "") -> None:
    """Make an application password useless at once."""
    _run(host_name, lambda tx: administration.revoke_application_password(tx, login, name))


@site.command("show")
def show_site(host_name: Host = "") -> None:
    """Show the settings of the site."""
    for key, value in _run(host_name, administration.show_site).items():
        typer.echo(f"{key:<18} {value}")


@site.command("set")
def set_site(key: str, value: str, host_name: Host = "") -> None:
    """Change one setting of the site."""
    _run(host_name, lambda tx: administration.set_site(tx, key, value))


@site.command("add")
def add_site(host_name: str, name: Annotated[str, typer.Option(help="Name of the site.")] = "Kalends") -> None:
    """Add a site that answers to a host, and print its ID. The first site needs a host then, too."""
    typer.echo(asyncio.run(sites.add_site(_settings().owner_url, host_name, name)))


@site.command("host")
def add_host(new_host: str, site_id: Annotated[int, typer.Option(help="ID of the site.")] = 1) -> None:
    """Let a site answer to one more host."""
    asyncio.run(sites.add_host(_settings().owner_url, new_host, site_id))


@zones.command("refresh")
def refresh_zones(host_name: Host = "") -> None:
    """Derive the instants of all events again, after an update of the zone database."""
    typer.echo(f"tzdata {times.tzdata_version()}")
    moved = [event for event in _wait(_refresh_zones(host_name)) if event.new_utc > utc_now()]
    for event in moved:
        typer.echo(
            f"{event.event_id:>8}  {event.start_local} {event.timezone}: "
            f"{event.old_utc:%Y-%m-%d %H:%M}Z -> {event.new_utc:%Y-%m-%d %H:%M}Z  {event.title}"
        )
    typer.echo(f"{len(moved)} future events moved.")


async def _refresh_zones(host_name: str) -> list[timezones.Moved]:
    """Looks without a lock, page by page; writes what differs in small transactions."""
    database = await Database.open(database_options(_settings()))
    moved: list[timezones.Moved] = []
    after: int | None = 0
    try:
        async with database.transaction(host_name, utc_now(), writing=False) as tx:
            total = await timezones.count_events(tx)
        with Progress(*Progress.get_default_columns(), console=Console(stderr=True)) as progress:
            task = progress.add_task("events", total=total)
            while after is not None:
                async with database.transaction(host_name, utc_now(), writing=False) as tx:
                    after, differing = await timezones.find_moved(tx, after)
                for at in range(0, len(differing), 500):
                    async with database.transaction(host_name, utc_now(), writing=True) as tx:
                        moved += await timezones.move_events(tx, differing[at : at + 500])
                progress.advance(task, timezones.PAGE)
    finally:
        await database.close()
    return moved


@media.command("add")
def add_media(
    directory: Annotated[Path, typer.Argument(help="Directory with images; those below it count too.", exists=True)],
    login: Annotated[str, typer.Option(help="The account that the images will belong to.")],
    host_name: Host = "",
) -> None:
    """Add all images of a directory. Those that are there already are left out, so it can be repeated."""
    from kalends.operations import importing

    paths = sorted(path for path in directory.rglob("*") if path.is_file() and not path.name.startswith("."))
    began = time.monotonic()

    async def add(database: Database, library: Library) -> importing.Added:
        with _progress() as told:
            return await importing.add_files(
                database,
                library,
                paths,
                site=host_name,
                login=login,
                told=lambda done: told("images", done, len(paths)),
            )

    added: importing.Added = _wait(_with_library(add))
    for path, why in added.refused:
        typer.echo(f"{path}: {why}", err=True)
    took = time.monotonic() - began
    typer.echo(
        f"Added {added.added:,} images in {took:.1f} s; {added.known:,} were there already, "
        f"{len(added.refused):,} are refused."
    )
    if added.refused:
        raise typer.Exit(1)


@media.command("check")
def check_media(host_name: Host = "") -> None:
    """Compare every file with its name, which is its hash, and make damaged or missing sizes again."""
    from kalends.operations import filekeeping

    async def check(database: Database, library: Library) -> list[filekeeping.Checked]:
        async with database.transaction(host_name, utc_now(), writing=False) as tx:
            total = await filekeeping.count_images(tx)
        found: list[filekeeping.Checked] = []
        with _progress() as told:
            async for entry in filekeeping.check_media(database, library, host_name, utc_now()):
                found.append(entry)
                told("images", len(found), total)
        return found

    found: list[filekeeping.Checked] = _wait(_with_library(check))
    for entry in found:
        if entry.why:
            typer.echo(f"image {entry.media_id}: {len(entry.wrong)} files wrong, {entry.why}")
    lost = [entry for entry in found if not entry.whole]
    files, wrong = sum(entry.files for entry in found), sum(len(entry.wrong) for entry in found)
    typer.echo(f"{len(found):,} images, {files:,} files, {wrong:,} of them wrong; {len(lost):,} images not whole.")
    if lost:
        raise typer.Exit(1)


async def _with_library(work: Callable[[Database, Library], Awaitable[Any]]) -> Any:
    settings = _settings()
    database = await Database.open(database_options(settings))
    try:
        return await work(database, open_library(settings, at_once=os.cpu_count()))
    finally:
        await database.close()


@app.command("seed")
def make_up_records(
    *,
    events: Annotated[int, typer.Option(help="How many events.", min=0)] = 1000,
    upcoming: Annotated[str, typer.Option(help="How many of them from today on: a number, 0.05 or 5%.")] = "",
    venues: Annotated[int | None, typer.Option(help="How many venues.", min=0)] = None,
    organizers: Annotated[int | None, typer.Option(help="How many organizers.", min=0)] = None,
    categories: Annotated[int | None, typer.Option(help="How many categories.", min=1)] = None,
    tags: Annotated[int | None, typer.Option(help="How many tags.", min=0)] = None,
    seed: Annotated[int, typer.Option(help="The same number makes the same records.")] = 1,
    today: Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="The day they are made for.")] = None,
    host_name: Host = "",
) -> None:
    """Add made-up records to the site. Many at once (5,000 events) lock the tables for a while."""
    from kalends.operations import seed as seeding

    began = time.monotonic()
    try:
        wanted = seeding.Wanted(
            events=events,
            upcoming=seeding.read_upcoming(upcoming, events),
            venues=venues,
            organizers=organizers,
            categories=categories,
            tags=tags,
            seed=seed,
            today=today.date() if today else None,
        )
        with _progress() as told:
            made = asyncio.run(seeding.seed(_settings().owner_url, host_name, wanted, told))
    except (Refusal, Invalid) as problem:
        _fail(problem.message)
    took = time.monotonic() - began
    typer.echo(
        f"Made {made.events:,} events, {made.upcoming:,} of them from today on; {made.venues:,} venues, "
        f"{made.organizers:,} organizers, {made.categories:,} categories, {made.tags:,} tags, in {took:.1f} s."
    )


@app.command()
def worker() -> None:
    """Do background work until told to stop: scheduled publication, emptying the trash."""
    from kalends.worker import work

    asyncio.run(work(_settings()))


@job.callback(invoke_without_command=True)
def list_jobs(
    context: typer.Context,
    status: Annotated[str, typer.Option(help="todo, doing or failed; none: all three.")] = "",
) -> None:
    """Show jobs: waiting, running and failed ones."""
    if context.invoked_subcommand:
        return
    for row in _wait(_list_jobs(status)):
        when = f"{row.scheduled_at:%Y-%m-%d %H:%M:%S}" if row.scheduled_at else "-"
        tries = f"tries {row.attempts}"
        typer.echo(f"{row.id:>8}  {row.status:<8} {row.task_name:<16} {when:<19}  {tries}  {row.task_kwargs}")


@job.command("retry")
def retry_job(job_id: int) -> None:
    """Run a job again, now."""
    _wait(_retry_job(job_id))


@app.command()
def history(kind: str, record_id: int, host_name: Host = "") -> None:
    """Show who changed what of an event, venue or organizer, newest first."""
    for entry in _run(host_name, lambda tx: administration.read_history(tx, kind, record_id)):
        who = entry["user"]["login"] if entry["user"] else "-"
        typer.echo(f"{entry['revision']:>8}  {entry['date_utc']}  {who:<20} {entry['action']}")
        for name, change in entry["changes"].items():
            typer.echo(f"          {name}: {change['before']!r} -> {change['after']!r}"[:300])


async def _list_jobs(status: str) -> list[Any]:
    from kalends.worker import open_queue

    async with open_queue(_settings()) as queue:
        found = await queue.job_manager.list_jobs_async(status=status or None)
    return [entry for entry in found if status or entry.status in ("todo", "doing", "failed")]


async def _retry_job(job_id: int) -> None:
    from procrastinate.exceptions import ConnectorException

    from kalends.worker import open_queue

    async with open_queue(_settings()) as queue:
        try:
            await queue.job_manager.retry_job_by_id_async(job_id, retry_at=utc_now())
        except ConnectorException:
            _fail(f"There is no job {job_id} that failed or hangs.")


# Connections that one process holds; beyond them clients wait in the backlog of the kernel.
CONNECTIONS = 8192
# Milliseconds for a request head; also the time for which an idle connection is kept open.
HEAD_TIMEOUT = 5000


def _run_server(host: str, port: int, workers: int) -> None:
    import resource

    from granian import Granian
    from granian.constants import HTTPModes, Interfaces
    from granian.http import HTTP1Settings

    from kalends.web.request_head import HEAD_LIMIT

    # Each connection is an open file; the usual soft limit of 1,024 would stop the server before its own limit does.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    Granian(
        target="kalends.app:create_application",
        factory=True,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        workers=workers,
        log_access=False,
        # HTTP/2 without TLS has no user, and the detection of the version waits for the first byte without limit.
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=HEAD_TIMEOUT, max_buffer_size=HEAD_LIMIT),
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


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar per stage with the time that is left, on standard error."""
    columns = (TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        stages: dict[str, TaskID] = {}

        def told(stage: str, done: int, total: int) -> None:
            if stage not in stages:
                stages[stage] = progress.add_task(stage, total=total)
            progress.update(stages[stage], completed=done)

        yield told


def _run(host_name: str, work: Callable[[Transaction], Awaitable[Any]]) -> Any:
    """One command in one transaction."""

    async def in_transaction() -> Any:
        database = await Database.open(database_options(_settings()))
        try:
            async with database.transaction(host_name, utc_now(), writing=True) as tx:
                return await work(tx)
        finally:
            await database.close()

    return _wait(in_transaction())


def _wait(work: Coroutine[Any, Any, Any]) -> Any:
    """A refusal is a sentence, not a traceback."""
    try:
        return asyncio.run(work)
    except (Refusal, Invalid) as problem:
        _fail(problem.message)


def _settings() -> Settings:
    try:
        return read_settings()
    except WrongSettings as problem:
        _fail(str(problem))


def _fail(message: str) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(1)

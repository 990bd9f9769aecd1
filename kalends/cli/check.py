"""`kalends check`: looks at everything that a server and a worker depend on."""

import asyncio
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import typer

from kalends.cli.errors import mask_passwords
from kalends.cli.findings import Finding, print_findings
from kalends.cli.jobs import format_age
from kalends.cli.lists import JsonOption, print_json, to_dict
from kalends.cli.runtime import load_settings
from kalends.core.clock import utc_now

if TYPE_CHECKING:
    from kalends.settings import Settings
    from kalends.store.checks import DatabaseState, ServerFacts
    from kalends.store.job_queue import QueueSummary
    from kalends.store.site_moves import Move

MIN_POSTGRES = 15
# Seconds that the time of the database may differ from that of this machine.
MAX_SECONDS_APART = 2.0
# Share of the connections of PostgreSQL above which new processes may not get any.
MAX_CONNECTION_SHARE = 0.8
MAX_HEARTBEAT_SECONDS = 60.0
MAX_DELAY_SECONDS = 60.0
COMMIT_MODES = ("on", "remote_write", "remote_apply", "local")


def check(as_json: JsonOption = False) -> None:
    """Check everything that server and worker depend on, from the database to the proxies; exit with 1 on errors."""
    settings = load_settings()
    findings = asyncio.run(find_all(settings))
    if as_json:
        print_json([to_dict(finding) for finding in findings])
    else:
        print_findings(findings)
    if any(finding.level == "error" for finding in findings):
        raise typer.Exit(1)


async def find_all(settings: "Settings") -> list[Finding]:
    """Return the findings about everything, with the database first."""
    from kalends.cli import check_services as services

    return [
        *await check_databases(settings),
        *await services.check_storage(settings),
        *await services.check_email(settings),
        *await services.check_caches(settings),
        *services.check_proxies(settings),
        *services.check_extras(settings),
    ]


async def check_databases(settings: "Settings") -> list[Finding]:
    """Return the findings about the database, or about the directory and all cells."""
    if not settings.directory_url:
        return [*await check_database(settings), *await check_replica(settings)]
    findings = [*await check_directory(settings), *await check_moves(settings.directory_url)]
    for cell, member in settings.members.items():
        findings += [replace(one, text=f"Cell {cell}: {one.text}") for one in await check_database(member)]
    return findings


async def check_directory(settings: "Settings") -> list[Finding]:
    """Return the findings about the directory and the names of the cells."""
    from kalends.store import directory_changes, problems

    try:
        entries = await directory_changes.list_cells(settings.directory_url)
    except problems.DatabaseUnavailable as error:
        cure = "The setting is `KALENDS_DIRECTORY_URL`."
        return [Finding("Directory", "error", mask_passwords(error.detail), cure)]
    except problems.DRIVER_ERRORS as error:
        return [Finding("Directory", "error", f"{type(error).__name__}: {error}", "Run `kalends migrate`.")]
    names = {entry.name for entry in entries}
    findings = [Finding("Directory", "ok", f"{sum(entry.sites for entry in entries)} sites in {len(names)} cells.")]
    for name in sorted(names - settings.cells.keys()):
        findings.append(Finding("Directory", "error", f"The cell {name} is not in `KALENDS_CELLS`."))
    for name in sorted(settings.cells.keys() - names):
        cure = f"Run `kalends cell add {name}`."
        findings.append(Finding("Directory", "warning", f"The cell {name} is not in the directory.", cure))
    return findings


async def check_moves(directory_url: str) -> list[Finding]:
    """Return a finding for each unfinished move of a site; nothing if the directory cannot be read."""
    from kalends.store import problems, site_moves

    try:
        moves = await site_moves.list_moves(directory_url, unfinished=True)
    except (problems.DatabaseUnavailable, *problems.DRIVER_ERRORS):
        return []
    return [judge_move(move, utc_now()) for move in moves]


def judge_move(move: "Move", now: datetime) -> Finding:
    """Return the finding about an unfinished move."""
    age = format_age((now - move.started_at).total_seconds())
    text = f"Site {move.site_id} from {move.source} to {move.target}, started {age} ago, last step {move.step}"
    if move.has_mover:
        return Finding("Move", "ok", f"{text}: running.")
    return Finding("Move", "error", f"{text}: interrupted.", f"Run `kalends site move {move.site_id} --resume`.")


async def check_replica(settings: "Settings") -> list[Finding]:
    """Return the finding about the replica, if there is one."""
    from kalends.store import checks, problems

    if not settings.replica_url:
        return []
    address = problems.Target.from_url(settings.replica_url).address
    cure = "The setting is `KALENDS_REPLICA_URL`. Until it works, the primary answers all reads."
    try:
        state = await checks.read_replica(settings.database_url, settings.replica_url, settings.replica_max_lag)
    except problems.DatabaseUnavailable as error:
        reason, _, _ = mask_passwords(error.detail).partition(" Is it running?")
        return [Finding("Replica", "error", reason, cure)]
    except problems.DRIVER_ERRORS as error:
        return [Finding("Replica", "error", f"{type(error).__name__}: {error}", cure)]
    if not state.is_standby:
        return [Finding("Replica", "error", f"{address} is not a standby.", cure)]
    if state.seconds_behind is None:
        text = f"{address} is {state.bytes_behind:,} bytes behind, for more than {settings.replica_max_lag:g} s."
        cure = "Look at its load and at long reads on it (docs/how-to/troubleshoot.md)."
        return [Finding("Replica", "warning", text, cure)]
    return [Finding("Replica", "ok", f"{address} is up to date.")]


async def check_database(settings: "Settings") -> list[Finding]:
    """Return the findings about PostgreSQL; without a connection or a schema, the rest cannot be judged."""
    from kalends.store import checks, job_queue, login_rights, problems

    urls = {
        "KALENDS_DATABASE_URL": settings.database_url,
        "KALENDS_MIGRATION_URL": settings.migration_url,
        "KALENDS_QUEUE_URL": settings.queue_url,
    }
    for name, url in urls.items():
        try:
            if url:
                async with problems.connect(url, prepared=False):
                    pass
        except problems.DatabaseUnavailable as error:
            return [Finding("Database", "error", mask_passwords(error.detail), f"The setting is `{name}`.")]
    facts = await checks.read_facts(settings.database_url)
    findings = [*judge_server(facts, problems.Target.from_url(settings.database_url).address), *judge_time(facts)]
    if rights := await login_rights.find_excess_rights(settings.database_url):
        cure = "Create a login that owns nothing: docs/decisions/0011-login-role.md."
        findings.append(Finding("Login", "warning", f"{facts.login} {rights}.", cure))
    try:
        state = await checks.read_state(settings.owner_url)
        findings += judge_state(state, facts)
        if state.schema.number:
            _, summary = await job_queue.count_jobs(settings.queue_url or settings.database_url)
            findings += judge_queue(summary)
    except problems.DRIVER_ERRORS as error:
        findings.append(Finding("Database", "error", f"{type(error).__name__}: {error}", "Run `kalends migrate`."))
    return findings


def judge_server(facts: "ServerFacts", address: str) -> list[Finding]:
    """Return the findings about the PostgreSQL server."""
    summary = f"PostgreSQL {facts.version} at {address}, database {facts.database}"
    if facts.version_number < MIN_POSTGRES * 10000:
        cure = f"Upgrade PostgreSQL to {MIN_POSTGRES} or later."
        findings = [Finding("Database", "error", f"{summary}: too old.", cure)]
    elif facts.is_standby:
        cure = "Set `KALENDS_DATABASE_URL` to the primary, or promote this server."
        findings = [Finding("Database", "error", f"{summary}: a standby, which does not accept writes.", cure)]
    else:
        findings = [Finding("Database", "ok", f"{summary}.")]
    if not facts.has_fsync or facts.synchronous_commit not in COMMIT_MODES:
        cure = "Set `fsync = on` and `synchronous_commit = on` in postgresql.conf."
        findings.append(Finding("Durability", "warning", "A crash can lose acknowledged writes.", cure))
    used = f"{facts.connections} of {facts.max_connections} connections are in use"
    if facts.connections > MAX_CONNECTION_SHARE * facts.max_connections:
        cure = "Raise `max_connections`, lower `KALENDS_POOL_SIZE`, or put PgBouncer in between."
        findings.append(Finding("Connections", "warning", f"{used}.", cure))
    else:
        findings.append(Finding("Connections", "ok", f"{used}."))
    return findings


def judge_time(facts: "ServerFacts") -> list[Finding]:
    """Return the finding about the time of the database compared with that of this machine."""
    apart = abs(facts.seconds_ahead)
    if apart <= MAX_SECONDS_APART:
        return [Finding("Time", "ok", "This machine and the database agree.")]
    direction = "ahead of" if facts.seconds_ahead > 0 else "behind"
    text = f"The database is {apart:.0f} s {direction} this machine."
    cure = "Synchronize both with NTP. Until then, scheduled events appear too early or too late."
    return [Finding("Time", "error", text, cure)]


def judge_state(state: "DatabaseState", facts: "ServerFacts") -> list[Finding]:
    """Return the findings about the schema and what belongs to it."""
    from kalends.store import problems
    from kalends.store.migrations import newest_revision

    if problem := problems.compare_schema(state.schema, newest_revision()):
        summary, _, cure = problem.detail.partition(". ")
        findings = [Finding("Schema", "error", f"{summary}.", cure)]
    else:
        version = problems.describe_newer(state.schema, newest_revision()) or f"{state.schema.number}, up to date"
        findings = [Finding("Schema", "ok", f"{version}.")]
    if not state.schema.number:
        return findings
    if facts.missing_extensions:
        cure = "\n".join(f"CREATE EXTENSION {name};" for name in facts.missing_extensions)
        findings.append(Finding("Extensions", "error", f"Missing: {', '.join(facts.missing_extensions)}.", cure))
    if not facts.has_role:
        cure = "Run `kalends migrate` as the owner of the database; it grants the role."
        findings.append(Finding("Login", "error", f"{facts.login} is not a member of kalends_app.", cure))
    if state.missing_marks:
        statements = "\n".join(f"  {statement}" for statement in state.missing_marks)
        cure = f"Run `kalends migrate` as a superuser, or:\n{statements}"
        findings.append(Finding("Search", "error", "Slow, because functions lack the mark LEAKPROOF.", cure))
    else:
        findings.append(Finding("Search", "ok", "All functions are marked LEAKPROOF."))
    age = state.heartbeat_age
    if age is None or age > MAX_HEARTBEAT_SECONDS:
        text = "Not running." if age is None else f"Last seen {age:.0f} s ago."
        cure = "Start `kalends worker`. Without it nothing is published on schedule, and images get no sizes."
        findings.append(Finding("Worker", "warning", text, cure))
    else:
        findings.append(Finding("Worker", "ok", f"Last seen {age:.0f} s ago."))
    return findings


def judge_queue(summary: "QueueSummary") -> list[Finding]:
    """Return the finding about the queue."""
    if summary.failed:
        cure = (
            "Read the reason in the log of the worker, then run `kalends job list --status failed` and `job retry`."
        )
        return [Finding("Queue", "warning", f"{summary.failed} jobs have failed.", cure)]
    if (summary.oldest_seconds or 0) > MAX_DELAY_SECONDS:
        text = f"{summary.waiting} jobs wait, the oldest for {summary.oldest_seconds:.0f} s."
        return [Finding("Queue", "warning", text, "Start a worker, or a second one.")]
    return [Finding("Queue", "ok", f"{summary.waiting} jobs wait.")]

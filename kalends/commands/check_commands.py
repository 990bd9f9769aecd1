"""`kalends check`: check everything the server and worker depend on."""

import asyncio
import shutil
import sys
import sysconfig
from collections.abc import Awaitable
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from kalends.cli.command_errors import Finding, mask_passwords, print_findings
from kalends.cli.runtime import JsonOption, load_settings, print_json, to_dict
from kalends.fleet.commands.cell_commands import check_moves

if TYPE_CHECKING:
    from pathlib import Path

    from kalends.media.adapters.file_store import FileStore
    from kalends.settings import Settings
    from kalends.store.checks import DatabaseState, ServerFacts
    from kalends.store.job_queue import QueueSummary

# If fewer bytes are free, uploads will soon fail.
MIN_FREE_BYTES = 500 * 1024 * 1024
TIMEOUT = 10.0
MIN_POSTGRES = 15
# Maximum difference in seconds between the database's time and this machine's time.
MAX_SECONDS_APART = 2.0
# If a larger share of PostgreSQL's connections is in use, new processes might not get any.
MAX_CONNECTION_SHARE = 0.8
MAX_HEARTBEAT_SECONDS = 60.0
MAX_DELAY_SECONDS = 60.0
COMMIT_MODES = ("on", "remote_write", "remote_apply", "local")


def check(as_json: JsonOption = False) -> None:
    """Check everything the server and worker depend on, from database to proxies; exit with status 1 on errors."""
    settings = load_settings()
    findings = asyncio.run(find_all(settings))
    if as_json:
        print_json([to_dict(finding) for finding in findings])
    else:
        print_findings(findings)
    if any(finding.level == "error" for finding in findings):
        raise typer.Exit(1)


async def find_all(settings: "Settings") -> list[Finding]:
    return [
        *await check_databases(settings),
        *await check_storage(settings),
        *await check_email(settings),
        *await check_caches(settings),
        *check_proxies(settings),
        *check_extras(settings),
        judge_python(sysconfig.get_config_var("CONFIG_ARGS") or ""),
    ]


async def check_databases(settings: "Settings") -> list[Finding]:
    if not settings.directory_url:
        return [*await check_database(settings), *await check_replica(settings)]
    findings = [*await check_directory(settings), *await check_moves(settings.directory_url)]
    for cell, member in settings.members.items():
        findings += [replace(one, text=f"Cell {cell}: {one.text}") for one in await check_database(member)]
    return findings


async def check_directory(settings: "Settings") -> list[Finding]:
    from kalends.fleet.storage import directory
    from kalends.store import problems

    try:
        entries = await directory.list_cells(settings.directory_url)
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


async def check_replica(settings: "Settings") -> list[Finding]:
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
    """Return findings about PostgreSQL. Without a connection or a schema, the remaining checks are skipped."""
    from kalends.store import checks, job_queue, problems

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
    if rights := await checks.find_excess_rights(settings.database_url):
        cure = "Create a login that owns nothing: docs/decisions/0011-login-role.md."
        findings.append(Finding("Login", "warning", f"{facts.login} {rights}.", cure))
    try:
        state = await checks.read_state(settings.owner_url)
        findings += [*judge_state(state, facts), *judge_public_form(state, settings)]
        if state.schema.number:
            _, summary = await job_queue.count_jobs(settings.queue_url or settings.database_url)
            findings += judge_queue(summary)
    except problems.DRIVER_ERRORS as error:
        findings.append(Finding("Database", "error", f"{type(error).__name__}: {error}", "Run `kalends migrate`."))
    return findings


def judge_server(facts: "ServerFacts", address: str) -> list[Finding]:
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
    apart = abs(facts.seconds_ahead)
    if apart <= MAX_SECONDS_APART:
        return [Finding("Time", "ok", "This machine and the database agree.")]
    direction = "ahead of" if facts.seconds_ahead > 0 else "behind"
    text = f"The database is {apart:.0f} s {direction} this machine."
    cure = "Synchronize both with NTP. Until then, scheduled events appear too early or too late."
    return [Finding("Time", "error", text, cure)]


def judge_state(state: "DatabaseState", facts: "ServerFacts") -> list[Finding]:
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


def judge_public_form(state: "DatabaseState", settings: "Settings") -> list[Finding]:
    """Report what the forms for events and for followers lack, which stay closed until then."""
    lacks = {
        "`KALENDS_SMTP_URL`": 0 if settings.smtp_url.get_secret_value() else state.open_sites,
        "`KALENDS_BASE_URL` or the site’s `base_url`": 0 if settings.base_url else state.nameless_sites,
    }
    missing = [name for name, number in lacks.items() if number]
    if not missing:
        return []
    text = f"Closed on {max(lacks.values())} sites that have switched it on."
    return [Finding("Form", "warning", text, f"Set {' and '.join(missing)}.")]


def judge_queue(summary: "QueueSummary") -> list[Finding]:
    if summary.failed:
        cure = (
            "Read the reason in the log of the worker, then run `kalends job list --status failed` and `job retry`."
        )
        return [Finding("Queue", "warning", f"{summary.failed} jobs have failed.", cure)]
    if (summary.oldest_seconds or 0) > MAX_DELAY_SECONDS:
        text = f"{summary.waiting} jobs wait, the oldest for {summary.oldest_seconds:.0f} s."
        return [Finding("Queue", "warning", text, "Start a worker, or a second one.")]
    return [Finding("Queue", "ok", f"{summary.waiting} jobs wait.")]


async def check_storage(settings: "Settings") -> list[Finding]:
    """Write and remove a file in the media directory, and request a file from the bucket."""
    from kalends.bootstrap import open_library
    from kalends.core.errors import ApiError
    from kalends.media.adapters import file_store
    from kalends.media.adapters.library import translate_storage_errors

    library = open_library(settings)
    try:
        with translate_storage_errors():
            directory = file_store.create_work_directory(library.root)
            (directory / "check").write_bytes(bytes(1024))
            file_store.remove_work_directory(directory)
    except ApiError as error:
        reason = file_store.describe_storage_error(error.__cause__ or error)
        cure = "Create the directory of `KALENDS_MEDIA_DIR` with rights for the user of the server, or make room."
        return [Finding("Storage", "error", f"{library.root}: {reason}", cure)]
    findings = [judge_free_space(library.root)]
    if settings.s3_bucket:
        findings.append(await _check_bucket(library.files, settings.s3_bucket))
    return findings


def judge_free_space(directory: "Path") -> Finding:
    free = shutil.disk_usage(directory).free
    text = f"{directory} is writable, {free / 1024**3:.1f} GB are free."
    if free < MIN_FREE_BYTES:
        return Finding("Storage", "warning", text, "Make room, or move `KALENDS_MEDIA_DIR` to another disk.")
    return Finding("Storage", "ok", text)


async def _check_bucket(files: "FileStore", bucket: str) -> Finding:
    from kalends.media.adapters.file_store import describe_storage_error

    try:
        await asyncio.to_thread(files.modified, "1/00/check")
    except Exception as error:  # The S3 library has no common exception class.
        cure = "Check `KALENDS_S3_ENDPOINT`, `KALENDS_S3_BUCKET` and the keys."
        reason = describe_storage_error(error)
        return Finding("Storage", "error", f"The bucket {bucket} does not respond: {reason}", cure)
    return Finding("Storage", "ok", f"The bucket {bucket} responds.")


async def check_email(settings: "Settings") -> list[Finding]:
    url = settings.smtp_url.get_secret_value()
    if not url:
        return [Finding("Email", "ok", "Not configured; the console shows links to administrators instead.")]
    from kalends.adapters.smtp_client import check_server

    server, cure = "The SMTP server", "Check `KALENDS_SMTP_URL`."
    return [await _try(check_server(url), "Email", f"{server} responds.", f"{server} does not respond", cure)]


async def check_caches(settings: "Settings") -> list[Finding]:
    """Check that each shared cache accepts a purge. The request names a tag that no response has."""
    from kalends.adapters.purge_client import send_purges

    cure = "Check `KALENDS_PURGE_URLS` and the list of machines that may purge (deploy/varnish/default.vcl)."
    return [
        await _try(
            send_purges(url, ["kalends-check"]),
            "Cache",
            f"{url} accepts purges.",
            f"{url} does not accept purges",
            cure,
        )
        for url in settings.purge_urls
    ]


async def _try(work: Awaitable[None], area: str, success: str, failure: str, cure: str) -> Finding:
    try:
        await asyncio.wait_for(work, TIMEOUT)
    except Exception as error:  # network, TLS or protocol errors
        return Finding(area, "error", f"{failure}: {str(error) or type(error).__name__}", cure)
    return Finding(area, "ok", success)


def check_proxies(settings: "Settings") -> list[Finding]:
    """Check the settings that determine client addresses and links."""
    from kalends.core.limits import read_network

    findings: list[Finding] = []
    if not settings.base_url:
        cure = "Set `KALENDS_BASE_URL`, unless each site has its own `base_url`."
        findings.append(Finding("Address", "warning", "Links use the Host header of each request.", cure))
    else:
        findings.append(Finding("Address", "ok", settings.base_url))
    everybody = [text for text in settings.trusted_proxies if read_network(text).prefixlen == 0]
    if everybody:
        cure = "Name the addresses of your proxies only; otherwise every client can choose its own IP address."
        findings.append(Finding("Proxies", "error", f"KALENDS_TRUSTED_PROXIES has {everybody[0]}.", cure))
    elif settings.base_url.startswith("https://") and not settings.trusted_proxies:
        text = "X-Forwarded-For is ignored, so all visitors behind a proxy share the limits of one client."
        findings.append(Finding("Proxies", "warning", text, "Set `KALENDS_TRUSTED_PROXIES`."))
    else:
        names = ", ".join(settings.trusted_proxies)
        findings.append(Finding("Proxies", "ok", f"Trusted: {names}." if names else "None."))
    return findings


def judge_python(build_options: str) -> Finding:
    """Judge whether the interpreter was built with profile-guided optimization.

    Linux distributions, which install to /usr, always build it that way but do not record the option.
    """
    version = f"Python {sys.version.split()[0]}"
    if "--enable-optimizations" in build_options or "--prefix=/usr'" in build_options:
        return Finding("Python", "ok", f"{version}.")
    return Finding(
        "Python",
        "warning",
        f"{version} was built without optimization, which costs a quarter more CPU time.",
        "Use the Python of Debian or uv, or build it with --enable-optimizations.",
    )


def check_extras(settings: "Settings") -> list[Finding]:
    from kalends.adapters.tracing import is_installed

    if settings.traces_url and not is_installed():
        return [Finding("Traces", "error", "OpenTelemetry is not installed.", "Install kalends[otel].")]
    return []

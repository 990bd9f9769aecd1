"""Commands for server status (`kalends status`), background jobs and record history."""

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kalends.cli import runtime
from kalends.cli.command_errors import fail
from kalends.cli.runtime import CellOption, JsonOption, LimitOption, SiteOption
from kalends.core.times import utc_now

if TYPE_CHECKING:
    from kalends.adapters.backup_tool import Backup
    from kalends.settings import Settings
    from kalends.store.job_queue import QueueSummary
    from kalends.store.sites import SiteSize, SiteTotals


MAX_SITES = 20  # maximum sites to list; if there are more, only the largest are listed
LARGEST_SITES = 5


def status(as_json: JsonOption = False) -> None:
    """Show versions, site sizes, the queue and the latest backups."""
    from kalends.adapters.backup_tool import BackupToolFailed, list_newest_backups

    report = asyncio.run(_read(runtime.load_settings()))
    backup_problem = ""
    try:
        report["backups"] = list_newest_backups()
    except BackupToolFailed as error:
        report["backups"], backup_problem = [], str(error).strip()
    if as_json:
        runtime.print_json(report | {"backup_problem": backup_problem})
        return
    if "cells" not in report:
        print_database(report)
    for cell, member in report.get("cells", {}).items():
        typer.echo(f"Cell      {cell}")
        print_database({"version": report["version"], **member})
    for line in [backup_problem] if backup_problem else format_backups(report["backups"]):
        typer.echo(f"Backups   {line}")


def print_database(report: dict[str, Any]) -> None:
    facts = report["database"]
    typer.echo(f"Kalends {report['version']}, schema {report['schema'] or 'none'}, PostgreSQL {facts['version']}")
    connections = f"{facts['connections']} of {facts['max_connections']} connections"
    typer.echo(f"Database  {facts['database']}, {format_size(facts['size'])}, {connections}")
    if report["sites"] is None:
        typer.echo("Sites     To count their records, set `KALENDS_MIGRATION_URL` to the login that owns the tables.")
    sites = report["sites"] or ()
    if report["totals"] is not None and len(sites) < report["totals"].sites:
        typer.echo(f"Sites     {format_totals(report['totals'])}. The largest of them:")
    for site in sites:
        typer.echo(format_site(site))
    typer.echo(f"Queue     {summarize(report['queue'])}")


async def _read(settings: "Settings") -> dict[str, Any]:
    from kalends import __version__

    states = {cell: await _read_database(member) for cell, member in settings.members.items()}
    return {"version": __version__, **states.get("", {"cells": states})}


async def _read_database(settings: "Settings") -> dict[str, Any]:
    from kalends.store import checks, job_queue

    facts = await checks.read_facts(settings.database_url)
    state = await checks.read_state(settings.database_url)
    sites, totals = await _measure_sites(settings.owner_url)
    return {
        "schema": state.schema.number,
        "database": asdict(facts),
        "sites": sites,
        "totals": totals,
        "queue": (await job_queue.count_jobs(settings.queue_url or settings.database_url))[1],
    }


async def _measure_sites(owner_url: str) -> "tuple[list[SiteSize] | None, SiteTotals | None]":
    """Return site sizes and totals, or None for both if the login may not read them."""
    from kalends.store import problems, sites

    try:
        return await sites.measure_sites(owner_url, most=MAX_SITES, largest=LARGEST_SITES)
    except problems.NotOwner:
        return None, None


def format_site(site: "SiteSize") -> str:
    """Return a line such as "Site 1    Town (town.example.org): 20,000 events, …"."""
    hosts = ", ".join(site.hosts) or "all hosts"
    return f"{f'Site {site.id}':<9} {site.name} ({hosts}): {format_counts(site)}; revision {site.revision:,}"


def format_totals(totals: "SiteTotals") -> str:
    return f"{totals.sites:,} sites with {format_counts(totals)}"


def format_counts(size: "SiteSize | SiteTotals") -> str:
    counts = (
        f"{size.events:,} events, {size.venues:,} venues, {size.organizers:,} organizers, {size.users:,} accounts"
    )
    return f"{counts}, {size.images:,} images of {format_size(size.image_bytes)}"


def format_backups(backups: "list[Backup] | None") -> list[str]:
    if backups is None:
        return ["pgBackRest is not installed on this machine."]
    if not backups:
        return ["pgBackRest has no stanza."]
    lines: list[str] = []
    for backup in backups:
        if backup.finished is None:
            lines.append(f"{backup.stanza}: none ({backup.status})")
            continue
        age = runtime.format_age((utc_now() - backup.finished).total_seconds())
        lines.append(f"{backup.stanza}: {backup.label} ({backup.kind}), finished {age} ago, {backup.status}")
    return lines


def format_size(size: int) -> str:
    """Format bytes in their largest unit, such as "1.5 GB"."""
    number, unit = float(size), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if number < 1000:
            break
        number, unit = number / 1000, larger
    return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"


def history(
    kind: Annotated[str, typer.Argument(help="Kind of the record: event, venue or organizer.")],
    record_id: Annotated[int, typer.Argument(help="ID of the record.")],
    site: SiteOption = "",
) -> None:
    """Show the changes to an event, venue or organizer, newest first."""
    from kalends.calendar.operations import record_history

    for entry in runtime.run_in_transaction(site, lambda tx: record_history.list_history(tx, kind, record_id)):
        login = entry["user"]["login"] if entry["user"] else "-"
        typer.echo(f"{entry['revision']:>8}  {entry['date_utc']}  {login:<20} {entry['action']}")
        for name, change in entry["changes"].items():
            typer.echo(f"          {name}: {change['before']!r} -> {change['after']!r}"[:300])


job = typer.Typer(no_args_is_help=True, help="Inspect and retry background jobs.")


@job.command("list")
def list_jobs(
    status: Annotated[str, typer.Option(help="Only jobs with this status: todo, doing or failed.")] = "",
    task: Annotated[str, typer.Option(help="Only jobs of this task, such as purge.")] = "",
    limit: LimitOption = None,
    as_json: JsonOption = False,
    cell: CellOption = "",
) -> None:
    """List waiting, running and failed jobs; the last line says whether a worker is running."""
    settings = runtime.load_cell(cell)
    from kalends.store import job_queue

    if status and status not in job_queue.STATUSES:
        fail("--status must be todo, doing or failed.")
    url = settings.queue_url or settings.database_url
    rows, summary = asyncio.run(job_queue.list_jobs(url, status, task, limit and limit + 1))
    runtime.print_list(
        rows,
        lambda row: [
            row.id,
            row.status,
            row.task_name,
            f"{row.scheduled_at:%Y-%m-%d %H:%M:%S}" if row.scheduled_at else "-",
            f"attempts {row.attempts}",
            row.arguments,
        ],
        as_json=as_json,
        limit=limit,
    )
    if not (status or task or as_json):
        typer.echo(summarize(summary))


@job.command("retry")
def retry_job(
    job_id: Annotated[int, typer.Argument(help="ID of the job, as listed by job list.")], cell: CellOption = ""
) -> None:
    """Retry a failed or stalled job immediately."""
    asyncio.run(_retry_job(runtime.load_cell(cell), job_id))
    typer.echo(f"Job {job_id} runs again.")


def summarize(summary: "QueueSummary") -> str:
    """Return a line such as "12 waiting, oldest 31 min; 2 failed; no worker seen"."""
    oldest = "" if summary.oldest_seconds is None else f", oldest {runtime.format_age(summary.oldest_seconds)}"
    parts = [f"{summary.waiting} waiting{oldest}"]
    parts += [f"{summary.scheduled} scheduled"] if summary.scheduled else []
    parts += [f"{summary.failed} failed"] if summary.failed else []
    age = summary.heartbeat_seconds
    parts.append("no worker seen" if age is None else f"worker seen {runtime.format_age(age)} ago")
    return "; ".join(parts)


async def _retry_job(settings: "Settings", job_id: int) -> None:
    from procrastinate.exceptions import ConnectorException

    from kalends.worker import open_queue

    async with open_queue(settings) as (queue, _):
        try:
            await queue.job_manager.retry_job_by_id_async(job_id, retry_at=utc_now())
        except ConnectorException:
            fail(f"There is no failed or stalled job {job_id}.")

"""`kalends status`: sites, sizes, queues and backups at a glance."""

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from kalends.cli.jobs import format_age, summarize
from kalends.cli.lists import JsonOption, print_json
from kalends.cli.runtime import load_settings
from kalends.core.clock import utc_now

if TYPE_CHECKING:
    from kalends.adapters.backup_tool import Backup
    from kalends.settings import Settings
    from kalends.store.sites import SiteSize, SiteTotals

MAX_SITES = 20  # that are listed; of more, the largest are
LARGEST_SITES = 5


def status(as_json: JsonOption = False) -> None:
    """Show the versions, the sites with their sizes, the queue and the last backups."""
    from kalends.adapters.backup_tool import BackupToolFailed, list_newest_backups

    report = asyncio.run(_read(load_settings()))
    backup_problem = ""
    try:
        report["backups"] = list_newest_backups()
    except BackupToolFailed as error:
        report["backups"], backup_problem = [], str(error).strip()
    if as_json:
        print_json(report | {"backup_problem": backup_problem})
        return
    if "cells" not in report:
        print_database(report)
    for cell, member in report.get("cells", {}).items():
        typer.echo(f"Cell      {cell}")
        print_database({"version": report["version"], **member})
    for line in [backup_problem] if backup_problem else format_backups(report["backups"]):
        typer.echo(f"Backups   {line}")


def print_database(report: dict[str, Any]) -> None:
    """Print the state of one database."""
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
    """Return the sizes of the sites and of all together; None if the login may not read them."""
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
    """Return the number of sites and of the records of all of them."""
    return f"{totals.sites:,} sites with {format_counts(totals)}"


def format_counts(size: "SiteSize | SiteTotals") -> str:
    """Return the numbers of records."""
    counts = (
        f"{size.events:,} events, {size.venues:,} venues, {size.organizers:,} organizers, {size.users:,} accounts"
    )
    return f"{counts}, {size.images:,} images of {format_size(size.image_bytes)}"


def format_backups(backups: "list[Backup] | None") -> list[str]:
    """Return a line for the newest backup of each stanza."""
    if backups is None:
        return ["pgBackRest is not installed on this machine."]
    if not backups:
        return ["pgBackRest has no stanza."]
    lines: list[str] = []
    for backup in backups:
        if backup.finished is None:
            lines.append(f"{backup.stanza}: none ({backup.status})")
            continue
        age = format_age((utc_now() - backup.finished).total_seconds())
        lines.append(f"{backup.stanza}: {backup.label} ({backup.kind}), finished {age} ago, {backup.status}")
    return lines


def format_size(size: int) -> str:
    """Return a number of bytes in its largest unit, such as "1.5 GB"."""
    number, unit = float(size), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if number < 1000:
            break
        number, unit = number / 1000, larger
    return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"

"""Commands that add demo data."""

import asyncio
import time
from datetime import datetime
from typing import Annotated

import typer

from kalends.cli.runtime import SiteOption, load_site_cell, read_site, show_progress


def add_demo_records(
    *,
    town: Annotated[
        bool,
        typer.Option(
            "--town",
            help="Add a made-up town with pictures instead, and name the site after it; "
            "of the other options, only --today and --site apply.",
        ),
    ] = False,
    events: Annotated[int, typer.Option(help="Number of events.", min=0)] = 1000,
    upcoming: Annotated[str, typer.Option(help="Number or share of upcoming events: 500, 0.05 or 5%.")] = "",
    venues: Annotated[int | None, typer.Option(help="Number of venues.", min=0)] = None,
    organizers: Annotated[int | None, typer.Option(help="Number of organizers.", min=0)] = None,
    categories: Annotated[int | None, typer.Option(help="Number of categories.", min=1)] = None,
    tags: Annotated[int | None, typer.Option(help="Number of tags.", min=0)] = None,
    series: Annotated[int, typer.Option(help="Number of weekly series, with 20 further events each.", min=0)] = 0,
    seed: Annotated[
        int, typer.Option(help="Seed of the random generator; the same seed generates the same records.")
    ] = 1,
    today: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Date to treat as today (YYYY-MM-DD).")
    ] = None,
    site: SiteOption = "",
) -> None:
    """Add demo records. Adding 5,000 events or more locks the tables for a while."""
    if town:
        _add_town(site, today)
        return
    from kalends.demo import seed as seeding

    started = time.monotonic()
    options = seeding.DemoOptions(
        events=events,
        upcoming=seeding.parse_upcoming(upcoming, events),
        venues=venues,
        organizers=organizers,
        categories=categories,
        tags=tags,
        series=series,
        seed=seed,
        today=today.date() if today else None,
    )
    with show_progress() as on_progress:
        counts = asyncio.run(seeding.seed(load_site_cell(site).owner_url, read_site(site), options, on_progress))
    elapsed = time.monotonic() - started
    typer.echo(
        f"Created {counts.events:,} events, {counts.upcoming:,} of them upcoming; {counts.venues:,} venues, "
        f"{counts.organizers:,} organizers, {counts.categories:,} categories, {counts.tags:,} tags, "
        f"{f'{counts.series:,} series, ' if counts.series else ''}in {elapsed:.1f} s."
    )


def _add_town(site: str, today: datetime | None) -> None:
    from kalends.bootstrap import open_library
    from kalends.core.times import utc_now
    from kalends.demo.town.load import TownCounts, seed_town

    settings = load_site_cell(site)
    started = time.monotonic()
    with show_progress() as on_progress:
        counts: TownCounts | None = asyncio.run(
            seed_town(
                settings.owner_url,
                read_site(site),
                open_library(settings, image_workers=2),
                media_url=settings.media_url,
                today=(today or utc_now()).date(),
                on_progress=on_progress,
            )
        )
    if counts is None:
        typer.echo("The site has the town already; nothing was added.")
        return
    typer.echo(
        f"Created Larkford: {counts.events:,} events, {counts.series:,} series, {counts.venues:,} venues, "
        f"{counts.organizers:,} organizers, {counts.categories:,} categories, {counts.images:,} images, "
        f"in {time.monotonic() - started:.1f} s."
    )
    if not settings.smtp_url.get_secret_value():
        typer.echo("The form for events from the public stays closed: set KALENDS_SMTP_URL to open it.")

"""Demo data."""

import asyncio
import time
from datetime import datetime
from typing import Annotated

import typer

from kalends.cli.runtime import Host, fail, load_settings, show_progress
from kalends.core.errors import ApiError, InvalidValue


def add_demo_records(
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
    from kalends.demo import seed as seeding

    started = time.monotonic()
    try:
        options = seeding.DemoOptions(
            events=events,
            upcoming=seeding.parse_upcoming(upcoming, events),
            venues=venues,
            organizers=organizers,
            categories=categories,
            tags=tags,
            seed=seed,
            today=today.date() if today else None,
        )
        with show_progress() as on_progress:
            counts = asyncio.run(seeding.seed(load_settings().owner_url, host_name, options, on_progress))
    except (ApiError, InvalidValue) as error:
        fail(error.text)
    elapsed = time.monotonic() - started
    typer.echo(
        f"Made {counts.events:,} events, {counts.upcoming:,} of them from today on; {counts.venues:,} venues, "
        f"{counts.organizers:,} organizers, {counts.categories:,} categories, {counts.tags:,} tags, "
        f"in {elapsed:.1f} s."
    )

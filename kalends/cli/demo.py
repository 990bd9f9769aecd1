"""Demo data."""

import asyncio
import time
from datetime import datetime
from typing import Annotated

import typer

from kalends.cli.runtime import Host, fail, load_settings, show_progress
from kalends.core.errors import ApiError, InvalidValue


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
    from kalends.demo import seed as seeding

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
        with show_progress() as told:
            made = asyncio.run(seeding.seed(load_settings().owner_url, host_name, wanted, told))
    except (ApiError, InvalidValue) as problem:
        fail(problem.text)
    took = time.monotonic() - began
    typer.echo(
        f"Made {made.events:,} events, {made.upcoming:,} of them from today on; {made.venues:,} venues, "
        f"{made.organizers:,} organizers, {made.categories:,} categories, {made.tags:,} tags, in {took:.1f} s."
    )

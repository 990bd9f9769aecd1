"""Records."""

from typing import Annotated

import typer

from kalends.cli.runtime import SiteOption, run_in_transaction


def history(
    kind: Annotated[str, typer.Argument(help="Kind of the record: event, venue or organizer.")],
    record_id: Annotated[int, typer.Argument(help="ID of the record.")],
    site: SiteOption = "",
) -> None:
    """Show the changes of an event, venue or organizer, newest first."""
    from kalends.operations import record_history

    for entry in run_in_transaction(site, lambda tx: record_history.read_history(tx, kind, record_id)):
        login = entry["user"]["login"] if entry["user"] else "-"
        typer.echo(f"{entry['revision']:>8}  {entry['date_utc']}  {login:<20} {entry['action']}")
        for name, change in entry["changes"].items():
            typer.echo(f"          {name}: {change['before']!r} -> {change['after']!r}"[:300])

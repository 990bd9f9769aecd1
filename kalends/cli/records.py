"""Records."""

import typer

from kalends.cli.runtime import Host, run_in_transaction
from kalends.operations import accounts


def history(kind: str, record_id: int, host_name: Host = "") -> None:
    """Show who changed what of an event, venue or organizer, newest first."""
    for entry in run_in_transaction(host_name, lambda tx: accounts.read_history(tx, kind, record_id)):
        login = entry["user"]["login"] if entry["user"] else "-"
        typer.echo(f"{entry['revision']:>8}  {entry['date_utc']}  {login:<20} {entry['action']}")
        for name, change in entry["changes"].items():
            typer.echo(f"          {name}: {change['before']!r} -> {change['after']!r}"[:300])

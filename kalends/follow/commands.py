"""Commands for people who follow by email."""

from typing import Annotated

import typer

from kalends.cli import runtime
from kalends.cli.runtime import SiteOption

follower = typer.Typer(no_args_is_help=True, help="Manage people who get events by email.")


@follower.callback()
def _group() -> None:
    """Keep `forget` a subcommand although it is the only one."""


@follower.command("forget")
def forget_follower(
    email: Annotated[str, typer.Argument(help="Email address of the person.")],
    site: SiteOption = "",
) -> None:
    """Delete everything about a person who follows lists by email, even if emails to the address are stopped."""
    from kalends.follow.operations import followings

    number = runtime.run_in_transaction(site, lambda tx: followings.forget_email(tx, email))
    known = f"Deleted the data of {email} with {number} follows."
    typer.echo(f"There is no data of {email}." if number is None else known)

"""Commands for proposals."""

from typing import Annotated

import typer

from kalends.cli import runtime
from kalends.cli.runtime import SiteOption

proposals = typer.Typer(no_args_is_help=True, help="Manage events that people without an account have sent.")


@proposals.callback()
def _group() -> None:
    """Keep `forget` a subcommand although it is the only one."""


@proposals.command("forget")
def forget_sender(
    email: Annotated[str, typer.Argument(help="Email address that was entered in the public form.")],
    site: SiteOption = "",
) -> None:
    """Delete everything about a person who used the public form, even a block. Published events stay."""
    from kalends.proposals.operations import submissions

    number = runtime.run_in_transaction(site, lambda tx: submissions.forget_email(tx, email))
    typer.echo(f"Deleted the data of {email} from {number} proposals." if number else f"There is no data of {email}.")

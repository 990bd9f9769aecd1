"""Commands for accounts and their application passwords."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from kalends.cli import runtime
from kalends.cli.runtime import JsonOption, LimitOption, Login, SearchOption, SiteOption, YesOption

if TYPE_CHECKING:
    from kalends.store.database import Transaction

user = typer.Typer(no_args_is_help=True, help="Manage accounts.")
app_password = typer.Typer(no_args_is_help=True, help="Manage application passwords, which API clients sign in with.")

ROLES = "Role: subscriber, contributor, author, editor or administrator."
Name = Annotated[str, typer.Argument(help="Name of the application password, unique per account.")]


@user.command("add")
def add_user(
    login: Annotated[str, typer.Argument(help="Login of the new account.")],
    role: Annotated[str, typer.Option(help=ROLES)],
    email: Annotated[str, typer.Option(help="Email address; can also be used to sign in.")] = "",
    invite: Annotated[
        bool, typer.Option("--invite", help="Print a link with which the user signs in once and sets a password.")
    ] = False,
    site: SiteOption = "",
) -> None:
    """Add an account."""
    from kalends.accounts.operations import user_accounts
    from kalends.accounts.operations.sign_in_methods import Purpose

    async def add(tx: "Transaction") -> tuple[int, str]:
        user_id = await user_accounts.add_user(tx, login, role, email)
        return user_id, await runtime.create_link(tx, user_id, Purpose.INVITE) if invite else ""

    user_id, url = runtime.run_in_transaction(site, add)
    typer.echo(f"Added {login} as {role} (ID {user_id}).")
    if url:
        typer.echo(f"The invitation works once, within seven days:\n{url}")


@user.command("link")
def link_user(login: Login, site: SiteOption = "") -> None:
    """Print a one-time link that signs an account in to the console within one hour. Earlier links stop working."""
    from kalends.accounts.operations import user_accounts
    from kalends.accounts.operations.sign_in_methods import Purpose

    async def link(tx: "Transaction") -> str:
        return await runtime.create_link(tx, await user_accounts.require_active_user(tx, login), Purpose.SIGN_IN)

    typer.echo(runtime.run_in_transaction(site, link))


@user.command("list")
def list_users(
    role: Annotated[str, typer.Option(help="Only accounts with this role.")] = "",
    search: SearchOption = "",
    limit: LimitOption = None,
    as_json: JsonOption = False,
    site: SiteOption = "",
) -> None:
    """List accounts: ID, role, status, last sign-in, login, email address. --search matches the last two."""
    from kalends.accounts.operations import user_accounts

    rows = runtime.run_in_transaction(
        site, lambda tx: user_accounts.list_users(tx, role, search, limit and limit + 1)
    )
    runtime.print_list(
        rows,
        lambda row: [
            row["id"],
            row["role"],
            "disabled" if row["disabled_at"] else "active",
            runtime.format_time(row["last_used_at"], "never"),
            row["login"],
            row["email"],
        ],
        as_json=as_json,
        limit=limit,
    )


@user.command("set-role")
def set_role(login: Login, role: Annotated[str, typer.Argument(help=ROLES)], site: SiteOption = "") -> None:
    """Change an account's role."""
    from kalends.accounts.operations import user_accounts

    runtime.run_in_transaction(site, lambda tx: user_accounts.set_role(tx, login, role))
    typer.echo(f"{login} has the role {role}.")


@user.command("disable")
def disable_user(login: Login, site: SiteOption = "") -> None:
    """Prevent an account from signing in; its records stay."""
    from kalends.accounts.operations import user_accounts

    runtime.run_in_transaction(site, lambda tx: user_accounts.disable_user(tx, login))
    typer.echo(f"{login} can no longer sign in.")


@user.command("enable")
def enable_user(login: Login, site: SiteOption = "") -> None:
    """Allow a disabled account to sign in again."""
    from kalends.accounts.operations import user_accounts

    runtime.run_in_transaction(site, lambda tx: user_accounts.enable_user(tx, login))
    typer.echo(f"{login} can sign in again.")


@user.command("rename")
def rename_user(
    login: Login, new_login: Annotated[str, typer.Argument(help="New login.")], site: SiteOption = ""
) -> None:
    """Change an account's login."""
    from kalends.accounts.operations import user_accounts

    runtime.run_in_transaction(site, lambda tx: user_accounts.rename_user(tx, login, new_login))
    typer.echo(f"{login} is now {new_login}.")


@user.command("set-email")
def set_email(
    login: Login,
    email: Annotated[str, typer.Argument(help="Email address; an empty text removes it.")],
    site: SiteOption = "",
) -> None:
    """Change an account's email address."""
    from kalends.accounts.operations import user_accounts

    runtime.run_in_transaction(site, lambda tx: user_accounts.set_email(tx, login, email))
    typer.echo(f"{login} has the email address {email}." if email else f"{login} has no email address.")


@user.command("remove")
def remove_user(
    login: Login,
    reassign_to: Annotated[str, typer.Option(help="Login of the account that becomes author of the records.")] = "",
    yes: YesOption = False,
    site: SiteOption = "",
) -> None:
    """Remove an account and make another one the author of its records."""
    from kalends.accounts.operations import user_accounts

    runtime.confirm(f"Remove the account {login}?", yes=yes)
    count = runtime.run_in_transaction(site, lambda tx: user_accounts.remove_user(tx, login, reassign_to))
    moved = f" {reassign_to} is the author of its {count:,} records." if count else ""
    typer.echo(f"Removed {login}.{moved}")


@user.command("set-password")
def set_password(login: Login, site: SiteOption = "") -> None:
    """Set an account's password, entered at a prompt or read from standard input."""
    from kalends.accounts.operations import user_accounts

    secret = typer.prompt("Password", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    runtime.run_in_transaction(site, lambda tx: user_accounts.set_account_password(tx, login, secret))
    typer.echo(f"Set the password of {login}.")


@app_password.command("create")
def create_password(
    login: Login,
    name: Name,
    read_only: Annotated[bool, typer.Option("--read-only", help="Allow read requests only.")] = False,
    proposals: Annotated[bool, typer.Option("--proposals", help="Allow reading and proposing changes.")] = False,
    site: SiteOption = "",
) -> None:
    """Create an application password and print it once."""
    from kalends.accounts.operations import user_accounts

    secret = runtime.run_in_transaction(
        site,
        lambda tx: user_accounts.add_application_password(
            tx, login, name, read_only=read_only, may_propose=proposals
        ),
    )
    if sys.stdout.isatty():
        typer.echo(f"Created the application password {name} of {login}. It is not shown again:", err=True)
    typer.echo(secret)


@app_password.command("list")
def list_passwords(login: Login, as_json: JsonOption = False, site: SiteOption = "") -> None:
    """List an account's application passwords: name, creation date, last use."""
    from kalends.accounts.operations import user_accounts

    runtime.print_list(
        runtime.run_in_transaction(site, lambda tx: user_accounts.list_application_passwords(tx, login)),
        lambda row: [
            row["name"],
            f"created {row['created_at']:%Y-%m-%d}",
            f"last used {runtime.format_time(row['last_used_at'], 'never')}",
        ],
        as_json=as_json,
    )


@app_password.command("log")
def show_uses(login: Login, as_json: JsonOption = False, site: SiteOption = "") -> None:
    """List by hour when and from where an account's application passwords were used."""
    from kalends.accounts.operations import user_accounts

    runtime.print_list(
        runtime.run_in_transaction(site, lambda tx: user_accounts.list_uses(tx, login)),
        lambda row: [f"{row['used_at']:%Y-%m-%d %H}h", row["name"], row["client_ip"], row["user_agent"]],
        as_json=as_json,
    )


@app_password.command("revoke")
def revoke_password(login: Login, name: Name, site: SiteOption = "") -> None:
    """Revoke an application password."""
    from kalends.accounts.operations import user_accounts

    runtime.run_in_transaction(site, lambda tx: user_accounts.revoke_application_password(tx, login, name))
    typer.echo(f"Revoked the application password {name} of {login}.")

"""Accounts and their application passwords."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from kalends.cli.lists import JsonOption, LimitOption, SearchOption, format_time, print_list
from kalends.cli.runtime import Login, SiteOption, YesOption, confirm, load_settings, run_in_transaction

if TYPE_CHECKING:
    from kalends.operations.sessions import Purpose
    from kalends.store.database import Transaction

user = typer.Typer(no_args_is_help=True, help="Manage accounts.")
app_password = typer.Typer(no_args_is_help=True, help="Manage application passwords, which API clients sign in with.")

ROLES = "Role: subscriber, contributor, author, editor or administrator."
LOCAL_URL = "http://localhost:8000"
Name = Annotated[str, typer.Argument(help="Name of the application password, unique per account.")]


@user.command("add")
def add_user(
    login: Annotated[str, typer.Argument(help="Login of the new account.")],
    role: Annotated[str, typer.Option(help=ROLES)],
    email: Annotated[str, typer.Option(help="E-mail address; can also be used to sign in.")] = "",
    invite: Annotated[
        bool, typer.Option("--invite", help="Print a link with which the user signs in once and sets a password.")
    ] = False,
    site: SiteOption = "",
) -> None:
    """Add an account."""
    from kalends.operations import accounts
    from kalends.operations.sessions import Purpose

    async def add(tx: "Transaction") -> tuple[int, str]:
        user_id = await accounts.add_user(tx, login, role, email)
        return user_id, await create_link(tx, user_id, Purpose.INVITE) if invite else ""

    user_id, url = run_in_transaction(site, add)
    typer.echo(f"Added {login} as {role} (ID {user_id}).")
    if url:
        typer.echo(f"The invitation works once, within seven days:\n{url}")


@user.command("link")
def link_user(login: Login, site: SiteOption = "") -> None:
    """Print a link that signs an account in to the console once, within one hour; earlier links stop working."""
    from kalends.operations import accounts
    from kalends.operations.sessions import Purpose

    async def link(tx: "Transaction") -> str:
        return await create_link(tx, await accounts.require_active_user(tx, login), Purpose.SIGN_IN)

    typer.echo(run_in_transaction(site, link))


async def create_link(tx: "Transaction", user_id: int, purpose: "Purpose") -> str:
    """Create a one-time link with the URL of the site, else of the server, else of a local server."""
    from kalends.operations import sessions

    base_url = tx.site.base_url or load_settings().base_url or LOCAL_URL
    return await sessions.create_link(tx, user_id, purpose, base_url)


@user.command("list")
def list_users(
    role: Annotated[str, typer.Option(help="Only accounts with this role.")] = "",
    search: SearchOption = "",
    limit: LimitOption = None,
    as_json: JsonOption = False,
    site: SiteOption = "",
) -> None:
    """List accounts: ID, role, status, last sign-in, login, e-mail address. --search compares the last two."""
    from kalends.operations import accounts

    rows = run_in_transaction(site, lambda tx: accounts.list_users(tx, role, search, limit and limit + 1))
    print_list(
        rows,
        lambda row: [
            row["id"],
            row["role"],
            "disabled" if row["disabled_at"] else "active",
            format_time(row["last_used_at"], "never"),
            row["login"],
            row["email"],
        ],
        as_json=as_json,
        limit=limit,
    )


@user.command("set-role")
def set_role(login: Login, role: Annotated[str, typer.Argument(help=ROLES)], site: SiteOption = "") -> None:
    """Change the role of an account."""
    from kalends.operations import accounts

    run_in_transaction(site, lambda tx: accounts.set_role(tx, login, role))
    typer.echo(f"{login} has the role {role}.")


@user.command("disable")
def disable_user(login: Login, site: SiteOption = "") -> None:
    """Prevent an account from signing in; its records stay."""
    from kalends.operations import accounts

    run_in_transaction(site, lambda tx: accounts.disable_user(tx, login))
    typer.echo(f"{login} can no longer sign in.")


@user.command("enable")
def enable_user(login: Login, site: SiteOption = "") -> None:
    """Let a disabled account sign in again."""
    from kalends.operations import accounts

    run_in_transaction(site, lambda tx: accounts.enable_user(tx, login))
    typer.echo(f"{login} can sign in again.")


@user.command("rename")
def rename_user(
    login: Login, new_login: Annotated[str, typer.Argument(help="New login.")], site: SiteOption = ""
) -> None:
    """Change the login of an account."""
    from kalends.operations import accounts

    run_in_transaction(site, lambda tx: accounts.rename_user(tx, login, new_login))
    typer.echo(f"{login} is now {new_login}.")


@user.command("set-email")
def set_email(
    login: Login,
    email: Annotated[str, typer.Argument(help="E-mail address; an empty text removes it.")],
    site: SiteOption = "",
) -> None:
    """Change the e-mail address of an account."""
    from kalends.operations import accounts

    run_in_transaction(site, lambda tx: accounts.set_email(tx, login, email))
    typer.echo(f"{login} has the e-mail address {email}." if email else f"{login} has no e-mail address.")


@user.command("remove")
def remove_user(
    login: Login,
    reassign_to: Annotated[str, typer.Option(help="Login of the account that becomes author of the records.")] = "",
    yes: YesOption = False,
    site: SiteOption = "",
) -> None:
    """Remove an account; another one becomes author of its records."""
    from kalends.operations import accounts

    confirm(f"Remove the account {login}?", yes=yes)
    count = run_in_transaction(site, lambda tx: accounts.remove_user(tx, login, reassign_to))
    moved = f" {reassign_to} is the author of its {count:,} records." if count else ""
    typer.echo(f"Removed {login}.{moved}")


@user.command("set-password")
def set_password(login: Login, site: SiteOption = "") -> None:
    """Set the password of an account; prompts for it, or reads it from standard input."""
    from kalends.operations import accounts

    secret = typer.prompt("Password", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    run_in_transaction(site, lambda tx: accounts.set_account_password(tx, login, secret))
    typer.echo(f"Set the password of {login}.")


@app_password.command("create")
def create_password(
    login: Login,
    name: Name,
    read_only: Annotated[bool, typer.Option("--read-only", help="Allow read requests only.")] = False,
    site: SiteOption = "",
) -> None:
    """Create an application password and print it once."""
    from kalends.operations import accounts

    secret = run_in_transaction(
        site, lambda tx: accounts.add_application_password(tx, login, name, read_only=read_only)
    )
    if sys.stdout.isatty():
        typer.echo(f"Created the application password {name} of {login}. It is not shown again:", err=True)
    typer.echo(secret)


@app_password.command("list")
def list_passwords(login: Login, as_json: JsonOption = False, site: SiteOption = "") -> None:
    """List the application passwords of an account: name, creation date, last use."""
    from kalends.operations import accounts

    print_list(
        run_in_transaction(site, lambda tx: accounts.list_application_passwords(tx, login)),
        lambda row: [
            row["name"],
            f"created {row['created_at']:%Y-%m-%d}",
            f"last used {format_time(row['last_used_at'], 'never')}",
        ],
        as_json=as_json,
    )


@app_password.command("log")
def show_uses(login: Login, as_json: JsonOption = False, site: SiteOption = "") -> None:
    """List when and from where the application passwords of an account were used, by hour."""
    from kalends.operations import accounts

    print_list(
        run_in_transaction(site, lambda tx: accounts.list_uses(tx, login)),
        lambda row: [f"{row['used_at']:%Y-%m-%d %H}h", row["name"], row["client_ip"], row["user_agent"]],
        as_json=as_json,
    )


@app_password.command("revoke")
def revoke_password(login: Login, name: Name, site: SiteOption = "") -> None:
    """Revoke an application password."""
    from kalends.operations import accounts

    run_in_transaction(site, lambda tx: accounts.revoke_application_password(tx, login, name))
    typer.echo(f"Revoked the application password {name} of {login}.")

"""Accounts and their application passwords."""

import sys
from typing import Annotated

import typer

from kalends.cli.runtime import Host, run_in_transaction
from kalends.operations import accounts

user = typer.Typer(no_args_is_help=True, help="Accounts.")
password = typer.Typer(no_args_is_help=True, help="Application passwords, with which clients sign in.")


@user.command("add")
def add_user(
    login: str,
    role: Annotated[str, typer.Option(help="subscriber, contributor, author, editor or administrator.")],
    email: Annotated[str, typer.Option(help="E-mail address; can be used to sign in too.")] = "",
    host_name: Host = "",
) -> None:
    """Add an account and print its ID."""
    typer.echo(run_in_transaction(host_name, lambda tx: accounts.add_user(tx, login, role, email)))


@user.command("list")
def list_users(host_name: Host = "") -> None:
    """Show all accounts."""
    for row in run_in_transaction(host_name, accounts.list_users):
        typer.echo(f"{row['id']:>6}  {row['role']:<14} {row['login']}  {row['email']}")


@user.command("role")
def set_role(login: str, role: str, host_name: Host = "") -> None:
    """Give an account another role."""
    run_in_transaction(host_name, lambda tx: accounts.set_role(tx, login, role))


@user.command("password")
def set_password(login: str, host_name: Host = "") -> None:
    """Set the password of an account; it is asked for, or read from standard input."""
    secret = typer.prompt("Password", hide_input=True) if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    run_in_transaction(host_name, lambda tx: accounts.set_account_password(tx, login, secret))


@password.command("add")
def add_password(
    login: str,
    name: str,
    read_only: Annotated[bool, typer.Option("--read-only", help="It may read, and nothing else.")] = False,
    host_name: Host = "",
) -> None:
    """Make an application password and print it. It is shown only now."""
    typer.echo(
        run_in_transaction(
            host_name, lambda tx: accounts.add_application_password(tx, login, name, read_only=read_only)
        )
    )


@password.command("list")
def list_passwords(login: str, host_name: Host = "") -> None:
    """Show the application passwords of an account: name, made, last used."""
    for row in run_in_transaction(host_name, lambda tx: accounts.list_application_passwords(tx, login)):
        used = f"{row['last_used_at']:%Y-%m-%d %H:%M}" if row["last_used_at"] else "never"
        typer.echo(f"{row['name']:<30} made {row['created_at']:%Y-%m-%d}  last used {used}")


@password.command("log")
def show_uses(login: str, host_name: Host = "") -> None:
    """Show when and from where the application passwords of an account were used, by the hour."""
    for row in run_in_transaction(host_name, lambda tx: accounts.list_uses(tx, login)):
        typer.echo(f"{row['used_at']:%Y-%m-%d %H}h  {row['name']:<30} {row['client_ip']:<40} {row['user_agent']}")


@password.command("revoke")
def revoke_password(login: str, name: str, host_name: Host = "") -> None:
    """Make an application password useless at once."""
    run_in_transaction(host_name, lambda tx: accounts.revoke_application_password(tx, login, name))

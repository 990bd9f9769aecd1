"""Errors of commands: one message without a traceback, without passwords, and the exit code 1."""

import os
import re
import traceback
from typing import Any, NoReturn
from urllib.parse import urlsplit

import typer
from typer.core import TyperGroup

from kalends.core.errors import UNKNOWN_SITE, ApiError, InvalidValue

# A URL, up to the next one of a list such as a=postgresql://…,b=postgresql://…
URL = re.compile(r"postgres(?:ql)?://.*?(?=,[a-z0-9-]+=postgres|$)")
URL_SETTINGS = (
    *("KALENDS_DATABASE_URL", "KALENDS_MIGRATION_URL", "KALENDS_QUEUE_URL"),
    *("KALENDS_DIRECTORY_URL", "KALENDS_CELLS", "KALENDS_CELL_OWNERS", "KALENDS_CELL_QUEUES"),
)


class CommandGroup(TyperGroup):
    """The group of all commands; explains every error that a command raises."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            # Errors of the command line itself have an exit code; Typer handles these and a closed pipe.
            if hasattr(error, "exit_code") or isinstance(error, typer.Abort | BrokenPipeError):
                raise
            if ctx.params.get("debug"):
                typer.echo(mask_passwords("".join(traceback.format_exception(error))), err=True)
            fail(describe(error))


def fail(message: str) -> NoReturn:
    """Print a message on standard error, red on a terminal, and end the command with status 1."""
    color = False if "NO_COLOR" in os.environ else None
    typer.secho(mask_passwords(message), err=True, fg=typer.colors.RED, color=color)
    raise typer.Exit(1)


def describe(error: Exception) -> str:
    """Return the message for an error."""
    if isinstance(error, ApiError) and error.code == UNKNOWN_SITE:
        return "There is no such site. Choose one with --site; `kalends site list` shows all."
    # The detail of an unavailable database says more than the message for clients.
    if isinstance(error, ApiError | InvalidValue):
        return str(getattr(error, "detail", error.text))
    from kalends.store import problems

    states = [getattr(cause, "sqlstate", None) for cause in problems.iterate_causes(error)]
    if any(state in problems.SCHEMA_STATES for state in states):
        return problems.UNMIGRATED.detail
    summary = next(iter(str(error).splitlines()), "") or type(error).__name__
    if isinstance(error, OSError):
        return summary
    return f"{type(error).__name__}: {summary}\nRun `kalends --debug …` to see the traceback."


def mask_passwords(text: str) -> str:
    """Replace passwords in URLs, and the passwords of the settings wherever they appear."""
    masked = re.sub(r"(://[^\s:/@]*:)[^\s/]*@", r"\1***@", text)
    for name in URL_SETTINGS:
        for password in _read_passwords(os.environ.get(name, "")):
            if len(password) > 3:
                masked = masked.replace(password, "***")
    return masked


def _read_passwords(text: str) -> list[str]:
    """Return the passwords of all URLs in a setting, which may be a list."""
    try:
        return [urlsplit(url).password or "" for url in URL.findall(text)]
    except ValueError:
        return []

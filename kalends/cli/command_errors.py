"""Report command errors as one message with exit code 1, without tracebacks or passwords; print check findings."""

import os
import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn
from urllib.parse import urlsplit

import typer
from typer.core import TyperGroup

from kalends.core.errors import UNKNOWN_SITE, ApiError, InvalidValue

# A URL, up to the next entry in a list such as a=postgresql://…,b=postgresql://…
URL = re.compile(r"postgres(?:ql)?://.*?(?=,[a-z0-9-]+=postgres|$)")
URL_SETTINGS = (
    *("KALENDS_DATABASE_URL", "KALENDS_MIGRATION_URL", "KALENDS_QUEUE_URL"),
    *("KALENDS_DIRECTORY_URL", "KALENDS_CELLS", "KALENDS_CELL_OWNERS", "KALENDS_CELL_QUEUES"),
)


class CommandGroup(TyperGroup):
    """Turns exceptions into error messages."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            # Typer handles aborts, closed pipes and its own errors, which have an exit code.
            if hasattr(error, "exit_code") or isinstance(error, typer.Abort | BrokenPipeError):
                raise
            if ctx.params.get("debug"):
                typer.echo(mask_passwords("".join(traceback.format_exception(error))), err=True)
            fail(describe(error))


def fail(message: str) -> NoReturn:
    """Print a message to standard error, in red on a terminal, and exit with status 1."""
    color = False if "NO_COLOR" in os.environ else None
    typer.secho(mask_passwords(message), err=True, fg=typer.colors.RED, color=color)
    raise typer.Exit(1)


def describe(error: Exception) -> str:
    if isinstance(error, ApiError) and error.code == UNKNOWN_SITE:
        return "There is no such site. Choose one with --site; `kalends site list` shows all."
    # If the database is unavailable, `detail` is more specific than the message that clients get.
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
    """Mask passwords in URLs, and the configured passwords wherever they appear."""
    masked = re.sub(r"(://[^\s:/@]*:)[^\s/]*@", r"\1***@", text)
    for name in URL_SETTINGS:
        for password in _read_passwords(os.environ.get(name, "")):
            if len(password) > 3:
                masked = masked.replace(password, "***")
    return masked


def _read_passwords(text: str) -> list[str]:
    try:
        return [urlsplit(url).password or "" for url in URL.findall(text)]
    except ValueError:
        return []


Level = Literal["ok", "warning", "error"]
COLORS = {"ok": typer.colors.GREEN, "warning": typer.colors.YELLOW, "error": typer.colors.RED}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check; `cure` is empty if no action is needed."""

    subject: str
    level: Level
    text: str
    cure: str = ""


def print_findings(findings: Sequence[Finding]) -> None:
    for finding in findings:
        level = typer.style(f"{finding.level:<8}", fg=COLORS[finding.level])
        typer.echo(f"{level} {finding.subject:<11} {finding.text}")
        for line in finding.cure.splitlines():
            typer.echo(f"{'':<20} {line}")

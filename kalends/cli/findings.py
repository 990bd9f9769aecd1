"""Findings of `kalends check`: what was looked at, how it is, and what to do about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import typer

Level = Literal["ok", "warning", "error"]
COLORS = {"ok": typer.colors.GREEN, "warning": typer.colors.YELLOW, "error": typer.colors.RED}


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of one thing; the cure is empty if nothing needs to be done."""

    subject: str
    level: Level
    text: str
    cure: str = ""


def print_findings(findings: Sequence[Finding]) -> None:
    """Print a line per finding, with its cure below."""
    for finding in findings:
        level = typer.style(f"{finding.level:<8}", fg=COLORS[finding.level])
        typer.echo(f"{level} {finding.subject:<11} {finding.text}")
        for line in finding.cure.splitlines():
            typer.echo(f"{'':<20} {line}")

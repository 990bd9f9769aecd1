"""Generates docs/settings.md from the settings and commands; `--check` only compares."""

import sys
from pathlib import Path
from typing import Any

import typer.main

from kalends.calendar.operations.site_options import SITE_KEYS
from kalends.commands import app
from kalends.settings import Settings

PAGE = Path(__file__).resolve().parent.parent / "docs" / "settings.md"


def render() -> str:
    lines = [
        "# Settings and commands",
        "",
        "`just reference` generates this page from the code.",
        "",
        "## Settings",
        "",
        "Settings are environment variables. They are validated at start; an error names the variable and the "
        "accepted values. Unknown variables that begin with `KALENDS_` are rejected.",
        "",
        "| Setting | Default | Description |",
        "|---|---|---|",
    ]
    for name, field in Settings.model_fields.items():
        default = ",".join(field.default) if isinstance(field.default, tuple) else _format_default(field.default)
        default_cell = f"`{default}`" if default else "none"
        lines.append(f"| `KALENDS_{name.upper()}` | {default_cell} | {field.description} |")
    keys = ", ".join(f"`{key}`" for key in SITE_KEYS)
    lines += ["", f"Set the settings of a site with `kalends site set KEY VALUE`: {keys}.", "", "## Commands", ""]
    lines += ["| Command | Description |", "|---|---|", *_list_commands(typer.main.get_command(app), "kalends")]
    return "\n".join(lines) + "\n"


def _format_default(default: object) -> str:
    if default == {}:
        return ""
    return str(default).lower() if isinstance(default, bool) else str(default)


def _list_commands(command: Any, name: str) -> list[str]:
    subcommands = getattr(command, "commands", None)
    if subcommands is not None:
        return [line for key, inner in subcommands.items() for line in _list_commands(inner, f"{name} {key}")]
    arguments = [str(p.name).upper() for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.opts[0] != "--help"]
    usage = " ".join([name, *arguments, *(p.opts[0] if p.required else f"[{p.opts[0]}]" for p in options)])
    return [f"| `{usage}` | {(command.help or '').strip()} |"]


def main() -> int:
    page = render()
    if "--check" in sys.argv:
        return 0 if PAGE.exists() and PAGE.read_text() == page else 1
    PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())

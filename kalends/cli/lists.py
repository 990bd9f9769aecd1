"""Lists of all commands: as aligned columns for people, or as JSON for programs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import Annotated, Any, cast

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
LimitOption = Annotated[int | None, typer.Option("--limit", help="Maximum number of entries; by default all.", min=1)]
SearchOption = Annotated[str, typer.Option("--search", help="Only entries that contain this text.")]


def print_list[Entry](
    entries: Sequence[Entry],
    describe: Callable[[Entry], Sequence[object]],
    *,
    as_json: bool = False,
    limit: int | None = None,
) -> None:
    """Print entries as JSON, or a line for each, with the cells that `describe` returns.

    `entries` may have one more than the limit; then a line on standard error says that there are others.
    """
    shown = entries[:limit]
    if as_json:
        print_json([to_dict(entry) for entry in shown])
    else:
        print_columns([describe(entry) for entry in shown])
    if len(shown) < len(entries):
        typer.echo(f"There are more than {limit:,} entries; a higher --limit shows them.", err=True)


def print_columns(lines: Sequence[Sequence[object]]) -> None:
    """Print a line for each sequence of cells, with aligned columns; numbers are right-aligned."""
    texts = [[_remove_controls(str(cell)) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for line, cells in zip(lines, texts, strict=True):
        padded = [
            text.rjust(width) if isinstance(cell, int) else text.ljust(width)
            for cell, text, width in zip(line, cells, widths, strict=True)
        ]
        typer.echo("  ".join(padded).rstrip())


def print_json(value: object) -> None:
    """Print a value as JSON with times in UTC, such as 2026-11-18T10:30:00Z."""
    import orjson

    options = orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z | orjson.OPT_OMIT_MICROSECONDS
    typer.echo(orjson.dumps(value, option=options, default=str).decode())


def to_dict(entry: object) -> dict[str, Any]:
    """Return a row, a mapping or a dataclass as a dictionary."""
    if is_dataclass(entry) and not isinstance(entry, type):
        return asdict(entry)
    return dict(cast("Mapping[str, Any]", entry))


def format_time(value: datetime | None, otherwise: str = "-") -> str:
    """Return a time for a table, in UTC and to the minute."""
    return f"{value:%Y-%m-%d %H:%M}" if value is not None else otherwise


def _remove_controls(text: str) -> str:
    """Replace control characters, which could steer a terminal."""
    return "".join(character if character.isprintable() else " " for character in text)

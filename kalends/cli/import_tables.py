"""Tables of imports in the terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kalends.cli.lists import format_time
from kalends.core.event_states import SCHEDULED
from kalends.operations.import_requests.serialize import serialize_event
from kalends.store import Row, imports
from kalends.store.imports import decode_message

ACTIONS: Final = ("new", "changed", "moved", "linked", "duplicate", "gone", "rejected", "unchanged")
STYLES: Final = {"new": "green", "changed": "yellow", "gone": "red", "rejected": "red", "duplicate": "magenta"}
MAX_VALUE: Final = 60


# The columns of sources and runs that programs read.
SOURCE_KEYS: Final = (
    *("id", "kind", "name", "url", "owner_login", "interval_minutes", "state"),
    *("last_success_at", "next_run_at", "failures"),
)
RUN_KEYS: Final = (
    *("id", "source_id", "source_name", "user_login", "state"),
    *("started_at", "planned_at", "finished_at", "undoes", "undone_by"),
)


def encode_source(row: Row) -> dict[str, Any]:
    return {key: row[key] for key in SOURCE_KEYS}


def encode_run(row: Row) -> dict[str, Any]:
    return {**{key: row[key] for key in RUN_KEYS}, "counts": imports.decode(row["counts"])}


def describe_source(row: Row) -> list[object]:
    minutes, success = row["interval_minutes"] or "-", format_time(row["last_success_at"])
    return [row["id"], row["kind"], row["name"], minutes, row["state"], success, row["failures"]]


def describe_run(row: Row) -> list[object]:
    state = row["state"] if row["undoes"] is None else f"{row['state']} (undoes {row['undoes']})"
    return [row["id"], row["source_name"], format_time(row["started_at"]), state, _summarize(row)]


def print_counts(run: Row) -> None:
    what = f" (undoes run {run['undoes']})" if run["undoes"] is not None else ""
    _console().print(Text(f"Run {run['id']}{what}: {run['state']}. {_summarize(run)}"))


def print_rows(groups: Iterable[tuple[Sequence[Row], int]], run_id: int) -> None:
    """Print rows by action; each group comes with the number of its rows."""
    for rows, count in groups:
        table = _make_table("", "Row", "Action", "Kind", "Title", "Line", "State", "Details")
        for row in rows:
            action = Text(row["action"], style=STYLES.get(row["action"], ""))
            _add(table, row["number"], action, row["kind"], row["title"], row["line"] or "", row["state"],
                 _describe(row))  # fmt: skip
        _print(table)
        if count > len(rows):
            _console().print(
                Text(f"… and {count - len(rows):,} more; `kalends import show {run_id} --all` lists them.")
            )


def _describe(row: Row) -> Text:
    """Return the reasons of a row and its changed fields."""
    event = serialize_event(row)
    lines = [_describe_event(event)] if event is not None else []
    lines += [str(decode_message(reason)) for reason in imports.decode(row["reasons"])]
    for name, change in imports.decode(row["changes"]).items():
        kept = "" if change["decision"] == "source" else f" (kept: {change['decision']})"
        lines.append(f"{name}: {_shorten(change['stored'])} → {_shorten(change['now'])}{kept}")
    return Text("\n".join(lines))


def _describe_event(event: Mapping[str, Any]) -> str:
    """Return when an event starts, its state if it does not take place as planned, and the dates of a series."""
    parts = [str(event["start_date"]), "all day" if event["all_day"] else ""]
    parts.append(event["event_status"] if event["event_status"] != SCHEDULED else "")
    parts.append("no end" if event["dates"] is None else f"{event['dates']:,} dates" if event["dates"] != 1 else "")
    return ", ".join(filter(None, parts))


def _shorten(value: Any) -> str:
    text = "-" if value in (None, "") else str(value).replace("\n", " ")
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"


def _summarize(run: Row) -> str:
    counts = imports.decode(run["counts"])
    return ", ".join(f"{counts[name]:,} {name}" for name in ACTIONS if counts.get(name)) or "no records"


def _make_table(title: str, *columns: str) -> Table:
    table = Table(title=title or None, title_justify="left", show_edge=False, pad_edge=False)
    for column in columns:
        table.add_column(
            column, justify="right" if column in ("ID", "Row", "Line", "Minutes", "Failures") else "left"
        )
    return table


def _add(table: Table, *cells: object) -> None:
    """Add a row. Texts of imports are no markup."""
    table.add_row(*[cell if isinstance(cell, Text) else Text(_printable(str(cell))) for cell in cells])


def _printable(text: str) -> str:
    """Remove control characters, which could steer a terminal."""
    return "".join(character if character.isprintable() or character == "\n" else " " for character in text)


def _print(table: Table) -> None:
    if table.row_count:
        _console().print(table)


def _console() -> Console:
    console = Console()
    # A pipe has no width; lines are not to break there.
    return console if console.is_terminal else Console(width=200)

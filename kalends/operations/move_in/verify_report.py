"""The report of a comparison with the old site, as Markdown."""

from collections.abc import Iterable, Sequence

from kalends.core.tec.move_in import MoveIn
from kalends.operations.move_in.verify import Difference, Key, Verification


def write_report(result: Verification, move_in: MoveIn, run_id: int) -> str:
    """Return the result as Markdown."""
    lines = [
        f"# Comparison of run {run_id} with {move_in.site.url}",
        "",
        f"{len(result.unlisted)} differences, and {len(_explained(result))} that the plan explains.",
        "",
        "| Compared | Number |",
        "|---|--:|",
        *[f"| {name} | {number} |" for name, number in result.compared.items()],
    ]
    for title, entries in (("Differences", result.unlisted), ("Explained", _explained(result))):
        lines += ["", f"## {title}", "", *_write_table(entries)]
    lines += ["", "## Warnings of the plan", ""]
    lines += [f"- {warning.cause} ({_write_records(warning.records)})" for warning in move_in.warnings] or ["None."]
    return "\n".join([*lines, ""])


def _explained(result: Verification) -> list[Difference]:
    return [entry for entry in result.differences if entry.is_listed]


def _write_table(entries: Sequence[Difference]) -> Iterable[str]:
    if not entries:
        return ["None."]
    rows = [(entry.kind, entry.identity, entry.field, entry.expected, entry.found) for entry in entries]
    head = ["| Kind | ID | Field | Expected | Found |", "|---|---|---|---|---|"]
    return [*head, *["| " + " | ".join(map(_escape, row)) + " |" for row in rows]]


def _write_records(records: Sequence[Key]) -> str:
    return ", ".join(f"{kind} {identity}" for kind, identity in records)


def _escape(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")

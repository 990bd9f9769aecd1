"""The report of a comparison with the old site, as Markdown."""

from collections.abc import Collection, Iterable, Sequence

from kalends.core.errors import InvalidValue
from kalends.core.tec.move_in import MoveIn
from kalends.operations.move_in.verify import Difference, Key, Verification

COLUMNS = ("Kind", "ID", "Field", "Expected", "Found")
DIFFERENCES = "## Differences"


def write_report(result: Verification, move_in: MoveIn, run_id: int, accepted: Sequence[Difference] = ()) -> str:
    """Return the result as Markdown. Accepted differences have a separate table."""
    remaining = [entry for entry in result.unexplained if entry not in accepted]
    lines = [
        f"# Comparison of run {run_id} with {move_in.site.url}",
        "",
        f"{len(remaining)} differences; {len(accepted)} more are accepted, and {len(result.explained)} explained.",
        "",
        "| Compared | Number |",
        "|---|--:|",
        *[f"| {name} | {number} |" for name, number in result.compared.items()],
        *("", DIFFERENCES, "", *_write_table(COLUMNS, map(write_row, remaining))),
        *("", "## Accepted", "", *_write_table(COLUMNS, map(write_row, accepted))),
        *("", "## Explained", "", *_write_table((*COLUMNS, "Why"), map(write_row, result.explained))),
        *("", "## Warnings of the plan", ""),
    ]
    lines += [f"- {warning.cause} ({_write_records(warning.records)})" for warning in move_in.warnings] or ["None."]
    return "\n".join([*lines, ""])


def write_row(entry: Difference) -> str:
    """Return the line of a table. Equal differences have equal lines."""
    values = (entry.kind, entry.identity, entry.field, entry.expected, entry.found)
    return _join(map(_escape, (*values, entry.reason) if entry.reason else values))


def read_accepted(report: str, url: str) -> Collection[str]:
    """Return the lines of the differences in a report on the site at an address."""
    title, _, rest = report.partition("\n")
    _, found, table = rest.partition(f"\n{DIFFERENCES}\n")
    if not title.startswith("# Comparison of run ") or not title.endswith(f" with {url}") or not found:
        raise InvalidValue("--accept-differences must name a report on {url}.", url=url)
    return frozenset(line for line in table.partition("\n## ")[0].splitlines() if line.startswith("| "))


def _write_table(columns: Sequence[str], rows: Iterable[str]) -> Iterable[str]:
    lines = list(rows)
    return [_join(columns), "|" + "---|" * len(columns), *lines] if lines else ["None."]


def _join(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _write_records(records: Sequence[Key]) -> str:
    return ", ".join(f"{kind} {identity}" for kind, identity in records)


def _escape(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")

"""The fields of an imported record, which are compared one by one, and its fingerprint."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from kalends.core.html.sanitize import fold
from kalends.core.imports.records import ImportedRecord

# Precedes the names of columns that no parameter sets.
COLUMN_PREFIX: Final = "columns."
# Parameters that only have a meaning together.
TIME_FIELDS: Final = ("start_date", "end_date", "timezone", "all_day", "rule")


def list_fields(imported: ImportedRecord) -> dict[str, Any]:
    """Return all values of an imported record by field: parameters, links by identity, and columns."""
    return {
        **imported.values,
        **{name: {"linked": list(identities)} for name, identities in imported.links.items()},
        **{COLUMN_PREFIX + name: value for name, value in imported.columns.items()},
    }


def select_fields(imported: ImportedRecord, names: Collection[str]) -> ImportedRecord:
    """Return the record with these fields only."""
    return replace(
        imported,
        values={name: value for name, value in imported.values.items() if name in names},
        links={name: value for name, value in imported.links.items() if name in names},
        columns={name: value for name, value in imported.columns.items() if COLUMN_PREFIX + name in names},
    )


def group_of(field: str) -> str:
    """Return the group of a field: all times are decided together, every other field alone."""
    return "times" if field in TIME_FIELDS else field


def compute_fingerprint(imported: ImportedRecord) -> str:
    """Return a text that stays the same if a source changes the identity of a record: title, start and place."""
    start = " ".join(str(imported.values.get(name, "")) for name in ("start_date", "timezone"))
    parts = (imported.kind, fold(imported.title), start, fold(_name_place(imported)), imported.recurrence_id)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _name_place(imported: ImportedRecord) -> str:
    linked = imported.links.get("venue")
    return ",".join(linked) if linked else _name_venue(imported.values.get("venue"))


def _name_venue(venue: object) -> str:
    entry: Any = venue[0] if isinstance(venue, list) and venue else venue  # pyright: ignore[reportUnknownVariableType]
    return str(entry.get("venue", "")) if isinstance(entry, Mapping) else str(entry or "")  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]

"""Two versions of a record for a merge: the one that a user began with, and the current one."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson

from kalends.core import times
from kalends.kinds.kind import Kind
from kalends.kinds.posts import strip_trashed_suffix
from kalends.kinds.snapshots import to_public
from kalends.operations.context import OperationContext
from kalends.operations.records import fetch_editable_row
from kalends.store import history

# The fold of each local time: 1 for the second of two equal ones.
FOLDS: Final = {"start_date": "start_fold", "end_date": "end_fold"}


@dataclass(frozen=True, slots=True)
class Versions:
    """The parameters of a record at a revision and now, as the history shows them.

    `base` is None if the change log no longer reaches back to the revision.
    """

    base: dict[str, Any] | None
    current: dict[str, Any]
    revision: int
    users: tuple[str, ...]  # who changed the record in between


async def read_versions(kind: Kind, context: OperationContext, base_revision: int) -> Versions:
    """Read both versions. Raise ApiError if the caller may not edit the record."""
    row = await fetch_editable_row(kind, context)
    tx = context.transaction
    changes = await history.list_record_changes(tx, kind.name, row["id"], after=base_revision)
    columns: dict[str, Any] = orjson.loads(history.encode_columns(dict(row)))
    base = dict(columns)
    for change in changes:  # newest first
        base.update(orjson.loads(change["before"]) if change["before"] else {})
    is_known = tx.site.trimmed_revision <= base_revision <= tx.site.revision
    users = tuple(dict.fromkeys(name for change in changes if (name := change["display_name"] or change["login"])))
    return Versions(_read(kind, base) if is_known else None, _read(kind, columns), row["revision"], users)


def _read(kind: Kind, columns: dict[str, Any]) -> dict[str, Any]:
    names = {param.name for param in kind.fields}
    values = {name: value for name, value in to_public(kind, columns).items() if name in names}
    if "slug" in values:
        values["slug"] = strip_trashed_suffix(values["slug"])
    for name, fold in FOLDS.items():
        if columns.get(fold):  # The offset identifies the second of two equal local times.
            zone = columns["timezone"]
            values[name] += times.format_offset(times.utc_of(datetime.fromisoformat(values[name]), zone, 1), zone)
    return values

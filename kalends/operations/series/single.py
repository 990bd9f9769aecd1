"""The consequences of a write of one date for its series: its own fields, and the dates that are left out."""

from collections.abc import Mapping
from typing import Any, Final

from kalends.core import errors
from kalends.core.series import Definition, change_dates, content_at, date_at
from kalends.kinds.events import LOCAL_TIME_COLUMNS
from kalends.kinds.kind import Link, Values
from kalends.kinds.series import CONTENT_DEFAULTS, CONTENT_FIELDS, MAX_REMOVED, TIMES, encode_value, span_columns
from kalends.operations.series.rows import fetch_series, trash_series, untrash_series, write_definition
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.series import decode_definition, has_other_dates, list_caused_changes

# The columns of a date that its series determines.
DATE_COLUMNS: Final = (*CONTENT_FIELDS, *LOCAL_TIME_COLUMNS)


async def follow_single_write(
    tx: Transaction, row: Row, values: Values, links: Mapping[Link, list[int]]
) -> tuple[Values, int | None]:
    """Return the columns of a date that depend on its series after a write of this date alone.

    A date that goes to the trash is left out of its series, and one that is restored belongs to it again. With its
    last date, a series goes to the trash itself. The second value is the revision of that change of the series.
    """
    series = await fetch_series(tx, row["series_id"])
    definition = decode_definition(series)
    is_trashed = values.get("status", row["status"]) == "trash"
    cause = await _leave_or_join(tx, series, row, values) if is_trashed != (row["status"] == "trash") else None
    columns: dict[str, Any] = {**values, **{f"{link.column}s": ids for link, ids in links.items()}}
    changed_columns = {name: value for name, value in columns.items() if name in row and row[name] != value}
    if row["status"] == "trash":
        # The date comes back as it was. Meanwhile its series may have changed.
        changed_columns = {**{name: row[name] for name in DATE_COLUMNS if name in row}, **changed_columns}
    own = derive_own_fields(definition, row, changed_columns)
    return ({"own_fields": own} if own != row["own_fields"] else {}), cause


async def _leave_or_join(tx: Transaction, series: Row, row: Row, values: Values) -> int | None:
    """Leave out a date that goes to the trash, or add one that is restored; return the revision of the series."""
    is_removed = values["status"] == "trash"
    if series["status"] == "trash":
        # A series that is in the trash leaves out no dates, or restoring it would not bring them back.
        returns = not is_removed and await _went_with_series(tx, series, row, values)
        return await untrash_series(tx, series) if returns else None
    if is_removed and series["created_until"] is None and not await has_other_dates(tx, series["id"], row["id"]):
        # A series without dates has nothing to show. It returns with its last date.
        return await trash_series(tx, series)
    changed = change_dates(decode_definition(series), **{"remove" if is_removed else "add": [row["slot"]]})
    if len(changed.removed) > MAX_REMOVED:
        raise too_many_removed(len(changed.removed))
    return await write_definition(tx, series, changed)


async def _went_with_series(tx: Transaction, series: Row, row: Row, values: Values) -> bool:
    """Return whether a series went to the trash with this date alone, and may be as public as the date will be."""
    caused = await list_caused_changes(tx, series["revision"])
    return [entry["record_id"] for entry in caused] == [row["id"]] and series["trashed_status"] == values["status"]


async def leave_out_deleted(tx: Transaction, row: Row) -> None:
    """Leave out the date of an event that is deleted permanently, so that its series does not create it again."""
    series = await fetch_series(tx, row["series_id"])
    changed = change_dates(decode_definition(series), remove=[row["slot"]])
    if series["status"] != "trash" and len(changed.removed) <= MAX_REMOVED:
        await write_definition(tx, series, changed)


def derive_own_fields(definition: Definition, row: Row, changed: Mapping[str, Any]) -> list[str] | None:
    """Return the own fields of a date after these columns have changed.

    A field that differs from the series becomes an own field; one that equals the series again ceases to be one.
    """
    own: set[str] = set(row["own_fields"] or ())
    content = content_at(definition, row["slot"])
    for column, field in CONTENT_FIELDS.items():
        if column in changed and changed[column] != "trash":
            expected = content.get(column, CONTENT_DEFAULTS.get(column))
            (own.discard if encode_value(changed[column]) == expected else own.add)(field)
    if any(name in changed for name in LOCAL_TIME_COLUMNS):
        (own.discard if _has_times_of_series(definition, row, changed) else own.add)(TIMES)
    return sorted(own) or None


def _has_times_of_series(definition: Definition, row: Row, changed: Mapping[str, Any]) -> bool:
    date = date_at(definition, row["slot"])
    expected = span_columns(date.part, date.span())
    return all(changed.get(name, row[name]) == expected[name] for name in LOCAL_TIME_COLUMNS)


def too_many_removed(count: int, param: str = "remove_dates") -> errors.ApiError:
    return errors.invalid(
        param,
        "at most {maximum} dates can be removed from a series; this would make {count}.",
        maximum=MAX_REMOVED,
        count=count,
    )

"""Writes series rows, and updates a series when one of its events is written."""

from collections.abc import Mapping
from typing import Any, Final, LiteralString

from kalends.calendar.access import permissions
from kalends.calendar.kinds.events import LOCAL_TIME_COLUMNS
from kalends.calendar.kinds.kind import Links, Values, link_columns
from kalends.calendar.kinds.posts import plan_status
from kalends.calendar.kinds.series_kind import (
    CONTENT_DEFAULTS,
    CONTENT_FIELDS,
    MAX_REMOVED,
    SERIES,
    TIMES,
    encode_value,
    span_columns,
)
from kalends.calendar.storage import record_tables
from kalends.core import errors
from kalends.series.rules.series_slots import Definition, change_dates, content_at, date_at
from kalends.series.storage import decode_definition, encode_definition, has_other_dates, list_caused_changes
from kalends.store import Row
from kalends.store.change_log import choose_action, encode_columns
from kalends.store.database import Transaction

# Changes to these columns raise a series' SEQUENCE in calendar feeds.
SEQUENCE_COLUMNS = frozenset({"parts", "added", "removed", "status", "template", "content_changes"})

# Series columns that repeat values from the template.
COPIED_COLUMNS: Final[tuple[LiteralString, ...]] = ("title", "description", "image_id", "status", "author_id")


async def fetch_series(tx: Transaction, series_id: int) -> Row:
    row = await SERIES.fetch(tx, series_id)
    if row is None:
        raise errors.not_found(SERIES.singular)
    return row


async def write_definition(
    tx: Transaction, row: Row, definition: Definition, further: Values | None = None
) -> int | None:
    """Write a changed definition and the `further` columns. Return the revision, or None if nothing changed."""
    copied: Values = {name: definition.template[name] for name in COPIED_COLUMNS}
    values: Values = {**copied, **encode_definition(definition), **(further or {})}
    if values["image_id"] != row["image_id"]:
        # The image may have been deleted.
        image_id = definition.template["image_id"]
        exists = image_id is not None and bool(await record_tables.find_existing_ids(tx, "media", [image_id]))
        values["image_id"] = image_id if exists else None
    # Compare JSON as Kalends writes it, because PostgreSQL stores it in another form.
    stored = {**dict(row), **encode_definition(decode_definition(row))}
    changed: Values = {name: value for name, value in values.items() if stored[name] != value}
    return await write_series(tx, row, changed) if changed else None


async def write_series(tx: Transaction, row: Row, changed: Values, *, cause: int | None = None) -> int:
    """Log and write changed columns; return the revision. `cause` is the revision of a change to another series."""
    revision = tx.changes.record(
        SERIES.name,
        row["id"],
        choose_action(row, changed),
        before=encode_columns({name: row[name] for name in changed if name in row}),
        after=encode_columns({**changed}),
        was_public=permissions.is_public(row),
        cause=cause,
    )
    sequence: Values = {"sequence": revision} if SEQUENCE_COLUMNS & set(changed) else {}
    await record_tables.change(
        tx, SERIES.name, row["id"], {**changed, **sequence, "revision": revision, "modified_utc": tx.now}
    )
    return revision


async def change_series_status(tx: Transaction, row: Row, status: str, *, cause: int | None = None) -> int:
    """Move a series row to the trash or restore it; return the revision."""
    changed = plan_status(row, status, tx.now)
    changed["slug"] = await record_tables.find_free_slug(tx, "series", str(changed["slug"]), row["id"])
    return await write_series(tx, row, changed, cause=cause)


# How writing one event changes its series: overridden fields and skipped dates.

# Event columns that the series determines.
DATE_COLUMNS: Final = (*CONTENT_FIELDS, *LOCAL_TIME_COLUMNS)


async def follow_single_write(tx: Transaction, row: Row, values: Values, links: Links) -> tuple[Values, int | None]:
    """Update the series after a write to one event.

    Return the event's new `own_fields` if they change, and the revision of the series change. If the event is
    trashed, the series skips its date until the event is restored. Trashing the last event also trashes the series.
    """
    series = await fetch_series(tx, row["series_id"])
    definition = decode_definition(series)
    is_trashed = values.get("status", row["status"]) == "trash"
    cause = await _leave_or_join(tx, series, row, values) if is_trashed != (row["status"] == "trash") else None
    columns: dict[str, Any] = {**values, **link_columns(links)}
    changed_columns = {name: value for name, value in columns.items() if name in row and row[name] != value}
    if row["status"] == "trash":
        # The series may have changed while the event was in the trash, so compare all columns.
        changed_columns = {**{name: row[name] for name in DATE_COLUMNS if name in row}, **changed_columns}
    own = derive_own_fields(definition, row, changed_columns)
    return ({"own_fields": own} if own != row["own_fields"] else {}), cause


async def _leave_or_join(tx: Transaction, series: Row, row: Row, values: Values) -> int | None:
    """Skip a trashed event's date or add a restored event's date; return the series revision."""
    is_removed = values["status"] == "trash"
    if series["status"] == "trash":
        # Do not skip the date if the series is in the trash too: restoring the series must also restore this event.
        returns = not is_removed and await _went_with_series(tx, series, row, values)
        return await change_series_status(tx, series, series["trashed_status"]) if returns else None
    if is_removed and series["created_until"] is None and not await has_other_dates(tx, series["id"], row["id"]):
        # A series without events has nothing to show. Restoring its last event also restores the series.
        return await change_series_status(tx, series, "trash")
    changed = change_dates(decode_definition(series), **{"remove" if is_removed else "add": [row["slot"]]})
    if len(changed.removed) > MAX_REMOVED:
        raise too_many_removed(len(changed.removed))
    return await write_definition(tx, series, changed)


async def _went_with_series(tx: Transaction, series: Row, row: Row, values: Values) -> bool:
    """Return whether the series was trashed with only this event, and both would be restored to the same status."""
    caused = await list_caused_changes(tx, series["revision"])
    return [entry["record_id"] for entry in caused] == [row["id"]] and series["trashed_status"] == values["status"]


async def leave_out_deleted(tx: Transaction, row: Row) -> None:
    """Skip the date of a permanently deleted event; otherwise the series would create the event again."""
    series = await fetch_series(tx, row["series_id"])
    changed = change_dates(decode_definition(series), remove=[row["slot"]])
    if series["status"] != "trash" and len(changed.removed) <= MAX_REMOVED:
        await write_definition(tx, series, changed)


def derive_own_fields(definition: Definition, row: Row, changed: Mapping[str, Any]) -> list[str] | None:
    """Return the fields that differ from the series after the columns in `changed` are written."""
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

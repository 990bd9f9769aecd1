"""From the columns that the change log kept back to the parameters that would write them."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from kalends.core import times
from kalends.core.times import DateTimeInput
from kalends.kinds.kind import Kind
from kalends.store import Row

# Columns whose parameter has another name. The rest are named alike.
NAMES = {
    "image_id": "image",
    "start_local": "start_date",
    "end_local": "end_date",
    "venue_ids": "venue",
    "organizer_ids": "organizer",
    "category_ids": "categories",
    "tag_ids": "tags",
    "password_hash": "new_password",
}
# Kept for the trash and for repeated hours; no parameters, and not shown.
INTERNAL = {"trashed_status", "trashed_at", "start_fold", "end_fold", "uid", "modified_utc"}


def shown(kind: Kind, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns as a reader of the history sees them, by parameter. Of a password only that there is one."""
    values: dict[str, Any] = {}
    for name, value in columns.items():
        if name in INTERNAL:
            continue
        if name == "password_hash":
            values["new_password"] = value is not None
        elif name in ("start_local", "end_local", "date_utc"):
            values[param_of(kind, name)] = times.format_datetime(_read_time(value)) if value else None
        else:
            values[param_of(kind, name)] = value
    return values


def sent_again(kind: Kind, columns: Mapping[str, Any], row: Row) -> dict[str, Any]:
    """Columns as parameters that were read, so that a restore passes the same rules as any write."""
    sent: dict[str, Any] = {}
    zone = columns.get("timezone", row.get("timezone", "UTC"))
    for name, fold_name in (("start_local", "start_fold"), ("end_local", "end_fold")):
        # Which of two equal wall times was meant is part of a date, whether or not the wall time changed.
        if {name, fold_name, "timezone", "all_day"} & set(columns):
            wall = _read_time(columns[name]) if name in columns else row[name]
            sent[NAMES[name]] = _moment(wall, columns.get(fold_name, row[fold_name]), zone)
    for name, value in columns.items():
        if name in INTERNAL or name in ("start_local", "end_local"):
            continue
        if name == "date_utc":
            sent[name] = DateTimeInput(_read_time(value).replace(tzinfo=None), timedelta(0), False)
        elif name == "password_hash":
            sent[name] = bytes.fromhex(value) if value is not None else None
        else:
            sent[param_of(kind, name)] = value
    return sent


def param_of(kind: Kind, column: str) -> str:
    return kind.title if column == "title" else NAMES.get(column, column)


def _read_time(value: str) -> datetime:
    read = datetime.fromisoformat(value)
    return read.astimezone(UTC) if read.tzinfo else read


def _moment(wall: datetime, fold: int, zone: str) -> DateTimeInput:
    """The second of two equal wall times is named by its offset."""
    if not fold:
        return DateTimeInput(wall, None, False)
    return DateTimeInput(wall, times.offset_of(times.utc_of(wall, zone, fold), zone), False)

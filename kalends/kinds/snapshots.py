"""Snapshots in the change log: from stored columns to API fields and parameters."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from kalends.core import times
from kalends.core.times import DateTimeInput
from kalends.kinds.kind import Kind
from kalends.store import Row

# Columns whose parameter has another name. All others have the same name.
PARAM_NAMES = {
    "author_id": "author",
    "published_at": "date_utc",
    "image_id": "image",
    "start_local": "start_date",
    "end_local": "end_date",
    "venue_ids": "venue",
    "organizer_ids": "organizer",
    "category_ids": "categories",
    "tag_ids": "tags",
    "password_hash": "new_password",
}
# Columns without a parameter: state of the trash, folds of repeated hours, generated values, the place in a series.
INTERNAL_COLUMNS = {
    *("trashed_status", "trashed_at", "start_fold", "end_fold", "uid", "feed_guid", "modified_utc"),
    *("series_id", "slot", "own_fields"),
}


def to_public(kind: Kind, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns by parameter, as the history shows them. A password hash becomes a boolean."""
    values: dict[str, Any] = {}
    for name in sorted(columns, key=_history_order):
        value = columns[name]
        if name in INTERNAL_COLUMNS:
            continue
        if name == "password_hash":
            values["new_password"] = value is not None
        elif name in ("start_local", "end_local", "published_at"):
            values[param_name(kind, name)] = times.format_datetime(_parse_time(value)) if value else None
        else:
            values[param_name(kind, name)] = value
    return values


def to_params(kind: Kind, columns: Mapping[str, Any], row: Row) -> dict[str, Any]:
    """Return the columns as parsed parameters, so that a restore follows the same rules as any other write."""
    arguments: dict[str, Any] = {}
    zone = columns.get("timezone", row.get("timezone", "UTC"))
    for name, fold_name in (("start_local", "start_fold"), ("end_local", "end_fold")):
        # The fold of a repeated hour is part of a date, even if the wall time did not change.
        if {name, fold_name, "timezone", "all_day"} & set(columns):
            wall = _parse_time(columns[name]) if name in columns else row[name]
            arguments[PARAM_NAMES[name]] = _build_moment(wall, columns.get(fold_name, row[fold_name]), zone)
    for name, value in columns.items():
        if name in INTERNAL_COLUMNS or name in ("start_local", "end_local"):
            continue
        if name == "published_at":
            arguments["date_utc"] = DateTimeInput(_parse_time(value).replace(tzinfo=None), timedelta(0), False)
        elif name == "password_hash":
            arguments[name] = bytes.fromhex(value) if value is not None else None
        else:
            arguments[param_name(kind, name)] = value
    return arguments


def param_name(kind: Kind, column: str) -> str:
    return kind.title_param if column == "title" else PARAM_NAMES.get(column, column)


def _history_order(column: str) -> tuple[int, str]:
    """Sort fields by length and name, as jsonb sorts its keys.

    Two columns keep the place of their earlier names, so that their new names do not reorder responses.
    """
    name = PARAM_NAMES[column] if column in ("author_id", "published_at") else column
    return len(name), name


def _parse_time(value: str) -> datetime:
    parsed = datetime.fromisoformat(value)
    return parsed.astimezone(UTC) if parsed.tzinfo else parsed


def _build_moment(wall: datetime, fold: int, zone: str) -> DateTimeInput:
    """Return the input for a wall time. The second of two equal wall times is identified by its UTC offset."""
    if not fold:
        return DateTimeInput(wall, None, False)
    return DateTimeInput(wall, times.offset_of(times.utc_of(wall, zone, fold), zone), False)

"""Converts the cells of a row to values for the API."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Any, Final

from kalends.core import params
from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.core.params import Type
from kalends.core.sanitize import fold
from kalends.imports.rules import table_cells
from kalends.imports.rules.import_places import VENUE_PREFIX
from kalends.imports.rules.table_cells import Cell, Moment
from kalends.imports.rules.table_headers import FIELDS, IDENTITY, REPEATABLE

MAX_IDENTITY_LENGTH: Final = 1000
# If the end is before the start, the event ends the next day. If it then lasts longer than this, a person must
# confirm.
MAX_OVERNIGHT: Final = timedelta(hours=12)
TIME_FIELDS: Final = ("start_date", "start_time", "end_date", "end_time")
NAME_FIELDS: Final = {"events": "title", "venues": "venue", "organizers": "organizer"}
MISSING: Final = {
    "title": Message("The title is missing."),
    "venue": Message("The name is missing."),
    "organizer": Message("The name is missing."),
    "start_date": Message("The date is missing."),
}
_WORDS: Final = {
    "status": table_cells.STATUSES,
    "event_status": table_cells.EVENT_STATES,
    "currency_position": table_cells.POSITIONS,
}
# Types that restrict the values of fields outside `FIELDS`. The API checks all values again.
_TYPES: Final[Mapping[str, Type]] = {
    "all_day": params.BOOLEAN,
    "image": params.IMAGE,
    "timezone": params.ZONE,
    "status": params.STATUS,
}


def _find_type(kind: str, name: str) -> Type | None:
    return FIELDS[kind][name].param.type if name in FIELDS[kind] else _TYPES.get(name)


def _read_cell(name: str, type_: Type | None, cell: Cell) -> Any:
    if name in _WORDS:
        return table_cells.read_word(cell, _WORDS[name]).lower()
    if type_ is params.BOOLEAN:
        return table_cells.read_flag(cell)
    if type_ is params.WEBSITE or type_ is params.IMAGE:
        return table_cells.read_address(cell)
    return (
        table_cells.read_number(cell) if type_ and type_.schema.get("type") == "number" else table_cells.to_text(cell)
    )


def _says_nothing(kind: str, name: str) -> bool:
    """Return whether an empty cell leaves the value of the field unchanged instead of clearing it."""
    type_ = _find_type(kind, name)
    schema = type_.schema if type_ else {}
    is_limited = schema.get("type") in ("boolean", "number", "integer") or "enum" in schema
    return name in _TYPES or name == "slug" or is_limited


@dataclass(slots=True)
class RowValues:
    """The values of a row by field, and the problems in its cells."""

    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    problems: dict[str, Message] = field(default_factory=dict[str, Message])


def read_row(kind: str, cells: Mapping[str, Sequence[Cell]], order: Mapping[str, str]) -> RowValues:
    """Read the cells of a row by field. `order` is the order of day and month in date columns."""
    row = RowValues()
    for name, values in cells.items():
        try:
            row.fields[name] = _read_field(kind, name, values, order.get(name, ""))
        except InvalidValue as error:
            row.problems[name] = error.message
    _require(row, NAME_FIELDS[kind])
    if kind == "events":
        _require(row, "start_date")
    return row


def _read_field(kind: str, name: str, values: Sequence[Cell], order: str) -> Any:
    if any(len(value) > table_cells.MAX_CELL_LENGTH for value in values if isinstance(value, str)):
        raise InvalidValue("must have at most {limit} characters.", limit=table_cells.MAX_CELL_LENGTH)
    if name in ("start_date", "end_date"):
        return table_cells.read_moment(values[0], order)
    if name in ("start_time", "end_time"):
        return table_cells.read_times(values[0])
    if kind == "events" and name in REPEATABLE:
        read = table_cells.read_list if name in ("categories", "tags") else table_cells.read_names
        return list(dict.fromkeys(entry for value in values for entry in read(value)))
    if kind == "events" and name == "venue":
        return table_cells.read_names(values[0])
    type_ = _find_type(kind, name)
    value = _read_cell(name, type_, values[0])
    if value not in ("", None) and type_ and not type_.is_text:
        type_.read(value)
    return value


def _require(row: RowValues, name: str) -> None:
    if not row.fields.get(name) and name not in row.problems:
        row.problems[name] = MISSING[name]


def make_identity(kind: str, fields: Mapping[str, Any]) -> str:
    """Return a record's identity in its source. If there is none, return a fingerprint of name, start and place."""
    if given := str(fields.get(IDENTITY) or ""):
        return given[:MAX_IDENTITY_LENGTH]
    start = fields.get("start_date")
    times = fields.get("start_time") or []
    parts = [kind, fold(str(fields[NAME_FIELDS[kind]])), *map(repr, (start, times[:1]) if start else ())]
    parts += [fold(" ".join(_to_list(fields.get(name)))) for name in ("venue", "address", "city")]
    return f"row:{hashlib.sha256('\0'.join(parts).encode(errors='replace')).hexdigest()[:32]}"


def _to_list(value: Any) -> list[str]:
    return value if isinstance(value, list) else [str(value or "")]  # pyright: ignore[reportUnknownVariableType]


def make_values(kind: str, fields: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the API parameters for the fields of a row. Raise InvalidValue if the fields contradict each other."""
    special = (
        {IDENTITY, *TIME_FIELDS, "all_day", "timezone", "venue", "organizer"} if kind == "events" else {IDENTITY}
    )
    values = {
        name: value
        for name, value in fields.items()
        if name not in special
        and not name.startswith(VENUE_PREFIX)
        and not (value in ("", None) and _says_nothing(kind, name))
    }
    if kind == "events":
        values.update(_make_times(fields, defaults))
    return values


# Times ------------------------------------------------------------------------------------------


def _make_times(fields: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    start, end = _find_moments(fields)
    zone = fields.get("timezone") or defaults.get("timezone")
    all_day = fields.get("all_day")
    if all_day is None:
        all_day = start.time_of_day is None and (end is None or end.time_of_day is None)
    if all_day:
        start, end = Moment(start.day), Moment(end.day if end and end.day else start.day)
    end = end or _add_duration(start, int(defaults.get("duration_minutes") or 0))
    values = {"start_date": _format(start), "end_date": _format(_complete_end(start, end)), "all_day": all_day}
    return {**values, "timezone": zone} if zone else values


def _find_moments(fields: Mapping[str, Any]) -> tuple[Moment, Moment | None]:
    """Return start and end from the date and time columns. The start time column may contain both times."""
    start_day, end_day = fields["start_date"], fields.get("end_date")
    if start_day.day is None:
        raise InvalidValue("must be a date, such as 2026-11-16 or 16.11.2026.")
    times = list(fields.get("start_time") or [])
    end_times = list(fields.get("end_time") or times[1:])
    start = _combine(start_day, times[0] if times else None)
    if end_day is None and not end_times:
        return start, None
    end = _combine(end_day or Moment(), end_times[0] if end_times else None)
    return start, end


def _combine(day: Moment, own_time: Moment | None) -> Moment:
    return day if own_time is None else Moment(day.day, own_time.time_of_day, own_time.offset or day.offset)


def _complete_end(start: Moment, end: Moment) -> Moment:
    """Add a missing day to the end: the day of the start, or the next day if the event ends after midnight."""
    if end.day is not None or start.day is None:
        return end
    is_next_day = (end.time_of_day or time()) < (start.time_of_day or time())
    return Moment(start.day + timedelta(days=1) if is_next_day else start.day, end.time_of_day, end.offset)


def find_question(fields: Mapping[str, Any]) -> Message | None:
    """Return a question if an event ends before it starts, unless it probably ends the next day."""
    start, end = _find_moments(fields)
    if fields.get("all_day") or not (start.day and start.time_of_day and end and end.time_of_day):
        return None
    first, last = (datetime.combine(start.day, moment.time_of_day or time()) for moment in (start, end))
    length = last - first + timedelta(days=1)
    if end.day is not None or last >= first or length <= MAX_OVERNIGHT:
        return None
    return Message(
        "It ends at {end}, before it starts at {start}, so it would last {hours} hours, until the next day. "
        "Please check.",
        start=f"{first:%H:%M}",
        end=f"{last:%H:%M}",
        hours=round(length / timedelta(hours=1)),
    )


def _add_duration(start: Moment, minutes: int) -> Moment:
    if not minutes or start.day is None or start.time_of_day is None:
        return start
    end = datetime.combine(start.day, start.time_of_day) + timedelta(minutes=minutes)
    return Moment(end.date(), end.time(), start.offset)


def _format(moment: Moment) -> str:
    day = moment.day or date.min
    if moment.time_of_day is None:
        return day.isoformat()
    return f"{datetime.combine(day, moment.time_of_day).isoformat(' ', 'seconds')}{moment.offset}"

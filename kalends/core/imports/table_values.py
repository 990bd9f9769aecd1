"""The cells of a row as values of the API."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import Any, Final

from kalends.core import params
from kalends.core.errors import InvalidValue
from kalends.core.event_states import STATES
from kalends.core.html.sanitize import fold
from kalends.core.imports.cell_words import EVENT_STATES, POSITIONS, STATUSES
from kalends.core.imports.cells import (
    MAX_CELL_LENGTH,
    Cell,
    read_address,
    read_flag,
    read_list,
    read_names,
    read_number,
    read_word,
    to_text,
)
from kalends.core.imports.column_names import REPEATABLE
from kalends.core.imports.moments import Moment, read_moment, read_times
from kalends.core.imports.table_headers import IDENTITY
from kalends.core.imports.table_places import VENUE_PREFIX
from kalends.core.messages import Message
from kalends.core.params import Type

MAX_IDENTITY_LENGTH: Final = 1000
# An event whose end was completed with the next day and that lasts longer was hardly meant so.
MAX_OVERNIGHT: Final = timedelta(hours=12)
TIME_FIELDS: Final = ("start_date", "start_time", "end_date", "end_time")
NAME_FIELDS: Final = {"events": "title", "venues": "venue", "organizers": "organizer"}
# Of these an empty cell says nothing; an empty cell of another field clears it.
_OMITTED_IF_EMPTY: Final = frozenset(
    {*("all_day", "featured", "sticky", "hide_from_listings", "show_map", "show_map_link", "timezone", "slug"),
     *("status", "event_status", "currency_position", "geo_lat", "geo_lng", "image")}
)  # fmt: skip
_FLAGS: Final = ("all_day", "featured", "sticky", "hide_from_listings", "show_map", "show_map_link")
_READERS: Final[Mapping[str, Callable[[Cell], Any]]] = {
    **dict.fromkeys(_FLAGS, read_flag),
    **dict.fromkeys(("categories", "tags"), read_list),
    **dict.fromkeys(("website", "ticket_url", "online_url", "image"), read_address),
    **dict.fromkeys(("geo_lat", "geo_lng"), read_number),
    "status": lambda cell: read_word(cell, STATUSES).lower(),
    "event_status": lambda cell: read_word(cell, EVENT_STATES).lower(),
    "currency_position": lambda cell: read_word(cell, POSITIONS).lower(),
}
# The types of parameters that restrict their values; the API checks all of them again.
_TYPES: Final[Mapping[str, Type]] = {
    **dict.fromkeys(("website", "ticket_url", "online_url"), params.WEBSITE),
    "image": params.IMAGE,
    "timezone": params.ZONE,
    "status": params.STATUS,
    "event_status": params.one_of(*STATES),
    "cost": params.COST,
    "currency_symbol": params.CURRENCY_SYMBOL,
    "currency_code": params.CURRENCY_CODE,
    "currency_position": params.CURRENCY_POSITION,
    "email": params.EMAIL,
    "geo_lat": params.number(-90, 90),
    "geo_lng": params.number(-180, 180),
}


@dataclass(slots=True)
class RowValues:
    """The values of a row by field, and the problems of its cells."""

    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    problems: dict[str, Message] = field(default_factory=dict[str, Message])


def read_row(kind: str, cells: Mapping[str, Sequence[Cell]], order: Mapping[str, str]) -> RowValues:
    """Read the cells of a row by field. `order` is that of days and months in the columns with dates."""
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
    if any(len(value) > MAX_CELL_LENGTH for value in values if isinstance(value, str)):
        raise InvalidValue("must have at most {limit} characters.", limit=MAX_CELL_LENGTH)
    if name in ("start_date", "end_date"):
        return read_moment(values[0], order)
    if name in ("start_time", "end_time"):
        return read_times(values[0])
    if kind == "events" and name in REPEATABLE:
        read = _READERS.get(name, read_names)
        return list(dict.fromkeys(entry for value in values for entry in read(value)))
    if kind == "events" and name == "venue":
        return read_names(values[0])
    value = _READERS.get(name, to_text)(values[0])
    if value not in ("", None) and name in _TYPES:
        _TYPES[name].read(value)
    return value


def _require(row: RowValues, name: str) -> None:
    if not row.fields.get(name) and name not in row.problems:
        row.problems[name] = Message("is required.")


def make_identity(kind: str, fields: Mapping[str, Any]) -> str:
    """Return the identity of a record: that of its source, else a fingerprint of name, start and place."""
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
    """Return the parameters of the API for the fields of a row. Raise InvalidValue if they do not fit together."""
    special = (
        {IDENTITY, *TIME_FIELDS, "all_day", "timezone", "venue", "organizer"} if kind == "events" else {IDENTITY}
    )
    values = {
        name: value
        for name, value in fields.items()
        if name not in special
        and not name.startswith(VENUE_PREFIX)
        and not (name in _OMITTED_IF_EMPTY and value in ("", None))
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
    """Return start and end from the columns of dates and times; the column of the start time may have both times."""
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
    """Return an end with a day: that of the start, or the next one if the event ends after midnight."""
    if end.day is not None or start.day is None:
        return end
    is_next_day = (end.time_of_day or time()) < (start.time_of_day or time())
    return Moment(start.day + timedelta(days=1) if is_next_day else start.day, end.time_of_day, end.offset)


def find_question(fields: Mapping[str, Any]) -> Message | None:
    """Return what to ask if the end of an event is before its start and hardly means the next day."""
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

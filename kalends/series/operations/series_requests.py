"""Reads the parameters of a series: its rule, times and content."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any, Final

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.events import EVENTS, build_time_columns
from kalends.calendar.kinds.kind import link_columns
from kalends.calendar.kinds.series_kind import (
    CONTENT_DEFAULTS,
    LINK_COLUMNS,
    TIME_PARAMS,
    encode_content,
    span_columns,
)
from kalends.calendar.operations.event_links import resolve_links
from kalends.calendar.operations.writes import build_write_context
from kalends.core import date_forms, errors, times
from kalends.core.errors import InvalidValue
from kalends.core.recurrence import Rule, read_rule, read_rule_object
from kalends.core.times import DateTimeInput
from kalends.media.images import resolve_image_url
from kalends.series.rules.series_slots import (
    Date,
    Definition,
    Part,
    Shift,
    check_length,
    check_slot,
    content_at,
    find_given,
    find_part,
)
from kalends.store import Row

# Parameters that are not part of the dates' content.
OTHER_PARAMS: Final = frozenset({*TIME_PARAMS, "slug", "rule", "add_dates", "remove_dates", "date", "date_utc"})


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Report an invalid value as an error in the parameter `name`."""
    try:
        yield
    except InvalidValue as error:
        raise errors.invalid_params({name: errors.for_param(name, error.message)}) from error


def parse_rule(value: object, zone: str) -> Rule:
    """Read the parameter `rule`: an RRULE or an object."""
    with naming("rule"):
        return read_rule(value, zone) if isinstance(value, str) else read_rule_object(value, zone)  # type: ignore[arg-type]


def check_times(parts: Iterable[Part], start_param: str = "start_date", end_param: str = "end_date") -> None:
    """Raise unless the start and length of each part are within the limits for series."""
    for part in parts:
        with naming(start_param):
            check_slot(part.start)
        with naming(end_param):
            check_length(part.length)


def read_slots(name: str, values: Iterable[Any], date: Date, now: datetime) -> list[datetime]:
    """Convert dates of a series to slots. A day without a time gets the series' time."""
    with naming(name):
        return [_read_slot(value, date, now) for value in values]


def read_slots_of(name: str, values: Iterable[Any], definition: Definition, now: datetime) -> list[datetime]:
    """Convert dates of an existing series to slots. A day without a time gets the time of the part in force."""
    rough = read_slots(name, values, definition.first_date, now)
    parts = [find_part(definition, datetime.combine(slot.date(), time.max)) for slot in rough]
    return [
        read_slots(name, [value], Date(part.start, part), now)[0] for value, part in zip(values, parts, strict=True)
    ]


def require_dates(name: str, definition: Definition, slots: Sequence[datetime]) -> Sequence[datetime]:
    """Return the slots; raise if one is not a date of the series."""
    known = select_dates(definition, slots)
    for slot in slots:
        if slot not in known:
            raise errors.invalid(name, "{date} is not a date of this series.", date=times.format_datetime(slot))
    return slots


def select_dates(definition: Definition, slots: Sequence[datetime]) -> list[datetime]:
    given = find_given(definition, slots)
    return [slot for slot in slots if slot in given or slot in definition.added]


def _read_slot(value: Any, date: Date, now: datetime) -> datetime:
    moment = date_forms.make_absolute(value, now, date.part.timezone)
    if moment.is_date_only or date.part.all_day:
        return check_slot(datetime.combine(moment.wall.date(), date.slot.time()))
    wall = times.resolve(moment, date.part.timezone).wall if moment.offset is not None else moment.wall
    return check_slot(wall)


@dataclass(frozen=True, slots=True)
class ContentInput:
    """The content and links that a request sets."""

    values: Mapping[str, Any]
    fields: frozenset[str]
    ignored_params: tuple[str, ...]
    published_at: datetime | None = None


async def read_content(
    context: OperationContext, arguments: Mapping[str, Any], row: Any, record_id: int
) -> ContentInput:
    """Read a series' content by the same rules as an event's.

    `row` is the series as an event row, or None for a new series.
    """
    content = {name: value for name, value in arguments.items() if name not in OTHER_PARAMS - {"date", "date_utc"}}
    links = await resolve_links(EVENTS, context, arguments, row)
    content = dict(await resolve_image_url(context, content))
    if row is None:
        content.update({name: arguments[name] for name in TIME_PARAMS if name in arguments})
    values = await EVENTS.writes.to_columns(build_write_context(context, content, row, record_id))
    if values.get("status") == "trash":
        raise errors.invalid("status", "must not be trash; send DELETE instead.")
    columns: dict[str, Any] = {**values, **link_columns(links.ids)}
    if row is not None and "status" in arguments:
        # Later dates may have a different status than the first date.
        columns.setdefault("status", row["status"])
    return ContentInput(
        encode_content(columns),
        frozenset(arguments) - OTHER_PARAMS,
        links.ignored_params,
        values.get("published_at"),  # type: ignore[arg-type]
    )


def make_event_row(series: Row, definition: Definition, date: Date) -> Any:
    """Return an event row for a date, with the series' content and times."""
    content = {**CONTENT_DEFAULTS, **content_at(definition, date.slot)}
    if content["password_hash"] is not None:
        content["password_hash"] = bytes.fromhex(content["password_hash"])
    return {
        **{
            name: series[name]
            for name in ("id", "revision", "published_at", "modified_utc", "slug", "trashed_status")
        },
        **content,
        **span_columns(date.part, date.span()),
        **{name: content[name] for name in LINK_COLUMNS},
    }


def read_nominal(
    context: OperationContext, arguments: Mapping[str, Any], columns: Mapping[str, Any]
) -> tuple[datetime, datetime]:
    """Return the start and end as sent. A daylight saving shift must affect only the first date, not the rule."""
    local: dict[str, datetime] = {"start_date": columns["start_local"], "end_date": columns["end_local"]}
    for name in local:
        if arguments.get(name) is not None and not columns["all_day"]:
            moment = date_forms.make_absolute(arguments[name], context.transaction.now, columns["timezone"])
            if moment.offset is None and not moment.is_date_only:
                local[name] = moment.wall
    return local["start_date"], local["end_date"]


def _find_end(date: Date, start: datetime, time_of_day: time) -> datetime:
    """Return the end: the first `time_of_day` at or after the start, or on the last day of a multi-day date."""
    if date.part.length >= timedelta(days=1):
        return datetime.combine((date.slot + date.part.length).date(), time_of_day)
    end = datetime.combine(start.date(), time_of_day)
    return end if end >= start else end + timedelta(days=1)


def read_shift(context: OperationContext, row: Any, date: Date) -> Shift | None:
    """Return the shift that a request applies to a date; None if it changes no times."""
    arguments = {name: value for name, value in context.values.items() if name in TIME_PARAMS}
    if not arguments:
        return None
    if arguments.keys() == {"timezone"}:
        # Local times stay the same, even if daylight saving time skips them in the new time zone.
        return Shift(timedelta(), timezone=arguments["timezone"] or context.transaction.site.timezone)
    if isinstance(arguments.get("start_date"), time):
        arguments["start_date"] = DateTimeInput(
            datetime.combine(date.slot.date(), arguments["start_date"]), None, False
        )
    if isinstance(arguments.get("end_date"), time):
        given = arguments.get("start_date")
        begin = given.wall if isinstance(given, DateTimeInput) else date.slot
        arguments["end_date"] = DateTimeInput(_find_end(date, begin, arguments["end_date"]), None, False)
    columns: Any = build_time_columns(build_write_context(context, arguments, row, row["id"]))
    start, end = read_nominal(context, arguments, columns)
    nominal = date.span()
    # An edit without `start_date` keeps the nominal start, even if daylight saving time shifted it.
    is_kept = "start_date" not in arguments and columns["all_day"] == date.part.all_day
    start = date.slot if is_kept or start == nominal.start.wall else start
    end = date.slot + date.part.length if end == nominal.end.wall and start == date.slot else end
    length, all_day = end - start, columns["all_day"]
    return Shift(
        start - date.slot,
        length if "end_date" in arguments or length != date.part.length else None,
        columns["timezone"] if "timezone" in arguments else None,
        all_day if all_day != date.part.all_day else None,
    )

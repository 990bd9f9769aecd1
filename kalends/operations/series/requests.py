"""Reading the parameters of a series: its rule, its times, its content."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, time
from typing import Any, Final

from kalends.core import errors, times
from kalends.core.errors import InvalidValue
from kalends.core.recurrence import Rule, read_rule, read_rule_object
from kalends.core.series import Date, Definition, Shift, content_at, find_part
from kalends.core.times import DateTimeInput
from kalends.kinds.events import EVENTS, build_time_columns
from kalends.kinds.kind import Link
from kalends.kinds.series import CONTENT_DEFAULTS, LINK_COLUMNS, TIME_PARAMS, encode_content, span_columns
from kalends.operations.context import OperationContext
from kalends.operations.links import resolve_links
from kalends.operations.media.images import resolve_image_url
from kalends.operations.writes import build_write_context
from kalends.store import Row

# Parameters that are not content of the dates.
OTHER_PARAMS: Final = frozenset({*TIME_PARAMS, "slug", "rule", "add_dates", "remove_dates", "date", "date_utc"})


def parse_rule(value: object, zone: str) -> Rule:
    """Read the parameter `rule`: an RRULE or an object."""
    try:
        return read_rule(value, zone) if isinstance(value, str) else read_rule_object(value, zone)  # type: ignore[arg-type]
    except InvalidValue as error:
        raise errors.invalid_params({"rule": errors.for_param("rule", error.message)}) from error


def read_slots(name: str, values: Iterable[Any], date: Date, now: datetime) -> list[datetime]:
    """Read dates of a series as slots. A day without a time means the time of the series."""
    try:
        return [_read_slot(value, date, now) for value in values]
    except InvalidValue as error:
        raise errors.invalid_params({name: errors.for_param(name, error.message)}) from error


def read_slots_of(name: str, values: Iterable[Any], definition: Definition, now: datetime) -> list[datetime]:
    """Read dates of an existing series as slots. A day without a time means the time of the part in force."""
    first = Date(definition.parts[0].start, definition.parts[0])
    rough = read_slots(name, values, first, now)
    parts = [find_part(definition, datetime.combine(slot.date(), time.max)) for slot in rough]
    return [
        read_slots(name, [value], Date(part.start, part), now)[0] for value, part in zip(values, parts, strict=True)
    ]


def _read_slot(value: Any, date: Date, now: datetime) -> datetime:
    moment = times.make_absolute(value, now, date.part.timezone)
    if moment.is_date_only or date.part.all_day:
        return _check_slot(datetime.combine(moment.wall.date(), date.slot.time()), date)
    wall = times.resolve(moment, date.part.timezone).wall if moment.offset is not None else moment.wall
    return _check_slot(wall, date)


def _check_slot(slot: datetime, date: Date) -> datetime:
    """Raise unless a date that begins at this slot is within the years of events."""
    try:
        years = slot.year, (slot + date.part.length).year
    except OverflowError:
        years = slot.year, times.LAST_YEAR
    if not 1 < years[0] <= years[1] < times.LAST_YEAR:
        raise InvalidValue("must be a date between the years 1 and {last}.", last=times.LAST_YEAR)
    return slot


@dataclass(frozen=True, slots=True)
class ContentInput:
    """The content that a request sets, and its links."""

    values: Mapping[str, Any]
    fields: frozenset[str]
    ignored_params: tuple[str, ...]
    published_at: datetime | None = None


async def read_content(
    context: OperationContext, arguments: Mapping[str, Any], row: Any, record_id: int
) -> ContentInput:
    """Read the content of a series through the rules of events. `row` is that of the series as an event, or None."""
    content = {name: value for name, value in arguments.items() if name not in OTHER_PARAMS - {"date", "date_utc"}}
    links = await resolve_links(EVENTS, context, arguments)
    content = dict(await resolve_image_url(context, content))
    if row is None:
        content.update({name: arguments[name] for name in TIME_PARAMS if name in arguments})
    values = await EVENTS.writes.to_columns(build_write_context(context, content, row, record_id))
    if values.get("status") == "trash":
        raise errors.invalid("status", "must not be trash; send DELETE instead.")
    columns: dict[str, Any] = {**values, **_link_columns(links.ids)}
    return ContentInput(
        encode_content(columns),
        frozenset(arguments) - OTHER_PARAMS,
        links.ignored_params,
        values.get("published_at"),  # type: ignore[arg-type]
    )


def _link_columns(links: Mapping[Link, list[int]]) -> dict[str, Any]:
    return {f"{link.column}s": ids for link, ids in links.items()}


def make_event_row(series: Row, definition: Definition, date: Date) -> Any:
    """Return a date of a series as the row of an event, with the content and times of the series."""
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


def read_shift(context: OperationContext, row: Any, date: Date) -> Shift | None:
    """Return by how much a request moves a date, given by its row; None if it does not change times."""
    arguments = {name: value for name, value in context.values.items() if name in TIME_PARAMS}
    if not arguments:
        return None
    for name, wall in (("start_date", date.slot), ("end_date", date.slot + date.part.length)):
        if isinstance(arguments.get(name), time):
            arguments[name] = DateTimeInput(datetime.combine(wall.date(), arguments[name]), None, False)
    columns: Any = build_time_columns(build_write_context(context, arguments, row, row["id"]))
    start, end = columns["start_local"], columns["end_local"]
    nominal = date.span()
    # An edit that does not name the start keeps it, even where a clock change has moved it.
    start = date.slot if start == nominal.start.wall else start
    end = date.slot + date.part.length if end == nominal.end.wall and start == date.slot else end
    return Shift(start - date.slot, end - start, columns["timezone"], columns["all_day"])

"""Reading the parameters of a series: its rule, its times, its content."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any, Final

from kalends.core import errors, times
from kalends.core.errors import InvalidValue
from kalends.core.recurrence import Rule, read_rule, read_rule_object
from kalends.core.series import Date, Definition, Part, Shift, content_at, find_part
from kalends.core.series_limits import check_length, check_slot
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


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Report an invalid value as an error of this parameter."""
    try:
        yield
    except InvalidValue as error:
        raise errors.invalid_params({name: errors.for_param(name, error.message)}) from error


def parse_rule(value: object, zone: str) -> Rule:
    """Read the parameter `rule`: an RRULE or an object."""
    with naming("rule"):
        return read_rule(value, zone) if isinstance(value, str) else read_rule_object(value, zone)  # type: ignore[arg-type]


def check_times(parts: Iterable[Part], start_param: str = "start_date", end_param: str = "end_date") -> None:
    """Raise unless the dates of all parts are within the limits of series."""
    for part in parts:
        with naming(start_param):
            check_slot(part.start)
        with naming(end_param):
            check_length(part.length)


def read_slots(name: str, values: Iterable[Any], date: Date, now: datetime) -> list[datetime]:
    """Read dates of a series as slots. A day without a time means the time of the series."""
    with naming(name):
        return [_read_slot(value, date, now) for value in values]


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
        return check_slot(datetime.combine(moment.wall.date(), date.slot.time()))
    wall = times.resolve(moment, date.part.timezone).wall if moment.offset is not None else moment.wall
    return check_slot(wall)


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
    links = await resolve_links(EVENTS, context, arguments, row)
    content = dict(await resolve_image_url(context, content))
    if row is None:
        content.update({name: arguments[name] for name in TIME_PARAMS if name in arguments})
    values = await EVENTS.writes.to_columns(build_write_context(context, content, row, record_id))
    if values.get("status") == "trash":
        raise errors.invalid("status", "must not be trash; send DELETE instead.")
    columns: dict[str, Any] = {**values, **_link_columns(links.ids)}
    if row is not None and "status" in arguments:
        # The first date may have this status already, but later dates another one.
        columns.setdefault("status", row["status"])
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


def read_nominal(
    context: OperationContext, arguments: Mapping[str, Any], columns: Mapping[str, Any]
) -> tuple[datetime, datetime]:
    """Return start and end as they were written, because daylight saving time moves the first date alone."""
    local: dict[str, datetime] = {"start_date": columns["start_local"], "end_date": columns["end_local"]}
    for name in local:
        if arguments.get(name) is not None and not columns["all_day"]:
            moment = times.make_absolute(arguments[name], context.transaction.now, columns["timezone"])
            if moment.offset is None and not moment.is_date_only:
                local[name] = moment.wall
    return local["start_date"], local["end_date"]


def _find_end(date: Date, start: datetime, time_of_day: time) -> datetime:
    """Return the end that a time alone means: the next one after the start, unless the date lasts for days."""
    if date.part.length >= timedelta(days=1):
        return datetime.combine((date.slot + date.part.length).date(), time_of_day)
    end = datetime.combine(start.date(), time_of_day)
    return end if end >= start else end + timedelta(days=1)


def read_shift(context: OperationContext, row: Any, date: Date) -> Shift | None:
    """Return by how much a request moves a date, given by its row; None if it does not change times."""
    arguments = {name: value for name, value in context.values.items() if name in TIME_PARAMS}
    if not arguments:
        return None
    if arguments.keys() == {"timezone"}:
        # Local times stay, also where daylight saving time skips them in the new time zone.
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
    # An edit that does not name the start keeps it, even where daylight saving time has moved it.
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

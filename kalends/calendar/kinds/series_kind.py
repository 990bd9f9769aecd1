"""Series: rules that create events. These events are called the dates of the series."""

from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import datetime
from typing import Any, Final, LiteralString

from kalends.calendar.kinds.events import EVENTS, build_event, serialize_event
from kalends.calendar.kinds.kind import (
    Columns,
    Filter,
    JsonObject,
    Kind,
    Reads,
    RenderContext,
    Values,
    WriteContext,
    Writes,
    no_condition,
)
from kalends.calendar.kinds.posts import POST_COLUMNS, build_post_url, newest_first
from kalends.calendar.rules.fields import EVENT_FIELDS
from kalends.calendar.rules.record_types import Post, Series
from kalends.core import params, times
from kalends.core.errors import InvalidValue
from kalends.core.params import DATE_TIME, Type, param
from kalends.core.recurrence import find_warnings, serialize_rule
from kalends.core.times import Span
from kalends.series.rules.series_slots import Date, Definition, Part
from kalends.series.storage import DEFINITION_COLUMNS, decode_definition
from kalends.store import Row

MAX_ADDED: Final = 500
MAX_REMOVED: Final = 1000
MAX_CHANGES: Final = 100  # maximum number of rule changes, and of content changes
LINK_COLUMNS: Final[tuple[LiteralString, ...]] = tuple(f"{link.column}s" for link in EVENTS.links)
# The content that a series gives its events: maps columns and links to their names in `own_fields`.
CONTENT_FIELDS: Final[Mapping[LiteralString, str]] = {
    "title": "title",
    "description": "description",
    **{row.name: row.name for row in EVENT_FIELDS},
    "image_id": "image",
    "password_hash": "new_password",
    "author_id": "author",
    "status": "status",
    **{f"{link.column}s": link.param for link in EVENTS.links},
}
TIMES: Final = "times"
# These parameters share one field in `own_fields`.
TIME_PARAMS: Final = frozenset({"start_date", "end_date", "timezone", "all_day"})
# Defaults for event columns that a write does not set.
CONTENT_DEFAULTS: Final[Mapping[str, Any]] = {
    "title": "",
    "description": "",
    **{row.name: row.default for row in EVENT_FIELDS},
    "image_id": None,
    "password_hash": None,
    **{name: [] for name in LINK_COLUMNS},
}
# Event fields that series lack.
EVENT_ONLY: Final = ("series",)


def span_columns(part: Part, span: Span) -> Values:
    return {
        "timezone": part.timezone,
        "all_day": part.all_day,
        "start_local": span.start.wall,
        "end_local": span.end.wall,
        "start_fold": span.start.fold,
        "end_fold": span.end.fold,
        "start_utc": span.start.utc,
        "end_utc": span.end.utc,
    }


def build_series(row: Row, context: RenderContext) -> Series:
    definition = decode_definition(row)
    content = replace(
        build_event(_make_event_row(row, definition), context), url=build_post_url(row, context, "series")
    )
    return Series(
        **{attribute.name: getattr(content, attribute.name) for attribute in fields(Post)},
        uid=content.uid,
        sequence=row["sequence"],
        title=content.title,
        content=content,
        definition=definition,
        first_local=row["first_local"],
        last_local=row["last_local"],
        total=row["date_count"],
        upcoming=row["upcoming_count"],
        created_until=row["created_until"],
    )


def _make_event_row(row: Row, definition: Definition) -> Any:
    part = definition.parts[0]
    return {
        **CONTENT_DEFAULTS,
        **definition.template,
        **span_columns(part, Date(part.start, part).span()),
        **{name: row[name] for name in POST_COLUMNS.names},
        **{name: row[name] for name in LINK_COLUMNS},
        "uid": row["uid"],
        "password_hash": row["password_hash"],
        "series_id": None,
    }


def serialize_series(series: Series, context: RenderContext) -> JsonObject:
    content = serialize_event(series.content, context)
    definition, first = series.definition, series.definition.parts[0]
    return {
        **{name: value for name, value in content.items() if name not in EVENT_ONLY},
        "rest_url": f"{context.extension_url}/series/{series.id}",
        "rule": serialize_rule(first.rule) if first.rule is not None else None,
        "parts": [_serialize_part(part) for part in definition.parts[1:]],
        "content_changes": [
            {"from": times.format_datetime(change.since), "fields": sorted(map(_field_name, change.values))}
            for change in definition.content_changes
        ],
        "added": [times.format_datetime(slot) for slot in definition.added],
        "removed": [times.format_datetime(slot) for slot in definition.removed],
        "first": _format_optional(series.first_local),
        "last": _format_optional(series.last_local),
        "total": series.total,
        "upcoming": series.upcoming,
        "created_until": _format_optional(series.created_until),
        "warnings": [str(warning) for part in definition.parts if part.rule for warning in find_warnings(part.rule)],
    }


def _field_name(column: str) -> str:
    return {str(name): field for name, field in CONTENT_FIELDS.items()}.get(column, column)


def _serialize_part(part: Part) -> JsonObject:
    return {
        "from": times.format_datetime(part.start),
        "uid": part.uid,
        "rule": serialize_rule(part.rule) if part.rule is not None else None,
        "start_date": times.format_datetime(part.start),
        "end_date": times.format_datetime(part.end),
        "timezone": part.timezone,
        "all_day": part.all_day,
    }


def _format_optional(value: datetime | None) -> str | None:
    return times.format_datetime(value) if value is not None else None


async def _reject_write(context: WriteContext) -> Values:
    raise AssertionError("series are written by series.operations")


def _read_rule(value: object) -> object:
    """Accept an RRULE or an object. The operation parses the rule, because UNTIL depends on the time zone."""
    if isinstance(value, str) or (isinstance(value, dict) and value):
        return value  # pyright: ignore[reportUnknownVariableType]
    raise InvalidValue("must be an RRULE, such as FREQ=WEEKLY;BYDAY=TU, or an object with `frequency`.")


def _make_dates_type(maximum: int) -> Type:
    def read(value: object) -> list[Any]:
        entries: list[object] = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
        if len(entries) > maximum:
            raise InvalidValue("must have at most {maximum} dates.", maximum=maximum)
        return [DATE_TIME.read(entry) for entry in entries]

    schema = {"type": "array", "items": {"type": "string"}}
    return Type(schema, read, null_value=(), accepts_lists=True, exact_schema={**schema, "maxItems": maximum})


RULE: Final = param(
    "rule",
    Type({"type": "string"}, _read_rule, exact_schema={"type": ["string", "object"]}),
    "When it repeats: an RRULE of RFC 5545, or an object with `frequency`, `interval`, `weekdays` and others",
)
ADD_DATES: Final = param("add_dates", _make_dates_type(MAX_ADDED), "Extra dates that the rule does not produce")
REMOVE_DATES: Final = param("remove_dates", _make_dates_type(MAX_REMOVED), "Skipped dates of the rule")

_OCCURRENCES: LiteralString = (
    "FROM events e WHERE e.site_id = r.site_id AND e.series_id = r.id AND e.status = r.status"
)

SERIES = Kind(
    name="series",
    singular="series",
    title_param="title",
    fields=(*EVENTS.fields, RULE, ADD_DATES, REMOVE_DATES),
    filters=(Filter(param("status", params.STATUS_LIST, "Series with this post status"), no_condition),),
    reads=Reads(
        columns=POST_COLUMNS
        + Columns(
            *("uid", "sequence", "created_until", "hide_from_listings", *DEFINITION_COLUMNS),
            computed={
                **{
                    name: "ARRAY(SELECT v::bigint FROM jsonb_array_elements_text(r.template -> '" + name + "') v)"
                    for name in LINK_COLUMNS
                },
                "password_hash": "decode(r.template ->> 'password_hash', 'hex')",
                "first_local": "(SELECT min(e.start_local) " + _OCCURRENCES + ")",
                "last_local": "(SELECT max(e.start_local) " + _OCCURRENCES + ")",
                "date_count": "(SELECT count(*) " + _OCCURRENCES + ")",
                "upcoming_count": "(SELECT count(*) " + _OCCURRENCES + " AND e.end_utc >= now())",
            },
        ),
        from_row=build_series,
        to_json=serialize_series,
        order=newest_first,
        expires_at=lambda query: query.transaction.now,
        depends_on_now=True,  # the number of upcoming dates changes over time
    ),
    writes=Writes(to_columns=_reject_write),
    links=EVENTS.links,
    is_extension=True,
)


def encode_content(values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert event columns to series content that can be stored as JSON."""
    return {
        name: value.hex() if isinstance(value, bytes) else value
        for name, value in values.items()
        if name in CONTENT_FIELDS
    }


def decode_content(content: Mapping[str, Any]) -> dict[LiteralString, Any]:
    columns: dict[LiteralString, Any] = {
        name: content[name] for name in CONTENT_FIELDS if name in content and name not in LINK_COLUMNS
    }
    if columns.get("password_hash") is not None:
        columns["password_hash"] = bytes.fromhex(columns["password_hash"])
    return columns


def encode_value(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value

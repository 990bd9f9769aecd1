"""The list of series, and the page of one series."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from kalends.console.field_texts import STATUS_NAMES, make_locale
from kalends.console.records.list_views import make_page_links, read_list_values
from kalends.console.rendering import show
from kalends.console.request import PREFIX, ConsoleRequest, ConsoleRoute
from kalends.console.series.page import DatePage, EditText, describe_parts, load_dates, load_edits
from kalends.console.series.repeat import RepeatValues, make_values
from kalends.console.series.repeat_options import make_options
from kalends.console.series.texts import describe_rule, format_wall
from kalends.core import times
from kalends.core.errors import ApiError
from kalends.core.html.text import to_plain_text
from kalends.core.messages import Message
from kalends.core.params import MAX_ID
from kalends.core.recurrence import rest_from
from kalends.core.series import Definition, date_at, find_part
from kalends.kinds.series import SERIES
from kalends.operations import permissions
from kalends.operations.context import OperationContext
from kalends.operations.records import fetch_editable_row, find_page
from kalends.operations.series.matching import find_first_upcoming, load_occurrences
from kalends.store import Row
from kalends.store.series import decode_definition
from kalends.website.models.page_locale import PageLocale

PATH: Final = f"{PREFIX}/series"
ID: Final = r"(?P<id>\d{1,15})"


@dataclass(frozen=True, slots=True)
class SeriesRow:
    """A series in the list."""

    id: int
    title: str
    rule: str
    upcoming: int
    period: str
    status: str
    label: str  # of the status, a message ID
    is_editable: bool


async def show_list(console_request: ConsoleRequest) -> Response:
    """Show the series that the user may read, newest first."""
    query = {"page": console_request.query_value("page"), "status": console_request.query_value("status")}
    locale = make_locale(console_request)
    async with console_request.transaction() as tx:
        values = read_list_values(SERIES, query)
        found = await find_page(SERIES, console_request.make_context(tx, values))
    return show(
        console_request,
        "series_list.html",
        rows=[_make_row(console_request, row, locale) for row in found.rows],
        query=query,
        total_pages=found.total_pages,
        links=make_page_links(PATH, query, found.total_pages),
    )


def _make_row(console_request: ConsoleRequest, row: Row, locale: PageLocale) -> SeriesRow:
    part = decode_definition(row).parts[-1]
    first, last = row["first_local"], row["last_local"]
    return SeriesRow(
        id=row["id"],
        title=to_plain_text(row["title"]),
        rule=describe_rule(part.rule, part.start, locale),
        upcoming=row["upcoming_count"],
        period=locale.days(first.date(), last.date()) if first and last else "",
        status=row["status"],
        label=STATUS_NAMES[row["status"]],
        is_editable=permissions.may_edit(console_request.actor, row),
    )


# One series ----------------------------------------------------------------------------------


async def show_series(console_request: ConsoleRequest) -> Response:
    return await show_page(console_request)


def read_id(console_request: ConsoleRequest) -> int:
    return min(int(console_request.path_params["id"]), MAX_ID)


async def show_page(
    console_request: ConsoleRequest, error: ApiError | None = None, repeat: RepeatValues | None = None
) -> Response:
    """Show the page of a series; with the reason why a change of it was rejected."""
    series_id, locale = read_id(console_request), make_locale(console_request)
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx, {"context": "edit"}, record_id=series_id)
        row = await fetch_editable_row(SERIES, context)
        definition = decode_definition(row)
        dates = await _load_dates(console_request, context, row, definition, locale)
        edits = await load_edits(console_request, context, series_id)
        rule_form = await _make_rule_form(context, row, definition, locale, repeat)
    return show(
        console_request,
        "series.html",
        status=error.status if error else 200,
        undone=_find_undone(edits) if row["status"] != "trash" else None,
        error=error.message if error else None,
        errors=_find_errors(error),
        row=row,
        title=to_plain_text(row["title"]),
        status_label=STATUS_NAMES[row["status"]],
        parts=describe_parts(definition, console_request.site.timezone, locale),
        dates=dates,
        statuses=STATUS_NAMES,
        edits=edits,
        form=rule_form,
        repeat_options=make_options(locale, is_new=False),
        links=_make_links(series_id, dates),
        is_trashed=row["status"] == "trash",
    )


def _find_undone(edits: Sequence[EditText]) -> EditText | None:
    """Return the edit that can be undone: the latest one by a person, unless it created the series."""
    latest = next((edit for edit in edits if not edit.is_automatic), None)
    return latest if latest is not None and latest.is_undoable else None


def _find_errors(error: ApiError | None) -> dict[str, Message]:
    params = error.data.get("params") if error else None
    return dict(params) if isinstance(params, dict) else {}  # pyright: ignore[reportUnknownArgumentType]


async def _load_dates(
    console_request: ConsoleRequest, context: OperationContext, row: Row, definition: Definition, locale: PageLocale
) -> DatePage:
    text = console_request.query_value("page")
    number = int(text) if text.isdecimal() and len(text) < 4 else 1
    is_past = console_request.query_value("show") == "past"
    zone = definition.parts[-1].timezone
    return await load_dates(context, row, zone, locale, is_past=is_past, number=max(number, 1))


def _make_links(series_id: int, dates: DatePage) -> dict[str, str]:
    query = {"page": str(dates.number), "show": "past" if dates.is_past else ""}
    return make_page_links(f"{PATH}/{series_id}", query, dates.total_pages)


async def _make_rule_form(
    context: OperationContext, row: Row, definition: Definition, locale: PageLocale, repeat: RepeatValues | None
) -> dict[str, Any]:
    """Return the values of the form for another rule: those of the rule in force at the first upcoming date."""
    tx = context.transaction
    active = (await load_occurrences(tx, row["id"])).active.values()
    upcoming = [entry["slot"] for entry in active if entry["end_utc"] >= tx.now]
    slot = find_first_upcoming(active, tx.now) or definition.parts[-1].start
    part, span = find_part(definition, slot), date_at(definition, slot).span()
    # A rule with a number of dates counts those that are left.
    rule = rest_from(part.rule, part.start, slot) if part.rule is not None else None
    known = make_values(rule, part.start) if rule is not None else None
    return {
        "repeat": repeat or known or RepeatValues(),
        "is_known": known is not None,
        "slots": [
            (times.format_datetime(entry), format_wall(times.format_datetime(entry), locale)) for entry in upcoming
        ],
        "day": span.start.wall.date().isoformat(),
        "start_time": f"{span.start.wall:%H:%M}",
        "end_time": f"{span.end.wall:%H:%M}",
        "timezone": part.timezone,
        "all_day": "true" if part.all_day else "false",
    }


ROUTES: Final = (
    ConsoleRoute("/series", show_list),
    ConsoleRoute(f"/series/{ID}", show_series),
)

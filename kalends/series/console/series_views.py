"""The series list and the series page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import orjson
from starlette.responses import Response

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.kinds.series_kind import SERIES
from kalends.calendar.operations.record_verbs import fetch_editable_row, find_page
from kalends.console.console_rendering import show
from kalends.console.console_request import PREFIX, ConsoleRequest, ConsoleRoute, Operation, redirect
from kalends.console.field_texts import STATUS_NAMES, make_locale
from kalends.console.record_views import make_page_links, read_list_values
from kalends.core import errors, times
from kalends.core.errors import ApiError
from kalends.core.html_text import to_plain_text
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import MAX_ID, Param, parse_id
from kalends.core.recurrence import rest_from
from kalends.rendering.page_locale import PageLocale
from kalends.series.api import DRY_RUN, FROM, SERIES_EDIT, SERIES_SCOPE
from kalends.series.console.series_page import (
    EditText,
    describe_parts,
    describe_rule,
    format_wall,
    load_dates,
    load_edits,
    make_options,
)
from kalends.series.console.series_scopes import describe_effect, dry_run, read_object
from kalends.series.operations.series_edit import ALL, FOLLOWING, delete_series, edit_series
from kalends.series.operations.series_matching import find_first_upcoming, load_occurrences
from kalends.series.rules.repeat import RepeatValues, make_rule, make_values, read_day, read_repeat
from kalends.series.rules.series_slots import Definition, date_at, find_part
from kalends.series.storage import decode_definition
from kalends.store import Row

PATH: Final = f"{PREFIX}/series"
ID: Final = r"(?P<id>\d{1,15})"


@dataclass(frozen=True, slots=True)
class SeriesRow:
    id: int
    title: str
    rule: str
    upcoming: int
    period: str
    status: str
    label: str  # message ID for the status
    is_editable: bool


async def show_list(console_request: ConsoleRequest) -> Response:
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


def read_id(console_request: ConsoleRequest) -> int:
    return min(int(console_request.path_params["id"]), MAX_ID)


async def show_page(
    console_request: ConsoleRequest, error: ApiError | None = None, repeat: RepeatValues | None = None
) -> Response:
    series_id, locale = read_id(console_request), make_locale(console_request)
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx, {"context": "edit"}, record_id=series_id)
        row = await fetch_editable_row(SERIES, context)
        definition = decode_definition(row)
        text = console_request.query_value("page")
        number = int(text) if text.isdecimal() and len(text) < 4 else 1
        is_past = console_request.query_value("show") == "past"
        zone = definition.parts[-1].timezone
        dates = await load_dates(context, row, zone, locale, is_past=is_past, number=max(number, 1))
        edits = await load_edits(console_request, context, series_id)
        rule_form = await _make_rule_form(context, row, definition, locale, repeat)
    params = error.data.get("params") if error else None
    shown = {"page": str(dates.number), "show": "past" if dates.is_past else ""}
    return show(
        console_request,
        "series.html",
        status=error.status if error else 200,
        undone=_find_undone(edits) if row["status"] != "trash" else None,
        error=error.message if error else None,
        errors=dict(params) if isinstance(params, dict) else {},  # pyright: ignore[reportUnknownArgumentType]
        row=row,
        title=to_plain_text(row["title"]),
        status_label=STATUS_NAMES[row["status"]],
        parts=describe_parts(definition, console_request.site.timezone, locale),
        dates=dates,
        statuses=STATUS_NAMES,
        edits=edits,
        form=rule_form,
        repeat_options=make_options(locale, is_new=False),
        links=make_page_links(f"{PATH}/{series_id}", shown, dates.total_pages),
        is_trashed=row["status"] == "trash",
    )


def _find_undone(edits: Sequence[EditText]) -> EditText | None:
    """Return the edit that can be undone: a person's latest edit, unless it created the series."""
    latest = next((edit for edit in edits if not edit.is_automatic), None)
    return latest if latest is not None and latest.is_undoable else None


async def _make_rule_form(
    context: OperationContext, row: Row, definition: Definition, locale: PageLocale, repeat: RepeatValues | None
) -> dict[str, Any]:
    """Return the rule form's values, from the rule in force at the first upcoming date."""
    tx = context.transaction
    active = (await load_occurrences(tx, row["id"])).active.values()
    upcoming = [entry["slot"] for entry in active if entry["end_utc"] >= tx.now]
    slot = find_first_upcoming(active, tx.now) or definition.parts[-1].start
    part, span = find_part(definition, slot), date_at(definition, slot).span()
    # If the rule limits the number of dates, count only the remaining dates.
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


# Changes to a series that the user confirms after seeing the effect: a new rule, and the move to the trash.


@dataclass(frozen=True, slots=True)
class Change:
    """A change to a series: its last path segment, the operation with its parameters, and a heading."""

    name: str
    operation: Operation
    params: tuple[Param, ...]
    heading: str  # a message ID


RULE: Final = Change("rule", edit_series, SERIES_EDIT, N_("Change the rule"))
TRASH: Final = Change("trash", delete_series, (SERIES_SCOPE, FROM, DRY_RUN), N_("Move series to trash"))


async def change_rule(console_request: ConsoleRequest) -> Response:
    """Show the effect of a new rule, or save it once confirmed."""
    if (confirmed := read_confirmed(console_request)) is not None:
        try:
            await _perform(console_request, RULE, confirmed)
        except ApiError as error:
            if error.status not in (400, 409, 412):
                raise
            return await show_page(console_request, error)
        return redirect(f"{PATH}/{read_id(console_request)}", "saved")
    repeat = read_repeat(console_request.form)
    try:
        if not repeat.is_on:
            raise errors.missing_params(["rule"])
        rule = make_rule(repeat, read_day(console_request.form_text("start_day")))
        return await confirm(console_request, RULE, {"rule": rule, **_read_scope(console_request)})
    except ApiError as error:
        if error.status >= 500 or error.status in (403, 404):
            raise
        return await show_page(console_request, error, repeat)


def _read_scope(console_request: ConsoleRequest) -> dict[str, str]:
    since = console_request.form_text("from")
    return {"scope": FOLLOWING, "from": since} if since else {"scope": ALL}


async def trash_series(console_request: ConsoleRequest) -> Response:
    """Show which dates move to the trash with a series, or move them once confirmed."""
    if (confirmed := read_confirmed(console_request)) is None:
        return await confirm(console_request, TRASH, {"scope": ALL})
    try:
        await _perform(console_request, TRASH, confirmed)
    except ApiError as error:
        if error.status != 412:
            raise
        return await show_page(console_request, error)
    return redirect(PATH, "trashed")


# The page with the effect --------------------------------------------------------------------


async def confirm(console_request: ConsoleRequest, change: Change, params: Mapping[str, Any]) -> Response:
    """Show a change's effect on a series, from a dry run."""
    series_id = read_id(console_request)
    async with console_request.transaction() as tx:
        row = await fetch_editable_row(SERIES, console_request.make_context(tx, record_id=series_id))
    outcome = await dry_run(partial(_perform, console_request, change, params))
    return show(
        console_request,
        "series_confirm.html",
        heading=change.heading,
        title=to_plain_text(row["title"]),
        effect=describe_effect(outcome.body, make_locale(console_request)),
        is_trash=change is TRASH,
        record_path=f"{PATH}/{series_id}",
        action=f"{PATH}/{series_id}/{change.name}",
        revision=row["revision"],
        values=orjson.dumps(dict(params)).decode(),
    )


async def _perform(
    console_request: ConsoleRequest, change: Change, params: Mapping[str, Any], **options: Any
) -> Outcome:
    return await console_request.perform(
        change.operation,
        SERIES,
        {**params, **options},
        record_id=read_id(console_request),
        revision=parse_id(console_request.form_text("base_revision")),
        params=change.params,
    )


def read_confirmed(console_request: ConsoleRequest) -> dict[str, Any] | None:
    """Return the parameters from the confirmation form, or None for any other form."""
    text = console_request.form_text("confirmed")
    if not text:
        return None
    values = read_object("confirmed", text)
    return {**values, "overrides": "replace"} if console_request.form_text("replace") else values


ROUTES: Final = (
    ConsoleRoute("/series", show_list),
    ConsoleRoute(f"/series/{ID}", show_page),
    ConsoleRoute(f"/series/{ID}/rule", post=change_rule),
    ConsoleRoute(f"/series/{ID}/trash", post=trash_series),
)

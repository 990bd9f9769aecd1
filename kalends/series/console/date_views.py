"""Changes to a series that are saved without a confirmation page, such as adding a date or undoing an edit."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from kalends.calendar.access.operation_context import Outcome
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.kinds.series_kind import SERIES
from kalends.calendar.operations.record_verbs import fetch_editable_row
from kalends.console.console_rendering import show
from kalends.console.console_request import PREFIX, ConsoleRequest, ConsoleRoute, Operation, redirect
from kalends.console.event_values import Linked, make_values as make_event_values
from kalends.console.field_texts import make_locale
from kalends.core import errors
from kalends.core.errors import ApiError, field_errors
from kalends.core.html_text import to_plain_text
from kalends.core.params import Param, parse_id
from kalends.series.api import CONVERT_PARAMS, DATES_PARAMS, DISSOLVE_PARAMS, FIELDS, RESTORE_PARAMS
from kalends.series.consequences import fetch_series
from kalends.series.console.series_page import make_options
from kalends.series.console.series_scopes import describe_own
from kalends.series.console.series_views import ID, PATH, read_id, show_page
from kalends.series.operations.series_edit import edit_dates
from kalends.series.operations.series_split import convert_event, dissolve_series, follow_series
from kalends.series.operations.series_undo import restore_series
from kalends.series.rules.repeat import RepeatValues, make_params, read_repeat


async def change_dates(console_request: ConsoleRequest) -> Response:
    form = console_request.form_text
    time = form("add_time")
    added = f"{form('add')} {time}" if form("add") and time else form("add")
    params = {name: [value] for name, value in (("add", added), ("remove", form("remove"))) if value}
    return await _change(console_request, edit_dates, DATES_PARAMS, params, "saved")


async def restore(console_request: ConsoleRequest) -> Response:
    return await _change(console_request, restore_series, RESTORE_PARAMS, {}, "restored")


async def dissolve(console_request: ConsoleRequest) -> Response:
    """Split the series, and show the table with its events."""
    response = await _change(console_request, dissolve_series, DISSOLVE_PARAMS, {}, "dissolved")
    if response.status_code != 303:
        return response
    async with console_request.transaction() as tx:
        series = await fetch_series(tx, read_id(console_request))
    query = urlencode({"period": "all", "search": to_plain_text(series["title"])})
    return redirect(f"{PREFIX}/events?{query}", "dissolved")


async def undo(console_request: ConsoleRequest) -> Response:
    """Undo a person's last edit to a series; if dates have changed since then, show them first."""
    edit = _read_revision(console_request, "edit")
    if edit is None or _read_revision(console_request) is None:
        raise errors.missing_params(["base_revision", "edit"])
    params = {"revision": edit - 1, "force": bool(console_request.form_text("force"))}
    try:
        await _perform(console_request, restore_series, SERIES, params, RESTORE_PARAMS)
    except ApiError as error:
        if error.code == "series_undo_conflicts":
            return await _show_conflicts(console_request, error)
        return await _show_again(console_request, error)
    return redirect(f"{PATH}/{read_id(console_request)}", "undone")


async def _show_conflicts(console_request: ConsoleRequest, error: ApiError) -> Response:
    series_id, locale = read_id(console_request), make_locale(console_request)
    async with console_request.transaction() as tx:
        row = await fetch_editable_row(SERIES, console_request.make_context(tx, record_id=series_id))
    dates: Any = error.data["dates"]
    return show(
        console_request,
        "series_undo.html",
        status=409,
        title=to_plain_text(row["title"]),
        record_path=f"{PATH}/{series_id}",
        revision=_read_revision(console_request),
        edit=_read_revision(console_request, "edit"),
        dates=[describe_own(entry, locale) for entry in dates],
    )


async def _change(
    console_request: ConsoleRequest,
    operation: Operation,
    declared: tuple[Param, ...],
    params: Mapping[str, Any],
    notice: str,
) -> Response:
    try:
        await _perform(console_request, operation, SERIES, params, declared)
    except ApiError as error:
        return await _show_again(console_request, error)
    return redirect(f"{PATH}/{read_id(console_request)}", notice)


async def _show_again(console_request: ConsoleRequest, error: ApiError) -> Response:
    if error.status not in (400, 409, 410, 412):
        raise error
    return await show_page(console_request, error)


async def _perform(
    console_request: ConsoleRequest,
    operation: Operation,
    kind: Kind,
    params: Mapping[str, Any],
    declared: tuple[Param, ...],
) -> Outcome:
    return await console_request.perform(
        operation,
        kind,
        params,
        record_id=read_id(console_request),
        revision=_read_revision(console_request),
        params=declared,
    )


def _read_revision(console_request: ConsoleRequest, name: str = "base_revision") -> int | None:
    return parse_id(console_request.form_text(name))


# Events --------------------------------------------------------------------------------------


async def reset_date(console_request: ConsoleRequest) -> Response:
    outcome = await _perform(console_request, follow_series, EVENTS, {}, (FIELDS,))
    return redirect(f"{PATH}/{outcome.body['series']['id']}", "saved")


async def repeat_event(console_request: ConsoleRequest) -> Response:
    repeat = read_repeat(console_request.form)
    params = make_params(repeat, console_request.form_text("start_day")) if repeat.is_on else {}
    try:
        outcome = await _perform(console_request, convert_event, EVENTS, params, CONVERT_PARAMS)
    except ApiError as error:
        if error.status not in (400, 409, 412):
            raise
        return await show_repeat(console_request, repeat, error)
    return redirect(f"{PATH}/{outcome.body['series']['id']}", "series-created")


async def show_repeat(
    console_request: ConsoleRequest, repeat: RepeatValues | None = None, error: ApiError | None = None
) -> Response:
    record_id = read_id(console_request)
    async with console_request.transaction() as tx:
        row = await fetch_editable_row(EVENTS, console_request.make_context(tx, record_id=record_id))
        values = make_event_values(row, Linked(), tx.site)
    if row["series_id"] is not None:
        return redirect(f"{PATH}/{row['series_id']}")
    return show(
        console_request,
        "event_repeat.html",
        status=error.status if error else 200,
        error=error.message if error else None,
        errors=field_errors(error) if error else {},
        values=values,
        row=row,
        repeat=repeat or RepeatValues(frequency="weekly"),
        record_path=f"{PREFIX}/events/{record_id}",
        repeat_options=make_options(make_locale(console_request), is_new=False, has_lists=True),
    )


_EVENT: Final = f"/events/{ID}"
ROUTES: Final = (
    ConsoleRoute(f"/series/{ID}/dates", post=change_dates),
    ConsoleRoute(f"/series/{ID}/undo", post=undo),
    ConsoleRoute(f"/series/{ID}/restore", post=restore),
    ConsoleRoute(f"/series/{ID}/dissolve", post=dissolve),
    ConsoleRoute(f"{_EVENT}/follow", post=reset_date),
    ConsoleRoute(f"{_EVENT}/repeat", show_repeat, repeat_event),
)

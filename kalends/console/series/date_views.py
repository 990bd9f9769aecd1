"""Changes of a series without a page between: its dates, own changes of a date, undo, and a series from an event."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from kalends.api.series_routes import CONVERT_PARAMS, DATES_PARAMS, FIELDS, RESTORE_PARAMS
from kalends.console.event_form.values import Linked
from kalends.console.event_form.values import make_values as make_event_values
from kalends.console.field_texts import make_locale
from kalends.console.rendering import show
from kalends.console.request import PREFIX, ConsoleRequest, ConsoleRoute, Operation, field_errors, redirect
from kalends.console.series.effects import describe_own
from kalends.console.series.repeat import RepeatValues, make_params, read_repeat
from kalends.console.series.repeat_options import make_options
from kalends.console.series.views import ID, PATH, read_id, show_page
from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.html.text import to_plain_text
from kalends.core.params import Param
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Kind
from kalends.kinds.series import SERIES
from kalends.operations.context import Outcome
from kalends.operations.records import fetch_editable_row
from kalends.operations.series.dates import edit_dates
from kalends.operations.series.membership import convert_event, follow_series
from kalends.operations.series.undo import restore_series


async def change_dates(console_request: ConsoleRequest) -> Response:
    """Add a date to a series, leave one out, or bring one back."""
    form = console_request.form_text
    time = form("add_time")
    added = f"{form('add')} {time}" if form("add") and time else form("add")
    params = {name: [value] for name, value in (("add", added), ("remove", form("remove"))) if value}
    return await _change(console_request, edit_dates, DATES_PARAMS, params, "saved")


async def restore(console_request: ConsoleRequest) -> Response:
    """Restore a series from the trash with its dates."""
    return await _change(console_request, restore_series, RESTORE_PARAMS, {}, "restored")


async def undo(console_request: ConsoleRequest) -> Response:
    """Undo the last edit of a series by a person; if dates have changed since then, show them first."""
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
    """Change a series and continue with its page, or show there why it was not changed."""
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
    text = console_request.form_text(name)
    return int(text) if text.isdecimal() and len(text) < 17 else None


# Events --------------------------------------------------------------------------------------


async def give_up_own_changes(console_request: ConsoleRequest) -> Response:
    """Let a date have the fields of its series again."""
    outcome = await _perform(console_request, follow_series, EVENTS, {}, (FIELDS,))
    return redirect(f"{PATH}/{outcome.body['series']['id']}", "saved")


async def show_repeat(console_request: ConsoleRequest) -> Response:
    return await _show_repeat(console_request, RepeatValues(frequency="weekly"))


async def repeat_event(console_request: ConsoleRequest) -> Response:
    """Turn an event into the first date of a series."""
    repeat = read_repeat(console_request.form)
    params = make_params(repeat, console_request.form_text("start_day")) if repeat.is_on else {}
    try:
        outcome = await _perform(console_request, convert_event, EVENTS, params, CONVERT_PARAMS)
    except ApiError as error:
        if error.status not in (400, 409, 412):
            raise
        return await _show_repeat(console_request, repeat, error)
    return redirect(f"{PATH}/{outcome.body['series']['id']}", "series-created")


async def _show_repeat(
    console_request: ConsoleRequest, repeat: RepeatValues, error: ApiError | None = None
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
        repeat=repeat,
        record_path=f"{PREFIX}/events/{record_id}",
        repeat_options=make_options(make_locale(console_request), is_new=False, has_lists=True),
    )


_EVENT: Final = f"/events/{ID}"
ROUTES: Final = (
    ConsoleRoute(f"/series/{ID}/dates", post=change_dates),
    ConsoleRoute(f"/series/{ID}/undo", post=undo),
    ConsoleRoute(f"/series/{ID}/restore", post=restore),
    ConsoleRoute(f"{_EVENT}/follow", post=give_up_own_changes),
    ConsoleRoute(f"{_EVENT}/repeat", show_repeat, repeat_event),
)

"""Changes of a series: another rule, its trash, and undo. Each shows its effect before it is written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
from starlette.responses import Response

from kalends.api.series_routes import DRY_RUN, FROM, SERIES_EDIT, SERIES_SCOPE
from kalends.console.field_texts import make_locale
from kalends.console.rendering import show
from kalends.console.request import ConsoleRequest, ConsoleRoute, Operation, redirect
from kalends.console.series.effects import describe_effect
from kalends.console.series.repeat import make_rule, read_day, read_repeat
from kalends.console.series.views import ID, PATH, read_id, show_page
from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.html.text import to_plain_text
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import Param
from kalends.kinds.series import SERIES
from kalends.operations.context import Outcome
from kalends.operations.records import fetch_editable_row
from kalends.operations.series.edit import ALL, FOLLOWING, delete_series, edit_series


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a series: the path below that of the series, the operation with its parameters, and a heading."""

    name: str
    operation: Operation
    params: tuple[Param, ...]
    heading: str  # a message ID


RULE: Final = Change("rule", edit_series, SERIES_EDIT, N_("Change the rule"))
TRASH: Final = Change("trash", delete_series, (SERIES_SCOPE, FROM, DRY_RUN), N_("Move the series to the trash"))


async def change_rule(console_request: ConsoleRequest) -> Response:
    """Show the effect of another rule, or save it once it is confirmed."""
    if (confirmed := read_confirmed(console_request)) is not None:
        return await _save_rule(console_request, confirmed)
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


async def _save_rule(console_request: ConsoleRequest, params: dict[str, Any]) -> Response:
    try:
        await _perform(console_request, RULE, params)
    except ApiError as error:
        if error.status not in (400, 409, 412):
            raise
        return await show_page(console_request, error)
    return redirect(f"{PATH}/{read_id(console_request)}", "saved")


async def trash_series(console_request: ConsoleRequest) -> Response:
    """Show which dates move to the trash with a series, or move them once that is confirmed."""
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
    """Show the effect of a change of a series, from its dry run."""
    series_id = read_id(console_request)
    async with console_request.transaction() as tx:
        row = await fetch_editable_row(SERIES, console_request.make_context(tx, record_id=series_id))
    outcome = await _dry_run(console_request, change, params)
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


async def _dry_run(console_request: ConsoleRequest, change: Change, params: Mapping[str, Any]) -> Outcome:
    """Run an edit without writing; dates with changes of their own that would be lost are part of its summary."""
    raw = {**params, "dry_run": True}
    try:
        return await _perform(console_request, change, raw)
    except ApiError as error:
        if error.code != "series_overrides_lost":
            raise
    return await _perform(console_request, change, {**raw, "overrides": "replace"})


async def _perform(console_request: ConsoleRequest, change: Change, params: Mapping[str, Any]) -> Outcome:
    revision = console_request.form_text("base_revision")
    return await console_request.perform(
        change.operation,
        SERIES,
        params,
        record_id=read_id(console_request),
        revision=int(revision) if revision.isdecimal() and len(revision) < 17 else None,
        params=change.params,
    )


def read_confirmed(console_request: ConsoleRequest) -> dict[str, Any] | None:
    """Return the parameters that the page with the effect sends; None if it is another form."""
    text = console_request.form_text("confirmed")
    if not text:
        return None
    try:
        params: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        params = None
    if not isinstance(params, dict):
        raise errors.invalid("confirmed", "must be an object.")
    values: dict[str, Any] = params  # pyright: ignore[reportUnknownVariableType]
    return {**values, "overrides": "replace"} if console_request.form_text("replace") else values


ROUTES: Final = (
    ConsoleRoute(f"/series/{ID}/rule", post=change_rule),
    ConsoleRoute(f"/series/{ID}/trash", post=trash_series),
)

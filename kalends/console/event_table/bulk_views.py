"""Changes of several events: confirmation, result and undo."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from kalends.console.event_table.bulk import Action, find_action, make_write, read_targets, write_targets
from kalends.console.event_table.bulk_run import BulkOutcome, ChangeResult, run_portions, undo_changes
from kalends.console.event_table.filters import PATH, make_back_url
from kalends.console.rendering import show
from kalends.console.request import ConsoleRequest, ConsoleRoute, redirect
from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_
from kalends.operations.bulk_changes import Target, read_selected

# A change of more events than this needs a confirmation.
CONFIRMED_FROM: Final = 21
SHOWN_TITLES: Final = 20
# The button that Enter presses in a field of the form.
NO_ACTION: Final = "none"
# The code of the error for a change that took too long.
ROLLED_BACK: Final = errors.too_slow(0).code
CONFLICT: Final = N_("Somebody else has changed this event in the meantime. Open it and check it.")
FORBIDDEN: Final = N_("You may not change this event.")


@dataclass(frozen=True, slots=True)
class Failure:
    """An event that was not changed, and the reason."""

    id: int
    title: str
    kind: str  # conflict, forbidden or invalid
    reason: str | Message
    url: str


async def change_selected(console_request: ConsoleRequest) -> Response:
    """Change the selected events, after a confirmation if there are many or if they are moved to the trash."""
    form = console_request.form
    targets = read_targets(form)
    if not targets or (form.get("action") == NO_ACTION and not form.get("row")):
        notice = "nothing-selected" if not targets else ""
        return redirect(make_back_url(console_request.form_text("query")), notice)
    action = find_action("trash" if form.get("row") else console_request.form_text("action"))
    try:
        if not form.get("confirmed") and (action.confirms or len(targets) >= CONFIRMED_FROM):
            return await _confirm(console_request, action, targets)
        return _show_outcome(console_request, await _run(console_request, action, targets))
    except ApiError as error:
        return _show_error(console_request, error)


async def _run(console_request: ConsoleRequest, action: Action, targets: Sequence[Target]) -> BulkOutcome:
    return await run_portions(
        console_request, targets, lambda context: make_write(action, context, console_request.form)
    )


async def _confirm(console_request: ConsoleRequest, action: Action, targets: list[Target]) -> Response:
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx)
        await make_write(action, context, console_request.form)
        titles = [event.title for event in (await read_selected(context, targets[:SHOWN_TITLES])).values()]
    return show(
        console_request,
        "events_confirm.html",
        action=action,
        count=len(targets),
        titles=titles,
        more=len(targets) - len(titles),
        events=write_targets(targets),
        fields={name: console_request.form_text(name) for name in ("query", "category", "venue")},
        back_url=make_back_url(console_request.form_text("query")),
    )


def _show_outcome(console_request: ConsoleRequest, outcome: BulkOutcome, notice: str = "") -> Response:
    """Return to the table if all events were changed; otherwise list those that were not."""
    query = console_request.form_text("query")
    if not outcome.failures:
        changed = {} if notice else {"changed": f"{outcome.first}-{outcome.last}"}
        return redirect(make_back_url(query, **changed), notice)
    return show(
        console_request,
        "events_result.html",
        done=[result for result in outcome.results if result.is_done],
        failures=[_explain(result) for result in outcome.failures],
        outcome=outcome,
        may_undo=not notice and outcome.last > outcome.first,
        query=query,
        back_url=make_back_url(query),
    )


def _explain(result: ChangeResult) -> Failure:
    url = f"{PATH}/{result.id}" if result.title else ""
    if result.status == 412:
        return Failure(result.id, result.title, "conflict", CONFLICT, url)
    if result.status in (401, 403):
        return Failure(result.id, result.title, "forbidden", FORBIDDEN, "")
    return Failure(result.id, result.title, "invalid", result.message, url)


def _show_error(console_request: ConsoleRequest, error: ApiError) -> Response:
    """Show why nothing was changed, with a way back."""
    if error.status >= 500 and error.code != ROLLED_BACK:
        raise error
    params = error.data.get("params")
    reasons = list(params.values()) if isinstance(params, dict) else [error.message]  # pyright: ignore
    back_url = make_back_url(console_request.form_text("query"))
    return show(console_request, "events_refused.html", status=error.status, reasons=reasons, back_url=back_url)


async def undo(console_request: ConsoleRequest) -> Response:
    """Restore the events of a bulk change of this user, except those that were changed since."""
    first, last = (_read_revision(console_request, name) for name in ("after_revision", "until_revision"))
    try:
        return _show_outcome(console_request, await undo_changes(console_request, first, last), "undone")
    except ApiError as error:
        return _show_error(console_request, error)


def _read_revision(console_request: ConsoleRequest, name: str) -> int:
    text = console_request.form_text(name)
    if not (text.isascii() and text.isdecimal() and len(text) < 17):
        raise errors.invalid(name, "must be a revision.")
    return int(text)


ROUTES: Final = (
    ConsoleRoute("/events/bulk", post=change_selected),
    ConsoleRoute("/events/bulk/undo", post=undo),
)

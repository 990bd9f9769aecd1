"""Cancels an event, such as one date of a series, with an optional reason; undoes this, and moves in the calendar."""

from typing import Final

from starlette.responses import Response

from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.operations.record_history import restore_record
from kalends.calendar.operations.record_verbs import fetch_editable_row, update_record
from kalends.console.console_request import (
    PREFIX,
    ConsoleRequest,
    ConsoleRoute,
    add_query,
    read_revision,
    redirect,
    safe_next,
)

_EVENT: Final = r"/events/(?P<id>\d{1,15})"


async def cancel(console_request: ConsoleRequest) -> Response:
    record_id = int(console_request.path_params["id"])
    params = {"event_status": "cancelled", "status_reason": console_request.form_text("cancel_reason").strip()}
    async with console_request.transaction() as tx:
        row = await fetch_editable_row(EVENTS, console_request.make_context(tx, record_id=record_id))
    before: int = row["revision"]
    outcome = await console_request.perform(update_record, EVENTS, params, record_id=record_id, revision=before)
    change, notice = (record_id, before, outcome.revision or 0), "date-cancelled" if row["series_id"] else "cancelled"
    return redirect_with_undo(_find_back(console_request), change, notice)


def redirect_with_undo(path: str, change: tuple[int, int, int], notice: str) -> Response:
    """Redirect to a page that offers to undo a change: its event, and the event's revisions before and after."""
    return redirect(add_query(path, f"undo={'-'.join(map(str, change))}"), notice, f"event-{change[0]}")


async def undo(console_request: ConsoleRequest) -> Response:
    """Restore the revision before a cancellation or move, unless the event has changed since."""
    record_id = int(console_request.path_params["id"])
    before, after = (read_revision(console_request, name) for name in ("before", "after"))
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        context = console_request.make_context(tx, {"revision": before}, record_id=record_id, revision=after)
        await restore_record(EVENTS, context)
    return redirect(_find_back(console_request), "undone", f"event-{record_id}")


def _find_back(console_request: ConsoleRequest) -> str:
    sent = console_request.form_text("back")
    return safe_next(sent) if sent else f"{PREFIX}/events/{console_request.path_params['id']}"


ROUTES: Final = (ConsoleRoute(f"{_EVENT}/cancel", post=cancel), ConsoleRoute(f"{_EVENT}/undo", post=undo))

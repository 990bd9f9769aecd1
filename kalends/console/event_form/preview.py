"""The preview of an event in the template of the public page, for drafts and for unsaved changes."""

from dataclasses import replace
from typing import Final

from starlette.responses import Response

from kalends.console.event_form.page import LABELS
from kalends.console.event_form.submission import Submission
from kalends.console.rendering import make_policy, show
from kalends.console.request import ConsoleRequest, ConsoleRoute, field_errors
from kalends.core.errors import ApiError
from kalends.core.params import read_params
from kalends.http.language import translator
from kalends.http.password_guesses import hash_new_passwords
from kalends.kinds.events import EVENTS
from kalends.operations.records import create_record, update_record
from kalends.store.database import Transaction
from kalends.website.detail_views import show_event_page
from kalends.website.handler import PageRequest, PageResponse, make_context


async def show_preview(console_request: ConsoleRequest) -> Response:
    """Show the page of a stored event, whatever its status."""
    async with console_request.transaction() as tx:
        return await _show(console_request, tx, int(console_request.path_params["id"]))


async def preview_unsaved(console_request: ConsoleRequest, submission: Submission) -> Response:
    """Save the form in a transaction that is rolled back, and show the page that the event would have."""
    params = submission.find_params()
    if submission.record_id is None:
        params["status"] = "draft"
    record_id = submission.record_id
    values = read_params(EVENTS.fields, params, update=record_id is not None)
    await hash_new_passwords(console_request.site, values)
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        async with tx.rolled_back():
            context = console_request.make_context(tx, values, record_id=record_id)
            outcome = await (create_record if record_id is None else update_record)(EVENTS, context)
            return await _show(console_request, tx, outcome.body["id"])


def show_preview_error(console_request: ConsoleRequest, error: ApiError) -> Response:
    """Explain in the frame of the preview why the form cannot be shown yet."""
    translate = translator(console_request.language)
    response = show(
        console_request,
        "event_form_message.html",
        status=error.status,
        error=error.message,
        errors=field_errors(error),
        labels={name: translate(text) for name, text in LABELS.items()},
    )
    policy = make_policy(console_request).replace("frame-ancestors 'none'", "frame-ancestors 'self'")
    response.headers["Content-Security-Policy"] = policy
    return response


async def _show(console_request: ConsoleRequest, tx: Transaction, record_id: int) -> Response:
    """Render the public page as the user may read it. It is never stored, and framed only by the console."""
    page_request = console_request.make_page_request(
        console_request.request, console_request.path, console_request.actor
    )
    # A user who may edit a protected event needs no password.
    context = replace(
        make_context(page_request, tx, {"context": "edit"}), record_id=record_id, representation_cache=None
    )
    return _respond(page_request, await show_event_page(page_request, context))


def _respond(page_request: PageRequest, page: PageResponse) -> Response:
    headers = {
        "Content-Language": page_request.language,
        "Content-Security-Policy": page.headers["Content-Security-Policy"],
        "Referrer-Policy": "same-origin",
        "X-Robots-Tag": "noindex",
        "Cache-Control": "private, no-store",
    }
    return Response(page.body, page.status, headers, media_type=page.media_type)


ROUTES: Final = (ConsoleRoute(r"/events/(?P<id>\d{1,15})/preview", show_preview),)

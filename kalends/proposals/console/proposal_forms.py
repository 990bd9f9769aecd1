"""The event form with proposed values: editors accept what they save, senders send it to the editors."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from starlette.responses import Response

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.console.form_page import Action, ProposedForm, check_event, resolve_names, show_form
from kalends.calendar.console.form_scripts import show_preview_error
from kalends.calendar.console.form_submission import Submission, read_form, read_originals
from kalends.calendar.console.form_views import EVENTS_PATH, save_checked, show_again
from kalends.calendar.kinds.events import EVENTS
from kalends.console.console_request import ConsoleRequest, ConsoleRoute, redirect
from kalends.console.event_values import make_originals, overlay
from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.messages import Message, gettext_noop as N_
from kalends.core.params import parse_id
from kalends.proposals import storage
from kalends.proposals.console.proposed_event import load_proposed
from kalends.proposals.console.queue_pages import CONFLICT, PATH, QUEUE, ask_choices, redirect_decided, run_decisions
from kalends.proposals.operations.proposal_lists import fetch_proposal
from kalends.proposals.operations.proposal_sending import Draft, resend, send
from kalends.proposals.rules import MAX_TEXT, OPEN
from kalends.store import Row

_ACCEPT: Final = Action("accept", N_("Accept"), "")
_PROPOSE: Final = Action("propose", N_("Propose changes"), "")


async def show_proposal_form(console_request: ConsoleRequest) -> Response:
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx)
        submission = await _load(console_request, context, await _fetch_row(console_request, context))
        checks = await check_event(context, submission.values, submission.record_id)
        return await show_form(console_request, context, replace(submission.make_page(), checks=checks))


async def save_proposal_form(console_request: ConsoleRequest) -> Response:
    picture, action = await read_form(console_request), console_request.form_text("action")
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx)
        submission = await _load(console_request, context, await _fetch_row(console_request, context))
        submission.problems = await resolve_names(context, submission.values)
    if action == "find-image":
        return await show_again(console_request, submission)
    try:
        return await save_checked(console_request, submission, picture, _write)
    except ApiError as error:
        if error.status >= 500:
            raise
        if action == "preview":
            return show_preview_error(console_request, error)
        return await show_again(console_request, submission, error)


async def _fetch_row(console_request: ConsoleRequest, context: OperationContext) -> Row | None:
    """Return the proposal in the path, or the sender's open change of the event in the path."""
    params = console_request.path_params
    if "id" in params:
        return await storage.find_open_change(context.transaction, int(params["id"]), context.actor.user_id, None)
    row = await fetch_proposal(context, params["key"])
    states = ("waiting",) if console_request.has_role("editor") else OPEN
    if row["state"] not in states or not storage.decode_values(row):
        raise errors.proposal_decided(row["state"])
    return row


async def _load(console_request: ConsoleRequest, context: OperationContext, row: Row | None) -> Submission:
    """Return the form with the proposed values, or with what was sent.

    Values are based on the proposal's revision, so changes that were made since lead to a choice.
    """
    form = console_request.form
    event_id: int | None = row["record_id"] if row else int(console_request.path_params["id"])
    proposed = await load_proposed(context, event_id, storage.decode_values(row) if row else {})
    event = proposed.row
    if row is None:
        if event is None:
            raise errors.not_found(EVENTS.singular)
        if not permissions.may_propose_changes(context.actor, event):
            reason = Message("only its author can propose changes of an event.")
            raise permissions.permission_error(context.actor, reason)
    overlay(proposed.values, form)
    sent_revision = parse_id(str(form.get("base_revision", "")))
    is_senders = not console_request.has_role("editor")
    return Submission(
        row=event,
        values=proposed.values,
        originals=read_originals(form.get("originals")) or make_originals(proposed.stored),
        base_revision=row["base_revision"] if row else sent_revision or (event["revision"] if event else None),
        draft_key="",
        problems={},
        proposed=ProposedForm(
            url=console_request.path,
            back_url=f"{QUEUE}/{row['id']}" if row else EVENTS_PATH,
            action=_PROPOSE if is_senders else _ACCEPT,
            version=parse_id(str(form["version"])) if "version" in form else row["version"] if row else None,
            note=str(form.get("note", row["note"] if row else "")),
            is_senders=is_senders,
        ),
    )


async def _write(console_request: ConsoleRequest, submission: Submission, params: dict[str, Any]) -> Response:
    form = submission.proposed
    if form is None or not params:
        raise ApiError(400, "invalid_form", Message("You haven’t changed anything."))
    if form.is_senders:
        return await _send(console_request, submission, form, params)
    entry = (console_request.path_params["key"], form.version or 0)
    problems, decided = await run_decisions(console_request, dict([entry]), "accept", {"values": params})
    for error in problems.values():
        if error.code == CONFLICT:
            return await ask_choices(console_request, entry, params)
        raise error
    return redirect_decided(console_request, decided)


async def _send(
    console_request: ConsoleRequest, submission: Submission, form: ProposedForm, params: Mapping[str, Any]
) -> Response:
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        context = console_request.make_context(tx)
        row = await _fetch_row(console_request, context)
        if (row["version"] if row else None) != form.version:
            raise errors.precondition_failed()
        known = storage.decode_values(row) if row else {}
        draft = Draft(
            values=params,
            origin="contributor",
            record_id=submission.record_id,
            base_revision=submission.base_revision,
            note=form.note.strip()[:MAX_TEXT],
            guessed=[name for name in (row["guessed"] if row else ()) if params.get(name, "") == known.get(name)],
            source=row["source"] if row else "",
            program=row["program"] if row else "",
        )
        sent = await (resend(context, row, draft) if row else send(context, draft))
    return redirect(f"{QUEUE}/{sent['id']}", "proposed")


ROUTES: Final = (
    ConsoleRoute(f"{PATH}/edit", show_proposal_form, save_proposal_form, reads_body=False),
    ConsoleRoute(r"/events/(?P<id>\d{1,15})/propose", show_proposal_form, save_proposal_form, reads_body=False),
)

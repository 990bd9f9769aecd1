"""Show and save the event form."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

import orjson
from starlette.responses import Response

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.console.form_page import (
    KIND,
    SAVED_NOTICES,
    STATUSES,
    FormPage,
    check_event,
    find_open_problems,
    load_drafts,
    load_linked,
    load_new_values,
    resolve_names,
    show_form,
    show_form_again,
)
from kalends.calendar.console.form_scripts import preview_unsaved, show_preview_error
from kalends.calendar.console.form_submission import (
    Submission,
    add_picture,
    fetch_picture,
    keep_form,
    load_submission,
    read_form,
)
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.media_kind import MEDIA
from kalends.calendar.kinds.series_kind import SERIES
from kalends.calendar.operations import record_verbs
from kalends.calendar.operations.record_history import restore_record
from kalends.calendar.operations.record_verbs import create_record, delete_record, update_record
from kalends.calendar.storage import form_drafts
from kalends.console import conflicts
from kalends.console.console_request import PREFIX, ConsoleRequest, ConsoleRoute, redirect
from kalends.console.event_values import IMAGE_PARAMS, make_values
from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.http.bodies import parse_nested
from kalends.media.adapters.library import StoredImage
from kalends.series.console.series_scopes import (
    SAVE,
    TRASH,
    Decision,
    ScopedEdit,
    ask_scope,
    read_decision,
    save_scoped,
)
from kalends.series.operations.series_create import create_series
from kalends.series.operations.series_edit import THIS
from kalends.series.rules.repeat import make_params

EVENTS_PATH: Final = f"{PREFIX}/events"
# Notices after saving an event, by its new status.


async def show_new(console_request: ConsoleRequest) -> Response:
    """Show an empty form, a copy of an event, or the unsaved changes of a new event."""
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx)
        permissions.require_writer(console_request.actor, EVENTS)
        key = console_request.query_value("draft")
        if key and (page := await _restore(console_request, context, key, None)):
            return await show_form(console_request, context, page)
        page = FormPage(values=await load_new_values(console_request, context))
        found = [] if console_request.query_value("copy") else await load_drafts(console_request, context, page)
        return await show_form(console_request, context, replace(page, drafts=found))


async def show_edit(console_request: ConsoleRequest) -> Response:
    """Show an event's form, with the stored values or the user's unsaved changes."""
    record_id = int(console_request.path_params["id"])
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx, record_id=record_id)
        key = console_request.query_value("draft")
        if key and (page := await _restore(console_request, context, str(record_id), record_id)):
            return await show_form(console_request, context, page)
        try:
            row = await record_verbs.fetch_editable_row(EVENTS, context)
        except ApiError as error:
            stored = await EVENTS.fetch(tx, record_id) if error.status == 403 else None
            if stored is None or not permissions.may_propose_changes(context.actor, stored):
                raise
            return redirect(f"{EVENTS_PATH}/{record_id}/propose")
        values = make_values(row, await load_linked(context, row), tx.site)
        page = FormPage(values=values, row=row, checks=await check_event(context, values, record_id))
        page = replace(page, drafts=await load_drafts(console_request, context, page))
        return await show_form(console_request, context, page)


async def _restore(
    console_request: ConsoleRequest, context: OperationContext, key: str, record_id: int | None
) -> FormPage | None:
    """Return the form with the user's unsaved changes, or None if there are none."""
    user_id = console_request.actor.user_id or 0
    draft = await form_drafts.find_draft(context.transaction, user_id, KIND, key)
    if draft is None:
        return None
    submission = await load_submission(console_request, context, parse_nested(draft.pairs), record_id)
    submission.draft_key = key if record_id is None else ""
    checks = await check_event(context, submission.values, record_id)
    return replace(submission.make_page(), checks=checks)


async def save(console_request: ConsoleRequest) -> Response:
    """Save or preview a new event or the event in the path, move it to or from the trash, or show the form again."""
    record_id = int(console_request.path_params["id"]) if "id" in console_request.path_params else None
    picture = await read_form(console_request)
    action = console_request.form_text("action")
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx)
        submission = await load_submission(console_request, context, console_request.form, record_id)
    if (decision := read_decision(console_request.form)) is not None:
        return await save_decision(console_request, submission, decision)
    if record_id is not None and action in ("trash", "restore"):
        return await _change_trash(console_request, submission, action)
    if (choices := conflicts.read_choices(console_request.form)) is not None:
        try:
            return await _write(console_request, submission, choices)
        except ApiError as error:
            if error.status != 412:
                raise
        return await _save_merged(console_request, submission, choices)
    if action == "repeat":
        submission.values.repeat.frequency = "weekly"
    if action in ("find-image", "repeat"):
        return await show_again(console_request, submission)
    try:
        return await save_checked(console_request, submission, picture, _write)
    except ApiError as error:
        if error.status >= 500:
            raise
        if action == "preview":
            return show_preview_error(console_request, error)
        if error.status == 412 and record_id is not None:
            mine = submission.find_params()
            if action in STATUSES:
                mine["status"] = STATUSES[action]
            return await _save_merged(console_request, submission, mine)
        return await show_again(console_request, submission, error)


async def save_checked(
    console_request: ConsoleRequest,
    submission: Submission,
    picture: StoredImage | ApiError | None,
    write: Callable[[ConsoleRequest, Submission, dict[str, Any]], Awaitable[Response]],
) -> Response:
    """Check the names and times, store the picture, and write the parameters or preview the event."""
    action = console_request.form_text("action")
    if isinstance(picture, ApiError):
        raise picture
    changed = submission.find_params()
    problems = dict(submission.problems)
    if submission.row is None or {"start_date", "end_date", "timezone", "all_day"} & set(changed):
        problems |= find_open_problems(submission.values)
    if problems:
        raise ApiError(400, "invalid_form", Message("Please check these fields."), data={"params": problems})
    if action == "preview":
        return await preview_unsaved(console_request, submission)
    if picture is not None:
        image_params = submission.find_image_params()
        submission.values.image = str(await add_picture(console_request, picture, image_params))
    elif submission.values.image_url and submission.values.image in ("", "0"):
        submission.values.image = str(await fetch_picture(console_request, submission.values.image_url))
    params = submission.find_params()
    if action in STATUSES:
        params["status"] = STATUSES[action]
    return await write(console_request, submission, params)


async def _write(
    console_request: ConsoleRequest, submission: Submission, params: dict[str, Any], merged: str = ""
) -> Response:
    """Save the event or create a series. If the rest of a series could change too, ask for the scope."""
    if submission.record_id is None and submission.values.repeat.is_on:
        repeat = make_params(submission.values.repeat, submission.values.start_day)
        outcome = await console_request.perform(create_series, SERIES, params | repeat)
        return await finish_series(console_request, submission, outcome.body["id"], "series-created")
    if submission.record_id is None:
        return await finish(console_request, submission, await console_request.perform(create_record, EVENTS, params))
    if (edit := make_edit(submission, SAVE, params)) is not None:
        is_kept = await keep_form(console_request, submission)
        return await ask_scope(console_request, replace(edit, is_kept=is_kept))
    outcome = await console_request.perform(
        update_record, EVENTS, params, record_id=submission.record_id, revision=submission.base_revision
    )
    return await finish(console_request, submission, outcome, merged)


async def finish(
    console_request: ConsoleRequest, submission: Submission, outcome: Outcome, merged: str = ""
) -> Response:
    """Save the picture's description, remove the draft, and redirect to the event's form."""
    record_id: int = outcome.body["id"]
    is_described = await _clean_up(console_request, submission)
    was = submission.row["status"] if submission.row else ""
    status: str = outcome.body["status"]
    notice = SAVED_NOTICES.get(status, "saved") if status != was else "saved"
    if not is_described:
        notice = "image-not-changed"
    elif "tags" in outcome.ignored_params:
        notice = "tags-left-out"
    return redirect(f"{EVENTS_PATH}/{record_id}{f'?merged={merged}' if merged else ''}", notice)


async def finish_series(
    console_request: ConsoleRequest, submission: Submission, series_id: int, notice: str
) -> Response:
    """Save the picture's description, remove the draft, and redirect to the series page."""
    await _clean_up(console_request, submission)
    return redirect(f"{PREFIX}/series/{series_id}", notice)


async def _clean_up(console_request: ConsoleRequest, submission: Submission) -> bool:
    """Save the picture's details and remove the draft. Return False if the user may not change the picture."""
    is_described = await _describe_image(console_request, submission)
    keys = [str(submission.record_id or ""), submission.draft_key]
    async with console_request.write() as tx:
        await form_drafts.remove_drafts(tx, console_request.actor.user_id or 0, KIND, [key for key in keys if key])
    return is_described


async def _describe_image(console_request: ConsoleRequest, submission: Submission) -> bool:
    """Save the picture's description and focus point. Return False if the user may not change the picture."""
    params, image_id = submission.find_image_params(), int(submission.values.image or 0)
    if not params or not image_id:
        return True
    try:
        await console_request.perform(update_record, MEDIA, params, record_id=image_id)
    except ApiError as error:
        if error.status >= 500:
            raise
        return False
    return True


async def _change_trash(console_request: ConsoleRequest, submission: Submission, action: str) -> Response:
    if action == TRASH and (edit := make_edit(submission, TRASH, {})) is not None:
        return await ask_scope(console_request, edit)
    operation = delete_record if action == "trash" else restore_record
    await console_request.perform(
        operation, EVENTS, {}, record_id=submission.record_id, revision=submission.base_revision
    )
    if action == "trash":
        return redirect(EVENTS_PATH, "trashed")
    return redirect(f"{EVENTS_PATH}/{submission.record_id}", "restored")


async def show_again(
    console_request: ConsoleRequest, submission: Submission, error: ApiError | None = None
) -> Response:
    """Show the form again with the user's values. Nothing has been saved."""
    page = replace(
        submission.make_page(),
        image_search=console_request.form_text("image_search"),
        shows_library=console_request.form_text("action") == "find-image",
        shows_repeat=console_request.form_text("action") == "repeat",
    )
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx)
        await resolve_names(context, submission.values)
        page = replace(page, checks=await check_event(context, submission.values, submission.record_id))
        if error is None:
            return await show_form(console_request, context, page)
        return await show_form_again(console_request, context, page, error)


async def _save_merged(console_request: ConsoleRequest, submission: Submission, mine: dict[str, Any]) -> Response:
    if submission.record_id is None or submission.base_revision is None:
        raise errors.precondition_failed()
    merge = await conflicts.merge(console_request, EVENTS, submission.record_id, submission.base_revision, mine)
    if merge.conflicts:
        return conflicts.show_conflict(console_request, EVENTS, submission.record_id, merge)
    submission.base_revision = merge.revision
    return await _write(console_request, submission, merge.values, ",".join(merge.merged_names))


# Series events -------------------------------------------------------------------------------


def make_edit(submission: Submission, action: str, params: dict[str, Any]) -> ScopedEdit | None:
    """Return an edit that needs a scope from the user, or None if it affects only this event."""
    row = submission.row
    if row is None or row["series_id"] is None or row["status"] == "trash":
        return None
    image = {name: str(getattr(submission.values, name)) for name in ("image", *IMAGE_PARAMS)}
    originals = {name: submission.originals[name] for name in IMAGE_PARAMS if name in submission.originals}
    hidden = {**image, "originals": orjson.dumps(originals).decode()} if submission.find_image_params() else {}
    edit = ScopedEdit(row, action, params, submission.base_revision, hidden)
    return edit if edit.needs_scope else None


async def save_decision(console_request: ConsoleRequest, submission: Submission, decision: Decision) -> Response:
    """Save with the scope that the user has chosen. If the event or series has changed, merge or ask again."""
    edit = make_edit(submission, decision.action, decision.params)
    if edit is None:
        raise errors.precondition_failed()
    try:
        outcome = await save_scoped(console_request, edit, decision)
    except ApiError as error:
        if error.status == 412 and decision.action == SAVE:
            return await _save_merged(console_request, submission, decision.params)
        if error.status not in (409, 412):
            raise
        return await ask_scope(console_request, edit, error.message)
    if decision.action == SAVE and decision.scope == THIS:
        return await finish(console_request, submission, outcome)
    notice = "saved" if decision.action == SAVE else "trashed"
    return await finish_series(console_request, submission, edit.row["series_id"], notice)


ROUTES: Final = (
    ConsoleRoute("/events/new", show_new, save, reads_body=False),
    ConsoleRoute(r"/events/(?P<id>\d{1,15})", show_edit, save, reads_body=False),
)

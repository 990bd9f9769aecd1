"""The queue: what waits for a decision, and one entry with everything that an editor needs to decide.

Editors see all entries, others their own. An entry is a proposal, by its ID, or a pending event, by its number.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from starlette.responses import Response

from kalends.api import batch
from kalends.api.api_request import store_pictures
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.console.form_page import check_event, describe_when, format_moment
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.operations.event_links import find_names
from kalends.calendar.operations.record_verbs import fetch_editable_row
from kalends.console import conflicts
from kalends.console.console_rendering import show
from kalends.console.console_request import (
    PREFIX,
    ConsoleRequest,
    ConsoleRoute,
    add_query,
    read_revision,
    redirect,
    safe_next,
)
from kalends.console.field_texts import LABELS, local_text, make_locale, origin_text
from kalends.core import errors
from kalends.core.errors import ApiError, field_errors
from kalends.core.html_text import to_plain_text
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import MAX_ID, parse_id, read_params
from kalends.core.times import local_of
from kalends.http.router import Endpoint, Interface, Route
from kalends.proposals import storage
from kalends.proposals.api import proposal_routes
from kalends.proposals.console.proposed_event import describe_fields, load_proposed
from kalends.proposals.operations import queue_entries
from kalends.proposals.operations.proposal_decisions import PENDING_PARAMS, decide_pending
from kalends.proposals.operations.proposal_lists import fetch_proposal
from kalends.proposals.rules import REASONS

QUEUE: Final = f"{PREFIX}/queue"
PER_PAGE: Final = 50
STATE_NAMES: Final = {
    "waiting": N_("Waiting for review"),
    "accepted": N_("Accepted"),
    "returned": N_("Sent back"),
    "rejected": N_("Rejected"),
    "withdrawn": N_("Withdrawn"),
    "expired": N_("Expired"),
}
# In the order of the stored numbers.
REASON_NAMES: Final = (
    *(N_("Not an event"), N_("Wrong area"), N_("Already in the calendar"), N_("Advertising")),
    *(N_("Incomplete"), N_("Other")),
)


async def show_queue(console_request: ConsoleRequest, problems: Mapping[str, ApiError] | None = None) -> Response:
    """Show the entries that wait, or `?state=decided`, and the entry in the path, by default the first one.

    `problems` are the errors of decisions, by entry.
    """
    page, is_editor = parse_id(console_request.query_value("page")) or 1, console_request.has_role("editor")
    is_decided = is_editor and console_request.query_value("state") == "decided"
    user_id, path_key = console_request.actor.user_id or 0, console_request.path_params.get("key", "")
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx)
        if is_decided:
            rows = await queue_entries.list_decided(tx, PER_PAGE)
        elif is_editor:
            rows = (await storage.list_queue(tx, page * PER_PAGE + 1))[(page - 1) * PER_PAGE :]
        else:
            rows = await storage.list_queue(tx, PER_PAGE, user_id=user_id)
            rows += await queue_entries.list_of_sender(tx, user_id, PER_PAGE)
        keys: list[str] = [row["key"] for row in rows[:PER_PAGE]]
        key = path_key or next(iter([*(problems or ()), *([] if is_decided else keys)]), "")
        try:
            entry = await _load_entry(console_request, context, key) if key else None
        except ApiError:
            if path_key:
                raise
            entry = None
        # The decisions that the user has just made.
        decided = (
            re.findall(proposal_routes.UUID, console_request.query_value("decided"))[:PER_PAGE] if is_editor else []
        )
        undoable = await queue_entries.find_entries(tx, decided) if decided else []
    key = entry["key"] if entry else ""
    position, locale, zone = keys.index(key) if key in keys else -1, make_locale(console_request), tx.site.timezone
    return show(
        console_request,
        "queue.html",
        status=max((error.status for error in (problems or {}).values()), default=200),
        rows=rows[:PER_PAGE],
        entry=entry,
        is_open=bool(path_key or problems),
        is_decided=is_decided,
        page=page,
        has_more=len(rows) > PER_PAGE,
        next_key=next((other for other in (*keys[position + 1 :], *keys[: max(position, 0)])), ""),
        undoable=undoable,
        problems=problems or {},
        field_errors=field_errors,
        form=console_request.form,
        labels={name: locale.text(label) for name, label in LABELS.items()},
        states=STATE_NAMES,
        reasons=dict(zip(REASONS, REASON_NAMES, strict=True)),
        start_of=lambda row: local_of(row["starts_at"], zone),
        day=lambda moment: locale.dated_weekday(moment.date()),
        moment=lambda instant: local_text(instant, zone, locale),
        describe_event=lambda event: format_moment(locale, event.start_local),
        origin=lambda row: origin_text(row["origin"], row["program"], locale),
        reason=lambda row: REASON_NAMES[row["reason"] - 1],
        plain=to_plain_text,
    )


async def _load_entry(console_request: ConsoleRequest, context: OperationContext, key: str) -> dict[str, Any]:
    """Return an entry for the template. Raise 404 unless the user is an editor or the sender."""
    tx, event_id = context.transaction, parse_id(key)
    if event_id is None:
        row = await fetch_proposal(context, key)
        sent, event_id, user_id = storage.decode_values(row), row["record_id"], row["user_id"]
        if row["state"] == "waiting" and not sent:  # A decision on a pending event was undone.
            return await _load_entry(console_request, context, str(event_id))
    else:
        row, sent = None, {}
        event = await fetch_editable_row(EVENTS, replace(context, record_id=min(event_id, MAX_ID)))
        user_id = event["author_id"]
        if event["status"] != "pending":
            raise errors.proposal_not_found()
    state = row["state"] if row else "waiting"
    proposed = await load_proposed(context, event_id, sent)
    names = await find_names(tx, context.actor, EVENTS, [{"author": user_id}])
    is_decidable = state == "waiting" and console_request.has_role("editor")
    submitter_id: str | None = row["submitter_id"] if row else None
    return {
        "key": key,
        "row": row,
        "event": proposed.row,
        "state": state,
        "version": row["version"] if row else proposed.row and proposed.row["revision"],
        "sender": names.get("author", {}).get(user_id, ""),
        "values": proposed.values,
        "when": describe_when(proposed.values, make_locale(console_request)),
        "is_event": not sent,
        "is_change": row is not None and row["base_revision"] is not None and bool(sent),
        "fields": await describe_fields(console_request, context, proposed, row["guessed"] if row else ()),
        "checks": await check_event(context, proposed.values, event_id) if is_decidable else None,
        "similar": await queue_entries.list_similar(tx, row, proposed.values.title) if is_decidable and row else (),
        "has_picture": row is not None
        and state == "waiting"
        and await storage.find_alt_text(tx, row["id"]) is not None,
        "is_blocked": submitter_id is not None and await queue_entries.is_blocked(tx, submitter_id),
        "is_decidable": is_decidable,
    }


async def show_picture(console_request: ConsoleRequest) -> Response:
    """Serve a picture that is not in the media library yet."""
    async with console_request.transaction() as tx:
        row = await fetch_proposal(console_request.make_context(tx), console_request.path_params["key"])
        pictures = await storage.find_pictures(tx, [row["id"]])
    if not pictures:
        raise errors.no_route()
    headers = {"Cache-Control": "private, no-store", "Content-Security-Policy": "default-src 'none'"}
    return Response(pictures[0]["content"], headers=headers, media_type="image/webp")


# Decisions: one entry or the selected ones, each independently of the others ------------------------

# The fields that each action sends.
ACTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "accept": (),
    "return": ("comment",),
    "reject": ("reason", "comment"),
    "undo": (),
    "withdraw": (),
}
CONFLICT: Final = "rest_proposal_conflict"
_PENDING: Final = Endpoint(("POST",), decide_pending, EVENTS, PENDING_PARAMS)
_BATCH_PARAMS: Final = batch.make_params(
    Interface("", (*proposal_routes.ROUTES, Route(r"/events/(?P<id>[0-9]{1,15})/decide", (_PENDING,))))
)


async def decide(console_request: ConsoleRequest) -> Response:
    """Decide on the sent entries, undo decisions or withdraw proposals."""
    form, action = console_request.form, console_request.form_text("action")
    if action not in ACTIONS:
        raise errors.invalid("action", "must be one of: {choices}.", choices=", ".join(ACTIONS))
    body: dict[str, Any] = {name: text for name in ACTIONS[action] if (text := console_request.form_text(name))}
    chosen = conflicts.read_choices(form)
    if chosen is not None:
        body = {"values": chosen, "revision": read_revision(console_request, "base_revision")}
    entries = _read_entries(form.get("entry", ""))
    if not entries:
        return redirect(QUEUE, "nothing-selected")
    problems, decided = await run_decisions(console_request, entries, action, body)
    if [error.code for error in problems.values()] == [CONFLICT] and len(entries) == 1:
        return await ask_choices(console_request, next(iter(entries.items())), chosen, body.get("revision"))
    if problems:
        return await show_queue(console_request, problems)
    if action == "withdraw":
        return redirect(QUEUE, "withdrawn")
    if action == "undo":
        return redirect(f"{QUEUE}/{next(iter(entries))}", "undone")
    return redirect_decided(console_request, decided)


def _read_entries(sent: object) -> dict[str, int]:
    """Return the versions of entries, each sent as KEY:VERSION."""
    texts: list[object] = list(sent) if isinstance(sent, list) else [sent]  # pyright: ignore[reportUnknownArgumentType]
    if len(texts) > PER_PAGE:
        raise errors.invalid("entry", "must name at most {maximum} entries.", maximum=PER_PAGE)
    matches = [
        re.fullmatch(rf"([0-9]{{1,15}}|{proposal_routes.UUID}):([0-9]{{1,15}})", str(text)) for text in texts if text
    ]
    if not all(matches):
        raise errors.invalid("entry", "must be the key and the version of an entry.")
    return {match[1]: int(match[2]) for match in matches if match}


async def run_decisions(
    console_request: ConsoleRequest, entries: Mapping[str, int], action: str, body: Mapping[str, Any]
) -> tuple[dict[str, ApiError], list[str]]:
    """Run a batch. Return the errors by entry, and the IDs of decided proposals. An error affects only its entry."""
    operations = [
        {
            "method": "POST",
            "path": f"/events/{key}/decide" if key.isdecimal() else f"/proposals/{key}/{action}",
            "body": {"decision": action, **body} if key.isdecimal() else body,
            "if_match": version,
        }
        for key, version in entries.items()
    ]
    values = read_params(_BATCH_PARAMS, {"operations": operations, "atomic": False})
    accepted = [key for key in entries if action == "accept" and not key.isdecimal()]
    pictures = await store_pictures(console_request, console_request.site.id, accepted)
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        context = console_request.make_context(tx, values, pictures=pictures)
        outcome = await batch.run_batch(None, context)
    problems, decided = dict[str, ApiError](), list[str]()
    for key, row in zip(entries, outcome.body["results"], strict=True):
        status, body = row["status"], row["body"]
        if status < 400:
            decided.append(body["id"])
            continue
        code, message, data = body["code"], body["message"], body["data"]
        problems[key] = ApiError(status, code, message, data=data)
    return problems, decided


def redirect_decided(console_request: ConsoleRequest, decided: Sequence[str]) -> Response:
    """Go on with the next entry, which offers to undo the decision."""
    path = safe_next(console_request.form_text("next") or QUEUE)
    return redirect(add_query(path, f"decided={'.'.join(decided)}"))


async def ask_choices(
    console_request: ConsoleRequest,
    entry: tuple[str, int],
    values: Mapping[str, Any] | None,
    revision: int | None = None,
) -> Response:
    """Let the editor choose between the proposed values, or those of the form, and the changes since."""
    async with console_request.transaction() as tx:
        row = await fetch_proposal(console_request.make_context(tx), entry[0])
    mine = storage.decode_values(row) if values is None else values
    event_id: int = row["record_id"]
    merge = await conflicts.merge(console_request, EVENTS, event_id, revision or row["base_revision"], mine)
    hidden = {"entry": f"{entry[0]}:{entry[1]}", "action": "accept", "next": console_request.form_text("next")}
    target = conflicts.Target(f"{QUEUE}/decide", f"{QUEUE}/{entry[0]}", N_("Proposed version"), hidden)
    return conflicts.show_conflict(console_request, EVENTS, event_id, merge, target)


async def block(console_request: ConsoleRequest) -> Response:
    """Block the sender of the proposal in the path, or end that."""
    key, is_blocked = console_request.path_params["key"], console_request.form_text("block") != "false"
    async with console_request.write() as tx:
        row = await fetch_proposal(console_request.make_context(tx), key)
        user_id = console_request.actor.user_id
        await queue_entries.block_submitter(tx, row["submitter_id"], user_id, is_blocked=is_blocked)
    return redirect(f"{QUEUE}/{key}", "blocked" if is_blocked else "unblocked")


PATH: Final = "/queue/(?P<key>[0-9a-f-]{36})"
ROUTES: Final = (
    ConsoleRoute("/queue", show_queue),
    ConsoleRoute(PATH, show_queue),
    ConsoleRoute("/queue/(?P<key>[0-9]{1,15})", show_queue),
    ConsoleRoute("/queue/decide", post=decide),
    ConsoleRoute(f"{PATH}/picture", show_picture),
    ConsoleRoute(f"{PATH}/block", post=block, min_role="editor"),
)

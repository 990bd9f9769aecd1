"""Accept, return and reject proposals and pending events, and undo these decisions, each in one transaction.

The operations take the proposal's ID as `context.slug`, and the version that the editor saw as `context.if_match`.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import orjson

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.access.permissions import EDITOR
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.kinds.series_kind import SERIES
from kalends.calendar.operations.merging import Merge, merge
from kalends.calendar.operations.record_history import list_edits, restore_record
from kalends.calendar.operations.record_verbs import create_record, delete_record, fetch_active_row, update_record
from kalends.core import credentials, errors, params
from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.core.params import Param, Type, param, read_params
from kalends.core.sanitize import clean_text
from kalends.media.images import add_image
from kalends.proposals import storage
from kalends.proposals.operations.proposal_lists import build_written_outcome, fetch_proposal
from kalends.proposals.operations.proposal_subjects import enqueue_mail
from kalends.proposals.operations.proposal_values import find_end, refuse
from kalends.proposals.rules import (
    CHOICES,
    DECISION_DELAY,
    KEPT_PERIOD,
    MAX_TEXT,
    REASONS,
    TRANSITIONS,
    Mail,
    State,
    find_refused,
    plan_ageing,
)
from kalends.series.operations.series_edit import ALL, THIS, delete_event, edit_event
from kalends.series.operations.series_undo import restore_series
from kalends.store import Row
from kalends.store.database import Transaction

# Decisions and their parameters ---------------------------------------------------------------------


def _clean(value: str, limit: int = MAX_TEXT) -> str:
    return clean_text(value, limit)


def _read_object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidValue("must be an object.")
    return value  # pyright: ignore[reportUnknownVariableType]


def _read_choices(value: object) -> dict[str, Any]:
    choices = _read_object(value)
    if any(choice not in CHOICES for choice in choices.values()):
        raise InvalidValue("must have one of {values} for each field.", values=", ".join(CHOICES))
    return choices


TEXT: Final = params.text(_clean)
OBJECT: Final = Type({"type": "object"}, _read_object)
_EACH: Final = {"type": "object", "additionalProperties": {"type": "string", "enum": list(CHOICES)}}
_CHOICES: Final = Type({"type": "object"}, _read_choices, exact_schema=_EACH)
_REVISION: Final = params.integer(minimum=1)
_COMMENT: Final = param("comment", TEXT, "A comment for the sender")
_REASON: Final = param("reason", params.one_of(*REASONS), "Why the proposal is rejected")
_DECISION: Final = param("decision", params.one_of("accept", "return", "reject"), "The decision", required=True)
ACCEPT_PARAMS: Final[tuple[Param, ...]] = (
    param("values", OBJECT, "The parameters of the event, instead of the proposed ones"),
    param("choices", _CHOICES, "For each field of a conflict, whether the proposal’s value or the record’s counts"),
    param("revision", _REVISION, "The revision of the event that `values` or `choices` are based on"),
)
RETURN_PARAMS: Final = (replace(_COMMENT, type=params.text(_clean, allow_empty=False), required=True),)
REJECT_PARAMS: Final = (replace(_REASON, required=True), _COMMENT)
PENDING_PARAMS: Final = (_DECISION, _REASON, _COMMENT)
_REQUIRED: Final[Mapping[str, tuple[Param, ...]]] = {"accept": (), "return": RETURN_PARAMS, "reject": REJECT_PARAMS}


async def _decide(action: str, kind: Kind, context: OperationContext) -> Outcome:
    """Write the decision, after the record; both are stored or neither."""
    row, tx = await _fetch_for(context, action), context.transaction
    first_revision, record_id = tx.changes.revision, row["record_id"]
    if not storage.decode_values(row):
        await _decide_event(context, record_id, action)
    elif action == "accept":
        record_id = await _write_event(context, row)
    reason: str | None = context.values.get("reason") if action == "reject" else None
    written = tx.changes.revision if action == "accept" or tx.changes.revision > first_revision else None
    decided = await storage.change_proposal(
        tx,
        row["id"],
        {
            "record_id": record_id,
            "state": TRANSITIONS[action][1],
            "decided_by": context.actor.user_id,
            "decided_at": tx.now,
            "reason": REASONS.index(reason) + 1 if reason is not None else None,
            "comment": context.values.get("comment", ""),
            "first_revision": first_revision if written is not None else None,
            "last_revision": written,
        },
    )
    due_at = tx.now + KEPT_PERIOD
    if decided["state"] != "rejected":
        due_at = plan_ageing(decided, await find_end(tx, decided), tx.now).due_at
    await storage.postpone(tx, row["id"], due_at)
    if row["submitter_id"] is not None or row["user_id"] not in (None, context.actor.user_id):
        await enqueue_mail(tx, Mail.DECISION, row["id"], decided["version"], DECISION_DELAY)
    return build_written_outcome(decided)


accept_proposal: Final = partial(_decide, "accept")
return_proposal: Final = partial(_decide, "return")
reject_proposal: Final = partial(_decide, "reject")


async def decide_pending(kind: Kind, context: OperationContext) -> Outcome:
    """Decide on a pending event, given by `context.record_id` and, as `if_match`, its revision.

    A proposal without values keeps the decision.
    """
    permissions.require_role(context.actor, EDITOR)
    tx, event = context.transaction, await fetch_active_row(EVENTS, replace(context, if_match=None))
    if event["status"] != "pending":
        raise errors.proposal_decided(event["status"])
    if context.if_match is None:
        raise errors.version_required()
    if event["revision"] not in context.if_match:
        raise errors.precondition_failed()
    action: str = context.values.get("decision", "")
    if missing := params.find_missing(_REQUIRED.get(action, PENDING_PARAMS), context.values):
        raise errors.missing_params(missing)
    seen: storage.Columns = {"base_revision": event["revision"], "starts_at": event["start_utc"], "state": "waiting"}
    row = await storage.find_open_review(tx, event["id"])
    if row is not None:
        row = await storage.change_proposal(tx, row["id"], seen)
    else:
        sent: storage.Columns = {"id": credentials.new_uid(), "origin": "contributor", "user_id": event["author_id"]}
        dates: storage.Columns = {"created_at": tx.now, "expires_at": event["end_utc"]}
        row = await storage.add_proposal(tx, {"record_id": event["id"], **sent, **dates, **seen})
    version = frozenset([row["version"]])
    return await _decide(action, kind, replace(context, record_id=None, slug=row["id"], if_match=version))


async def _fetch_for(context: OperationContext, action: str) -> Row:
    """Fetch and lock the proposal in the path, and check that the action is possible on what the editor saw."""
    permissions.require_role(context.actor, EDITOR)
    row = await fetch_proposal(context, context.slug or "", locked=True)
    if row["state"] not in TRANSITIONS[action][0]:
        raise errors.proposal_decided(row["state"])
    if context.if_match is None:
        raise errors.version_required()
    if row["version"] not in context.if_match:
        raise errors.precondition_failed()
    return row


# What a decision does to the event ---------------------------------------------------------------


async def _write_event(context: OperationContext, row: Row) -> int:
    """Create or change the event of an accepted proposal, and return its ID."""
    values = storage.decode_values(row)
    refuse(find_refused(row["origin"], values))
    if "values" in context.values:
        values = dict(context.values["values"])
        refuse(sorted(values.keys() - {field.name for field in EVENTS.fields}))
    await _add_picture(context, row, values)
    if row["record_id"] is None:
        author = row["user_id"] or context.actor.user_id
        arguments = {"status": "publish", "author": author, **read_params(EVENTS.fields, values)}
        created = await create_record(EVENTS, _for_event(context, arguments))
        event_id: int = created.body["id"]
        return event_id
    there = _for_event(context, {}, row["record_id"])
    await fetch_active_row(EVENTS, there)
    arguments = read_params(EVENTS.fields, await _resolve_conflicts(context, there, row, values), update=True)
    await update_record(EVENTS, replace(there, values=arguments))
    changed_id: int = row["record_id"]
    return changed_id


def _for_event(
    context: OperationContext, values: Mapping[str, Any], record_id: int | None = None
) -> OperationContext:
    return replace(context, values=values, record_id=record_id, slug=None, if_match=None)


async def _resolve_conflicts(
    context: OperationContext, there: OperationContext, row: Row, values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the parameters to write. Raise 409 unless the editor has chosen a value for each conflicting field.

    A choice counts only for the revision that the editor saw.
    """
    choices, revision = context.values.get("choices", {}), context.values.get("revision")
    if choices and revision is None:
        raise errors.missing_params(["revision"])
    base_revision: int = (revision if "values" in context.values else None) or row["base_revision"]
    result = await merge(EVENTS, there, base_revision, values)
    unsettled = [conflict for conflict in result.conflicts if conflict.name not in choices]
    if unsettled or (choices and revision != result.revision):
        names = {"base": "base", "record": "theirs", "proposal": "mine"}
        described = {
            conflict.name: {side: getattr(conflict, name) for side, name in names.items()}
            for conflict in result.conflicts
        }
        raise errors.proposal_conflict(described, result.revision)
    chosen = [result.own_params[entry.name] for entry in result.conflicts if choices[entry.name] == "proposal"]
    return {**result.values, **{name: value for own in chosen for name, value in own.items()}}


async def compare_with_record(context: OperationContext, row: Row) -> Merge:
    """Merge a proposed change into the event as it is now, without writing anything."""
    there = _for_event(context, {}, row["record_id"])
    return await merge(EVENTS, there, row["base_revision"], storage.decode_values(row))


async def _add_picture(context: OperationContext, row: Row, values: dict[str, Any]) -> None:
    """Add the picture of the proposal to the media library, unless the editor has chosen another one."""
    alt_text = await storage.find_alt_text(context.transaction, row["id"])
    if alt_text is None or "image" in values:
        return
    stored = context.stored_pictures.get(row["id"])
    if stored is None or context.library is None:
        raise errors.unavailable()
    values["image"] = await add_image(
        context.transaction,
        context.library,
        stored,
        user_id=context.actor.user_id,
        arguments={"title": str(values.get("title", "")), "alt_text": alt_text},
    )


_STATUSES: Final[Mapping[str, str]] = {"accept": "publish", "return": "draft"}


async def _decide_event(context: OperationContext, event_id: int, action: str) -> None:
    """Publish a pending event, make it a draft, or move it to the trash; all dates of a series that is pending."""
    event = await fetch_active_row(EVENTS, _for_event(context, {}, event_id))
    if event["status"] != "pending":
        raise errors.proposal_decided(event["status"])
    is_pending_series = event["series_id"] is not None and orjson.loads(event["series_facts"])["status"] == "pending"
    scope = ALL if is_pending_series else THIS
    if action == "reject":
        await delete_event(EVENTS, _for_event(context, {"scope": scope}, event_id))
    else:
        await edit_event(EVENTS, _for_event(context, {"scope": scope, "status": _STATUSES[action]}, event_id))


# Undo ----------------------------------------------------------------------------------------------


async def undo_decision(kind: Kind, context: OperationContext) -> Outcome:
    """Let a decided proposal wait again; a new event goes to the trash, a changed one gets its former values back."""
    row, tx = await _fetch_for(context, "undo"), context.transaction
    if tx.now > row["decided_at"] + KEPT_PERIOD:
        raise errors.proposal_final(Message("it is more than {days} days old.", days=KEPT_PERIOD.days))
    if row["record_id"] is not None and storage.decode_values(row):
        other = await storage.find_open_change(tx, row["record_id"], row["user_id"], row["submitter_id"])
        if other is not None and other["id"] != row["id"]:
            raise errors.proposal_final(Message("the sender has proposed another change of this event since."))
    is_new = row["state"] == "accepted" and row["base_revision"] is None
    if row["first_revision"] is not None:
        await _undo_write(context, row, is_new=is_new)
    waiting: State = TRANSITIONS["undo"][1]
    columns: storage.Columns = {
        "state": waiting,
        "record_id": None if is_new else row["record_id"],
        **dict.fromkeys(("decided_by", "decided_at", "reason", "first_revision", "last_revision")),
        "comment": "",
    }
    undone = await storage.change_proposal(tx, row["id"], columns)
    await storage.postpone(tx, row["id"], plan_ageing(undone, await find_end(tx, undone), tx.now).due_at)
    return build_written_outcome(undone)


async def _undo_write(context: OperationContext, row: Row, *, is_new: bool) -> None:
    tx, record_id = context.transaction, row["record_id"]
    event = await EVENTS.fetch(tx, record_id)
    if event is None:
        raise errors.proposal_final(Message("the event has been deleted."))
    if any(edit["user_id"] is not None for edit in await list_edits(tx, EVENTS, record_id, row["last_revision"])):
        raise errors.proposal_final(Message("someone has changed the event since."))
    if is_new:
        if event["status"] != "trash":
            await delete_record(EVENTS, _for_event(context, {}, record_id))
        return
    former = {"revision": row["first_revision"]}
    if not storage.decode_values(row) and await _has_decided_series(tx, event["series_id"], row):
        await restore_series(SERIES, _for_event(context, former, event["series_id"]))
    else:
        await restore_record(EVENTS, _for_event(context, former, record_id))


async def _has_decided_series(tx: Transaction, series_id: int | None, row: Row) -> bool:
    """Return whether a decision on a pending date has set the status of its whole series."""
    edits = await list_edits(tx, SERIES, series_id, row["first_revision"]) if series_id is not None else []
    return any(edit["revision"] <= row["last_revision"] and "status" in (edit["before"] or "") for edit in edits)

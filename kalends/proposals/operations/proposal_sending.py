"""Send, change and withdraw proposals. Nothing here writes an event, takes an ID or raises a revision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, LiteralString

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.access.permissions import CONTRIBUTOR
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.operations.record_verbs import fetch_readable_row
from kalends.core import credentials, errors
from kalends.core.messages import Message
from kalends.proposals import storage
from kalends.proposals.operations.proposal_lists import build_written_outcome, fetch_proposal
from kalends.proposals.operations.proposal_values import check_values
from kalends.proposals.rules import KEPT_PERIOD, MAX_OPEN, TRANSITIONS, Origin, State, plan_ageing
from kalends.store import Row


@dataclass(frozen=True, slots=True)
class Draft:
    """What a sender hands in. A change names the event and the revision that the values were read from."""

    values: Mapping[str, Any]
    origin: Origin
    record_id: int | None = None
    base_revision: int | None = None
    guessed: Sequence[str] = ()
    source: str = ""
    note: str = ""
    program: str = ""
    submitter_id: str | None = None
    submitter_name: str = ""
    state: State = "waiting"  # or unconfirmed


async def send(context: OperationContext, draft: Draft) -> Row:
    """Store a proposal and return its row. A second change of an event by the same sender replaces the first.

    Raise 400 for parameters that the origin may not send or that break a rule, 403 or 404 if the sender may not read
    the event, 413 above 64 kB, 429 with 200 open proposals.
    """
    tx, user_id = context.transaction, context.actor.user_id
    if draft.origin != "public":
        permissions.require_role(context.actor, CONTRIBUTOR)
    if draft.record_id is not None and draft.state == "waiting":
        earlier = await storage.find_open_change(tx, draft.record_id, user_id, draft.submitter_id)
        if earlier is not None:
            return await resend(context, earlier, draft)
    columns = await _build_columns(context, draft)
    if user_id is not None:
        if await storage.count_open(tx, user_id) >= MAX_OPEN:
            raise errors.too_many_proposals(MAX_OPEN)
        await permissions.count_new_record(context)
    sender: storage.Columns = {"user_id": user_id, "submitter_id": draft.submitter_id, "origin": draft.origin}
    fixed: storage.Columns = {"id": credentials.new_uid(), "record_id": draft.record_id, "created_at": tx.now}
    return await storage.add_proposal(tx, {**fixed, **sender, **columns})


async def resend(context: OperationContext, row: Row, draft: Draft) -> Row:
    """Replace the content of an open proposal, which waits again, and return its row.

    The origin and the event stay. Raise 409 if the proposal has been decided, otherwise errors like `send`.
    """
    require_open(row)
    draft = replace(draft, origin=row["origin"], record_id=row["record_id"], state=TRANSITIONS["send"][1])
    return await storage.change_proposal(context.transaction, row["id"], await _build_columns(context, draft))


async def withdraw(context: OperationContext, row: Row) -> Row:
    """Withdraw an open proposal and return its row. Raise 409 if it has been decided."""
    require_open(row)
    tx = context.transaction
    columns: storage.Columns = {"state": TRANSITIONS["withdraw"][1], "expires_at": tx.now + KEPT_PERIOD}
    return await storage.change_proposal(tx, row["id"], columns)


def require_open(row: Row) -> None:
    """Raise 409 unless the sender may still change a proposal. Pending events are changed directly."""
    if row["state"] not in TRANSITIONS["send"][0] or not storage.decode_values(row):
        raise errors.proposal_decided(row["state"])


async def _build_columns(context: OperationContext, draft: Draft) -> dict[LiteralString, object]:
    event = await _fetch_event(context, draft) if draft.record_id is not None else None
    checked = await check_values(context, draft.origin, draft.values, event)
    if unknown := [name for name in draft.guessed if name not in checked.values]:
        raise errors.invalid("guessed", "must name parameters in `values`, not {names}.", names=", ".join(unknown))
    now = context.transaction.now
    facts = {"state": draft.state, "decided_at": None, "created_at": now}
    return {
        "values": storage.encode_values(checked.values),
        "base_revision": draft.base_revision,
        "submitter_name": draft.submitter_name,
        "note": draft.note,
        "guessed": list(draft.guessed),
        "source": draft.source,
        "program": draft.program,
        "state": draft.state,
        "starts_at": checked.starts_at,
        "expires_at": plan_ageing(facts, checked.ends_at, now).due_at,
    }


async def _fetch_event(context: OperationContext, draft: Draft) -> Row:
    """Fetch the event to change. Raise ApiError if the sender may not read it, or for an unusable revision."""
    if draft.base_revision is None:
        raise errors.missing_params(["base_revision"])
    if draft.base_revision > context.transaction.site.revision:
        raise errors.invalid("base_revision", "is newer than the latest revision.")
    reading = replace(context, record_id=draft.record_id, slug=None, values={}, if_match=None)
    return await fetch_readable_row(EVENTS, reading)


# The requests of the API ---------------------------------------------------------------------------


async def create_proposal(kind: Kind, context: OperationContext) -> Outcome:
    """Store a proposal from `record`, `base_revision`, `values`, `guessed`, `source` and `note`."""
    row = await send(context, _read_draft(context, context.values))
    return replace(build_written_outcome(row), status=201, location=f"{context.extension_url}/proposals/{row['id']}")


async def update_proposal(kind: Kind, context: OperationContext) -> Outcome:
    """Change a proposal. Omitted parameters keep their values; `values` are replaced as a whole."""
    row = await _fetch_own(context)
    stored = {name: row[name] for name in ("base_revision", "guessed", "source", "note")}
    values = {"values": storage.decode_values(row), **stored, **context.values}
    if "values" in context.values and "guessed" not in context.values:
        values["guessed"] = [name for name in row["guessed"] if name in context.values["values"]]
    return build_written_outcome(await resend(context, row, _read_draft(context, values)))


async def withdraw_proposal(kind: Kind, context: OperationContext) -> Outcome:
    return build_written_outcome(await withdraw(context, await _fetch_own(context)))


def _read_draft(context: OperationContext, values: Mapping[str, Any]) -> Draft:
    return Draft(
        values=values["values"],
        origin="api",
        record_id=values.get("record"),
        base_revision=values.get("base_revision"),
        guessed=values.get("guessed", ()),
        source=values.get("source", ""),
        note=values.get("note", ""),
        program=context.actor.program,
    )


async def _fetch_own(context: OperationContext) -> Row:
    """Fetch the proposal in the path. Raise 403 unless the caller has sent it, and 412 if it has changed."""
    row = await fetch_proposal(context, context.slug or "", locked=True)
    if row["user_id"] is None or row["user_id"] != context.actor.user_id:
        raise permissions.permission_error(context.actor, Message("only the sender can change or withdraw it."))
    if context.if_match is not None and row["version"] not in context.if_match:
        raise errors.precondition_failed()
    return row

"""Read proposals: lists and single ones, for editors and senders."""

from datetime import UTC, datetime
from typing import Final, LiteralString

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.access.permissions import EDITOR, SUBSCRIBER
from kalends.calendar.kinds.kind import JsonObject, Kind
from kalends.core import errors, times
from kalends.core.credentials import is_uuid
from kalends.core.errors import InvalidValue
from kalends.proposals import storage
from kalends.proposals.rules import REASONS
from kalends.store import Row

MAX_PROPOSALS: Final = 100  # per page


async def list_proposals(kind: Kind | None, context: OperationContext) -> Outcome:
    """Return a page of proposals by start: all for editors, otherwise the caller's own."""
    permissions.require_role(context.actor, SUBSCRIBER)
    values = context.values
    filters: dict[LiteralString, object] = {}
    for param, column in _FILTERS.items():
        if param in values:
            filters[column] = values[param]
    if not _is_editor(context):
        filters["user_id"] = context.actor.user_id
    limit: int = values.get("per_page", 20)
    rows = await storage.list_proposals(context.transaction, filters, values.get("cursor"), limit + 1)
    page = rows[:limit]
    next_cursor = (
        f"{page[-1]['starts_at'].replace(tzinfo=None).isoformat()}~{page[-1]['id']}" if len(rows) > limit else None
    )
    return Outcome({"proposals": [serialize_proposal(row) for row in page], "next_cursor": next_cursor})


_FILTERS: Final[dict[str, LiteralString]] = {"state": "state", "origin": "origin", "record": "record_id"}


async def read_proposal(kind: Kind | None, context: OperationContext) -> Outcome:
    row = await fetch_proposal(context, context.slug or "")
    return Outcome(serialize_proposal(row), revision=row["version"])


async def fetch_proposal(context: OperationContext, proposal_id: str, *, locked: bool = False) -> Row:
    """Return a confirmed proposal. Raise 404 unless the caller has sent it or is an editor."""
    permissions.require_role(context.actor, SUBSCRIBER)
    row = await storage.find_proposal(context.transaction, proposal_id, locked=locked)
    is_visible = row is not None and (_is_editor(context) or row["user_id"] == context.actor.user_id)
    if row is None or not is_visible or row["state"] == "unconfirmed":
        raise errors.proposal_not_found()
    return row


def _is_editor(context: OperationContext) -> bool:
    return permissions.rank(context.actor) >= EDITOR


def serialize_proposal(row: Row) -> JsonObject:
    return {
        **_serialize_state(row),
        "origin": row["origin"],
        "base_revision": row["base_revision"],
        "values": storage.decode_values(row),
        "guessed": row["guessed"],
        "source": row["source"],
        "note": row["note"],
        "sender": {"user": row["user_id"], "name": row["submitter_name"], "program": row["program"]},
        "created_utc": times.format_datetime(row["created_at"]),
        "decision": _serialize_decision(row),
    }


def build_written_outcome(row: Row) -> Outcome:
    """Return a proposal after a write, without what people have entered: responses to repeated writes are stored."""
    return Outcome(_serialize_state(row), revision=row["version"])


def _serialize_state(row: Row) -> JsonObject:
    return {
        **{name: row[name] for name in ("id", "version", "state")},
        "record": row["record_id"],
        "start_utc": times.format_datetime(row["starts_at"]),
        "first_revision": row["first_revision"],
        "last_revision": row["last_revision"],
    }


def _serialize_decision(row: Row) -> JsonObject | None:
    """Return the last decision, which a returned proposal keeps while it waits again."""
    decided_at: datetime | None = row["decided_at"]
    if decided_at is None:
        return None
    return {
        "user": row["decided_by"],
        "date_utc": times.format_datetime(decided_at),
        "reason": REASONS[row["reason"] - 1] if row["reason"] is not None else None,
        "comment": row["comment"],
    }


def read_cursor(value: object) -> tuple[datetime, str]:
    """Parse the start and the ID of the last proposal on the previous page."""
    start, _, proposal_id = str(value).partition("~")
    try:
        moment = datetime.fromisoformat(start)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is not None or not is_uuid(proposal_id):
        raise InvalidValue("must be a `next_cursor` from a response.")
    return moment.replace(tzinfo=UTC), proposal_id

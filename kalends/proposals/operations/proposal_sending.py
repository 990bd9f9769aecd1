"""Send, change and withdraw proposals. Nothing here writes an event, takes an ID or raises a revision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.kinds.kind import Kind
from kalends.proposals.rules import Origin, State
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
    the event, 410 if it is in the trash, 413 above 64 kB, 429 with 200 open proposals.
    """
    raise NotImplementedError


async def resend(context: OperationContext, row: Row, draft: Draft) -> Row:
    """Replace the content of an open proposal, which waits again, and return its row. The origin stays.

    Raise 409 if it has been decided; otherwise like `send`.
    """
    raise NotImplementedError


async def withdraw(context: OperationContext, row: Row) -> Row:
    """Withdraw an open proposal and return its row. Raise 409 if it has been decided."""
    raise NotImplementedError


async def create_proposal(kind: Kind, context: OperationContext) -> Outcome:
    """POST /proposals: `record`, `base_revision`, `values`, `guessed`, `source` and `note`."""
    raise NotImplementedError


async def update_proposal(kind: Kind, context: OperationContext) -> Outcome:
    """PATCH /proposals/{id}: omitted parameters keep their values; `values` are replaced as a whole."""
    raise NotImplementedError


async def withdraw_proposal(kind: Kind, context: OperationContext) -> Outcome:
    """POST /proposals/{id}/withdraw."""
    raise NotImplementedError

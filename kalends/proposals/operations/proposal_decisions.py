"""Accept, return and reject proposals and pending events, and undo these decisions, each in one transaction.

The operations take the proposal's ID as `context.slug`, and the version that the editor saw as `context.if_match`.
"""

from typing import Final

from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.operations.merging import Merge
from kalends.core.params import Param
from kalends.store import Row

ACCEPT_PARAMS: Final[tuple[Param, ...]] = ()
RETURN_PARAMS: Final[tuple[Param, ...]] = ()
REJECT_PARAMS: Final[tuple[Param, ...]] = ()


async def accept_proposal(kind: Kind, context: OperationContext) -> Outcome:
    """Create or change the event as the editor, and return the proposal."""
    raise NotImplementedError


async def return_proposal(kind: Kind, context: OperationContext) -> Outcome:
    """Send a proposal back to its sender, with a comment."""
    raise NotImplementedError


async def reject_proposal(kind: Kind, context: OperationContext) -> Outcome:
    """Reject a proposal for a reason, with an optional comment."""
    raise NotImplementedError


async def undo_decision(kind: Kind, context: OperationContext) -> Outcome:
    """Let a decided proposal wait again; a new event goes to the trash, a changed one gets its former values back."""
    raise NotImplementedError


async def decide_pending(kind: Kind, context: OperationContext) -> Outcome:
    """Decide on an event with the status pending, given by `context.record_id` and, as `if_match`, its revision."""
    raise NotImplementedError


async def compare_with_record(context: OperationContext, row: Row) -> Merge:
    """Merge a proposed change into the event as it is now, without writing anything."""
    raise NotImplementedError

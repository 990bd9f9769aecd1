"""Running a bulk change as a batch of the API: one transaction, each event with its precondition."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kalends.api import batch
from kalends.api.catalog import Interface
from kalends.api.routes import EXTENSION, INTERFACE
from kalends.core.messages import Message
from kalends.core.params import read_params
from kalends.operations.bulk_changes import SelectedEvent, Target, find_changed, read_selected
from kalends.operations.context import OperationContext

# Makes the body of the write of an event. An event that the user may not read has none; its write is refused.
MakeBody = Callable[[SelectedEvent], Mapping[str, Any]]
# The writes of the API, and restoring, which is one of its extensions.
PARAMS: Final = batch.make_params(Interface("", (*INTERFACE.routes, *EXTENSION.routes)))


@dataclass(frozen=True, slots=True)
class Write:
    """The request of the API for each event: its method, what follows the ID in its path, and its body."""

    make_body: MakeBody
    method: str = "PATCH"
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """The response for one event. The title is empty if the user may not read it."""

    id: int
    title: str
    status: int
    message: str | Message

    @property
    def is_done(self) -> bool:
        return self.status < 400


@dataclass(frozen=True, slots=True)
class BulkOutcome:
    """The results, and the revisions of the site before and after the change."""

    results: tuple[ChangeResult, ...]
    first: int
    last: int

    @property
    def failures(self) -> list[ChangeResult]:
        return [result for result in self.results if not result.is_done]


async def run_changes(context: OperationContext, targets: Sequence[Target], write: Write) -> BulkOutcome:
    """Change each event, if it still has its revision. An error undoes only the change of its own event."""
    tx = context.transaction
    await tx.lock_site(context.actor.user_id)
    first = tx.changes.revision
    if not targets:
        return BulkOutcome((), first, first)
    events = await read_selected(context, targets)
    operations = [_make_operation(target, events.get(target.id), write) for target in targets]
    values = read_params(PARAMS, {"operations": operations, "atomic": False})
    responses = (await batch.run_batch(None, replace(context, values=values))).body["results"]
    results = [
        _read_response(target, events.get(target.id), response)
        for target, response in zip(targets, responses, strict=True)
    ]
    return BulkOutcome(tuple(results), first, tx.changes.revision)


def _make_operation(target: Target, event: SelectedEvent | None, write: Write) -> dict[str, Any]:
    return {
        "method": write.method,
        "path": f"/events/{target.id}{write.suffix}",
        "body": dict(write.make_body(event)) if event else {},
        "if_match": target.revision,
    }


def _read_response(target: Target, event: SelectedEvent | None, response: Mapping[str, Any]) -> ChangeResult:
    message = response["body"]["message"] if response["status"] >= 400 else ""
    return ChangeResult(target.id, event.title if event else "", response["status"], message)


async def undo_changes(context: OperationContext, first: int, last: int) -> BulkOutcome:
    """Restore the events of a bulk change to the revision before it. Events that were changed since stay."""
    targets = await find_changed(context, first, last)
    return await run_changes(context, targets, Write(lambda _: {"revision": first}, "POST", "/restore"))

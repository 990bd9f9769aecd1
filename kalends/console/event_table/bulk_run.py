"""Running a bulk change as batches of the API, each event with its precondition.

Up to `MAX_PORTION` events are one batch and one transaction. More of them are changed in portions, because a
transaction locks the site and has a time limit.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import batched
from typing import Any, Final

from kalends.api import batch
from kalends.api.catalog import Interface
from kalends.api.routes import EXTENSION, INTERFACE
from kalends.console.request import ConsoleRequest
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.core.params import read_params
from kalends.operations.bulk_changes import SelectedEvent, Target, find_changed, read_selected
from kalends.operations.context import OperationContext

MAX_PORTION: Final = 200
# Makes the body of the write of an event. An event that the user may not read has none; its write is refused.
MakeBody = Callable[[SelectedEvent], Mapping[str, Any]]
MakeWrite = Callable[[OperationContext], Awaitable["Write"]]
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


async def run_portions(
    console_request: ConsoleRequest, targets: Sequence[Target], make_write: MakeWrite
) -> BulkOutcome:
    """Change the events in portions. An error is raised if it is in the first portion, else reported."""
    outcomes: list[BulkOutcome] = []
    for portion in batched(targets, MAX_PORTION):
        try:
            async with console_request.write() as tx:
                context = console_request.make_context(tx)
                outcomes.append(await run_changes(context, portion, await make_write(context)))
        except ApiError as error:
            if not outcomes:
                raise
            outcomes.append(_fail(portion, error, outcomes[-1].last))
    return _join(outcomes)


def _fail(targets: Sequence[Target], error: ApiError, revision: int) -> BulkOutcome:
    results = [ChangeResult(target.id, "", error.status, error.message) for target in targets]
    return BulkOutcome(tuple(results), revision, revision)


def _join(outcomes: Sequence[BulkOutcome]) -> BulkOutcome:
    """Return the outcome of all portions. Between them others may have changed the site."""
    results = tuple(result for outcome in outcomes for result in outcome.results)
    return BulkOutcome(results, outcomes[0].first, outcomes[-1].last) if outcomes else BulkOutcome((), 0, 0)


async def run_changes(context: OperationContext, targets: Sequence[Target], write: Write) -> BulkOutcome:
    """Change each event, if it still has its revision. An error undoes only the change of its own event."""
    tx = context.transaction
    await tx.lock_site(context.actor.user_id)
    first = tx.changes.revision
    events = await read_selected(context, targets)
    operations = [_make_operation(target, events.get(target.id), write) for target in targets]
    values = read_params(PARAMS, {"operations": operations, "atomic": False})
    outcome = await batch.run_batch(None, replace(context, values=values, returns_record=False))
    responses = outcome.body["results"]
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


async def undo_changes(console_request: ConsoleRequest, first: int, last: int) -> BulkOutcome:
    """Restore the events of a bulk change to the revision before it. Events that were changed since stay."""
    async with console_request.transaction() as tx:
        targets = await find_changed(console_request.make_context(tx), first, last)

    async def make_write(_: OperationContext) -> Write:
        return Write(lambda _: {"revision": first}, "POST", "/restore")

    return await run_portions(console_request, targets, make_write)

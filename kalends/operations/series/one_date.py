"""Edits of one event through the routes of series, which also accept a dry run and times without a date."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, time

from kalends.core import errors
from kalends.core.times import DateTimeInput
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Kind
from kalends.operations.context import OperationContext, Outcome
from kalends.operations.records import delete_record, fetch_editable_row, update_record


async def edit_one(kind: Kind, context: OperationContext) -> Outcome:
    """Edit the event in the path alone."""
    _reject_rule(context)
    single = await _place_times(kind, _without_options(context))
    return await _run_single(context, lambda: update_record(kind, single))


async def delete_one(kind: Kind, context: OperationContext) -> Outcome:
    """Move the event in the path alone to the trash."""
    return await _run_single(context, lambda: delete_record(kind, _without_options(context)))


def _reject_rule(context: OperationContext) -> None:
    if "rule" in context.values:
        raise errors.invalid("rule", "applies to a series. Use `scope=following` or `scope=all`.")


def _without_options(context: OperationContext) -> OperationContext:
    """Return the context of the same write to one event, without the options of scopes."""
    names = {param.name for param in EVENTS.fields} | {"password"}
    return replace(context, values={name: value for name, value in context.values.items() if name in names})


async def _place_times(kind: Kind, context: OperationContext) -> OperationContext:
    """Return the context of a write to one event whose times without a date are on the days of the event."""
    columns = {"start_date": "start_local", "end_date": "end_local"}
    alone = {name: context.values[name] for name in columns if isinstance(context.values.get(name), time)}
    if not alone:
        return context
    row = await fetch_editable_row(kind, context)
    placed = {
        name: DateTimeInput(datetime.combine(row[columns[name]].date(), value), None, False)
        for name, value in alone.items()
    }
    return replace(context, values={**context.values, **placed})


async def _run_single(context: OperationContext, write: Callable[[], Awaitable[Outcome]]) -> Outcome:
    """Run a write to one event; undo it if the request asks for a dry run."""
    if not context.values.get("dry_run", False):
        return await write()
    async with context.transaction.rolled_back():
        outcome = await write()
    return Outcome(outcome.body)

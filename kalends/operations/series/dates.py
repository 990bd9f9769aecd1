"""Adding dates to a series, and leaving out others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from kalends.core import errors, times
from kalends.core.messages import Message
from kalends.core.series import Definition, change_dates, date_at, is_given
from kalends.kinds.kind import Kind
from kalends.kinds.series import SERIES
from kalends.operations.context import OperationContext, Outcome
from kalends.operations.records import fetch_editable_row
from kalends.operations.series.create import check_number_of_dates
from kalends.operations.series.edit import Edit, Target, keep_until, run_edit, write_edit
from kalends.operations.series.matching import Match, Occurrences, load_occurrences
from kalends.operations.series.requests import read_slots_of
from kalends.operations.series.writing import Summary, check_number
from kalends.store import Row
from kalends.store.series import decode_definition


@dataclass(frozen=True, slots=True)
class DateRequest:
    """The dates that a request adds and removes, and the definition that results."""

    add: Sequence[datetime]
    remove: Sequence[datetime]
    ignored: Sequence[datetime]
    definition: Definition


async def edit_dates(kind: Kind, context: OperationContext) -> Outcome:
    """Add dates to the series in the path, and leave out others."""
    series = await fetch_editable_row(kind, context)
    if series["status"] == "trash":
        raise errors.in_trash(SERIES.singular)
    request = _read_request(context, decode_definition(series))
    outcome = await run_edit(context, Target(series, None, "dates"), lambda: _change_dates(context, series, request))
    return replace(outcome, body={**outcome.body, "warnings": [_describe_ignored(slot) for slot in request.ignored]})


def _read_request(context: OperationContext, definition: Definition) -> DateRequest:
    values, now = context.values, context.transaction.now
    if not {"add", "remove"} & set(values):
        raise errors.missing_params(["add"])
    add = read_slots_of("add", values.get("add", ()), definition, now)
    remove = read_slots_of("remove", values.get("remove", ()), definition, now)
    for slot in remove:
        if slot in add:
            raise errors.invalid("remove", "{date} is in `add` as well.", date=times.format_datetime(slot))
        if not is_given(definition, slot) and slot not in definition.added:
            raise errors.invalid("remove", "{date} is not a date of this series.", date=times.format_datetime(slot))
    ignored = [slot for slot in add if _is_date(definition, slot)]
    changed = change_dates(definition, add, remove)
    check_number_of_dates(changed, "add", "remove")
    check_number(len(add) + len(remove), "remove")
    return DateRequest([slot for slot in dict.fromkeys(add) if slot not in ignored], remove, ignored, changed)


def _is_date(definition: Definition, slot: datetime) -> bool:
    is_listed = slot in definition.added or is_given(definition, slot)
    return is_listed and slot not in definition.removed


def _describe_ignored(slot: datetime) -> Message:
    return Message("{date} is already a date of this rule and was ignored.", date=times.format_datetime(slot))


async def _change_dates(context: OperationContext, series: Row, request: DateRequest) -> Summary:
    tx = context.transaction
    occurrences = await load_occurrences(tx, series["id"])
    until = keep_until(series, tx.now)
    removed = [Match(occurrences.active[slot], None) for slot in request.remove if slot in occurrences.active]
    matches = [*removed, *_match_added(request, occurrences, until)]
    edit = Edit(series, request.definition, matches, occurrences, frozenset(), {}, until)
    return await write_edit(context, edit, replaces_own=True)


def _match_added(request: DateRequest, occurrences: Occurrences, until: datetime) -> list[Match]:
    """Match added dates with new events. Dates of a rule beyond the horizon are created later."""
    dates = [date_at(request.definition, slot) for slot in request.add if slot not in occurrences.active]
    return [
        Match(None, date) for date in dates if date.slot in request.definition.added or date.span().start.utc < until
    ]

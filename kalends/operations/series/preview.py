"""The dates of a rule before a series is created."""

from dataclasses import replace
from datetime import datetime
from heapq import merge
from itertools import groupby, islice
from typing import Any, Final

from kalends.core import times
from kalends.core.messages import Message
from kalends.core.recurrence import find_warnings, serialize_rule
from kalends.core.recurrence.sentences import find_text
from kalends.core.series import Date, Definition, Part
from kalends.kinds.kind import Kind
from kalends.operations import permissions
from kalends.operations.context import OperationContext, Outcome
from kalends.operations.series.create import read_dates, read_part
from kalends.operations.series.requests import read_slots

SHOWN_DATES: Final = 50
MAX_COUNTED: Final = 2000
# A preview computes dates in this many years after the start, so that its cost is bounded.
PREVIEWED_YEARS: Final = 100


async def preview_series(kind: Kind, context: OperationContext) -> Outcome:
    """Return the first dates of a rule, and how many there are."""
    permissions.require_writer(context.actor, kind)
    values = {"end_date": context.values["start_date"], **context.values}
    context = replace(context, values=values)
    part = read_part(context, 0)
    definition = read_dates(context, Definition((part,), {}))
    limit = _find_limit(part)
    # The dates of an endless rule are not counted.
    slots = list(islice(_list_slots(definition, limit), SHOWN_DATES if _is_endless(part) else MAX_COUNTED + 1))
    is_complete = len(slots) <= MAX_COUNTED and _ends_before(part, limit)
    body = {
        "rule": serialize_rule(part.rule) if part.rule is not None else None,
        "text": find_text(part.rule, part.start.date()) if part.rule is not None else None,
        "dates": [_serialize_date(Date(slot, part)) for slot in slots[:SHOWN_DATES]],
        "last": times.format_datetime(slots[-1]) if slots and is_complete else None,
        "count": len(slots) if is_complete else None,
        "warnings": [*_find_rule_warnings(part), *_find_ignored_dates(context, definition)],
    }
    return Outcome(body)


def _find_limit(part: Part) -> datetime:
    year = min(part.start.year + PREVIEWED_YEARS, times.LAST_YEAR)
    return part.start.replace(year=year, month=12, day=31)


def _list_slots(definition: Definition, limit: datetime) -> Any:
    """Yield the slots in order, each once, without those that are left out."""
    removed = frozenset(definition.removed)
    merged = merge(definition.parts[0].slots(limit), sorted(definition.added))
    return (slot for slot, _ in groupby(merged) if slot not in removed)


def _is_endless(part: Part) -> bool:
    return part.rule is not None and part.rule.count is None and part.rule.until is None


def _ends_before(part: Part, limit: datetime) -> bool:
    """Return whether all dates of a part are before a time."""
    rule = part.rule
    if rule is None:
        return True
    if rule.count is not None:
        return sum(1 for _ in part.slots(limit)) == rule.count
    return rule.until is not None and rule.until <= limit.date()


def _serialize_date(date: Date) -> dict[str, str]:
    span = date.span()
    return {
        "start_date": times.format_datetime(span.start.wall),
        "end_date": times.format_datetime(span.end.wall),
    }


def _find_rule_warnings(part: Part) -> list[Message]:
    return find_warnings(part.rule, part.start) if part.rule is not None else []


def _find_ignored_dates(context: OperationContext, definition: Definition) -> list[Message]:
    """Return a warning for each added date that the rule gives as well."""
    first = Date(definition.parts[0].start, definition.parts[0])
    slots = read_slots("add_dates", context.values.get("add_dates", ()), first, context.transaction.now)
    return [
        Message("{date} is already a date of this rule and was ignored.", date=times.format_datetime(slot))
        for slot in slots
        if slot not in definition.added
    ]

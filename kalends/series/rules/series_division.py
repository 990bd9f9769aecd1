"""Splitting one series and joining two, as pure functions."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from itertools import islice

from kalends.core.recurrence import Rule
from kalends.series.rules.series_slots import (
    LAST_SLOT,
    ContentChange,
    Definition,
    Part,
    begin_part,
    content_at,
    end_series,
    make_single_part,
)

# Number of dates to compare when checking whether one rule can replace two.
COMPARED_DATES = 1100


def split_definition(definition: Definition, slot: datetime, uid: str) -> tuple[Definition, Definition] | None:
    """Split a definition at a slot; return None if either part would have no dates."""
    head = end_series(definition, slot)
    if head is None:
        return None
    divided, index = begin_part(definition, slot)
    added = tuple(entry for entry in definition.added if entry >= slot)
    parts = divided.parts[index:] or make_single_part(definition, added)
    if not parts:
        return None
    tail = Definition(
        (replace(parts[0], uid=uid), *parts[1:]),
        content_at(definition, slot),
        tuple(change for change in definition.content_changes if change.since > slot),
        added,
        tuple(entry for entry in definition.removed if entry >= slot),
    )
    return head, tail


def is_before(first: Definition, second: Definition) -> bool:
    """Return whether `first`, including its skipped dates, ends before `second` begins."""
    begin = _find_first_slot(second)
    if any(slot >= begin for slot in first.added):
        return False
    return not any(next(part.slots(LAST_SLOT, begin), None) for part in first.parts)


def _find_first_slot(definition: Definition) -> datetime:
    return min([definition.parts[0].start, *definition.added])


def join_definitions(first: Definition, second: Definition) -> Definition:
    """Return one series with the dates of both.

    Drop each series' skipped dates and content changes within the other's period, because they are left over from
    former rules.
    """
    begin = _find_first_slot(second)
    earlier = tuple(change for change in first.content_changes if change.since < begin)
    content = content_at(replace(first, content_changes=earlier), begin)
    different = {name: value for name, value in content_at(second, begin).items() if content.get(name) != value}
    change = (ContentChange(begin, different),) if different else ()
    removed = [slot for slot in first.removed if slot < begin] + [slot for slot in second.removed if slot >= begin]
    added = {*first.added, *second.added}
    return Definition(
        _join_parts(first.parts, second.parts, added),
        first.template,
        (*earlier, *change, *[change for change in second.content_changes if change.since > begin]),
        tuple(sorted(added)),
        tuple(sorted(removed)),
    )


def _join_parts(first: tuple[Part, ...], second: tuple[Part, ...], added: Collection[datetime]) -> tuple[Part, ...]:
    """Join two lists of parts, merging the adjoining parts if one rule can replace both."""
    head, tail = first[-1], second[0]
    if (head.length, head.timezone, head.all_day) != (tail.length, tail.timezone, tail.all_day):
        return (*first, *second)
    # An added date needs no separate part if the adjacent part has the same length, time zone and all-day flag.
    if len(first) == 1 and _is_added(head, added):
        return (replace(tail, uid=head.uid), *second[1:])
    if _is_added(tail, added):
        return (*first, *second[1:])
    joined = _join(head, tail)
    return (*first[:-1], joined, *second[1:]) if joined is not None else (*first, *second)


def _is_added(part: Part, added: Collection[datetime]) -> bool:
    return part.rule is None and part.start in added


def _join(head: Part, tail: Part) -> Part | None:
    """Return a part that produces the dates of both parts; None if no single rule does."""
    if head.rule is None or tail.rule is None or _without_end(head.rule) != _without_end(tail.rule):
        return None
    count = (head.rule.count or 0) + tail.rule.count if tail.rule.count else None
    candidate = replace(head, rule=replace(tail.rule, count=count))
    expected = [*islice(head.slots(LAST_SLOT), COMPARED_DATES), *islice(tail.slots(LAST_SLOT), COMPARED_DATES)]
    given = list(islice(candidate.slots(LAST_SLOT), len(expected) + 1))
    ends_alike = len(given) == len(expected) or len(expected) >= COMPARED_DATES
    return candidate if given[: len(expected)] == expected and ends_alike else None


def _without_end(rule: Rule) -> Rule:
    return replace(rule, count=None, until=None)

"""Writing an imported series: its definition is that of the source, and its dates follow."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, time
from typing import Any

from kalends.core.imports.fields import TIME_FIELDS
from kalends.core.series import Date, Definition, change_content, change_dates, find_given
from kalends.kinds.kind import Link
from kalends.kinds.series import CONTENT_DEFAULTS
from kalends.operations.context import OperationContext
from kalends.operations.series.create import add_series, check_number_of_dates, explain_dates, read_part
from kalends.operations.series.edit import Edit, compute_until, write_edit
from kalends.operations.series.matching import (
    Match,
    Occurrences,
    is_past,
    load_occurrences,
    match_by_rule,
    match_same,
)
from kalends.operations.series.requests import make_event_row, read_content, read_slots
from kalends.store import Row
from kalends.store.series import decode_definition

Links = Mapping[Link, list[int]]


async def add_imported_series(
    context: OperationContext, series_id: int, columns: Mapping[str, Any], links: Links
) -> None:
    """Create a series and its dates. The values of the context are its parameters."""
    content = await read_content(context, context.values, None, series_id)
    part = read_part(context, series_id)
    part = replace(part, uid=columns.get("uid", part.uid))
    template = {**CONTENT_DEFAULTS, **content.values, **_link_columns(links)}
    definition = _read_dates(context, Definition((part,), template))
    context = replace(
        context, values={**context.values, **{name: columns[name] for name in ("slug",) if name in columns}}
    )
    await add_series(context, series_id, definition, content.published_at or context.transaction.now)


async def change_imported_series(context: OperationContext, row: Row, links: Links) -> None:
    """Change the definition of a series, and the dates that have not taken place; write nothing if it is the same."""
    tx = context.transaction
    before = decode_definition(row)
    first = Date(before.parts[0].start, before.parts[0])
    content = await read_content(context, context.values, make_event_row(row, before, first), row["id"])
    after = change_content(before, {**content.values, **_link_columns(links)})
    has_times = bool(set(TIME_FIELDS) & set(context.values))
    if has_times:
        part = replace(read_part(context, row["id"]), uid=before.parts[0].uid)
        after = replace(after, parts=(part,), added=(), removed=_keep_given(part, before.removed))
    after = _read_dates(context, after)
    if after == before:
        return
    has_times = has_times or (after.added, after.removed) != (before.added, before.removed)
    occurrences = await load_occurrences(tx, row["id"])
    with explain_dates():
        until = compute_until(row, after, tx.now)
        matches = _match(occurrences, after, until, tx.now, has_times=has_times)
    # No field counts as edited, so that dates keep their own content.
    edit = Edit(row, after, matches, occurrences, frozenset(), {}, until)
    await write_edit(context, edit, replaces_own=True)


def _match(
    occurrences: Occurrences, definition: Definition, until: datetime, now: datetime, *, has_times: bool
) -> list[Match]:
    """Match the dates that have not taken place with those of the definition."""
    upcoming = [row for row in occurrences.active.values() if not is_past(row, now)]
    if not has_times:
        return match_same(upcoming, definition)
    past = {row["slot"] for row in occurrences.active.values() if is_past(row, now)}
    return match_by_rule(upcoming, definition, until, _find_first_day(upcoming), now, taken=past)


def _find_first_day(rows: Sequence[Row]) -> datetime | None:
    """Return the beginning of the day of the first upcoming date; earlier dates have taken place."""
    first = min((row["slot"] for row in rows), default=None)
    return datetime.combine(first.date(), time.min) if first is not None else None


def _read_dates(context: OperationContext, definition: Definition) -> Definition:
    """Apply `add_dates` and `remove_dates`. Calendars often leave out dates that their rule does not give."""
    values, now = context.values, context.transaction.now
    first = Date(definition.parts[0].start, definition.parts[0])
    add = read_slots("add_dates", values.get("add_dates", ()), first, now)
    remove = read_slots("remove_dates", values.get("remove_dates", ()), first, now)
    given = find_given(definition, [*remove])
    changed = change_dates(definition, add, [slot for slot in remove if slot in given or slot in definition.added])
    check_number_of_dates(changed, "add_dates", "remove_dates")
    return changed


def _keep_given(part: Any, removed: Iterable[datetime]) -> tuple[datetime, ...]:
    """Return the dates that were left out and that the rule still gives."""
    slots = list(removed)
    return tuple(sorted(find_given(Definition((part,), {}), slots)))


def _link_columns(links: Links) -> dict[str, Any]:
    return {f"{link.column}s": ids for link, ids in links.items()}

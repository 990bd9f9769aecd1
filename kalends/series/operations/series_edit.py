"""Edits all dates of a series, or one date and the following ones; performs dry runs and trashes dates."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from typing import Any, Final

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.access.permissions import count_new_record
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Kind, Values
from kalends.calendar.kinds.series_kind import SERIES, TIMES
from kalends.calendar.operations.record_verbs import (
    delete_record,
    fetch_active_row,
    fetch_editable_row,
    read_outcome,
    update_record,
)
from kalends.calendar.operations.writes import publish_with_event
from kalends.calendar.storage import record_tables
from kalends.core import errors, times
from kalends.core.recurrence import Rule
from kalends.core.times import DateTimeInput
from kalends.series import storage as series_storage
from kalends.series.consequences import change_series_status, fetch_series, write_definition, write_series
from kalends.series.operations.series_create import (
    check_number_of_changes,
    check_number_of_dates,
    describe_ignored,
    explain_dates,
    list_dates_or_raise,
)
from kalends.series.operations.series_dates import keep_earlier_times
from kalends.series.operations.series_matching import (
    Match,
    Occurrences,
    TimeChange,
    compute_horizon,
    find_first_upcoming,
    find_next,
    is_past,
    load_occurrences,
    match_events,
    match_slots,
)
from kalends.series.operations.series_requests import (
    check_times,
    make_event_row,
    naming,
    parse_rule,
    read_content,
    read_shift,
    read_slots,
    read_slots_of,
    require_dates,
)
from kalends.series.operations.series_writing import SeriesWrite, Summary, check_number, write_dates
from kalends.series.rules.series_slots import (
    Definition,
    Shift,
    change_content,
    change_dates,
    change_rule,
    check_slot,
    date_at,
    end_series,
    find_given,
    has_dates_after,
    make_year_error,
    shift,
)
from kalends.series.storage import decode_definition
from kalends.store import Row, job_queue
from kalends.store.database import Transaction
from kalends.store.sql import Sql

THIS: Final = "this"
FOLLOWING: Final = "following"
ALL: Final = "all"
# Replaces `created_until` if all of a series' events exist: no date is later than this instant.
COMPLETE: Final = datetime(times.LAST_YEAR - 1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Target:
    """The series to edit and the first affected slot; None means all dates."""

    series: Row
    since: datetime | None
    scope: str
    reference: datetime | None = None  # the slot that new times refer to; None means the first upcoming slot


@dataclass(frozen=True, slots=True)
class Edit:
    """A planned edit: the series as stored, the new definition, and each event's new date."""

    series: Row
    definition: Definition
    matches: Sequence[Match]
    occurrences: Occurrences
    until: datetime
    fields: frozenset[str] = frozenset()
    columns: Values = field(default_factory=Values)


async def edit_event(kind: Kind, context: OperationContext) -> Outcome:
    """Edit the event in the path: only this date, the following dates of its series too, or all dates."""
    scope: str = context.values.get("scope", THIS)
    if scope != THIS:
        target = await _fetch_target_of_event(kind, context, scope)
        return await run_edit(context, target, lambda: edit_series_dates(context, target))
    if "rule" in context.values:
        raise errors.invalid("rule", "applies to a series. Use `scope=following` or `scope=all`.")
    single = await _place_times(kind, _without_options(context))
    return await _run_single(context, update_record(kind, single))


async def edit_series(kind: Kind, context: OperationContext) -> Outcome:
    """Edit the series in the path: all dates, or the dates at or after `from`."""
    target = await _fetch_target(kind, context)
    return await run_edit(context, target, lambda: edit_series_dates(context, target))


async def delete_event(kind: Kind, context: OperationContext) -> Outcome:
    """Move the event in the path to the trash: only this date, the following dates too, or all upcoming dates."""
    scope: str = context.values.get("scope", THIS)
    if scope == THIS:
        return await _run_single(context, delete_record(kind, _without_options(context)))
    target = await _fetch_target_of_event(kind, context, scope)
    return await run_edit(context, target, lambda: trash_dates(context, target))


async def delete_series(kind: Kind, context: OperationContext) -> Outcome:
    """Move a series to the trash with its upcoming dates, or end it before a date."""
    target = await _fetch_target(kind, context)
    if target.series["status"] == "trash":
        raise errors.in_trash(kind.singular)
    return await run_edit(context, target, lambda: trash_dates(context, target))


# One event -----------------------------------------------------------------------------------


def _without_options(context: OperationContext) -> OperationContext:
    """Return the context for a write to one event, without the scope options."""
    names = {param.name for param in EVENTS.fields} | {"password"}
    return replace(context, values={name: value for name, value in context.values.items() if name in names})


async def _place_times(kind: Kind, context: OperationContext) -> OperationContext:
    """Return the context for a write to one event. Times without a date apply to the event's start and end days."""
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


async def _run_single(context: OperationContext, write: Awaitable[Outcome]) -> Outcome:
    """Run a write to one event; undo it if the request asks for a dry run."""
    if not context.values.get("dry_run"):
        return await write
    async with context.transaction.rolled_back():
        return Outcome((await write).body)


# The request ---------------------------------------------------------------------------------


async def _fetch_target_of_event(kind: Kind, context: OperationContext, scope: str) -> Target:
    row = await fetch_editable_row(kind, context)
    if row["series_id"] is None:
        raise errors.invalid("scope", "must be `this`: the event does not belong to a series.")
    series = await fetch_series(context.transaction, row["series_id"])
    permissions.require_edit(context.actor, SERIES, series)
    return Target(series, row["slot"] if scope == FOLLOWING else None, scope, row["slot"])


async def _fetch_target(kind: Kind, context: OperationContext) -> Target:
    series = await fetch_editable_row(kind, context)
    scope: str = context.values.get("scope", ALL)
    if scope == THIS:
        raise errors.invalid("scope", "must be `all` or `following`; `this` requires the path of an event.")
    if scope == ALL:
        return Target(series, None, scope)
    if "from" not in context.values:
        raise errors.missing_params(["from"])
    first = decode_definition(series).first_date
    (since,) = read_slots("from", [context.values["from"]], first, context.transaction.now)
    return Target(series, since, scope)


async def run_edit(context: OperationContext, target: Target, write: Callable[[], Awaitable[Summary]]) -> Outcome:
    """Run an edit and return its summary; undo it if the request asks for a dry run."""
    if context.values.get("dry_run"):
        async with context.transaction.rolled_back():
            summary = await write()
        return Outcome(_serialize_summary(target, summary, is_dry_run=True))
    summary = await write()
    outcome = await read_outcome(SERIES, context, target.series["id"])
    return replace(outcome, body={**_serialize_summary(target, summary, is_dry_run=False), "series": outcome.body})


def _serialize_summary(target: Target, summary: Summary, *, is_dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": is_dry_run,
        "scope": target.scope,
        "from": times.format_datetime(target.since) if target.since is not None else None,
        "changed": summary.changed,
        "created": summary.created,
        "trashed": summary.trashed,
        "kept_own": summary.kept_own,
        "lost_own": summary.lost_own,
        "dates": sorted(summary.dates, key=lambda entry: entry["after"] or entry["before"]),
    }


# Editing -------------------------------------------------------------------------------------


async def edit_series_dates(context: OperationContext, target: Target) -> Summary:
    if target.series["status"] == "trash":
        raise errors.in_trash(SERIES.singular)
    with explain_dates(), naming("start_date"):
        try:
            edit = await _plan_edit(context, target)
        except OverflowError as error:
            raise make_year_error() from error
    return await write_edit(context, edit)


async def _plan_edit(context: OperationContext, target: Target) -> Edit:
    tx, values, series = context.transaction, context.values, target.series
    before = decode_definition(series)
    occurrences = await load_occurrences(tx, series["id"], target.since)
    rows = [row for row in occurrences.active.values() if values.get("past") or not is_past(row, tx.now)]
    first = find_first_upcoming(rows, tx.now, target.since) or target.since or before.parts[0].start
    anchor_slot = find_next(occurrences, tx.now, first)
    anchor = date_at(before, target.reference or anchor_slot)
    event_row = make_event_row(series, before, anchor)
    content = await read_content(context, values, event_row, series["id"])
    change = read_shift(context, event_row, anchor)
    rule = (
        parse_rule(values["rule"], (change and change.timezone) or anchor.part.timezone) if "rule" in values else None
    )
    # Past dates keep their times and rule.
    has_past = any(is_past(row, tx.now) for row in occurrences.active.values())
    times_since = anchor_slot if target.since is not None or has_past else None
    after = change_content(before, content.values, target.since) if content.values else before
    after = _change_times(after, change, rule, times_since, target)
    until = compute_until(series, after, tx.now) if rule is not None else keep_until(series, tx.now, change)
    touched = {row["id"] for row in rows}
    untouched = [row for row in occurrences.active.values() if row["id"] not in touched]
    matches = match_events(TimeChange(change, rule, times_since), rows, untouched, after, until=until, now=tx.now)
    if change is not None and change.delta:
        matches += match_slots([*untouched, *occurrences.trashed.values()], after, change, times_since)
    columns = await _read_series_columns(context, target, content.published_at)
    fields = content.fields | ({TIMES} if change is not None or rule is not None else frozenset())
    return Edit(series, after, matches, occurrences, until, frozenset(fields), columns)


def _change_times(
    definition: Definition, change: Shift | None, rule: Rule | None, since: datetime | None, target: Target
) -> Definition:
    with naming("rule"):
        if change is not None:
            # A new rule that comes with new times replaces the old rule, so shifting the old rule is unnecessary.
            definition = shift(definition, change, since, keep_rule=rule is not None)
            since = since + change.delta if since is not None else None
        if rule is not None:
            definition = change_rule(definition, rule, since, keep_later_parts=target.scope == ALL)
    check_times(definition.parts, "rule" if change is None else "start_date")
    return definition


def compute_until(series: Row, definition: Definition, now: datetime) -> datetime:
    """Return the instant up to which a series must have all its events. It never moves back."""
    horizon = compute_horizon(now, definition.first_date.span().start.utc)
    return max(horizon, series["created_until"] or horizon)


def keep_until(series: Row, now: datetime, change: Shift | None = None) -> datetime:
    """Return the instant up to which all events exist after an edit that creates none.

    A shift can move dates that have no event yet to before `created_until`. In this case, return an earlier instant,
    but never one in the past; the job then creates the events.
    """
    until: datetime = series["created_until"] or COMPLETE
    earlier = min(change.delta, timedelta()) - timedelta(days=1) if change is not None else timedelta()
    return until + max(earlier, min(now - until, timedelta()))


async def _read_series_columns(context: OperationContext, target: Target, published_at: datetime | None) -> Values:
    """Return the requested slug and publication date, which are not part of the definition."""
    values: Values = {}
    if slug := context.values.get("slug"):
        if target.since is not None:
            raise errors.invalid("slug", "applies to a whole series. Use `scope=all`.")
        values["slug"] = await record_tables.find_free_slug(context.transaction, "series", slug, target.series["id"])
    if published_at is not None:
        if target.since is not None:
            raise errors.invalid("date", "applies to a whole series. Use `scope=all`.")
        values["published_at"] = published_at
    return values


async def write_edit(context: OperationContext, edit: Edit, *, replaces_own: bool | None = None) -> Summary:
    tx, series = context.transaction, edit.series
    _check_slots(edit)
    await _check_other_slots(tx, edit)
    cause = await write_definition(tx, series, edit.definition, edit.columns)
    if cause is None:
        # An edit that only resets overridden fields keeps the definition, but undoing the edit requires a revision.
        cause = await write_series(tx, series, {})
    write = SeriesWrite(
        {**series, **edit.columns},
        edit.definition,
        cause,
        context.actor,
        edited_fields=edit.fields,
        replaces_own=context.values.get("overrides") == "replace" if replaces_own is None else replaces_own,
        sets_publication_date="published_at" in edit.columns,
    )
    await count_new_record(context, sum(match.row is None for match in edit.matches))
    summary = await write_dates(tx, write, edit.matches, edit.occurrences.trashed)
    edited = {match.row["id"] for match in edit.matches if match.row is not None}
    await keep_earlier_times(tx, series, edit.definition, edited, cause)
    await finish(context, series, edit.definition, edit.until, summary, columns=edit.columns)
    return summary


def _check_slots(edit: Edit) -> None:
    """Raise if two events in the series would have the same slot."""
    list_dates_or_raise(edit.definition, edit.until)
    check_number_of_changes(edit.definition, "scope")
    moved = {match.row["id"] for match in edit.matches if match.row is not None}
    taken = {row["slot"] for row in edit.occurrences.active.values() if row["id"] not in moved}
    for match in edit.matches:
        # A trashed event leaves the series when another event takes its slot.
        if match.date is None or (match.slot_only and match.row and match.row["status"] == "trash"):
            continue
        with naming("start_date"):
            check_slot(match.date.slot)
        if match.date.slot in taken:
            raise errors.slot_taken(times.format_datetime(match.date.slot))
        taken.add(match.date.slot)


async def _check_other_slots(tx: Transaction, edit: Edit) -> None:
    """Raise if an event would get the slot of an earlier date that was not loaded for the edit."""
    slots = [
        match.date.slot
        for match in edit.matches
        if match.date is not None and (match.row is None or match.row["slot"] != match.date.slot)
        if not (match.slot_only and match.row and match.row["status"] == "trash")
    ]
    if not slots:
        return
    edited = [match.row["id"] for match in edit.matches if match.row is not None]
    row = await tx.fetch_one(
        Sql(
            """SELECT min(slot) AS slot FROM events
                WHERE site_id = ? AND series_id = ? AND status <> 'trash' AND slot = ANY(?) AND id <> ALL(?)""",
            *(tx.site.id, edit.series["id"], slots, edited),
        )
    )
    if row is not None and row["slot"] is not None:
        raise errors.slot_taken(times.format_datetime(row["slot"]))


async def finish(
    context: OperationContext,
    series: Row,
    definition: Definition,
    until: datetime,
    summary: Summary,
    *,
    columns: Values,
) -> None:
    """Store `created_until`, redirect the former slug, and publish related records or schedule the series."""
    tx = context.transaction
    created_until = until if has_dates_after(definition, until) else None
    await series_storage.set_created_until(tx, series["id"], created_until)
    if "slug" in columns and permissions.is_published(series):
        await record_tables.add_redirect(tx, "series", series["slug"], series["id"])
    if summary.event_ids:
        await publish_with_event(tx, context.actor, EVENTS, summary.event_ids[0])
    status, run_at = definition.template["status"], columns.get("published_at", series["published_at"])
    if status == "future" and (series["status"] != "future" or "published_at" in columns):
        values = {"kind": "series", "record_id": series["id"]}
        await job_queue.enqueue(tx, job_queue.Task.PUBLISH, values, run_at=run_at)  # type: ignore[arg-type]


# The trash -----------------------------------------------------------------------------------


async def trash_dates(context: OperationContext, target: Target) -> Summary:
    """End a series before a slot and trash the following events, or trash the series with all upcoming events."""
    tx, series = context.transaction, target.series
    before = decode_definition(series)
    occurrences = await load_occurrences(tx, series["id"], target.since)
    rows = [row for row in occurrences.active.values() if not is_past(row, tx.now)]
    since = find_first_upcoming(rows, tx.now, target.since) or target.since
    after = end_series(before, since) if target.scope == FOLLOWING and since is not None else None
    matches = [Match(row, None) for row in rows]
    if after is not None:
        edit = Edit(series, after, matches, occurrences, keep_until(series, tx.now))
        return await write_edit(context, edit, replaces_own=True)
    cause = await change_series_status(tx, series, "trash")
    return await write_dates(tx, SeriesWrite(series, before, cause, context.actor, replaces_own=True), matches, {})


# Adding dates and skipping others ------------------------------------------------------------


async def edit_dates(kind: Kind, context: OperationContext) -> Outcome:
    tx, values = context.transaction, context.values
    series = await fetch_active_row(kind, context)
    before = decode_definition(series)
    if not {"add", "remove"} & set(values):
        raise errors.missing_params(["add"])
    add = read_slots_of("add", values.get("add", ()), before, tx.now)
    remove = read_slots_of("remove", values.get("remove", ()), before, tx.now)
    for slot in remove:
        if slot in add:
            raise errors.invalid("remove", "{date} is in `add` as well.", date=times.format_datetime(slot))
    require_dates("remove", before, remove)
    listed = {*before.added, *find_given(before, add)} - {*before.removed}
    after = change_dates(before, add, remove)
    check_number_of_dates(after, "add", "remove")
    check_number(len(add) + len(remove), "remove")
    new = [slot for slot in dict.fromkeys(add) if slot not in listed]
    outcome = await run_edit(
        context, Target(series, None, "dates"), lambda: _change_dates(context, series, after, new, remove)
    )
    warnings = [describe_ignored(slot) for slot in add if slot in listed]
    return replace(outcome, body={**outcome.body, "warnings": warnings})


async def _change_dates(
    context: OperationContext, series: Row, after: Definition, add: Sequence[datetime], remove: Sequence[datetime]
) -> Summary:
    tx = context.transaction
    occurrences = await load_occurrences(tx, series["id"])
    until = keep_until(series, tx.now)
    new = [date_at(after, slot) for slot in add if slot not in occurrences.active]
    matches = [
        *[Match(occurrences.active[slot], None) for slot in remove if slot in occurrences.active],
        # The job later creates the events for rule dates beyond the horizon.
        *[Match(None, date) for date in new if date.slot in after.added or date.span().start.utc < until],
    ]
    return await write_edit(context, Edit(series, after, matches, occurrences, until), replaces_own=True)

"""Edits of a series: all dates, or one date and the following ones; their dry run; moving them to the trash."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kalends.core import errors, times
from kalends.core.recurrence import Rule
from kalends.core.series import (
    Definition,
    Shift,
    change_content,
    change_rule,
    date_at,
    end_series,
    has_dates_after,
    shift,
)
from kalends.core.series_limits import check_slot, make_year_error
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Kind, Values
from kalends.kinds.series import SERIES, TIMES
from kalends.operations import permissions
from kalends.operations.context import OperationContext, Outcome
from kalends.operations.linked_drafts import publish_with_event
from kalends.operations.quotas import count_new_record
from kalends.operations.records import fetch_editable_row, read_outcome
from kalends.operations.series.create import check_number_of_changes, explain_dates, list_dates_or_raise
from kalends.operations.series.earlier_dates import keep_earlier_times
from kalends.operations.series.matching import (
    Events,
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
from kalends.operations.series.one_date import delete_one, edit_one
from kalends.operations.series.requests import (
    check_times,
    make_event_row,
    naming,
    parse_rule,
    read_content,
    read_shift,
    read_slots,
)
from kalends.operations.series.rows import fetch_series, trash_series, write_definition, write_series
from kalends.operations.series.writing import SeriesWrite, Summary, write_dates
from kalends.store import Row, jobs, records, slug_redirects
from kalends.store import series as series_store
from kalends.store.database import Transaction
from kalends.store.series import decode_definition
from kalends.store.sql import Sql

THIS: Final = "this"
FOLLOWING: Final = "following"
ALL: Final = "all"
# All dates of a series exist: it has none after this instant.
COMPLETE: Final = datetime(times.LAST_YEAR - 1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Target:
    """The series that a request edits, and the slot from which on; None: all dates."""

    series: Row
    since: datetime | None
    scope: str
    reference: datetime | None = None  # the slot of the date that new times are given for; None: the first upcoming


@dataclass(frozen=True, slots=True)
class Edit:
    """A series before and after an edit, and the dates of its events."""

    series: Row
    definition: Definition
    matches: Sequence[Match]
    occurrences: Occurrences
    fields: frozenset[str]
    columns: Values
    until: datetime


async def edit_event(kind: Kind, context: OperationContext) -> Outcome:
    """Edit the event in the path, or its series from this event on, or all dates of its series."""
    scope: str = context.values.get("scope", THIS)
    if scope == THIS:
        return await edit_one(kind, context)
    target = await _fetch_target_of_event(kind, context, scope)
    return await run_edit(context, target, lambda: edit_series_dates(context, target))


async def edit_series(kind: Kind, context: OperationContext) -> Outcome:
    """Edit the series in the path: all dates, or those from the slot in `from` on."""
    target = await _fetch_target(kind, context)
    return await run_edit(context, target, lambda: edit_series_dates(context, target))


async def delete_event(kind: Kind, context: OperationContext) -> Outcome:
    """Move the event in the path to the trash, alone, with the following dates, or with all upcoming ones."""
    scope: str = context.values.get("scope", THIS)
    if scope == THIS:
        return await delete_one(kind, context)
    target = await _fetch_target_of_event(kind, context, scope)
    return await run_edit(context, target, lambda: trash_dates(context, target))


async def delete_series(kind: Kind, context: OperationContext) -> Outcome:
    """Move a series to the trash with its upcoming dates, or end it before a date."""
    target = await _fetch_target(kind, context)
    if target.series["status"] == "trash":
        raise errors.in_trash(kind.singular)
    return await run_edit(context, target, lambda: trash_dates(context, target))


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
    definition = decode_definition(series)
    first = date_at(definition, definition.parts[0].start)
    (since,) = read_slots("from", [context.values["from"]], first, context.transaction.now)
    return Target(series, since, scope)


async def run_edit(context: OperationContext, target: Target, write: Any) -> Outcome:
    """Run an edit and return its summary; undo it if the request asks for a dry run."""
    tx, is_dry_run = context.transaction, bool(context.values.get("dry_run", False))
    if is_dry_run:
        async with tx.rolled_back():
            summary: Summary = await write()
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
    """Change the definition of a series and its dates, as a request says."""
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
    times_since = _choose_times_since(before, target, anchor_slot, occurrences, tx.now)
    after = change_content(before, content.values, target.since) if content.values else before
    after = _change_times(after, change, rule, times_since, target)
    until = compute_until(series, after, tx.now) if rule is not None else keep_until(series, tx.now, change)
    touched = {row["id"] for row in rows}
    untouched = [row for row in occurrences.active.values() if row["id"] not in touched]
    matches = match_events(TimeChange(change, rule, times_since), Events(rows, untouched), after, until, tx.now)
    if change is not None and change.delta:
        matches += match_slots([*untouched, *occurrences.trashed.values()], after, change, times_since)
    columns = await _read_series_columns(context, target, content.published_at)
    fields = content.fields | ({TIMES} if change is not None or rule is not None else frozenset())
    return Edit(series, after, matches, occurrences, frozenset(fields), columns, until)


def _moved(since: datetime | None, change: Shift | None) -> datetime | None:
    return since + change.delta if since is not None and change is not None else since


def _choose_times_since(
    definition: Definition, target: Target, anchor: datetime, occurrences: Occurrences, now: datetime
) -> datetime | None:
    """Return the slot from which on times and rules change: dates that have taken place keep theirs."""
    if target.since is not None:
        return anchor
    has_past = any(is_past(row, now) for row in occurrences.active.values())
    return anchor if has_past else None


def _change_times(
    definition: Definition, change: Shift | None, rule: Rule | None, since: datetime | None, target: Target
) -> Definition:
    with naming("rule"):
        if change is not None:
            # A rule that comes with new times replaces the one that would have to move to another day.
            definition = shift(definition, change, since, keep_rule=rule is not None)
            since = _moved(since, change)
        if rule is not None:
            definition = change_rule(definition, rule, since, keep_later_parts=target.scope == ALL)
    check_times(definition.parts, "rule" if change is None else "start_date")
    return definition


def compute_until(series: Row, definition: Definition, now: datetime) -> datetime:
    """Return the instant before which the dates of a series exist; it never moves back."""
    first = date_at(definition, definition.parts[0].start)
    horizon = compute_horizon(now, first.span().start.utc)
    return max(horizon, series["created_until"] or horizon)


def keep_until(series: Row, now: datetime, change: Shift | None = None) -> datetime:
    """Return the instant before which dates exist after an edit that creates none.

    A shift may move dates that do not exist yet before that instant, so the job looks at the last days again, but
    not at the past.
    """
    until: datetime = series["created_until"] or COMPLETE
    earlier = min(change.delta, timedelta()) - timedelta(days=1) if change is not None else timedelta()
    return until + max(earlier, min(now - until, timedelta()))


async def _read_series_columns(context: OperationContext, target: Target, published_at: datetime | None) -> Values:
    """Return the columns of a series that are no part of its definition."""
    values: Values = {}
    if slug := context.values.get("slug"):
        if target.since is not None:
            raise errors.invalid("slug", "applies to a whole series. Use `scope=all`.")
        values["slug"] = await records.find_free_slug(context.transaction, "series", slug, target.series["id"])
    if published_at is not None:
        if target.since is not None:
            raise errors.invalid("date", "applies to a whole series. Use `scope=all`.")
        values["published_at"] = published_at
    return values


async def write_edit(context: OperationContext, edit: Edit, *, replaces_own: bool | None = None) -> Summary:
    """Write a changed series and its dates."""
    tx, series = context.transaction, edit.series
    _check_slots(edit)
    await _check_other_slots(tx, edit)
    cause = await write_definition(tx, series, edit.definition, edit.columns)
    if cause is None:
        # An edit that only takes own fields back changes no definition, but must be undone as one.
        cause = await write_series(tx, series, {})
    write = SeriesWrite(
        series_id=series["id"],
        slug=str(edit.columns.get("slug", series["slug"])),
        published_at=edit.columns.get("published_at", series["published_at"]),  # type: ignore[arg-type]
        definition=edit.definition,
        cause=cause,
        actor=context.actor,
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
    """Raise if two events of the series would have the same slot."""
    list_dates_or_raise(edit.definition, edit.until)
    check_number_of_changes(edit.definition, "scope")
    moved = {match.row["id"] for match in edit.matches if match.row is not None}
    taken = {row["slot"] for row in edit.occurrences.active.values() if row["id"] not in moved}
    for match in edit.matches:
        # An event in the trash leaves the series when another one gets its slot.
        if match.date is None or (match.slot_only and match.row and match.row["status"] == "trash"):
            continue
        with naming("start_date"):
            check_slot(match.date.slot)
        if match.date.slot in taken:
            raise errors.slot_taken(times.format_datetime(match.date.slot))
        taken.add(match.date.slot)


async def _check_other_slots(tx: Transaction, edit: Edit) -> None:
    """Raise if an event gets the slot of a date before those that the edit has loaded."""
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
            tx.site.id,
            edit.series["id"],
            slots,
            edited,
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
    """Store until when dates exist, redirect the former slug, and publish or schedule what belongs to the series."""
    tx = context.transaction
    created_until = until if has_dates_after(definition, until) else None
    await series_store.set_created_until(tx, series["id"], created_until)
    if "slug" in columns and permissions.is_published(series):
        await slug_redirects.add_redirect(tx, "series", series["slug"], series["id"])
    if summary.event_ids:
        await publish_with_event(tx, context.actor, EVENTS, summary.event_ids[0])
    status, run_at = definition.template["status"], columns.get("published_at", series["published_at"])
    if status == "future" and (series["status"] != "future" or "published_at" in columns):
        await jobs.enqueue(tx, jobs.Task.PUBLISH, {"kind": "series", "record_id": series["id"]}, run_at=run_at)  # type: ignore[arg-type]


# The trash -----------------------------------------------------------------------------------


async def trash_dates(context: OperationContext, target: Target) -> Summary:
    """Move upcoming dates to the trash: the following ones, which ends the series, or all, with the series."""
    tx, series = context.transaction, target.series
    before = decode_definition(series)
    occurrences = await load_occurrences(tx, series["id"], target.since)
    rows = [row for row in occurrences.active.values() if not is_past(row, tx.now)]
    since = find_first_upcoming(rows, tx.now, target.since) or target.since
    after = end_series(before, since) if target.scope == FOLLOWING and since is not None else None
    matches = [Match(row, None) for row in rows]
    if after is not None:
        edit = Edit(series, after, matches, occurrences, frozenset(), {}, keep_until(series, tx.now))
        return await write_edit(context, edit, replaces_own=True)
    cause = await trash_series(tx, series)
    write = SeriesWrite(
        series["id"], series["slug"], series["published_at"], before, cause, context.actor, replaces_own=True
    )
    return await write_dates(tx, write, matches, {})

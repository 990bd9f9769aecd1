"""Creating a series with its dates."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from kalends.core import credentials, errors, times
from kalends.core.recurrence import check_start
from kalends.core.series import (
    MAX_LISTED,
    Date,
    Definition,
    Part,
    SlotTaken,
    TooManyDates,
    change_dates,
    find_given,
    has_dates_after,
    list_dates,
)
from kalends.core.slugs import make_slug
from kalends.kinds.events import EVENTS, build_time_columns
from kalends.kinds.kind import Kind, Values
from kalends.kinds.series import CONTENT_DEFAULTS, MAX_ADDED, MAX_CHANGES, MAX_REMOVED, SERIES
from kalends.operations import permissions
from kalends.operations.context import OperationContext, Outcome
from kalends.operations.linked_drafts import publish_with_event
from kalends.operations.quotas import count_new_record
from kalends.operations.records import read_outcome
from kalends.operations.series.matching import Match, compute_horizon
from kalends.operations.series.requests import (
    check_times,
    naming,
    parse_rule,
    read_content,
    read_nominal,
    read_slots,
)
from kalends.operations.series.rows import COPIED_COLUMNS
from kalends.operations.series.single import too_many_removed
from kalends.operations.series.writing import MAX_DATES, SeriesWrite, Summary, write_dates
from kalends.operations.writes import build_write_context
from kalends.store import Row, jobs, records
from kalends.store.database import Transaction
from kalends.store.history import encode_columns
from kalends.store.series import encode_definition

FIRST_DATES: Final = 50  # dates that the response to a new series contains


@dataclass(frozen=True, slots=True)
class NewSeries:
    id: int
    slug: str
    definition: Definition
    published_at: datetime


async def create_series(kind: Kind, context: OperationContext) -> Outcome:
    """Create a series and its dates up to the horizon."""
    permissions.require_writer(context.actor, kind)
    tx = context.transaction
    series_id = tx.changes.next_post_id()
    content = await read_content(context, context.values, None, series_id)
    part = read_part(context, series_id)
    definition = read_dates(context, Definition((part,), {**CONTENT_DEFAULTS, **content.values}))
    published_at = content.published_at or tx.now
    summary = await add_series(context, series_id, definition, published_at)
    outcome = await read_outcome(SERIES, context, series_id, status=201)
    return replace(
        outcome,
        body={**outcome.body, "occurrences": summary.dates[:FIRST_DATES]},
        ignored_params=content.ignored_params,
    )


def read_part(context: OperationContext, series_id: int) -> Part:
    """Read the first date and the rule."""
    columns: Any = build_time_columns(build_write_context(context, context.values, None, series_id))
    start, end = read_nominal(context, context.values, columns)
    zone = columns["timezone"]
    rule = parse_rule(context.values["rule"], zone) if "rule" in context.values else None
    if rule is None and "add_dates" not in context.values:
        raise errors.missing_params(["rule"])
    part = Part(credentials.new_uid(), rule, start, end, zone, columns["all_day"])
    check_times([part])
    if rule is not None:
        with naming("rule"):
            check_start(rule, start)
    return part


def read_dates(context: OperationContext, definition: Definition) -> Definition:
    """Apply `add_dates` and `remove_dates` to a definition."""
    values, now = context.values, context.transaction.now
    first = Date(definition.parts[0].start, definition.parts[0])
    add = read_slots("add_dates", values.get("add_dates", ()), first, now)
    remove = read_slots("remove_dates", values.get("remove_dates", ()), first, now)
    given = find_given(definition, remove)
    for slot in remove:
        if slot not in given and slot not in definition.added:
            raise errors.invalid(
                "remove_dates", "{date} is not a date of this series.", date=times.format_datetime(slot)
            )
    changed = change_dates(definition, add, remove)
    check_number_of_dates(changed, "add_dates", "remove_dates")
    return changed


def check_number_of_dates(definition: Definition, add_param: str, remove_param: str) -> None:
    """Raise if a series has too many added or removed dates."""
    if len(definition.added) > MAX_ADDED:
        raise errors.invalid(
            add_param,
            "at most {maximum} dates can be added to a series; this would make {count}.",
            maximum=MAX_ADDED,
            count=len(definition.added),
        )
    if len(definition.removed) > MAX_REMOVED:
        raise too_many_removed(len(definition.removed), remove_param)


def check_number_of_changes(definition: Definition, param: str) -> None:
    """Raise if a series has too many rules, or content from too many dates on."""
    if max(len(definition.parts), len(definition.content_changes)) > MAX_CHANGES:
        raise errors.invalid(
            param,
            "a series can have at most {maximum} rules, and other content from at most {maximum} dates on. Change "
            "all dates, or split the series.",
            maximum=MAX_CHANGES,
        )


async def add_series(
    context: OperationContext,
    series_id: int,
    definition: Definition,
    published_at: datetime,
    first_event: Row | None = None,
) -> Summary:
    """Write a new series and its dates; return what was created. `first_event` becomes its first date."""
    tx = context.transaction
    first = Date(definition.parts[0].start, definition.parts[0])
    until = compute_horizon(tx.now, first.span().start.utc)
    dates = list_dates_or_raise(definition, until)
    if not dates:
        raise errors.invalid("rule", "this series has no dates.")
    _check_number_of_new(len(dates), until)
    matches = [Match(first_event if date.slot == first.slot else None, date) for date in dates]
    await count_new_record(context, sum(match.row is None for match in matches))
    template = definition.template
    slug = await records.find_free_slug(
        tx, "series", context.values.get("slug") or make_slug(template["title"]) or str(series_id), series_id
    )
    created_until = until if has_dates_after(definition, until) else None
    cause = await insert_series(tx, NewSeries(series_id, slug, definition, published_at), created_until)
    write = SeriesWrite(series_id, slug, published_at, definition, cause, context.actor)
    summary = await write_dates(tx, write, matches, {})
    await publish_with_event(tx, context.actor, EVENTS, summary.event_ids[0])
    if template["status"] == "future":
        await jobs.enqueue(tx, jobs.Task.PUBLISH, {"kind": "series", "record_id": series_id}, run_at=published_at)
    return summary


def _check_number_of_new(count: int, until: datetime) -> None:
    if count > MAX_DATES:
        raise errors.invalid(
            "rule",
            "has {count} dates up to {date}; at most {maximum} can be created at once. Begin later or end earlier.",
            count=count,
            date=until.date(),
            maximum=MAX_DATES,
        )


def list_dates_or_raise(definition: Definition, until: datetime) -> list[Date]:
    with explain_dates():
        return list_dates(definition, until)


@contextmanager
def explain_dates() -> Iterator[None]:
    """Report dates that a series cannot have as errors of the request."""
    try:
        yield
    except SlotTaken as error:
        raise errors.slot_taken(times.format_datetime(error.slot)) from error
    except TooManyDates as error:
        raise errors.invalid(
            "rule", "has more than {maximum} dates. Begin later or end earlier.", maximum=MAX_LISTED
        ) from error


async def insert_series(
    tx: Transaction, series: NewSeries, created_until: datetime | None, cause: int | None = None
) -> int:
    """Log and insert the row of a series; return its revision. `cause` is that of the change of another series."""
    template = series.definition.template
    values: Values = {
        "uid": series.definition.parts[0].uid,
        "slug": series.slug,
        "published_at": series.published_at,
        **{name: template[name] for name in COPIED_COLUMNS},
        **encode_definition(series.definition),
    }
    revision = tx.changes.record("series", series.id, "create", after=encode_columns({**values}), cause=cause)
    further: Values = {"id": series.id, "revision": revision, "modified_utc": tx.now, "created_until": created_until}
    await records.add(tx, "series", {**further, **values})
    return revision

"""Creates a series with its dates."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from heapq import merge
from itertools import groupby, islice
from typing import Any, Final

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.access.permissions import count_new_record
from kalends.calendar.kinds.events import EVENTS, build_time_columns
from kalends.calendar.kinds.kind import Kind, Values
from kalends.calendar.kinds.series_kind import CONTENT_DEFAULTS, MAX_ADDED, MAX_CHANGES, MAX_REMOVED, SERIES
from kalends.calendar.operations.record_verbs import read_outcome
from kalends.calendar.operations.writes import build_write_context, publish_with_event
from kalends.calendar.storage import record_tables
from kalends.core import credentials, errors, times
from kalends.core.messages import Message
from kalends.core.recurrence import check_start, find_warnings, serialize_rule
from kalends.core.recurrence.rule_sentences import find_text
from kalends.core.slugs import make_slug
from kalends.series.consequences import COPIED_COLUMNS, too_many_removed
from kalends.series.operations.series_matching import Match, compute_horizon
from kalends.series.operations.series_requests import (
    check_times,
    naming,
    parse_rule,
    read_content,
    read_nominal,
    read_slots,
    require_dates,
    select_dates,
)
from kalends.series.operations.series_writing import MAX_DATES, SeriesWrite, Summary, write_dates
from kalends.series.rules.series_slots import (
    MAX_LISTED,
    Date,
    Definition,
    Part,
    SlotTaken,
    TooManyDates,
    change_dates,
    has_dates_after,
    list_dates,
)
from kalends.series.storage import encode_definition
from kalends.store import Row, job_queue
from kalends.store.change_log import encode_columns
from kalends.store.database import Transaction

FIRST_DATES: Final = 50  # dates in the response to a new series


async def create_series(kind: Kind, context: OperationContext) -> Outcome:
    """Create a series and its dates up to the horizon."""
    permissions.require_writer(context.actor, kind)
    tx = context.transaction
    series_id = tx.changes.take_post_id()
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


def read_dates(context: OperationContext, definition: Definition, *, strict: bool = True) -> Definition:
    """Apply `add_dates` and `remove_dates` to a definition.

    With `strict`, raise if a removed date is not in the series. Imports are not strict, because web calendars often
    contain such dates.
    """
    values, now, first = context.values, context.transaction.now, definition.first_date
    add = read_slots("add_dates", values.get("add_dates", ()), first, now)
    remove = read_slots("remove_dates", values.get("remove_dates", ()), first, now)
    known = require_dates("remove_dates", definition, remove) if strict else select_dates(definition, remove)
    changed = change_dates(definition, add, known)
    check_number_of_dates(changed, "add_dates", "remove_dates")
    return changed


def check_number_of_dates(definition: Definition, add_param: str, remove_param: str) -> None:
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
    """Write a new series and its dates; return a summary. `first_event` becomes the first date."""
    tx, first = context.transaction, definition.first_date
    until = compute_horizon(tx.now, first.span().start.utc)
    dates = list_dates_or_raise(definition, until)
    if not dates:
        raise errors.invalid("rule", "this series has no dates.")
    if len(dates) > MAX_DATES:
        raise errors.invalid(
            "rule",
            "has {count} dates up to {date}; at most {maximum} can be created at once. Begin later or end earlier.",
            count=len(dates),
            date=until.date(),
            maximum=MAX_DATES,
        )
    matches = [Match(first_event if date.slot == first.slot else None, date) for date in dates]
    await count_new_record(context, sum(match.row is None for match in matches))
    created_until = until if has_dates_after(definition, until) else None
    series, cause = await start_series(context, series_id, definition, published_at, created_until)
    summary = await write_dates(tx, SeriesWrite(series, definition, cause, context.actor), matches, {})
    await publish_with_event(tx, context.actor, EVENTS, summary.event_ids[0])
    return summary


async def start_series(
    context: OperationContext,
    series_id: int,
    definition: Definition,
    published_at: datetime,
    created_until: datetime | None,
) -> tuple[Mapping[str, Any], int]:
    """Insert a series without its dates, and schedule its publication; return its columns and its revision."""
    tx, template = context.transaction, definition.template
    slug = await record_tables.find_free_slug(
        tx, "series", context.values.get("slug") or make_slug(template["title"]) or str(series_id), series_id
    )
    series: Values = {"id": series_id, "slug": slug, "published_at": published_at}
    cause = await insert_series(tx, series, definition, created_until)
    if template["status"] == "future":
        await job_queue.enqueue(
            tx, job_queue.Task.PUBLISH, {"kind": "series", "record_id": series_id}, run_at=published_at
        )
    return {**series}, cause


def list_dates_or_raise(definition: Definition, until: datetime) -> list[Date]:
    with explain_dates():
        return list_dates(definition, until)


@contextmanager
def explain_dates() -> Iterator[None]:
    """Turn errors in a series' dates into request errors."""
    try:
        yield
    except SlotTaken as error:
        raise errors.slot_taken(times.format_datetime(error.slot)) from error
    except TooManyDates as error:
        raise errors.invalid(
            "rule", "has more than {maximum} dates. Begin later or end earlier.", maximum=MAX_LISTED
        ) from error


async def insert_series(
    tx: Transaction, series: Values, definition: Definition, created_until: datetime | None, cause: int | None = None
) -> int:
    """Log and insert a series row; return its revision. `cause` is the revision of another series' change."""
    values: Values = {
        "uid": definition.parts[0].uid,
        **{name: value for name, value in series.items() if name != "id"},
        **{name: definition.template[name] for name in COPIED_COLUMNS},
        **encode_definition(definition),
    }
    revision = tx.changes.record("series", series["id"], "create", after=encode_columns({**values}), cause=cause)  # type: ignore[arg-type]
    further: Values = {
        "id": series["id"],
        "revision": revision,
        "modified_utc": tx.now,
        "created_until": created_until,
    }
    await record_tables.add(tx, "series", {**further, **values})
    return revision


# A rule's dates before a series is created -------------------------------------------------

SHOWN_DATES: Final = 50
MAX_COUNTED: Final = 2000
# A preview computes dates for this many years after the start, to limit its cost.
PREVIEWED_YEARS: Final = 100


async def preview_series(kind: Kind, context: OperationContext) -> Outcome:
    permissions.require_writer(context.actor, kind)
    context = replace(context, values={"end_date": context.values["start_date"], **context.values})
    part = read_part(context, 0)
    rule, definition = part.rule, read_dates(context, Definition((part,), {}))
    year = min(part.start.year + PREVIEWED_YEARS, times.LAST_YEAR)
    limit = part.start.replace(year=year, month=12, day=31)
    # Do not count the dates of an endless rule.
    is_endless = rule is not None and rule.count is None and rule.until is None
    slots = list(islice(_list_slots(definition, limit), SHOWN_DATES if is_endless else MAX_COUNTED + 1))
    is_complete = len(slots) <= MAX_COUNTED and _ends_before(part, limit)
    added = read_slots(
        "add_dates", context.values.get("add_dates", ()), Date(part.start, part), context.transaction.now
    )
    spans = [Date(slot, part).span() for slot in slots[:SHOWN_DATES]]
    return Outcome(
        {
            "rule": serialize_rule(rule) if rule is not None else None,
            "text": find_text(rule, part.start.date()) if rule is not None else None,
            "dates": [
                {
                    "start_date": times.format_datetime(span.start.wall),
                    "end_date": times.format_datetime(span.end.wall),
                }
                for span in spans
            ],
            "last": times.format_datetime(slots[-1]) if slots and is_complete else None,
            "count": len(slots) if is_complete else None,
            "warnings": [
                *(find_warnings(rule, part.start) if rule is not None else ()),
                *[describe_ignored(slot) for slot in added if slot not in definition.added],
            ],
        }
    )


def describe_ignored(slot: datetime) -> Message:
    """Return the warning about an added date that the rule already produces."""
    return Message("{date} is already a date of this rule and was ignored.", date=times.format_datetime(slot))


def _list_slots(definition: Definition, limit: datetime) -> Iterator[datetime]:
    """Yield unique slots in order, without skipped dates."""
    removed = frozenset(definition.removed)
    merged = merge(definition.parts[0].slots(limit), sorted(definition.added))
    return (slot for slot, _ in groupby(merged) if slot not in removed)


def _ends_before(part: Part, limit: datetime) -> bool:
    rule = part.rule
    if rule is None:
        return True
    if rule.count is not None:
        return sum(1 for _ in part.slots(limit)) == rule.count
    return rule.until is not None and rule.until <= limit.date()

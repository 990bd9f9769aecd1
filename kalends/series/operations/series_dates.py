"""The dates of a series: its events, skipped dates, and dates still to be created."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from heapq import merge
from itertools import islice, repeat
from typing import Any, Final

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.kinds.events import EVENTS, build_event
from kalends.calendar.kinds.kind import Kind, Values
from kalends.calendar.kinds.posts import IMAGE_COLUMN, INLINE_IMAGES_COLUMN
from kalends.calendar.kinds.series_kind import TIMES, span_columns
from kalends.calendar.operations.record_verbs import build_events, fetch_readable_row, make_render_context
from kalends.calendar.operations.site_feeds import build_feed_events, read_sequences
from kalends.calendar.rules.record_types import Event, Series, SeriesReference
from kalends.core import date_forms, errors, times
from kalends.core.errors import InvalidValue
from kalends.series.consequences import fetch_series
from kalends.series.operations.series_matching import is_past
from kalends.series.operations.series_requests import make_event_row
from kalends.series.operations.series_writing import change_events
from kalends.series.rules.series_slots import LAST_SLOT, Date, Definition, date_at, dates_at
from kalends.series.storage import decode_definition
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql

MADE: Final = "made"
REMOVED: Final = "removed"
PLANNED: Final = "planned"
STATES: Final = (MADE, REMOVED, PLANNED)
MAX_OCCURRENCES: Final = 1000
# Compute planned dates for at most this many years after `created_until`: rules with rare dates are expensive.
PLANNED_YEARS: Final = 100
FIRST_SLOT: Final = datetime(1, 1, 1)
END_OF_DAY: Final = time(23, 59, 59)

Entry = dict[str, Any]


async def list_occurrences(kind: Kind, context: OperationContext) -> Outcome:
    """Return the dates of a series, ordered by slot."""
    series = await fetch_readable_row(kind, context)
    definition = decode_definition(series)
    zone = definition.parts[0].timezone
    since, until = _read_bound(context, "from", zone, FIRST_SLOT), _read_bound(context, "to", zone, LAST_SLOT)
    states = context.values.get("state", STATES)
    rows = await _load_events(context, series["id"], since, until)
    entries: list[Entry] = []
    if MADE in states:
        entries += [_serialize_event(context, row, MADE) for row in rows if row["status"] != "trash"]
    if REMOVED in states:
        entries += _list_removed(context, definition, rows, since, until)
    if PLANNED in states:
        dates = islice(_find_planned(series, definition, since, until), MAX_OCCURRENCES + 1)
        entries += [_serialize_date(date, PLANNED) for date in dates]
    entries.sort(key=lambda entry: str(entry["slot"]))
    shown = entries[:MAX_OCCURRENCES]
    return Outcome({"occurrences": shown, "more": len(entries) > len(shown)})


def _read_bound(context: OperationContext, name: str, zone: str, default: datetime) -> datetime:
    """Return the first or last requested slot. A bound without a time of day includes the whole day."""
    if name not in context.values:
        return default
    try:
        moment = date_forms.make_absolute(context.values[name], context.transaction.now, zone)
        wall = moment.wall if moment.offset is None else times.resolve(moment, zone).wall
    except InvalidValue as error:
        raise errors.invalid_params({name: errors.for_param(name, error.message)}) from error
    return datetime.combine(wall.date(), END_OF_DAY) if name == "to" and moment.is_date_only else wall


async def _load_events(context: OperationContext, series_id: int, since: datetime, until: datetime) -> list[Row]:
    """Load the events in the range that the caller may read, up to the limit."""
    tx = context.transaction
    return await tx.fetch_all(
        Sql(
            """SELECT r.id, r.slot, r.start_local, r.end_local, r.timezone, r.status, r.own_fields, r.password_hash
                FROM events r WHERE r.site_id = ? AND r.series_id = ? AND r.slot BETWEEN ? AND ? AND""",
            *(tx.site.id, series_id, since, until),
        )
        + permissions.readable_condition(context.actor)
        + Sql("ORDER BY r.slot LIMIT ?", MAX_OCCURRENCES + 1)
    )


async def load_headings(tx: Transaction, event_ids: Collection[int]) -> dict[int, Row]:
    """Return the title and event status of each event. Callers pass only events that the user may read."""
    rows = await tx.fetch_all(
        Sql("SELECT id, title, event_status FROM events WHERE site_id = ? AND id = ANY(?)", tx.site.id, [*event_ids])
    )
    return {row["id"]: row for row in rows}


def _serialize_event(context: OperationContext, row: Row, state: str) -> Entry:
    is_locked = bool(permissions.locked_ids(context, [row]))
    return {
        "slot": times.format_datetime(row["slot"]),
        "state": state,
        "event": row["id"],
        "start_date": times.format_datetime(row["start_local"]),
        "end_date": times.format_datetime(row["end_local"]),
        "timezone": row["timezone"],
        "status": row["status"],
        "own": [] if is_locked else list(row["own_fields"] or ()),
    }


def _list_removed(
    context: OperationContext, definition: Definition, rows: Iterable[Row], since: datetime, until: datetime
) -> list[Entry]:
    """Return skipped dates, each with its trashed event if there is one."""
    trashed = {row["slot"]: row for row in rows if row["status"] == "trash"}
    return [
        _serialize_event(context, trashed[slot], REMOVED)
        if slot in trashed
        else _serialize_date(date_at(definition, slot), REMOVED)
        for slot in definition.removed
        if since <= slot <= until
    ]


def _find_planned(series: Row, definition: Definition, since: datetime, until: datetime) -> Iterator[Date]:
    """Yield the dates whose events have not been created yet."""
    created_until: datetime | None = series["created_until"]
    if created_until is None or series["status"] == "trash":
        return
    removed = frozenset(definition.removed)
    last = min(until, LAST_SLOT.replace(year=min(created_until.year + PLANNED_YEARS, times.LAST_YEAR)))
    # UTC offsets are shorter than a day, so earlier slots precede `created_until` in every time zone.
    first = max(since, created_until.replace(tzinfo=None) - timedelta(days=1))
    by_part = [map(Date, part.slots(last, first), repeat(part)) for part in definition.parts]
    for date in merge(*by_part, key=lambda date: date.slot):
        if date.slot not in removed and date.span().start.utc >= created_until:
            yield date


def _serialize_date(date: Date, state: str) -> Entry:
    span = date.span()
    return {
        "slot": times.format_datetime(date.slot),
        "state": state,
        "event": None,
        "start_date": times.format_datetime(span.start.wall),
        "end_date": times.format_datetime(span.end.wall),
        "timezone": date.part.timezone,
        "status": None,
        "own": [],
    }


# Public dates, for the series page and the event pages ---------------------------------------


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last date on a page; the next page continues after it."""

    start_utc: datetime
    event_id: int


@dataclass(frozen=True, slots=True)
class DatePage:
    events: list[Event]
    next: Cursor | None


@dataclass(frozen=True, slots=True)
class Neighbour:
    slug: str
    start_local: datetime


@dataclass(frozen=True, slots=True)
class Position:
    """A date's place in its series. `is_complete` means that all dates of the series exist as events."""

    total: int
    is_complete: bool
    before: Neighbour | None
    after: Neighbour | None


async def list_dates(
    context: OperationContext, series: Series, limit: int, *, past: bool, cursor: Cursor | None
) -> DatePage:
    """List a series' upcoming dates in order, or its past dates, latest first."""
    tx = context.transaction
    where = _public_condition(context, series.id, includes_hidden=series.content.hide_from_listings)
    where += Sql("AND r.end_utc <= ?" if past else "AND r.end_utc > ?", tx.now)
    if cursor is not None:
        where += Sql(
            "AND (r.start_utc, r.id) < (?, ?)" if past else "AND (r.start_utc, r.id) > (?, ?)",
            cursor.start_utc,
            cursor.event_id,
        )
    order = Sql("ORDER BY r.start_utc DESC, r.id DESC" if past else "ORDER BY r.start_utc, r.id")
    rows = await tx.fetch_all(EVENTS.select(where + order + Sql("LIMIT ?", limit + 1)))
    shown = rows[:limit]
    following = Cursor(shown[-1]["start_utc"], shown[-1]["id"]) if len(rows) > limit else None
    return DatePage(await build_events(context, shown), following)


async def find_position(context: OperationContext, event: Event, series: SeriesReference) -> Position:
    """Find the dates before and after an event, and the number of dates in its series."""
    tx, hidden = context.transaction, event.hide_from_listings
    sides = await tx.fetch_all(
        _select_neighbour(context, event, series, after=False)
        + Sql("UNION ALL")
        + _select_neighbour(context, event, series, after=True)
    )
    found = {row["is_after"]: Neighbour(row["slug"], row["start_local"]) for row in sides}
    counted = await tx.fetch_one(
        Sql("SELECT (SELECT count(*) FROM events r WHERE")
        + _public_condition(context, series.id, includes_hidden=hidden)
        + Sql(") AS total, s.created_until FROM series s WHERE s.site_id = ? AND s.id = ?", tx.site.id, series.id)
    )
    total, until = (counted["total"], counted["created_until"]) if counted else (0, None)
    return Position(total, until is None, found.get(False), found.get(True))


def _select_neighbour(context: OperationContext, event: Event, series: SeriesReference, *, after: bool) -> Sql:
    condition = Sql(
        "AND (r.start_utc, r.id) > (?, ?) ORDER BY r.start_utc, r.id LIMIT 1)"
        if after
        else "AND (r.start_utc, r.id) < (?, ?) ORDER BY r.start_utc DESC, r.id DESC LIMIT 1)",
        event.start_utc,
        event.id,
    )
    public = _public_condition(context, series.id, includes_hidden=event.hide_from_listings)
    return (
        Sql("(SELECT ?::boolean AS is_after, r.slug, r.start_local FROM events r WHERE", after) + public + condition
    )


def _public_condition(context: OperationContext, series_id: int, *, includes_hidden: bool) -> Sql:
    """Return the condition for public dates. Include hidden dates only if the series or the shown date is hidden."""
    return Sql(
        "r.site_id = ? AND r.series_id = ? AND r.status = 'publish' AND (NOT r.hide_from_listings OR ?)",
        *(context.transaction.site.id, series_id, includes_hidden),
    )


# The calendar --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SeriesContents:
    """The data for a series' calendar: public events by slot, and each version of the content with its first slot.

    The content is None for a version that is not public. `sequence` is the highest sequence number of the series and
    its events.
    """

    definition: Definition
    dates: dict[datetime, Event]
    contents: list[tuple[datetime, Event | None]]
    sequence: int


async def load_contents(context: OperationContext, series: Series) -> SeriesContents:
    """Load all public events of a series and the content that they share."""
    tx, hidden = context.transaction, series.content.hide_from_listings
    where = _public_condition(context, series.id, includes_hidden=hidden)
    rows = await tx.fetch_all(EVENTS.select(where + Sql("ORDER BY r.slot")))
    events = [event async for batch in build_feed_events(context, rows) for event in batch]
    sequences = await read_sequences(context, [event.id for event in events])
    row = await fetch_series(tx, series.id)
    return SeriesContents(
        series.definition,
        {row["slot"]: event for row, event in zip(rows, events, strict=True)},
        await _build_contents(context, series, row),
        max([series.sequence, *sequences.values()]),
    )


async def _build_contents(context: OperationContext, series: Series, row: Row) -> list[tuple[datetime, Event | None]]:
    definition = decode_definition(row)
    slots = [definition.parts[0].start, *[change.since for change in definition.content_changes]]
    made: list[Any] = [make_event_row(row, definition, date_at(definition, slot)) for slot in slots]
    images = await _load_images(context, {entry["image_id"] for entry in made})
    files = await _load_inline_images(context, made)
    common = {"uid": row["uid"], "series_id": None, "inline_images": files}
    rows = [{**entry, **common, "image": images.get(entry["image_id"])} for entry in made]
    render_context = await make_render_context(EVENTS, context, rows, is_readable=True)  # type: ignore[arg-type]
    return [
        (
            slot,
            _refer_to(build_event(entry, render_context), series) if _is_public(entry, series) else None,  # type: ignore[arg-type]
        )
        for slot, entry in zip(slots, rows, strict=True)
    ]


async def _load_images(context: OperationContext, image_ids: set[int | None]) -> dict[int, str]:
    """Load images in the same format as the image column of posts."""
    site_id = context.transaction.site.id
    rows = await context.transaction.fetch_all(
        Sql("SELECT r.image_id, " + IMAGE_COLUMN + " AS image")
        + Sql(
            "FROM (SELECT ?::bigint AS site_id, unnest(?::bigint[]) AS image_id) r",
            site_id,
            [entry for entry in image_ids if entry is not None],
        )
    )
    return {row["image_id"]: row["image"] for row in rows}


async def _load_inline_images(context: OperationContext, made: Sequence[Any]) -> str | None:
    """Load the image files in these dates' descriptions, in the same format as the inline image column of posts."""
    texts = "".join(entry[name] for entry in made for name in ("description", "excerpt"))
    files: str | None = await context.transaction.fetch_value(
        Sql("SELECT " + INLINE_IMAGES_COLUMN)
        + Sql(
            "FROM (SELECT ?::bigint AS site_id, inline_images(?) AS inline_image_ids) r",
            context.transaction.site.id,
            texts,
        )
    )
    return files


def _is_public(content: Any, series: Series) -> bool:
    is_hidden = content["hide_from_listings"] and not series.content.hide_from_listings
    return content["status"] == "publish" and content["password_hash"] is None and not is_hidden


def _refer_to(event: Event, series: Series) -> Event:
    """Return the content with the series page's address and a reference to the series."""
    parts: Sequence[Any] = series.definition.parts
    reference = SeriesReference(
        id=series.id, slug=series.slug, url=series.url, uid=series.uid, title=series.title, parts=tuple(parts),
        slot=event.start_local, own_fields=(),
    )  # fmt: skip
    return replace(event, url=series.url, series=reference)


# Added dates that precede an edit ------------------------------------------------------------


async def keep_earlier_times(
    tx: Transaction, series: Row, after: Definition, edited: Collection[int], cause: int
) -> None:
    """Keep the times of unedited added dates that precede the rule's first date.

    Without overrides, these dates would get the rule's new times.
    """
    before = decode_definition(series)
    kept_slots = [slot for slot in before.added if slot in after.added]
    slots = [
        old.slot
        for old, new in zip(dates_at(before, kept_slots), dates_at(after, kept_slots), strict=True)
        if span_columns(old.part, old.span()) != span_columns(new.part, new.span())
    ]
    where = Sql(
        "r.site_id = ? AND r.series_id = ? AND r.status <> 'trash' AND r.slot = ANY(?)",
        *(tx.site.id, series["id"], slots),
    )
    rows = await tx.fetch_all(EVENTS.select(where)) if slots else []
    kept = [row for row in rows if row["id"] not in edited and not is_past(row, tx.now)]
    own: dict[int, Values] = {row["id"]: {"own_fields": sorted({*(row["own_fields"] or ()), TIMES})} for row in kept}
    await change_events(tx, kept, own, cause)

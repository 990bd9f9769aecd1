"""The dates of a series as visitors see them: for its page, the pages of its dates, and its calendar."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, LiteralString

from kalends.core.record_types import Event, Series, SeriesReference
from kalends.core.series import Definition, date_at
from kalends.kinds.events import EVENTS, build_event
from kalends.kinds.posts import IMAGE_COLUMN, INLINE_IMAGES_COLUMN
from kalends.operations.context import OperationContext
from kalends.operations.feeds import build_feed_events, read_sequences
from kalends.operations.records import make_render_context
from kalends.operations.series.requests import make_event_row
from kalends.operations.series.rows import fetch_series
from kalends.operations.typed_records import build_events
from kalends.store import Row
from kalends.store.series import decode_definition
from kalends.store.sql import Sql

# Dates that are hidden from lists are part of a series if the series itself, or the date from which one comes, is.
_PUBLIC: Final[LiteralString] = (
    "r.site_id = ? AND r.series_id = ? AND r.status = 'publish' AND (NOT r.hide_from_listings OR ?)"
)


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last date of a page."""

    start_utc: datetime
    event_id: int


@dataclass(frozen=True, slots=True)
class DatePage:
    events: list[Event]
    next: Cursor | None


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The date before or after another one."""

    slug: str
    start_local: datetime


@dataclass(frozen=True, slots=True)
class Position:
    """The place of a date in its series. `is_complete`: all dates of the series exist as events."""

    total: int
    is_complete: bool
    before: Neighbour | None
    after: Neighbour | None


async def list_dates(
    context: OperationContext, series: Series, limit: int, *, past: bool, cursor: Cursor | None
) -> DatePage:
    """List the upcoming dates of a series in their order, or the past ones, the latest first."""
    tx = context.transaction
    where = _select_public(context, series.id, includes_hidden=series.content.hide_from_listings)
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
    """Find the dates before and after an event, and the number of dates of its series."""
    tx, hidden = context.transaction, event.hide_from_listings
    sides = await tx.fetch_all(
        _select_neighbour(context, event, series, after=False)
        + Sql("UNION ALL")
        + _select_neighbour(context, event, series, after=True)
    )
    found = {row["is_after"]: Neighbour(row["slug"], row["start_local"]) for row in sides}
    counted = await tx.fetch_one(
        Sql("SELECT (SELECT count(*) FROM events r WHERE")
        + _select_public(context, series.id, includes_hidden=hidden)
        + Sql(
            ") AS total, s.created_until FROM series s WHERE s.site_id = ? AND s.id = ?",
            tx.site.id,
            series.id,
        )
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
    public = _select_public(context, series.id, includes_hidden=event.hide_from_listings)
    return (
        Sql("(SELECT ?::boolean AS is_after, r.slug, r.start_local FROM events r WHERE", after) + public + condition
    )


def _select_public(context: OperationContext, series_id: int, *, includes_hidden: bool) -> Sql:
    return Sql(_PUBLIC, context.transaction.site.id, series_id, includes_hidden)


# The calendar --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SeriesContents:
    """A series for its calendar: all dates by slots, and the contents with the slots from which on they apply.

    A content is None if its dates are not public. `sequence` is the highest of the series and its dates.
    """

    definition: Definition
    dates: dict[datetime, Event]
    contents: list[tuple[datetime, Event | None]]
    sequence: int


async def load_contents(context: OperationContext, series: Series) -> SeriesContents:
    """Load all public dates of a series, and what they have in common."""
    tx, hidden = context.transaction, series.content.hide_from_listings
    where = _select_public(context, series.id, includes_hidden=hidden)
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
    """Load images as the column of a post has them."""
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
    """Load the files of the images inside of the descriptions of these dates, as the column of a post has them."""
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
    """Return the content of a series with the address of its page."""
    parts: Sequence[Any] = series.definition.parts
    reference = SeriesReference(
        id=series.id, slug=series.slug, url=series.url, uid=series.uid, title=series.title, parts=tuple(parts),
        slot=event.start_local, own_fields=(),
    )  # fmt: skip
    return replace(event, url=series.url, series=reference)

"""Reads that return typed records, for pages and feeds. They find and hide the same records as the API."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kalends.core.record_types import Event, Organizer, Series, Term, Venue
from kalends.kinds.events import EVENTS, build_event
from kalends.kinds.kind import Kind
from kalends.kinds.organizers import ORGANIZERS
from kalends.kinds.series import SERIES, build_series
from kalends.kinds.venues import VENUES
from kalends.operations import cache_tags
from kalends.operations.context import OperationContext, PageInfo
from kalends.operations.records import fetch_readable_row, fetch_visible_row, find_page, make_render_context
from kalends.store import Row


@dataclass(frozen=True, slots=True)
class RecordRead[R]:
    record: R
    cache_tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecordList[R]:
    """One page of a list."""

    records: tuple[R, ...]
    page: PageInfo
    cache_tags: tuple[str, ...]


async def read_event(context: OperationContext) -> RecordRead[Event]:
    return await _read(EVENTS, context)


async def read_locked_event(context: OperationContext) -> Event:
    """Read the public part of a protected event: its title and time."""
    row = await fetch_visible_row(EVENTS, context)
    return build_event(row, await make_render_context(EVENTS, context, [row]))


async def read_series(context: OperationContext) -> RecordRead[Series]:
    return await _read(SERIES, context)


async def read_locked_series(context: OperationContext) -> Series:
    """Read the public part of a protected series: its title and the time of its first date."""
    row = await fetch_visible_row(SERIES, context)
    return build_series(row, await make_render_context(SERIES, context, [row]))


async def read_venue(context: OperationContext) -> RecordRead[Venue]:
    return await _read(VENUES, context)


async def read_organizer(context: OperationContext) -> RecordRead[Organizer]:
    return await _read(ORGANIZERS, context)


async def read_term(kind: Kind, context: OperationContext) -> RecordRead[Term]:
    return await _read(kind, context)


async def list_events(
    context: OperationContext, *, kind: Kind = EVENTS, with_total: bool = True
) -> RecordList[Event]:
    """List events. `kind` may be a variant of EVENTS with other filters."""
    return await _list(kind, context, with_total=with_total)


async def list_terms(kind: Kind, context: OperationContext) -> RecordList[Term]:
    return await _list(kind, context)


async def list_linkable(kind: Kind, context: OperationContext) -> RecordList[Venue | Organizer | Term]:
    """List records of a kind that events link to."""
    return await _list(kind, context)


async def build_events(context: OperationContext, rows: Sequence[Row]) -> list[Event]:
    render_context = await make_render_context(EVENTS, context, list(rows))
    return [build_event(row, render_context) for row in rows]


async def _read(kind: Kind, context: OperationContext) -> RecordRead[Any]:
    row = await fetch_readable_row(kind, context)
    render_context = await make_render_context(kind, context, [row], is_readable=True)
    tags = cache_tags.tags_for_record(kind, row)
    return RecordRead(kind.reads.from_row(row, render_context), tags)


async def _list(kind: Kind, context: OperationContext, *, with_total: bool = True) -> RecordList[Any]:
    found = await find_page(kind, context, with_total=with_total)
    render_context = await make_render_context(kind, context, found.rows)
    return RecordList(
        tuple(kind.reads.from_row(row, render_context) for row in found.rows),
        PageInfo(found.total, found.total_pages),
        cache_tags.tags_for_shown(kind, found.query.values, found.rows),
    )

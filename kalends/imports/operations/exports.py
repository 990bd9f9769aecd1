"""Exports lists of events, venues and organizers as tables that can be imported again unchanged."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, time
from typing import Any, Final

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import ExportedTable, OperationContext, Outcome
from kalends.calendar.kinds.event_window import WITH_HIDDEN
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Kind, RenderContext
from kalends.calendar.kinds.posts import build_post_image
from kalends.calendar.kinds.series_kind import SERIES
from kalends.calendar.operations.event_queries import TABLE_EVENTS
from kalends.calendar.operations.record_verbs import find_page, make_render_context
from kalends.calendar.storage.record_tables import find_existing_ids
from kalends.core import errors, times
from kalends.core.slugs import make_slug
from kalends.imports.adapters.table_writer import MAX_CELL_TEXT, Value
from kalends.imports.rules.table_headers import FIELDS, IDENTITY, TABLE_KINDS
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql

CSV, XLSX = FORMATS = ("csv", "xlsx")
MAX_ROWS: Final = 10_000
# The limit for roles below contributor is lower, because anyone can request exports at any time.
MAX_PUBLIC_ROWS: Final = 1_000
MAX_CHARACTERS: Final = 30_000_000
_CHUNK: Final = 500
# The public fields of a protected event.
_PUBLIC_FIELDS: Final = frozenset(
    {IDENTITY, "title", "start_date", "start_time", "end_date", "end_time", "timezone", "status", "slug"}
)
_VENUE_FIELDS: Final = tuple(name for name in TABLE_KINDS["events"] if name.startswith("venue."))


async def export_records(kind: Kind, context: OperationContext) -> Outcome:
    """Return the complete list as a table, with the records that the list shows to this caller."""
    format_ = context.values.get("format", CSV)
    rows = [row async for chunk in _read_chunks(kind, context) for row in chunk]
    _check_cells(kind, rows, format_)
    return Outcome({}, table=ExportedTable(kind.name, format_, rows))


async def export_event_table(context: OperationContext) -> ExportedTable:
    """Return all events in the console's table, including events that lists hide."""
    kind = replace(TABLE_EVENTS, reads=replace(EVENTS.reads, next_cursor=None))
    outcome = await export_records(kind, replace(context, values={**context.values, WITH_HIDDEN: True}))
    if outcome.table is None:
        raise AssertionError("an export without a table")
    return outcome.table


async def _read_chunks(kind: Kind, context: OperationContext) -> AsyncIterator[list[list[Value]]]:
    """Read the list in chunks; raise 400 if it is too long."""
    paged = replace(kind, reads=replace(kind.reads, max_per_page=_CHUNK))
    maximum = MAX_ROWS if permissions.rank(context.actor) >= permissions.CONTRIBUTOR else MAX_PUBLIC_ROWS
    characters = 0
    for number in range(1, MAX_ROWS // _CHUNK + 1):
        values = {**context.values, "page": number, "per_page": _CHUNK}
        page = await find_page(paged, replace(context, values=values), with_total=number == 1)
        if number == 1 and page.total > maximum:
            raise _too_long(page.total, maximum)
        cells = await _make_rows(kind, context, page.rows)
        characters += sum(len(cell) for row in cells for cell in row if isinstance(cell, str))
        if characters > MAX_CHARACTERS:
            raise _too_long(number * _CHUNK, maximum)
        yield cells
        if len(page.rows) < _CHUNK or (number == 1 and page.total == _CHUNK):
            return


def _too_long(total: int, maximum: int) -> errors.ApiError:
    return errors.invalid(
        "format",
        "the list is too long for a file: it has {total} records, and at most {maximum} are exported. Narrow it with "
        "filters.",
        total=total,
        maximum=maximum,
    )


def _check_cells(kind: Kind, rows: Sequence[Sequence[Value]], format_: str) -> None:
    """Raise 400 if a text is too long for a spreadsheet cell, because the spreadsheet would cut it off."""
    name = tuple(TABLE_KINDS[kind.name]).index(kind.title_param)
    for row in rows if format_ == XLSX else ():
        if any(isinstance(cell, str) and len(cell) > MAX_CELL_TEXT for cell in row):
            raise errors.invalid(
                "format",
                "“{title}” has a text that is too long for a spreadsheet; use csv.",
                title=str(row[name])[:100],
            )


async def _make_rows(kind: Kind, context: OperationContext, rows: list[Row]) -> list[list[Value]]:
    render_context = await make_render_context(kind, context, rows)
    locked = _find_locked(context, rows) if kind.is_event else frozenset[int]()
    result: list[list[Value]] = []
    for row in rows:
        cells = make_cells(kind, row, render_context)
        if row["id"] in locked:
            cells = {name: value for name, value in cells.items() if name in _PUBLIC_FIELDS}
        result.append([cells.get(name) for name in TABLE_KINDS[kind.name]])
    return result


def _find_locked(context: OperationContext, rows: list[Row]) -> frozenset[int]:
    """Return the IDs of protected events that the caller has not unlocked and may not edit."""
    locked = permissions.locked_ids(context, rows)
    return frozenset(
        row["id"] for row in rows if row["id"] in locked and not permissions.may_edit(context.actor, row)
    )


# Cells ------------------------------------------------------------------------------------------


def make_cells(kind: Kind, row: Row, context: RenderContext) -> dict[str, Value]:
    return _make_event(row, context) if kind.is_event else _make_post(kind, row, context)


def _make_event(row: Row, context: RenderContext) -> dict[str, Value]:
    """Return an event's cells by field. Cells contain stored values, not formatted ones."""
    return {
        IDENTITY: row["uid"],
        **{name: row[name] for name in ("title", "timezone", "all_day", "description", "status", "slug")},
        **_make_plain(EVENTS, row),
        **_make_times(row),
        **_make_links(row, context),
        "image": _make_image(row, context),
    }


def _make_times(row: Row) -> dict[str, Value]:
    cells: dict[str, Value] = {}
    for side in ("start", "end"):
        local: datetime = row[f"{side}_local"]
        # Spreadsheets do not support years before 1000.
        cells[f"{side}_date"] = local.date() if local.year >= 1000 else local.date().isoformat()
        if not row["all_day"]:
            cells[f"{side}_time"] = _make_time(row, side, local)
    return cells


def _make_time(row: Row, side: str, local: datetime) -> time | str:
    """Return the time of day. If a local time occurs twice, the second occurrence includes the offset."""
    if not row[f"{side}_fold"]:
        return local.time()
    return f"{local.time().isoformat('seconds')}{times.format_offset_at(row[f'{side}_utc'], row['timezone'])}"


def _make_links(row: Row, context: RenderContext) -> dict[str, Value]:
    linked = context.linked
    venues = [linked.venues[entry].record for entry in row["venue_ids"] if entry in linked.venues]
    organizers = [
        linked.organizers[entry].record.name for entry in row["organizer_ids"] if entry in linked.organizers
    ]
    details = {name: getattr(venues[0], name.removeprefix("venue.")) for name in _VENUE_FIELDS} if venues else {}
    terms: dict[str, Mapping[int, Any]] = {"categories": linked.categories, "tags": linked.tags}
    ids = {"categories": row["category_ids"], "tags": row["tag_ids"]}
    return {
        "venue": _join_names([venue.name for venue in venues]),
        **details,
        "organizer": _join_names(organizers),
        **{
            name: ", ".join(_name_term(known[entry].record) for entry in ids[name] if entry in known)
            for name, known in terms.items()
        },
    }


def _join_names(names: list[str]) -> str:
    """Join names with line breaks. A single name with a semicolon ends with one, so imports do not split it."""
    text = "\n".join(names)
    return f"{text}\n" if len(names) == 1 and ";" in text else text


def _name_term(term: Any) -> str:
    """Return a term's name, or its slug if an import would not recognize the name."""
    name: str = term.name
    is_clear = make_slug(name) == term.slug and not name.isdecimal() and not any(mark in name for mark in ",;|\n")
    return name if is_clear else term.slug


def _make_plain(kind: Kind, row: Row) -> dict[str, Value]:
    return {name: row[name] for name in FIELDS[kind.name]}


def _make_post(kind: Kind, row: Row, context: RenderContext) -> dict[str, Value]:
    return {
        IDENTITY: make_global_id(row["id"], context.base_url),
        kind.title_param: row["title"],
        **_make_plain(kind, row),
        "description": row["description"],
        "status": row["status"],
        "image": _make_image(row, context),
    }


def make_global_id(record_id: int, base_url: str) -> str:
    """Return the API's `global_id`, which is unique across sites."""
    host = base_url.partition("://")[2].partition("/")[0].partition(":")[0]
    return f"{host}?id={record_id}"


async def find_exported(tx: Transaction, kind: Kind, identities: Collection[str], base_url: str) -> dict[str, int]:
    """Return record IDs by exported identity, to recognize records that were exported from this site."""
    if kind.is_event or kind is SERIES:
        table = "events" if kind.is_event else "series"
        rows = await tx.fetch_all(
            Sql("SELECT r.uid AS identity, r.id FROM " + table + " r")
            + Sql("WHERE r.site_id = ? AND r.uid = ANY(?) AND r.status <> 'trash'", tx.site.id, list(identities))
        )
        return {row["identity"]: row["id"] for row in rows}
    numbers = [
        text for identity in identities if (text := identity.rpartition("?id=")[2]).isdecimal() and len(text) < 16
    ]
    existing = await find_existing_ids(tx, kind.name, [int(text) for text in numbers])
    known = {make_global_id(record_id, base_url): record_id for record_id in existing}
    return {identity: known[identity] for identity in identities if identity in known}


def _make_image(row: Row, context: RenderContext) -> str:
    image = build_post_image(row, context)
    return image.url if image is not None else ""

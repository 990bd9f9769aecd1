"""Lists and single records of the core routes. The operations of the API decide which records a caller sees."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from kalends.api.core_routes import embedding
from kalends.api.core_routes.errors import forbidden_context, no_such_page, not_readable, translate_error
from kalends.api.core_routes.shapes import (
    ShapeContext,
    shape_category,
    shape_event,
    shape_media,
    shape_organizer,
    shape_tag,
    shape_venue,
)
from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.kinds.kind import JsonObject, Kind
from kalends.operations import cache_tags, permissions
from kalends.operations.context import OperationContext, Outcome, PageInfo
from kalends.operations.core_kinds import complete_values
from kalends.operations.records import RowPage, fetch_visible_row, find_page, make_render_context
from kalends.store import Row

type Shape = Callable[[Any, Row, ShapeContext], JsonObject]


@dataclass(frozen=True, slots=True)
class Collection:
    """The name of a list in its address, and the shape of its records."""

    name: str
    shape: Shape


# By the names of the kinds.
COLLECTIONS: Final = {
    "events": Collection("tribe_events", shape_event),
    "venues": Collection("tribe_venue", shape_venue),
    "organizers": Collection("tribe_organizer", shape_organizer),
    "categories": Collection("tribe_events_cat", shape_category),
    "tags": Collection("tags", shape_tag),
    "media": Collection("media", shape_media),
}
# A published record makes its image visible, so lists of images depend on them.
SHOWING_KINDS: Final = ("events", "venues", "organizers", "series")


async def list_core(kind: Kind, context: OperationContext) -> Outcome:
    """List records as an array, with the number of records and pages in headers."""
    if context.values.get("context") == "edit":
        _require_edit(kind, context)
    found = await _find_page(kind, context)
    items = await shape_rows(kind, context, found.rows)
    listed = cache_tags.tags_for_page(kind, found.query, found.clauses, found.rows)
    page = make_page_info(collection_url(kind, context), context, found.query.page, found.query.per_page, found.total)
    tags = (*listed, *_showing_tags(kind, context))
    return Outcome({}, items=items, page=page, cache_tags=tags, expires_at=kind.reads.expires_at(found.query))


async def read_core(kind: Kind, context: OperationContext) -> Outcome:
    try:
        row = await fetch_visible_row(kind, context)
    except ApiError as error:
        if kind.is_media and context.actor.user_id is None:
            # The same response as for the image of a draft, so that it does not reveal which images exist.
            raise not_readable() from error
        raise translate_error(error, kind, context.actor) from error
    if context.values.get("context") == "edit":
        _require_edit(kind, context, row)
    return await make_outcome(kind, context, row)


async def make_outcome(kind: Kind, context: OperationContext, row: Row, status: int = 200) -> Outcome:
    (body,) = await shape_rows(kind, context, [row])
    tags = cache_tags.tags_for_record(kind, row)
    location = f"{collection_url(kind, context)}/{row['id']}" if status == 201 else ""
    return Outcome(
        body,
        status,
        revision=row["revision"],
        location=location,
        cache_tags=(*tags, *_showing_tags(kind, context)),
    )


async def _find_page(kind: Kind, context: OperationContext) -> RowPage:
    context = replace(context, values=complete_values(kind, context.values))
    try:
        found = await find_page(kind, context)
    except ApiError as error:
        raise translate_error(error, kind, context.actor) if error.status == 404 else error from error
    if not found.rows and found.query.page > 1 and kind.is_media:
        raise no_such_page(errors.no_such_page(kind.singular))
    return found


async def shape_rows(kind: Kind, context: OperationContext, rows: list[Row]) -> list[JsonObject]:
    """Return the JSON of rows; those that the caller may edit have their `raw` texts with `context=edit`."""
    render_context = await make_render_context(kind, context, rows)
    is_edit = context.values.get("context") == "edit"
    editable_ids = {row["id"] for row in rows if is_edit and _may_edit(kind, context, row)}
    render_context = replace(render_context, locked_ids=render_context.locked_ids - editable_ids)
    shape = COLLECTIONS[kind.name].shape
    records: list[Any] = [kind.reads.from_row(row, render_context) for row in rows]
    shapes: list[JsonObject] = []
    for row, record in zip(rows, records, strict=True):
        shape_context = ShapeContext(context.transaction.site, context.extension_url, row["id"] in editable_ids)
        shapes.append(shape(record, row, shape_context))
    if context.values.get("_embed"):
        await embedding.embed_linked(context, records, shapes)
    return shapes


def collection_url(kind: Kind, context: OperationContext) -> str:
    return f"{context.extension_url}/{COLLECTIONS[kind.name].name}"


def _require_edit(kind: Kind, context: OperationContext, row: Row | None = None) -> None:
    """Raise unless the caller may edit a record, or records of this kind."""
    try:
        permissions.require_writer(context.actor, kind)
        if row is not None:
            permissions.require_edit(context.actor, kind, row)
    except ApiError as error:
        raise forbidden_context(error) from error


def _may_edit(kind: Kind, context: OperationContext, row: Row) -> bool:
    try:
        _require_edit(kind, context, row)
    except ApiError:
        return False
    return True


def make_page_info(address: str, context: OperationContext, page: int, per_page: int, total: int) -> PageInfo:
    """Return the totals of a list, and the addresses of the pages before and after it."""
    pages = -(-total // per_page)

    def page_url(number: int) -> str:
        return f"{address}?{urlencode([*context.query_pairs, ('page', str(number))])}"

    return PageInfo(
        total,
        pages,
        page_url(page + 1) if page < pages else "",
        page_url(min(page - 1, pages)) if page > 1 and pages else "",
    )


def _showing_tags(kind: Kind, context: OperationContext) -> list[str]:
    if kind.is_media:
        return list(SHOWING_KINDS)
    return ["media"] if context.values.get("_embed") else []

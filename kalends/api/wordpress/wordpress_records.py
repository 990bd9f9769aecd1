"""Records and errors for the core routes, in WordPress form. API operations enforce permissions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from kalends.api.wordpress.wordpress_shapes import (
    CORE_MEDIA,
    ShapeContext,
    complete_values,
    shape_category,
    shape_event,
    shape_media,
    shape_organizer,
    shape_tag,
    shape_venue,
)
from kalends.calendar.access import caching, permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome, PageInfo
from kalends.calendar.kinds.kind import Actor, JsonObject, Kind
from kalends.calendar.operations.record_verbs import (
    RowPage,
    fetch_visible_row,
    find_page,
    make_render_context,
    update_record,
)
from kalends.calendar.rules.record_types import Event, Post
from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.media.operations import create_media, read_images
from kalends.store import Row

# `_embed` adds linked records to a response, which saves clients requests.


async def embed_linked(context: OperationContext, records: Sequence[Any], shapes: Sequence[JsonObject]) -> None:
    """Add `_embedded` with each post's image and terms; authors are omitted because accounts are not public."""
    posts = [(post, shape) for post, shape in zip(records, shapes, strict=True) if isinstance(post, Post)]
    shape_context = ShapeContext(context.transaction.site, context.extension_url)
    found = await read_images(context, [post.image.id for post, _ in posts if post.image])
    images = {item.id: shape_media(item, row, shape_context) for item, row in found}
    for post, shape in posts:
        embedded: JsonObject = {}
        if post.image and post.image.id in images:
            embedded["wp:featuredmedia"] = [images[post.image.id]]
        if isinstance(post, Event):
            tags = [shape_tag(term, None, shape_context) for term in post.tags]
            embedded["wp:term"] = [tags, [shape_category(term, None, shape_context) for term in post.categories]]
        shape["_embedded"] = embedded


# Errors on the core routes, with WordPress error codes.


def translate_error(error: ApiError, kind: Kind, actor: Actor) -> ApiError:
    """Return the WordPress error for a failed read: no such record, no such page, not readable."""
    if error.status == 404 and error.code.endswith("-archive-page-not-found"):
        return no_such_page(error)
    if error.status == 404:
        return ApiError(404, "rest_term_invalid" if kind.is_term else "rest_post_invalid_id", error.message)
    if error.status == 403:
        return ApiError(401 if actor.user_id is None else 403, "rest_forbidden", error.message)
    return error


def no_such_page(error: ApiError) -> ApiError:
    return ApiError(400, "rest_post_invalid_page_number", error.message)


type Shape = Callable[[Any, Row, ShapeContext], JsonObject]


@dataclass(frozen=True, slots=True)
class Collection:
    """A list's name in its URL, and the shape of its records."""

    name: str
    shape: Shape


# Collections by kind name.
COLLECTIONS: Final = {
    "events": Collection("tribe_events", shape_event),
    "venues": Collection("tribe_venue", shape_venue),
    "organizers": Collection("tribe_organizer", shape_organizer),
    "categories": Collection("tribe_events_cat", shape_category),
    "tags": Collection("tags", shape_tag),
    "media": Collection("media", shape_media),
}
# A published record makes its image visible, so image lists depend on these kinds.
SHOWING_KINDS: Final = ("events", "venues", "organizers", "series")


async def list_core(kind: Kind, context: OperationContext) -> Outcome:
    """List records as an array; headers contain the number of records and pages."""
    if context.values.get("context") == "edit":
        _require_edit(kind, context)
    found = await _find_page(kind, context)
    items = await shape_rows(kind, context, found.rows)
    listed = caching.tags_for_page(kind, found.query, found.clauses, found.rows)
    page = make_page_info(collection_url(kind, context), context, found.query.page, found.query.per_page, found.total)
    tags = (*listed, *_showing_tags(kind, context))
    return Outcome({}, items=items, page=page, cache_tags=tags, expires_at=kind.reads.expires_at(found.query))


async def read_core(kind: Kind, context: OperationContext) -> Outcome:
    try:
        row = await fetch_visible_row(kind, context)
    except ApiError as error:
        if kind.is_media and context.actor.user_id is None:
            # Respond as if the image belonged to a draft, because the response must not reveal which images exist.
            raise ApiError(401, "rest_forbidden", "Authentication is required.") from error
        raise translate_error(error, kind, context.actor) from error
    if context.values.get("context") == "edit":
        _require_edit(kind, context, row)
    return await make_outcome(kind, context, row)


async def make_outcome(kind: Kind, context: OperationContext, row: Row, status: int = 200) -> Outcome:
    (body,) = await shape_rows(kind, context, [row])
    tags = caching.tags_for_record(kind, row)
    location = f"{collection_url(kind, context)}/{row['id']}" if status == 201 else ""
    return Outcome(
        body, status, revision=row["revision"], location=location, cache_tags=(*tags, *_showing_tags(kind, context))
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
    """Return the JSON for rows; with `context=edit`, rows that the caller may edit include `raw` texts."""
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
        await embed_linked(context, records, shapes)
    return shapes


def collection_url(kind: Kind, context: OperationContext) -> str:
    return f"{context.extension_url}/{COLLECTIONS[kind.name].name}"


def _require_edit(kind: Kind, context: OperationContext, row: Row | None = None) -> None:
    try:
        permissions.require_writer(context.actor, kind)
        if row is not None:
            permissions.require_edit(context.actor, kind, row)
    except ApiError as error:
        raise ApiError(error.status, "rest_forbidden_context", error.message) from error


def _may_edit(kind: Kind, context: OperationContext, row: Row) -> bool:
    try:
        _require_edit(kind, context, row)
    except ApiError:
        return False
    return True


def make_page_info(address: str, context: OperationContext, page: int, per_page: int, total: int) -> PageInfo:
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


# Image uploads and edits, using media library operations.


async def upload_media(kind: Kind, context: OperationContext) -> Outcome:
    return await _respond(context, await create_media(kind, context))


async def update_media(kind: Kind, context: OperationContext) -> Outcome:
    try:
        outcome = await update_record(kind, context)
    except ApiError as error:
        raise translate_error(error, kind, context.actor) if error.status == 404 else error from error
    return await _respond(context, outcome)


async def _respond(context: OperationContext, outcome: Outcome) -> Outcome:
    """Return a written image in WordPress form, with its texts as stored."""
    written = replace(context, record_id=outcome.body["id"], values={"context": "edit"})
    return await make_outcome(CORE_MEDIA, written, await fetch_visible_row(CORE_MEDIA, written), outcome.status)

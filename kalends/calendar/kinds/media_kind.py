"""Images in the media library."""

from collections.abc import Collection
from functools import partial
from typing import LiteralString

import orjson

from kalends.calendar.kinds.kind import (
    Columns,
    Filter,
    JsonObject,
    Kind,
    ListQuery,
    Reads,
    RenderContext,
    Values,
    WriteContext,
    Writes,
    value_clause,
)
from kalends.calendar.kinds.posts import (
    DESCRIPTIVE_FIELDS,
    IMAGE_ATTRIBUTES,
    SEARCH,
    build_image,
    get_image_attributes,
    search_clause,
    serialize_image,
)
from kalends.calendar.rules.record_types import MediaItem
from kalends.core import params, times
from kalends.core.image_types import BY_MIME
from kalends.core.params import param
from kalends.core.sanitize import clean_plain, clean_term_description, fold
from kalends.media import storage as media_storage
from kalends.store import Row, job_queue
from kalends.store.database import Transaction
from kalends.store.sql import Sql

TEXTS: tuple[LiteralString, ...] = ("title", "alt_text", "caption")
FOCUS: tuple[LiteralString, ...] = ("focus_x", "focus_y")


def build_media_item(row: Row, context: RenderContext) -> MediaItem:
    image = build_image({**row, "sizes": orjson.loads(row["sizes"])}, context)
    return MediaItem(
        **dict(zip(IMAGE_ATTRIBUTES, get_image_attributes(image), strict=True)),
        hue=image.hue,
        title=row["title"],
        mime_type=row["mime_type"],
        author=row["author_id"],
        date_utc=row["added_at"],
        modified_utc=row["modified_utc"],
        source_url=row["source_url"],
    )


def serialize_media(item: MediaItem, context: RenderContext) -> JsonObject:
    zone = context.site.timezone
    return {
        **serialize_image(item),
        "title": item.title,
        "mime_type": item.mime_type,
        "author": str(item.author or 0),
        "date": times.format_datetime(times.local_of(item.date_utc, zone)),
        "date_utc": times.format_datetime(item.date_utc),
        "modified": times.format_datetime(times.local_of(item.modified_utc, zone)),
        "modified_utc": times.format_datetime(item.modified_utc),
        "source_url": item.source_url,
    }


async def build_media_columns(context: WriteContext) -> Values:
    arguments, row = context.arguments, context.row
    values: Values = {}
    for column in (*TEXTS, *FOCUS):
        if column in arguments:
            values[column] = arguments[column]
    texts = [str(values.get(name, row[name] if row else "")) for name in TEXTS]
    values["search_text"] = "\n".join(fold(text) for text in texts if text)
    return values


async def after_media_update(tx: Transaction, row: Row, columns: Collection[str]) -> None:
    """Raise the revision of all records with the image if visitors see the change. Recreate outdated sizes."""
    if set(columns) & {*DESCRIPTIVE_FIELDS, "url"}:
        await media_storage.record_reference_changes(tx, row["id"])
    if set(columns) & {*FOCUS, "url"}:
        await job_queue.enqueue(tx, job_queue.Task.MAKE_SIZES, {"media_id": row["id"]})


def order_media(_: ListQuery) -> Sql:
    return Sql("r.added_at DESC, r.id DESC")


FRACTION = params.number(0, 1, null_value=0.5)
FILTERS = (
    Filter(
        param("search", SEARCH, "Search words; each must occur in the title, alternative text or caption"),
        value_clause(search_clause),
    ),
    Filter(
        param("author", params.integer(minimum=1), "Only images of this user"),
        value_clause(lambda value: Sql("r.author_id = ?", value)),
    ),
    Filter(
        param("mime_type", params.one_of(*BY_MIME), "Only images of this type"),
        value_clause(lambda value: Sql("r.mime_type = ?", value)),
    ),
    Filter(
        param("without_alt_text", params.BOOLEAN, "Only images without alternative text; false: only the others"),
        value_clause(lambda value: Sql("r.alt_text = ''") if value else Sql("r.alt_text <> ''")),
    ),
)
FIELDS = (
    param("title", params.text(partial(clean_plain, limit=500)), "The title; by default the file name"),
    param("alt_text", params.text(partial(clean_plain, limit=2000)), "Alternative text"),
    param("caption", params.text(partial(clean_term_description, limit=10_000)), "Caption, such as the photo credit"),
    param("focus_x", FRACTION, "Horizontal focal point, from 0 (left) to 1 (right)"),
    param("focus_y", FRACTION, "Vertical focal point, from 0 (top) to 1 (bottom)"),
)


MEDIA = Kind(
    name="media",
    singular="media",
    title_param="title",
    fields=FIELDS,
    filters=FILTERS,
    reads=Reads(
        columns=Columns(
            *("id", "revision", "url", "extension", "width", "height", "filesize", "sizes", "hue", "author_id"),
            *(*TEXTS, *FOCUS, "mime_type", "added_at", "modified_utc"),
            *("source_url", "source_etag", "source_last_modified", "fetched_at"),
        ),
        from_row=build_media_item,
        to_json=serialize_media,
        order=order_media,
    ),
    writes=Writes(to_columns=build_media_columns, after_update=after_media_update),
    is_post=False,
    is_extension=True,
    is_media=True,
)

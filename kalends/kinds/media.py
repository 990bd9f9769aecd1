"""Images of the media library: what is known of them, and how they are shown."""

from collections.abc import Collection
from typing import LiteralString

import orjson

from kalends.core import params, times
from kalends.core.image_types import BY_MIME
from kalends.core.params import param
from kalends.core.record_types import MediaItem
from kalends.core.sanitize import clean_plain, clean_term_description, fold
from kalends.kinds.image_json import DESCRIPTIVE_FIELDS, build_file_url, build_sizes, serialize_image
from kalends.kinds.kind import Filter, JsonObject, Kind, RenderContext, Values, WriteContext, value_clause
from kalends.kinds.posts import SEARCH, newest_first, search_clause
from kalends.store import Row, jobs, media
from kalends.store.database import Transaction
from kalends.store.sql import Sql

TEXTS: tuple[LiteralString, ...] = ("title", "alt_text", "caption")
FOCUS: tuple[LiteralString, ...] = ("focus_x", "focus_y")


def build_media_item(row: Row, context: RenderContext) -> MediaItem:
    return MediaItem(
        id=row["id"],
        url=build_file_url(row["url"], context),
        extension=row["extension"],
        width=row["width"],
        height=row["height"],
        filesize=row["filesize"],
        sizes=build_sizes(orjson.loads(row["sizes"]), context),
        alt_text=row["alt_text"],
        caption=row["caption"],
        focus_x=row["focus_x"],
        focus_y=row["focus_y"],
        title=row["title"],
        mime_type=row["mime_type"],
        author=row["author"],
        date_utc=row["date_utc"],
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
    """Records that show the image have changed with it; a new focus point cuts another thumbnail."""
    if set(columns) & {*DESCRIPTIVE_FIELDS, "sizes", "url"}:
        await media.record_reference_changes(tx, row["id"])
    if set(columns) & {*FOCUS, "url"}:
        await jobs.enqueue(tx, jobs.Task.MAKE_SIZES, {"media_id": row["id"]})


FRACTION = params.number(0, 1, null_value=0.5)
FILTERS = (
    Filter(
        param("search", SEARCH, "Every word is in the title, alt text or caption"),
        value_clause(search_clause),
    ),
    Filter(
        param("author", params.integer(minimum=1), "Only images of this user"),
        value_clause(lambda value: Sql("r.author = ?", value)),
    ),
    Filter(
        param("mime_type", params.one_of(*BY_MIME), "Only images of this type"),
        value_clause(lambda value: Sql("r.mime_type = ?", value)),
    ),
    Filter(
        param("without_alt_text", params.BOOLEAN, "Only images that nobody has described yet, or only the others"),
        value_clause(lambda value: Sql("r.alt_text = ''") if value else Sql("r.alt_text <> ''")),
    ),
)
FIELDS = (
    param("title", params.text(lambda value: clean_plain(value, 500)), "The title; by default the name of the file"),
    param(
        "alt_text",
        params.text(lambda value: clean_plain(value, 2000)),
        "What the image shows, for those who do not see it",
    ),
    param(
        "caption",
        params.text(lambda value: clean_term_description(value, 10_000)),
        "A text beside the image, perhaps who made it",
    ),
    param("focus_x", FRACTION, "The point that must stay visible, from the left: 0 to 1"),
    param("focus_y", FRACTION, "The point that must stay visible, from the top: 0 to 1"),
)


MEDIA = Kind(
    name="media",
    singular="media",
    title_param="title",
    columns="""r.id, r.revision, r.url, r.extension, r.width, r.height, r.filesize, r.sizes, r.author, r.title,
        r.alt_text, r.caption, r.focus_x, r.focus_y, r.mime_type, r.date_utc, r.modified_utc, r.source_url,
        r.source_etag, r.source_date, r.fetched_at""",
    fields=FIELDS,
    filters=FILTERS,
    from_row=build_media_item,
    to_json=serialize_media,
    to_columns=build_media_columns,
    order=newest_first,
    is_post=False,
    is_extension=True,
    after_update=after_media_update,
)

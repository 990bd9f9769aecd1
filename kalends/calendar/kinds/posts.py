"""What events, venues and organizers share: author, status, publication date, trash, search and images."""

import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any, LiteralString

import orjson

from kalends.accounts.storage import user_tables
from kalends.calendar.kinds.kind import (
    Columns,
    Filter,
    JsonObject,
    ListQuery,
    RenderContext,
    Values,
    WriteContext,
    no_condition,
    value_clause,
)
from kalends.calendar.kinds.terms import build_event_link_clause
from kalends.calendar.rules.record_types import Image, Post
from kalends.calendar.storage import record_tables
from kalends.core import date_forms, errors, params, times
from kalends.core.html_text import (
    SCHEME,
    find_image_ids,
    find_sources,
    has_references,
    replace_sources,
    resolve_references,
    to_paragraphs,
    to_plain_text,
)
from kalends.core.image_types import extract_file_name, make_key
from kalends.core.params import Param, param
from kalends.core.sanitize import MAX_SEARCH_LENGTH, clean_html, fold, has_trigram, like_pattern, read_search
from kalends.core.slugs import TRASHED_SUFFIX, make_slug
from kalends.core.statuses import resolve_status
from kalends.media import storage as media_storage
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql, and_

# Images as typed records and as JSON.

# Fields that describe an image to visitors.
DESCRIPTIVE_FIELDS = ("alt_text", "caption", "focus_x", "focus_y")


# In the order of the JSON. The worker adds `sizes` after an upload.
IMAGE_ATTRIBUTES = (
    *("url", "id", "extension", "width", "height", "filesize", "sizes", "alt_text", "caption", "focus_x", "focus_y"),
)
_get_image_columns = itemgetter(*IMAGE_ATTRIBUTES)
get_image_attributes = attrgetter(*IMAGE_ATTRIBUTES)


def build_image(values: Mapping[str, Any], context: RenderContext) -> Image:
    """Build an image from its columns; `sizes` is decoded JSON."""
    attributes = {
        **dict(zip(IMAGE_ATTRIBUTES, _get_image_columns(values), strict=True)),
        "url": build_file_url(values["url"], context),
        "sizes": build_sizes(values["sizes"], context),
        "hue": values["hue"],
    }
    return Image(**attributes)


def serialize_image(image: Image) -> JsonObject:
    """Serialize an image. `sizes` is missing until the worker has created the sizes."""
    record = dict(zip(IMAGE_ATTRIBUTES, get_image_attributes(image), strict=True))
    if not image.sizes:
        del record["sizes"]
    return record


def build_sizes(sizes: Mapping[str, Mapping[str, Any]], context: RenderContext) -> Mapping[str, JsonObject]:
    """Replace the file names in stored sizes with URLs."""
    return {name: _build_size(size, context) for name, size in sizes.items()}


def build_file_url(name: str, context: RenderContext) -> str:
    """Return the URL of a media library file, which is stored by name. Return any other URL unchanged."""
    return name if "/" in name else f"{context.media_url}/{make_key(context.site.id, name)}"


def _build_size(size: Mapping[str, Any], context: RenderContext) -> JsonObject:
    built = {**size, "url": build_file_url(size["url"], context)} if "url" in size else dict(size)
    if "webp" in size:
        built["webp"] = {**size["webp"], "url": build_file_url(size["webp"]["url"], context)}
    return built


# A post's image as JSON.
IMAGE_COLUMN: LiteralString = """CASE WHEN r.image_id IS NOT NULL THEN (
            SELECT jsonb_build_object('url', m.url, 'id', m.id, 'extension', m.extension, 'width', m.width,
                'height', m.height, 'filesize', m.filesize, 'sizes', m.sizes, 'alt_text', m.alt_text,
                'caption', m.caption, 'focus_x', m.focus_x, 'focus_y', m.focus_y, 'hue', m.hue)
            FROM media m WHERE m.site_id = r.site_id AND m.id = r.image_id) END"""

# JSON that maps the ID of each image in a post's texts to its file.
INLINE_IMAGES_COLUMN: LiteralString = """CASE WHEN r.inline_image_ids IS NOT NULL THEN (
            SELECT jsonb_object_agg(m.id, m.url)::text
            FROM media m WHERE m.site_id = r.site_id AND m.id = ANY(r.inline_image_ids)) END"""

# The columns that all posts have in common.
POST_COLUMNS = Columns(
    *("id", "revision", "author_id", "status", "trashed_status", "slug", "published_at", "modified_utc", "title"),
    *("description", "image_id"),
    computed={"image": IMAGE_COLUMN, "inline_images": INLINE_IMAGES_COLUMN},
)

DESCRIPTION = param("description", params.text(clean_html), "The description")


def post_fields() -> tuple[Param, ...]:
    return (
        param("author", params.integer(minimum=1), "The author ID"),
        param("date", params.DATE_TIME, "The publication date, in the site's time zone"),
        param("date_utc", params.DATE_TIME, "The publication date in UTC"),
        param("status", params.STATUS, "The post status"),
        param(
            "image", params.IMAGE, "The featured image: ID of an image in the media library, or URL to fetch it from"
        ),
    )


def build_post_image(row: Row, context: RenderContext) -> Image | None:
    return build_image(orjson.loads(row["image"]), context) if row["image"] else None


def build_html(row: Row, column: str, context: RenderContext) -> str:
    """Return a text column as HTML paragraphs, with image references replaced by URLs."""
    text: str = row[column]
    if has_references(text):
        files = orjson.loads(row.get("inline_images") or "{}")
        text = resolve_references(text, {int(entry): build_file_url(files[entry], context) for entry in files})
    return to_paragraphs(text)


def build_post(row: Row, context: RenderContext, collection: str) -> dict[str, Any]:
    """Return the attributes that all typed posts share."""
    return {
        "id": row["id"],
        "author": row["author_id"],
        "status": row["status"],
        "date_utc": row["published_at"],
        "modified_utc": row["modified_utc"],
        "slug": row["slug"],
        "url": build_post_url(row, context, collection),
        "description": build_html(row, "description", context),
        "image": build_image(orjson.loads(row["image"]), context) if row["image"] else None,
    }


def build_post_url(row: Row, context: RenderContext, collection: str) -> str:
    """Return the URL of the public page, or a permanent link by ID if there is no page."""
    has_page = row["slug"] and row["status"] in ("publish", "private")
    return f"{context.base_url}/{collection}/{row['slug']}/" if has_page else f"{context.base_url}/?p={row['id']}"


def serialize_post(post: Post, context: RenderContext) -> JsonObject:
    """Serialize the first fields of every post's JSON."""
    site, host = context.site, _extract_host(context.base_url)
    zone, global_id = site.timezone, f"{host}?id={post.id}"
    lineage = [global_id]
    if post.id <= site.former_last_id and site.former_host != host:
        lineage.append(f"{site.former_host}?id={post.id}")
    return {
        "id": post.id,
        "global_id": global_id,
        "global_id_lineage": lineage,
        "author": str(post.author),
        "status": post.status,
        "date": times.format_datetime(times.in_zone(post.date_utc, zone)),
        "date_utc": times.format_datetime(post.date_utc),
        "modified": times.format_datetime(times.in_zone(post.modified_utc, zone)),
        "modified_utc": times.format_datetime(post.modified_utc),
        "url": post.url,
    }


@lru_cache(maxsize=256)  # limited, because hosts come from requests
def _extract_host(base_url: str) -> str:
    return base_url.partition("://")[2].partition("/")[0].partition(":")[0]


async def build_post_columns(
    context: WriteContext, table: LiteralString, title: str, *, allow_empty_slug: bool = False
) -> Values:
    """Build the columns that all posts share.

    `title` is the parameter for the record's title or name. `allow_empty_slug` permits a draft without a slug.
    """
    arguments, row, tx = context.arguments, context.row, context.transaction
    values: Values = {}
    if title in arguments:
        values["title"] = arguments[title]
    if "description" in arguments:
        values["description"] = await refer_to_images(tx, arguments["description"])
    if "author" in arguments or row is None:
        values["author_id"] = await _resolve_author(context)
    if "image" in arguments:
        values["image_id"] = await _resolve_image(context)
    _set_status(context, values)
    if row is None or "status" in values or arguments.get("slug"):
        await _set_slug(context, table, values, allow_empty_slug=allow_empty_slug)
    if row is None:
        values["modified_utc"] = tx.now
    return values


async def refer_to_images(tx: Transaction, html: str) -> str:
    """Replace image URLs in sanitized HTML with media library references where possible; drop unknown references.

    A client that writes back what it has read sends file URLs, which become references again.
    """
    sources = find_sources(html)
    if not sources:
        return html
    ids = await record_tables.find_existing_ids(tx, "media", find_image_ids(html))
    known = {f"{SCHEME}:{media_id}" for media_id in ids}
    names = {source: name for source in sources if (name := extract_file_name(source))}
    by_name = await media_storage.find_by_files(tx, set(names.values()))

    def refer(source: str) -> str | None:
        if source.startswith(f"{SCHEME}:"):
            return source if source in known else None
        media_id = by_name.get(names.get(source, ""))
        return source if media_id is None else f"{SCHEME}:{media_id}"

    return replace_sources(html, refer)


async def _resolve_author(context: WriteContext) -> int:
    author_id: int = context.arguments.get("author", context.user_id)
    if author_id != context.user_id and not await user_tables.has_user(context.transaction, author_id):
        raise errors.invalid("author", "there is no user {id}.", id=author_id)
    return author_id


async def _resolve_image(context: WriteContext) -> int | None:
    """Return the ID of an existing image. The caller has already replaced URLs with IDs."""
    image_id: int | None = context.arguments["image"]
    if image_id is not None and not await record_tables.find_existing_ids(context.transaction, "media", [image_id]):
        raise errors.invalid("image", "there is no image {image} in the media library.", image=image_id)
    return image_id


def _set_status(context: WriteContext, values: Values) -> None:
    status, published_at = resolve_publication(context)
    row = context.row
    if row is None or "date" in context.arguments or "date_utc" in context.arguments:
        values["published_at"] = published_at
    if row is None or status != row["status"]:
        values["status"] = status


def resolve_publication(context: WriteContext) -> tuple[str, datetime]:
    """Return the status and publication date after a write. The date decides between `publish` and `future`."""
    arguments, row, tx = context.arguments, context.row, context.transaction
    published_at: datetime = row["published_at"] if row else tx.now
    has_date = "date_utc" in arguments or "date" in arguments
    if "date_utc" in arguments:
        published_at = _read_publication_date(context, "date_utc", "UTC")
    elif "date" in arguments:
        published_at = _read_publication_date(context, "date", context.site.timezone)
    requested: str | None = arguments.get("status")
    if row is None:
        requested = requested or ("publish" if context.may_publish else "draft")
        if requested == "trash":
            raise errors.invalid("status", "must not be trash for a new record.")
    elif requested is None:
        # Without a status in the request, the status changes only if a new date publishes or schedules the record.
        requested = str(row["status"])
        if requested not in ("publish", "future") or not has_date:
            return requested, published_at
    status = resolve_status(requested, may_publish=context.may_publish, published_at=published_at, now=tx.now)
    return status, published_at


def _read_publication_date(context: WriteContext, name: str, zone: str) -> datetime:
    """Return the instant. Raise unless its year can be represented in every time zone."""
    try:
        instant = times.to_utc(date_forms.make_absolute(context.arguments[name], context.transaction.now, zone), zone)
    except errors.InvalidValue as error:
        raise errors.invalid_params({name: errors.for_param(name, error.message)}) from error
    if not 1 < instant.year < times.LAST_YEAR:
        raise errors.invalid(name, "must be a date between the years 1 and {last}.", last=times.LAST_YEAR)
    return instant


async def _set_slug(context: WriteContext, table: LiteralString, values: Values, *, allow_empty_slug: bool) -> None:
    row, arguments, tx = context.row, context.arguments, context.transaction
    status = values.get("status", row["status"] if row else None)
    slug = strip_trashed_suffix(row["slug"]) if row and row["status"] == "trash" else row["slug"] if row else ""
    new_slug = arguments.get("slug") or slug
    if not new_slug and not (allow_empty_slug and status in ("draft", "pending", "trash")):
        title = str(values.get("title", row["title"] if row else ""))
        new_slug = make_slug(title) or str(context.record_id)
    if new_slug and status == "trash":
        new_slug += TRASHED_SUFFIX
    if row is not None:
        values.update(trash_columns(row, str(status), tx.now))
    if row is None or new_slug != row["slug"]:
        values["slug"] = (
            await record_tables.find_free_slug(tx, table, new_slug, context.record_id) if new_slug else ""
        )


def plan_status(row: Row, status: str, now: datetime) -> Values:
    """Return the columns that change with a new status. A new slug may already be in use."""
    columns: Values = {"status": status, **trash_columns(row, status, now)}
    if row["slug"] and "trashed_at" in columns:
        columns["slug"] = row["slug"] + TRASHED_SUFFIX if status == "trash" else strip_trashed_suffix(row["slug"])
    return columns


def trash_columns(row: Row, status: str, now: datetime) -> Values:
    """Return the columns that change when a record moves to or from the trash."""
    if (status == "trash") == (row["status"] == "trash"):
        return {}
    if status == "trash":
        return {"trashed_status": row["status"], "trashed_at": now}
    return {"trashed_status": "", "trashed_at": None}


def strip_trashed_suffix(slug: str) -> str:
    """Return a trashed record's original slug."""
    return re.sub(TRASHED_SUFFIX + r"(-\d+)?$", "", slug)


# Lists ---------------------------------------------------------------------------------------


def newest_first(_: ListQuery) -> Sql:
    return Sql("r.published_at DESC, r.id DESC")


def search_clause(value: str) -> Sql:
    """Match records whose text contains all words but no excluded word. The text and the words are folded alike."""
    words = read_search(value)
    return and_(
        [
            *[_word_clause(word) for word in words.required],
            *[Sql("r.search_text NOT LIKE ?", like_pattern(word)) for word in words.excluded],
        ]
    )


def _word_clause(word: str) -> Sql:
    """Match a word, using the trigram index only if the word has three consecutive letters.

    For other words, PostgreSQL would cache a generic plan that reads the whole index, which takes ten times as long
    as reading the rows.
    """
    if has_trigram(word):
        return Sql("r.search_text LIKE ?", like_pattern(word))
    return Sql("r.search_text || '' LIKE ?", like_pattern(word))


def _clean_search(value: str, limit: int = MAX_SEARCH_LENGTH) -> str:
    read_search(value, limit)
    return value.strip()


SEARCH = params.text(_clean_search, allow_empty=False)


def linked_filters(link_table: LiteralString, column: LiteralString) -> tuple[Filter, ...]:
    """Return the list parameters for venues or organizers."""

    async def linked_to_event(event_id: int, query: ListQuery) -> Sql:
        return await build_event_link_clause(event_id, query, "event", link_table, column)

    async def has_events(value: bool, query: ListQuery) -> Sql:
        condition = Sql(
            "EXISTS (SELECT FROM "
            + link_table
            + " l WHERE l.site_id = ? AND l."
            + column
            + " = r.id AND l.published)",
            query.site.id,
        )
        return condition if value else Sql("NOT") + condition

    async def only_with_upcoming(value: bool, query: ListQuery) -> Sql:
        if not value:
            return Sql("")
        return Sql(
            "EXISTS (SELECT FROM " + link_table + " l WHERE l.site_id = ? AND l." + column
            + " = r.id AND l.published AND l.start_utc >= ?)",
            query.site.id,
            query.transaction.now,
        )  # fmt: skip

    return (
        Filter(
            param(
                "search", SEARCH, "Search words; each must occur in the name, the description or another text field"
            ),
            value_clause(search_clause),
        ),
        Filter(param("event", params.integer(minimum=1), "Related to the event with this ID"), linked_to_event),
        Filter(
            param("has_events", params.BOOLEAN, "Only records with published events; false: only records without"),
            has_events,
        ),
        Filter(
            param("only_with_upcoming", params.BOOLEAN, "Only records with upcoming events", default=False),
            only_with_upcoming,
        ),
        Filter(param("status", params.STATUS_LIST, "The post status"), no_condition),
    )


def omit_empty(record: JsonObject) -> JsonObject:
    """Remove empty fields, as in the JSON of venues and organizers."""
    return {key: value for key, value in record.items() if value != "" and value is not None}


def merge_value(values: Values, row: Row | None, column: LiteralString) -> Any:
    """Return the value of a column after the write."""
    return values[column] if column in values else row[column] if row is not None else ""


def build_search_text(
    values: Values, row: Row | None, html: tuple[LiteralString, ...], plain: tuple[LiteralString, ...] = ()
) -> str:
    """Build the search text from HTML columns and plain text columns."""
    texts = [to_plain_text(str(merge_value(values, row, column))) for column in html]
    texts += [str(merge_value(values, row, column)) for column in plain]
    return "\n".join(fold(text) for text in texts if text)


def expires_at_next_start(query: ListQuery) -> datetime | None:
    """Prevent caching with `only_with_upcoming`, because the result changes whenever an event starts."""
    return query.transaction.now if query.values.get("only_with_upcoming") else None

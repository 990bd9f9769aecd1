"""Image records, for uploads and for images that other records reference by URL."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.access.permissions import count_new_record
from kalends.calendar.kinds.kind import Values
from kalends.calendar.kinds.media_kind import TEXTS, after_media_update
from kalends.calendar.storage import record_tables
from kalends.core import errors
from kalends.core.errors import InvalidValue
from kalends.core.image_types import FULL, extract_file_name
from kalends.core.sanitize import clean_plain, fold
from kalends.media import storage as media_storage
from kalends.media.adapters.library import FetchResult, Library, StoredImage
from kalends.store import Row, job_queue
from kalends.store.change_log import encode_columns
from kalends.store.database import Transaction

# How long to wait before fetching a source again.
FRESH_PERIOD: Final = timedelta(hours=1)
MAX_TITLE_LENGTH: Final = 200


@dataclass(frozen=True, slots=True)
class PendingFetch:
    """A URL to fetch, with the validators of the last response from this URL."""

    url: str
    etag: str = ""
    last_modified: str = ""


async def find_unfetched(tx: Transaction, urls: Sequence[str]) -> list[PendingFetch]:
    """Return the image URLs to fetch before a record can reference them."""
    pending: list[PendingFetch] = []
    for url in dict.fromkeys(urls):
        if await _find_existing(tx, url) is not None:
            continue
        row = await media_storage.find_by_source(tx, _hash_url(url))
        if row is None:
            pending.append(PendingFetch(url))
        elif row["fetched_at"] is None or row["fetched_at"] < tx.now - FRESH_PERIOD:
            pending.append(PendingFetch(url, row["source_etag"], row["source_last_modified"]))
    return pending


async def resolve_image_url(context: OperationContext, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments with an image ID instead of an image URL. Each URL identifies one image."""
    url = arguments.get("image")
    if not isinstance(url, str):
        return arguments
    if not permissions.may_publish(context.actor):
        raise errors.invalid("image", "must be an image ID; image URLs require the right to publish.")
    return {**arguments, "image": await _find_or_add(context, url)}


async def add_image(
    tx: Transaction,
    library: Library,
    image: StoredImage,
    *,
    user_id: int | None,
    arguments: Mapping[str, Any] | None = None,
    source: Values | None = None,
    media_id: int | None = None,
) -> int:
    """Add the record for a stored file. `source` holds the origin columns if it was fetched or imported.

    An import may pass an ID, which must be free.
    """
    arguments = arguments or {}
    if not await library.has_files(tx.site.id, [image.name]):
        # The file had been an orphan for a day and has just been deleted.
        raise errors.unavailable()
    media_id = tx.changes.take_post_id(media_id)
    texts: dict[str, str] = {name: arguments.get(name, "") for name in TEXTS}
    texts["title"] = texts["title"] or _build_title(image.title)
    values: Values = {
        **_build_columns(image),
        "title": texts["title"],
        "alt_text": texts["alt_text"],
        "caption": texts["caption"],
        "search_text": "\n".join(fold(text) for text in texts.values() if text),
        "focus_x": arguments.get("focus_x", 0.5),
        "focus_y": arguments.get("focus_y", 0.5),
        "author_id": user_id,
        "added_at": tx.now,
        "modified_utc": tx.now,
    }
    revision = tx.changes.record(
        "media", media_id, "create", after=encode_columns({"title": texts["title"], "url": image.name})
    )
    await record_tables.add(tx, "media", {"id": media_id, "revision": revision, **values, **(source or {})})
    await media_storage.replace_files(tx, media_id, [(image.name, FULL)])
    await job_queue.enqueue(tx, job_queue.Task.MAKE_SIZES, {"media_id": media_id})
    return media_id


async def _find_existing(tx: Transaction, url: str) -> int | None:
    """Find the image for a URL without fetching the URL: a library file, or an image kept on another server."""
    name = extract_file_name(url)
    media_id = await media_storage.find_by_file(tx, name) if name else None
    return media_id if media_id is not None else await media_storage.find_by_url(tx, url)


async def _find_or_add(context: OperationContext, url: str) -> int:
    tx, fetched = context.transaction, context.fetched_images.get(url)
    existing_id = await _find_existing(tx, url)
    if existing_id is not None:
        return existing_id
    row = await media_storage.find_by_source(tx, _hash_url(url))
    if row is not None:
        if isinstance(fetched, FetchResult):
            await _refresh_image(context, row, fetched)
        elif isinstance(fetched, InvalidValue):
            # If the source is unavailable, keep the image from the last fetch, and do not try again on every write.
            await media_storage.record_fetch(tx, row["id"], row["source_etag"], row["source_last_modified"])
        media_id: int = row["id"]
        return media_id
    if isinstance(fetched, InvalidValue):
        raise errors.invalid_params({"image": errors.for_param("image", fetched.message)})
    if fetched is None or fetched.image is None or context.library is None:
        raise errors.invalid("image", "there is no image {image} in the media library.", image=url)
    await count_new_record(context)
    return await add_image(
        tx,
        context.library,
        fetched.image,
        user_id=context.actor.user_id,
        source={
            "source_url": url,
            "source_hash": _hash_url(url),
            "source_etag": fetched.etag,
            "source_last_modified": fetched.last_modified,
            "fetched_at": tx.now,
        },
    )


async def _refresh_image(context: OperationContext, row: Row, fetched: FetchResult) -> None:
    """Store the result of a repeated fetch. If the image is different, it replaces the old one under the same ID."""
    tx, image = context.transaction, fetched.image
    await media_storage.record_fetch(tx, row["id"], fetched.etag, fetched.last_modified)
    if image is None or image.name == row["url"]:
        return
    if context.library is None:
        raise errors.unavailable()
    await replace_image(tx, context.library, row, image)


async def replace_image(tx: Transaction, library: Library, row: Row, image: StoredImage) -> None:
    """Replace an image's file but keep the image's ID; do nothing if the file is the same."""
    if image.name == row["url"]:
        return
    if not await library.has_files(tx.site.id, [image.name]):
        raise errors.unavailable()
    revision = tx.changes.record("media", row["id"], "update", before=encode_columns({"url": row["url"]}))
    changed: Values = {
        **_build_columns(image),
        "sizes": "{}",
        "hue": None,
        "revision": revision,
        "modified_utc": tx.now,
    }
    await record_tables.change(tx, "media", row["id"], changed)
    await media_storage.replace_files(tx, row["id"], [(image.name, FULL)])
    await after_media_update(tx, row, changed)


def _build_columns(image: StoredImage) -> Values:
    return {
        "url": image.name,
        "extension": image.kind.extension,
        "mime_type": image.kind.mime,
        "width": image.width,
        "height": image.height,
        "filesize": image.filesize,
        "upload_sha256": image.upload_sha256,
    }


def _hash_url(url: str) -> bytes:
    return hashlib.sha256(url.encode()).digest()


def _build_title(file_name: str) -> str:
    """Derive a title from a file name; "" if the name is unusable, because this must not prevent adding the image."""
    stem = file_name.replace("\\", "/").rpartition("/")[2].rpartition(".")
    try:
        return clean_plain((stem[0] or stem[2])[:MAX_TITLE_LENGTH], MAX_TITLE_LENGTH)
    except InvalidValue:
        return ""

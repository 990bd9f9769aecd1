"""Creates and deletes images. Unlike other records, images need extra steps for their files."""

import asyncio
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kalends.accounts.operations.user_accounts import require_user
from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.access.permissions import count_new_record
from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.kinds.media_kind import MEDIA, build_media_item
from kalends.calendar.operations.record_verbs import fetch_editable_row, read_outcome
from kalends.calendar.operations.writes import remove_record
from kalends.calendar.rules.record_types import MediaItem
from kalends.core import errors, params
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.params import param
from kalends.core.times import utc_now
from kalends.media import storage as media_storage
from kalends.media.adapters.library import Library, hash_file
from kalends.media.images import add_image
from kalends.store import Row
from kalends.store.site_database import SiteDatabase
from kalends.store.sql import Sql

# Maximum number of records listed in the error about an image in use.
MAX_NAMED_RECORDS: Final = 20
FORCE: Final = param(
    "force", params.BOOLEAN, "Remove the image from the records that use it, and delete it", default=False
)


async def create_media(kind: Kind, context: OperationContext) -> Outcome:
    """Create the record for an uploaded file that is already stored."""
    permissions.require_writer(context.actor, kind)
    if context.upload is None or context.library is None:
        raise errors.missing_params(["file"])
    await count_new_record(context)
    media_id = await add_image(
        context.transaction, context.library, context.upload, user_id=context.actor.user_id, arguments=context.values
    )
    return await read_outcome(kind, context, media_id, status=201)


async def read_images(context: OperationContext, image_ids: Sequence[int]) -> list[tuple[MediaItem, Row]]:
    if not image_ids:
        return []
    tx = context.transaction
    rows = await tx.fetch_all(MEDIA.select(Sql("r.site_id = ? AND r.id = ANY(?)", tx.site.id, list(image_ids))))
    return [(build_media_item(row, context.render_context), row) for row in rows]


@dataclass(frozen=True, slots=True)
class Usage:
    """A record that uses an image and is readable by the caller."""

    kind: Kind
    row: Row


async def find_usages(context: OperationContext, media_id: int) -> tuple[list[Usage], int]:
    """Return the readable records that use an image, and the number of other records that use it.

    The search stops at `MAX_NAMED_RECORDS` records per kind.
    """
    tx, readable = context.transaction, permissions.readable_condition(context.actor)
    usages: list[Usage] = []
    for name, _ in media_storage.REFERENCING_TABLES:
        kind = BY_NAME[name]
        uses_image = Sql("r.site_id = ? AND", tx.site.id) + media_storage.uses_image(name, media_id)
        condition = uses_image + Sql("AND") + readable
        order = Sql("ORDER BY r.modified_utc DESC LIMIT ?", MAX_NAMED_RECORDS)
        usages += [Usage(kind, row) for row in await tx.fetch_all(kind.select(condition + order))]
    references = await media_storage.find_references(tx, media_id, MAX_NAMED_RECORDS)
    return usages, len(references) - len(usages)


async def delete_media(kind: Kind, context: OperationContext) -> Outcome:
    """Delete an image permanently. Raise ApiError if records use it, unless `force` removes it from them."""
    tx = context.transaction
    row = await fetch_editable_row(kind, context)
    outcome = await read_outcome(kind, context, row["id"])
    usages = await media_storage.find_references(tx, row["id"], MAX_NAMED_RECORDS)
    if usages and not context.values.get("force"):
        raise errors.in_use([{"kind": name, "id": record_id} for name, record_id in usages[:MAX_NAMED_RECORDS]])
    for name in dict.fromkeys(name for name, _ in usages):
        condition = Sql("r.site_id = ? AND", tx.site.id) + media_storage.uses_image(name, row["id"])
        rows = await tx.fetch_all(BY_NAME[name].select(condition))
        for using_row in rows:
            permissions.require_edit(context.actor, BY_NAME[name], using_row)
    await media_storage.detach_image(tx, row["id"])
    await media_storage.replace_files(tx, row["id"], [])
    await remove_record(kind, tx, row)
    return outcome


# Adding many images from local files ------------------------------------------------------------

# Slightly more than the number of image workers, so file I/O overlaps with decoding.
CONCURRENCY: Final = (os.cpu_count() or 1) + 2


@dataclass(slots=True)
class BulkAddResult:
    added: int = 0
    existing: int = 0
    rejected: list[tuple[Path, str]] = field(default_factory=list[tuple[Path, str]])


async def add_files(
    database: SiteDatabase,
    library: Library,
    paths: Sequence[Path],
    *,
    site: str | int,
    login: str,
    on_progress: Callable[[int], None],
) -> BulkAddResult:
    """Add each image in a separate transaction, so an interrupted run can be repeated."""
    async with database.transaction(site, utc_now(), writing=False) as tx:
        user_id, site_id = await require_user(tx, login), tx.site.id
    result = BulkAddResult()
    remaining = iter(paths)
    done = 0

    async def process_files() -> None:
        nonlocal done
        for path in remaining:
            try:
                is_new = await _add_file(database, library, site_id, user_id, path)
            except (InvalidValue, ApiError) as error:
                result.rejected.append((path, error.text))
            except OSError as error:  # Reading the local file failed; storage errors are ApiErrors.
                result.rejected.append((path, error.strerror or str(error)))
            else:
                result.added += is_new
                result.existing += not is_new
            done += 1
            on_progress(done)

    async with asyncio.TaskGroup() as group:
        for _ in range(CONCURRENCY):
            group.create_task(process_files())
    return result


async def _add_file(database: SiteDatabase, library: Library, site_id: int, user_id: int, path: Path) -> bool:
    """Add an image; return whether it is new."""
    upload_sha256, size = await asyncio.to_thread(lambda: (hash_file(path), path.stat().st_size))
    if size > library.max_bytes:
        raise InvalidValue("exceeds {limit} bytes.", limit=library.max_bytes)
    async with database.transaction(site_id, utc_now(), writing=False) as tx:
        if await media_storage.find_by_upload(tx, upload_sha256) is not None:
            return False
    async with library.open_work_directory() as directory:
        copy = directory / "sent"
        await asyncio.to_thread(shutil.copyfile, path, copy)
        image = await library.store_image(site_id, copy, title=path.name)
        async with database.transaction(site_id, utc_now(), writing=True) as tx:
            await tx.lock_site(user_id)
            if await media_storage.find_by_upload(tx, image.upload_sha256) is not None:
                return False
            await add_image(tx, library, image, user_id=user_id)
    return True

"""Adding many images from local files."""

import asyncio
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kalends.core.clock import utc_now
from kalends.core.errors import ApiError, InvalidValue
from kalends.operations.accounts import require_user
from kalends.operations.media.images import add_image
from kalends.operations.media.library import Library, hash_file
from kalends.store import media
from kalends.store.site_database import SiteDatabase

# A few more than the number of image workers, so that reading and writing files overlaps with decoding.
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
    """Add images, each in a separate transaction, so that an interrupted run can be repeated."""
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
            except OSError as error:  # Reading the local file failed; errors of the storage are ApiErrors.
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
        if await media.find_by_upload(tx, upload_sha256) is not None:
            return False
    async with library.open_work_directory() as directory:
        copy = directory / "sent"
        await asyncio.to_thread(shutil.copyfile, path, copy)
        image = await library.store_image(site_id, copy, title=path.name)
        async with database.transaction(site_id, utc_now(), writing=True) as tx:
            await tx.lock_site(user_id)
            if await media.find_by_upload(tx, image.upload_sha256) is not None:
                return False
            await add_image(tx, library, image, user_id=user_id)
    return True

"""Image file maintenance: generating sizes, removing orphans, verifying content."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby, islice
from typing import Final

import orjson

from kalends.calendar.kinds.media_kind import MEDIA
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.image_types import read_key
from kalends.media import storage as media_storage
from kalends.media.adapters.file_store import StoredFile, remove_old_work
from kalends.media.adapters.library import Library, MissingFile
from kalends.store import Row, job_queue
from kalends.store.database import Database
from kalends.store.site_database import SiteDatabase

# Grace period for unreferenced files: an upload may be about to insert its record.
ORPHAN_GRACE_PERIOD: Final = timedelta(days=1)
PAGE_SIZE: Final = 100


async def make_sizes(database: SiteDatabase, library: Library, now: datetime, site_id: int, media_id: int) -> bool:
    """Generate an image's sizes and hue and store them in its record, unless the image changes in the meantime."""
    async with database.transaction(site_id, now, writing=False) as tx:
        image = await MEDIA.fetch(tx, media_id)
    if image is None or "/" in image["url"]:
        return False
    image_sizes = await library.make_sizes(site_id, dict(image))
    async with database.transaction(site_id, now, writing=True) as tx:
        await tx.lock_site(None)
        row = await MEDIA.fetch(tx, media_id)
        if row is None or any(row[name] != image[name] for name in ("url", "focus_x", "focus_y")):
            return False  # The change has enqueued another job.
        if not await library.has_files(site_id, [name for name, _ in image_sizes.files]):
            raise MissingFile("a size vanished while it was made")
        await media_storage.replace_files(tx, media_id, image_sizes.files)
        if (orjson.loads(row["sizes"]), row["hue"]) != (image_sizes.sizes, image_sizes.hue):
            sizes = orjson.dumps(image_sizes.sizes).decode()
            await media_storage.write_sizes(tx, media_id, sizes, image_sizes.hue)
    return True


async def collect_orphans(database: Database, library: Library, now: datetime) -> int:
    """Remove files that no record has referenced for a day; return how many were removed."""
    cutoff = now - ORPHAN_GRACE_PERIOD
    await asyncio.to_thread(remove_old_work, library.root, cutoff)
    all_files, removed = library.files.iter_files(), 0
    while batch := await asyncio.to_thread(lambda: list(islice(all_files, PAGE_SIZE))):
        old = [file for file in batch if file.modified < cutoff]
        for site_id, files in groupby(old, key=_read_site_id):
            names = [file.key.rpartition("/")[2] for file in files]
            # Skip sites that are in other databases, because their files are in use there.
            with job_queue.skipping_unknown_sites():
                removed += await _remove_orphans(database, library, site_id, names, now)
    return removed


def _read_site_id(file: StoredFile) -> int:
    parsed = read_key(file.key)
    if parsed is None:
        raise AssertionError(f"not a key: {file.key}")
    return parsed[0]


async def _remove_orphans(
    database: SiteDatabase, library: Library, site_id: int, names: list[str], now: datetime
) -> int:
    cutoff = now - ORPHAN_GRACE_PERIOD
    async with database.transaction(site_id, now, writing=False) as tx:
        orphans = await media_storage.find_orphans(tx, names, cutoff)
    # A file that has just been stored again is about to get a record.
    orphans = [name for name in orphans if await library.is_older(site_id, name, cutoff)]
    if not orphans:
        return 0
    async with database.transaction(site_id, now, writing=True) as tx:
        await tx.lock_site(None)
        marked = await media_storage.mark_for_deletion(tx, orphans, cutoff)
    removed: list[str] = []
    started = time.monotonic()
    for name in marked:
        if time.monotonic() - started > media_storage.DELETION_TIMEOUT.total_seconds() / 2:
            break  # The marks expire soon; the next run removes the rest.
        await library.remove(site_id, name)
        removed.append(name)
    async with database.transaction(site_id, now, writing=True) as tx:
        await tx.lock_site(None)
        await media_storage.forget(tx, removed)
    return len(removed)


# Verification ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ImageCheck:
    """The result of checking one image. `detail` describes the repair, or why the image is incomplete."""

    media_id: int
    file_count: int
    damaged_files: tuple[str, ...]
    is_complete: bool
    detail: str = ""


async def check_media(
    database: SiteDatabase, library: Library, site: str | int, now: datetime
) -> AsyncIterator[ImageCheck]:
    """Check that each file exists and matches the hash in its name; regenerate damaged and missing sizes and hues."""
    after = 0
    while True:
        async with database.transaction(site, now, writing=False) as tx:
            rows, site_id = await media_storage.list_files(tx, after, PAGE_SIZE), tx.site.id
        if not rows:
            return
        for row in rows:
            yield await _check_image(database, library, site_id, row, now)
        after = rows[-1]["id"]


async def _check_image(database: SiteDatabase, library: Library, site_id: int, row: Row, now: datetime) -> ImageCheck:
    names = sorted({*row["names"], row["url"]})
    damaged_files = tuple([name for name in names if not await _is_intact(library, site_id, name)])
    report = partial(ImageCheck, row["id"], len(names), damaged_files)
    if not damaged_files and row["has_sizes"] and row["has_hue"]:
        return report(is_complete=True)
    if row["url"] in damaged_files:
        return report(is_complete=False, detail="the original image is missing")
    try:
        is_repaired = await make_sizes(database, library, now, site_id, row["id"])
    except (InvalidValue, ApiError, MissingFile) as error:
        # An InvalidValue message is a predicate without a subject.
        detail = f"the original image {error}" if isinstance(error, InvalidValue) else str(error)
        return report(is_complete=False, detail=detail)
    if not is_repaired:
        return report(is_complete=False, detail="the image changed during the check")
    if damaged_files or not row["has_sizes"]:
        return report(is_complete=True, detail="regenerated" if damaged_files else "missing sizes were generated")
    return report(is_complete=True)  # Only the hue was unknown.


async def _is_intact(library: Library, site_id: int, name: str) -> bool:
    """Return whether a file's content is intact. An unreadable file counts as damaged and does not stop the check."""
    try:
        content = await library.read(site_id, name)
    except ApiError:
        return False
    return content is not None and hashlib.sha256(content).hexdigest() == name.partition(".")[0]

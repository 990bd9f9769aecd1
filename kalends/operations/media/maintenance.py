"""Looks after the files of images: makes their sizes, removes what nobody needs, checks what is there."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, islice
from typing import Final

import orjson

from kalends.adapters.file_store import StoredFile, remove_old_work
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.image_types import read_key
from kalends.kinds.media import MEDIA
from kalends.operations.media.library import Library, Lost
from kalends.operations.writes import write_changes
from kalends.store import Row, media, orphan_files
from kalends.store.database import Database, Transaction
from kalends.store.sql import Sql

# A file that no record needs is left alone for so long: somebody may be about to write the record.
ORPHANED_AFTER: Final = timedelta(days=1)
PAGE: Final = 100


async def make_sizes(database: Database, library: Library, now: datetime, site_id: int, media_id: int) -> bool:
    """Makes all sizes of an image and writes them down, unless it has become another one meanwhile."""
    async with database.transaction(site_id, now, writing=False) as tx:
        image = await _row(tx, media_id)
    if image is None or "/" in image["url"]:
        return False
    made = await library.make_sizes(site_id, dict(image))
    async with database.transaction(site_id, now, writing=True) as tx:
        await tx.lock_site(None)
        row = await _row(tx, media_id)
        if row is None or any(row[name] != image[name] for name in ("url", "focus_x", "focus_y")):
            return False  # Another job of its own follows that change.
        if not await library.has(site_id, [name for name, _ in made.files]):
            raise Lost("a size vanished while it was made")
        await media.replace_files(tx, media_id, made.files)
        if orjson.loads(row["sizes"]) != made.sizes:
            await write_changes(MEDIA, tx, row, {"sizes": orjson.dumps(made.sizes).decode()}, {})
    return True


async def collect_orphans(database: Database, library: Library, now: datetime) -> int:
    """Removes files that no record has needed for a day; the number of files."""
    cutoff = now - ORPHANED_AFTER
    await asyncio.to_thread(remove_old_work, library.root, cutoff)
    every, removed = library.files.iter_files(), 0
    while listed := await asyncio.to_thread(lambda: list(islice(every, PAGE))):
        old = [kept for kept in listed if kept.modified < cutoff]
        for site_id, files in groupby(old, key=_site_of):
            names = [kept.key.rpartition("/")[2] for kept in files]
            try:
                removed += await _remove_spare(database, library, site_id, names, now)
            except ApiError as refusal:
                # Files of a site that is not here are not ours to judge.
                if refusal.code != "rest_unknown_site":
                    raise
    return removed


async def _remove_spare(database: Database, library: Library, site_id: int, names: list[str], now: datetime) -> int:
    cutoff = now - ORPHANED_AFTER
    async with database.transaction(site_id, now, writing=False) as tx:
        spare = await orphan_files.find_orphans(tx, names, cutoff)
    # Who has put one again just now is about to write its record.
    spare = [name for name in spare if await library.is_older(site_id, name, cutoff)]
    if not spare:
        return 0
    async with database.transaction(site_id, now, writing=True) as tx:
        await tx.lock_site(None)
        doomed = await orphan_files.mark_for_deletion(tx, spare, cutoff)
    gone: list[str] = []
    began = time.monotonic()
    for name in doomed:
        if time.monotonic() - began > orphan_files.DELETION_TIMEOUT.total_seconds() / 2:
            break  # The names are free again soon; the rest is for the next time.
        await library.remove(site_id, name)
        gone.append(name)
    async with database.transaction(site_id, now, writing=True) as tx:
        await tx.lock_site(None)
        await orphan_files.forget(tx, gone)
    return len(gone)


def _site_of(kept: StoredFile) -> int:
    found = read_key(kept.key)
    if found is None:
        raise AssertionError(f"not a key: {kept.key}")
    return found[0]


# Checking -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found about one image: files in all, those that are wrong, whether it is whole now, and why not or
    what was done."""

    media_id: int
    files: int
    wrong: tuple[str, ...]
    whole: bool
    why: str = ""


async def count_images(tx: Transaction) -> int:
    return await media.count_media(tx)


async def check_media(database: Database, library: Library, site: str | int, now: datetime) -> AsyncIterator[Checked]:
    """Every file of every image is there and has the content that its name says; sizes are made again where not."""
    after = 0
    while True:
        async with database.transaction(site, now, writing=False) as tx:
            rows, site_id = await media.list_files(tx, after, PAGE), tx.site.id
        if not rows:
            return
        for row in rows:
            yield await _check(database, library, site_id, row, now)
        after = rows[-1]["id"]


async def _check(database: Database, library: Library, site_id: int, row: Row, now: datetime) -> Checked:
    names = sorted({*row["names"], row["url"]})
    wrong = tuple([name for name in names if not await _is_right(library, site_id, name)])
    if not wrong and row["has_sizes"]:
        return Checked(row["id"], len(names), wrong, whole=True)
    if row["url"] in wrong:
        return Checked(row["id"], len(names), wrong, whole=False, why="the image itself is lost")
    try:
        made = await make_sizes(database, library, now, site_id, row["id"])
    except (InvalidValue, ApiError, Lost) as problem:
        return Checked(row["id"], len(names), wrong, whole=False, why=str(problem))
    done = "made again" if wrong else "its sizes were missing and are made"
    return Checked(row["id"], len(names), wrong, whole=made, why=done if made else "it changed meanwhile")


async def _is_right(library: Library, site_id: int, name: str) -> bool:
    """One that cannot be read is as good as none, and the others can be looked at all the same."""
    try:
        content = await library.read(site_id, name)
    except ApiError:
        return False
    return content is not None and hashlib.sha256(content).hexdigest() == name.partition(".")[0]


async def _row(tx: Transaction, media_id: int) -> Row | None:
    return await tx.fetch_one(MEDIA.select(Sql("r.site_id = ? AND r.id = ?", tx.site.id, media_id)))

"""Looks after the files of images: makes their sizes, removes what nobody needs, checks what is there."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import batched, groupby
from typing import Final

import orjson
from asyncpg import Record

from kalends.core.errors import Invalid, Refusal
from kalends.core.pictures import key_of, read_key
from kalends.kinds.media import MEDIA
from kalends.operations.library import Library, Lost
from kalends.operations.writes import write_changes
from kalends.outside.files import Kept, remove_old_work
from kalends.store import media
from kalends.store.database import Database, Transaction
from kalends.store.sql import Sql

# A file that no record needs is left alone for so long: somebody may be about to write the record.
ORPHANED_AFTER: Final = timedelta(days=1)
# Files that are removed under one lock: other writers of the site wait.
IN_ONE_GO: Final = 50
PAGE: Final = 100


async def make_sizes(database: Database, library: Library, now: datetime, site_id: int, media_id: int) -> bool:
    """Makes all sizes of an image and writes them down, unless it has become another one meanwhile."""
    async with database.transaction(site_id, now, writing=False) as tx:
        image = await _row(tx, media_id)
    if image is None or "/" in image["url"]:
        return False
    made = await library.make_sizes(site_id, dict(image))
    async with database.transaction(site_id, now, writing=True) as tx:
        await tx.lock(None)
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
    old = await asyncio.to_thread(lambda: [kept for kept in library.files.every() if kept.modified < cutoff])
    removed = 0
    for site_id, files in groupby(sorted(old, key=_site_of), key=_site_of):
        for batch in batched(files, IN_ONE_GO):
            try:
                async with database.transaction(site_id, now, writing=True) as tx:
                    removed += await _remove_unneeded(tx, library, [kept.key for kept in batch], cutoff)
            except Refusal as refusal:
                if refusal.code != "rest_unknown_site":
                    raise
                break  # Files of a site that is not here are not ours to judge.
    return removed


async def _remove_unneeded(tx: Transaction, library: Library, keys: list[str], cutoff: datetime) -> int:
    """Under the lock of the site nobody writes a record. Who puts a file now, and writes its record when the
    lock is free, looks again whether the file is there (`add_image`)."""
    await tx.lock(None)
    names = {key: key.rpartition("/")[2] for key in keys}
    needed = await media.needed(tx, list(names.values()))
    removed = 0
    for key, name in names.items():
        if name in needed:
            continue
        modified = await asyncio.to_thread(library.files.modified, key)
        if modified is not None and modified < cutoff:
            await asyncio.to_thread(library.files.remove, key)
            removed += 1
    return removed


def _site_of(kept: Kept) -> int:
    found = read_key(kept.key)
    if found is None:
        raise AssertionError(f"not a key: {kept.key}")
    return found[0]


# Checking -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found about one image: files in all, those that are wrong, and whether it is whole now."""

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


async def _check(database: Database, library: Library, site_id: int, row: Record, now: datetime) -> Checked:
    wrong: list[str] = []
    for name in row["names"]:
        content = await library.read(site_id, name)
        if content is None or not _is_right(name, content):
            wrong.append(name)
    found = Checked(row["id"], len(row["names"]), tuple(wrong), whole=not wrong)
    if not wrong:
        return found
    if row["url"] in wrong:
        return Checked(row["id"], found.files, found.wrong, whole=False, why="the image itself is lost")
    for name in wrong:  # What is there in its place would be taken for it.
        await asyncio.to_thread(library.files.remove, key_of(site_id, name))
    try:
        made = await make_sizes(database, library, now, site_id, row["id"])
    except (Invalid, Refusal, Lost) as problem:
        return Checked(row["id"], found.files, found.wrong, whole=False, why=str(problem))
    return Checked(row["id"], found.files, found.wrong, whole=made, why="" if made else "it changed meanwhile")


def _is_right(name: str, content: bytes) -> bool:
    return hashlib.sha256(content).hexdigest() == name.partition(".")[0]


async def _row(tx: Transaction, media_id: int) -> Record | None:
    return await tx.row(MEDIA.select(Sql("r.site_id = ? AND r.id = ?", tx.site.id, media_id)))

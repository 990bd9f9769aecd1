"""Adds many images at once, from files of the machine."""

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
from kalends.operations.media.library import Library, hash_of
from kalends.store import media
from kalends.store.database import Database

# A few more than images are decoded at once, so that files are read and written meanwhile.
AT_ONCE: Final = (os.cpu_count() or 1) + 2


@dataclass(slots=True)
class Added:
    added: int = 0
    known: int = 0
    refused: list[tuple[Path, str]] = field(default_factory=list[tuple[Path, str]])


async def add_files(
    database: Database, library: Library, paths: Sequence[Path], *, site: str, login: str, told: Callable[[int], None]
) -> Added:
    """Each image in a transaction of its own: what is broken off can be begun again."""
    async with database.transaction(site, utc_now(), writing=False) as tx:
        user_id, site_id = await require_user(tx, login), tx.site.id
    outcome = Added()
    left = iter(paths)
    done = 0

    async def work() -> None:
        nonlocal done
        for path in left:
            try:
                added = await _add_file(database, library, site_id, user_id, path)
            except (InvalidValue, ApiError) as problem:
                outcome.refused.append((path, problem.text))
            except OSError as error:  # The file itself; what is wrong with the storage is a Refusal.
                outcome.refused.append((path, error.strerror or str(error)))
            else:
                outcome.added += added
                outcome.known += not added
            done += 1
            told(done)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())
    return outcome


async def _add_file(database: Database, library: Library, site_id: int, user_id: int, path: Path) -> bool:
    """Whether the image is new."""
    sent_hash, size = await asyncio.to_thread(lambda: (hash_of(path), path.stat().st_size))
    if size > library.limit:
        raise InvalidValue("the file has more than {limit} bytes.", limit=library.limit)
    async with database.transaction(site_id, utc_now(), writing=False) as tx:
        if await media.find_by_upload(tx, sent_hash) is not None:
            return False
    async with library.working() as directory:
        copy = directory / "sent"
        await asyncio.to_thread(shutil.copyfile, path, copy)
        taken = await library.take(site_id, copy, title=path.name)
        async with database.transaction(site_id, utc_now(), writing=True) as tx:
            await tx.lock_site(user_id)
            if await media.find_by_upload(tx, taken.sent_hash) is not None:
                return False
            await add_image(tx, library, taken, user_id=user_id)
    return True

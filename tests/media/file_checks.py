"""What lies in the directory of the library, compared with what the database says of it."""

import asyncio
import hashlib
import os
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import psycopg

from kalends.bootstrap import open_library
from kalends.core.times import utc_now
from kalends.media import jobs as media_jobs
from kalends.settings import read_settings
from kalends.store.database import Database, Options


def list_files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.glob("[0-9]*/??/*")}


def list_referenced_files(database_url: str) -> set[str]:
    with psycopg.connect(database_url) as connection:
        rows = connection.execute("SELECT site_id, name FROM media_files").fetchall()
    return {f"{site}/{name[:2]}/{name}" for site, name in rows}


def assert_no_lost_files(database_url: str, root: Path, acknowledged: Mapping[int, str]) -> None:
    """`acknowledged` are addresses of files by ID, as answers named them."""
    needed = list_referenced_files(database_url)
    with psycopg.connect(database_url) as connection:
        records = {
            number: f"{site}/{name[:2]}/{name}"
            for site, number, name in connection.execute("SELECT site_id, id, url FROM media").fetchall()
        }
    named = {number: url.partition("/media/")[2] for number, url in acknowledged.items()}
    assert named.items() <= records.items(), "an image that was acknowledged has no record"
    assert set(records.values()) <= needed, "a record does not say that it needs its file"
    assert needed <= list_files(root), "a record without its file"
    for key in needed:
        name = key.rpartition("/")[2].partition(".")[0]
        assert hashlib.sha256((root / key).read_bytes()).hexdigest() == name, "a file is not what its name says"


def delete_orphans(database_url: str, root: Path, days: float = 0) -> int:
    """Run the maintenance as if it were this many days later."""

    async def run() -> int:
        database = await Database.open(Options(url=database_url))
        try:
            library = open_library(read_settings(media_dir=str(root)))
            return await media_jobs.collect_orphans(database, library, utc_now() + timedelta(days=days))
        finally:
            await database.close()

    return asyncio.run(run())


def age_files(root: Path, days: float = 2) -> None:
    """Backdate all files by this many days."""
    modified_at = time.time() - days * 86400
    for path in [*(root / key for key in list_files(root)), *(root / "incoming").glob("*")]:
        os.utime(path, (modified_at, modified_at))

"""Writes all records of one site to an archive."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import orjson

from kalends import __version__
from kalends.adapters.site_archive_file import ArchiveWriter, create_archive
from kalends.operations.media.library import Library
from kalends.operations.site_archive.event_passwords import KEY, hide_hashes
from kalends.store.site_archive import SiteSnapshot, open_snapshot
from kalends.store.site_tables import Table, list_tables

FORMAT: Final = "kalends-site"
FORMAT_VERSION: Final = 1

ProgressCallback = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class ExportResult:
    rows: int
    files: int
    missing_files: tuple[str, ...]


async def export_site(
    database_url: str,
    library: Library,
    site_id: int,
    path: Path,
    *,
    accounts: bool,
    now: datetime,
    on_progress: ProgressCallback,
) -> ExportResult:
    """Write a site to a new file, as of one moment. Image files that are missing are named in the manifest."""
    async with open_snapshot(database_url, site_id) as snapshot:
        with create_archive(path, now) as archive:
            rows = await _write_tables(snapshot, archive, list_tables(accounts=accounts), on_progress)
            missing = await _write_images(snapshot, archive, library, on_progress)
            archive.finish(
                {
                    "format": FORMAT,
                    "format_version": FORMAT_VERSION,
                    "schema": snapshot.schema,
                    "version": __version__,
                    "exported_at": now.isoformat(timespec="seconds"),
                    "site": {
                        "id": snapshot.id,
                        "name": snapshot.name,
                        "hosts": snapshot.hosts,
                        "base_url": snapshot.base_url,
                    },
                    "accounts": accounts,
                    "missing_files": missing,
                }
            )
    return ExportResult(rows, archive.files, tuple(missing))


async def _write_tables(
    snapshot: SiteSnapshot, archive: ArchiveWriter, tables: tuple[Table, ...], on_progress: ProgressCallback
) -> int:
    total, done = sum([await snapshot.count_rows(table) for table in tables]), 0
    on_progress("rows", 0, total)
    for table in tables:
        with archive.open_table(table.name) as writer:
            async for text in snapshot.iterate_rows(table):
                row = orjson.loads(text)
                writer.add(hide_hashes(row) if KEY in text else row)
                done += 1
                if done % 1000 == 0:
                    on_progress("rows", done, total)
    on_progress("rows", done, total)
    return done


async def _write_images(
    snapshot: SiteSnapshot, archive: ArchiveWriter, library: Library, on_progress: ProgressCallback
) -> list[str]:
    """Write the image files; return the names of those that are missing."""
    missing: list[str] = []
    names = await snapshot.list_files()
    for done, name in enumerate(names, 1):
        content = await library.read(snapshot.id, name)
        if content is None:
            missing.append(name)
        else:
            archive.add_image(name, content)
        on_progress("image files", done, len(names))
    return missing

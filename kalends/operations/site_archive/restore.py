"""Stores an archive as a new site.

All rows are stored in one transaction, and the host names last, so nobody sees a part of the site. Image files are
stored before the commit and removed if there is none.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from itertools import batched
from pathlib import Path
from typing import Any, Final

import orjson

from kalends.adapters.image_worker import FileRefused
from kalends.adapters.site_archive_file import LIMITS, ArchiveReader, ArchiveRefused
from kalends.core.errors import InvalidArgument
from kalends.core.image_types import BY_EXTENSION
from kalends.core.messages import Message
from kalends.operations.media.library import Library
from kalends.operations.site_archive.manifest import Manifest, check_schema
from kalends.operations.site_archive.row_checks import RowChecker
from kalends.store.site_archive import SiteLoad, SitePlace, open_load, read_schema
from kalends.store.site_tables import SITES, Column, Table, list_tables

# A batch of rows ends at either of these.
BATCH_ROWS: Final = 1000
BATCH_BYTES: Final = 4 * 2**20
# Image files that one decoder process checks.
BATCH_IMAGES: Final = 8
# Host names of sites have no port.
MAX_HOST_LENGTH: Final = 253
_HOST: Final = re.compile(r"[a-z0-9_][a-z0-9_.-]*|\[[0-9a-f:.]{2,45}\]", re.ASCII | re.IGNORECASE)

ProgressCallback = Callable[[str, int, int], None]
# Chooses the database of a site with these hosts, and its ID if there is a directory.
FindPlace = Callable[[Sequence[str]], AbstractAsyncContextManager[SitePlace]]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How to import an archive. Without hosts the site keeps those of the archive and its base URL."""

    hosts: Sequence[str] = ()
    first_host: str = ""
    sanitize: bool = False


@dataclass(slots=True)
class ImportResult:
    site_id: int
    name: str
    hosts: tuple[str, ...]
    missing_files: int
    accounts: bool
    rows: dict[str, int] = field(default_factory=dict[str, int])
    files: int = 0


@dataclass(slots=True)
class _StoredFiles:
    """The image files that were stored for a site that does not exist yet."""

    library: Library
    site_id: int
    names: list[str] = field(default_factory=list[str])

    async def remove(self) -> None:
        for name in self.names:
            await self.library.remove(self.site_id, name)


async def import_site(
    find_place: FindPlace, library: Library, path: Path, options: ImportOptions, on_progress: ProgressCallback
) -> ImportResult:
    """Import an archive as a new site; raise ArchiveRefused or RowsRefused and leave nothing if it is not valid."""
    with ArchiveReader.open(path, LIMITS) as archive:
        manifest = Manifest.read(archive.manifest)
        hosts = _choose_hosts(manifest, options)
        stored: _StoredFiles | None = None
        is_complete = False
        try:
            async with find_place(hosts) as place:
                check_schema(manifest, await read_schema(place.database_url))
                async with open_load(place, hosts, options.first_host) as load:
                    stored = _StoredFiles(library, load.site_id)
                    result = ImportResult(
                        load.site_id, manifest.name, hosts, len(manifest.missing_files), manifest.accounts
                    )
                    loader = _Loader(archive, manifest, load, options, on_progress)
                    await loader.load_tables(result)
                    await load.correct_places()
                    await load.check_counters()
                    await loader.store_images(stored)
                    await load.enqueue_sizes()
                    await load.publish(hosts)
                    # An interrupted commit has an unknown outcome, so the files stay.
                    is_complete = True
        except BaseException:
            if stored is not None and not is_complete:
                await stored.remove()
            raise
    result.files = len(stored.names)
    return result


def _choose_hosts(manifest: Manifest, options: ImportOptions) -> tuple[str, ...]:
    hosts = list(options.hosts) or list(manifest.hosts)
    if not hosts:
        raise ArchiveRefused("is of a site without a host name. Pass one with --host.")
    if any(len(host) > MAX_HOST_LENGTH or not _HOST.fullmatch(host) for host in hosts):
        problem = Message("must be a host name such as events.example.org.")
        if options.hosts:
            raise InvalidArgument("--host", problem)
        raise ArchiveRefused("manifest.json: a host name {problem}", problem=problem)
    return tuple(dict.fromkeys(host.lower() for host in hosts))


class _Loader:
    """Stores the content of one archive."""

    def __init__(
        self,
        archive: ArchiveReader,
        manifest: Manifest,
        load: SiteLoad,
        options: ImportOptions,
        on_progress: ProgressCallback,
    ) -> None:
        self._archive = archive
        self._manifest = manifest
        self._load = load
        self._options = options
        self._on_progress = on_progress
        self._total = sum(entry["rows"] for entry in archive.manifest["tables"].values())
        self._done = 0
        self._files: set[str] = set()

    async def load_tables(self, result: ImportResult) -> None:
        for table in list_tables(accounts=self._manifest.accounts):
            columns = await self._load.read_columns(table)
            rows = self._iterate_rows(table, columns)
            if table is SITES:
                result.rows[table.name] = await self._load_site(columns, rows)
            else:
                result.rows[table.name] = await self._load_rows(table, columns, rows)
        self._compare_files()

    async def store_images(self, stored: _StoredFiles) -> None:
        """Check that each file is an image, as for an upload, and store it under its name."""
        library, done, total = stored.library, 0, len(self._archive.images)
        for names in batched(self._archive.images, BATCH_IMAGES):
            async with library.open_work_directory() as directory:
                paths = {name: directory / name for name in names}
                for name, path in paths.items():
                    self._archive.extract_image(name, path)
                await self._check_images(library, paths)
                for name, path in paths.items():
                    stored.names.append(name)
                    await library.store_verified_file(stored.site_id, name, path)
            done += len(names)
            self._on_progress("image files", done, total)

    async def _check_images(self, library: Library, paths: dict[str, Path]) -> None:
        try:
            await library.verify_images(
                [(path, BY_EXTENSION[name.rpartition(".")[2]]) for name, path in paths.items()]
            )
        except FileRefused as error:
            raise ArchiveRefused("media/{problem}", problem=error.message) from None

    async def _load_site(self, columns: Sequence[Column], rows: Iterator[dict[str, Any]]) -> int:
        entries = list(rows)
        if len(entries) != 1:
            raise ArchiveRefused("sites.jsonl: must have exactly one line.")
        # Under another host the base URL would lead to the old one.
        base_url = "" if self._options.hosts else self._manifest.base_url
        await self._load.set_site(columns, orjson.dumps(entries[0]).decode(), base_url)
        return 1

    async def _load_rows(self, table: Table, columns: Sequence[Column], rows: Iterator[dict[str, Any]]) -> int:
        parents: dict[int, int] = {}
        batch: list[bytes] = []
        count = size = 0
        for row in rows:
            if table.parent and row[table.parent] is not None:
                parents[row["id"]] = row[table.parent]
            encoded = orjson.dumps(row)
            batch.append(encoded)
            size += len(encoded)
            count += 1
            if len(batch) >= BATCH_ROWS or size >= BATCH_BYTES:
                await self._insert(table, columns, batch)
                size = 0
        if batch:
            await self._insert(table, columns, batch)
        if parents:
            await self._load.set_parents(table, parents)
        return count

    async def _insert(self, table: Table, columns: Sequence[Column], batch: list[bytes]) -> None:
        """Insert the rows of a batch and empty it."""
        rows, count = (b"[" + b",".join(batch) + b"]").decode(), len(batch)
        batch.clear()
        await self._load.insert_rows(table, columns, rows, count)
        self._done += count
        self._on_progress("rows", self._done, self._total)

    def _iterate_rows(self, table: Table, columns: Sequence[Column]) -> Iterator[dict[str, Any]]:
        checker = RowChecker(table.name, columns, sanitize=self._options.sanitize)
        for number, line in self._archive.iterate_rows(table.name):
            row = checker.read(number, line)
            if table.name == "media_files":
                self._files.add(row["name"])
            yield row

    def _compare_files(self) -> None:
        """Refuse image files that no image has, and images whose files are neither there nor known to be missing."""
        present = set(self._archive.images)
        for name in sorted(present - self._files):
            raise ArchiveRefused("media/{name}: belongs to no image.", name=name)
        for name in sorted(self._files - present - self._manifest.missing_files):
            raise ArchiveRefused("media/{name}: is missing.", name=name)

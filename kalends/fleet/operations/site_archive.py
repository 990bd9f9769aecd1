"""Export a site to an archive, and import an archive as a new site.

An import stores all rows in one transaction, with the host names last, so no request can reach an incomplete site. It
stores image files before the commit and removes them if the commit fails.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import batched
from pathlib import Path
from typing import Any, Final, Self

import orjson

from kalends import __version__
from kalends.core.errors import InvalidArgument, InvalidValue
from kalends.core.image_types import BY_EXTENSION, is_file_name
from kalends.core.messages import Message
from kalends.core.urls import read_website
from kalends.fleet.adapters import LIMITS, ArchiveReader, ArchiveRefused, ArchiveWriter, create_archive
from kalends.fleet.operations.archive_rows import KEY, RowChecker, hide_hashes
from kalends.fleet.storage import archive_tables
from kalends.fleet.storage.archive_tables import SiteLoad, SitePlace, SiteSnapshot
from kalends.fleet.storage.move_tables import SITES, Column, Table, list_tables
from kalends.media.adapters.library import FileRefused, Library

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
    """Write a consistent snapshot of a site to a new file. The manifest lists missing image files."""
    async with archive_tables.open_snapshot(database_url, site_id) as snapshot:
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


# The manifest describes an archive's contents, site and schema.

# Types of manifest entries that `ArchiveReader` does not check.
_TYPES: Final[Mapping[str, type]] = {
    "schema": str,
    "accounts": bool,
    "missing_files": list,
    "site": dict,
    "exported_at": str,
}
_SITE_TYPES: Final[Mapping[str, type]] = {"name": str, "hosts": list, "base_url": str}


@dataclass(frozen=True, slots=True)
class Manifest:
    schema: str
    accounts: bool
    missing_files: frozenset[str]
    name: str
    hosts: tuple[str, ...]
    base_url: str

    @classmethod
    def read(cls, values: dict[str, Any]) -> Self:
        """Check a manifest; raise ArchiveRefused if its format is invalid."""
        if values.get("format") != FORMAT:
            raise ArchiveRefused("is not an archive of a site.")
        if values.get("format_version") != FORMAT_VERSION or type(values["format_version"]) is not int:
            raise ArchiveRefused(
                "has the format version {found}; this version of Kalends reads {known}. Import it with the version "
                "that wrote it.",
                found=ascii(values.get("format_version"))[:20],
                known=FORMAT_VERSION,
            )
        _check_types(values, _TYPES)
        site: dict[str, Any] = values["site"]
        _check_types(site, _SITE_TYPES)
        missing, hosts = values["missing_files"], site["hosts"]
        if not all(isinstance(name, str) and is_file_name(name) for name in missing):
            raise ArchiveRefused("manifest.json: `missing_files` contains what is not the name of an image file.")
        if not all(isinstance(host, str) for host in hosts):
            raise ArchiveRefused("manifest.json: `hosts` contains what is not a host name.")
        try:
            base_url = read_website(site["base_url"])
        except InvalidValue as error:
            raise ArchiveRefused("manifest.json: `base_url` {problem}", problem=error.message) from None
        expected = {table.name for table in list_tables(accounts=values["accounts"])}
        for name in sorted(expected ^ set(values["tables"])):
            raise ArchiveRefused(
                "{name}.jsonl: is missing." if name in expected else "{name}.jsonl: is not a table of an archive.",
                name=name,
            )
        return cls(values["schema"], values["accounts"], frozenset(missing), site["name"], tuple(hosts), base_url)


def _check_types(values: dict[str, Any], types: Mapping[str, type]) -> None:
    for name, expected in types.items():
        if not isinstance(values.get(name), expected):
            raise ArchiveRefused("manifest.json: `{name}` is missing or has the wrong type.", name=name)


def check_schema(manifest: Manifest, schema: str) -> None:
    """Raise ArchiveRefused unless the archive's schema matches this database."""
    if manifest.schema == schema:
        return
    found = ascii(manifest.schema)[1:-1][:40]
    if manifest.schema < schema:
        raise ArchiveRefused(
            "has the schema {found}, this database has {schema}. Import it into a database of the version that wrote "
            "it, run `kalends migrate` there, and export it again.",
            found=found,
            schema=schema,
        )
    raise ArchiveRefused(
        "has the schema {found}, this database has {schema}. Upgrade Kalends and run `kalends migrate` first.",
        found=found,
        schema=schema,
    )


# A batch ends as soon as it reaches one of these limits.
BATCH_ROWS: Final = 1000
BATCH_BYTES: Final = 4 * 2**20
# Number of image files to extract and check at a time.
BATCH_IMAGES: Final = 8
# Site host names are stored without a port.
MAX_HOST_LENGTH: Final = 253
_HOST: Final = re.compile(r"[a-z0-9_][a-z0-9_.-]*|\[[0-9a-f:.]{2,45}\]", re.ASCII | re.IGNORECASE)
# Chooses the database for a site with these hosts, and the site ID if there is a directory.
FindPlace = Callable[[Sequence[str]], AbstractAsyncContextManager[SitePlace]]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Import options. If `hosts` is empty, the site keeps the archive's hosts and base URL."""

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
    """Image files stored for a site that does not exist yet."""

    library: Library
    site_id: int
    names: list[str] = field(default_factory=list[str])

    async def remove(self) -> None:
        for name in self.names:
            await self.library.remove(self.site_id, name)


async def import_site(
    find_place: FindPlace, library: Library, path: Path, options: ImportOptions, on_progress: ProgressCallback
) -> ImportResult:
    """Import an archive as a new site; if it is invalid, store nothing and raise ArchiveRefused or RowsRefused."""
    with ArchiveReader.open(path, LIMITS) as archive:
        manifest = Manifest.read(archive.manifest)
        hosts = _choose_hosts(manifest, options)
        stored: _StoredFiles | None = None
        is_complete = False
        try:
            async with find_place(hosts) as place:
                check_schema(manifest, await archive_tables.read_schema(place.database_url))
                async with archive_tables.open_load(place, hosts, options.first_host) as load:
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
                    # If the commit is interrupted, its outcome is unknown, so the files stay.
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
        """Check each file like an uploaded image, and store it under its name in the archive."""
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
        # With new hosts, the archive's base URL would point to an old host.
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
        """Refuse files that belong to no image, and images whose files are neither present nor listed as missing."""
        present = set(self._archive.images)
        for name in sorted(present - self._files):
            raise ArchiveRefused("media/{name}: belongs to no image.", name=name)
        for name in sorted(self._files - present - self._manifest.missing_files):
            raise ArchiveRefused("media/{name}: is missing.", name=name)

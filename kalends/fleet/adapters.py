"""Site archives: zip files with one JSON Lines file per table, image files and a manifest.

Zip has advantages over tar.gz: every desktop system can open it, members can be read separately, images stay
uncompressed, and one damaged member does not make the others unreadable.

An archive may come from anyone. The reader never extracts a member under a name from the archive. It accepts only
members that the format defines, each within its limits, and verifies the SHA-256 hash of each member.
"""

import hashlib
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final, Self

import orjson

from kalends.core.errors import InvalidValue
from kalends.core.image_types import is_file_name

MANIFEST: Final = "manifest.json"
MEDIA: Final = "media/"
ROWS: Final = ".jsonl"
_TABLE: Final = re.compile(r"([a-z][a-z_]{0,62})\.jsonl")
_CHUNK: Final = 256 * 1024
_IS_ENCRYPTED: Final = 0x1
# Exceptions that zipfile and zlib raise for damaged and malicious files.
_DAMAGES: Final = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, IndexError, NotImplementedError, OverflowError,
    RuntimeError, ValueError,
)  # fmt: skip


class ArchiveRefused(InvalidValue):
    pass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits far above what a site with 200,000 events and a long history needs. Sizes are in bytes."""

    members: int = 2_000_000
    total: int = 200 * 2**30
    table: int = 50 * 2**30
    image: int = 100 * 2**20
    manifest: int = 16 * 2**20
    # The longest row contains an uploaded import file in hexadecimal form.
    line: int = 32 * 2**20
    rows: int = 100_000_000
    # Compressed JSON Lines rarely reach a tenth of this ratio; zip bombs exceed it by a factor of ten.
    ratio: int = 200
    # Members below this size may have any compression ratio.
    ratio_from: int = 2**20


LIMITS: Final = Limits()


class ArchiveWriter:
    """Writes an archive member by member. The manifest comes last, because it contains the hashes."""

    def __init__(self, file: zipfile.ZipFile, moment: datetime) -> None:
        self._file = file
        self._moment = moment
        self.tables: dict[str, dict[str, Any]] = {}
        self.files = 0

    @contextmanager
    def open_table(self, name: str) -> Generator["TableWriter"]:
        member = self._describe(name + ROWS, zipfile.ZIP_DEFLATED)
        with self._file.open(member, "w", force_zip64=True) as output:
            writer = TableWriter(output)
            yield writer
        self.tables[name] = {"rows": writer.rows, "sha256": writer.sha256.hexdigest()}

    def add_image(self, name: str, content: bytes) -> None:
        self._file.writestr(self._describe(MEDIA + name, zipfile.ZIP_STORED), content)
        self.files += 1

    def finish(self, manifest: Mapping[str, Any]) -> None:
        content = orjson.dumps({**manifest, "tables": self.tables, "files": self.files}, option=orjson.OPT_INDENT_2)
        self._file.writestr(self._describe(MANIFEST, zipfile.ZIP_DEFLATED), content + b"\n")

    def _describe(self, name: str, compression: int) -> zipfile.ZipInfo:
        member = zipfile.ZipInfo(name, self._moment.timetuple()[:6])
        member.compress_type = compression
        member.external_attr = (stat.S_IFREG | 0o600) << 16
        return member


class TableWriter:
    def __init__(self, output: IO[bytes]) -> None:
        self._output = output
        self.rows = 0
        self.sha256 = hashlib.sha256()

    def add(self, row: Mapping[str, Any]) -> None:
        line = orjson.dumps(row) + b"\n"
        self._output.write(line)
        self.sha256.update(line)
        self.rows += 1


@contextmanager
def create_archive(path: Path, moment: datetime) -> Generator[ArchiveWriter]:
    """Write a new archive, readable only by its owner. The file gets its final name when it is complete."""
    if path.exists():
        raise ArchiveRefused("{path} exists already.", path=path)
    incomplete = path.with_name(path.name + ".incomplete")
    handle = os.open(incomplete, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(handle, "w+b") as output:
            with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as file:
                yield ArchiveWriter(file, moment)
            output.flush()
            os.fsync(output.fileno())
        incomplete.replace(path)
    finally:
        incomplete.unlink(missing_ok=True)


class ArchiveReader:
    """Reads an archive after checking its list of members and its manifest."""

    def __init__(self, file: zipfile.ZipFile, archive_size: int, limits: Limits) -> None:
        self._file = file
        self._limits = limits
        self._rows = 0
        self._members = _check_members(file, archive_size, limits)
        self.manifest = self._read_manifest()
        self.images = [name for member in self._members if (name := _image_name(member))]
        self._check_tables()

    @classmethod
    @contextmanager
    def open(cls, path: Path, limits: Limits) -> Generator[Self]:
        """Open an archive.

        If the archive is invalid, raise ArchiveRefused, either now or when the invalid part is read.
        """
        with path.open("rb") as source, ExitStack() as stack:
            with _explain_damage():
                file = stack.enter_context(zipfile.ZipFile(source))
                reader = cls(file, path.stat().st_size, limits)
            yield reader

    def iterate_rows(self, table: str) -> Iterator[tuple[int, bytes]]:
        """Yield a table's numbered lines, and verify the hash after the last line."""
        expected, member = self.manifest["tables"][table], table + ROWS
        sha256, count = hashlib.sha256(), 0
        for line in self._iterate_lines(member, sha256):
            count += 1
            self._rows += 1
            if self._rows > self._limits.rows:
                raise ArchiveRefused("has more than {limit:,} rows.", limit=self._limits.rows)
            yield count, line
        if count != expected["rows"]:
            raise ArchiveRefused(
                "{member}: has {count:,} rows, the manifest says {expected:,}.",
                member=member, count=count, expected=expected["rows"],
            )  # fmt: skip
        if sha256.hexdigest() != expected["sha256"]:
            raise ArchiveRefused("{member}: does not have the hash that the manifest says.", member=member)

    def extract_image(self, name: str, target: Path) -> None:
        """Write an image file to `target`; raise ArchiveRefused unless its content matches the hash in its name."""
        sha256 = hashlib.sha256()
        with target.open("wb") as output:
            for chunk in self._iterate_chunks(MEDIA + name):
                sha256.update(chunk)
                output.write(chunk)
        if sha256.hexdigest() != name.partition(".")[0]:
            raise ArchiveRefused("{member}: does not have the hash in its name.", member=MEDIA + name)

    def _read_manifest(self) -> dict[str, Any]:
        if MANIFEST not in self._members:
            raise ArchiveRefused("is not an archive of a site: it has no {member}.", member=MANIFEST)
        try:
            manifest = orjson.loads(b"".join(self._iterate_chunks(MANIFEST)))
        except orjson.JSONDecodeError:
            raise ArchiveRefused("{member}: is not valid JSON.", member=MANIFEST) from None
        if not isinstance(manifest, dict):
            raise ArchiveRefused("{member}: is not an object.", member=MANIFEST)
        return manifest  # pyright: ignore[reportUnknownVariableType]

    def _check_tables(self) -> None:
        """Check that the manifest lists the archive's tables, with row counts and hashes, and the image count."""
        tables = self.manifest.get("tables")
        if not isinstance(tables, dict):
            raise ArchiveRefused("{member}: `tables` is not an object.", member=MANIFEST)
        for name, entry in tables.items():  # pyright: ignore[reportUnknownVariableType]
            if (
                not isinstance(entry, dict)
                or type(entry.get("rows")) is not int  # pyright: ignore[reportUnknownMemberType]
                or not isinstance(entry.get("sha256"), str)  # pyright: ignore[reportUnknownMemberType]
            ):
                raise ArchiveRefused(
                    "{member}: `tables` has no rows and hash of {table}.", member=MANIFEST, table=_show(name)
                )
        found = {match[1] for member in self._members if (match := _TABLE.fullmatch(member))}
        for name in sorted({str(name) for name in tables} ^ found):  # pyright: ignore[reportUnknownVariableType]
            raise ArchiveRefused(
                "{member}: only one of the archive and its manifest has it.", member=_show(name + ROWS)
            )
        if self.manifest.get("files") != len(self.images):
            raise ArchiveRefused("has {count:,} image files, the manifest says otherwise.", count=len(self.images))

    def _iterate_lines(self, member: str, sha256: Any) -> Iterator[bytes]:
        rest = b""
        for chunk in self._iterate_chunks(member):
            sha256.update(chunk)
            *lines, rest = (rest + chunk).split(b"\n")
            if max(map(len, (*lines, rest))) > self._limits.line:
                raise ArchiveRefused(
                    "{member}: has a line of more than {limit:,} bytes.", member=member, limit=self._limits.line
                )
            yield from lines
        if rest:
            raise ArchiveRefused("{member}: its last line is incomplete.", member=member)

    def _iterate_chunks(self, member: str) -> Iterator[bytes]:
        """Yield a member's content in chunks. zipfile enforces the declared size and the checksum."""
        with _explain_damage(member):
            source = self._file.open(self._members[member])
        with source:
            while True:
                with _explain_damage(member):
                    chunk = source.read(_CHUNK)
                if not chunk:
                    return
                yield chunk


@contextmanager
def _explain_damage(member: str = "") -> Generator[None]:
    """Convert errors caused by a damaged zip file to ArchiveRefused."""
    try:
        yield
    except ArchiveRefused:
        raise
    except _DAMAGES as error:
        detail = next(iter(str(error).splitlines()), "") or type(error).__name__
        if member:
            raise ArchiveRefused("{member}: cannot be read: {detail}", member=member, detail=detail) from error
        raise ArchiveRefused("is not a zip file, or is damaged: {detail}", detail=detail) from error
    except OSError as error:
        if error.errno is not None and not member:
            raise  # the file itself cannot be read
        raise ArchiveRefused("is damaged: {detail}", detail=error.strerror or str(error)) from error


def _check_members(file: zipfile.ZipFile, archive_size: int, limits: Limits) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name. Raise ArchiveRefused if a member is unknown, too large or not a plain file."""
    members: dict[str, zipfile.ZipInfo] = {}
    listed = file.infolist()
    if len(listed) > limits.members:
        raise ArchiveRefused("has more than {limit:,} members.", limit=limits.members)
    for member in listed:
        name = member.orig_filename
        if name in members:
            raise ArchiveRefused("{member}: occurs twice.", member=_show(name))
        _check_member(name, member, limits)
        members[name] = member
    total = sum(member.file_size for member in listed)
    if total > limits.total:
        raise ArchiveRefused(
            "has {total:,} bytes when unpacked; at most {limit:,} are allowed.", total=total, limit=limits.total
        )
    if sum(member.compress_size for member in listed) > archive_size:
        raise ArchiveRefused("has members that overlap.")
    return members


def _check_member(name: str, member: zipfile.ZipInfo, limits: Limits) -> None:
    limit = _size_limit(name, limits)
    if limit is None:
        raise ArchiveRefused("{member}: is not a member of an archive of a site.", member=_show(name))
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG) or member.is_dir():
        raise ArchiveRefused("{member}: is not a plain file.", member=name)
    if member.flag_bits & _IS_ENCRYPTED:
        raise ArchiveRefused("{member}: is encrypted.", member=name)
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ArchiveRefused("{member}: is compressed in a way that archives of sites do not use.", member=name)
    if member.file_size > limit:
        raise ArchiveRefused(
            "{member}: has {size:,} bytes; at most {limit:,} are allowed.",
            member=name, size=member.file_size, limit=limit,
        )  # fmt: skip
    if member.file_size > limits.ratio_from and member.file_size > limits.ratio * member.compress_size:
        raise ArchiveRefused("{member}: is compressed by more than {ratio}:1.", member=name, ratio=limits.ratio)


def _size_limit(name: str, limits: Limits) -> int | None:
    """Return a member's maximum size, or None if the format does not define its name."""
    if name == MANIFEST:
        return limits.manifest
    if _TABLE.fullmatch(name):
        return limits.table
    return limits.image if _image_name(name) else None


def _image_name(member: str) -> str | None:
    name = member.removeprefix(MEDIA)
    return name if member.startswith(MEDIA) and is_file_name(name) else None


def _show(name: object) -> str:
    """Shorten an untrusted name for a message, and escape line breaks and control characters."""
    return ascii(str(name)[:100])

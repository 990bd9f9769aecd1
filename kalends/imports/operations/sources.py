"""Import sources: their permissions, and how their files are fetched and read."""

import asyncio
import hashlib
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from urllib.parse import urlsplit

from kalends.accounts.storage import user_tables
from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.kind import Actor
from kalends.core import errors
from kalends.core.egress import AllowedNetwork, read_target
from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.imports.adapters.import_worker import Format, ImportWorker
from kalends.imports.operations.plan import FindCandidates
from kalends.imports.rules.import_records import ParsedSource
from kalends.imports.storage import import_lists, import_tables
from kalends.media.adapters.library import Library, make_validators
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql

if TYPE_CHECKING:
    # Servers import this module but must not load an HTTP client.
    from kalends.adapters.safe_fetch import Fetcher, FetchResponse


async def fetch_source(tx: Transaction, source_id: int) -> Row:
    source = await import_tables.find_source(tx, source_id)
    if source is None:
        raise errors.import_not_found()
    return source


async def fetch_run(tx: Transaction, run_id: int) -> Row:
    run = await import_tables.find_run(tx, run_id)
    if run is None:
        raise errors.import_not_found()
    return run


async def find_owner(tx: Transaction, source: Row) -> Actor:
    """Return the user whose permissions apply to a source. Raise ApiError unless the user is an active editor."""
    query = "SELECT id, login, role FROM users WHERE site_id = ? AND id = ? AND disabled_at IS NULL"
    row = await tx.fetch_one(Sql(query, tx.site.id, source["owner_id"]))
    actor = Actor(row["id"], row["role"], row["login"]) if row is not None else None
    if actor is None or permissions.rank(actor) < permissions.EDITOR:
        raise errors.forbidden(
            Message("the owner of the source must be an active account with the role editor or higher."),
            anonymous=False,
        )
    return actor


async def make_undo_context(tx: Transaction, source: Row, library: Library | None = None) -> OperationContext:
    if source["kind"] == "tec":
        return await make_administrator_context(tx, library)
    return await make_context(tx, source, library)


async def make_administrator_context(tx: Transaction, library: Library | None) -> OperationContext:
    """Return a context for the first administrator. If a move-in has not created one yet, use user ID 0."""
    actor = Actor(await user_tables.find_first_administrator(tx) or 0, "administrator")
    return OperationContext(tx, actor, tx.site.base_url, "", library=library, returns_record=False)


async def make_context(tx: Transaction, source: Row, library: Library | None = None) -> OperationContext:
    """Return the context for a source's writes, with the permissions of the source's owner."""
    actor = await find_owner(tx, source)
    return OperationContext(tx, actor, "", "", library=library, returns_record=False)


# Fetching -----------------------------------------------------------------------------------------

MAX_BYTES: Final = 10_000_000
# Imports have a separate limit, so slow calendars do not delay images.
MAX_CONCURRENT: Final = 4
FETCH_TIMEOUT: Final = 30.0
ACCEPT: Final = (
    "text/calendar, text/csv, application/vnd.openxmlformats-officedocument.spreadsheetml.sheet, */*;q=0.5"
)
CALENDAR_SCHEMES: Final = ("webcal://", "webcals://")
_CHUNK: Final = 256 * 1024
_GZIP: Final = b"\x1f\x8b"
_ANY_HEADER: Final = 32 + zlib.MAX_WBITS  # gzip or zlib


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A fetched file: its size when decompressed, its hash, and validators for the next request."""

    size: int
    sha256: bytes
    etag: str
    last_modified: str
    url: str = ""  # after redirects
    content_type: str = ""


def make_fetcher(allowed_networks: Sequence[AllowedNetwork] = ()) -> "Fetcher":
    from kalends.adapters.safe_fetch import Fetcher

    return Fetcher(allowed_networks, seconds=FETCH_TIMEOUT, max_concurrent=MAX_CONCURRENT)


def read_source_url(text: str) -> str:
    """Return a source's URL in its stored form. Raise InvalidValue unless the server is public.

    The scheme `webcal`, which calendars use, means https.
    """
    url = text.strip()
    scheme = next((scheme for scheme in CALENDAR_SCHEMES if url.lower().startswith(scheme)), None)
    url = f"https://{url[len(scheme) :]}" if scheme else url
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise InvalidValue("must not contain a user name or a password, because they would be stored.")
    read_target(url)
    return url


async def fetch_file(
    fetcher: "Fetcher",
    url: str,
    etag: str,
    last_modified: str,
    into: BinaryIO,
    *,
    limit: int = MAX_BYTES,
    accept: str = ACCEPT,
) -> FetchedFile | None:
    """Fetch a file into `into`. Return None if the validators show that the file is unchanged.

    Raise InvalidValue if fetching is not allowed or fails. Error messages never contain anything that the server
    sent.
    """
    headers = {"Accept": accept, **make_validators(etag, last_modified)}
    begun = time.perf_counter()
    response = await fetcher.get(read_source_url(url), into, limit=limit, headers=headers)
    seconds = time.perf_counter() - begun
    if response.status == 304 and (etag or last_modified):
        return None
    if response.status != 200:
        raise InvalidValue(
            "the remote server responded with {status} after {seconds} s.",
            status=response.status,
            seconds=f"{seconds:.1f}",
        )
    size, sha256 = await asyncio.to_thread(_finish, response, into, limit)
    validators = response.validator("etag"), response.validator("last-modified")
    return FetchedFile(size, sha256, *validators, response.url, response.headers.get("content-type", ""))


def _finish(response: "FetchResponse", into: BinaryIO, limit: int) -> tuple[int, bytes]:
    """Decompress the file if necessary; return its size and hash."""
    if response.size == 0:
        raise InvalidValue("the remote server sent an empty file.")
    if _is_compressed(response, into):
        _decompress(into, limit)
    into.seek(0)
    content = into.read()
    into.seek(0)
    return len(content), hashlib.sha256(content).digest()


def _is_compressed(response: "FetchResponse", into: BinaryIO) -> bool:
    """Return whether the server compressed the file, although requests do not allow it.

    Raise InvalidValue for an unsupported encoding.
    """
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise InvalidValue("the remote server sent a compressed file that cannot be read; only gzip is supported.")
    into.seek(0)
    return encoding in ("gzip", "x-gzip", "deflate") or into.read(2) == _GZIP


def _decompress(into: BinaryIO, limit: int) -> None:
    """Decompress the content in place. Limit the size, because a small file can be a decompression bomb."""
    into.seek(0)
    compressed, output = into.read(), bytearray()
    decompressor = zlib.decompressobj(_ANY_HEADER)
    try:
        pending = compressed
        while pending and not decompressor.eof:
            output += decompressor.decompress(pending, _CHUNK)
            pending = decompressor.unconsumed_tail
            if len(output) > limit:
                raise InvalidValue("exceeds {limit} bytes after decompression.", limit=limit)
    except zlib.error:
        raise _incomplete() from None
    if not decompressor.eof:
        raise _incomplete()
    into.seek(0)
    into.truncate()
    into.write(output)


def _incomplete() -> InvalidValue:
    return InvalidValue("the remote server sent a compressed file that is damaged or incomplete.")


# A run's input: the file at its source's address, or the uploaded file -----------------------------

FORMATS: Final[Mapping[str, Format]] = {
    ".ics": "ical",
    ".ical": "ical",
    ".ifb": "ical",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".xlsx": "xlsx",
    ".xls": "xls",
    ".ods": "ods",
}
# The first bytes of each format, for file names without a known extension.
SIGNATURES: Final[Mapping[bytes, Format]] = {
    b"PK\x03\x04": "xlsx",
    b"\xd0\xcf\x11\xe0": "xls",
    b"BEGIN:VCALENDAR": "ical",
    b"\xef\xbb\xbfBEGIN:VCALENDAR": "ical",
}


@dataclass(frozen=True, slots=True)
class Tools:
    worker: ImportWorker
    fetcher: "Fetcher"
    library: Library | None = None  # if None, images are skipped
    find_candidates: FindCandidates | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A run to plan, with its source and the data that parsing needs."""

    run: Row
    source: Row
    file: Row | None  # name and content of the uploaded file
    known_starts: Mapping[str, str]  # first dates of series, by identity
    site_timezone: str

    @property
    def options(self) -> dict[str, Any]:
        options: dict[str, Any] = import_tables.decode(self.run["options"])
        return options


@dataclass(frozen=True, slots=True)
class Input:
    """A parsed file with its fingerprint, and with validators for the next request."""

    parsed: ParsedSource
    fingerprint: bytes  # covers the content and the source's options
    etag: str = ""
    last_modified: str = ""
    preview: Any = None  # a table's columns and first rows


async def load_request(tx: Transaction, run: Row, source: Row) -> Request:
    options = import_tables.decode(run["options"])
    reads_file = options.get("input") == "file" or not source["url"]
    file = await import_lists.read_file(tx, source["id"]) if reads_file else None
    items = await import_tables.list_items(tx, source["id"]) if source["kind"] == "ical" else []
    series = {
        item["identity"]: import_tables.decode(item["source_values"]) for item in items if item["kind"] == "series"
    }
    starts = {identity: str(values.get("start_date", "")) for identity, values in series.items()}
    return Request(run, source, file, starts, tx.site.timezone)


async def read_input(tools: Tools, request: Request) -> Input | None:
    """Fetch or read the file and parse it. Return None if the file is unchanged.

    Raise InvalidValue if the file cannot be fetched or read.
    """
    with TemporaryDirectory(prefix="kalends-import-") as directory:
        path = Path(directory) / "input"
        if request.file is not None:
            content: bytes = request.file["content"]
            await asyncio.to_thread(path.write_bytes, content)
            digest = hashlib.sha256(content).digest()
            return await _parse(tools, request, path, Input(ParsedSource([]), _identify(request.source, digest)))
        if not request.source["url"]:
            raise InvalidValue("no file has been uploaded for this source.")
        fetched = await _fetch(tools, request.source, path)
        return await _parse(tools, request, path, fetched) if fetched is not None else None


async def _fetch(tools: Tools, source: Row, path: Path) -> Input | None:
    """Fetch a source's file. Return None if the server reports that the file is unchanged."""
    is_same = source["input_hash"] is not None and source["input_hash"][16:] == _hash_options(source)
    etag, last_modified = (source["etag"], source["last_modified"]) if is_same else ("", "")
    with path.open("w+b") as into:
        fetched = await fetch_file(tools.fetcher, source["url"], etag, last_modified, into)
    if fetched is None:
        return None
    fingerprint = _identify(source, fetched.sha256)
    return Input(ParsedSource([]), fingerprint, fetched.etag, fetched.last_modified)


def _identify(source: Row, digest: bytes) -> bytes:
    """Return an input's fingerprint. It also depends on the source's options."""
    return digest[:16] + _hash_options(source)


def _hash_options(source: Row) -> bytes:
    facts = [source[name] for name in ("kind", "timezone", "organizer_emails")]
    options = import_tables.encode([*facts, import_tables.decode(source["columns"])])
    return hashlib.sha256(options.encode()).digest()[:16]


async def _parse(tools: Tools, request: Request, path: Path, found: Input) -> Input | None:
    source = request.source
    if found.fingerprint == source["input_hash"]:
        return None
    name = request.file["name"] if request.file is not None else urlsplit(source["url"]).path
    file_format = await asyncio.to_thread(_choose_format, source["kind"], name, path)
    options = _make_options(request)
    if file_format == "ical":
        parsed, preview = await tools.worker.parse(path, file_format, options), None
    else:
        table = await tools.worker.parse_table(path, file_format, options)
        parsed, preview = table.parsed, {"columns": table.columns, "rows": table.preview}
    return Input(parsed, found.fingerprint, found.etag, found.last_modified, preview)


def _make_options(request: Request) -> dict[str, Any]:
    source = request.source
    if source["kind"] == "ical":
        return {
            "timezone": source["timezone"],
            "known_starts": dict(request.known_starts),
            "organizer_emails": source["organizer_emails"],
        }
    defaults = {"site_timezone": request.site_timezone}
    if source["timezone"]:
        defaults["timezone"] = source["timezone"]
    return {"columns": import_tables.decode(source["columns"]), "defaults": defaults}


def _choose_format(kind: str, name: str, path: Path) -> Format:
    """Choose a file's format from the source's kind, the file name and the first bytes."""
    if kind == "ical":
        return "ical"
    by_name = FORMATS.get(Path(name).suffix.lower())
    if by_name is not None and by_name != "ical":
        return by_name
    with path.open("rb") as file:
        head = file.read(64)
    by_content: list[Format] = [found for signature, found in SIGNATURES.items() if head.startswith(signature)]
    return by_content[0] if by_content else "csv"


def choose_kind(name: str) -> str:
    """Return the source kind for a file name or address: a table or a calendar."""
    found = FORMATS.get(Path(urlsplit(name).path).suffix.lower(), "ical")
    return "ical" if found == "ical" else "table"

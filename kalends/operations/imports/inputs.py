"""The input of a run: the file at the address of its source, or the one that was uploaded for it."""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlsplit

from kalends.adapters.import_worker import Format, ImportWorker
from kalends.adapters.safe_fetch import Fetcher
from kalends.core.errors import InvalidValue
from kalends.core.imports.records import ParsedSource
from kalends.operations.imports.fetching import fetch_source
from kalends.operations.imports.planning import FindCandidates
from kalends.operations.media.library import Library
from kalends.store import Row, import_lists, imports
from kalends.store.database import Transaction

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
# The first bytes of files whose name does not tell their format.
SIGNATURES: Final[Mapping[bytes, Format]] = {
    b"PK\x03\x04": "xlsx",
    b"\xd0\xcf\x11\xe0": "xls",
    b"BEGIN:VCALENDAR": "ical",
    b"\xef\xbb\xbfBEGIN:VCALENDAR": "ical",
}


@dataclass(frozen=True, slots=True)
class Tools:
    """What imports need besides the database."""

    worker: ImportWorker
    fetcher: Fetcher
    library: Library | None = None  # None: images are left out
    find_candidates: FindCandidates | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A run that is to be planned, its source, and the facts that parsing needs."""

    run: Row
    source: Row
    file: Row | None  # name and content of the uploaded file
    known_starts: Mapping[str, str]  # the first dates of series by identity

    @property
    def options(self) -> dict[str, Any]:
        options: dict[str, Any] = imports.decode(self.run["options"])
        return options


@dataclass(frozen=True, slots=True)
class Input:
    """A parsed file, and what identifies it next time."""

    parsed: ParsedSource
    fingerprint: bytes  # of the content and of the options of its source
    etag: str = ""
    last_modified: str = ""
    preview: Any = None  # the columns and the first rows of a table


async def load_request(tx: Transaction, run: Row, source: Row) -> Request:
    options = imports.decode(run["options"])
    reads_file = options.get("input") == "file" or not source["url"]
    file = await import_lists.read_file(tx, source["id"]) if reads_file else None
    items = await imports.list_items(tx, source["id"]) if source["kind"] == "ical" else []
    starts = {item["identity"]: _read_start(item) for item in items if item["kind"] == "series"}
    return Request(run, source, file, starts)


def _read_start(item: Row) -> str:
    return str(imports.decode(item["source_values"]).get("start_date", ""))


async def read_input(tools: Tools, request: Request) -> Input | None:
    """Fetch or read the file and parse it; return None if it is the same as last time.

    Raises InvalidValue if it cannot be fetched or read.
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
    """Fetch the file of a source; return None if the server says that it has not changed."""
    is_same = source["input_hash"] is not None and source["input_hash"][16:] == _hash_options(source)
    etag, last_modified = (source["etag"], source["last_modified"]) if is_same else ("", "")
    with path.open("w+b") as into:
        fetched = await fetch_source(tools.fetcher, source["url"], etag, last_modified, into)
    if fetched is None:
        return None
    fingerprint = _identify(source, fetched.sha256)
    return Input(ParsedSource([]), fingerprint, fetched.etag, fetched.last_modified)


def _identify(source: Row, digest: bytes) -> bytes:
    """Return the fingerprint of an input: with other options of its source, the same file is another input."""
    return digest[:16] + _hash_options(source)


def _hash_options(source: Row) -> bytes:
    facts = [source[name] for name in ("kind", "timezone", "organizer_emails")]
    options = imports.encode([*facts, imports.decode(source["columns"])])
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
    defaults = {"timezone": source["timezone"]} if source["timezone"] else {}
    return {"columns": imports.decode(source["columns"]), "defaults": defaults}


def _choose_format(kind: str, name: str, path: Path) -> Format:
    """Return the format of a file by the kind of its source, its name and its first bytes."""
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
    """Return the kind of a source by the name or address of its file: a table or a calendar."""
    found = FORMATS.get(Path(urlsplit(name).path).suffix.lower(), "ical")
    return "ical" if found == "ical" else "table"

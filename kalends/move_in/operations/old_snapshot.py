"""A file with everything read from a site, so plans and comparisons need no network.

The file contains email addresses and event passwords, so only its owner can read it. It does not contain the
application password for the old site.
"""

import hashlib
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Self

import orjson

from kalends.calendar.kinds.events import hash_slowly
from kalends.core.errors import InvalidValue
from kalends.imports.rules.import_records import ImportedRecord
from kalends.move_in.rules.exchanges import Exchange, Exchanges
from kalends.move_in.rules.old_records import MoveIn, find_media_references, replace_media_references
from kalends.store import Row

VERSION: Final = 1
TABLES: Final = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS exchanges (
    address TEXT PRIMARY KEY,
    crawl   INTEGER NOT NULL,
    status  INTEGER NOT NULL,
    headers TEXT NOT NULL,
    body    BLOB NOT NULL
) WITHOUT ROWID;
"""


class Snapshot:
    """The latest response to each request, by request address.

    API addresses are routes with their query (`wp/v2/tags?per_page=100`); others begin with `/` or are URLs. Each
    exchange stores the number of the crawl that fetched it; a resumed crawl keeps its number.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open or create a file, and let only its owner read it."""
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        path.chmod(0o600)
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            connection.executescript(TABLES)
        except sqlite3.DatabaseError:
            connection.close()
            raise InvalidValue("{path} is no snapshot of a site.", path=str(path)) from None
        snapshot = cls(connection, path)
        if snapshot.read_fact("version", VERSION) != VERSION:
            snapshot.close()
            raise InvalidValue("{path} was written by another version of Kalends; crawl again.", path=str(path))
        snapshot.write_fact("version", VERSION)
        return snapshot

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read_fact(self, name: str, default: Any = None) -> Any:
        row = self._connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return orjson.loads(row[0]) if row else default

    def write_fact(self, name: str, value: object) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", (name, orjson.dumps(value).decode())
        )

    def find(self, address: str) -> Exchange | None:
        row = self._connection.execute(
            "SELECT address, crawl, status, headers, body FROM exchanges WHERE address = ?", (address,)
        ).fetchone()
        return _read_exchange(row) if row else None

    def list(self, prefix: str) -> Iterator[Exchange]:
        """Yield the exchanges whose address starts with `prefix`, ordered by address."""
        rows = self._connection.execute(
            "SELECT address, crawl, status, headers, body FROM exchanges "
            "WHERE address >= ? AND address < ? ORDER BY address",
            (prefix, prefix + "\U0010ffff"),
        )
        return map(_read_exchange, rows)

    def add(self, exchange: Exchange) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO exchanges (address, crawl, status, headers, body) VALUES (?, ?, ?, ?, ?)",
            (
                exchange.address,
                exchange.crawl,
                exchange.status,
                orjson.dumps(dict(exchange.headers)).decode(),
                zlib.compress(exchange.body, 1),
            ),
        )

    def begin_crawl(self, url: str) -> int:
        """Start a crawl or resume an interrupted one; return its number."""
        if (known := self.read_fact("url")) not in (None, url):
            raise InvalidValue("the snapshot is one of {known}, not of {url}.", known=known, url=url)
        number: int = self.read_fact("crawl", 0)
        if self.is_complete or number == 0:
            number += 1
        for name, value in (("url", url), ("crawl", number), ("complete", False)):
            self.write_fact(name, value)
        return number

    def end_crawl(self) -> None:
        self.write_fact("complete", True)

    @property
    def is_complete(self) -> bool:
        return bool(self.read_fact("complete", False))


def _read_exchange(row: tuple[str, int, int, str, bytes]) -> Exchange:
    address, crawl, status, headers, body = row
    return Exchange(address, status, orjson.loads(headers), zlib.decompress(body), crawl)


# Records as stored in plans and items --------------------------------------------------------------

# A restored record gets this status if its status before the trash is unknown.
TRASHED_STATUS: Final = "draft"
# The name of a value that is compared but is not a column.
FILE_HASH: Final = "sha256"
TEXTS: Final = ("description", "excerpt")
MAX_THREADS: Final = 4  # A password hash takes a tenth of a second and 32 MB of memory.


def normalize(move_in: MoveIn, exchanges: Exchanges, secret: bytes, *, keep_ids: bool) -> list[ImportedRecord]:
    """Return a site's records, with hashes of passwords and image files, and without IDs unless `keep_ids`."""
    passwords = {str(record.values.get("new_password") or "") for record in move_in.records} - {""}
    with ThreadPoolExecutor(MAX_THREADS) as threads:
        list(threads.map(partial(_hash_once, secret), passwords))
    return [_normalize(record, move_in, exchanges, secret, keep_ids=keep_ids) for record in move_in.records]


def _normalize(
    record: ImportedRecord, move_in: MoveIn, exchanges: Exchanges, secret: bytes, *, keep_ids: bool
) -> ImportedRecord:
    values, columns = dict(record.values), dict(record.columns)
    if "new_password" in values:
        password = str(values.pop("new_password") or "")
        columns["password_hash"] = _hash_once(secret, password) if password else None
    if "status" in values and record.kind != "users":
        columns["status"] = values["status"]
        values["status"] = TRASHED_STATUS if values["status"] == "trash" else values["status"]
    if record.kind == "media":
        columns[FILE_HASH] = hashlib.sha256(read_file(move_in, exchanges, record.identity)).hexdigest()
    return replace(record, values=values, columns=columns, wanted_id=record.wanted_id if keep_ids else None)


@cache
def _hash_once(secret: bytes, password: str) -> str:
    """Hash a password only once per command, because several events can share it."""
    return hash_slowly(secret, password).hex()


def read_file(move_in: MoveIn, exchanges: Exchanges, identity: str) -> bytes:
    """Return an image file's content; empty if it was not fetched."""
    exchange = exchanges.find(move_in.image_urls.get(identity, ""))
    return exchange.body if exchange is not None and exchange.status == 200 else b""


def find_references(record: ImportedRecord) -> list[str]:
    """Return the identities of images in a record's texts."""
    return [entry for name in TEXTS for entry in find_media_references(str(record.values.get(name) or ""))]


def complete(record: ImportedRecord, row: Row | None, media_ids: Mapping[str, int], now: datetime) -> ImportedRecord:
    """Return a record ready to write: with trash columns, and with image IDs in its texts."""
    texts = {
        name: replace_media_references(str(record.values[name]), media_ids) for name in TEXTS if name in record.values
    }
    return replace(record, values={**record.values, **texts}, columns={**record.columns, **_trash(record, row, now)})


def _trash(record: ImportedRecord, row: Row | None, now: datetime) -> dict[str, Any]:
    if "status" not in record.columns:
        return {}
    was_trashed = row is not None and row["status"] == "trash"
    is_trashed = record.columns["status"] == "trash"
    if is_trashed == was_trashed:
        return {}
    # Use the time of the import, because trashed records are permanently deleted after a few weeks.
    return {
        "trashed_status": TRASHED_STATUS if is_trashed else "",
        "trashed_at": now.isoformat() if is_trashed else None,
    }

"""A file with everything that was read from a site, so that plans and comparisons need no network.

It contains e-mail addresses and the passwords of events: only its owner can read it. The password of the site itself
is not in it.
"""

import os
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Self

import orjson

from kalends.core.errors import InvalidValue
from kalends.core.tec.exchanges import Exchange

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
    """The latest response to each request, by the address of the request.

    Addresses of the API are routes with their query (`wp/v2/tags?per_page=100`); others begin with `/` or are URLs.
    Each exchange has the number of the crawl that made it; a crawl that was interrupted keeps its number.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a file, or create it readable for its owner only."""
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
        """Yield the exchanges whose addresses have a beginning, in the order of the addresses."""
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
        """Return the number of the crawl; one that was interrupted is continued."""
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
        """Return whether the latest crawl reached its end."""
        return bool(self.read_fact("complete", False))


def _read_exchange(row: tuple[str, int, int, str, bytes]) -> Exchange:
    address, crawl, status, headers, body = row
    return Exchange(address, status, orjson.loads(headers), zlib.decompress(body), crawl)

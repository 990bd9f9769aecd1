"""Records of the former site in the form in which plans and items keep them.

It has no passwords in clear text, the exact status, and the hashes of image files, so that equal records are equal
values. `complete` adds what only the moment of writing determines.
"""

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from typing import Any, Final

from kalends.core.imports.records import ImportedRecord
from kalends.core.tec.exchanges import Exchanges
from kalends.core.tec.move_in import MoveIn, find_media_references, replace_media_references
from kalends.kinds.event_passwords import hash_slowly
from kalends.store import Row

# The status that a restore from the trash gives a record whose former status is unknown.
TRASHED_STATUS: Final = "draft"
# Facts about a record that are compared but are no columns.
FILE_HASH: Final = "sha256"
TEXTS: Final = ("description", "excerpt")
MAX_THREADS: Final = 4  # A hash takes a tenth of a second and 32 MB of memory.


def normalize(move_in: MoveIn, exchanges: Exchanges, secret: bytes, *, keep_ids: bool) -> list[ImportedRecord]:
    """Return the records of a site in normal form."""
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
    """Hash a password once per command, for all events that have it."""
    return hash_slowly(secret, password).hex()


def read_file(move_in: MoveIn, exchanges: Exchanges, identity: str) -> bytes:
    """Return the file of an image; empty if it was not fetched."""
    exchange = exchanges.find(move_in.image_urls.get(identity, ""))
    return exchange.body if exchange is not None and exchange.status == 200 else b""


def find_references(record: ImportedRecord) -> list[str]:
    """Return the identities of the images inside of the texts of a record."""
    return [entry for name in TEXTS for entry in find_media_references(str(record.values.get(name) or ""))]


def complete(record: ImportedRecord, row: Row | None, media_ids: Mapping[str, int], now: datetime) -> ImportedRecord:
    """Return a record as it is written: with the IDs of the images in its texts, and the state of the trash."""
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
    # The time of the import: the trash is emptied after some weeks.
    return {
        "trashed_status": TRASHED_STATUS if is_trashed else "",
        "trashed_at": now.isoformat() if is_trashed else None,
    }

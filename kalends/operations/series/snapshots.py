"""Columns of events and series from the change log, as they are written back."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, LiteralString

import orjson

from kalends.core import times
from kalends.kinds import BY_NAME
from kalends.kinds.events import EVENTS, LOCAL_TIME_COLUMNS
from kalends.kinds.kind import Link, Values
from kalends.kinds.posts import build_search_text
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.history import encode_columns
from kalends.store.records import find_existing_ids

# The state of the trash, and slugs, which depend on other records: they are computed again.
RECOMPUTED: Final = frozenset({"trashed_status", "trashed_at", "slug"})
LINKS: Final[Mapping[str, Link]] = {f"{link.column}s": link for link in EVENTS.links}
SEARCHED_COLUMNS: Final = ("title", "excerpt", "description")

Record = Mapping[str, Any]


def _read_times(values: list[str]) -> list[datetime]:
    return [datetime.fromisoformat(value) for value in values]


# Columns that JSON represents by text.
DECODERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("start_local", "end_local", "slot", "published_at"), datetime.fromisoformat),
    **dict.fromkeys(("added", "removed"), _read_times),
    "password_hash": bytes.fromhex,
}


def read_logged(encoded: str | None) -> dict[str, Any]:
    columns: dict[str, Any] = orjson.loads(encoded) if encoded else {}
    return columns


def encode_row(row: Row | Record, names: Iterable[str]) -> dict[str, Any]:
    """Return columns of a row in the form of the change log."""
    return read_logged(encode_columns({name: row[name] for name in names if name in row}))


def decode_columns(columns: Record) -> dict[LiteralString, Any]:
    """Return logged columns as they are written."""
    decoded: dict[Any, Any] = {
        name: DECODERS[name](value) if name in DECODERS and value is not None else value
        for name, value in columns.items()
    }
    return decoded


def derive_columns(row: Row | Record, values: Values) -> Values:
    """Return the columns that follow from changed columns of an event: instants and the search text."""
    derived: Values = {}
    if set(values) & set(LOCAL_TIME_COLUMNS):
        current: dict[str, Any] = {name: values.get(name, row[name]) for name in LOCAL_TIME_COLUMNS}
        derived["start_utc"] = times.utc_of(current["start_local"], current["timezone"], current["start_fold"])
        derived["end_utc"] = times.utc_of(current["end_local"], current["timezone"], current["end_fold"])
    if set(values) & set(SEARCHED_COLUMNS):
        derived["search_text"] = build_search_text(values, row, SEARCHED_COLUMNS)  # type: ignore[arg-type]
    return derived


class ExistingRecords:
    """The records that snapshots refer to and that still exist."""

    def __init__(self, ids: Mapping[str, set[int]]) -> None:
        self._ids = ids

    @classmethod
    async def load(cls, tx: Transaction, snapshots: Iterable[Record]) -> "ExistingRecords":
        wanted: dict[str, set[int]] = {}
        for columns in snapshots:
            for name, link in LINKS.items():
                wanted.setdefault(link.kind, set()).update(columns.get(name) or ())
            wanted.setdefault("media", set()).update(filter(None, [columns.get("image_id")]))
        return cls(
            {
                kind: await find_existing_ids(tx, BY_NAME[kind].name if kind in BY_NAME else "media", ids)
                for kind, ids in wanted.items()
                if ids
            }
        )

    def find_links(self, columns: Record) -> dict[Link, list[int]]:
        """Return the links of a snapshot, without records that have been deleted."""
        return {
            link: [entry for entry in columns[name] if entry in self._ids.get(link.kind, set())]
            for name, link in LINKS.items()
            if name in columns
        }

    def has_image(self, image_id: int | None) -> bool:
        return image_id is None or image_id in self._ids.get("media", set())

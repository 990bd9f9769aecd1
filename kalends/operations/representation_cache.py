"""In-memory cache of records between requests: linked records, and the JSON of records as bytes.

The key of an entry has everything that the representation depends on, so entries are never outdated, only unused.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

import orjson

from kalends.core.lru import ByteLru
from kalends.kinds.kind import Kind, RenderContext
from kalends.kinds.linked_records import LinkedRecord
from kalends.store import Row

Key = tuple[object, ...]
# Bytes of a linked record without its texts: its typed form, its JSON and the site.
BASE_BYTES: Final = 6000
# Bytes of the key of a fragment without its texts.
KEY_BYTES: Final = 1000


class RepresentationCache:
    """The most recently used representations, within a budget of bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._entries: ByteLru[Key, Any] = ByteLru(max_bytes)

    def get(self, key: Key) -> LinkedRecord[Any] | None:
        linked: LinkedRecord[Any] | None = self._entries.get(key)
        return linked

    def put(self, linked: LinkedRecord[Any], columns: Iterable[object]) -> None:
        """Keep a record. Its JSON may not exist yet, so the size is estimated from the texts of its columns."""
        self._entries.put(linked.key, linked, BASE_BYTES + 4 * _count_characters(columns))

    def get_fragment(self, key: Key) -> orjson.Fragment | None:
        fragment: orjson.Fragment | None = self._entries.get(key)
        return fragment

    def put_fragment(self, key: Key, encoded: bytes) -> orjson.Fragment:
        fragment = orjson.Fragment(encoded)
        self._entries.put(key, fragment, KEY_BYTES + _count_characters(key) + len(encoded))
        return fragment


def build_scope(context: RenderContext) -> bytes:
    """Return a digest of what all representations depend on: the settings of the site and the base URLs."""
    parts = (context.site.settings, context.base_url, context.api_url, context.media_url)
    return blake2b(repr(parts).encode(), digest_size=16).digest()


def build_key(scope: bytes, kind: str, record_id: int, revision: int, count: int) -> Key:
    """Return everything that the representation of a linked record depends on."""
    return scope, kind, record_id, revision, count


def build_fragment_key(scope: bytes, kind: Kind, row: Row, context: RenderContext, *, in_full: bool) -> Key:
    """Return everything that the JSON of a record depends on.

    A revision covers the columns of the record itself. Computed columns and the number of events of a term can change
    without it, and so can the linked records, or whether the caller may see them.
    """
    linked = [_list_keys(getattr(context.linked, link.kind), row[f"{link.column}s"]) for link in kind.links]
    others = [tuple(value) if isinstance(value := row[name], list) else value for name in _list_unversioned(kind)]
    return scope, kind.name, row["id"], row["revision"], row["id"] in context.locked_ids, in_full, *linked, *others


def _count_characters(values: Iterable[object]) -> int:
    return sum(len(value) for value in values if isinstance(value, str))


def _list_keys(found: Mapping[int, LinkedRecord[Any]], ids: list[int]) -> Key:
    return tuple([found[entry].key for entry in ids if entry in found])


def _list_unversioned(kind: Kind) -> tuple[str, ...]:
    """Return the columns that can change without a new revision of the record."""
    return (*kind.reads.columns.computed_names, "count") if kind.is_term else kind.reads.columns.computed_names

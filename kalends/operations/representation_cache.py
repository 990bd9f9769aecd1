"""In-memory cache of linked records, typed and as JSON; an entry is valid for one revision of the record."""

from typing import Any

import orjson

from kalends.core.lru import ByteLru
from kalends.kinds.kind import RenderContext
from kalends.kinds.linked_records import LinkedRecord

Key = tuple[object, ...]


class RepresentationCache:
    """The most recently used records, within a budget of bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._entries: ByteLru[Key, LinkedRecord[Any]] = ByteLru(max_bytes)

    def get(self, key: Key) -> LinkedRecord[Any] | None:
        return self._entries.get(key)

    def put(self, key: Key, linked: LinkedRecord[Any]) -> None:
        # A dict takes several times the memory of its JSON text; the typed record shares its strings with it.
        self._entries.put(key, linked, 4 * len(orjson.dumps(linked.json)))


def build_key(context: RenderContext, kind: str, record_id: int, revision: int, count: int) -> Key:
    """Return everything that the representation of a linked record depends on."""
    return (
        context.site.id,
        context.site.timezone,
        context.base_url,
        context.api_url,
        kind,
        record_id,
        revision,
        count,
    )

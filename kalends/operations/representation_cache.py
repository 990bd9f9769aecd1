"""JSON of linked records, cached in the process for as long as their revision is the same."""

import orjson

from kalends.core.lru import ByteLru
from kalends.kinds.kind import JsonObject, RenderContext

Key = tuple[object, ...]


class RepresentationCache:
    """The most recently used representations, within a budget of bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._entries: ByteLru[Key, JsonObject] = ByteLru(max_bytes)

    def get(self, key: Key) -> JsonObject | None:
        return self._entries.get(key)

    def put(self, key: Key, record: JsonObject) -> None:
        # A dict takes several times the memory of its JSON.
        self._entries.put(key, record, 4 * len(orjson.dumps(record)))


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

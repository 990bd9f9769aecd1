"""JSON of linked records, cached in the process for as long as their revision is the same."""

import orjson

from kalends.core.lru import ByteLru
from kalends.kinds.kind import Represented, View

Key = tuple[object, ...]


class Fragments:
    """The most recently used representations, within a budget of bytes."""

    def __init__(self, budget: int) -> None:
        self._entries: ByteLru[Key, Represented] = ByteLru(budget)

    def get(self, key: Key) -> Represented | None:
        return self._entries.get(key)

    def put(self, key: Key, record: Represented) -> None:
        # A dict takes several times the memory of its JSON.
        self._entries.put(key, record, 4 * len(orjson.dumps(record)))


def key_of(view: View, kind: str, record_id: int, revision: int, count: int) -> Key:
    """Return everything that the representation of a linked record depends on."""
    return (view.site.id, view.site.timezone, view.base_url, view.ns, kind, record_id, revision, count)

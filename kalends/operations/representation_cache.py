"""Representations of linked records, kept in the process as long as their revision is the same."""

from collections import OrderedDict

import orjson

from kalends.kinds.kind import Represented, View

Key = tuple[object, ...]


class Fragments:
    """The most recently used ones, within a budget of bytes."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._size = 0
        self._held: OrderedDict[Key, tuple[int, Represented]] = OrderedDict()

    def get(self, key: Key) -> Represented | None:
        held = self._held.get(key)
        if held is None:
            return None
        self._held.move_to_end(key)
        return held[1]

    def put(self, key: Key, record: Represented) -> None:
        # A dict takes a few times the room of its JSON.
        size = 4 * len(orjson.dumps(record))
        replaced = self._held.pop(key, None)
        self._size += size - (replaced[0] if replaced else 0)
        self._held[key] = (size, record)
        while self._size > self._budget and self._held:
            _, (gone, _) = self._held.popitem(last=False)
            self._size -= gone


def key_of(view: View, kind: str, record_id: int, revision: int, count: int) -> Key:
    """All that the representation of a linked record depends on."""
    return (view.site.id, view.site.timezone, view.base_url, view.ns, kind, record_id, revision, count)

"""A cache of the most recently used values within a budget of bytes."""

from collections import OrderedDict
from collections.abc import Hashable


class ByteLru[K: Hashable, V]:
    """Holds values up to a total size; the least recently used ones are evicted first."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._size = 0
        self._entries: OrderedDict[K, tuple[int, V]] = OrderedDict()

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[1]

    def put(self, key: K, value: V, size: int) -> None:
        """Store a value that takes `size` bytes."""
        self.discard(key)
        self._entries[key] = (size, value)
        self._size += size
        while self._size > self._budget and self._entries:
            _, (evicted, _) = self._entries.popitem(last=False)
            self._size -= evicted

    def discard(self, key: K) -> None:
        size, _ = self._entries.pop(key, (0, None))
        self._size -= size

"""In-memory cache of linked records, typed and as JSON; an entry is valid for one revision of the record."""

from collections.abc import Iterable
from typing import Any, Final

from kalends.core.lru import ByteLru
from kalends.kinds.kind import RenderContext
from kalends.kinds.linked_records import LinkedRecord

Key = tuple[object, ...]
# Bytes of a record without its texts: the objects of its typed form and of its JSON.
BASE_BYTES: Final = 4000


class RepresentationCache:
    """The most recently used records, within a budget of bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._entries: ByteLru[Key, LinkedRecord[Any]] = ByteLru(max_bytes)

    def get(self, key: Key) -> LinkedRecord[Any] | None:
        return self._entries.get(key)

    def put(self, key: Key, linked: LinkedRecord[Any], columns: Iterable[object]) -> None:
        """Keep a record. Its JSON may not exist yet, so the size is estimated from the texts of its columns."""
        texts = sum(len(value) for value in columns if isinstance(value, str))
        self._entries.put(key, linked, BASE_BYTES + 4 * texts)


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

"""Messages of server-sent events: a page of a list, the difference between two states of it, the end of a stream."""

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, Self

import orjson
from starlette.responses import Response

COMMENT: Final = b":\n\n"  # keeps a silent connection open
HASH_BYTES: Final = 9


def format_message(event: str, message_id: str, data: bytes) -> bytes:
    """Return a message; `data` is JSON, so it has no line breaks."""
    head = f"event: {event}\nid: {message_id}\n" if message_id else f"event: {event}\n"
    return b"%bdata: %b\n\n" % (head.encode(), data)


@dataclass(frozen=True, slots=True)
class ListState:
    """One page of a list at a revision, with a hash of each record.

    Hashes are compared instead of revisions, because a renamed venue changes the JSON of its events and not their
    revision.
    """

    kind: str
    revision: int
    total: int
    total_pages: int
    hashes: dict[int, bytes]  # by ID, in the order of the list
    digest: str

    @classmethod
    def read(cls, kind: str, revision: int, response: Response) -> "tuple[Self, dict[int, bytes]]":
        """Return the state in the response to a list request, and the JSON of each record."""
        records: dict[int, bytes] = {
            record["id"]: orjson.dumps(record) for record in orjson.loads(response.body)[kind]
        }
        total, pages = int(response.headers["X-TEC-Total"]), int(response.headers["X-TEC-TotalPages"])
        hashes = {record_id: hash_content(encoded) for record_id, encoded in records.items()}
        content = repr((kind, total, pages)).encode() + b"".join(hashes.values())
        return cls(kind, revision, total, pages, hashes, urlsafe_b64encode(hash_content(content)).decode()), records

    @property
    def message_id(self) -> str:
        return f"{self.revision}-{self.digest}"

    def is_known(self, last_event_id: str) -> bool:
        """Return whether a client that received this message has the same content."""
        return last_event_id.partition("-")[2] == self.digest

    def make_snapshot(self, records: dict[int, bytes]) -> bytes:
        return self._format("snapshot", {}, records.values())

    def make_change(self, earlier: "ListState", records: dict[int, bytes]) -> bytes:
        """Return the message that turns an earlier state into this one: the order, and new or changed records."""
        changed = [records[key] for key, value in self.hashes.items() if earlier.hashes.get(key) != value]
        return self._format("change", {"since": earlier.revision, "order": list(self.hashes)}, changed)

    def _format(self, event: str, more: dict[str, Any], records: Any) -> bytes:
        fields = {"revision": self.revision, "total": self.total, "total_pages": self.total_pages, **more}
        body = {**fields, self.kind: [orjson.Fragment(record) for record in records]}
        return format_message(event, self.message_id, orjson.dumps(body))


def hash_content(content: bytes) -> bytes:
    return blake2b(content, digest_size=HASH_BYTES).digest()

"""A site's change log, with its revision and last used IDs.

The site's row stays locked until the transaction ends, so a site has one writer at a time, and revisions become
visible in order and without gaps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Final, Literal, LiteralString

import orjson
from asyncpg import Record

from kalends.core import errors
from kalends.store.sql import Sql

# Maximum number of records, including linked records, that a request can create while it holds the lock.
MAX_NEW_RECORDS: Final = 1000


@dataclass(frozen=True, slots=True)
class Change:
    """A log entry. `before` and `after` contain the changed columns as JSON."""

    revision: int
    kind: str
    record_id: int
    action: str
    before: str | None
    after: str | None
    was_public: bool
    cause: int | None = None  # revision of the series change that led to this entry
    # True if only the record's rendering changed, for example because of its image. History, undo, preconditions and
    # the modification time ignore these entries (decision 0033).
    is_derived: bool = False


# in the order in which `ChangeLog.flush` passes them
CHANGE_COLUMNS: Final = tuple(row.name for row in fields(Change))
Action = Literal["create", "update", "trash", "restore", "delete", "settings"]


@dataclass(slots=True)
class ChangeLog:
    site_id: int
    revision: int
    last_post_id: int
    last_term_id: int
    now: datetime
    user_id: int | None = None
    entries: list[Change] = field(default_factory=list[Change])
    max_new_records: int | None = None  # None means no limit
    new_records: int = 0  # includes records that were rolled back, because they also cost time

    def record(
        self,
        kind: str,
        record_id: int,
        action: Action,
        *,
        before: str | None = None,
        after: str | None = None,
        was_public: bool = False,
        cause: int | None = None,
        is_derived: bool = False,
    ) -> int:
        """Add a log entry and return its revision, which the caller stores in the changed row."""
        self.revision += 1
        self.entries.append(
            Change(self.revision, kind, record_id, action, before, after, was_public, cause, is_derived)
        )
        return self.revision

    def take_post_id(self, wanted_id: int | None = None) -> int:
        """Reserve `wanted_id`, which must be free, or the next ID. The counter never falls below a used ID."""
        self._count_new_record()
        taken = self.last_post_id + 1 if wanted_id is None else wanted_id
        self.last_post_id = max(self.last_post_id, taken)
        return taken

    def take_term_id(self, wanted_id: int | None = None) -> int:
        self._count_new_record()
        taken = self.last_term_id + 1 if wanted_id is None else wanted_id
        self.last_term_id = max(self.last_term_id, taken)
        return taken

    def _count_new_record(self) -> None:
        self.new_records += 1
        if self.max_new_records is not None and self.new_records > self.max_new_records:
            raise errors.too_many_records(self.max_new_records)

    def flush(self) -> Sql:
        """Build the statement that updates the site's row and inserts the entries."""
        statement = """
            WITH updated AS (
                UPDATE sites SET revision = ?, last_post_id = ?, last_term_id = ? WHERE id = ?
                RETURNING id
            )
            INSERT INTO changes
                (site_id, revision, kind, record_id, action, before, after, was_public, cause, is_derived, user_id,
                changed_at)
            SELECT updated.id, c.revision, c.kind, c.record_id, c.action, c.before::jsonb, c.after::jsonb,
                c.was_public, c.cause, c.is_derived, ?::bigint, ?::timestamptz
            FROM updated, unnest(?::bigint[], ?::text[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::boolean[],
                ?::bigint[], ?::boolean[])
                AS c (revision, kind, record_id, action, before, after, was_public, cause, is_derived)
        """
        counters = (self.revision, self.last_post_id, self.last_term_id, self.site_id)
        columns = [[getattr(change, name) for change in self.entries] for name in CHANGE_COLUMNS]
        return Sql(statement, *counters, self.user_id, self.now, *columns)

    def enqueue_purge(self, traceparent: str) -> Sql:
        first, last = self.entries[0].revision, self.entries[-1].revision
        query = (
            "SELECT enqueue_job('purge', jsonb_strip_nulls(jsonb_build_object('first', ?::bigint, 'last', ?::bigint, "
            "'traceparent', ?::text)), NULL)"
        )
        return Sql(query, first, last, traceparent or None)


def select_site_for_update(site_id: int) -> Sql:
    return Sql("SELECT revision, last_post_id, last_term_id FROM sites WHERE id = ? FOR NO KEY UPDATE", site_id)


def choose_action(row: Mapping[str, Any] | Record, changed: Mapping[LiteralString, object]) -> Action:
    if "status" not in changed:
        return "update"
    if changed["status"] == "trash":
        return "trash"
    return "restore" if row["status"] == "trash" else "update"


def encode_columns(values: dict[str, Any]) -> str:
    """Encode columns as JSON; `bytes` (password hashes) become hex."""
    return orjson.dumps(values, default=_encode_value).decode()


def _encode_value(value: object) -> object:
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    return str(value)


def decode_columns(encoded: str | None) -> dict[str, Any]:
    columns: dict[str, Any] = orjson.loads(encoded) if encoded else {}
    return columns

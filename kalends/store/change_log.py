"""The change log of a site, with its revision and its last IDs.

The row of the site stays locked until the end of the transaction, so a site has one writer at a time, and revisions
become visible in order and without gaps.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from kalends.core import errors
from kalends.store.sql import Sql

# Maximum number of records that one request creates, including linked ones: each is written under the lock.
MAX_NEW_RECORDS: Final = 1000


@dataclass(frozen=True, slots=True)
class Change:
    """An entry of the log. `before` and `after` are the changed columns as JSON."""

    revision: int
    kind: str
    record_id: int
    action: str
    before: str | None
    after: str | None
    was_public: bool
    cause: int | None = None  # the revision of the change of a series that this one follows from
    # Whether the body of the record has changed because of something else, such as its image. Nobody has edited it:
    # history, undo, preconditions and the time of the last change ignore the entry (decision 0033).
    is_derived: bool = False


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
    new_records: int = 0  # includes records that were rolled back, because they cost time as well

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
        """Add an entry to the log and return its revision, which the changed row gets as well."""
        self.revision += 1
        self.entries.append(
            Change(self.revision, kind, record_id, action, before, after, was_public, cause, is_derived)
        )
        return self.revision

    def next_post_id(self) -> int:
        self._count_new_record()
        self.last_post_id += 1
        return self.last_post_id

    def next_term_id(self) -> int:
        self._count_new_record()
        self.last_term_id += 1
        return self.last_term_id

    def take_post_id(self, wanted_id: int | None) -> int:
        """Return a wanted ID, which must be free, or the next one. The counter stays above all IDs."""
        if wanted_id is None:
            return self.next_post_id()
        self._count_new_record()
        self.last_post_id = max(self.last_post_id, wanted_id)
        return wanted_id

    def take_term_id(self, wanted_id: int | None) -> int:
        """Return a wanted ID, which must be free, or the next one. The counter stays above all IDs."""
        if wanted_id is None:
            return self.next_term_id()
        self._count_new_record()
        self.last_term_id = max(self.last_term_id, wanted_id)
        return wanted_id

    def _count_new_record(self) -> None:
        self.new_records += 1
        if self.max_new_records is not None and self.new_records > self.max_new_records:
            raise errors.too_many_records(self.max_new_records)

    def flush(self) -> Sql:
        """Build the statement that updates the row of the site and inserts the entries."""
        entries = self.entries
        return Sql(
            """
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
            """,
            self.revision,
            self.last_post_id,
            self.last_term_id,
            self.site_id,
            self.user_id,
            self.now,
            [change.revision for change in entries],
            [change.kind for change in entries],
            [change.record_id for change in entries],
            [change.action for change in entries],
            [change.before for change in entries],
            [change.after for change in entries],
            [change.was_public for change in entries],
            [change.cause for change in entries],
            [change.is_derived for change in entries],
        )

    def enqueue_purge(self, traceparent: str) -> Sql:
        """Build the statement that enqueues the purge of these changes from shared caches."""
        first, last = self.entries[0].revision, self.entries[-1].revision
        return Sql(
            "SELECT enqueue_job('purge', jsonb_strip_nulls(jsonb_build_object('first', ?::bigint, 'last', ?::bigint, "
            "'traceparent', ?::text)), NULL)",
            first,
            last,
            traceparent or None,
        )


def select_site_for_update(site_id: int) -> Sql:
    return Sql("SELECT revision, last_post_id, last_term_id FROM sites WHERE id = ? FOR NO KEY UPDATE", site_id)

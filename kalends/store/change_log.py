"""The clock of a site: its revision, its IDs and its change log.

The row of the site stays locked from the first look at the clock to the end of the transaction,
so revisions become visible in order and without gaps, and two writers never meet.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from kalends.core import errors
from kalends.store.sql import Sql

# Records that one request may create, those inside others included: each of them is written under the lock.
MAX_NEW_RECORDS: Final = 1000


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the log. `before` and `after` are the changed columns as JSON."""

    revision: int
    kind: str
    record_id: int
    action: str
    before: str | None
    after: str | None
    was_public: bool


Action = Literal["create", "update", "trash", "restore", "delete", "settings"]


@dataclass(slots=True)
class Clock:
    site_id: int
    revision: int
    last_post_id: int
    last_term_id: int
    now: datetime
    user_id: int | None = None
    changes: list[Change] = field(default_factory=list[Change])
    max_new: int | None = None  # None: any number of new records
    new: int = 0  # including those that were undone: they took their time, too

    def stamp(
        self,
        kind: str,
        record_id: int,
        action: Action,
        *,
        before: str | None = None,
        after: str | None = None,
        was_public: bool = False,
    ) -> int:
        """The revision of one change; it goes onto the changed row and into the log."""
        self.revision += 1
        self.changes.append(Change(self.revision, kind, record_id, action, before, after, was_public))
        return self.revision

    def next_post_id(self) -> int:
        self._count_new()
        self.last_post_id += 1
        return self.last_post_id

    def next_term_id(self) -> int:
        self._count_new()
        self.last_term_id += 1
        return self.last_term_id

    def _count_new(self) -> None:
        self.new += 1
        if self.max_new is not None and self.new > self.max_new:
            raise errors.too_many_records(self.max_new)

    def written(self) -> Sql:
        """Raises the site's row and adds to the log, in one statement."""
        changes = self.changes
        return Sql(
            """
            WITH raised AS (
                UPDATE sites SET revision = ?, last_post_id = ?, last_term_id = ? WHERE id = ?
                RETURNING id
            )
            INSERT INTO changes
                (site_id, revision, kind, record_id, action, before, after, was_public, user_id, at)
            SELECT raised.id, c.revision, c.kind, c.record_id, c.action, c.before::jsonb, c.after::jsonb,
                c.was_public, ?::bigint, ?::timestamptz
            FROM raised, unnest(?::bigint[], ?::text[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::boolean[])
                AS c (revision, kind, record_id, action, before, after, was_public)
            """,
            self.revision,
            self.last_post_id,
            self.last_term_id,
            self.site_id,
            self.user_id,
            self.now,
            [change.revision for change in changes],
            [change.kind for change in changes],
            [change.record_id for change in changes],
            [change.action for change in changes],
            [change.before for change in changes],
            [change.after for change in changes],
            [change.was_public for change in changes],
        )

    def purge(self) -> Sql:
        """Enqueues the job that tells shared caches of these changes."""
        first, last = self.changes[0].revision, self.changes[-1].revision
        return Sql(
            "SELECT enqueue_job('purge', jsonb_build_object('first', ?::bigint, 'last', ?::bigint), NULL)",
            first,
            last,
        )


def locked_clock(site_id: int) -> Sql:
    return Sql("SELECT revision, last_post_id, last_term_id FROM sites WHERE id = ? FOR NO KEY UPDATE", site_id)

"""Reads the change log, by record or since a revision; stores idempotency keys."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString

import orjson
from asyncpg import Record

from kalends.core import errors
from kalends.core.params import MAX_ID
from kalends.store.database import Transaction
from kalends.store.sql import Sql, join

# Maximum number of entries of the log to search for recent changes.
MAX_RECENT: Final = 500
KINDS: tuple[LiteralString, ...] = ("events", "venues", "organizers", "categories", "tags", "series")


async def list_record_changes(
    tx: Transaction, kind: str, record_id: int, *, after: int = 0, before: int = MAX_ID, limit: int | None = None
) -> list[Record]:
    """Return a record's edits between two revisions, newest first, without derived and empty changes."""
    return await tx.fetch_all(
        Sql(
            """
            SELECT c.revision, c.action, c.changed_at, c.user_id, u.login, u.display_name, c.before, c.after
            FROM changes c LEFT JOIN users u ON u.site_id = c.site_id AND u.id = c.user_id
            WHERE c.site_id = ? AND c.kind = ? AND c.record_id = ? AND c.revision > ? AND c.revision < ?
                AND NOT c.is_derived
                AND NOT (c.action = 'update' AND c.user_id IS NULL AND c.before IS NULL AND c.after IS NULL)
            ORDER BY c.revision DESC LIMIT ?
            """,
            *(tx.site.id, kind, record_id, after, before, limit),
        )
    )


async def list_edits_of_records(tx: Transaction, kind: str, ids: Sequence[int], after: int) -> list[Record]:
    """Return the edits of several records since a revision, newest first."""
    return await tx.fetch_all(
        Sql(
            """SELECT record_id, action, before FROM changes
                WHERE site_id = ? AND kind = ? AND record_id = ANY(?) AND revision > ? AND NOT is_derived
                ORDER BY revision DESC""",
            *(tx.site.id, kind, list(ids), after),
        )
    )


async def find_revision_at(tx: Transaction, moment: datetime) -> int:
    """Return the site's revision at a time, or the oldest one that is still in the log."""
    query = "SELECT revision FROM changes WHERE site_id = ? AND changed_at < ? ORDER BY revision DESC LIMIT 1"
    return await tx.fetch_value(Sql(query, tx.site.id, moment)) or tx.site.trimmed_revision


async def list_recent_changes(
    tx: Transaction, user_id: int, since: datetime, author: int | None, limit: int
) -> list[Record]:
    """Return the last change of each event that other users have changed since a time, newest first.

    Only the latest entries of the log are read, so that the cost doesn't depend on the number of changes.
    """
    of_author = Sql("AND e.author_id = ?", author) if author is not None else Sql("")
    return await tx.fetch_all(
        Sql(
            """
            SELECT * FROM (
                SELECT DISTINCT ON (c.record_id) c.revision, c.action, c.changed_at, e.id, e.title,
                    coalesce(nullif(u.display_name, ''), u.login, '') AS user_name
                FROM (SELECT * FROM changes WHERE site_id = ? ORDER BY revision DESC LIMIT ?) c
                JOIN events e ON e.site_id = c.site_id AND e.id = c.record_id AND c.kind = 'events'
                LEFT JOIN users u ON u.site_id = c.site_id AND u.id = c.user_id
                WHERE c.user_id <> ? AND c.changed_at >= ? AND NOT c.is_derived
            """,
            *(tx.site.id, MAX_RECENT, user_id, since),
        )
        + of_author
        + Sql("ORDER BY c.record_id, c.revision DESC) c ORDER BY revision DESC LIMIT ?", limit)
    )


async def is_only_derived(tx: Transaction, kind: str, record_id: int, since: int) -> bool:
    """Return whether all of a record's changes since a revision are derived. Without changes, return False."""
    found: bool | None = await tx.fetch_value(
        Sql(
            """SELECT bool_and(is_derived) FROM changes
                WHERE site_id = ? AND kind = ? AND record_id = ? AND revision > ?""",
            *(tx.site.id, kind, record_id, since),
        )
    )
    return bool(found)


async def list_changed_records(
    tx: Transaction, since: int, snapshot_revision: int, kinds: Sequence[str], limit: int
) -> list[Record]:
    """Return changed records, and tombstones of deleted ones, sorted by revision."""
    parts = [
        Sql("(SELECT revision, '" + kind + "' AS kind, id, false AS gone FROM " + kind + " WHERE site_id = ? "
            "AND revision > ? ORDER BY revision LIMIT ?)", tx.site.id, since, limit)
        for kind in KINDS
        if kind in kinds
    ]  # fmt: skip
    parts.append(
        Sql(
            """(SELECT revision, kind, record_id, true FROM changes WHERE site_id = ? AND revision > ?
                AND action = 'delete' AND kind = ANY(?) ORDER BY revision LIMIT ?)""",
            *(tx.site.id, max(since, snapshot_revision), list(kinds), limit),
        )
    )
    return await tx.fetch_all(
        Sql("SELECT * FROM (") + join(" UNION ALL ", parts) + Sql(") AS c ORDER BY revision LIMIT ?", limit)
    )


async def find_changed_records(tx: Transaction, records: Sequence[tuple[str, int]]) -> list[Record]:
    """Return these records, or the tombstones of deleted ones, as `list_changed_records` does."""
    parts = [
        Sql("SELECT revision, '" + kind + "' AS kind, id, false AS gone FROM " + kind + " WHERE site_id = ? "
            "AND id = ANY(?)", tx.site.id, ids)
        for kind in KINDS
        if (ids := [record_id for name, record_id in records if name == kind])
    ]  # fmt: skip
    parts.append(
        Sql(
            """SELECT c.revision, c.kind, c.record_id, true
                FROM unnest(?::text[], ?::bigint[]) AS w (kind, id) JOIN changes c
                    ON c.site_id = ? AND c.kind = w.kind AND c.record_id = w.id AND c.action = 'delete'""",
            [kind for kind, _ in records],
            [record_id for _, record_id in records],
            tx.site.id,
        )
    )
    # After an undone deletion, the record exists again.
    return await tx.fetch_all(
        Sql("SELECT DISTINCT ON (kind, id) * FROM (")
        + join(" UNION ALL ", parts)
        + Sql(") AS c ORDER BY kind, id, revision DESC")
    )


@dataclass(frozen=True, slots=True)
class NetChange:
    """What several changes of a record amount to."""

    was_public: bool  # before the first of them
    was_once_public: bool  # before any of them
    columns: Sequence[str]  # those whose values differ


async def find_net_changes(
    tx: Transaction, records: Sequence[tuple[str, int, int]]
) -> dict[tuple[str, int], NetChange]:
    """Summarize the changes to each record, given by kind and ID, since a revision."""
    rows = await tx.fetch_all(
        Sql(
            """
            WITH entries AS MATERIALIZED (
                SELECT c.kind, c.record_id, c.revision, c.was_public, c.before, c.after
                FROM unnest(?::text[], ?::bigint[], ?::bigint[]) AS w (kind, id, since)
                JOIN changes c ON c.site_id = ? AND c.kind = w.kind AND c.record_id = w.id AND c.revision > w.since
            ), olds AS (
                SELECT DISTINCT ON (kind, record_id, key) kind, record_id, key, value
                FROM entries, jsonb_each(before) ORDER BY kind, record_id, key, revision
            ), news AS (
                SELECT DISTINCT ON (kind, record_id, key) kind, record_id, key, value
                FROM entries, jsonb_each(after) ORDER BY kind, record_id, key, revision DESC
            ), differing AS (
                SELECT kind, record_id, array_agg(key ORDER BY key) AS columns
                FROM olds LEFT JOIN news USING (kind, record_id, key)
                WHERE olds.value IS DISTINCT FROM news.value GROUP BY 1, 2
            )
            SELECT e.kind, e.record_id AS id, (array_agg(e.was_public ORDER BY e.revision))[1] AS was_public,
                bool_or(e.was_public) AS was_once_public, coalesce(min(d.columns), '{}') AS columns
            FROM entries e LEFT JOIN differing d USING (kind, record_id) GROUP BY 1, 2
            """,
            [kind for kind, _, _ in records],
            [record_id for _, record_id, _ in records],
            [since for _, _, since in records],
            tx.site.id,
        )
    )
    return {
        (row["kind"], row["id"]): NetChange(row["was_public"], row["was_once_public"], row["columns"]) for row in rows
    }


async def find_once_linked(
    tx: Transaction, events: Sequence[tuple[int, int]], linked_ids: Mapping[str, Sequence[int]]
) -> set[int]:
    """Return the events, given by ID and revision, that were linked to one of the records after the revision.

    `linked_ids` are by the logged column, such as `venue_ids`. The log has a column only if it changed.
    """
    rows = await tx.fetch_all(
        Sql(
            """
            SELECT DISTINCT w.id FROM unnest(?::bigint[], ?::bigint[]) AS w (id, since)
            JOIN changes c ON c.site_id = ? AND c.kind = 'events' AND c.record_id = w.id AND c.revision > w.since
            CROSS JOIN jsonb_each(?::jsonb) AS f (name, ids)
            CROSS JOIN jsonb_array_elements(f.ids) AS i (id)
            WHERE (c.before -> f.name) @> i.id OR (c.after -> f.name) @> i.id
            """,
            [record_id for record_id, _ in events],
            [since for _, since in events],
            tx.site.id,
            orjson.dumps({name: list(ids) for name, ids in linked_ids.items()}).decode(),
        )
    )
    return {row["id"] for row in rows}


async def find_once_visible(
    tx: Transaction, since: int, records: Sequence[tuple[str, int]], user_id: int | None
) -> set[tuple[str, int]]:
    """Return the records that were public, or visible to the user as author, at any time since a revision."""
    if not records:
        return set()
    rows = await tx.fetch_all(
        Sql(
            """
            SELECT DISTINCT c.kind, c.record_id
            FROM unnest(?::text[], ?::bigint[]) AS w (kind, id)
            JOIN changes c ON c.site_id = ? AND c.kind = w.kind AND c.record_id = w.id
            WHERE c.revision > ? AND (c.was_public OR (c.before ->> 'author_id')::bigint = ?::bigint)
            UNION
            SELECT w.kind, w.id FROM unnest(?::text[], ?::bigint[]) AS w (kind, id)
            WHERE w.id IN (
                SELECT id FROM events WHERE site_id = ? AND w.kind = 'events' AND author_id = ?
                UNION ALL SELECT id FROM venues WHERE site_id = ? AND w.kind = 'venues' AND author_id = ?
                UNION ALL SELECT id FROM organizers WHERE site_id = ? AND w.kind = 'organizers' AND author_id = ?
                UNION ALL SELECT id FROM series WHERE site_id = ? AND w.kind = 'series' AND author_id = ?)
            """,
            [kind for kind, _ in records],
            [record_id for _, record_id in records],
            tx.site.id,
            since,
            user_id,
            [kind for kind, _ in records],
            [record_id for _, record_id in records],
            *[tx.site.id, user_id] * 4,
        )
    )
    return {(row["kind"], row["record_id"]) for row in rows}


async def trim_log(tx: Transaction, before: Any) -> int:
    """Delete changes made before a given time. Return the last deleted revision, which the site's row stores."""
    last: int | None = await tx.fetch_value(
        Sql(
            """SELECT max(revision) FROM changes WHERE site_id = ? AND changed_at < ?
                AND revision < coalesce((SELECT min(revision) FROM changes WHERE site_id = ? AND changed_at >= ?),
                    9223372036854775807)""",
            *(tx.site.id, before, tx.site.id, before),
        )
    )
    if last is None:
        return 0
    await tx.execute(Sql("DELETE FROM changes WHERE site_id = ? AND revision <= ?", tx.site.id, last))
    await tx.execute(Sql("UPDATE sites SET trimmed_revision = ? WHERE id = ?", last, tx.site.id))
    return last


# Responses to return for a repeated Idempotency-Key, stored in the same transaction as the write.


@dataclass(frozen=True, slots=True)
class StoredResponse:
    status: int
    headers: dict[str, str]
    body: bytes


async def lock_key(tx: Transaction, user_id: int, key: str) -> None:
    """Lock a key before locking the site. Raise if another transaction holds the key."""
    digest = hashlib.blake2b(f"{tx.site.id}\0{user_id}\0{key}".encode(), digest_size=8).digest()
    lock_id = int.from_bytes(digest, "big", signed=True)
    if not await tx.fetch_value(Sql("SELECT pg_try_advisory_xact_lock(?::bigint)", lock_id)):
        raise errors.in_progress()


async def find_response(tx: Transaction, user_id: int, key: str, fingerprint: bytes) -> StoredResponse | None:
    """Return the stored response, if any. Raise if the key was used for another request.

    FOR UPDATE writes WAL, so returning a stored response waits for a synchronous standby, as the write itself did.
    """
    row = await tx.fetch_one(
        Sql(
            """
            SELECT fingerprint, status, headers, body FROM idempotency
            WHERE site_id = ? AND user_id = ? AND key = ? AND created_at > ?::timestamptz - interval '1 day'
            FOR UPDATE
            """,
            *(tx.site.id, user_id, key, tx.now),
        )
    )
    if row is None:
        return None
    if row["fingerprint"] != fingerprint:
        raise errors.key_reused()
    return StoredResponse(row["status"], orjson.loads(row["headers"]), row["body"])


async def store_response(
    tx: Transaction, user_id: int, key: str, fingerprint: bytes, response: StoredResponse
) -> None:
    """Store a response for a day, and delete expired responses."""
    await tx.execute(
        Sql(
            """
            WITH old AS (
                DELETE FROM idempotency WHERE site_id = ? AND created_at <= ?::timestamptz - interval '1 day'
            )
            INSERT INTO idempotency (site_id, user_id, key, fingerprint, status, headers, body, created_at)
            VALUES (?, ?, ?, ?, ?, ?::jsonb, ?, ?)
            ON CONFLICT (site_id, user_id, key) DO UPDATE SET
                fingerprint = excluded.fingerprint, status = excluded.status, headers = excluded.headers,
                body = excluded.body, created_at = excluded.created_at
            """,
            tx.site.id,
            tx.now,
            tx.site.id,
            user_id,
            key,
            fingerprint,
            response.status,
            orjson.dumps(response.headers).decode(),
            response.body,
            tx.now,
        )
    )

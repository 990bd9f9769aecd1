"""Queries of the console's queue: decided and own proposals, similar ones that wait, and blocked senders."""

from collections.abc import Sequence
from typing import Final, LiteralString

from kalends.calendar.operations.duplicates import DUPLICATE_PERIOD, MAX_FOUND, MIN_SIMILARITY
from kalends.calendar.rules.similarity import compare_titles
from kalends.proposals.rules import DECIDED, KEPT_PERIOD
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql

# The columns of `storage.list_queue` that the list shows, and the decision. Senders see titles that they may read.
_ENTRIES: Final[LiteralString] = """
    SELECT p.id::text AS key, p.id::text AS id, p.version, p.record_id, p.base_revision, p.state, p.starts_at,
        p.origin, p.program, p.reason, p.comment, 1::bigint AS dates, coalesce(p.values ->> 'title',
            CASE WHEN ? OR e.status = 'publish' OR e.author_id = p.user_id THEN e.title END, '') AS title
    FROM proposals p LEFT JOIN events e ON e.site_id = p.site_id AND e.id = p.record_id
    WHERE p.site_id = ?
"""
_DECIDED: Final[LiteralString] = "AND p.state = ANY(?) AND p.decided_at > ? ORDER BY p.decided_at DESC, p.id LIMIT ?"
# A returned event that waits for a review again is in the queue.
_OF_SENDER: Final[LiteralString] = """AND p.user_id = ? AND p.state NOT IN ('waiting', 'unconfirmed')
    AND NOT (p.values = '{}' AND e.status = 'pending') ORDER BY p.created_at DESC, p.id LIMIT ?"""
_BY_ID: Final[LiteralString] = "AND p.id = ANY(?::text[]::uuid[]) ORDER BY p.starts_at, p.id"
_SIMILAR: Final[LiteralString] = """AND p.state = 'waiting' AND p.values <> '{}' AND p.id::text <> ?
    AND (p.record_id = ? OR p.starts_at BETWEEN ? AND ?
        AND similarity(lower(coalesce(p.values ->> 'title', e.title)), lower(?)) >= 0.25::real)
    ORDER BY p.record_id = ? DESC NULLS LAST, p.starts_at, p.id LIMIT 50"""


async def list_decided(tx: Transaction, limit: int) -> list[Row]:
    """Return the decisions that can still be undone, latest first."""
    return await _list_entries(tx, _DECIDED, list(DECIDED), tx.now - KEPT_PERIOD, limit)


async def list_of_sender(tx: Transaction, user_id: int, limit: int) -> list[Row]:
    """Return a user's proposals that do not wait, newest first."""
    return await _list_entries(tx, _OF_SENDER, user_id, limit, sees_all=False)


async def find_entries(tx: Transaction, proposal_ids: Sequence[str]) -> list[Row]:
    return await _list_entries(tx, _BY_ID, list(proposal_ids))


async def list_similar(tx: Transaction, row: Row, title: str) -> list[Row]:
    """Return waiting proposals with a similar title at about the same time, and those for the same event."""
    start, record_id = row["starts_at"], row["record_id"]
    span = (start - DUPLICATE_PERIOD, start + DUPLICATE_PERIOD)
    found = await _list_entries(tx, _SIMILAR, row["id"], record_id, *span, title, record_id)
    return [
        other
        for other in found
        if (record_id is not None and other["record_id"] == record_id)
        or compare_titles(title, other["title"]) >= MIN_SIMILARITY
    ][:MAX_FOUND]


async def _list_entries(
    tx: Transaction, condition: LiteralString, *values: object, sees_all: bool = True
) -> list[Row]:
    return await tx.fetch_all(Sql(_ENTRIES + condition, sees_all, tx.site.id, *values))


async def is_blocked(tx: Transaction, submitter_id: str) -> bool:
    query = "SELECT blocked_at IS NOT NULL FROM submitters WHERE site_id = ? AND id = ?"
    return bool(await tx.fetch_value(Sql(query, tx.site.id, submitter_id)))


async def block_submitter(tx: Transaction, submitter_id: str, user_id: int | None, *, is_blocked: bool) -> None:
    query = "UPDATE submitters SET blocked_at = ?, blocked_by = ? WHERE site_id = ? AND id = ?"
    blocked = (tx.now, user_id) if is_blocked else (None, None)
    await tx.execute(Sql(query, *blocked, tx.site.id, submitter_id))

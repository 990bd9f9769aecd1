"""The tables of proposals: rows, the queue, what is due, pictures, and the changes of their events."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, LiteralString

import orjson
from asyncpg import Record

from kalends.core.credentials import is_uuid
from kalends.proposals.rules import OPEN
from kalends.store.database import Database, Transaction
from kalends.store.sql import Sql, join, placeholders

Columns = Mapping[LiteralString, object]

COLUMNS: Final[LiteralString] = (
    "p.id::text AS id, p.version, p.record_id, p.base_revision, p.values::text AS values, p.origin, p.user_id, "
    "p.submitter_id::text AS submitter_id, p.submitter_name, p.note, p.guessed, p.source, p.program, p.state, "
    "p.starts_at, p.created_at, p.expires_at, p.decided_by, p.decided_at, p.reason, p.comment, p.first_revision, "
    "p.last_revision"
)
_SELECT: Final[LiteralString] = "SELECT " + COLUMNS + " FROM proposals p WHERE p.site_id = ?"
# Pending events by date or, in a series, by their first date. The first condition selects the index.
_PENDING: Final[LiteralString] = """
    (e.status <> 'publish' AND NOT e.hide_from_listings OR e.hide_from_listings) AND e.status = 'pending'
"""


def decode_values(row: Record) -> dict[str, Any]:
    values: dict[str, Any] = orjson.loads(row["values"])
    return values


def encode_values(values: Mapping[str, Any]) -> str:
    """Encode parameters for a jsonb column, which cannot store U+0000."""
    return orjson.dumps(_without_nul(values)).decode()


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, list):
        return [_without_nul(entry) for entry in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, Mapping):
        return {str(name): _without_nul(entry) for name, entry in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


async def add_proposal(tx: Transaction, values: Columns) -> Record:
    names: list[LiteralString] = ["site_id", *values]
    return await _fetch(
        tx,
        Sql(
            "INSERT INTO proposals AS p (" + ", ".join(names) + ") VALUES (" + placeholders(len(names)) + ") "
            "RETURNING " + COLUMNS,
            *(tx.site.id, *values.values()),
        ),
    )


async def change_proposal(tx: Transaction, proposal_id: str, values: Columns) -> Record:
    """Write these columns, and raise the version."""
    assignments = [Sql("version = version + 1"), *[Sql(name + " = ?", value) for name, value in values.items()]]
    where = Sql("WHERE p.site_id = ? AND p.id = ? RETURNING " + COLUMNS, tx.site.id, proposal_id)
    return await _fetch(tx, Sql("UPDATE proposals p SET") + join(", ", assignments) + where)


async def _fetch(tx: Transaction, sql: Sql) -> Record:
    row = await tx.fetch_one(sql)
    if row is None:
        raise AssertionError("a proposal vanished inside its own transaction")
    return row


async def find_proposal(tx: Transaction, proposal_id: str, *, locked: bool = False) -> Record | None:
    """Return a proposal. With `locked`, other transactions wait until this one ends."""
    if not is_uuid(proposal_id.lower()):
        return None
    where = Sql(_SELECT + " AND p.id = ?", tx.site.id, proposal_id)
    return await tx.fetch_one(where + Sql("FOR NO KEY UPDATE") if locked else where)


async def find_open_change(
    tx: Transaction, record_id: int, user_id: int | None, submitter_id: str | None
) -> Record | None:
    """Return the open change of an event by an account or a submitter, of which there is at most one."""
    where = " AND p.record_id = ? AND p.state = ANY(?) AND p.values <> '{}' AND (p.user_id = ? OR p.submitter_id = ?)"
    return await tx.fetch_one(Sql(_SELECT + where, tx.site.id, record_id, list(OPEN), user_id, submitter_id))


async def find_open_review(tx: Transaction, record_id: int) -> Record | None:
    """Return the open decision on a pending event, a row without values."""
    where = " AND p.record_id = ? AND p.state = ANY(?) AND p.values = '{}' ORDER BY p.created_at DESC LIMIT 1"
    return await tx.fetch_one(Sql(_SELECT + where, tx.site.id, record_id, list(OPEN)))


async def count_open(tx: Transaction, user_id: int) -> int:
    where = "SELECT count(*) FROM proposals WHERE site_id = ? AND user_id = ? AND state = ANY(?) AND values <> '{}'"
    number: int = await tx.fetch_value(Sql(where, tx.site.id, user_id, list(OPEN)))
    return number


async def remove_proposal(tx: Transaction, proposal_id: str) -> None:
    await tx.execute(Sql("DELETE FROM proposals WHERE site_id = ? AND id = ?", tx.site.id, proposal_id))


async def list_proposals(
    tx: Transaction, filters: Mapping[LiteralString, object], after: tuple[datetime, str] | None, limit: int
) -> list[Record]:
    """Return confirmed proposals by start. `filters` maps columns to values; a list means one of these."""
    conditions = [
        Sql("AND p." + name + " = ANY(?)", value) if isinstance(value, list) else Sql("AND p." + name + " = ?", value)
        for name, value in filters.items()
    ]
    if after is not None:
        conditions.append(Sql("AND (p.starts_at, p.id) > (?, ?::uuid)", *after))
    listed = Sql(_SELECT + " AND p.state <> 'unconfirmed'", tx.site.id)
    order = Sql("ORDER BY p.starts_at, p.id LIMIT ?", limit)
    return await tx.fetch_all(listed + join(" ", [*conditions, order]))


# The queue: waiting proposals, and pending events ------------------------------------------------


async def count_queue(tx: Transaction) -> int:
    """Return how many proposals and pending events wait; the dates of a series count once."""
    number: int = await tx.fetch_value(
        Sql(
            "SELECT (SELECT count(*) FROM proposals WHERE site_id = ? AND state = 'waiting' AND values <> '{}') + "
            "(SELECT count(DISTINCT coalesce(e.series_id, -e.id)) FROM events e WHERE e.site_id = ? AND"
            + _PENDING
            + ")",
            *(tx.site.id, tx.site.id),
        )
    )
    return number


async def list_queue(tx: Transaction, limit: int, after: tuple[datetime, str] | None = None) -> list[Record]:
    """Return the entries of the queue by start.

    `key` and `starts_at` of the last entry are the next `after`. `id` is null for a pending event.
    """
    start, key = after or (None, "")
    return await tx.fetch_all(
        Sql(
            """
            SELECT * FROM (
                SELECT p.id::text AS key, p.id::text AS id, p.version, p.record_id, p.base_revision, e.revision,
                    e.series_id, p.starts_at, coalesce(p.values ->> 'title', e.title) AS title, p.origin, p.user_id,
                    p.submitter_name, p.program, p.created_at, 1::bigint AS dates
                FROM proposals p LEFT JOIN events e ON e.site_id = p.site_id AND e.id = p.record_id
                WHERE p.site_id = ? AND p.state = 'waiting' AND p.values <> '{}'
                UNION ALL
                SELECT * FROM (
                    SELECT DISTINCT ON (coalesce(e.series_id, -e.id)) e.id::text, NULL, NULL::integer, e.id,
                        NULL::bigint, e.revision, e.series_id, e.start_utc, e.title, 'contributor', e.author_id, '',
                        '', e.modified_utc, count(*) OVER (PARTITION BY coalesce(e.series_id, -e.id))
                    FROM events e WHERE e.site_id = ? AND"""
            + _PENDING
            + """
                    ORDER BY coalesce(e.series_id, -e.id), e.start_utc, e.id) d
            ) q
            WHERE ?::timestamptz IS NULL OR (q.starts_at, q.key) > (?, ?) ORDER BY q.starts_at, q.key LIMIT ?
            """,
            *(tx.site.id, tx.site.id, start, start, key, limit),
        )
    )


# Events --------------------------------------------------------------------------------------------


async def find_event_end(tx: Transaction, event_id: int) -> datetime | None:
    """Return when an event ends or, in the trash, ended; None if it no longer exists."""
    query = "SELECT least(end_utc, trashed_at) FROM events WHERE site_id = ? AND id = ?"
    end: datetime | None = await tx.fetch_value(Sql(query, tx.site.id, event_id))
    return end


async def find_origins(tx: Transaction, record_id: int) -> list[Record]:
    """Return who proposed which of an event's changes: `first_revision` (exclusive), `last_revision`, `origin`,
    `program`.
    """
    query = """SELECT first_revision, last_revision, origin, program FROM proposals
        WHERE site_id = ? AND record_id = ? AND state = 'accepted' ORDER BY last_revision"""
    return await tx.fetch_all(Sql(query, tx.site.id, record_id))


# Pictures ------------------------------------------------------------------------------------------


async def find_pictures(tx: Transaction, proposal_ids: Sequence[str]) -> list[Record]:
    """Return the pictures of waiting proposals."""
    query = """SELECT c.proposal_id::text AS id, c.content, c.alt_text FROM proposal_pictures c
        JOIN proposals p ON p.site_id = c.site_id AND p.id = c.proposal_id AND p.state = 'waiting'
        WHERE c.site_id = ? AND c.proposal_id = ANY(?::text[]::uuid[])"""
    return await tx.fetch_all(Sql(query, tx.site.id, list(proposal_ids)))


async def find_alt_text(tx: Transaction, proposal_id: str) -> str | None:
    """Return the description of a proposal's picture; None: it has none."""
    query = "SELECT alt_text FROM proposal_pictures WHERE site_id = ? AND proposal_id = ?"
    text: str | None = await tx.fetch_value(Sql(query, tx.site.id, proposal_id))
    return text


async def remove_picture(tx: Transaction, proposal_id: str) -> None:
    await tx.execute(
        Sql("DELETE FROM proposal_pictures WHERE site_id = ? AND proposal_id = ?", tx.site.id, proposal_id)
    )


# What a job has to look at -------------------------------------------------------------------------


async def find_due_proposals(database: Database, cutoff: datetime, limit: int = 1000) -> list[Record]:
    return await database.fetch_unscoped(
        Sql("SELECT site_id, id::text AS id FROM due_proposals(?, ?)", cutoff, limit)
    )


async def postpone(tx: Transaction, proposal_id: str, due_at: datetime) -> None:
    """Set when to look at a row again. The proposal has not changed, so it keeps its version."""
    query = "UPDATE proposals SET expires_at = ? WHERE site_id = ? AND id = ?"
    await tx.execute(Sql(query, due_at, tx.site.id, proposal_id))

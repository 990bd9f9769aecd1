"""What delivery reads and writes of a webhook: its row, pending records and the log of deliveries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson

from kalends.push.rules import MAX_DELIVERIES
from kalends.push.storage.log_consumers import Lease, LeaseLost
from kalends.store.database import Transaction
from kalends.store.sql import Sql

type RecordKey = tuple[str, int]  # kind and ID


@dataclass(frozen=True, slots=True)
class Webhook:
    """An active endpoint, its position in the log and the number of its pending records."""

    id: str
    url: str
    kinds: tuple[str, ...]  # empty: the default
    filter: Mapping[str, Any]
    is_thin: bool
    generation: int
    rotated_at: datetime | None
    replays: int
    failing_since: datetime | None
    notified_at: datetime | None
    cursor: int
    position: int  # where reading goes on: after the cursor while it catches up
    waits: int  # waits in a row
    due_at: datetime | None
    handled: int  # everything up to this revision was delivered or given up
    pending: int
    waiting: int  # pending records that are tried again
    due: int  # those that are due now


@dataclass(frozen=True, slots=True)
class Pending:
    """A record to send again. Without `next_attempt_at`, it was given up until its next change."""

    kind: str
    record_id: int
    since: int
    attempts: int = 0
    next_attempt_at: datetime | None = None
    status: int = 0
    error: str = ""
    is_stored: bool = False

    @property
    def key(self) -> RecordKey:
        return self.kind, self.record_id


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt to deliver a message. The status is 0 if no response arrived."""

    sent_at: datetime
    message_id: str
    type: str
    kind: str
    record_id: int
    revision: int
    attempt: int
    status: int
    error: str
    milliseconds: int


COLUMNS: Final = (
    "sent_at", "message_id", "type", "kind", "record_id", "revision", "attempt", "status", "error", "milliseconds",
)  # fmt: skip
READ_PENDING: Final = (
    "SELECT kind, record_id, since, attempts, next_attempt_at, coalesce(last_status, 0) AS status, "
    "last_error AS error FROM webhook_pending WHERE site_id = ? AND webhook_id = ? AND"
)


async def read_webhook(tx: Transaction, lease: Lease) -> Webhook:
    """Return a leased endpoint. Raise LeaseLost if another task may handle it, or if it is paused or disabled."""
    row = await tx.fetch_one(
        Sql(
            """
            SELECT w.id, w.url, w.kinds, w.filter::text, w.is_thin, w.generation, w.rotated_at, w.replays,
                w.failing_since, w.notified_at, c.cursor, greatest(c.cursor, c.position) AS position, c.waits,
                c.due_at, least(c.cursor, p.since) AS handled, p.pending, p.waiting, p.due
            FROM log_consumers c JOIN webhooks w ON w.site_id = c.site_id AND w.id = ? AND w.disabled_at IS NULL
            CROSS JOIN LATERAL (
                SELECT min(since) FILTER (WHERE next_attempt_at IS NOT NULL) AS since, count(*) AS pending,
                    count(next_attempt_at) AS waiting, count(*) FILTER (WHERE next_attempt_at <= ?) AS due
                FROM webhook_pending WHERE site_id = w.site_id AND webhook_id = w.id
            ) p WHERE c.site_id = ? AND c.consumer = ? AND c.lease = ? AND c.not_before < 'infinity'
            """,
            *(lease.name, tx.now, tx.site.id, lease.consumer, lease.token),
        )
    )
    if row is None:
        raise LeaseLost
    return Webhook(**{**row, "kinds": tuple(row["kinds"]), "filter": orjson.loads(row["filter"])})


async def list_due(tx: Transaction, webhook_id: str, limit: int) -> list[Pending]:
    due = Sql("next_attempt_at <= ? ORDER BY next_attempt_at, kind, record_id LIMIT ?", tx.now, limit)
    return await _list_pending(tx, webhook_id, due)


async def find_pending(tx: Transaction, webhook_id: str, keys: Sequence[RecordKey]) -> dict[RecordKey, Pending]:
    wanted = Sql(
        "(kind, record_id) IN (SELECT * FROM unnest(?::text[], ?::bigint[]))",
        [kind for kind, _ in keys],
        [record_id for _, record_id in keys],
    )
    return {pending.key: pending for pending in await _list_pending(tx, webhook_id, wanted)}


async def _list_pending(tx: Transaction, webhook_id: str, condition: Sql) -> list[Pending]:
    rows = await tx.fetch_all(Sql(READ_PENDING, tx.site.id, webhook_id) + condition)
    return [Pending(**row, is_stored=True) for row in rows]


async def count_waiting(tx: Transaction, webhook_id: str) -> tuple[int, datetime | None]:
    """Return the number of records that are tried again, and the next attempt."""
    row = await tx.fetch_one(
        Sql(
            "SELECT count(next_attempt_at), min(next_attempt_at) FROM webhook_pending "
            "WHERE site_id = ? AND webhook_id = ?",
            *(tx.site.id, webhook_id),
        )
    )
    return (row[0], row[1]) if row is not None else (0, None)


async def store_pending(tx: Transaction, webhook_id: str, rows: Sequence[Pending]) -> None:
    if not rows:
        return
    await tx.execute(
        Sql(
            """
            INSERT INTO webhook_pending
                (site_id, webhook_id, kind, record_id, since, attempts, next_attempt_at, last_status, last_error)
            SELECT ?::bigint, ?::text, p.kind, p.record_id, p.since, p.attempts, p.at, nullif(p.status, 0), p.error
            FROM unnest(?::text[], ?::bigint[], ?::bigint[], ?::int[], ?::timestamptz[], ?::int[], ?::text[])
                AS p (kind, record_id, since, attempts, at, status, error)
            ON CONFLICT (site_id, webhook_id, kind, record_id) DO UPDATE SET attempts = excluded.attempts,
                next_attempt_at = excluded.next_attempt_at, last_status = excluded.last_status,
                last_error = excluded.last_error
            """,
            *(tx.site.id, webhook_id),
            [row.kind for row in rows],
            [row.record_id for row in rows],
            [row.since for row in rows],
            [row.attempts for row in rows],
            [row.next_attempt_at for row in rows],
            [row.status for row in rows],
            [row.error for row in rows],
        )
    )


async def delete_pending(tx: Transaction, webhook_id: str, keys: Sequence[RecordKey]) -> None:
    if not keys:
        return
    await tx.execute(
        Sql(
            """DELETE FROM webhook_pending WHERE site_id = ? AND webhook_id = ?
                AND (kind, record_id) IN (SELECT * FROM unnest(?::text[], ?::bigint[]))""",
            *(tx.site.id, webhook_id),
            [kind for kind, _ in keys],
            [record_id for _, record_id in keys],
        )
    )


async def reset_pending(tx: Transaction, webhook_id: str, reset: Pending) -> None:
    """Replace all pending records by one that tells the receiver to start again."""
    await tx.execute(Sql("DELETE FROM webhook_pending WHERE site_id = ? AND webhook_id = ?", tx.site.id, webhook_id))
    await store_pending(tx, webhook_id, [reset])


async def log_deliveries(tx: Transaction, webhook_id: str, deliveries: Sequence[Delivery]) -> None:
    """Log deliveries, and delete all but the newest."""
    columns = [[getattr(delivery, name) for delivery in deliveries] for name in COLUMNS]
    await tx.execute(
        Sql(
            """
            WITH counted AS (
                UPDATE webhooks SET sent = sent + ? WHERE site_id = ? AND id = ?
                RETURNING site_id, id, sent - ? AS first
            ), old AS (
                DELETE FROM webhook_deliveries d USING counted c
                WHERE d.site_id = c.site_id AND d.webhook_id = c.id AND d.number <= c.first + ? - ?
            )
            INSERT INTO webhook_deliveries (site_id, webhook_id, number, sent_at, message_id, type, kind, record_id,
                revision, attempt, status, error, milliseconds)
            SELECT c.site_id, c.id, c.first + d.place, d.sent_at, d.message_id, d.type, d.kind, d.record_id,
                d.revision, d.attempt, nullif(d.status, 0), d.error, d.milliseconds
            FROM counted c, unnest(?::timestamptz[], ?::text[], ?::text[], ?::text[], ?::bigint[], ?::bigint[],
                ?::int[], ?::int[], ?::text[], ?::int[]) WITH ORDINALITY AS d (sent_at, message_id, type, kind,
                record_id, revision, attempt, status, error, milliseconds, place)
            """,
            *(len(deliveries), tx.site.id, webhook_id, len(deliveries), len(deliveries), MAX_DELIVERIES),
            *columns,
        )
    )

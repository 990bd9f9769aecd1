"""What delivery reads and writes of a webhook: its row, pending records and the log of deliveries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson

from kalends.push.rules import MAX_DELIVERIES
from kalends.store.database import Transaction
from kalends.store.sql import Sql

type RecordKey = tuple[str, int]  # kind and ID


@dataclass(frozen=True, slots=True)
class Webhook:
    id: str
    url: str
    owner_id: int | None
    kinds: tuple[str, ...]  # empty: the default
    filter: Mapping[str, Any]
    is_thin: bool
    generation: int
    rotated_at: datetime | None
    replays: int
    failing_since: datetime | None
    notified_at: datetime | None


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


async def find_webhook(tx: Transaction, webhook_id: str) -> Webhook | None:
    """Return an endpoint unless it is disabled."""
    row = await tx.fetch_one(
        Sql(
            """SELECT id, url, owner_id, kinds, filter::text, is_thin, generation, rotated_at, replays, failing_since,
                notified_at FROM webhooks WHERE site_id = ? AND id = ? AND disabled_at IS NULL""",
            *(tx.site.id, webhook_id),
        )
    )
    if row is None:
        return None
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


async def measure_pending(tx: Transaction, webhook_id: str) -> tuple[int, int | None, datetime | None]:
    """Return the number of records that are tried again, the least of their revisions, and the next attempt."""
    row = await tx.fetch_one(
        Sql(
            """SELECT count(*), min(since), min(next_attempt_at) FROM webhook_pending
                WHERE site_id = ? AND webhook_id = ? AND next_attempt_at IS NOT NULL""",
            *(tx.site.id, webhook_id),
        )
    )
    if row is None:
        raise AssertionError("an aggregate has a row")
    return row[0], row[1], row[2]


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

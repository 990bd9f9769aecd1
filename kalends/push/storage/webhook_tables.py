"""The tables of webhook endpoints: settings, pending records and the log of deliveries."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, LiteralString

import orjson
from asyncpg import Record

from kalends.push.rules import MAX_PENDING
from kalends.push.storage import log_consumers
from kalends.store.database import Transaction
from kalends.store.sql import Sql, join, placeholders

Columns = Mapping[LiteralString, object]

# `handled` is the revision up to which everything was delivered or given up.
_SELECT: Final[LiteralString] = """
    SELECT w.id, w.name, w.url, w.owner_id, w.created_at, w.kinds, w.filter::text AS filter, w.is_thin, w.generation,
        w.rotated_at, w.replays, w.sent, w.failing_since, w.notified_at, w.disabled_at, w.disabled_reason,
        c.cursor, least(c.cursor, p.since) AS handled, nullif(c.not_before, '-infinity') AS waits_until,
        coalesce(p.waiting, 0) AS waiting, coalesce(p.given_up, 0) AS given_up
    FROM webhooks w
    JOIN log_consumers c ON c.site_id = w.site_id AND c.consumer = 'webhook:' || w.id
    LEFT JOIN LATERAL (
        SELECT min(since) FILTER (WHERE next_attempt_at IS NOT NULL) AS since,
            count(*) FILTER (WHERE next_attempt_at IS NOT NULL) AS waiting,
            count(*) FILTER (WHERE next_attempt_at IS NULL) AS given_up
        FROM webhook_pending WHERE site_id = w.site_id AND webhook_id = w.id
    ) p ON true
    WHERE w.site_id = ?
"""
DELIVERY_COLUMNS: Final[LiteralString] = (
    "number, sent_at, message_id, type, kind, record_id, revision, attempt, status, error, milliseconds"
)
PENDING_COLUMNS: Final[LiteralString] = "kind, record_id, since, attempts, next_attempt_at, last_status, last_error"


def name_consumer(webhook_id: str) -> str:
    return f"webhook:{webhook_id}"


def decode_filter(row: Record) -> dict[str, Any]:
    """Return the filter of an endpoint as the parameters of `changes`."""
    values: dict[str, Any] = orjson.loads(row["filter"])
    return values


def encode_filter(values: Mapping[str, Any]) -> str:
    return orjson.dumps(values).decode()


async def list_webhooks(tx: Transaction) -> list[Record]:
    return await tx.fetch_all(Sql(_SELECT + " ORDER BY w.name, w.id", tx.site.id))


async def find_webhook(tx: Transaction, webhook_id: str) -> Record | None:
    return await tx.fetch_one(Sql(_SELECT + " AND w.id = ?", tx.site.id, webhook_id))


async def count_webhooks(tx: Transaction) -> int:
    number: int = await tx.fetch_value(Sql("SELECT count(*) FROM webhooks WHERE site_id = ?", tx.site.id))
    return number


async def add_webhook(tx: Transaction, columns: Columns, cursor: int) -> None:
    """Add an endpoint that receives the changes after a revision."""
    names: list[LiteralString] = ["site_id", *columns]
    insert = "INSERT INTO webhooks (" + ", ".join(names) + ") VALUES (" + placeholders(len(names)) + ")"
    await tx.execute(Sql(insert, tx.site.id, *columns.values()))
    await log_consumers.add_consumer(tx, name_consumer(str(columns["id"])), cursor)


async def change_webhook(tx: Transaction, webhook_id: str, columns: Columns) -> None:
    assignments = join(", ", [Sql(name + " = ?", value) for name, value in columns.items()])
    where = Sql("WHERE site_id = ? AND id = ?", tx.site.id, webhook_id)
    await tx.execute(Sql("UPDATE webhooks SET") + assignments + where)


async def remove_webhook(tx: Transaction, webhook_id: str) -> None:
    """Delete an endpoint with its log. A page that is being sent loses its lease."""
    await tx.execute(Sql("DELETE FROM webhooks WHERE site_id = ? AND id = ?", tx.site.id, webhook_id))
    await log_consumers.remove_consumer(tx, name_consumer(webhook_id))


async def count_replay(tx: Transaction, webhook_id: str) -> None:
    """Let the IDs of later messages differ from all earlier ones."""
    where = "WHERE site_id = ? AND id = ?"
    await tx.execute(Sql("UPDATE webhooks SET replays = replays + 1 " + where, tx.site.id, webhook_id))


# Consumers ---------------------------------------------------------------------------------------


async def stop_consumer(tx: Transaction, webhook_id: str) -> None:
    """Send nothing from now on. A page that is being sent loses its lease, and is sent again after a restart."""
    await _change_consumer(tx, webhook_id, Sql("not_before = 'infinity', lease = NULL, lease_until = NULL"))


async def wake_consumer(tx: Transaction, webhook_id: str) -> None:
    """End a pause or back-off, and look for work at once."""
    await _change_consumer(tx, webhook_id, Sql("not_before = '-infinity', waits = 0, due_at = ?", tx.now))


async def hasten_consumer(tx: Transaction, webhook_id: str) -> None:
    """Look for work at once, unless the endpoint is paused or disabled."""
    not_before = "CASE not_before WHEN 'infinity' THEN not_before ELSE '-infinity' END"
    await _change_consumer(tx, webhook_id, Sql("not_before = " + not_before + ", due_at = ?", tx.now))


async def move_cursor(tx: Transaction, webhook_id: str, cursor: int) -> None:
    """Continue after an earlier revision. A page that is being sent loses its lease, or it would move the cursor."""
    back = Sql("cursor = least(cursor, ?), position = NULL, lease = NULL, lease_until = NULL", cursor)
    await _change_consumer(tx, webhook_id, back)


async def _change_consumer(tx: Transaction, webhook_id: str, assignments: Sql) -> None:
    where = Sql("WHERE site_id = ? AND consumer = ?", tx.site.id, name_consumer(webhook_id))
    await tx.execute(Sql("UPDATE log_consumers SET") + assignments + where)


# Pending records ---------------------------------------------------------------------------------


async def list_pending(tx: Transaction, webhook_id: str, limit: int = MAX_PENDING) -> list[Record]:
    """Return pending records by their next attempt; those that were given up come last."""
    where = " FROM webhook_pending WHERE site_id = ? AND webhook_id = ? ORDER BY next_attempt_at, kind, record_id"
    query = Sql("SELECT " + PENDING_COLUMNS + where + " LIMIT ?", tx.site.id, webhook_id, limit)
    return await tx.fetch_all(query)


async def send_again(tx: Transaction, webhook_id: str, kind: str, record_id: int, since: int) -> None:
    """Let a record be due now, as it is then. Its earlier `since` stays: the receiver may have missed more."""
    await tx.execute(
        Sql(
            """INSERT INTO webhook_pending AS p (site_id, webhook_id, kind, record_id, since, next_attempt_at)
                VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT (site_id, webhook_id, kind, record_id) DO UPDATE SET attempts = 0,
                    next_attempt_at = excluded.next_attempt_at, since = least(p.since, excluded.since)""",
            *(tx.site.id, webhook_id, kind, record_id, since, tx.now),
        )
    )


async def send_all_again(tx: Transaction, webhook_id: str) -> None:
    """Let all pending records be due now, also those that were given up."""
    update = "UPDATE webhook_pending SET attempts = 0, next_attempt_at = ? WHERE site_id = ? AND webhook_id = ?"
    await tx.execute(Sql(update, tx.now, tx.site.id, webhook_id))


# Deliveries --------------------------------------------------------------------------------------


async def list_deliveries(tx: Transaction, webhook_id: str, before: int | None, limit: int) -> list[Record]:
    """Return deliveries, the newest first; `before` is the number of the last one on the previous page."""
    where = (
        " FROM webhook_deliveries WHERE site_id = ? AND webhook_id = ? AND number < coalesce(?, 9223372036854775807)"
    )
    query = "SELECT " + DELIVERY_COLUMNS + where + " ORDER BY number DESC LIMIT ?"
    return await tx.fetch_all(Sql(query, tx.site.id, webhook_id, before, limit))


async def find_delivery(tx: Transaction, webhook_id: str, number: int) -> Record | None:
    where = " FROM webhook_deliveries WHERE site_id = ? AND webhook_id = ? AND number = ?"
    return await tx.fetch_one(Sql("SELECT " + DELIVERY_COLUMNS + where, tx.site.id, webhook_id, number))


async def find_next_revision(tx: Transaction, moment: datetime) -> int | None:
    """Return the revision of the first change after a time; None if there is none."""
    query = "SELECT revision FROM changes WHERE site_id = ? AND changed_at > ? ORDER BY revision LIMIT 1"
    revision: int | None = await tx.fetch_value(Sql(query, tx.site.id, moment))
    return revision

"""Consumers of the change log: their cursors, and the leases that make one task at a time handle each of them."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

from kalends.store.database import Database, Transaction
from kalends.store.sql import Sql

LEASE_SECONDS = 30.0


class LeaseLost(Exception):
    """Raised if another task may handle the consumer by now, or if it was paused, moved or removed."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A task's right to handle a consumer. Every statement of the task checks the token."""

    site_id: int
    consumer: str
    token: UUID

    @property
    def kind(self) -> str:
        return self.consumer.partition(":")[0]

    @property
    def name(self) -> str:
        return self.consumer.partition(":")[2]

    def condition(self) -> Sql:
        return Sql("site_id = ? AND consumer = ? AND lease = ?", self.site_id, self.consumer, self.token)

    def active_condition(self) -> Sql:
        """Match the consumer unless it was paused in the meantime."""
        return self.condition() + Sql("AND not_before < 'infinity'")


async def add_consumer(tx: Transaction, consumer: str, cursor: int) -> None:
    """Let a consumer follow the changes after a revision, unless it follows them already."""
    insert = "INSERT INTO log_consumers (site_id, consumer, cursor) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    await tx.execute(Sql(insert, tx.site.id, consumer, cursor))


async def remove_consumer(tx: Transaction, consumer: str) -> None:
    """Delete a consumer. A task that handles it loses its lease."""
    await tx.execute(Sql("DELETE FROM log_consumers WHERE site_id = ? AND consumer = ?", tx.site.id, consumer))


async def read_cursor(tx: Transaction, lease: Lease) -> int:
    cursor: int | None = await tx.fetch_value(
        Sql("SELECT cursor FROM log_consumers WHERE") + lease.active_condition()
    )
    if cursor is None:
        raise LeaseLost
    return cursor


async def take_consumers(database: Database, limit: int) -> list[Lease]:
    """Lease consumers with work, on all sites."""
    token = uuid4()
    rows = await database.fetch_unscoped(
        Sql("SELECT site_id, consumer FROM take_log_consumers(?, ?, ?)", token, LEASE_SECONDS, limit)
    )
    return [Lease(row["site_id"], row["consumer"], token) for row in rows]


async def renew(tx: Transaction, lease: Lease) -> None:
    """Extend the lease by the database's time, which all workers share."""
    extended = Sql("UPDATE log_consumers SET lease_until = now() + make_interval(secs => ?) WHERE", LEASE_SECONDS)
    await _update(tx, lease, extended)


async def advance(
    tx: Transaction,
    lease: Lease,
    cursor: int,
    *,
    position: int | None = None,
    waits: int = 0,
    not_before: datetime | None = None,
    due_at: datetime | None = None,
    former_due_at: datetime | None = None,
    release: bool = False,
) -> None:
    """Store cursor and position, until when the consumer waits, and when work is due even without a change.

    If `due_at` is not the former one any more, someone has added work, so it stays.
    """
    update = Sql(
        "UPDATE log_consumers SET cursor = ?, position = ?, waits = ?, "
        "not_before = coalesce(?::timestamptz, '-infinity'), "
        "due_at = CASE WHEN due_at IS NOT DISTINCT FROM ?::timestamptz THEN ?::timestamptz ELSE due_at END",
        *(cursor, position, waits, not_before, former_due_at, due_at),
    )
    await _update(tx, lease, update + Sql(", lease = NULL, lease_until = NULL WHERE" if release else "WHERE"))


async def release_lease(tx: Transaction, lease: Lease, not_before: datetime | None) -> None:
    """Let other tasks handle the consumer, after an error only later. A pause remains."""
    await tx.execute(
        Sql(
            """UPDATE log_consumers SET lease = NULL, lease_until = NULL,
                not_before = greatest(not_before, ?::timestamptz) WHERE""",
            not_before,
        )
        + lease.condition()
    )


async def _update(tx: Transaction, lease: Lease, update: Sql) -> None:
    if not await tx.fetch_value(update + lease.active_condition() + Sql("RETURNING true")):
        raise LeaseLost

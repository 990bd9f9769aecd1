"""Background jobs, run by Procrastinate: enqueueing them in a transaction and listing them for operators."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import orjson
from asyncpg import Record

from kalends.core.errors import UNKNOWN_SITE, ApiError
from kalends.store.database import LOOKUP_TIMEOUT, Database, Transaction
from kalends.store.problems import connect
from kalends.store.site_database import SiteDatabase
from kalends.store.sql import Sql


class Task(StrEnum):
    """The names of the tasks that transactions enqueue."""

    PUBLISH = "publish"
    PURGE = "purge"
    MAKE_SIZES = "make_sizes"
    SEND_EMAIL = "send_email"
    SEND_PROPOSAL_EMAIL = "send_proposal_email"
    SEND_FOLLOW_EMAIL = "send_follow_email"
    SEND_WEBHOOK_NOTICE = "send_webhook_notice"
    PLAN_IMPORT = "plan_import"
    APPLY_IMPORT = "apply_import"


class Queue(StrEnum):
    """The worker's queues. Each has separate slots, so its jobs never wait for another queue's jobs.

    The database function `enqueue_job` assigns each task to its queue. The assignment is right even if the server
    runs an earlier version.
    """

    URGENT = "default"  # publications and purges, which visitors wait for
    EMAIL = "email"  # separate, because an unresponsive mail server occupies a slot for 20 seconds
    DIGESTS = "digests"  # emails to followers, so many that other emails must not wait for them
    BACKGROUND = "background"  # imports and maintenance, which can take minutes
    IMAGES = "images"


async def enqueue(
    tx: Transaction, task: Task, arguments: Mapping[str, object], run_at: datetime | None = None
) -> None:
    """Enqueue a job for the transaction's site; without `run_at`, it can start immediately."""
    sent = {**arguments, "traceparent": tx.traceparent} if tx.traceparent else dict(arguments)
    await tx.execute(Sql("SELECT enqueue_job(?, ?::jsonb, ?)", task, orjson.dumps(sent).decode(), run_at))


READ_HEARTBEAT: Final = Sql("SELECT extract(epoch FROM now() - worker_heartbeat())::float8 AS age")


@contextmanager
def skipping_unknown_sites() -> Iterator[None]:
    """Exit the block if its site was removed from this database or moved to another cell."""
    try:
        yield
    except ApiError as error:
        if error.code != UNKNOWN_SITE:
            raise


async def find_heartbeat_age(database: Database) -> float | None:
    """Return the age of the latest worker heartbeat in seconds; None if no worker is registered."""
    (row,) = await database.fetch_unscoped(READ_HEARTBEAT, seconds=LOOKUP_TIMEOUT)
    age: float | None = row["age"]
    return age


async def find_site_heartbeat_age(database: SiteDatabase, site_id: int) -> float | None:
    (row,) = await database.fetch_for_site(site_id, READ_HEARTBEAT)
    age: float | None = row["age"]
    return age


async def find_due_records(database: Database, limit: int = 1000) -> list[Record]:
    return await database.fetch_unscoped(Sql("SELECT site_id, kind, id FROM due_records(?)", limit))


async def find_old_trash(database: Database, cutoff: datetime, limit: int = 1000) -> list[Record]:
    return await database.fetch_unscoped(Sql("SELECT site_id, kind, id FROM old_trash(?, ?)", cutoff, limit))


async def find_sites_with_old_changes(database: Database, cutoff: datetime) -> list[int]:
    rows = await database.fetch_unscoped(Sql("SELECT site_id FROM sites_with_old_changes(?)", cutoff))
    return [row["site_id"] for row in rows]


async def find_relocated_venues(database: Database, limit: int = 100) -> list[Record]:
    """Return venues on all sites whose coordinates have not yet been copied to all their events."""
    return await database.fetch_unscoped(Sql("SELECT site_id, id FROM geoloc_pending_venues(?)", limit))


async def update_event_places(tx: Transaction, venue_id: int, limit: int = 500) -> bool:
    """Copy a venue's new coordinates to at most `limit` events; return whether there may be more events to update."""
    await tx.lock_site(None)
    site_id = tx.site.id
    if await tx.fetch_value(Sql("SELECT geoloc_update_events(?, ?, ?)", site_id, venue_id, limit)):
        return True
    await tx.execute(Sql("UPDATE venues SET geoloc_pending = false WHERE site_id = ? AND id = ?", site_id, venue_id))
    return False


STATUSES: Final = ("todo", "doing", "failed")
# A job without `scheduled_at` is due when it is enqueued, which is the time of its first event.
SUMMARY: Final = """
    SELECT count(*) FILTER (WHERE is_due) AS waiting,
        count(*) FILTER (WHERE status = 'todo' AND NOT is_due) AS scheduled,
        count(*) FILTER (WHERE status = 'failed') AS failed,
        extract(epoch FROM now() - min(due_at) FILTER (WHERE is_due))::float8 AS oldest_seconds,
        (SELECT extract(epoch FROM now() - max(w.last_heartbeat))::float8 FROM procrastinate_workers w)
            AS heartbeat_seconds
    FROM (
        SELECT status, due_at, status = 'todo' AND due_at <= now() AS is_due FROM (
            SELECT j.status, coalesce(j.scheduled_at, (
                SELECT min(e.at) FROM procrastinate_events e WHERE e.job_id = j.id), now()) AS due_at
            FROM procrastinate_jobs j WHERE j.status IN ('todo', 'failed')) d) s
"""


# A `todo` job that is due appears as `waiting`.
SHOWN_STATUSES: Final = ("waiting", "scheduled", "running", "failed")
COUNT: Final = """
    SELECT task_name, CASE WHEN status = 'doing' THEN 'running' WHEN status = 'failed' THEN 'failed'
        WHEN scheduled_at > now() THEN 'scheduled' ELSE 'waiting' END AS shown_status, count(*) AS number
    FROM procrastinate_jobs WHERE status IN ('todo', 'doing', 'failed') GROUP BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class QueuedJob:
    id: int
    status: str
    task_name: str
    scheduled_at: datetime | None
    attempts: int
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class QueueSummary:
    waiting: int  # due now
    scheduled: int  # due later
    failed: int
    oldest_seconds: float | None  # since the oldest waiting job was due
    heartbeat_seconds: float | None  # since the latest worker heartbeat


async def list_jobs(
    queue_url: str, status: str = "", task: str = "", limit: int | None = None
) -> tuple[list[QueuedJob], QueueSummary]:
    """Return the unfinished jobs, optionally filtered by status or task, and a queue summary."""
    async with connect(queue_url) as connection:
        query = """
            SELECT id, status::text, task_name, scheduled_at, attempts, args::text AS arguments
            FROM procrastinate_jobs WHERE status::text = ANY($1) AND $2 IN ('', task_name) ORDER BY id LIMIT $3
        """
        rows = await connection.fetch(query, [status] if status else list(STATUSES), task, limit)
        summary = await connection.fetchrow(SUMMARY)
    jobs = [QueuedJob(**{**row, "arguments": orjson.loads(row["arguments"])}) for row in rows]
    return jobs, QueueSummary(**summary)


OLDEST: Final = """
    SELECT j.queue_name, extract(epoch FROM now() - min(coalesce(j.scheduled_at, (
        SELECT min(e.at) FROM procrastinate_events e WHERE e.job_id = j.id), now())))::float8 AS seconds
    FROM procrastinate_jobs j
    WHERE j.status = 'todo' AND (j.scheduled_at <= now() OR j.scheduled_at IS NULL) GROUP BY 1
"""


async def find_oldest(queue_url: str) -> dict[str, float]:
    """Return how many seconds each queue's oldest waiting job has been due; omit empty queues."""
    async with connect(queue_url, prepared=False) as connection:
        return {row["queue_name"]: row["seconds"] for row in await connection.fetch(OLDEST)}


async def count_jobs(queue_url: str) -> tuple[dict[tuple[str, str], int], QueueSummary]:
    async with connect(queue_url, prepared=False) as connection:
        rows = await connection.fetch(COUNT)
        summary = await connection.fetchrow(SUMMARY)
    return {(row["task_name"], row["shown_status"]): row["number"] for row in rows}, QueueSummary(**summary)

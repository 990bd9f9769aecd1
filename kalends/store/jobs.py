"""Background jobs, enqueued in the transaction of the change that needs them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from typing import Final

import orjson
from asyncpg import Record

from kalends.core.errors import UNKNOWN_SITE, ApiError
from kalends.store.database import LOOKUP_TIMEOUT, Database, Transaction
from kalends.store.site_database import SiteDatabase
from kalends.store.sql import Sql


class Task(StrEnum):
    """The names of the tasks that transactions enqueue."""

    PUBLISH = "publish"
    PURGE = "purge"
    MAKE_SIZES = "make_sizes"
    SEND_EMAIL = "send_email"
    PLAN_IMPORT = "plan_import"
    APPLY_IMPORT = "apply_import"


class Queue(StrEnum):
    """The queues of the worker. Each has its own slots, so its jobs never wait for jobs of another queue.

    `enqueue_job` in the database knows the queue of each task that a transaction enqueues, also for servers of an
    earlier version.
    """

    URGENT = "default"  # visitors wait for it: publications, purges
    EMAIL = "email"  # separate, because a mail server that does not respond takes up a slot for 20 seconds
    BACKGROUND = "background"  # imports and maintenance, which can take minutes
    IMAGES = "images"


async def enqueue(
    tx: Transaction, task: Task, arguments: Mapping[str, object], run_at: datetime | None = None
) -> None:
    """Enqueue a job for the site of the transaction; without `run_at` it may start immediately."""
    sent = {**arguments, "traceparent": tx.traceparent} if tx.traceparent else dict(arguments)
    await tx.execute(Sql("SELECT enqueue_job(?, ?::jsonb, ?)", task, orjson.dumps(sent).decode(), run_at))


READ_HEARTBEAT: Final = Sql("SELECT extract(epoch FROM now() - worker_heartbeat())::float8 AS age")


@contextmanager
def skipping_unknown_sites() -> Iterator[None]:
    """Leave the block if its site is not in this database any more: it was removed, or has moved to another cell."""
    try:
        yield
    except ApiError as error:
        if error.code != UNKNOWN_SITE:
            raise


async def find_heartbeat_age(database: Database) -> float | None:
    """Return the seconds since the last heartbeat of any worker; None if no worker is registered."""
    (row,) = await database.fetch_unscoped(READ_HEARTBEAT, seconds=LOOKUP_TIMEOUT)
    age: float | None = row["age"]
    return age


async def find_site_heartbeat_age(database: SiteDatabase, site_id: int) -> float | None:
    """Return the same for the workers of the database that has a site."""
    (row,) = await database.fetch_for_site(site_id, READ_HEARTBEAT)
    age: float | None = row["age"]
    return age


async def find_due_records(database: Database, limit: int = 1000) -> list[Record]:
    """Return scheduled records of all sites whose publication date has passed."""
    return await database.fetch_unscoped(Sql("SELECT site_id, kind, id FROM due_records(?)", limit))


async def find_old_trash(database: Database, cutoff: datetime, limit: int = 1000) -> list[Record]:
    """Return records of all sites that were trashed before the cutoff."""
    return await database.fetch_unscoped(Sql("SELECT site_id, kind, id FROM old_trash(?, ?)", cutoff, limit))


async def find_sites_with_old_changes(database: Database, cutoff: datetime) -> list[int]:
    """Return the IDs of sites whose change log begins before the cutoff."""
    rows = await database.fetch_unscoped(Sql("SELECT site_id FROM sites_with_old_changes(?)", cutoff))
    return [row["site_id"] for row in rows]


async def find_relocated_venues(database: Database, limit: int = 100) -> list[Record]:
    """Return venues of all sites whose events do not reflect the coordinates of the venue yet."""
    return await database.fetch_unscoped(Sql("SELECT site_id, id FROM unsettled_venues(?)", limit))


async def update_event_places(tx: Transaction, venue_id: int, limit: int = 500) -> bool:
    """Update some events after a change of the coordinates of their venue; return whether there may be more."""
    await tx.lock_site(None)
    site_id = tx.site.id
    if await tx.fetch_value(Sql("SELECT settle_places(?, ?, ?)", site_id, venue_id, limit)):
        return True
    await tx.execute(Sql("UPDATE venues SET unsettled = false WHERE site_id = ? AND id = ?", site_id, venue_id))
    return False

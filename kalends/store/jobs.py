"""Work for later, enqueued in the transaction of the change that needs it."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

import orjson
from asyncpg import Record

from kalends.store.database import Database, Transaction
from kalends.store.sql import Sql


class Task(StrEnum):
    """The names of the tasks that transactions enqueue."""

    PUBLISH = "publish"
    PURGE = "purge"
    MAKE_SIZES = "make_sizes"


async def enqueue(tx: Transaction, task: Task, arguments: Mapping[str, object], at: datetime | None = None) -> None:
    """The job belongs to the site of the transaction; without `at` it may begin at once."""
    await tx.run(Sql("SELECT enqueue_job(?, ?::jsonb, ?)", task, orjson.dumps(dict(arguments)).decode(), at))


async def find_due(database: Database, most: int = 1000) -> list[Record]:
    """Scheduled records of all sites whose time has come."""
    return await database.ask(Sql("SELECT site_id, kind, id FROM due_records(?)", most))


async def find_old_trash(database: Database, cutoff: datetime, most: int = 1000) -> list[Record]:
    """Records of all sites that have been in the trash since before a moment."""
    return await database.ask(Sql("SELECT site_id, kind, id FROM old_trash(?, ?)", cutoff, most))


async def find_old_logs(database: Database, cutoff: datetime) -> list[int]:
    """Sites whose change log begins before a moment."""
    rows = await database.ask(Sql("SELECT site_id FROM sites_with_old_changes(?)", cutoff))
    return [row["site_id"] for row in rows]


async def find_unsettled(database: Database, most: int = 100) -> list[Record]:
    """Find venues of all sites whose events have to follow a change of their place."""
    return await database.ask(Sql("SELECT site_id, id FROM unsettled_venues(?)", most))


async def settle_places(tx: Transaction, venue_id: int, most: int = 500) -> bool:
    """Let some events follow a change of their venue's place; return whether there may be more of them."""
    await tx.lock(None)
    site_id = tx.site.id
    if await tx.value(Sql("SELECT settle_places(?, ?, ?)", site_id, venue_id, most)):
        return True
    await tx.run(Sql("UPDATE venues SET unsettled = false WHERE site_id = ? AND id = ?", site_id, venue_id))
    return False

"""A quota of new records per account and day, so that a leaked password cannot fill the database."""

from datetime import timedelta

from kalends.core import errors
from kalends.core.errors import OUTCOME_UNKNOWN, ApiError
from kalends.operations import permissions
from kalends.operations.context import OperationContext
from kalends.store.database import Transaction
from kalends.store.sql import Sql


async def count_new_record(context: OperationContext, number: int = 1) -> None:
    """Count records that are about to be created; raise 429 if the account has created too many today.

    The count is written in the same transaction as the records, so records that are rolled back are not counted.
    """
    limit, now = context.max_daily_records, context.transaction.now
    if not await _count(context, number):
        midnight = now.replace(hour=0, minute=0, second=0) + timedelta(days=1)
        raise errors.quota_exceeded(limit, int((midnight - now).total_seconds()))


async def count_failed_write(context: OperationContext) -> None:
    """Count a write that failed after it had locked the site as one new record, because others had to wait for it."""
    await _count(context, 1)


def is_counted_failure(tx: Transaction, error: BaseException) -> bool:
    """Return whether a write that failed counts for the quota.

    A dry run does not, nor does input that was refused before anything was written. A write whose outcome is unknown
    has counted its records itself if it was stored, and one beyond the quota is refused anyway.
    """
    if not tx.has_lock or tx.is_dry_run:
        return False
    if isinstance(error, ApiError):
        return error.status != 429 and (tx.has_written or error.status >= 500) and error.code != OUTCOME_UNKNOWN
    return True


async def _count(context: OperationContext, number: int) -> bool:
    """Add to the records of today, unless the result would exceed the quota; return whether it is within."""
    limit, actor, tx = context.max_daily_records, context.actor, context.transaction
    if not limit or actor.user_id is None or permissions.rank(actor) >= permissions.EDITOR:
        return True
    is_within_limit: bool | None = await tx.fetch_value(
        Sql(
            """INSERT INTO daily_records AS d (site_id, user_id, day, count) VALUES (?, ?, ?, ?)
                ON CONFLICT (site_id, user_id) DO UPDATE SET day = excluded.day,
                    count = CASE WHEN d.day = excluded.day THEN d.count + excluded.count ELSE excluded.count END
                WHERE d.day <> excluded.day OR d.count + excluded.count <= ? RETURNING true""",
            tx.site.id,
            actor.user_id,
            tx.now.date(),
            number,
            limit,
        )
    )
    return bool(is_within_limit)

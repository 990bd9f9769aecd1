"""A quota of new records per account and day, so that a leaked password cannot fill the database."""

from datetime import timedelta

from kalends.core import errors
from kalends.operations import permissions
from kalends.operations.context import OperationContext
from kalends.store.sql import Sql


async def count_new_record(context: OperationContext, number: int = 1) -> None:
    """Count records that are about to be created; raise 429 if the account has created too many today.

    The count is written in the same transaction as the records, so records that are rolled back are not counted.
    """
    limit, actor, tx = context.max_daily_records, context.actor, context.transaction
    if not limit or actor.user_id is None or permissions.rank(actor) >= permissions.EDITOR:
        return
    is_within_limit = await tx.fetch_value(
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
    if not is_within_limit:
        midnight = tx.now.replace(hour=0, minute=0, second=0) + timedelta(days=1)
        raise errors.quota_exceeded(limit, int((midnight - tx.now).total_seconds()))

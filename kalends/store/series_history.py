"""The change log of series: how many events each edit has changed."""

from collections.abc import Sequence

from kalends.store.database import Transaction
from kalends.store.sql import Sql


async def count_caused_changes(tx: Transaction, causes: Sequence[int]) -> dict[int, int]:
    """Return the number of events that each of these changes of a series has changed."""
    rows = await tx.fetch_all(
        Sql(
            """SELECT cause, count(DISTINCT record_id) AS count FROM changes
                WHERE site_id = ? AND cause = ANY(?) AND kind = 'events' GROUP BY cause""",
            tx.site.id,
            list(causes),
        )
    )
    return {row["cause"]: row["count"] for row in rows}

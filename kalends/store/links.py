"""Links of an event to venues, organizers, categories and tags."""

from typing import LiteralString

from kalends.store.database import Transaction
from kalends.store.sql import Sql


async def replace_links(
    tx: Transaction, table: LiteralString, column: LiteralString, event_id: int, ids: list[int]
) -> None:
    """The event is linked to exactly these, in this order."""
    await tx.run(
        Sql(
            "DELETE FROM " + table + " WHERE site_id = ? AND event_id = ? AND NOT " + column + " = ANY(?)",
            tx.site.id,
            event_id,
            ids,
        )
    )
    if not ids:
        return
    await tx.run(
        Sql(
            "INSERT INTO " + table + " (site_id, event_id, " + column + ", position, start_utc, listed, published) "
            "SELECT e.site_id, e.id, l.id, l.position, e.start_utc, e.listed, e.status = 'publish' "
            "FROM events e, unnest(?::bigint[]) WITH ORDINALITY AS l (id, position) "
            "WHERE e.site_id = ? AND e.id = ? "
            "ON CONFLICT (site_id, event_id, " + column + ") DO UPDATE SET position = excluded.position",
            ids,
            tx.site.id,
            event_id,
        )
    )

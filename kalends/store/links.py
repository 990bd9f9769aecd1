"""Links of an event to venues, organizers, categories and tags."""

from typing import Final, LiteralString

from kalends.store import records
from kalends.store.database import Transaction
from kalends.store.sql import Sql


async def replace_links(
    tx: Transaction, table: LiteralString, column: LiteralString, event_ids: list[int], ids: list[int]
) -> None:
    """Link each of the events to exactly these records, in this order."""
    await tx.execute(
        Sql(
            "DELETE FROM " + table + " WHERE site_id = ? AND event_id = ANY(?) AND NOT " + column + " = ANY(?)",
            tx.site.id,
            event_ids,
            ids,
        )
    )
    if not ids:
        return
    await tx.execute(
        Sql(
            "INSERT INTO " + table + " (site_id, event_id, " + column + ", position, start_utc, listed, published) "
            "SELECT e.site_id, e.id, l.id, l.position, e.start_utc, e.listed, e.status = 'publish' "
            "FROM events e, unnest(?::bigint[]) WITH ORDINALITY AS l (id, position) "
            "WHERE e.site_id = ? AND e.id = ANY(?) "
            "ON CONFLICT (site_id, event_id, " + column + ") DO UPDATE SET position = excluded.position",
            ids,
            tx.site.id,
            event_ids,
        )
    )


async def record_linked_event_changes(
    tx: Transaction, table: LiteralString, column: LiteralString, record_id: int
) -> None:
    """Record a change of the events that are about to lose this record."""
    rows = await tx.fetch_all(
        Sql(
            "SELECT e.id, e.listed AS public FROM " + table + " l "
            "JOIN events e ON e.site_id = l.site_id AND e.id = l.event_id "
            "WHERE l.site_id = ? AND l." + column + " = ? ORDER BY e.id",
            tx.site.id,
            record_id,
        )
    )
    # An event that loses its venue gets a new SEQUENCE in calendar feeds.
    assignment: LiteralString = ", sequence = s.revision" if table == "event_venues" else ""
    await records.record_changes(tx, "events", rows, assignment=assignment)


async def unlink_events(
    tx: Transaction, table: LiteralString, column: LiteralString, record_id: int, limit: int
) -> int:
    """Unlink events from a record and record a change of each; return their number.

    The events are chosen first: a `DELETE` with a subquery compares all links of the record with each of them if the
    statistics are out of date.
    """
    chosen = Sql(
        "SELECT event_id FROM " + table + " WHERE site_id = ? AND " + column + " = ? LIMIT ?",
        tx.site.id,
        record_id,
        limit,
    )
    ids = [row["event_id"] for row in await tx.fetch_all(chosen)]
    await tx.execute(
        Sql(
            "DELETE FROM " + table + " WHERE site_id = ? AND " + column + " = ? AND event_id = ANY(?)",
            tx.site.id,
            record_id,
            ids,
        )
    )
    rows = await tx.fetch_all(
        Sql("SELECT id, listed AS public FROM events WHERE site_id = ? AND id = ANY(?) ORDER BY id", tx.site.id, ids)
    )
    await records.record_changes(tx, "events", rows)
    return len(rows)


# A category and all categories below it.
CATEGORY_TREE: Final = """
    WITH RECURSIVE tree (id) AS (
        SELECT ?::bigint
        UNION
        SELECT c.id FROM categories c JOIN tree ON c.site_id = ? AND c.parent = tree.id
    )
"""


async def record_category_event_changes(tx: Transaction, category_id: int) -> None:
    """Record a change of the events in a moved category and its descendants: other filters match them now."""
    rows = await tx.fetch_all(
        Sql(
            CATEGORY_TREE
            + """
                SELECT DISTINCT e.id, e.listed AS public FROM tree
                JOIN event_categories l ON l.site_id = ? AND l.category_id = tree.id
                JOIN events e ON e.site_id = l.site_id AND e.id = l.event_id ORDER BY e.id
                """,
            category_id,
            tx.site.id,
            tx.site.id,
        )
    )
    await records.record_changes(tx, "events", rows)


async def record_descendant_changes(tx: Transaction, category_id: int) -> None:
    """Give all categories below one a new revision, because their addresses contain its slug."""
    rows = await tx.fetch_all(
        Sql(
            CATEGORY_TREE + "SELECT id, true AS public FROM tree WHERE id <> ? ORDER BY id",
            category_id,
            tx.site.id,
            category_id,
        )
    )
    await records.record_changes(tx, "categories", rows, is_derived=True)

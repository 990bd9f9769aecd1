"""Links of events that move from one venue, organizer, category or tag to another, and the numbers of such links."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import LiteralString

from asyncpg import Record

from kalends.store import records
from kalends.store.database import Transaction
from kalends.store.history import encode_columns
from kalends.store.sql import Sql


@dataclass(frozen=True, slots=True)
class LinkMove:
    """All links to a record in a table of links, and the record that they lead to afterwards."""

    table: LiteralString
    column: LiteralString
    record_id: int
    new_id: int

    def replace_id(self, ids: Sequence[int]) -> list[int]:
        """Return the linked IDs of an event after the move, each once."""
        return list(dict.fromkeys(self.new_id if entry == self.record_id else entry for entry in ids))


async def count_links(tx: Transaction, table: LiteralString, column: LiteralString, record_id: int) -> int:
    """Return the number of events that link to a record, whatever their status."""
    condition = Sql("site_id = ? AND " + column + " = ?", tx.site.id, record_id)
    count: int = await tx.fetch_value(Sql("SELECT count(*) FROM " + table + " WHERE") + condition)
    return count


async def count_upcoming(
    tx: Transaction, table: LiteralString, column: LiteralString, ids: Sequence[int]
) -> dict[int, int]:
    """Return the numbers of published events that start later, by the ID of the record that they link to."""
    condition = Sql("site_id = ? AND " + column + " = ANY(?)", tx.site.id, list(ids))
    rows = await tx.fetch_all(
        Sql("SELECT " + column + " AS id, count(*) AS count FROM " + table + " WHERE")
        + condition
        + Sql("AND published AND start_utc >= ? GROUP BY 1", tx.now)
    )
    return {row["id"]: row["count"] for row in rows}


async def move_links(tx: Transaction, move: LinkMove, limit: int) -> int:
    """Link events of a record to another one instead, at the same position, and record a change of each event.

    An event that links to both keeps one link, at the first of the two positions. Return the number of events.
    """
    rows = await _fetch_linked_events(tx, move, limit)
    await _record_changes(tx, move, rows)
    table, column = move.table, move.column
    event_ids = [row["id"] for row in rows]
    old_links = Sql("site_id = ? AND " + column + " = ? AND event_id = ANY(?)", tx.site.id, move.record_id, event_ids)
    await tx.execute(
        Sql(
            "INSERT INTO "
            + table
            + " AS n (site_id, event_id, "
            + column
            + ", position, start_utc, listed, published)"
        )
        + Sql("SELECT site_id, event_id, ?::bigint, position, start_utc, listed, published", move.new_id)
        + Sql("FROM " + table + " WHERE")
        + old_links
        + Sql("ON CONFLICT (site_id, event_id, " + column + ")")
        + Sql("DO UPDATE SET position = least(n.position, excluded.position)")
    )
    await tx.execute(Sql("DELETE FROM " + table + " WHERE") + old_links)
    return len(rows)


async def _record_changes(tx: Transaction, move: LinkMove, rows: Sequence[Record]) -> None:
    logged = f"{move.column}s"
    revisions = [
        tx.changes.record(
            "events",
            row["id"],
            "update",
            before=encode_columns({logged: row["ids"]}),
            after=encode_columns({logged: move.replace_id(row["ids"])}),
            was_public=row["public"],
        )
        for row in rows
    ]
    # An event with another venue gets a new SEQUENCE in calendar feeds.
    assignment: LiteralString = ", sequence = s.revision" if move.table == "event_venues" else ""
    if rows:
        await records.write_revisions(tx, "events", [row["id"] for row in rows], revisions, assignment=assignment)


async def _fetch_linked_events(tx: Transaction, move: LinkMove, limit: int) -> list[Record]:
    table, column = move.table, move.column
    linked_ids: LiteralString = (
        "ARRAY(SELECT m." + column + " FROM " + table + " m "
        "WHERE m.site_id = l.site_id AND m.event_id = l.event_id ORDER BY m.position)"
    )
    return await tx.fetch_all(
        Sql("SELECT e.id, e.listed AS public, " + linked_ids + " AS ids FROM " + table + " l")
        + Sql("JOIN events e ON e.site_id = l.site_id AND e.id = l.event_id")
        + Sql("WHERE l.site_id = ? AND l." + column + " = ? ORDER BY e.id LIMIT ?", tx.site.id, move.record_id, limit)
    )

"""Writes a site's records: rows, slugs, links and former URLs. `Kind.select` reads them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, LiteralString

import orjson
from asyncpg import Record

from kalends.core.slugs import add_number
from kalends.store.change_log import encode_columns
from kalends.store.database import Transaction
from kalends.store.sql import Sql, join, placeholders


async def add(tx: Transaction, table: LiteralString, values: Mapping[LiteralString, object]) -> None:
    names: list[LiteralString] = ["site_id", *values]
    await tx.execute(
        Sql(
            "INSERT INTO " + table + " (" + ", ".join(names) + ") VALUES (" + placeholders(len(names)) + ")",
            tx.site.id,
            *values.values(),
        )
    )


async def change(
    tx: Transaction,
    table: LiteralString,
    record_id: int,
    values: Mapping[LiteralString, object],
    columns: LiteralString = "r.id",
) -> Record | None:
    """Write these values. Return the SELECT list `columns` of the new row, which has the alias `r`."""
    assignments = join(", ", [Sql(name + " = ?", value) for name, value in values.items()])
    return await tx.fetch_one(
        Sql("UPDATE " + table + " r SET")
        + assignments
        + Sql("WHERE r.site_id = ? AND r.id = ? RETURNING " + columns, tx.site.id, record_id)
    )


async def record_changes(
    tx: Transaction,
    table: LiteralString,
    rows: Sequence[Record],
    *,
    is_derived: bool = False,
    assignment: LiteralString = "",
    before: str | None = None,
    after: str | None = None,
) -> None:
    """Record a change to records whose content depends on another, changed record.

    Each record gets a new revision. `rows` contains `id` and `public`. `assignment` sets additional columns; `before`
    and `after` are logged for each record. A derived change does not update the modification time.
    """
    if not rows:
        return
    revisions = [
        tx.changes.record(
            table, row["id"], "update", before=before, after=after, was_public=row["public"], is_derived=is_derived
        )
        for row in rows
    ]
    ids = [row["id"] for row in rows]
    await write_revisions(tx, table, ids, revisions, assignment=assignment, is_derived=is_derived)


async def write_revisions(
    tx: Transaction,
    table: LiteralString,
    ids: Sequence[int],
    revisions: Sequence[int],
    *,
    assignment: LiteralString,
    is_derived: bool = False,
) -> None:
    """Write the revisions of recorded changes to the changed rows. `assignment` sets additional columns."""
    modified = Sql("") if is_derived else Sql(", modified_utc = ?", tx.now)
    await tx.execute(
        Sql("UPDATE " + table + " r SET revision = s.revision" + assignment)
        + modified
        + Sql(
            "FROM unnest(?::bigint[], ?::bigint[]) AS s (id, revision) WHERE r.site_id = ? AND r.id = s.id",
            *(list(ids), list(revisions), tx.site.id),
        )
    )


async def remove(tx: Transaction, table: LiteralString, record_id: int) -> None:
    await tx.execute(Sql("DELETE FROM " + table + " WHERE site_id = ? AND id = ?", tx.site.id, record_id))


async def find_existing_ids(tx: Transaction, table: LiteralString, ids: Iterable[int]) -> set[int]:
    rows = await tx.fetch_all(
        Sql("SELECT id FROM " + table + " WHERE site_id = ? AND id = ANY(?)", tx.site.id, list(ids))
    )
    return {row["id"] for row in rows}


async def find_by_slug(tx: Transaction, table: LiteralString, slug: str) -> int | None:
    record_id: int | None = await tx.fetch_value(
        Sql("SELECT id FROM " + table + " WHERE site_id = ? AND slug = ?", tx.site.id, slug)
    )
    return record_id


async def find_free_slug(tx: Transaction, table: LiteralString, slug: str, own_id: int) -> str:
    """Return the slug, with the suffix -2, -3 … if the slug is taken. The site lock keeps the result free.

    If many records share a name, an exponential search finds a free number, and then a binary search finds the
    lowest.
    """

    async def find_used(numbers: list[int]) -> set[int]:
        rows = await tx.fetch_all(
            Sql(
                "SELECT slug FROM " + table + " WHERE site_id = ? AND slug = ANY(?) AND id <> ?",
                *(tx.site.id, [add_number(slug, n) for n in numbers], own_id),
            )
        )
        # A long slug is truncated before a number is added, so several numbers can produce the same slug.
        used_slugs = {row["slug"] for row in rows}
        return {n for n in numbers if add_number(slug, n) in used_slugs}

    near = list(range(1, 17))
    far = [2**power for power in range(5, 32)]
    used = await find_used(near + far)
    free = next((n for n in near + far if n not in used), far[-1])
    low = free // 2 if free > near[-1] else free - 1
    while free - low > 1:
        middle = (low + free) // 2
        if await find_used([middle]):
            low = middle
        else:
            free = middle
    return add_number(slug, free)


# An event's links to venues, organizers, categories and tags.


async def replace_links(
    tx: Transaction, table: LiteralString, column: LiteralString, event_ids: list[int], ids: list[int]
) -> None:
    """Link each event to exactly these records, in this order."""
    await tx.execute(
        Sql(
            "DELETE FROM " + table + " WHERE site_id = ? AND event_id = ANY(?) AND NOT " + column + " = ANY(?)",
            *(tx.site.id, event_ids, ids),
        )
    )
    await add_links(tx, table, column, event_ids, ids)


async def add_links(
    tx: Transaction, table: LiteralString, column: LiteralString, event_ids: list[int], ids: list[int]
) -> None:
    if not ids:
        return
    await tx.execute(
        Sql(
            "INSERT INTO " + table + " (site_id, event_id, " + column + ", position, start_utc, listed, published) "
            "SELECT e.site_id, e.id, l.id, l.position, e.start_utc, e.listed, e.status = 'publish' "
            "FROM events e, unnest(?::bigint[]) WITH ORDINALITY AS l (id, position) "
            "WHERE e.site_id = ? AND e.id = ANY(?) "
            "ON CONFLICT (site_id, event_id, " + column + ") DO UPDATE SET position = excluded.position",
            *(ids, tx.site.id, event_ids),
        )
    )


async def record_linked_event_changes(
    tx: Transaction, table: LiteralString, column: LiteralString, record_id: int
) -> None:
    """Record a change to the events linked to a record, before the links are deleted."""
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
    await record_changes(tx, "events", rows, assignment=assignment)


async def unlink_events(
    tx: Transaction, table: LiteralString, column: LiteralString, record_id: int, limit: int
) -> int:
    """Unlink events from a record, and record a change to each event. Return the number of events.

    Select the events first: with outdated statistics, a `DELETE` with a subquery would compare each event with every
    link to the record.
    """
    chosen = Sql(
        "SELECT event_id FROM " + table + " WHERE site_id = ? AND " + column + " = ? LIMIT ?",
        *(tx.site.id, record_id, limit),
    )
    ids = [row["event_id"] for row in await tx.fetch_all(chosen)]
    await tx.execute(
        Sql(
            "DELETE FROM " + table + " WHERE site_id = ? AND " + column + " = ? AND event_id = ANY(?)",
            *(tx.site.id, record_id, ids),
        )
    )
    rows = await tx.fetch_all(
        Sql("SELECT id, listed AS public FROM events WHERE site_id = ? AND id = ANY(?) ORDER BY id", tx.site.id, ids)
    )
    await record_changes(tx, "events", rows)
    return len(rows)


# A category and all its descendants.
CATEGORY_TREE: Final = """
    WITH RECURSIVE tree (id) AS (
        SELECT ?::bigint
        UNION
        SELECT c.id FROM categories c JOIN tree ON c.site_id = ? AND c.parent = tree.id
    )
"""


async def record_category_event_changes(tx: Transaction, category_id: int) -> None:
    """Record a change to the events in a moved category and its descendants: other filters now match them."""
    rows = await tx.fetch_all(
        Sql(
            CATEGORY_TREE
            + """
                SELECT DISTINCT e.id, e.listed AS public FROM tree
                JOIN event_categories l ON l.site_id = ? AND l.category_id = tree.id
                JOIN events e ON e.site_id = l.site_id AND e.id = l.event_id ORDER BY e.id
                """,
            *(category_id, tx.site.id, tx.site.id),
        )
    )
    await record_changes(tx, "events", rows)


async def record_descendant_changes(tx: Transaction, category_id: int) -> None:
    """Record a change to all descendants of a category, because their URLs contain the category's slug."""
    rows = await tx.fetch_all(
        Sql(
            CATEGORY_TREE + "SELECT id, true AS public FROM tree WHERE id <> ? ORDER BY id",
            *(category_id, tx.site.id, category_id),
        )
    )
    await record_changes(tx, "categories", rows, is_derived=True)


# Count the events linked to a venue, organizer, category or tag, or link them to another record.


@dataclass(frozen=True, slots=True)
class LinkMove:
    """All links to a record in one link table, and the record to link to instead."""

    table: LiteralString
    column: LiteralString
    record_id: int
    new_id: int

    def replace_id(self, ids: Sequence[int]) -> list[int]:
        """Return the linked IDs of an event after the move, without duplicates."""
        return list(dict.fromkeys(self.new_id if entry == self.record_id else entry for entry in ids))


async def count_links(tx: Transaction, table: LiteralString, column: LiteralString, record_id: int) -> int:
    """Count the events linked to a record, whatever their status."""
    condition = Sql("site_id = ? AND " + column + " = ?", tx.site.id, record_id)
    count: int = await tx.fetch_value(Sql("SELECT count(*) FROM " + table + " WHERE") + condition)
    return count


async def count_upcoming(
    tx: Transaction, table: LiteralString, column: LiteralString, ids: Sequence[int]
) -> dict[int, int]:
    """Count upcoming published events by the ID of the linked record."""
    condition = Sql("site_id = ? AND " + column + " = ANY(?)", tx.site.id, list(ids))
    rows = await tx.fetch_all(
        Sql("SELECT " + column + " AS id, count(*) AS count FROM " + table + " WHERE")
        + condition
        + Sql("AND published AND start_utc >= ? GROUP BY 1", tx.now)
    )
    return {row["id"]: row["count"] for row in rows}


async def move_links(tx: Transaction, move: LinkMove, limit: int) -> int:
    """Link events to another record at the same position, and record a change to each event.

    An event that links to both records keeps one link, at the earlier of the two positions. Return the number of
    events.
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
    # An event with a changed venue gets a new SEQUENCE in calendar feeds.
    assignment: LiteralString = ", sequence = s.revision" if move.table == "event_venues" else ""
    if rows:
        await write_revisions(tx, "events", [row["id"] for row in rows], revisions, assignment=assignment)


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


# Redirects from former public slugs. A record that now has the slug takes precedence.


def id_key(record_id: int) -> str:
    """Return the redirect key for an ID. It never equals a slug, because slugs contain no question marks."""
    return f"?p={record_id}"


async def add_redirect(tx: Transaction, table: LiteralString, slug: str, record_id: int) -> None:
    await tx.execute(
        Sql(
            "INSERT INTO slug_redirects (site_id, kind, slug, record_id) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (site_id, kind, slug) DO UPDATE SET record_id = excluded.record_id",
            *(tx.site.id, table, slug, record_id),
        )
    )


async def add_redirects(tx: Transaction, table: LiteralString, record_ids: Mapping[str, int]) -> None:
    await tx.execute(
        Sql(
            "INSERT INTO slug_redirects (site_id, kind, slug, record_id) "
            "SELECT ?, ?, s.slug, s.id FROM unnest(?::text[], ?::bigint[]) AS s (slug, id) "
            "ON CONFLICT (site_id, kind, slug) DO UPDATE SET record_id = excluded.record_id",
            *(tx.site.id, table, list(record_ids), list(record_ids.values())),
        )
    )


async def move_redirects(tx: Transaction, table: LiteralString, record_id: int, new_id: int) -> None:
    """Redirect the former slugs of a record to another record."""
    await tx.execute(
        Sql(
            "UPDATE slug_redirects SET record_id = ? WHERE site_id = ? AND kind = ? AND record_id = ?",
            *(new_id, tx.site.id, table, record_id),
        )
    )


async def remove_redirects(tx: Transaction, table: LiteralString, record_id: int) -> None:
    await tx.execute(
        Sql(
            "DELETE FROM slug_redirects WHERE site_id = ? AND kind = ? AND record_id = ?",
            *(tx.site.id, table, record_id),
        )
    )


async def current_slug(tx: Transaction, table: LiteralString, slug: str, *, is_post: bool) -> str | None:
    """Return the current slug of a public record, given a former one."""
    rows = await find_current(tx, table, [slug], is_post=is_post)
    return rows[0]["slug"] if rows else None


async def find_current(tx: Transaction, table: LiteralString, keys: Sequence[str], *, is_post: bool) -> list[Record]:
    """Return `key`, `id`, `slug` and `name` of the public records that former slugs and IDs redirect to."""
    name: LiteralString = "title" if is_post else "name"
    visible: LiteralString = " AND r.status = 'publish'" if is_post else ""
    return await tx.fetch_all(
        Sql(
            "SELECT o.slug AS key, r.id, r.slug, r." + name + " AS name FROM slug_redirects o "
            "JOIN " + table + " r ON r.site_id = o.site_id AND r.id = o.record_id "
            "WHERE o.site_id = ? AND o.kind = ? AND o.slug = ANY(?)" + visible,
            *(tx.site.id, table, list(keys)),
        )
    )


# URLs of the former site: image paths, and path prefixes that have changed.


async def find_file(tx: Transaction, path: str) -> str | None:
    """Return the smallest file that is at least as wide as the file at this path on the former site."""
    row = await tx.fetch_one(
        Sql(
            "SELECT f.width AS wanted, m.url, m.width, m.sizes FROM legacy_files f "
            "JOIN media m ON m.site_id = f.site_id AND m.id = f.media_id WHERE f.site_id = ? AND f.path = ?",
            tx.site.id,
            path,
        )
    )
    return _choose_file(row) if row else None


def _choose_file(row: Record) -> str:
    sizes = orjson.loads(row["sizes"]).values()
    files = [(size["width"], size["url"]) for size in sizes if size.get("width", 0) >= row["wanted"]]
    name: str = min(files, default=(0, row["url"]), key=lambda file: file[0])[1]
    return name


async def find_prefix(tx: Transaction, path: str) -> str | None:
    """Replace the longest matching prefix in a path from the former site. Return None if no prefix matches."""
    row = await tx.fetch_one(
        Sql(
            "SELECT old, new FROM prefix_redirects WHERE site_id = ? AND starts_with(?, old) "
            "ORDER BY length(old) DESC LIMIT 1",
            tx.site.id,
            path,
        )
    )
    return row["new"] + path.removeprefix(row["old"]) if row else None


async def save_files(tx: Transaction, files: Sequence[Mapping[str, Any]]) -> None:
    """Store file paths from the former site. Each entry has `path`, `media_id` and `width`."""
    await tx.execute(
        Sql(
            "INSERT INTO legacy_files (site_id, path, media_id, width) "
            "SELECT ?, f.path, f.media_id, f.width FROM jsonb_to_recordset(?::jsonb) "
            "AS f (path text, media_id bigint, width integer) "
            "ON CONFLICT (site_id, path) DO UPDATE SET media_id = excluded.media_id, width = excluded.width",
            tx.site.id,
            orjson.dumps(list(files)).decode(),
        )
    )


async def save_prefixes(tx: Transaction, prefixes: Mapping[str, str]) -> None:
    await tx.execute(
        Sql(
            "INSERT INTO prefix_redirects (site_id, old, new) "
            "SELECT ?, p.old, p.new FROM unnest(?::text[], ?::text[]) AS p (old, new) "
            "ON CONFLICT (site_id, old) DO UPDATE SET new = excluded.new",
            *(tx.site.id, list(prefixes), list(prefixes.values())),
        )
    )


async def remove_prefixes(tx: Transaction, prefixes: Collection[str]) -> None:
    await tx.execute(
        Sql("DELETE FROM prefix_redirects WHERE site_id = ? AND old = ANY(?)", tx.site.id, list(prefixes))
    )


async def list_files(tx: Transaction) -> list[Record]:
    return await tx.fetch_all(
        Sql("SELECT path, media_id, width FROM legacy_files WHERE site_id = ? ORDER BY path", tx.site.id)
    )


async def list_prefixes(tx: Transaction) -> dict[str, str]:
    rows = await tx.fetch_all(Sql("SELECT old, new FROM prefix_redirects WHERE site_id = ? ORDER BY old", tx.site.id))
    return {row["old"]: row["new"] for row in rows}

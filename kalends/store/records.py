"""Rows of any table of a site: insert, update, delete, and slugs. `Kind.select` reads them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, LiteralString

from asyncpg import Record

from kalends.core.slugs import add_number
from kalends.store.database import Transaction
from kalends.store.sql import Sql, join, placeholders

# Tables whose rows do not have the time of their last change.
TERM_TABLES: Final = frozenset({"categories", "tags"})


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
    tx: Transaction, table: LiteralString, record_id: int, values: Mapping[LiteralString, object]
) -> None:
    assignments = join(", ", [Sql(name + " = ?", value) for name, value in values.items()])
    await tx.execute(
        Sql("UPDATE " + table + " SET") + assignments + Sql("WHERE site_id = ? AND id = ?", tx.site.id, record_id)
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
    """Record a change of records whose content depends on another changed record.

    Each gets a new revision. Rows have `id` and `public`. `assignment` sets further columns; `before` and `after`
    are logged for each record. A derived change leaves the time of the last change as it is.
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
    assignment: LiteralString = "",
    is_derived: bool = False,
) -> None:
    """Write the revisions of recorded changes to their rows. `assignment` sets further columns."""
    modified = Sql("") if is_derived or table in TERM_TABLES else Sql(", modified_utc = ?", tx.now)
    await tx.execute(
        Sql("UPDATE " + table + " r SET revision = s.revision" + assignment)
        + modified
        + Sql(
            "FROM unnest(?::bigint[], ?::bigint[]) AS s (id, revision) WHERE r.site_id = ? AND r.id = s.id",
            list(ids),
            list(revisions),
            tx.site.id,
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
    """Return the slug, with the suffix -2, -3 … if it is in use. The lock on the site keeps it free.

    Where many records share a name, an exponential search finds a free number and a binary search the lowest one.
    """

    async def find_used(numbers: list[int]) -> set[int]:
        rows = await tx.fetch_all(
            Sql(
                "SELECT slug FROM " + table + " WHERE site_id = ? AND slug = ANY(?) AND id <> ?",
                tx.site.id,
                [add_number(slug, n) for n in numbers],
                own_id,
            )
        )
        # A long slug is cut before its number is added, so several numbers may give the same slug.
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

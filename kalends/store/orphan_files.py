"""Files without a record: since when, and which of them are being deleted.

Deletion is two-phase: a file is marked under the lock of the site if no record refers to it, then deleted without
holding the lock, however long the storage takes. No record can refer to a marked file (`claim`). The mark of a
process that was killed expires after DELETION_TIMEOUT.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from kalends.core import errors
from kalends.store.database import Transaction
from kalends.store.sql import Sql

DELETION_TIMEOUT: Final = timedelta(minutes=10)


async def claim(tx: Transaction, names: Sequence[str]) -> None:
    """Reserve files for a record that is about to refer to them; raise 503 if one is being deleted."""
    is_marked = await tx.fetch_value(
        Sql(
            "SELECT EXISTS (SELECT FROM orphan_files WHERE site_id = ? AND name = ANY(?) "
            "AND deleting_since > clock_timestamp() - ?::interval)",
            tx.site.id,
            list(names),
            DELETION_TIMEOUT,
        )
    )
    if is_marked:
        raise errors.unavailable()  # The client may upload the file again after the deletion.
    await forget(tx, names)


async def release(tx: Transaction, names: Sequence[str]) -> None:
    """Add files that a record no longer refers to, unless another record does."""
    await tx.execute(
        Sql("INSERT INTO orphan_files (site_id, name, since) SELECT ?, f.name, ?", tx.site.id, tx.now)
        + _unreferenced(tx, names)
        + Sql("ON CONFLICT (site_id, name) DO UPDATE SET since = excluded.since")
    )


async def find_orphans(tx: Transaction, names: Sequence[str], cutoff: datetime) -> list[str]:
    """Return the files that no record has referred to since the cutoff."""
    rows = await tx.fetch_all(
        Sql("SELECT f.name")
        + _unreferenced(tx, names)
        + Sql("AND NOT EXISTS (SELECT FROM orphan_files s WHERE s.site_id = ? AND s.name = f.name AND s.since >= ?)",
              tx.site.id, cutoff)
    )  # fmt: skip
    return [row["name"] for row in rows]


async def mark_for_deletion(tx: Transaction, names: Sequence[str], cutoff: datetime) -> list[str]:
    """Mark the files that no record has referred to since the cutoff; return them for the caller to delete."""
    rows = await tx.fetch_all(
        Sql("INSERT INTO orphan_files (site_id, name, since, deleting_since) SELECT ?, f.name, ?, clock_timestamp()",
            tx.site.id, tx.now)
        + _unreferenced(tx, names)
        + Sql("ON CONFLICT (site_id, name) DO UPDATE SET deleting_since = excluded.deleting_since "
              "WHERE orphan_files.since < ? RETURNING name", cutoff)
    )  # fmt: skip
    return [row["name"] for row in rows]


async def forget(tx: Transaction, names: Sequence[str]) -> None:
    await tx.execute(Sql("DELETE FROM orphan_files WHERE site_id = ? AND name = ANY(?)", tx.site.id, list(names)))


def _unreferenced(tx: Transaction, names: Sequence[str]) -> Sql:
    return Sql(
        "FROM (SELECT DISTINCT unnest(?::text[]) AS name) f WHERE NOT EXISTS "
        "(SELECT FROM media_files m WHERE m.site_id = ? AND m.name = f.name)",
        list(names),
        tx.site.id,
    )

"""Files that no record needs: since when, and which of them are being removed.

Who removes a file dooms it first, under the lock of the site and only if no record needs it. From then on no
record can name it (`claim`), so it is removed without a lock, however long a storage takes. One that is killed
meanwhile leaves a mark that means nothing any more once the time for removing is over.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from kalends.core import errors
from kalends.store.database import Transaction
from kalends.store.sql import Sql

DELETION_TIMEOUT: Final = timedelta(minutes=10)


async def claim(tx: Transaction, names: Sequence[str]) -> None:
    """A record is about to need these files."""
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
        raise errors.unavailable()  # Whoever puts the file again in a moment keeps it.
    await forget(tx, names)


async def release(tx: Transaction, names: Sequence[str]) -> None:
    """A record needs these files no longer; perhaps another one does."""
    await tx.execute(
        Sql("INSERT INTO orphan_files (site_id, name, since) SELECT ?, f.name, ?", tx.site.id, tx.now)
        + _unreferenced(tx, names)
        + Sql("ON CONFLICT (site_id, name) DO UPDATE SET since = excluded.since")
    )


async def find_orphans(tx: Transaction, names: Sequence[str], cutoff: datetime) -> list[str]:
    """Which of these files no record has needed since then."""
    rows = await tx.fetch_all(
        Sql("SELECT f.name")
        + _unreferenced(tx, names)
        + Sql("AND NOT EXISTS (SELECT FROM orphan_files s WHERE s.site_id = ? AND s.name = f.name AND s.since >= ?)",
              tx.site.id, cutoff)
    )  # fmt: skip
    return [row["name"] for row in rows]


async def mark_for_deletion(tx: Transaction, names: Sequence[str], cutoff: datetime) -> list[str]:
    """Marks those of these files that no record has needed since then: they are the caller's to remove."""
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

"""The categories of a site in the order of their tree."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kalends.kinds.categories import CATEGORIES
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql

MAX_CATEGORIES: Final = 2000


@dataclass(frozen=True, slots=True)
class TreeEntry:
    row: Row
    depth: int  # 0 at the top


async def list_tree(tx: Transaction) -> list[TreeEntry]:
    """Return the categories, each followed by its children, by name."""
    order = Sql("r.site_id = ? ORDER BY r.name_folded, r.id LIMIT ?", tx.site.id, MAX_CATEGORIES)
    return order_tree(await tx.fetch_all(CATEGORIES.select(order)))


def order_tree(rows: Sequence[Row]) -> list[TreeEntry]:
    """Order rows as a tree. A category whose parent is not among the rows is shown at the top."""
    ids = {row["id"] for row in rows}
    children: dict[int | None, list[Row]] = {}
    for row in rows:
        children.setdefault(row["parent"] if row["parent"] in ids else None, []).append(row)

    def walk(parent: int | None, depth: int) -> Iterator[TreeEntry]:
        for row in children.get(parent, ()):
            yield TreeEntry(row, depth)
            yield from walk(row["id"], depth + 1)

    return list(walk(None, 0))
